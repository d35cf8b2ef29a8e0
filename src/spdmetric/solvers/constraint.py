"""The ball as a constraint: where its interior is free, and where its sphere is followed."""

from __future__ import annotations

from math import sqrt

import numpy as np

from spdmetric.solvers.protocols import Evaluation


def norm(v: np.ndarray) -> float:
    """Euclidean norm of all entries; for small arrays in half the time of NumPy's."""
    return sqrt(np.vdot(v, v))


class Iterate:
    """An evaluation, and what the ball makes of it.

    It is ``inside`` where the sphere is further out, and ``active`` where the next step follows the
    sphere: then the ``gradient`` is tangent to it, and ``curvature`` is what it adds to the Hessian.
    The ``residual`` of the conditions of Karush, Kuhn and Tucker has no unit: by how much of itself the
    gain ``1 - value`` would change, to first order, over the radius of the ball.
    """

    def __init__(self, here: Evaluation, radius: float):
        self.here = here
        S = here.point.S
        g = here.gradient if radius > 0 else np.zeros_like(S)  # a ball of one point has no way down
        self.distance = norm(S)
        on_sphere = 0 < radius <= self.distance * (1 + 1e-9)  # as far as rounding can tell
        slope = -float(np.vdot(g, S)) / radius**2 if on_sphere else 0.0
        self.multiplier = max(slope, 0.0)
        gain = 1.0 - here.value
        length = here.point.norm(g + self.multiplier * S)
        # Where the labels tell nothing at all, there is neither a gain nor a direction to look for one.
        self.residual = 0.0 if length == 0 else radius * length / gain if gain > 0 else np.inf
        self.inside = not on_sphere and self.distance < radius
        # With a negative multiplier the way down leads inward; it is taken once it is the
        # main way down, so that rounding cannot make a run leave and meet the sphere in turns.
        along = g + slope * S
        self.active = on_sphere and (slope >= 0 or norm(along) > -slope * radius)
        self.curvature = slope if self.active else 0.0
        self.normal = S / self.distance if self.active else None
        self.gradient = along if self.active else g

    def tangent(self, v: np.ndarray) -> np.ndarray:
        """Project onto the directions of the next step."""
        return v if self.normal is None else v - np.vdot(self.normal, v) * self.normal

    def reach(self, step: np.ndarray, radius: float) -> float:
        """Share of a step that stays in the ball; steps along the sphere are brought back instead."""
        if self.active:
            return 1.0
        S = self.here.point.S
        a, b, c = np.vdot(step, step), np.vdot(S, step), np.vdot(S, S) - radius**2
        if a + 2 * b + c <= 0:
            return 1.0
        return float(max(0.0, (-b + sqrt(max(b * b - a * c, 0.0))) / a))
