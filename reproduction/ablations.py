"""Two variants that the authors mention in the commented source of the paper.

*Early stop*: the ball as they ran it, a trust region "until we find an iterate violating the constraint";
here the last iterate before the first one on the sphere is kept.  *Not normalized*: the alignment without
its denominator, which "is nicer in terms of numerical convergence but showed poor performances".
"""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.linalg.batch import make_stack
from spdmetric.linalg.symmetric import congruence, invsqrtm, symmetrize
from spdmetric.manifolds import Ball, FactorPoint
from spdmetric.objectives.alignment import Misalignment
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


class Unnormalized:
    """Minus the numerator of the alignment, in units of its value where the search starts."""

    def __init__(self, data: Data, start: FactorPoint):
        self.data, self.normalized, self.unit = data, Misalignment(data), 1.0
        self.unit = 1.0 - self.at(start).value

    def at(self, point: FactorPoint) -> UnnormalizedEvaluation:
        return UnnormalizedEvaluation(self, point)


class UnnormalizedEvaluation:
    """What the solver asks for at a point; matrices count alike."""

    def __init__(self, objective: Unnormalized, point: FactorPoint):
        self.point = point
        self._objective = objective
        self._here = make_stack(objective.data.X).decompose(point.factor)
        Y = objective.data.target.Y
        A = self._here.features.T @ Y
        self._cotangents = -2 / objective.unit * Y @ A.T
        self.value = 1.0 - float(np.vdot(A, A)) / objective.unit

    @cached_property
    def gradient(self) -> np.ndarray:
        return self.point.gradient(self.frame_gradient)

    @cached_property
    def frame_gradient(self) -> np.ndarray:
        xi = symmetrize(self._here.pull(self._cotangents))
        return xi - np.trace(xi) / len(xi) * np.eye(len(xi))

    @cached_property
    def curvature_estimate(self) -> np.ndarray:
        return self._objective.normalized.at(self.point).curvature_estimate


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
