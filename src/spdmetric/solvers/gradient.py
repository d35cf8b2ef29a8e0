"""Steepest descent along geodesics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spdmetric.solvers.protocols import Evaluation, Manifold, Objective
from spdmetric.solvers.result import Callback, Solution
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
    return Run(objective, manifold, tol, max_iter, callback).minimize(start, here, SteepestDescent)


@dataclass(eq=False)
class SteepestDescent:
    """Steps along the gradient, each of a length that the last one suggests."""

    length: float | None = None

    def advance(self, run: Run, iterate: Iterate) -> Iterate | None:
        """Shorten a first guess of the step until the value falls enough (Armijo)."""
        here, manifold = iterate.here, run.manifold
        direction = -iterate.gradient if iterate.active else -here.point.riemannian_gradient(iterate.gradient)
        move = manifold.retract if iterate.active else manifold.geodesic
        slope = float(np.vdot(iterate.gradient, direction))
        if iterate.active:
            longest = manifold.radius / float(np.linalg.norm(direction))
        else:  # minus the slope is the square of the affine-invariant length of the direction
            longest = min(manifold.radius, _LONGEST) / np.sqrt(-slope)
        t = longest if self.length is None else min(self.length, longest)
        while t > 1e-14 * longest:
            there = run.at(move(here.point, t * direction))
            if there.value <= here.value + 1e-4 * t * slope:
                self.length = t
                return Iterate(there, manifold.radius)
            t /= 3
        return None

    def learn(self, before: Iterate, after: Iterate) -> None:
        """Step length of [Barzilai1988]_ from the last two points, both inside or both on the sphere."""
        if self.length is None or before.active != after.active:
            self.length = None
            return
        change = after.here.point.S - before.here.point.S
        curvature = float(np.vdot(change, after.gradient - before.gradient))
        self.length = float(np.vdot(change, change)) / curvature if curvature > 0 else 2 * self.length
