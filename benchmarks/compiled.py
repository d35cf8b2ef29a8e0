"""The seam to the compiled kernels: whether they are in use, and on how many threads."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.outcomes import Absent
from benchmarks.processes import SWITCH
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data, LazyStack


def kernels_used() -> bool:
    """Whether this process has loaded the kernels, by what it did and not by what is installed."""
    return "spdmetric.linalg.compiled.kernels" in sys.modules


def load_kernels() -> None:
    """Evaluate once with the kernels, if there are any and the environment does not forbid them.

    What loading takes is the matter of `benchmarks.cases.process`.
    """
    wish = os.environ.get(SWITCH)
    if wish == "0":
        return
    os.environ[SWITCH] = "1"
    try:
        X = np.exp(np.arange(1.0, 5.0))[:, None, None] * np.eye(2)
        X[::2, 0, 0] *= 2
        objective = Misalignment(Data(X, ClassTarget.from_codes(np.array([0, 1, 0, 1]))))
        _ = objective.at(Ball(np.eye(2), 1.0).point(np.diag([0.1, -0.1]))).gradient
    finally:
        if wish is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = wish


def recomputing(X: np.ndarray, target: ClassTarget) -> Misalignment:
    """The objective of matrices that are read anew in each pass: no decomposition is kept."""
    return Misalignment(Data(LazyStack(X.shape, lambda rows: X[rows]), target))


def threaded(X: np.ndarray, target: ClassTarget, threads: int) -> Misalignment:
    """The objective with its chunks mapped over threads; `Absent` without kernels, which release the lock."""
    if not kernels_used():
        raise Absent("no compiled kernels were loaded: NumPy gains little from threads")
    if threads == 1:
        return Misalignment(Data(X, target))
    return Misalignment(Data(X, target, map=ThreadPoolExecutor(threads).map))
