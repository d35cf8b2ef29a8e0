"""Two variants that the authors mention in the commented source of the paper.

*Early stop*: the ball as they ran it, an unconstrained trust region "until we find an
iterate violating the constraint"; here the last iterate inside is kept.  *Not normalized*:
the alignment without its denominator, which "is nicer in terms of numerical convergence
but showed poor performances".
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from spdmetric.comparison.methods import METHODS, Method
from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.linalg.symmetric import congruence, invsqrtm
from spdmetric.manifolds import Ball, FactorPoint
from spdmetric.objectives.alignment import Evaluation, Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.solvers import trust_region
from spdmetric.solvers.constraint import Iterate
from spdmetric.solvers.run import Run
from spdmetric.solvers.secant import SecantModel
from spdmetric.solvers.trust_region import trusted_step

RADIUS = 10.0


def _problem(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, Data]:
    """Whiten the data by their mean, as the estimator does."""
    W0 = invsqrtm(mean_riemann(X))
    return W0, Data(congruence(W0, X), ClassTarget.from_codes(np.unique(y, return_inverse=True)[1]))


def early_stop_factor(X: np.ndarray, y: np.ndarray, *, max_iter: int = 200) -> np.ndarray:
    """Factor of the last iterate before the first one outside the ball.

    The trust radius is Manopt's of 2015: at most the square root of the dimension, and an
    eighth of that to begin with.  Steps are taken in normal coordinates.
    """
    W0, data = _problem(X, y)
    d = len(W0)
    free = Ball(np.eye(d), 1e3)  # far enough never to be met
    run, model = Run(Misalignment(data), tol=1e-6, max_iter=max_iter), SecantModel()
    iterate = Iterate(run.at(free.center), free.radius)
    largest = np.sqrt(d * (d + 1) / 2)
    delta = largest / 8
    for _ in range(max_iter):
        after, delta = trusted_step(run, model, free, iterate, min(delta, largest))
        if after.distance > RADIUS or after.residual <= 1e-6 or delta < 1e-12:
            break
        if after is not iterate:
            model.learn(iterate, after)
        iterate = after
    return iterate.here.point.factor @ W0


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

    _objective: Unnormalized

    @property
    def alignment(self) -> float:
        """The numerator."""
        return self._A_square / self._objective.unit

    @property
    def _cotangents(self) -> np.ndarray:
        target = self._data.target
        return -2 / self._objective.unit * target.weight[:, None] * (target.Y @ self._summary.A.T)


def unnormalized_factor(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Factor that maximizes the numerator of the alignment in the ball."""
    W0, data = _problem(X, y)
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


def _ablation(variant: str, sentence: str) -> Method:
    return Method(
        f"Learned, {variant} + 1-NN",
        variant,
        "learned",
        sentence,
        lambda sizes: make_pipeline(AblatedMetric(variant), KNeighborsClassifier(1)),
    )


ABLATIONS = {
    "kta-early-stop": _ablation("early stop", "The metric of the paper, the ball as its authors ran it."),
    "kta-unnormalized": _ablation("not normalized", "The metric of the paper without its denominator."),
}

KNOWN: dict[str, Method] = {**METHODS, **ABLATIONS}  # all methods that the tables can have
