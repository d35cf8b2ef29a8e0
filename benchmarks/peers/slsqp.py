"""SciPy's SLSQP on the vectors of S, with our gradient and the ball as a constraint."""

from __future__ import annotations

import numpy as np

from benchmarks.task import Task
from spdmetric.linalg.symmetric import unvech, vech

TITLE = "SciPy SLSQP"
REQUIRES = ("scipy",)
GROUPS = ("fit",)
CONSTRAINED = True


def solve(task: Task) -> None:
    from scipy.optimize import minimize

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = task.evaluate(unvech(v))
        return value, vech(gradient)

    inside = {"type": "ineq", "fun": lambda v: task.radius**2 - v @ v, "jac": lambda v: -2 * v}
    start = np.zeros(task.d * (task.d + 1) // 2)
    # SciPy's default of 1e-6 takes the near-saddle at the center for the optimum.
    options = {"ftol": 1e-9, "maxiter": 100_000}
    minimize(value_and_gradient, start, jac=True, method="SLSQP", constraints=[inside], options=options)
