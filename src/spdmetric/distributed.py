"""The same objective where the matrices live on the workers of a Dask cluster.

The chunks of X stay where they are.  One evaluation is two small reductions: the moments of
the chunks are merged, and what follows from them is sent back to pull the cotangents.  p^2
numbers travel from worker to worker; to the client come p numbers and a gradient.

Reductions follow a tree that depends on the order of the chunks alone, so the scheduling of
tasks does not change a bit of the result.  Everything is a task whose inputs the scheduler
knows, down to the graph of X: what dies with a worker is computed again.

Needs ``pip install 'spdmetric[dask]'``; nothing of Dask is imported before it is used.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cached_property, lru_cache, partial, reduce, wraps
from itertools import accumulate, pairwise
from operator import add, attrgetter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from spdmetric.alignment import Cotangents, Moments, Part, Point, Target, default_chunk_size, tangent_part
from spdmetric.checks import check_psd, check_spd, check_stack, checked_chunk
from spdmetric.geometry import chunks
from spdmetric.matrices import congruence, symmetrize
from spdmetric.stacks import Stack, stack_of

# Chunks merged by one task: fewer make more tasks, more make more traffic to one worker.
_ARITY = 8

# Seconds between looks at the cluster, and for how long it may be without scheduler or workers.
_LOOK, _PATIENCE = 2.0, 30.0


# ---------------------------------------------------------------------------
# Arrays: one chunk in the last two axes, and y and the weights cut as X is


def aligned(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Return the dask arrays X, y and weights (or None) in matching chunks, saying what was rechunked."""
    X = whole_matrices(X)
    if y is None:
        raise ValueError("y is None: expected the labels of X, as a dask array or in memory.")
    weight = None if sample_weight is None else _cut_as(X, sample_weight, "sample_weight")
    return X, _cut_as(X, y, "y"), weight


def whole_matrices(X: Any) -> Any:
    """Return X with its matrices in one piece each."""
    check_stack(X, "X")
    if any(np.isnan(size) for size in X.chunks[0]):
        raise ValueError("X has chunks of unknown size: call X = X.compute_chunk_sizes() first.")
    if len(X.chunks[1]) == len(X.chunks[2]) == 1:
        return X
    warnings.warn(
        f"X is cut into {len(X.chunks[1])} x {len(X.chunks[2])} pieces within its matrices: it was rechunked, "
        "which sends data between workers. X.rechunk({1: -1, 2: -1}) does that once for all.",
        UserWarning,
        stacklevel=4,
    )
    return X.rechunk({1: -1, 2: -1})


def _cut_as(X: Any, column: Any, name: str) -> Any:
    """Return labels or weights as a dask array with the chunks of X."""
    import dask.array

    in_memory = not isinstance(column, dask.array.Array)
    column = np.asarray(column) if in_memory else column
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or column.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has shape {column.shape} and X {X.shape}: expected one entry for each matrix "
            "(inconsistent numbers of samples)."
        )
    if in_memory:
        return dask.array.from_array(column, chunks=(X.chunks[0],))
    if column.chunks[0] == X.chunks[0]:
        return column
    warnings.warn(
        f"{name} is cut into {len(column.chunks[0])} chunks and X into {len(X.chunks[0])} others: {name} was "
        "rechunked to those of X.",
        UserWarning,
        stacklevel=4,
    )
    return column.rechunk((X.chunks[0],))


def chunk_rows(X: Any) -> list[slice]:
    """Matrices of each chunk, empty ones left out."""
    edges = accumulate(X.chunks[0], initial=0)
    return [slice(first, last) for first, last in pairwise(edges) if first < last]


class Computed:
    """A dask array that is computed slice by slice in this process: there is no cluster."""

    def __init__(self, X: Any):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        return np.asarray(self._X[rows].compute())


def transform(X: Any, embed: Callable[[np.ndarray], np.ndarray], p: int, rank: int | None) -> Any:
    """Return the vectors of a dask array of matrices as a dask array, of which nothing is computed yet.

    Parameters
    ----------
    X : dask array of shape (n, d, d)
        SPD matrices.
    embed : callable
        Turns checked matrices into vectors.
    p : int
        Length of the vectors.
    rank : int or None
        Smallest rank that the matrices must have; None where they must be definite.
    """
    X = whole_matrices(X)
    dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
    return X.map_blocks(
        partial(_embed_block, embed=embed, rank=rank, dtype=dtype, n_chunks=len(X.chunks[0])),
        dtype=dtype,
        drop_axis=[1, 2],
        new_axis=[1],
        chunks=(X.chunks[0], (p,)),
        meta=np.empty((0, p), dtype=dtype),
    )


