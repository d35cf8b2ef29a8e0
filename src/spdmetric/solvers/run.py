"""The bookkeeping that all solvers share."""

from __future__ import annotations

import time

import numpy as np

from spdmetric.solvers.constraint import Iterate
from spdmetric.solvers.protocols import Evaluation, Objective, Point
from spdmetric.solvers.solution import Callback, Record, Solution, Status


class Counted:
    """An objective that counts its evaluations."""

    def __init__(self, objective: Objective):
        self._objective = objective
        self.count = 0

    def at(self, point: Point) -> Evaluation:
        self.count += 1
        return self._objective.at(point)

    def hvp(self, here: Evaluation, eta: np.ndarray) -> np.ndarray:
        self.count += 1
        return here.hvp(eta)


class Run:
    """The bookkeeping that all solvers share: counting, history, when to stop."""

    def __init__(self, objective: Objective, *, tol: float, max_iter: int, callback: Callback | None = None):
        self.objective = Counted(objective)
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.history: list[Record] = []
        self._began = time.perf_counter()

    def ends(self, iterate: Iterate) -> Status | None:
        """Record an iterate; return a status if the run is over."""
        record = Record(
            iteration=len(self.history),
            value=iterate.here.value,
            residual=iterate.residual,
            distance=iterate.distance,
            evaluations=self.objective.count,
            seconds=time.perf_counter() - self._began,
        )
        self.history.append(record)
        stop = self.callback is not None and self.callback(record) is True
        if iterate.residual <= self.tol:
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        return Status.MAX_ITER if record.iteration >= self.max_iter else None

    def solution(self, iterate: Iterate, status: Status) -> Solution:
        return Solution(
            iterate.here.point,
            iterate.here.value,
            status,
            iterate.residual,
            iterate.multiplier,
            tuple(self.history),
        )
