"""Stacks of SPD matrices as the objective sees them: decomposed at a factor, cotangents pulled back.

There are two kinds: in NumPy, to be read and to judge by, and compiled
(`spdmetric.linalg.compiled`), to be fast.  `stack_of` is the only place that chooses, by the sizes
and the environment's settings alone; the results agree to some 1e-12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spdmetric.linalg import compiled
from spdmetric.linalg.lazy import lazy
from spdmetric.linalg.moments import Moments, moments_of
from spdmetric.linalg.symmetric import LogCongruence, congruence, unvech, vech

if TYPE_CHECKING:
    from spdmetric.linalg.compiled.stack import CompiledDecomposition, CompiledStack

Stack: TypeAlias = "PlainStack | CompiledStack"
Decomposition: TypeAlias = "PlainDecomposition | CompiledDecomposition"


def stack_of(X: np.ndarray, n: int | None = None) -> Stack:
    """Return the stack for n matrices of this size, X among them.

    Without n the kind depends on the size of the matrices alone: what is computed of a matrix then
    is the same in whatever company it comes.
    """
    return compiled.load().of(X) if compiled.pays(n, X.shape[1]) else PlainStack(X)


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
        self.features: np.ndarray = vech(log.log.compose(log.log.values))  # (n, p)

    @property
    def spread(self) -> np.ndarray:
        """Largest less smallest log-eigenvalue of each matrix, (n,)."""
        values = self.log.log.values
        return values[:, -1] - values[:, 0]

    def moments(self, Y: np.ndarray, weight: np.ndarray, *, gram: bool) -> Moments:
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