def _embed_block(
    X: np.ndarray,
    *,
    embed: Callable[[np.ndarray], np.ndarray],
    rank: int | None,
    dtype: np.dtype,
    n_chunks: int,
    block_info: Any = None,
) -> np.ndarray:
    where = block_info[0]
    rows = slice(*where["array-location"][0])
    checked = checked_chunk(X, check_for(rank), where["chunk-location"][0], rows, n_chunks)
    return embed(checked).astype(dtype, copy=False)


def check_for(rank: int | None) -> Callable[..., np.ndarray]:
    """The check of chunks for matrices of at least some rank, definite ones for None."""
    return check_spd if rank is None else partial(check_psd, rank=rank)


# ---------------------------------------------------------------------------
# The cluster


def current_client() -> Any:
    """Return the Dask client of this process or thread, or None."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    try:
        return get_client()
    except ValueError:
        return None


class Cluster:
    """Tasks on the workers of a client, and their results: in the end there is one, or an error."""

    def __init__(self, client: Any):
        self._client = client

    def submit(self, f: Callable[..., Any], *args: Any) -> Any:
        """Have a function called on a worker; futures among the arguments become what they stand for."""
        with self._sentences():
            return self._client.submit(f, *args, pure=False)

    def blocks(self, array: Any) -> list[Any]:
        """Futures of the chunks of a dask array, in their order."""
        with self._sentences():
            return self._client.compute(array.to_delayed().ravel().tolist())

    def merge(self, function: Callable[..., Any], futures: Sequence[Any]) -> Any:
        """Merge results in an order that depends on their number alone."""
        while len(futures) > 1:
            groups = [futures[k : k + _ARITY] for k in range(0, len(futures), _ARITY)]
            futures = [self.submit(function, *group) if len(group) > 1 else group[0] for group in groups]
        return futures[0]

    def result(self, future: Any) -> Any:
        """Wait for a result, as long as somebody can be working on it."""
        from distributed import wait

        alone_since = None
        while True:
            try:
                with self._sentences():
                    wait([future], timeout=_LOOK)
                    return future.result(timeout=_PATIENCE)
            except TimeoutError:
                alone_since = self._look(alone_since)

    def _look(self, alone_since: float | None) -> float | None:
        """Return since when nobody is working, or say that it has been too long."""
        if self._workers() > 0:
            return None
        alone_since = time.monotonic() if alone_since is None else alone_since
        if time.monotonic() - alone_since > _PATIENCE:
            raise ConnectionError(
                "The Dask cluster has no workers left: the fit was given up. Start workers and fit again."
            )
        return alone_since

    def _workers(self) -> int:
        if self._client.status != "running":
            raise ConnectionError(_GONE)
        with self._sentences():
            try:
                return len(self._client.sync(self._client.scheduler.ncores, callback_timeout=_PATIENCE))
            except TimeoutError as error:
                raise ConnectionError(_GONE) from error

    def memory(self) -> float:
        """Bytes that the workers may use together."""
        with self._sentences():
            workers = self._client.scheduler_info()["workers"].values()
        return float(sum(worker.get("memory_limit") or np.inf for worker in workers))

    @contextmanager
    def _sentences(self) -> Iterator[None]:
        """Turn what a broken cluster raises into one sentence."""
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise RuntimeError(
                "Several workers died one after another at the same task, most likely for lack of memory: cut "
                f"X into smaller chunks, or give the workers more memory ({error})."
            ) from error
        except CancelledError as error:
            if self._client.status != "running" or "connection" in str(error):
                raise ConnectionError(_GONE) from error
            raise RuntimeError(
                "Chunks of X were lost with a worker and cannot be computed again, as the cluster does not "
                "know where they came from (scattered data?): build X from files or functions, and fit again "
                f"({error})."
            ) from error
        except (CommClosedError, RuntimeError) as error:
            if self._client.status == "running":
                raise
            raise ConnectionError(_GONE) from error


_GONE = (
    "The connection to the Dask scheduler was lost in mid-fit: the scheduler is gone or cannot be reached. "
    "Nothing was learned; start the cluster and fit again."
)

# ---------------------------------------------------------------------------
# What workers do


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread(f: Callable[..., Any]) -> Callable[..., Any]:
    """Keep BLAS to the thread of the task: the tasks are parallel already."""

    @wraps(f)
    def limited(*args: Any) -> Any:
        with _controller().limit(limits=1):
            return f(*args)

    return limited


class Survey(NamedTuple):
    """What a chunk says of itself before learning starts."""

    labels: np.ndarray  # those that occur
    weights: np.ndarray  # the weight of each
    symmetric: bool  # to the last digit
    complaint: str | None  # why it cannot be used


class Block(NamedTuple):
    """A chunk on a worker."""

    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    symmetric: bool

    @property
    def matrices(self) -> np.ndarray:
        X = self.X.astype(np.float64, copy=False)
        return X if self.symmetric else symmetrize(X)


class Prepared(NamedTuple):
    """A piece of a chunk, whitened and packed, with its targets."""

    stack: Stack
    rows: slice
    target: Target


class Decomposed(NamedTuple):
    """A chunk at one point."""

    moments: Moments
    parts: list[Part]  # none where they are not kept


class Summary(NamedTuple):
    """What the client needs to know of the moments."""

    weight: float
    mean: np.ndarray  # (p,)
    A_square: float
    C_norm: float
    C_trace: float


@one_thread
def survey(X: Any, y: Any, weight: Any, rank: int | None, k: int, rows: slice, n_chunks: int) -> Survey:
    """Check a chunk, and count its labels."""
    try:
        X = np.asarray(X)
        checked_chunk(X, check_for(rank), k, rows, n_chunks)
        weight = _check_weight(weight, rows)
    except ValueError as error:
        return Survey(np.empty(0), np.empty(0), True, str(error))
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    return Survey(labels, np.bincount(codes, weights=weight), np.array_equal(X, X.transpose(0, 2, 1)), None)


def _check_weight(weight: Any, rows: slice) -> np.ndarray:
    if weight is None:
        return np.ones(rows.stop - rows.start)
    weight = np.asarray(weight, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight[{rows.start + bad[0]}] is {weight[bad[0]]}: expected a finite number >= 0."
        )
    return weight


def label(X: Any, y: Any, weight: Any, classes: np.ndarray, scale: np.ndarray, symmetric: bool) -> Block:
    """Turn labels into codes and scale the weights by class; matrices without weight are left out."""
    X, codes = np.asarray(X), np.searchsorted(classes, np.asarray(y))
    weight = (np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)) * scale[codes]
    counts = weight > 0
    if counts.all():
        return Block(X, codes, weight, symmetric)
    return Block(X[counts], codes[counts], weight[counts], symmetric)


@one_thread
def apply(f: Callable[..., Any], block: Block) -> Any:
    """Apply a function of (X, codes, weight), piece by piece."""
    X = block.matrices
    pieces = chunks(len(X), default_chunk_size(X.shape[-1]))
    return reduce(add, (f(X[rows], block.codes[rows], block.weight[rows]) for rows in pieces))


def add_all(*values: Any) -> Any:
    return reduce(add, values)


@one_thread
def prepare(block: Block, factor: np.ndarray, target_mean: np.ndarray, n: int) -> list[Prepared]:
    """Whiten a chunk and cut it into pieces that stay in a core's cache."""
    X, Y = block.matrices, np.eye(target_mean.size)[block.codes] - target_mean
    return [
        Prepared(stack_of(congruence(factor, X[rows]), n), rows, Target(Y[rows], block.weight[rows, None]))
        for rows in chunks(len(X), default_chunk_size(factor.shape[0]))
    ]


