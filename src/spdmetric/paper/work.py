"""One task of a table, a training and a test set, on which every method works in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spdmetric.estimators import LogEuclideanMetricCV
from spdmetric.geometry import tangent_vectors

T = TypeVar("T")


class Vectors(NamedTuple):
    """An embedding of the matrices of a task."""

    train: np.ndarray  # (n, p)
    test: np.ndarray  # (n_test, p)


class Work:
    """Training and test matrices, and what was computed from them.

    Methods share what they have in common (`once`), and still each is charged with all of
    it (`timed`): the seconds in the tables are those that a method takes alone.

    Parameters
    ----------
    X : ndarray of shape (n, d, d)
        Training matrices.
    y : ndarray of shape (n,)
        Their labels.
    X_test : ndarray of shape (n_test, d, d)
        Test matrices.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, X_test: np.ndarray):
        self.X, self.y, self.X_test = X, y, X_test
        self._kept: dict[Hashable, tuple[Any, float]] = {}
        self._saved = 0.0  # seconds not spent, because something was kept

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Value of ``make()``, computed the first time the name is asked for."""
        if name in self._kept:
            value, seconds = self._kept[name]
            self._saved += seconds
            return value
        value, seconds = self.timed(make)
        self._kept[name] = value, seconds
        return value

    def timed(self, make: Callable[[], T]) -> tuple[T, float]:
        """Value of ``make()``, and the seconds that it would take with nothing kept."""
        began, saved = time.perf_counter(), self._saved
        value = make()
        return value, time.perf_counter() - began + self._saved - saved


class SharedSweepCV(LogEuclideanMetricCV):
    """`LogEuclideanMetricCV` whose candidates are learned once for all numbers of neighbors.

    What is learned in a fold does not depend on the neighbors that judge it: for a second
    number of them only the judging is left to do.
    """

    work: Work

    def _learn(self, *data: Any) -> list[Any]:
        # One task has one training set, and the folds of a number are always the same.
        return self.work.once("candidates of the folds", lambda: super(SharedSweepCV, self)._learn(*data))


def cv_vectors(work: Work, n_neighbors: int) -> Vectors:
    """Vectors of the metric whose radius and rank suit a number of neighbors."""
    metric = SharedSweepCV(n_neighbors=n_neighbors)
    metric.work = work
    metric.fit(work.X, work.y)
    return Vectors(metric.transform(work.X), metric.transform(work.X_test))


def vectors_at(factor: np.ndarray, work: Work) -> Vectors:
    """Tangent vectors for a factor."""
    return Vectors(tangent_vectors(work.X, factor=factor), tangent_vectors(work.X_test, factor=factor))
