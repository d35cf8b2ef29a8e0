"""Other ways to classify SPD matrices, as scikit-learn estimators.

`NearestNeighbor` works on matrices, with a fixed distance.  `NCA` [Goldberger2004]_ learns a linear map of
tangent vectors, which are first reduced to principal components: there are more coordinates than matrices.
`from_pyriemann` gives the classifiers of pyRiemann.

References
----------
.. [Goldberger2004] J. Goldberger, S. Roweis, G. Hinton and R. Salakhutdinov, "Neighbourhood components
   analysis", NIPS, 2004.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from spdmetric.extras import require_extra
from spdmetric.geometry import pairwise_distance
from spdmetric.linalg.symmetric import spectrum

NCA_INPUTS, NCA_OUTPUTS, NCA_STEPS = 50, 10, 100
CSP_FILTERS = 6


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


def distances_wasserstein(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Bures-Wasserstein distances, (n, m), of all matrices of two stacks; they may be semi-definite."""
    traces = np.trace(X, axis1=1, axis2=2)[:, None] + np.trace(Y, axis1=1, axis2=2)
    columns = []
    for s in map(spectrum, Y):
        root = s.compose(np.sqrt(np.maximum(s.values, 0)))  # zero may be rounded to less
        values = np.linalg.eigvalsh(root @ X @ root)
        columns.append(np.sqrt(np.maximum(values, 0)).sum(axis=1))
    return np.sqrt(np.maximum(traces - 2 * np.stack(columns, axis=1), 0))


def principal_axes(vectors: np.ndarray, at_most: int) -> np.ndarray:
    """Leading principal axes of centered vectors, (k, p); fewer where they span fewer directions."""
    _, spread, axes = np.linalg.svd(vectors, full_matrices=False)
    return axes[: min(at_most, int(np.sum(spread > 1e-10 * spread[0])))]


class NCA(TransformerMixin, BaseEstimator):
    """Neighborhood components analysis: 50 principal components to 10, at most 100 steps."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NCA:
        """Learn the map from vectors (n, p) with labels."""
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        self.center_ = X.mean(axis=0)
        self.axes_ = principal_axes(X - self.center_, NCA_INPUTS)
        outputs = min(NCA_OUTPUTS, len(self.axes_))
        learned = NeighborhoodComponentsAnalysis(outputs, max_iter=NCA_STEPS, random_state=0)
        self.map_ = learned.fit((X - self.center_) @ self.axes_.T, np.asarray(y)).components_.T
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Map vectors."""
        return (X - self.center_) @ self.axes_.T @ self.map_
