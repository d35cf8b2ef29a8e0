"""Two variants that the authors mention in the commented source of the paper.

*Early stop*: the ball as they ran it, a trust region "until we find an iterate violating the constraint";
here the last iterate before the first one on the sphere is kept.  *Not normalized*: the alignment without
its denominator, which "is nicer in terms of numerical convergence but showed poor performances".
"""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.linalg.symmetric import congruence, invsqrtm
from spdmetric.manifolds import Ball, FactorPoint
from spdmetric.objectives.alignment import Evaluation, Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.solvers import Record, trust_region

RADIUS = 10.0


def whiten_by_mean(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Data]:
    """Whiten the data by their mean, as the estimator does."""
    W0 = invsqrtm(mean_riemann(X))
    return W0, Data(congruence(W0, X), ClassTarget.from_codes(np.unique(y, return_inverse=True)[1]))


def early_stop_factor(X: np.ndarray, y: np.ndarray, *, max_iter: int = 200) -> np.ndarray:
    """Factor of the last iterate before the first one on the sphere.

    From the center our solver would step to the sphere at once: the run begins beside it, one step down the
    gradient, as long as the first trust radius of Manopt in 2015.
    """
    W0, data = whiten_by_mean(X, y)
    d, objective, ball = len(W0), Misalignment(data), Ball(np.eye(len(W0)), RADIUS)
    g = objective.at(ball.point(np.zeros((d, d)))).gradient
    start = ball.point(-np.sqrt(d * (d + 1) / 2) / 8 * g / np.linalg.norm(g))
    run = partial(trust_region, objective, ball, start, tol=0.0)
    history = run(max_iter=max_iter, callback=_on_sphere).history
    inside = sum(not _on_sphere(record) for record in history)
    return run(max_iter=inside - 1).point.factor @ W0  # the same iterates, up to the last one inside


def _on_sphere(record: Record) -> bool:
    return record.distance >= RADIUS * (1 - 1e-9)


class Unnormalized(Misalignment):
    """Minus the numerator of the alignment, in units of its value where the search starts."""

    def __init__(self, data: Data, start: FactorPoint):
        super().__init__(data)
        self.unit = 1.0
        self.unit = UnnormalizedEvaluation(self, start).alignment

    def at(self, point: FactorPoint) -> Evaluation:
        return UnnormalizedEvaluation(self, point)


class UnnormalizedEvaluation(Evaluation):
    """Value and gradient only: the secant model needs no more."""

    objective: Unnormalized

    @property
    def alignment(self) -> float:
        """The numerator."""
        return float(np.vdot(self.summary.A, self.summary.A)) / self.objective.unit

    @property
    def _cotangents(self) -> np.ndarray:
        target = self.data.target
        return -2 / self.objective.unit * target.weight[:, None] * (target.Y @ self.summary.A.T)


def unnormalized_factor(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Factor that maximizes the numerator of the alignment in the ball."""
    W0, data = whiten_by_mean(X, y)
    ball = Ball(np.eye(len(W0)), RADIUS)
    start = ball.point(np.zeros_like(W0))
    objective = Unnormalized(data, start)
    solution = trust_region(objective, ball, start, tol=1e-5, max_iter=500)
    return solution.point.factor @ W0


class AblatedMetric(TransformerMixin, BaseEstimator):
    """Tangent vectors at the reference point that a variant ("early stop", "not normalized") learns."""

    def __init__(self, variant: str):
        self.variant = variant

    def fit(self, X: np.ndarray, y: np.ndarray) -> AblatedMetric:
        """Learn the factor."""
        learn = {"early stop": early_stop_factor, "not normalized": unnormalized_factor}[self.variant]
        self.components_ = learn(X, y)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Tangent vectors."""
        return tangent_vectors(X, factor=self.components_)
