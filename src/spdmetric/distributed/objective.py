"""What the client does: the data of a learning problem, and its objective, as reductions over chunks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spdmetric.distributed.arrays import chunk_rows
from spdmetric.distributed.cluster import Cluster
from spdmetric.distributed.tasks import (
    Summary,
    Survey,
    add_all,
    apply,
    class_counts,
    decompose,
    label,
    left_out,
    merge_moments,
    moments_of,
    prepare,
    pull_back,
    ridge_of,
    summarize,
    survey,
    vectors_of,
    weight_squares,
    weighting_of_few,
)
from spdmetric.geometry import RowFunction, weighted_sum
from spdmetric.linalg.lazy import lazy
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.alignment import Cotangents, Evaluation
from spdmetric.objectives.weighting import Weighting, weighting_of

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Future


class ClusterData:
    """Labeled matrices on the workers of a cluster: the `Data` of a learning problem."""

    def __init__(self, cluster: Cluster, blocks: list[Future], d: int, counts: np.ndarray, n: int):
        self._cluster, self._blocks = cluster, blocks
        self.shape: tuple[int, ...] = (n, d, d)
        self.n_classes, self._class_weights = counts.size, counts

    def average(self, f: RowFunction) -> np.ndarray:
        """Weighted mean of the rows ``f(X)``, one for each matrix."""
        total = self.total(lambda X, codes, weight: weighted_sum(f, X, weight))
        return total / self._class_weights.sum()

    def total(self, f: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> Any:
        """Sum of ``f(X, codes, weight)`` over the chunks, in a fixed order."""
        values = self._cluster.each(partial(apply, f), self._blocks)
        return self._cluster.result(self._cluster.merge(add_all, values))

    def objective(self, factor: np.ndarray, *, kernel: str, gamma: float | None) -> ClusterMisalignment:
        """The objective of the matrices whitened by a factor, kept on the workers."""
        counts = self._class_weights
        mean = counts / counts.sum()
        B = np.diag(counts) - np.outer(counts, mean)  # sum w (e - mean)(e - mean)' for one-hot rows e
        n, k = self.shape[0], factor.shape[0]
        pieces = self._cluster.each(partial(prepare, factor=factor, target_mean=mean, n=n), self._blocks)
        keep = 8 * n * 2 * (k * k + k * (k + 1)) <= self._cluster.memory() / 3
        return ClusterMisalignment(self._cluster, pieces, B, keep)


def survey_all(
    cluster: Cluster, X: DaskArray, y: DaskArray, weight: DaskArray | None, rank: int | None
) -> Surveyed:
    """Check all chunks and find the classes; the first chunk that is wrong is told."""
    n_chunks = len(X.chunks[0])
    chosen = [k for k, size in enumerate(X.chunks[0]) if size]
    columns: list[list[Any]] = []
    for array in (X, y, weight):
        blocks = [None] * n_chunks if array is None else cluster.blocks(array)
        columns.append([blocks[k] for k in chosen])
    asked = cluster.each(partial(survey, rank=rank, n_chunks=n_chunks), *columns, chosen, chunk_rows(X))
    surveys = [_told(cluster, future, k, n_chunks) for k, future in zip(chosen, asked, strict=True)]
    return Surveyed(columns, surveys)


class Surveyed(NamedTuple):
    """Chunks that can be learned from: futures of X, y and weights, and what each says of itself."""

    columns: list[list[Any]]
    surveys: list[Survey]

    @property
    def classes(self) -> np.ndarray:
        labels = [s.labels for s in self.surveys]
        if len({found.dtype.kind in "OUST" for found in labels}) > 1:
            raise TypeError(
                "y has strings in some chunks and numbers in others: expected labels of one kind."
            )
        return np.unique(np.concatenate(labels))

    @property
    def weight_range(self) -> tuple[float, float]:
        """Smallest and largest positive weight."""
        low, high = zip(*(s.range for s in self.surveys), strict=True)
        return min(low), max(high)

    def class_weights(self, classes: np.ndarray) -> np.ndarray:
        """Weight of each class, (n_classes,)."""
        total = np.zeros(classes.size)
        for s in self.surveys:
            total[np.searchsorted(classes, s.labels)] += s.weights
        return total

    def data(
        self, cluster: Cluster, shape: tuple[int, ...], classes: np.ndarray, scale: np.ndarray
    ) -> ClusterData:
        """The chunks, labeled by class codes, their weights scaled by class."""
        counts = [s.weights.sum() > 0 for s in self.surveys]
        columns: list[list[Any]] = [
            list(compress(column, counts)) for column in (*self.columns, [s.symmetric for s in self.surveys])
        ]
        blocks = cluster.each(partial(label, classes=classes, scale=scale), *columns)
        return ClusterData(cluster, blocks, shape[1], self.class_weights(classes) * scale, shape[0])


def _told(cluster: Cluster, future: Future, k: int, n_chunks: int) -> Survey:
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


class ClusterMisalignment:
    """`spdmetric.objectives.alignment.Misalignment` over chunks on workers."""

    def __init__(self, cluster: Cluster, pieces: list[Future], target_squares: np.ndarray, keep: bool):
        self.cluster, self.pieces, self.target_squares, self.keep = cluster, pieces, target_squares, keep

    def at(self, point: FactorPoint) -> ClusterEvaluation:
        """Return the lazy evaluation at a point."""
        return ClusterEvaluation(self, point)


class ClusterEvaluation(Evaluation):
    """Misalignment of chunks on workers."""

    def __init__(self, objective: ClusterMisalignment, point: FactorPoint):
        super().__init__(point, float(np.linalg.norm(objective.target_squares)))
        self._objective = objective

    @property
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        return float(np.sqrt(self._summary.C_trace / self._summary.weight))

    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Not known on a cluster: there the secant model serves."""
        raise TypeError("Exact second derivatives are known for data in memory or in a file only.")

    def weighting(self) -> Weighting:
        """As in one process; fewer matrices than features are brought together as vectors, n p numbers."""
        objective, (here, moments) = self._objective, self._first_pass
        cluster, W, p = objective.cluster, self.point.factor, self._mean.size
        counts = cluster.result(cluster.merge(add_all, cluster.each(class_counts, objective.pieces)))
        pieces = [None] * len(here) if objective.keep else objective.pieces
        if counts.sum() < p:
            vectors = cluster.each(partial(vectors_of, W=W), pieces, here)
            return cluster.result(cluster.submit(weighting_of_few, vectors, self.learned))
        squares = cluster.merge(add_all, cluster.each(weight_squares, objective.pieces))
        known = objective.target_squares, squares, np.count_nonzero(counts), self.learned
        ridge = cluster.submit(ridge_of, moments, *known)
        ask = partial(left_out, W=W, mean=self._mean, counts=counts)
        errors = cluster.merge(add_all, cluster.each(ask, pieces, here, [ridge] * len(here)))
        return cluster.result(cluster.submit(weighting_of, ridge, errors))

    @lazy
    def _first_pass(self) -> tuple[list[Future], Future]:
        """Futures of the chunks decomposed, and of their moments together."""
        cluster, W = self._objective.cluster, self.point.factor
        here = cluster.each(partial(decompose, W=W, keep=self._objective.keep), self._objective.pieces)
        return here, cluster.merge(merge_moments, cluster.each(moments_of, here))

    @lazy
    def _summary(self) -> Summary:
        cluster = self._objective.cluster
        return cluster.result(cluster.submit(summarize, self._first_pass[1]))

    @property
    def _mean(self) -> np.ndarray:
        return self._summary.mean

    @property
    def _norms(self) -> tuple[float, float]:
        return float(np.trace(self._A_squares)), self._summary.C_norm

    @property
    def _A_squares(self) -> np.ndarray:
        return self._summary.A_squares

    def _pulled(self, pull: str) -> np.ndarray:
        objective, (here, moments) = self._objective, self._first_pass
        cluster, W = objective.cluster, self.point.factor
        cotangents = cluster.submit(Cotangents.of, moments, *self._coefficients)
        pieces = [None] * len(here) if objective.keep else objective.pieces
        pulled = cluster.each(partial(pull_back, W=W, pull=pull), pieces, here, [cotangents] * len(here))
        return np.asarray(cluster.result(cluster.merge(add_all, pulled)))
