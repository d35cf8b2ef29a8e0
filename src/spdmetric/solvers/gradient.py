"""Steepest descent along geodesics."""

from __future__ import annotations

from typing import Any

import numpy as np

from spdmetric.solvers.run import (
    Callback,
    Counted,
    Evaluation,
    Face,
    Manifold,
    Objective,
    Run,
    Solution,
    Status,
)


def geodesic_gradient(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimize on a ball by steepest descent along geodesics, Eq. (6) of [Yger2015]_.

    Inside the ball each step follows the geodesic of the affine-invariant gradient.  On
    the sphere, geodesics of P_d leave the ball at an exponential rate and what is left
    after bringing them back is a poor step, so the descent follows the sphere's own
    great circles in normal coordinates.  Steps are those of [Barzilai1988]_,
    shortened until the value falls, so rounding of the value limits the residual that can
    be reached to about 1e-8.

    Parameters and return value are those of `trust_region`.
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    face = Face(run.objective.at(start), manifold.radius)
    length = None
    while (status := run.ends(face)) is None:
        there, length = _descend(face, run.objective, manifold, length)
        if there is None:
            return run.solution(face, Status.STALLED)
        face, length = _follow(face, Face(there, manifold.radius), length)
    return run.solution(face, status)


def _descend(
    face: Face, objective: Counted, manifold: Manifold, length: float | None
) -> tuple[Evaluation | None, float]:
    """Shorten a first guess of the step until the value falls enough (Armijo)."""
    here = face.here
    direction = -face.gradient if face.sphere else -here.point.raise_(face.gradient)
    move = manifold.retract if face.sphere else manifold.geodesic
    slope = float(np.vdot(face.gradient, direction))
    size = float(np.linalg.norm(direction))
    longest = manifold.radius / size
    t = longest if length is None else min(length, longest)
    while t > 1e-14 * longest:
        there = objective.at(move(here.point, t * direction))
        if there.value <= here.value + 1e-4 * t * slope:
            return there, t
        t /= 3
    return None, t


def _follow(before: Face, after: Face, length: float) -> tuple[Face, float | None]:
    """Step length of [Barzilai1988]_ from the last two points of a face."""
    if before.sphere != after.sphere:
        return after, None
    change = after.here.point.S - before.here.point.S
    turn = after.gradient - before.gradient
    curvature = float(np.vdot(change, turn))
    return after, float(np.vdot(change, change)) / curvature if curvature > 0 else 2 * length
