"""Riemannian trust region."""

from __future__ import annotations

from typing import Any

import numpy as np

from spdmetric.solvers.models import ExactModel, Model, SecantModel
from spdmetric.solvers.run import Callback, Counted, Face, Manifold, Objective, Run, Solution, Status, norm

_EPS = float(np.finfo(np.float64).eps)


def trust_region(
    objective: Objective,
    manifold: Manifold,
    start: Any,
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
        A point of the ball; at the center, the first step is a long one (see the module).
    tol : float
        Bound on the KKT residual.
    max_iter : int
        Bound on the number of iterations.
    callback : callable, optional
        Called with each `Record`; returning True stops the run.

    Returns
    -------
    Solution
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    return _trust_region(run, SecantModel(), manifold, start)


def newton(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimize on a ball with a Riemannian trust region and exact second derivatives.

    Takes fewer, dearer iterations than `trust_region`, and its last ones converge
    quadratically.  Beyond a radius of 20 its Hessian in normal coordinates loses digits
    by cancellation.  Parameters and return value are those of `trust_region`.
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    return _trust_region(run, ExactModel(run.objective), manifold, start)


def _trust_region(run: Run, model: Model, manifold: Manifold, start: Any) -> Solution:
    face = Face(run.objective.at(start), manifold.radius)
    delta = 0.5 * manifold.radius
    while (status := run.ends(face)) is None:
        if face.distance == 0:
            after = _first_step(run.objective, manifold, face)
        else:
            after, delta = trusted_step(run.objective, model, manifold, face, delta)
        if after is None or delta < 1e-12 * manifold.radius:
            return run.solution(face, Status.STALLED)
        if after is not face:
            model.learn(face, after)
        face = after
    return run.solution(face, status)


def _first_step(objective: Counted, manifold: Manifold, face: Face) -> Face | None:
    """From the center along the gradient to the sphere, or as far as the value improves."""
    here, g = face.here, face.gradient
    length = norm(g)
    reach = manifold.radius
    while reach > 1e-8 * manifold.radius:
        there = objective.at(manifold.retract(here.point, (-reach / length) * g))
        if there.value < here.value:
            return Face(there, manifold.radius)
        reach /= 2
    return None


def trusted_step(
    objective: Counted, model: Model, manifold: Manifold, face: Face, delta: float
) -> tuple[Face, float]:
    """One step of the trust region: the face to go on from, and the radius to trust there."""
    step, slope, bend, at_edge = model.step(face, delta)
    share = face.reach(step, manifold.radius)
    if share == 0:
        return face, delta / 4
    length, predicted = norm(step), -share * slope - 0.5 * share**2 * bend
    there = objective.at(manifold.retract(face.here.point, share * step))
    if predicted <= 10 * _EPS:
        # Values cannot tell such steps apart; go by the residual as long as it falls.
        after = Face(there, manifold.radius)
        return (after, delta) if after.residual < face.residual else (face, length / 4)
    # A little is added to both decreases so that rounding counts as agreement.
    noise = 1e3 * _EPS
    ratio = (face.here.value - there.value + noise) / (predicted + noise)
    if not ratio > 0.1:
        return face, length / 2
    if ratio > 0.75 and at_edge:
        delta = min(2 * delta, manifold.radius)
    return Face(there, manifold.radius), delta
