"""pyRiemann: nearest neighbors, pairwise distances, the Riemannian mean."""

from __future__ import annotations

import numpy as np

TITLE = "pyRiemann"
REQUIRES = ("pyriemann",)
GROUPS = ("knn", "pairwise", "mean")


def nearest(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """1-NN with the LogEuclidean distance, from matrices to predictions."""
    from pyriemann.classification import KNearestNeighbor

    return KNearestNeighbor(n_neighbors=1, metric="logeuclid").fit(X, y).predict(X_test)


def pairwise(X: np.ndarray) -> np.ndarray:
    from pyriemann.geometry.distance import pairwise_distance

    return pairwise_distance(X, metric="riemann")


def mean(X: np.ndarray, tol: float) -> np.ndarray:
    from pyriemann.geometry.mean import mean_riemann

    return mean_riemann(X, tol=tol, maxiter=200)
