"""The methods that are offered and drawn, fitted to all matrices: for use and pictures, not for a score."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison.folds import Fold, Vectors, fit_keywords, steps_of
from spdmetric.comparison.methods import METHODS, given
from spdmetric.comparison.plan import Plan
from spdmetric.comparison.run import fold_of, inner_groups, made
from spdmetric.comparison.verdict import Verdict, title
from spdmetric.estimators import CommonRange, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.linalg.symmetric import unvech
from spdmetric.plots.patterns import Patterns, patterns_of
from spdmetric.validation import UninformativeDataError

MOST_DRAWN = 500  # training matrices in the picture of the embedding

Metric = LogEuclideanMetric | LogEuclideanMetricCV


class Panel(NamedTuple):
    """Two principal components, or one, of the vectors of a fold."""

    train: np.ndarray  # (n, 1 or 2)
    test: np.ndarray
    share: list[float]  # of the variance


class Drawn(NamedTuple):
    """A learned metric as it is drawn."""

    method: str
    metric: Metric
    patterns: Patterns  # among the channels
    before: Panel  # of the first fold
    after: Panel

    @property
    def n_candidates(self) -> int:
        """Metrics that it was chosen from."""
        options = getattr(self.metric, "cv_results_", {"params": []})["params"]
        return len({(one["radius"], one["rank"], one["weighting"]) for one in options})

    @property
    def learned(self) -> bool:
        """Whether it differs from the metric where learning starts."""
        metric = self.metric
        return metric.embedding_.low_rank or metric.radius_ > 0 or metric.weighting_ is not None

    @property
    def moved(self) -> bool:
        """Whether learning changed anything in the fold of the panels."""
        before, after = self.before.test, self.after.test
        return before.shape != after.shape or not np.allclose(before, after)

    @property
    def start(self) -> str:
        """Where learning starts."""
        return "the identity" if self.metric.init == "identity" else "the mean"

    @property
    def entries(self) -> str:
        """What the rows of a logarithm stand for."""
        if self.metric.embedding_.low_rank:
            return "components"
        return "channels" if self.patterns.patterns.shape[1] == len(self.metric.components_) else "dimensions"

    @property
    def weights(self) -> np.ndarray | None:
        """How much each entry of a logarithm counts in the weighting, (m, m); of one direction, with its sign."""
        if self.metric.weighting_ is None:
            return None
        parts = unvech(self.metric.weighting_.T)  # (q, m, m)
        parts = parts[0] if len(parts) == 1 else np.sqrt(np.sum(parts**2, axis=0))
        return parts / np.abs(parts).max()


def winner(verdict: Verdict) -> str:
    """The best method that can label one new matrix alone."""
    return verdict.unaided[0]


def drawn_method(verdict: Verdict) -> str | None:
    """The winner, or the best method with a learned metric where it has none; None where none has."""
    return next((method for method in verdict.unaided if METHODS[method].family == "learned"), None)


def fit_all(plan: Plan, method: str) -> BaseEstimator:
    """Train a method on all the training matrices, with their own labels."""
    trained, estimator = plan.trained, made(plan, method)
    labels = plan.classes[plan.codes[trained]]
    arguments = fit_keywords(estimator, groups=inner_groups(plan, trained))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the folds report theirs
        try:
            return estimator.fit(plan.X[trained], labels, **arguments)
        except UninformativeDataError as error:  # in folds, chance differs
            raise ValueError(untrained_sentence(plan, method)) from error


def untrained_sentence(plan: Plan, method: str) -> str:
    """What it means that a method can be trained in every fold, and not on all matrices."""
    return (
        f"{title(method)} was trained in every fold, and cannot be trained on all {len(plan.trained)} "
        "matrices: together they hold nothing that tells the classes apart. See whether the labels belong to "
        "the matrices."
    )


def draw(plan: Plan, method: str, fitted: BaseEstimator) -> Drawn:
    """What is drawn of a method that was fitted to all matrices; the embedding is that of the first fold."""
    X, basis = plan.X[plan.trained], None
    for step in steps_of(fitted):
        if isinstance(step, CommonRange):
            X, basis = step.transform(X), step.basis_
    metric = metric_of(fitted)
    patterns = patterns_of(metric, X, plan.classes[plan.codes[plan.trained]])
    if basis is not None:
        patterns = patterns._replace(patterns=patterns.patterns @ basis.T)
    fold = fold_of(plan, "", 0, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = _plane(_before(plan, fold, metric)), _plane(_after(plan, fold, method))
    return Drawn(method, metric, patterns, before, after)


def metric_of(fitted: BaseEstimator) -> Metric:
    """The metric of a fitted classifier, or of a pipeline."""
    steps = [getattr(step, "metric_", step) for step in steps_of(fitted)]
    return next(step for step in steps if isinstance(step, Metric))


def _before(plan: Plan, fold: Fold, metric: Metric) -> Vectors:
    """Tangent vectors where learning starts; of singular matrices, which have none, the entries."""
    if not plan.sizes.inside.definite:
        return Vectors(fold.X.reshape(len(fold.X), -1), fold.X_test.reshape(len(fold.X_test), -1))
    start = made(plan, "logeuclid-mean")
    given(start, init=metric.init)
    return fold.vectors(steps_of(start)[:-1])


def _after(plan: Plan, fold: Fold, method: str) -> Vectors:
    """Vectors of the metric, its weighting included, as learned on the training part of the fold."""
    *steps, _ = steps_of(made(plan, method))
    if not any(isinstance(step, Metric) for step in steps):
        classifier, test = fold.fitted(made(plan, method))
        return Vectors(*map(classifier.metric_.transform, (fold.vectors(steps).train, test)))
    return fold.vectors(steps)


def _plane(vectors: Vectors) -> Panel:
    center = vectors.train.mean(axis=0)
    _, spread, axes = np.linalg.svd(vectors.train - center, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True) + 1e-300)  # a sign is not a result
    share = spread[:2] ** 2 / max(float(np.sum(spread**2)), 1e-300)
    train, test = ((v - center) @ axes.T for v in vectors)
    return Panel(train[:MOST_DRAWN], test, share.tolist())
