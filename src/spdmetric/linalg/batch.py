"""Stacks of SPD matrices as the objective sees them: decomposed at a factor, cotangents pulled back.

One protocol, two ways to meet it: in NumPy, to be read and to judge by, and compiled
(`spdmetric.linalg.compiled`), to be fast.  `stack_of` is the only place that chooses; the results
agree to some 1e-12.
"""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np

from spdmetric.linalg import compiled
from spdmetric.linalg.lazy import lazy
from spdmetric.linalg.symmetric import LogCongruence, congruence, unvech, vech

# weight, mean, target_mean, A, C: the fields of `spdmetric.objectives.alignment.Moments`
RawMoments = tuple[float, np.ndarray, np.ndarray, np.ndarray, np.ndarray | float]


class Decomposition(Protocol):
    """``W X W'`` decomposed for all matrices of a stack."""

    @property
    def features(self) -> np.ndarray:
        """``vech(log(W X W'))``, (n, p)."""
        ...

    @property
    def spread(self) -> np.ndarray:
        """Largest less smallest log-eigenvalue of each matrix, (n,)."""
        ...

    @property
    def log(self) -> LogCongruence: ...
    def moments(self, Y: np.ndarray, weight: np.ndarray, *, gram: bool) -> RawMoments: ...
    def cotangents(
        self, mean: np.ndarray, Y: np.ndarray, weight: np.ndarray, right: np.ndarray, across: np.ndarray
    ) -> np.ndarray: ...
    def pull(self, rows: np.ndarray) -> np.ndarray: ...
    def pull_factor(self, rows: np.ndarray) -> np.ndarray: ...


class Stack(Protocol):
    """SPD matrices, ready to be decomposed at many factors."""

    @property
    def d(self) -> int: ...
    def decompose(self, W: np.ndarray) -> Decomposition: ...


def stack_of(X: np.ndarray, n: int | None = None) -> Stack:
    """Return the stack that is fastest for n matrices of this size, X among them.

    Small problems stay with NumPy until the process has loaded the compiled kernels for a
    larger one.  ``SPDMETRIC_COMPILED=0`` in the environment keeps all problems there,
    ``SPDMETRIC_COMPILED=1`` none that the kernels can do.
    """
    n, d = X.shape[0] if n is None else n, X.shape[1]
    return compiled.Stack.of(X) if kernels_pay(n, d) else PlainStack(X)


def kernels_pay(n: int, d: int) -> bool:
    """Whether n matrices of size d are for the kernels: what `stack_of` goes by."""
    wish = os.environ.get("SPDMETRIC_COMPILED")
    return wish != "0" and compiled.pays(n, d, d, warm=True if wish == "1" else None)


class PlainStack:
    """A stack in NumPy."""

    def __init__(self, X: np.ndarray):
        self.X = X

    @property
    def d(self) -> int:
        return self.X.shape[-1]

    def decompose(self, W: np.ndarray) -> PlainDecomposition:
        """Decompose ``W X W'``; where it has left float64 its logarithm is NaN."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return PlainDecomposition(self.X, W, LogCongruence.of(congruence(W, self.X)))


class PlainDecomposition:
    """A stack in NumPy, decomposed at W."""

    def __init__(self, X: np.ndarray, W: np.ndarray, log: LogCongruence):
        self._X, self._W, self.log = X, W, log
        self.features: np.ndarray = vech(log.log.compose(log.log.values))

    @property
    def spread(self) -> np.ndarray:
        values = self.log.log.values
        return values[:, -1] - values[:, 0]

    def moments(self, Y: np.ndarray, weight: np.ndarray, *, gram: bool) -> RawMoments:
        """Moments of features and targets about their means."""
        return moments_of(self.features, Y, weight, gram=gram)

    def cotangents(
        self, mean: np.ndarray, Y: np.ndarray, weight: np.ndarray, right: np.ndarray, across: np.ndarray
    ) -> np.ndarray:
        """Return ``w ((features - mean) right + Y across')``."""
        return weight * ((self.features - mean) @ right + Y @ across.T)

    def pull(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` along ``W -> exp(-xi/2) W``."""
        return self.log.pull(unvech(rows))

    def pull_factor(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` in the entries of W."""
        return self.log.pull_factor(unvech(rows), self._WX)

    @lazy
    def _WX(self) -> np.ndarray:
        return self._W @ self._X


def moments_of(features: np.ndarray, Y: np.ndarray, weight: np.ndarray, *, gram: bool) -> RawMoments:
    """Moments of features and targets about their means; C is 0 where the Gram form replaces it."""
    total = weight.sum()
    mean, target_mean = (weight * features).sum(axis=0) / total, (weight * Y).sum(axis=0) / total
    with np.errstate(invalid="ignore"):
        Phi = features - mean
        weighted = weight * Phi
        C: Any = 0.0 if gram else weighted.T @ Phi
        return float(total), mean, target_mean, weighted.T @ (Y - target_mean), C
