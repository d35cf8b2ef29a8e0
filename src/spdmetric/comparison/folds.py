"""A training and a test set, on which methods work in turn and share what they have in common."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

T = TypeVar("T")


class Fold:
    """Training matrices (n, d, d) with labels, test matrices, and what was computed from them.

    Methods share what they have in common (`once`), and still each is charged with all of
    it (`timed`): the seconds in the tables are those that a method takes alone.
    """

    def __init__(self, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, groups: np.ndarray | None = None):
        self.X, self.y, self.X_test = X, y, X_test
        self.groups = groups  # that the folds inside keep whole
        self._kept: dict[Hashable, tuple[Any, float]] = {}
        self._saved = 0.0  # seconds not spent, because something was kept

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """Value of ``make()``, computed the first time the name is asked for."""
        if name in self._kept:
            self._saved += self._kept[name][1]
        else:
            self._kept[name] = self.timed(make)
        return self._kept[name][0]

    def timed(self, make: Callable[[], T]) -> tuple[T, float]:
        """Value of ``make()``, and the seconds that it would take with nothing kept."""
        began, saved = time.perf_counter(), self._saved
        value = make()
        return value, time.perf_counter() - began + self._saved - saved

    def labels(self, estimator: BaseEstimator) -> np.ndarray:
        """Labels of the test matrices by a classifier, or a pipeline that ends in one."""
        classifier, test = self.fitted(estimator)
        return classifier.predict(test)

    def fitted(self, estimator: BaseEstimator) -> tuple[BaseEstimator, np.ndarray]:
        """The fitted classifier, and what it is to label: test matrices, or the vectors of them."""
        *steps, classifier = steps_of(estimator)
        train, test = self.vectors(steps)
        return self._fit(classifier, train), test

    def vectors(self, steps: Sequence[BaseEstimator]) -> tuple[np.ndarray, np.ndarray]:
        """Transformed training and test matrices; equal transformers are fitted once."""
        if not steps:
            return self.X, self.X_test

        def transform() -> tuple[np.ndarray, np.ndarray]:
            train, test = self.vectors(steps[:-1])
            fitted = self._fit(steps[-1], train)
            return fitted.transform(train), fitted.transform(test)

        # Estimators with the same parameters have the same text.
        return self.once(tuple(step.__repr__(N_CHAR_MAX=10**6) for step in steps), transform)

    def _fit(self, step: BaseEstimator, X: np.ndarray) -> BaseEstimator:
        return step.fit(X, self.y, **fit_keywords(step, groups=self.groups))


def drop_single_group(groups: np.ndarray | None) -> np.ndarray | None:
    """Groups that folds can keep apart; None where there are fewer than two."""
    return None if groups is None or len(np.unique(groups)) < 2 else groups


def fit_keywords(estimator: BaseEstimator, **columns: T | None) -> dict[str, T]:
    """Columns, groups for instance, as keywords of `fit`, for all steps that take them; None: no such."""
    named = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    return {
        f"{step}__{name}" if step else name: column
        for step, made in named
        for name, column in columns.items()
        if column is not None and has_fit_parameter(made, name)
    }


def steps_of(estimator: BaseEstimator) -> list[BaseEstimator]:
    """Steps of a pipeline, or the estimator alone."""
    return [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]
