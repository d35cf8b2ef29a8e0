"""SciPy's trust-constr on the vectors of S, with our gradient, BFGS curvature and the ball constraint."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.task import Task
from spdmetric.linalg.symmetric import unvech, vech

TITLE = "SciPy trust-constr"
REQUIRES = ("scipy",)
GROUPS = ("fit",)
CONSTRAINED = True


def solve(task: Task) -> None:
    from scipy.optimize import BFGS, NonlinearConstraint, minimize

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = task.evaluate(unvech(v))
        return value, vech(gradient)

    p = task.d * (task.d + 1) // 2
    ball = NonlinearConstraint(
        lambda v: v @ v,
        -np.inf,
        task.radius**2,
        jac=lambda v: 2 * v,
        hess=lambda v, multiplier: 2 * multiplier[0] * np.eye(p),
    )
    with warnings.catch_warnings():
        # BFGS says when it skips an update; that is its business.
        warnings.filterwarnings("ignore", "delta_grad == 0.0", UserWarning)
        minimize(
            value_and_gradient,
            np.zeros(p),
            jac=True,
            hess=BFGS(),
            method="trust-constr",
            constraints=[ball],
            options={"gtol": 1e-6, "xtol": 1e-9, "maxiter": 100_000},
        )
