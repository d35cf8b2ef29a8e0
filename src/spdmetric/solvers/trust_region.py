"""Riemannian trust region."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from spdmetric.solvers.constraint import Iterate, norm
from spdmetric.solvers.protocols import Manifold, Objective, Point
from spdmetric.solvers.run import Counted, Run
from spdmetric.solvers.secant import SecantModel, Step
from spdmetric.solvers.solution import Callback, Solution, Status

_EPS = float(np.finfo(np.float64).eps)


def trust_region(
    objective: Objective,
    manifold: Manifold,
    start: Point,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimize on a ball with a Riemannian trust region [Absil2007]_ and a secant model.

    Parameters
    ----------
    objective, manifold : Objective, Manifold
        What to minimize, and where.
    start : point
        A point of the ball; at the center, the first step is a long one (see `spdmetric.solvers`).
    tol : float
        Bound on the KKT residual, relative to the gain (see `spdmetric.solvers.constraint.Iterate`).
    max_iter : int
        Bound on the number of iterations.
    callback : callable, optional
        Called with each `Record`; returning True stops the run.

    Returns
    -------
    Solution
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    return _trust_region(run, SecantModel, manifold, start)


def newton(
    objective: Objective,
    manifold: Manifold,
    start: Point,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimize on a ball with a Riemannian trust region and exact second derivatives.

    Takes fewer iterations, each more expensive, than `trust_region`, and its last ones converge
    quadratically.  Beyond a radius of 20 its Hessian in normal coordinates loses its digits
    by cancellation, and the estimators refuse it.  Parameters and return value are those of `trust_region`.
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    return _trust_region(run, partial(ExactModel, run.objective), manifold, start)


def _trust_region(
    run: Run, make_model: Callable[[], SecantModel | ExactModel], manifold: Manifold, start: Point
) -> Solution:
    first = iterate = Iterate(run.objective.at(start), manifold.radius)
    model, delta = make_model(), 0.5 * manifold.radius
    while True:
        status = run.ends(iterate)
        if run.lost(status, iterate, first):
            iterate, model, delta, status = first, make_model(), 0.5 * manifold.radius, None
        after: Iterate | None
        if status is None and iterate.distance == 0:
            after = run.first_step(manifold, iterate)
        elif status is None:
            after, delta = trusted_step(run.objective, model, manifold, iterate, delta)
        elif status is Status.CONVERGED and iterate.inside and iterate.distance > 0:
            after = run.further_out(manifold, iterate)
        else:
            break
        if after is None or delta < 1e-12 * manifold.radius:
            status = status or Status.STALLED
            break
        if after is not iterate:
            model.learn(iterate, after)
        iterate = after
    # The first step need not have been an improvement; in the end there must be one.
    return run.solution(iterate if iterate.here.value <= first.here.value else first, status)


def trusted_step(
    objective: Counted, model: SecantModel | ExactModel, manifold: Manifold, iterate: Iterate, delta: float
) -> tuple[Iterate, float]:
    """One step of the trust region: where to go on from, and the radius to trust there."""
    step, slope, bend, at_edge = model.step(iterate, delta)
    share = iterate.reach(step, manifold.radius)
    if share == 0:
        return iterate, delta / 4
    length, predicted = norm(step), -share * slope - 0.5 * share**2 * bend
    there = objective.at(manifold.retract(iterate.here.point, share * step))
    if predicted <= 10 * _EPS:
        # Values cannot tell such steps apart; go by the residual as long as it falls.
        after = Iterate(there, manifold.radius)
        return (after, delta) if after.residual < iterate.residual else (iterate, length / 4)
    # A little is added to both decreases so that rounding counts as agreement.
    noise = 1e3 * _EPS
    ratio = (iterate.here.value - there.value + noise) / (predicted + noise)
    if not ratio > 0.1:
        return iterate, length / 2
    if ratio > 0.75 and at_edge:
        delta = min(2 * delta, manifold.radius)
    return Iterate(there, manifold.radius), delta


# ---------------------------------------------------------------------------
# The exact model


class ExactModel:
    """The objective's own Hessian-vector products, each counted as an evaluation."""

    def __init__(self, objective: Counted):
        self._objective = objective

    def learn(self, before: Iterate, after: Iterate) -> None:
        """Learn nothing: each point has its own second derivatives."""

    def _hessian(self, iterate: Iterate, eta: np.ndarray) -> np.ndarray:
        """Hessian of the Lagrangian, applied to a vector."""
        return self._objective.hvp(iterate.here, eta) + iterate.curvature * eta

    def step(self, iterate: Iterate, delta: float) -> Step:
        """Truncated conjugate gradients [Steihaug1983]_.

        They stop at the edge, along a direction of negative curvature, or when the residual
        has fallen enough for superlinear convergence.
        """
        g = iterate.gradient
        step, H_step = np.zeros_like(g), np.zeros_like(g)
        residual, direction = g, -g
        square = float(np.vdot(g, g))
        enough = np.sqrt(square) * min(0.5, square**0.25)
        at_edge = False
        for _ in range(g.size):
            H_direction = iterate.tangent(self._hessian(iterate, direction))
            curvature = float(np.vdot(direction, H_direction))
            alpha = square / curvature if curvature > 0 else np.inf
            to_edge = _to_edge(step, direction, delta)
            at_edge = alpha >= to_edge
            alpha = min(alpha, to_edge)
            step, H_step = step + alpha * direction, H_step + alpha * H_direction
            residual = residual + alpha * H_direction
            new_square = float(np.vdot(residual, residual))
            if at_edge or np.sqrt(new_square) <= enough:
                break
            direction = iterate.tangent(-residual + (new_square / square) * direction)
            square = new_square
        return Step(step, float(np.vdot(g, step)), float(np.vdot(step, H_step)), at_edge)


def _to_edge(step: np.ndarray, direction: np.ndarray, delta: float) -> float:
    """Return the positive t for which ``|step + t direction| = delta``."""
    a, b = float(np.vdot(direction, direction)), float(np.vdot(step, direction))
    c = float(np.vdot(step, step)) - delta**2
    return (-b + np.sqrt(max(b * b - a * c, 0.0))) / a
