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
    """The objective of a task, which logs every point with its value."""

    def __init__(self, task: Task):
        self._task = task

    def at(self, point: Any) -> Any:
        self._task.spend()
        here = self._task.objective.at(point)
        self._task.reached(point.S, here.value)
        return here


def solve(task: Task) -> None:
    start = task.ball.point(np.zeros((task.d, task.d)))
    trust_region(_Watched(task), task.ball, start, tol=1e-6, max_iter=10_000)
