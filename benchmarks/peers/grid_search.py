"""scikit-learn's GridSearchCV, which learns anew for every candidate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

TITLE = "GridSearchCV"
REQUIRES = ("sklearn",)
GROUPS = ("cv",)


def search(
    X: np.ndarray,
    y: np.ndarray,
    radii: Sequence[float],
    ranks: Sequence[int | None],
    folds: Any,
    **options: Any,
) -> float:
    """Best mean score of 1-NN over the grid; the options are of `LogEuclideanMetric`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import Pipeline

    from spdmetric import LogEuclideanMetric

    model = Pipeline([("metric", LogEuclideanMetric(**options)), ("nearest", KNeighborsClassifier(1))])
    grid = {"metric__radius": list(radii), "metric__rank": list(ranks)}
    with warnings.catch_warnings():
        # A bounded number of iterations is what the grid asks for.
        warnings.filterwarnings("ignore", "LogEuclideanMetric: Stopped", ConvergenceWarning)
        return float(GridSearchCV(model, grid, cv=folds, refit=False).fit(X, y).best_score_)
