"""Pymanopt's conjugate gradient on the SPD matrices, with torch's automatic derivatives.

It knows no constraint: what counts is the best point that it visits inside the ball.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers._torch_alignment import problem_of
from benchmarks.task import Task

TITLE = "pymanopt conjugate gradient"
REQUIRES = ("pymanopt", "torch")
GROUPS = ("fit",)
CONSTRAINED = False


def solve(task: Task) -> None:
    from pymanopt.optimizers import ConjugateGradient

    optimizer = ConjugateGradient(max_iterations=100_000, max_time=1e9, min_gradient_norm=1e-6, verbosity=0)
    with np.errstate(all="ignore"):  # it divides by nought when a search ends, and goes on
        optimizer.run(problem_of(task), initial_point=np.eye(task.d))