def _parts(pieces: list[Prepared], W: np.ndarray) -> Iterator[Part]:
    return (Part(stack.decompose(W), rows, target) for stack, rows, target in pieces)


@one_thread
def decompose(pieces: list[Prepared], W: np.ndarray, keep: bool) -> Decomposed:
    """The first pass over a chunk."""
    kept: list[Part] = []
    merged: Moments | None = None
    for part in _parts(pieces, W):
        moments = Moments(*part.decomposition.moments(*part.target, gram=False))
        merged = moments if merged is None else _merge_two(merged, moments)
        if keep:
            kept.append(part)
    assert merged is not None  # empty chunks are left out
    return Decomposed(merged, kept)


def _merge_two(one: Moments, other: Moments) -> Moments:
    with np.errstate(invalid="ignore"):  # of what has left float64
        return one.merge(other)


@one_thread
def merge_moments(*moments: Moments) -> Moments:
    return reduce(_merge_two, moments)


def summarise(moments: Moments) -> Summary:
    C = np.asarray(moments.C)
    A_square = float(np.sum(moments.A**2))
    return Summary(moments.weight, moments.mean, A_square, float(np.linalg.norm(C)), float(np.trace(C)))


@one_thread
def pull(
    pieces: list[Prepared] | None, here: Decomposed, W: np.ndarray, cotangents: Cotangents, of_factor: bool
) -> np.ndarray:
    """The second pass over a chunk; it is decomposed again if it was not kept."""

    def pulled(part: Part) -> np.ndarray:
        rows = cotangents.rows(part)
        return part.decomposition.pull_factor(rows) if of_factor else part.decomposition.pull(rows)

    return reduce(add, map(pulled, here.parts if pieces is None else _parts(pieces, W)))


