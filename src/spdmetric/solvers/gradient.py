"""Steepest descent along geodesics."""

from __future__ import annotations

from typing import Any

import numpy as np

from spdmetric.solvers.protocols import Evaluation, Manifold, Objective
from spdmetric.solvers.result import Callback, Solution, Status
from spdmetric.solvers.run import Iterate, Run

# Along a geodesic of P_d eigenvalues grow exponentially: no step inside the ball is longer.
_LONGEST = 10.0


def geodesic_gradient(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    here: Evaluation | None = None,
) -> Solution:
    """Minimize on a ball by steepest descent along geodesics, Eq. (6) of [Yger2015]_.

    Inside the ball each step follows the geodesic of the affine-invariant gradient.  On the sphere, where
    geodesics of P_d leave the ball, it follows a great circle in normal coordinates.  Steps are those of
    [Barzilai1988]_, shortened until the value falls: rounding limits the residual to about 1e-8.

    Parameters and return value are those of `trust_region`.
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    first = iterate = Iterate(run.at(start, here), manifold.radius)
    length = None
    while True:
        status = run.ends(iterate)
        if status is Status.CONVERGED and first.distance == 0 and iterate.here.value > first.here.value:
            # Far from the center every gradient is small, and the value may be higher than there.
            iterate, length = first, None
        elif status is not None:
            break
        if iterate.distance == 0:
            after = run.first_step(manifold, iterate)
        else:
            there, length = _descend(iterate, run, manifold, length)
            after = None if there is None else Iterate(there, manifold.radius)
        if after is None:
            status = Status.STALLED
            break
        length = _next_length(iterate, after, length)
        iterate = after
    return run.solution(iterate if iterate.here.value <= first.here.value else first, status)


def _descend(
    iterate: Iterate, run: Run, manifold: Manifold, length: float | None
) -> tuple[Evaluation | None, float]:
    """Shorten a first guess of the step until the value falls enough (Armijo)."""
    here = iterate.here
    direction = -iterate.gradient if iterate.active else -here.point.riemannian_gradient(iterate.gradient)
    move = manifold.retract if iterate.active else manifold.geodesic
    slope = float(np.vdot(iterate.gradient, direction))
    if iterate.active:
        longest = manifold.radius / float(np.linalg.norm(direction))
    else:  # minus the slope is the square of the affine-invariant length of the direction
        longest = min(manifold.radius, _LONGEST) / np.sqrt(-slope)
    t = longest if length is None else min(length, longest)
    while t > 1e-14 * longest:
        there = run.at(move(here.point, t * direction))
        if there.value <= here.value + 1e-4 * t * slope:
            return there, t
        t /= 3
    return None, t


def _next_length(before: Iterate, after: Iterate, length: float | None) -> float | None:
    """Step length of [Barzilai1988]_ from the last two points, both inside or both on the sphere."""
    if length is None or before.active != after.active:
        return None
    change = after.here.point.S - before.here.point.S
    curvature = float(np.vdot(change, after.gradient - before.gradient))
    return float(np.vdot(change, change)) / curvature if curvature > 0 else 2 * length
