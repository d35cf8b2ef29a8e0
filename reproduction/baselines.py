"""Linear maps of tangent vectors that only tables have: `GMML` [Zadeh2016]_ and `RCA` [BarHillel2005]_.

References
----------
.. [Zadeh2016] P. H. Zadeh, R. Hosseini and S. Sra, "Geometric mean metric learning", ICML, 2016.
.. [BarHillel2005] A. Bar-Hillel, T. Hertz, N. Shental and D. Weinshall, "Learning a Mahalanobis metric from
   equivalence constraints", Journal of Machine Learning Research 6, 2005.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from spdmetric.geometry import geodesic
from spdmetric.linalg.symmetric import invsqrtm, sqrtm

RIDGE = 0.01  # share of the mean eigenvalue added to every scatter matrix


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


def principal_axes(vectors: np.ndarray, at_most: int) -> np.ndarray:
    """Leading principal axes of centered vectors, (k, p); fewer where they span fewer directions."""
    _, spread, axes = np.linalg.svd(vectors, full_matrices=False)
    return axes[: min(at_most, int(np.sum(spread > 1e-10 * spread[0])))]


class _LinearMap(TransformerMixin, BaseEstimator, ABC):
    """Principal components of the vectors, at most half as many as vectors, and a map learned from them."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> _LinearMap:
        """Learn the map from vectors (n, p) with labels."""
        self.center_ = X.mean(axis=0)
        # At most half as many components as vectors: their scatter then has full rank.
        self.axes_ = principal_axes(X - self.center_, max(1, len(X) // 2))
        self.map_ = self._learn((X - self.center_) @ self.axes_.T, np.asarray(y))
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Map vectors."""
        return (X - self.center_) @ self.axes_.T @ self.map_

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
