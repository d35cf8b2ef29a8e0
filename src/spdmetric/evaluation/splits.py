"""A training and a test set, on which methods work in turn and share what they have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from spdmetric.estimators import LogEuclideanMetricCV

T = TypeVar("T")


class Vectors(NamedTuple):
    """Training and test matrices, or vectors of them."""

    train: np.ndarray  # (n, ...)
    test: np.ndarray  # (n_test, ...)


class Fold:
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

    def labels(self, estimator: BaseEstimator) -> np.ndarray:
        """Labels of the test matrices by a classifier, or a pipeline that ends in one."""
        *steps, classifier = steps_of(estimator)
        train, test = self.vectors(steps)
        return classifier.fit(train, self.y).predict(test)

    def vectors(self, steps: Sequence[BaseEstimator]) -> Vectors:
        """What transformers, one after the other, make of the matrices; equal ones are fitted once."""
        if not steps:
            return Vectors(self.X, self.X_test)
        *before, last = steps
        # Estimators with the same parameters have the same text.
        name = tuple(step.__repr__(N_CHAR_MAX=10**6) for step in steps)
        return self.once(name, lambda: self._transformed(last, self.vectors(before)))

    def _transformed(self, step: BaseEstimator, vectors: Vectors) -> Vectors:
        if isinstance(step, LogEuclideanMetricCV):
            step = _SharedSweep(**step.get_params(deep=False))
            step.fold = self
        fitted = step.fit(vectors.train, self.y)
        return Vectors(fitted.transform(vectors.train), fitted.transform(vectors.test))


def steps_of(estimator: BaseEstimator) -> list[BaseEstimator]:
    """Steps of a pipeline, or the estimator alone."""
    return [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]


class _SharedSweep(LogEuclideanMetricCV):
    """`LogEuclideanMetricCV` whose candidates are learned once for all numbers of neighbors.

    What is learned in a fold does not depend on the neighbors that judge it: for a second
    number of them only the judging is left to do.
    """

    fold: Fold

    def _learn(self, *data: Any) -> list[Any]:
        given = {k: v for k, v in self.get_params(deep=False).items() if k != "n_neighbors"}
        return self.fold.once(("candidates", repr(given)), lambda: super(_SharedSweep, self)._learn(*data))
