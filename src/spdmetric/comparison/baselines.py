"""The nearest neighbor by a fixed distance between matrices, and the estimators of pyRiemann."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from spdmetric.extras import require_extra
from spdmetric.geometry import pairwise_distance
from spdmetric.linalg.symmetric import compose
from spdmetric.objectives.data import find_view_sizes


def from_pyriemann(module: str, name: str, **parameters: object) -> BaseEstimator:
    """Make an estimator of pyRiemann, which is imported here only."""
    with require_extra(f"{name} needs pyRiemann", "compare"):
        made = getattr(import_module(f"pyriemann.{module}"), name)
    return made(**parameters)


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
        own = self.metric == "wasserstein"
        found = distances_wasserstein(X, self.X_) if own else pairwise_distance(X, self.X_, self.metric)
        return self.y_[np.argmin(found, axis=1)]


class FirstView(TransformerMixin, BaseEstimator):
    """The first of several matrices a sample, without its padding, for methods that take one."""

    def fit(self, X: np.ndarray, y: object = None) -> FirstView:
        """Find its size."""
        self.n_features_in_ = find_view_sizes(X[:, :1])[0]
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Matrices (n, d, d) of samples (n, views, d, d)."""
        return X[:, 0, : self.n_features_in_, : self.n_features_in_]


def distances_wasserstein(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Bures-Wasserstein distances, (n, m), of all matrices of two stacks; they may be semi-definite."""
    traces = np.trace(X, axis1=1, axis2=2)[:, None] + np.trace(Y, axis1=1, axis2=2)
    columns = []
    for values, V in map(np.linalg.eigh, Y):
        root = compose(np.sqrt(np.maximum(values, 0)), V)  # zero may be rounded to less
        values = np.linalg.eigvalsh(root @ X @ root)
        columns.append(np.sqrt(np.maximum(values, 0)).sum(axis=1))
    return np.sqrt(np.maximum(traces - 2 * np.stack(columns, axis=1), 0))
