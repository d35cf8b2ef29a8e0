"""What a user does in one session, timed inside it: the processes of `benchmarks.cases.session`.

Nothing is imported here that a user's script would not import, so that what a first fit has to load is
loaded by the first fit.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import numpy as np

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV

RADIUS = 4.0
FITS = 10
RADII = tuple(float(radius) for radius in range(1, 11))  # 10 radii and 5 folds: 50 fits
FOLDS = 5


def main() -> None:
    """Print the seconds of one of `SESSIONS` as JSON: its name, a file of X and y, "preloaded" or "fresh"."""
    name, path, state = sys.argv[1:]
    with np.load(path) as stored:
        X, y = stored["X"], stored["y"]
    if state == "preloaded":
        LogEuclideanMetric(RADIUS).fit(X[::10], y[::10])
        LogEuclideanMetric(RADIUS).fit(X, y)
    print(json.dumps(SESSIONS[name](X, y)))


def fits(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [_seconds(lambda: LogEuclideanMetric(RADIUS).fit(X, y)) for _ in range(FITS)]


def cross_validations(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [_seconds(lambda: LogEuclideanMetricCV().fit(X, y)) for _ in range(2)]


def one_cross_validation(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [_seconds(lambda: LogEuclideanMetricCV().fit(X, y))]


def classifier(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [_seconds(lambda: LogEuclideanClassifier().fit(X, y))]


def decomposition(X: np.ndarray, y: np.ndarray) -> list[float]:
    return [_seconds(lambda: np.linalg.eigh(X)) for _ in range(3)]


def grid(X: np.ndarray, y: np.ndarray) -> list[float]:
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import Pipeline

    model = Pipeline([("metric", LogEuclideanMetric()), ("nearest", KNeighborsClassifier(1))])
    search = GridSearchCV(model, {"metric__radius": RADII}, cv=FOLDS, refit=False)
    return [_seconds(lambda: search.fit(X, y))]


def same_fits(X: np.ndarray, y: np.ndarray) -> list[float]:
    """The fits of `grid` alone, one after the other."""
    from sklearn.model_selection import StratifiedKFold

    rows = [train for train, _ in StratifiedKFold(FOLDS).split(X, y)]

    def every() -> None:
        for radius in RADII:
            for train in rows:
                LogEuclideanMetric(radius).fit(X[train], y[train])

    return [_seconds(every)]


def import_numba(X: np.ndarray, y: np.ndarray) -> list[float]:
    def load() -> None:
        import numba  # noqa: F401

    return [_seconds(load)]


SESSIONS: dict[str, Callable[[np.ndarray, np.ndarray], list[float]]] = {
    "fits": fits,
    "cv": cross_validations,
    "one cv": one_cross_validation,
    "classifier": classifier,
    "eigh": decomposition,
    "grid": grid,
    "same fits": same_fits,
    "import numba": import_numba,
}


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
