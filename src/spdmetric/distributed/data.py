"""Labeled matrices on the workers of a cluster: the record of `spdmetric.objectives.data`, its chunks there.

Functions that begin with an underscore run on the workers, the others in the process of the client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from spdmetric.linalg.symmetric import Moments, Summary, adjoint, symmetrize
from spdmetric.linalg.threads import one_thread
from spdmetric.means import RowFunction, weighted_sum
from spdmetric.objectives.data import (
    Chunk,
    ClassTarget,
    Data,
    Summand,
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
    complaint: str | None  # why it cannot be used


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
    totals, squares, counts = _sum_surveys(surveys, classes, unit)
    scale = validation.class_scale(totals.sum(), totals, classes, class_weight)
    target = _target_of_all(totals * scale, float(squares @ scale**2), counts.astype(int))
    scale = unit * scale
    # Empty chunks, and those without weight, are left out.
    having = [survey.range[1] > 0 for survey in surveys]
    kept = [list(compress(column, having)) for column in (*columns, [s.symmetric for s in surveys])]
    blocks = cluster.each(partial(_label, classes=classes, scale=scale, target=target), *kept)
    return classes, ClusterData(cluster, blocks, X.shape, target, X.dtype)


def _sum_surveys(surveys: list[Survey], classes: np.ndarray, unit: float) -> np.ndarray:
    """Weight, in a unit, its squares, and number of the matrices of each class, (3, n_classes)."""
    total = np.zeros((3, classes.size))
    for survey in surveys:
        scale = np.array([[unit], [(unit / survey.unit) ** 2], [1.0]])
        total[:, np.searchsorted(classes, survey.labels)] += scale * survey.sums
    return total


def _target_of_all(totals: np.ndarray, weight_squares: float, counts: np.ndarray) -> ClassTarget:
    """What is known of all matrices, which are elsewhere, from the weight of each class."""
    total = float(totals.sum())
    share = totals / total
    B = np.diag(totals) - np.outer(totals, share)  # sum w (e - share)(e - share)' for one-hot rows e
    nobody = np.empty(0, dtype=int), np.empty(0)
    return ClassTarget(*nobody, share, counts, B, total, total**2 / weight_squares)


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
    if found.complaint is not None:
        raise ValueError(found.complaint)
    return found


@one_thread
def _survey(
    X: np.ndarray, y: np.ndarray, weight: Weight, k: int, rows: slice, *, rank: int | None, n_chunks: int
) -> Survey:
    """Check a chunk, and count its labels."""
    try:
        X = validation.as_numpy(X, "X")
        validation.check_chunk(X, rank, k, rows, n_chunks)
        weight = np.ones(len(X)) if weight is None else validation.check_weight_values(weight, rows.start)
        low, high = validation.weight_range(weight)
        y = validation.check_label_kind(validation.as_numpy(y, "y"), "y", rows.start)
    except (ValueError, TypeError) as error:
        return Survey(np.empty(0), np.empty((3, 0)), 1.0, (0.0, 0.0), True, str(error))
    labels, codes = np.unique(y, return_inverse=True)
    unit = validation.weight_unit(high) if high > 0 else 1.0
    sums = np.stack([np.bincount(codes, weights=of) for of in (weight, (unit * weight) ** 2, weight > 0)])
    symmetric = np.array_equal(X, adjoint(X))
    return Survey(labels, sums, unit, (low, high), symmetric, None)


# -- Chunks on workers


class Block(NamedTuple):
    """A chunk as it was given, with its target."""

    X: np.ndarray
    target: ClassTarget
    symmetric: bool

    @property
    def matrices(self) -> np.ndarray:
        X = self.X.astype(np.result_type(self.X, np.float64), copy=False)
        return X if self.symmetric else symmetrize(X)


@dataclass(frozen=True)
class Pieces:
    """A chunk, whitened, in pieces that are handled one at a time; or these decomposed, none if not kept.

    Dask moves small things to where there is time for them; it must know that these are not small.
    """

    pieces: list[Any]
    nbytes: int

    def __sizeof__(self) -> int:
        return self.nbytes


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
    X = X if counts.all() else X[counts]
    return Block(X, replace(target, codes=codes[counts], weight=weight[counts]), symmetric)


def _piece_size(shape: tuple[int, ...]) -> int:
    """Matrices handled at a time on a worker: features of 8 MB.

    Dask has its workers give memory back at once, and to be given it anew page by page took half of the time.
    NumPy asks for huge pages for arrays of 4 MB or more.
    """
    d, views = shape[-1], prod(shape[1:-2])
    return max(1, max(default_chunk_size(d), 2**23 // (4 * d * (d + 1))) // views)


@one_thread
def _apply(f: Summand, block: Block) -> Any:
    """Sum of a function of matrices and their target, piece by piece."""
    X = block.matrices
    pieces = row_chunks(X.shape, _piece_size(X.shape))
    return reduce(add, (f(X[rows], block.target.part(rows)) for rows in pieces))


@one_thread
def _whiten(block: Block, *, factor: Factor, n: int) -> Pieces:
    """Whiten a chunk and cut it into pieces; kernels are chosen by the number of all matrices."""
    X, found = block.matrices, []
    shape = whitened_shape(n, factor)
    for rows in row_chunks(X.shape, _piece_size(shape)):
        some = whiten(factor, X[rows])
        found.append(Chunk(some, slice(0, some.shape[0]), block.target.part(rows), n))
    return Pieces(found, 8 * len(X) * prod(shape[1:]))


@one_thread
def _decompose(pieces: Pieces, *, W: Factor, keep: bool) -> tuple[Moments, Pieces]:
    """The first pass over a chunk."""
    kept: list[Decomposition] = []

    def moments(piece: Chunk) -> Moments:
        here, target = piece.decompose(W, keep=True), piece.target
        if keep:
            kept.append(here)
        return here.moments(here.features, target.Y, target.weight[:, None], gram=False)

    merged = reduce(Moments.merge, map(moments, pieces.pieces))
    return merged, Pieces(kept, sum(3 * here.features.nbytes for here in kept))


@one_thread
def _merge_moments(moments: list[Moments]) -> Moments:
    return reduce(Moments.merge, moments)


@one_thread
def _total(
    pieces: Pieces, here: tuple[Moments, Pieces], *shared: Any, f: Callable[..., Any], W: Factor
) -> Any:
    """The second pass over a chunk."""
    return reduce(add, (f(piece, part, *shared) for piece, part in _parts(pieces, here, W)))


def _parts(pieces: Pieces, here: tuple[Moments, Pieces], W: Factor) -> Iterator[tuple[Chunk, Decomposition]]:
    """The pieces of a chunk, decomposed again where they were not kept."""
    kept = here[1].pieces or (piece.decompose(W, keep=True) for piece in pieces.pieces)
    return zip(pieces.pieces, kept, strict=True)


@one_thread
def _gather(pieces: Pieces, here: tuple[Moments, Pieces], *, W: Factor) -> tuple[np.ndarray, ...]:
    """Vectors, classes and weights of a chunk."""
    columns = []
    for piece, part in _parts(pieces, here, W):
        target: Any = piece.target  # classes
        columns.append((part.features, target.codes, target.weight))
    return tuple(map(np.concatenate, zip(*columns, strict=True)))


# -- The record ---------------------------------------------------------------


class ClusterData(Data):
    """Labeled matrices on the workers of a cluster; ``X`` are futures of its chunks."""

    gathers = False

    def __init__(
        self,
        cluster: Cluster,
        blocks: list[Future],
        shape: tuple[int, ...],
        target: ClassTarget,
        dtype: Any,
        keep: bool = False,
    ):
        vars(self).update(X=blocks, target=target, rows=None, cluster=cluster, shape=tuple(shape), keep=keep)
        self.dtype = np.result_type(dtype, np.float64)

    cluster: Cluster
    keep: bool  # whether chunks at a point are kept for the second pass

    def average(self, f: RowFunction) -> np.ndarray:
        return self.total(lambda X, target: weighted_sum(f, X, target.weight)) / self.target.total

    def total(self, f: Summand) -> Any:
        values = self.cluster.each(partial(_apply, f), self.X)
        return self.cluster.result(self.cluster.merge(partial(reduce, add), values))

    def whitened(self, factor: Factor) -> ClusterData:
        """The matrices ``W X W'``, kept on the workers."""
        n = self.shape[0]
        shape = whitened_shape(n, factor)
        pieces = self.cluster.each(partial(_whiten, factor=factor, n=n), self.X)
        k, matrices = shape[-1], prod(shape[:-2])
        keep = 8 * matrices * 2 * (k * k + k * (k + 1)) <= self.cluster.memory() / 3
        return ClusterData(self.cluster, pieces, shape, self.target, self.dtype, keep)

    def decompose(self, W: Factor, *, gram: bool) -> tuple[Any, Summary, list[Any]]:
        """Moments of all chunks together and the chunks at W as futures, and what they say in short."""
        here = self.cluster.each(partial(_decompose, W=W, keep=self.keep), self.X)
        of_chunks = self.cluster.each(itemgetter(0), here)  # they travel, the parts do not
        moments = self.cluster.merge(_merge_moments, of_chunks)
        return moments, self.call(Summary.from_moments, moments, fetch=True), here

    def total_of_parts(self, f: Callable[..., Any], W: Factor, parts: list[Future], *shared: Any) -> Any:
        """Sum of ``f(chunk, part, *shared)`` over the chunks; what is shared may be on a worker."""
        columns = [[value] * len(parts) for value in shared]
        values = self.cluster.each(partial(_total, f=f, W=W), self.X, parts, *columns)
        return self.cluster.result(self.cluster.merge(partial(reduce, add), values))

    def gather(self, W: Factor, parts: list[Future]) -> tuple[np.ndarray, ClassTarget]:
        """Vectors of all matrices, brought here with their target: n p numbers."""
        found = self.cluster.each(partial(_gather, W=W), self.X, parts)
        vectors, codes, weight = map(np.concatenate, zip(*map(self.cluster.result, found), strict=True))
        return vectors, ClassTarget.from_codes(codes, weight, len(self.target.counts))

    def call(self, f: Callable[..., Any], *args: Any, fetch: bool = False) -> Any:
        there = self.cluster.submit(one_thread(f), *args)
        return self.cluster.result(there) if fetch else there

    in_memory = False
