"""Spectral projected gradient (Birgin, Martinez, Raydan 2000), with our gradient.

The projection onto the ball is a scaling of S.  Steps are those of Barzilai and Borwein, the
line search compares with the worst of the last ten values, and the first step goes to the
sphere, as ours does: as good as a projected gradient gets in a few lines.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from benchmarks.task import Task

TITLE = "projected gradient"
REQUIRES = ("numpy",)
GROUPS = ("fit",)
CONSTRAINED = True


def solve(task: Task, tol: float = 1e-6) -> None:
    S = np.zeros((task.d, task.d))
    value, g = task.evaluate(S)
    length = task.radius / float(np.linalg.norm(g))
    recent = deque([value], maxlen=10)
    while True:
        move = _project(S - length * g, task.radius) - S
        if np.linalg.norm(_project(S - g, task.radius) - S) <= tol:
            return
        found = _search(task, S, g, move, max(recent))
        if found is None:
            return
        new_S, value, new_g = found
        recent.append(value)
        step, turn = new_S - S, new_g - g
        curvature = float(np.vdot(step, turn))
        longest = 10 * task.radius / float(np.linalg.norm(new_g))
        length = min(float(np.vdot(step, step)) / curvature, longest) if curvature > 0 else longest
        S, g = new_S, new_g


def _project(S: np.ndarray, radius: float) -> np.ndarray:
    size = float(np.linalg.norm(S))
    return S if size <= radius else S * (radius / size)


def _search(
    task: Task, S: np.ndarray, g: np.ndarray, move: np.ndarray, worst: float
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Halve the step until the value is low enough; None when rounding ends the search."""
    slope, t = float(np.vdot(g, move)), 1.0
    while t > 1e-10:
        value, gradient = task.evaluate(S + t * move)
        if value <= worst + 1e-4 * t * slope:
            return S + t * move, value, gradient
        t /= 2
    return None
