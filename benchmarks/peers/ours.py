"""spdmetric's default solver."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.task import Task
from spdmetric.solvers import trust_region

TITLE = "spdmetric"
REQUIRES = ("spdmetric",)
GROUPS = ("fit",)
CONSTRAINED = True


class _Watched:
    """An evaluation that logs its point once its value is known."""

    def __init__(self, task: Task, point: Any):
        task.spend()
        self._task, self._here, self._logged = task, task.objective.at(point), False
        self.point = point

    @property
    def value(self) -> float:
        value = self._here.value
        if not self._logged:
            self._task.reached(self.point.S, value)
            self._logged = True
        return value

    @property
    def gradient(self) -> np.ndarray:
        gradient = self._here.gradient
        _ = self.value  # known on the way to the gradient
        return gradient

    @property
    def bends(self) -> np.ndarray:
        return self._here.bends

    def hvp(self, eta: np.ndarray) -> np.ndarray:
        self._task.spend()
        return self._here.hvp(eta)


class _WatchedObjective:
    def __init__(self, task: Task):
        self._task = task

    def at(self, point: Any) -> _Watched:
        return _Watched(self._task, point)


def solve(task: Task) -> None:
    start = task.ball.point(np.zeros((task.d, task.d)))
    trust_region(_WatchedObjective(task), task.ball, start, tol=1e-6, max_iter=10_000)
