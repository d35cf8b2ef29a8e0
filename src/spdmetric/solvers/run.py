"""The bookkeeping that all solvers share."""

from __future__ import annotations

import time

from spdmetric.solvers.constraint import Iterate, norm
from spdmetric.solvers.protocols import Evaluation, Manifold, Objective, Point
from spdmetric.solvers.result import Callback, Record, Solution, Status


class Run:
    """The bookkeeping that all solvers share: counting evaluations, history, when to stop."""

    def __init__(self, objective: Objective, *, tol: float, max_iter: int, callback: Callback | None = None):
        self._objective, self.evaluations = objective, 0
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.history: list[Record] = []
        self._share = 1.0  # of the radius, that the next step from the center is to take
        self._began = time.perf_counter()

    def at(self, point: Point, known: Evaluation | None = None) -> Evaluation:
        """Evaluate the objective, unless that is known, and count it."""
        self.evaluations += 1
        return self._objective.at(point) if known is None else known

    def ends(self, iterate: Iterate) -> Status | None:
        """Record an iterate; return a status if the run is over."""
        record = Record(
            iteration=len(self.history),
            value=iterate.here.value,
            residual=iterate.residual,
            distance=iterate.distance,
            evaluations=self.evaluations,
            seconds=time.perf_counter() - self._began,
        )
        self.history.append(record)
        stop = self.callback is not None and self.callback(record) is True
        # The center of the ball is nearly a saddle: a small gradient there says nothing.
        waits = iterate.inside and iterate.distance == 0 and iterate.gradient.any()
        if iterate.residual <= self.tol and not waits:
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        return Status.MAX_ITER if record.iteration >= self.max_iter else None

    def first_step(self, manifold: Manifold, center: Iterate) -> Iterate | None:
        """From the center to the sphere, along the gradient or against it: where the value is lower.

        It need not be lower than at the center.  To first order the function is the same at S and at -S, so
        the gradient there tells little of how far to go, and shortening the step until the value falls would
        leave a run close to where it began, the closer the more alike the matrices are.  A run that comes
        `is_worse_than_start` takes half the step.
        """
        here, g = center.here, center.gradient
        step = (self._share * manifold.radius / norm(g)) * g
        self._share /= 2
        while norm(step) > 1e-3 * manifold.radius:
            both = [self.at(manifold.retract(here.point, sign * step)) for sign in (-1, 1)]
            there = min(both, key=lambda evaluation: evaluation.value)
            if there.value < 1:  # there is some gain, and the value is a number
                return Iterate(there, manifold.radius)
            step = step / 2
        return None

    def is_worse_than_start(self, status: Status | None, iterate: Iterate, first: Iterate) -> bool:
        """Whether a run rests where the value is higher than at the center that it came from.

        Far from the center all is flat: there every gradient is small.
        """
        return status is Status.CONVERGED and first.distance == 0 and iterate.here.value > first.here.value

    def probe_sphere(self, manifold: Manifold, iterate: Iterate) -> Iterate | None:
        """Where a run that has come to rest inside the ball goes on, if the value is lower on the sphere.

        A small gradient inside may be that of a saddle: the sphere is tried in the direction of the point.
        """
        S = iterate.here.point.S
        step = (manifold.radius / iterate.distance - 1) * S
        there = self.at(manifold.retract(iterate.here.point, step))
        return Iterate(there, manifold.radius) if there.value < iterate.here.value else None

    def solution(self, iterate: Iterate, status: Status) -> Solution:
        return Solution(
            iterate.here.point,
            iterate.here.value,
            status,
            iterate.residual,
            iterate.multiplier,
            tuple(self.history),
            iterate.here,
        )
