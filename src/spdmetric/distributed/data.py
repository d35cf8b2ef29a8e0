"""Labeled matrices on the workers of a cluster: the record of `spdmetric.objectives.data`, its chunks there.

Functions that begin with an underscore run on the workers, the others in the process of the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import compress
from math import prod
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spdmetric import validation
from spdmetric.distributed.arrays import chunk_rows
from spdmetric.distributed.cluster import Cluster
from spdmetric.linalg.batch import Decomposition, Factor
from spdmetric.linalg.symmetric import Moments, Summary, adjoint
from spdmetric.linalg.threads import one_thread
from spdmetric.means import RowFunction, weighted_sum
from spdmetric.objectives.data import (
    ClassTarget,
    Data,
    Summand,
    as_symmetric,
    default_chunk_size,
    row_chunks,
    whiten,
    whitened_shape,
)

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client, Future

Weight = np.ndarray | None


class Survey(NamedTuple):
    """What a chunk says of itself before learning starts."""

    labels: np.ndarray  # those that occur
    sums: np.ndarray  # (3, n_labels): of each the weight, squares of it, and how many matrices have some
    unit: float  # what weights are multiplied with before they are squared
    range: tuple[float, float]  # smallest and largest positive weight
    symmetric: bool  # to the last digit


# -- From dask arrays to the record -------------------------------------------


def check_cluster_data(
    client: Client,
    X: DaskArray,
    y: DaskArray,
    weight: DaskArray | None,
    class_weight: validation.ClassWeight,
    task: str,
    rank: int | None,
) -> tuple[np.ndarray, ClusterData]:
    """Check all chunks where they are; return the classes, and the record of those with weight."""
    cluster = Cluster(client)
    chosen = [k for k, size in enumerate(X.chunks[0]) if size]
    n_chunks = len(X.chunks[0])
    columns: list[list[Any]] = []
    for array in (X, y, weight):
        blocks = [None] * n_chunks if array is None else cluster.blocks(array)
        columns.append([blocks[k] for k in chosen])
    asked = cluster.each(partial(_survey, rank=rank, n_chunks=n_chunks), *columns, chosen, chunk_rows(X))
    surveys = [_fetch_survey(cluster, future, k, n_chunks) for k, future in zip(chosen, asked, strict=True)]
    labels = [survey.labels for survey in surveys]
    if len({found.dtype.kind in "OUST" for found in labels}) > 1:
        raise TypeError("y has strings in some chunks and numbers in others: expected labels of one kind.")
    classes = np.unique(np.concatenate(labels))
    if validation.is_regression(classes, task):
        raise ValueError(
            "y holds regression targets, and from what stays on the workers only classes are learned: fit on "
            "X.compute(), or without a Dask client, which computes X chunk by chunk."
        )
    unit = validation.weight_unit(validation.weight_range(np.ravel([survey.range for survey in surveys]))[1])
    sums = np.zeros((3, classes.size))  # weight, in a unit, its squares, and number of matrices of each class
    for survey in surveys:
        factors = np.array([[unit], [(unit / survey.unit) ** 2], [1.0]])
        sums[:, np.searchsorted(classes, survey.labels)] += factors * survey.sums
    scale = validation.class_scale(sums[0].sum(), sums[0], classes, class_weight)
    target = _target_of_all(sums[0] * scale, float(sums[1] @ scale**2), sums[2].astype(int))
    scale = unit * scale
    # Empty chunks, and those without weight, are left out.
    having = [survey.range[1] > 0 for survey in surveys]
    kept = [list(compress(column, having)) for column in (*columns, [s.symmetric for s in surveys])]
    blocks = cluster.each(partial(_label, classes=classes, scale=scale, target=target), *kept)
    dtype = np.result_type(X.dtype, np.float64)
    return classes, ClusterData(blocks, target, cluster=cluster, shape=X.shape, dtype=dtype)


def _target_of_all(totals: np.ndarray, weight_squares: float, counts: np.ndarray) -> ClassTarget:
    """What is known of all matrices, which are elsewhere, from the weight of each class."""
    total = float(totals.sum())
    share = totals / total
    B = np.diag(totals) - np.outer(totals, share)  # sum w (e - share)(e - share)' for one-hot rows e
    nobody = np.empty(0, dtype=int), np.empty(0), np.empty((0, share.size))
    return ClassTarget(*nobody, share, B, total, counts, total**2 / weight_squares / np.count_nonzero(counts))


def _fetch_survey(cluster: Cluster, future: Future, k: int, n_chunks: int) -> Survey:
    """The survey of a chunk, or why there is none."""
    try:
        found = cluster.result(future)
    except (ConnectionError, MemoryError):
        raise
    except Exception as error:
        raise OSError(
            f"Chunk {k} of {n_chunks} of X, or its labels, cannot be computed: is its file truncated or not "
            f"there for the workers? ({type(error).__name__}: {error})"
        ) from error
    if isinstance(found, str):
        raise ValueError(found)
    return found


@one_thread
def _survey(
    X: np.ndarray, y: np.ndarray, weight: Weight, k: int, rows: slice, *, rank: int | None, n_chunks: int
) -> Survey | str:
    """Check a chunk, and count its labels; or say why it cannot be used."""
    try:
        X = validation.as_numpy(X, "X")
        validation.check_chunk(X, rank, k, rows, n_chunks)
        weight = np.ones(len(X)) if weight is None else validation.check_weight_values(weight, rows.start)
        low, high = validation.weight_range(weight)
        y = validation.check_label_kind(validation.as_numpy(y, "y"), "y", rows.start)
    except (ValueError, TypeError) as error:
        return str(error)
    labels, codes = np.unique(y, return_inverse=True)
    unit = validation.weight_unit(high) if high > 0 else 1.0
    sums = np.stack([np.bincount(codes, weights=of) for of in (weight, (unit * weight) ** 2, weight > 0)])
    return Survey(labels, sums, unit, (low, high), np.array_equal(X, adjoint(X)))


# -- Chunks on workers


@dataclass(eq=False)
class Block(Data):
    """A chunk, as it was given or whitened, in pieces that are handled one at a time.

    Dask moves small things to where there is time for them; it must know that these are not small.
    """

    n: int = 0  # matrices of all chunks
    keep: bool = False  # whether to keep the pieces decomposed, for the second pass

    def __post_init__(self) -> None:
        # Features of 8 MB in a piece: Dask has its workers give memory back at once, and to be given it anew
        # page by page took half of the time.  NumPy asks for huge pages for arrays of 4 MB or more.
        d, views = self.X.shape[-1], prod(self.X.shape[1:-2])
        self.rows = row_chunks(
            self.X.shape, max(1, max(default_chunk_size(d), 2**23 // (4 * d * (d + 1))) // views)
        )
        super().__post_init__()
        self.in_memory = self.keep
        for piece in self.chunks:  # packed in any case, by kernels that are those of all
            piece.n, piece.keep = self.n, True

    def __sizeof__(self) -> int:
        return 8 * prod(self.shape)


class Parts(list[Decomposition]):
    """Pieces decomposed, none if they are not kept."""

    def __sizeof__(self) -> int:
        return sum(3 * part.features.nbytes for part in self)


def _label(
    X: np.ndarray,
    y: np.ndarray,
    weight: Weight,
    symmetric: bool,
    *,
    classes: np.ndarray,
    scale: np.ndarray,
    target: ClassTarget,
) -> Block:
    """Turn labels into codes and scale the weights by class; matrices without weight are left out."""
    X = np.asarray(X)
    codes = np.searchsorted(classes, validation.check_label_kind(validation.as_numpy(y, "y"), "y"))
    weight = (np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)) * scale[codes]
    counts = weight > 0
    X, codes, weight = X if counts.all() else X[counts], codes[counts], weight[counts]
    target = replace(target, values=codes, weight=weight, Y=np.eye(len(target.mean))[codes] - target.mean)
    return Block(X if symmetric and X.dtype == np.float64 else as_symmetric(X, symmetric), target)


@one_thread
def _total(block: Block, *, f: Summand) -> Any:
    return block.total(f)


@one_thread
def _whiten(block: Block, *, factor: Factor, n: int, keep: bool) -> Block:
    return Block(whiten(factor, block.X[: block.shape[0]]), block.target, n=n, keep=keep)


@one_thread
def _decompose(block: Block, *, W: Factor) -> tuple[Moments, Parts]:
    """The first pass over a chunk."""
    moments, _, parts = block.decompose(W, gram=False)
    return moments, Parts(parts)


@one_thread
def _merge_moments(moments: list[Moments]) -> Moments:
    return reduce(Moments.merge, moments)


@one_thread
def _total_of_parts(
    block: Block, here: tuple[Moments, Parts], *shared: Any, f: Callable[..., Any], W: Factor
) -> Any:
    """The second pass over a chunk."""
    return block.total_of_parts(f, W, here[1], *shared)


@one_thread
def _gather(block: Block, here: tuple[Moments, Parts], *, W: Factor) -> tuple[np.ndarray, ...]:
    """Vectors, classes and weights of a chunk."""
    parts = here[1] or [piece.decompose(W) for piece in block.chunks]
    return np.concatenate([part.features for part in parts]), block.target.values, block.target.weight


# -- The record ---------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class ClusterData(Data):
    """Labeled matrices on the workers of a cluster; ``X`` are futures of its chunks."""

    cluster: Cluster
    shape: tuple[int, ...]
    dtype: Any

    gathers = in_memory = False

    def __post_init__(self) -> None:
        """All is known already."""

    def average(self, f: RowFunction) -> np.ndarray:
        return self.total(lambda X, target: weighted_sum(f, X, target.weight)) / self.target.total

    def total(self, f: Summand) -> Any:
        return self._sum(self.cluster.each(partial(_total, f=f), self.X))

    def _sum(self, values: list[Future]) -> Any:
        return self.cluster.result(self.cluster.merge(partial(reduce, add), values))

    def whitened(self, factor: Factor) -> ClusterData:
        """The matrices ``W X W'``, kept on the workers."""
        shape = whitened_shape(self.shape[0], factor)
        k, matrices = shape[-1], prod(shape[:-2])
        keep = 8 * matrices * 2 * (k * k + k * (k + 1)) <= self.cluster.memory() / 3
        f = partial(_whiten, factor=factor, n=self.shape[0], keep=keep)
        return replace(self, X=self.cluster.each(f, self.X), shape=shape)

    def decompose(self, W: Factor, *, gram: bool) -> tuple[Any, Summary, list[Any]]:
        """Moments of all chunks together and the chunks at W as futures, and what they say in short."""
        here = self.cluster.each(partial(_decompose, W=W), self.X)
        of_chunks = self.cluster.each(itemgetter(0), here)  # they travel, the parts do not
        moments = self.cluster.merge(_merge_moments, of_chunks)
        return moments, self.call(Summary.from_moments, moments, fetch=True), here

    def total_of_parts(self, f: Callable[..., Any], W: Factor, parts: list[Future], *shared: Any) -> Any:
        """Sum of ``f(chunk, part, *shared)`` over the chunks; what is shared may be on a worker."""
        columns = [[value] * len(parts) for value in shared]
        return self._sum(self.cluster.each(partial(_total_of_parts, f=f, W=W), self.X, parts, *columns))

    def gather(self, W: Factor, parts: list[Future]) -> tuple[np.ndarray, ClassTarget]:
        """Vectors of all matrices, brought here with their target: n p numbers."""
        found = self.cluster.each(partial(_gather, W=W), self.X, parts)
        vectors, codes, weight = map(np.concatenate, zip(*map(self.cluster.result, found), strict=True))
        return vectors, ClassTarget.from_codes(codes, weight, len(self.target.counts))

    def call(self, f: Callable[..., Any], *args: Any, fetch: bool = False) -> Any:
        there = self.cluster.submit(one_thread(f), *args)
        return self.cluster.result(there) if fetch else there
