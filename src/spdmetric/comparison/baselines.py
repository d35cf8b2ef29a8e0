"""Other ways to classify SPD matrices, as scikit-learn estimators.

`NearestNeighbor` works on matrices, with a fixed distance.  `GMML` [Zadeh2016]_, `RCA` [BarHillel2005]_ and
`NCA` [Goldberger2004]_ learn a linear map of tangent vectors.  There are more coordinates than matrices,
so the vectors are first reduced to principal components.  `from_pyriemann` gives the classifiers of
pyRiemann.

References
----------
.. [Zadeh2016] P. H. Zadeh, R. Hosseini and S. Sra, "Geometric mean metric learning", ICML, 2016.
.. [BarHillel2005] A. Bar-Hillel, T. Hertz, N. Shental and D. Weinshall, "Learning a Mahalanobis metric from
   equivalence constraints", Journal of Machine Learning Research 6, 2005.
.. [Goldberger2004] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood components
   analysis", NIPS, 2004.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from spdmetric.extras import needing
from spdmetric.geometry import geodesic, pairwise_distance
from spdmetric.linalg.symmetric import invsqrtm, spectrum, sqrtm

RIDGE = 0.01  # share of the mean eigenvalue added to every scatter matrix
NCA_INPUTS, NCA_OUTPUTS, NCA_STEPS = 50, 10, 100
CSP_FILTERS = 6


def from_pyriemann(module: str, name: str, **parameters: object) -> BaseEstimator:
    """Make an estimator of pyRiemann, which is imported here only."""
    with needing(f"{name} needs pyRiemann", "compare"):
        made = getattr(import_module(f"pyriemann.{module}"), name)
    return made(**parameters)


# ---------------------------------------------------------------------------
# On matrices


class NearestNeighbor(ClassifierMixin, BaseEstimator):
    """Label of the nearest training matrix.

    Parameters
    ----------
    metric : {"euclid", "logeuclid", "riemann", "stein", "wasserstein"}
        Distance between matrices.
    """

    def __init__(self, metric: str):
        self.metric = metric

    def fit(self, X: np.ndarray, y: np.ndarray) -> NearestNeighbor:
        """Keep the matrices and their labels."""
        self.X_, self.y_, self.classes_ = X, np.asarray(y), np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Label matrices."""
        if self.metric == "wasserstein":
            distances = distances_wasserstein(X, self.X_)
        else:
            distances = pairwise_distance(X, self.X_, self.metric)
        return self.y_[np.argmin(distances, axis=1)]


def distances_wasserstein(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Bures-Wasserstein distances, (n, m), of all matrices of two stacks; they may be semi-definite."""
    traces = np.trace(X, axis1=1, axis2=2)[:, None] + np.trace(Y, axis1=1, axis2=2)
    columns = []
    for s in map(spectrum, Y):
        root = s.compose(np.sqrt(np.maximum(s.values, 0)))  # zero may be rounded to less
        values = np.linalg.eigvalsh(root @ X @ root)
        columns.append(np.sqrt(np.maximum(values, 0)).sum(axis=1))
    return np.sqrt(np.maximum(traces - 2 * np.stack(columns, axis=1), 0))


# ---------------------------------------------------------------------------
# On vectors


def principal_axes(vectors: np.ndarray, at_most: int) -> np.ndarray:
    """Leading principal axes of centered vectors, (k, p); fewer where they span fewer directions."""
    _, spread, axes = np.linalg.svd(vectors, full_matrices=False)
    return axes[: min(at_most, int(np.sum(spread > 1e-10 * spread[0])))]


def ridged(S: np.ndarray, share: float = RIDGE) -> np.ndarray:
    """Add a share of the mean eigenvalue to the diagonal."""
    return S + share * np.trace(S) / len(S) * np.eye(len(S))


def pair_scatters(vectors: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean outer products, (p, p), of the differences in pairs of one class, and in pairs of two.

    The pairs are never listed: over all pairs of n vectors the sum is n times their scatter.
    """
    n = len(y)
    centered = vectors - vectors.mean(axis=0)
    total = n * centered.T @ centered
    same = np.zeros_like(total)
    pairs = 0
    for label in np.unique(y):
        of_class = vectors[y == label]
        centered = of_class - of_class.mean(axis=0)
        same += len(of_class) * centered.T @ centered
        pairs += len(of_class) * (len(of_class) - 1) // 2
    return same / max(1, pairs), (total - same) / max(1, n * (n - 1) // 2 - pairs)


def gmml_metric(S: np.ndarray, D: np.ndarray, t: float = 0.5) -> np.ndarray:
    """Point at share t of the geodesic from ``S^-1`` to ``D``; for t = 1/2, ``A S A = D``."""
    return geodesic(np.linalg.inv(S), D, t)


def within_scatter(vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Covariance around the class means."""
    _, codes = np.unique(y, return_inverse=True)
    means = np.array([vectors[codes == code].mean(axis=0) for code in range(codes.max() + 1)])
    centered = vectors - means[codes]
    return centered.T @ centered / len(vectors)


class _LinearMap(TransformerMixin, BaseEstimator, ABC):
    """Principal components of the vectors, at most half as many as vectors, and a map learned from them."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _LinearMap:
        """Learn the map from vectors (n, p) with labels."""
        self.center_ = X.mean(axis=0)
        self.axes_ = principal_axes(X - self.center_, self._at_most(len(X)))
        self.map_ = self._learn((X - self.center_) @ self.axes_.T, np.asarray(y))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Map vectors."""
        return (X - self.center_) @ self.axes_.T @ self.map_

    def _at_most(self, n: int) -> int:
        return max(1, n // 2)  # their scatter then has full rank

    @abstractmethod
    def _learn(self, vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Map of reduced vectors (n, k) with labels, (k, q)."""


class GMML(_LinearMap):
    """Geometric mean metric learning, t = 1/2, both scatters with a ridge of 0.01."""

    def _learn(self, vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
        S, D = pair_scatters(vectors, y)
        return sqrtm(gmml_metric(ridged(S), ridged(D)))


class RCA(_LinearMap):
    """Relevant component analysis: whitening by the scatter within the classes.

    Parameters
    ----------
    ridge : float, default=0.01
        Share of the mean eigenvalue added to the scatter.
    """

    def __init__(self, ridge: float = RIDGE):
        self.ridge = ridge

    def _learn(self, vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
        return invsqrtm(ridged(within_scatter(vectors, y), self.ridge))


class NCA(_LinearMap):
    """Neighborhood components analysis: 50 principal components to 10, at most 100 steps."""

    def _at_most(self, n: int) -> int:
        return NCA_INPUTS

    def _learn(self, vectors: np.ndarray, y: np.ndarray) -> np.ndarray:
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        outputs = min(NCA_OUTPUTS, vectors.shape[1])
        learned = NeighborhoodComponentsAnalysis(outputs, max_iter=NCA_STEPS, random_state=0)
        return learned.fit(vectors, y).components_.T
