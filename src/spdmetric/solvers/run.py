"""What all solvers share: the ball as a constraint, and the loop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Protocol

import numpy as np

from spdmetric.solvers.protocols import Evaluation, Manifold, Objective
from spdmetric.solvers.result import Callback, Record, Solution, Status


def norm(v: np.ndarray) -> float:
    """Euclidean norm of all entries; for small arrays in half the time of NumPy's."""
    return sqrt(np.vdot(v, v))


class Iterate:
    """An evaluation, and what the ball makes of it.

    It is ``inside`` where the sphere is further out, and ``active`` where the next step follows the sphere:
    then the ``gradient`` is tangent to it. The KKT ``residual`` has no unit: by how much of itself the gain
    ``1 - value`` would change over the radius.
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
        self.normal = S / self.distance if self.active else None
        self.gradient = along if self.active else g

    def tangent(self, v: np.ndarray) -> np.ndarray:
        """Project onto the directions of the next step."""
        return v if self.normal is None else v - np.vdot(self.normal, v) * self.normal


class Method(Protocol):
    """How to go on from an iterate, and what to learn of each step."""

    def advance(self, run: Run, iterate: Iterate) -> Iterate | None: ...
    def learn(self, before: Iterate, after: Iterate) -> None: ...


@dataclass(eq=False)
class Run:
    """The loop that the solvers share: counting evaluations, history, when to stop."""

    objective: Objective
    manifold: Manifold
    tol: float
    max_iter: int
    callback: Callback | None = None
    evaluations: int = field(default=0, init=False)
    history: list[Record] = field(default_factory=list, init=False)
    share: float = field(default=1.0, init=False)  # of the radius, that the next step from the center takes
    began: float = field(default_factory=time.perf_counter, init=False)

    def minimize(self, start: Any, here: Evaluation | None, begin: Callable[[], Method]) -> Solution:
        """Go on from the start, where the evaluation may be known, until the run is over."""
        first = iterate = Iterate(self.at(start) if here is None else here, self.manifold.radius)
        method, self.evaluations = begin(), 1
        while True:
            status = self.ends(iterate)
            if status is Status.CONVERGED and first.distance == 0 and iterate.here.value > first.here.value:
                # Far from the center every gradient is small, and the value may be higher than there.
                iterate, method, status = first, begin(), None
            if status is None and iterate.distance == 0:
                after = self.first_step(iterate)
            elif status is None:
                after = method.advance(self, iterate)
            elif status is Status.CONVERGED and iterate.inside and iterate.distance > 0:
                after = self.probe_sphere(iterate)
            else:
                break
            if after is None:
                status = status or Status.STALLED
                break
            if after is not iterate:
                method.learn(iterate, after)
            iterate = after
        # The first step need not have been an improvement; in the end there must be one.
        return self.solution(iterate if iterate.here.value <= first.here.value else first, status)

    def at(self, point: Any) -> Evaluation:
        """Evaluate the objective, and count it."""
        self.evaluations += 1
        return self.objective.at(point)

    def ends(self, iterate: Iterate) -> Status | None:
        """Record an iterate; return a status if the run is over."""
        n, seconds = len(self.history), time.perf_counter() - self.began
        record = Record(n, iterate.here.value, iterate.residual, iterate.distance, self.evaluations, seconds)
        self.history.append(record)
        stop = self.callback is not None and self.callback(record) is True
        # The center of the ball is nearly a saddle: a small gradient there says nothing.
        waits = iterate.inside and iterate.distance == 0 and iterate.gradient.any()
        if iterate.residual <= self.tol and not waits:
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        return Status.MAX_ITER if record.iteration >= self.max_iter else None

    def first_step(self, center: Iterate) -> Iterate | None:
        """From the center to the sphere, along the gradient or against it: where the value is lower.

        It need not be lower than at the center: shortening the step until it is would leave a run close to
        where it began.  A run that comes to rest above the center takes half the step.
        """
        here, g, manifold = center.here, center.gradient, self.manifold
        step = (self.share * manifold.radius / norm(g)) * g
        self.share /= 2
        while norm(step) > 1e-3 * manifold.radius:
            both = [self.at(manifold.retract(here.point, sign * step)) for sign in (-1, 1)]
            there = min(both, key=lambda evaluation: evaluation.value)
            if there.value < 1:  # there is some gain, and the value is a number
                return Iterate(there, manifold.radius)
            step = step / 2
        return None

    def probe_sphere(self, iterate: Iterate) -> Iterate | None:
        """From where a run rests inside, maybe at a saddle, to the sphere if the value is lower."""
        step = (self.manifold.radius / iterate.distance - 1) * iterate.here.point.S
        there = self.at(self.manifold.retract(iterate.here.point, step))
        return Iterate(there, self.manifold.radius) if there.value < iterate.here.value else None

    def solution(self, iterate: Iterate, status: Status) -> Solution:
        here, history = iterate.here, tuple(self.history)
        return Solution(here.point, here.value, status, iterate.residual, iterate.multiplier, history, here)