# ---------------------------------------------------------------------------
# What the client does


class ClusterData:
    """Labelled matrices on the workers of a cluster: the `Data` of a learning problem."""

    def __init__(self, cluster: Cluster, blocks: list[Any], d: int, counts: np.ndarray, n: int):
        self._cluster, self._blocks = cluster, blocks
        self.shape: tuple[int, ...] = (n, d, d)
        self.n_classes, self.weight = counts.size, float(counts.sum())
        self._class_weights = counts

    def total(self, f: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> Any:
        """Sum of ``f(X, codes, weight)`` over the chunks, in a fixed order."""
        values = [self._cluster.submit(apply, f, block) for block in self._blocks]
        return self._cluster.result(self._cluster.merge(add_all, values))

    def objective(self, factor: np.ndarray, *, kernel: str, gamma: float | None) -> ClusterMisalignment:
        """The objective of the matrices whitened by a factor, kept on the workers."""
        mean = self._class_weights / self.weight
        # sum w (e - mean)(e - mean)' for one-hot rows e
        B = np.diag(self._class_weights) - self.weight * np.outer(mean, mean)
        n, k = self.shape[0], factor.shape[0]
        pieces = [self._cluster.submit(prepare, block, factor, mean, n) for block in self._blocks]
        keep = 8 * n * 2 * (k * k + k * (k + 1)) <= self._cluster.memory() / 3
        return ClusterMisalignment(self._cluster, pieces, float(np.linalg.norm(B)), keep)


def survey_all(cluster: Cluster, X: Any, y: Any, weight: Any, rank: int | None) -> Surveyed:
    """Check all chunks and find the classes; the first chunk that is wrong is told."""
    columns = [cluster.blocks(array) if array is not None else None for array in (X, y, weight)]
    rows, sizes = iter(chunk_rows(X)), X.chunks[0]
    chosen = [k for k, size in enumerate(sizes) if size]
    triples = [tuple(None if c is None else c[k] for c in columns) for k in chosen]
    asked = [
        cluster.submit(survey, *triple, rank, k, next(rows), len(sizes))
        for k, triple in zip(chosen, triples, strict=True)
    ]
    surveys = [_told(cluster, future, k, len(sizes)) for k, future in zip(chosen, asked, strict=True)]
    return Surveyed(triples, surveys)


class Surveyed(NamedTuple):
    """Chunks that can be learned from: futures of X, y and weights, and what each says of itself."""

    triples: list[tuple[Any, ...]]
    surveys: list[Survey]

    @property
    def classes(self) -> np.ndarray:
        return np.unique(np.concatenate([s.labels for s in self.surveys]))

    def class_weights(self, classes: np.ndarray) -> np.ndarray:
        """Weight of each class, (n_classes,)."""
        total = np.zeros(classes.size)
        for s in self.surveys:
            total[np.searchsorted(classes, s.labels)] += s.weights
        return total

    def data(
        self, cluster: Cluster, shape: tuple[int, ...], classes: np.ndarray, scale: np.ndarray
    ) -> ClusterData:
        """The chunks, labelled by class codes, their weights scaled by class."""
        blocks = [
            cluster.submit(label, *triple, classes, scale, s.symmetric)
            for triple, s in zip(self.triples, self.surveys, strict=True)
            if s.weights.sum() > 0
        ]
        return ClusterData(cluster, blocks, shape[1], self.class_weights(classes) * scale, shape[0])


def _told(cluster: Cluster, future: Any, k: int, n_chunks: int) -> Survey:
    """The survey of a chunk, or why there is none."""
    try:
        found = cluster.result(future)
    except ConnectionError:
        raise
    except Exception as error:
        raise RuntimeError(
            f"Chunk {k} of {n_chunks} of X, or its labels, cannot be computed: is its file truncated or not "
            f"there for the workers? ({type(error).__name__}: {error})"
        ) from error
    if found.complaint is not None:
        raise ValueError(found.complaint)
    return found


class ClusterMisalignment:
    """`spdmetric.alignment.Misalignment` over chunks on workers."""

    def __init__(self, cluster: Cluster, pieces: list[Any], target_norm: float, keep: bool):
        self.cluster, self.pieces, self.target_norm, self.keep = cluster, pieces, target_norm, keep

    def at(self, point: Point) -> ClusterEvaluation:
        """Return the lazy evaluation at a point."""
        return ClusterEvaluation(self, point)


class ClusterEvaluation:
    """`spdmetric.alignment.Evaluation` over chunks on workers."""

    def __init__(self, objective: ClusterMisalignment, point: Point):
        self.point = point
        self._objective = objective

    @property
    def value(self) -> float:
        """The misalignment, ``1 - alignment``."""
        return 1.0 - self.alignment

    @cached_property
    def alignment(self) -> float:
        """The centred kernel-target alignment f; minus infinity where it cannot be computed."""
        if not np.isfinite(self._summary.mean).all():
            return -np.inf
        return self._summary.A_square / (self._summary.C_norm * self._objective.target_norm)

    @property
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        return float(np.sqrt(self._summary.C_trace / self._summary.weight))

    @cached_property
    def gradient(self) -> np.ndarray:
        """Gradient in the coordinates of the manifold."""
        return self.point.gradient(self)

    def hvp(self, eta: np.ndarray) -> np.ndarray:
        """Not known on a cluster: there the secant model serves."""
        raise TypeError("Exact second derivatives are known for data in memory or in a file only.")

    frame_hvp = hvp

    @cached_property
    def frame_gradient(self) -> np.ndarray:
        """Riemannian gradient, as a symmetric matrix in the frame."""
        return tangent_part(self._pulled(of_factor=False))

    @cached_property
    def factor_gradient(self) -> np.ndarray:
        """Derivative in the entries of the factor, (m, d)."""
        return self._pulled(of_factor=True)

    @cached_property
    def _first_pass(self) -> tuple[list[Any], Any]:
        """Futures of the chunks decomposed, and of their moments together."""
        cluster, W = self._objective.cluster, self.point.factor
        here = [
            cluster.submit(decompose, pieces, W, self._objective.keep) for pieces in self._objective.pieces
        ]
        moments = [cluster.submit(attrgetter("moments"), one) for one in here]
        return here, cluster.merge(merge_moments, moments)

    @cached_property
    def _summary(self) -> Summary:
        cluster = self._objective.cluster
        return cluster.result(cluster.submit(summarise, self._first_pass[1]))

    def _pulled(self, *, of_factor: bool) -> np.ndarray:
        objective, (here, moments) = self._objective, self._first_pass
        cluster, W = objective.cluster, self.point.factor
        cotangents = cluster.submit(Cotangents.of, moments, objective.target_norm)
        pulled = [
            cluster.submit(pull, None if objective.keep else pieces, one, W, cotangents, of_factor)
            for pieces, one in zip(objective.pieces, here, strict=True)
        ]
        return np.asarray(cluster.result(cluster.merge(add_all, pulled)))
