"""The columns of the tables: each labels test matrices by their nearest training matrix.

A method is a function ``(X, y, X_test) -> labels``.  To add a column, add a function to
`METHODS`; those of the paper's tables are named in `COLUMNS`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spdmetric.estimators import LogEuclideanMetric
from spdmetric.experiments.ablations import early_stop_factor, unnormalised_factor
from spdmetric.geometry import pairwise_distance, tangent_vectors

Method = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def _nearest(distances: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Labels of the nearest training matrices; distances of shape (n_test, n_train)."""
    return y[np.argmin(distances, axis=1)]


def logeuclid_identity(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """LogEuclidean distance at the identity."""
    return _nearest(pairwise_distance(X_test, X, "logeuclid"), y)


def _learned(radius: float) -> Method:
    def method(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
        metric = LogEuclideanMetric(radius).fit(X, y)
        return _nearest(_distances(metric.transform(X_test), metric.transform(X)), y)

    return method


def _distances(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Squared Euclidean distances of rows, less what all rows of ``v`` share."""
    return np.sum(v**2, axis=1) - 2 * u @ v.T


def _pairwise(metric: str) -> Method:
    def method(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
        return _nearest(pairwise_distance(X_test, X, metric), y)

    return method


def _at_factor(learn: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Method:
    def method(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
        W = learn(X, y)
        return _nearest(_distances(tangent_vectors(X_test, factor=W), tangent_vectors(X, factor=W)), y)

    return method


METHODS: dict[str, Method] = {
    "logeuclid-identity": logeuclid_identity,
    "logeuclid-mean": _learned(0.0),
    "logeuclid-kta": _learned(10.0),
    "riemann": _pairwise("riemann"),
    "euclid": _pairwise("euclid"),
    "stein": _pairwise("stein"),
    "kta-early-stop": _at_factor(early_stop_factor),
    "kta-unnormalised": _at_factor(unnormalised_factor),
}

# The paper's five columns, and the divergence it mentions.
COLUMNS = ("logeuclid-identity", "logeuclid-mean", "logeuclid-kta", "riemann", "euclid", "stein")
ABLATIONS = ("kta-early-stop", "kta-unnormalised")

TITLES = {
    "logeuclid-identity": "LE at I",
    "logeuclid-mean": "LE at mean",
    "logeuclid-kta": "LE learned",
    "riemann": "Riemann",
    "euclid": "Euclid",
    "stein": "Stein",
    "kta-early-stop": "early stop",
    "kta-unnormalised": "not normalised",
}
