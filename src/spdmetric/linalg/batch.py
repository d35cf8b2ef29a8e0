"""Stacks of SPD matrices as the objective sees them: decomposed at a factor, cotangents pulled back.

There are two kinds: in NumPy, to be read and to judge by, and compiled
(`spdmetric.linalg.compiled`), to be fast.  `stack_of` is the only place that chooses, by the sizes
and the environment's settings alone; the results agree to some 1e-12.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spdmetric.linalg import compiled
from spdmetric.linalg.moments import Moments, moments_of
from spdmetric.linalg.symmetric import LogCongruence, Spectrum, transpose, unvech, vech

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
        n, (m, d) = self.X.shape[0], W.shape
        WX = np.empty((n, m, d)) if 2 * m <= d else None  # kept where that needs little memory
        logs, vectors, features = np.empty((n, m)), np.empty((n, m, m)), np.empty((n, m * (m + 1) // 2))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for rows in _groups(n, m):
                of_rows = np.matmul(W, self.X[rows], out=None if WX is None else WX[rows])
                values, V = _eigh(_half_product(of_rows, W.T, lower=True))
                logs[rows], vectors[rows] = np.log(values), V
                features[rows] = vech(_half_product(V * logs[rows, None, :], transpose(V), lower=False))
        return PlainDecomposition(self.X, W, LogCongruence(Spectrum(logs, vectors)), features, WX)


class PlainDecomposition:
    """A stack in NumPy, decomposed at W."""

    def __init__(
        self,
        X: np.ndarray,
        W: np.ndarray,
        log: LogCongruence,
        features: np.ndarray,
        WX: np.ndarray | None = None,
    ):
        self._X, self._W, self.log = X, W, log
        self.features = features  # (n, p)
        self._WX = WX  # (n, m, d)

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
        """Derivative of ``sum <rows, features>`` along ``W -> exp(-xi/2) W``.

        As `LogCongruence.pull`.  Large matrices go by triangles: with ``M = N + N'``, ``V' M V`` is the
        sum of ``V' N V`` and its transpose.
        """
        (logs, vectors), m = self.log.log, self._W.shape[0]
        if len(_bands(m)) == 1:
            return self.log.pull(unvech(rows))
        half, total = np.triu(np.ones((m, m))) - np.eye(m) / 2, np.zeros((m, m))
        for row, log, V in zip(rows, logs, vectors, strict=True):
            E = V.T @ _triangle_times(half * unvech(row), V)
            N = np.zeros_like(E)
            for band in _bands(m):
                both = E[band, band.start :] + E[band.start :, band].T
                both *= _h(log[band, None], log[band.start :])
                N[band, band.start :] = both * half[band, band.start :]
            total -= V @ _triangle_times(N, V.T)
        return total + total.T

    def pull_factor(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` in the entries of W."""
        return self.log.pull_factor(unvech(rows), self._W @ self._X if self._WX is None else self._WX)


# ---------------------------------------------------------------------------
# Products that are triangular or symmetric, in bands of rows: large matrices need little more than half
# the operations.


def _eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of a stack; NaN for a matrix that LAPACK gives up on, for that one alone."""
    try:
        return np.linalg.eigh(A)
    except np.linalg.LinAlgError:
        if len(A) == 1:
            return np.full(A.shape[:2], np.nan), np.full(A.shape, np.nan)
        values, vectors = zip(*map(_eigh, np.array_split(A, 2)), strict=True)
        return np.concatenate(values), np.concatenate(vectors)


def _groups(n: int, m: int) -> list[slice]:
    """Matrices of size m to work on at a time: their temporaries stay in the cache."""
    size = max(1, 40_000 // m**2)
    return [slice(k, min(k + size, n)) for k in range(0, n, size)]


@lru_cache(maxsize=32)
def _bands(m: int) -> list[slice]:
    """Rows in bands of about a hundred."""
    number = max(1, round(m / 100))
    return [slice(m * k // number, m * (k + 1) // number) for k in range(number)]


def _half_product(A: np.ndarray, B: np.ndarray, *, lower: bool) -> np.ndarray:
    """Lower or upper triangles of the products A B; beyond them there is something else."""
    bands = _bands(A.shape[-2])
    if len(bands) == 1:
        return A @ B
    out = np.zeros((*A.shape[:-1], B.shape[-1]))
    for band in bands:
        columns = slice(0, band.stop) if lower else slice(band.start, None)
        np.matmul(A[..., band, :], B[..., columns], out=out[..., band, columns])
    return out


def _triangle_times(N: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The product N B of upper triangular N."""
    out = np.empty_like(N)
    for band in _bands(N.shape[-1]):
        np.matmul(N[band, band.start :], B[band.start :], out=out[band])
    return out


# t coth(t/2) / 2 = 1 + t^2 / 12 - ...: up to a gap of 1/4 these terms leave 1e-17.
_SERIES = (1.0, 1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160)


def _h(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`LogCongruence.h` of log-eigenvalues, without a transcendental function of each gap t.

    Far from 0 it is ``(t / 2) (a + b) / (a - b)`` with a and b the eigenvalues; near, that would lose digits.
    """
    t = x - y
    near = np.abs(t) <= 0.25
    a, b = np.exp(x), np.exp(y)
    h = a - b
    h[near] = 1.0
    np.divide(a + b, h, out=h)
    h *= t
    h *= 0.5
    square = t[near] ** 2
    h[near] = reduce(lambda total, c: total * square + c, reversed(_SERIES))
    return h
