"""Stacks of symmetric matrices: one eigendecomposition, functions of it, exact derivatives.

Shapes follow one grammar: ``(..., d, d)`` for a stack, ``(..., d)`` for its
eigenvalues, ``(..., d(d+1)/2)`` for its vectors.  Every function takes the array
namespace of its input, so NumPy arrays and tensors are treated alike.

Derivatives are written with divided differences.  Their textbook form
``(f(a) - f(b)) / (a - b)`` loses all digits when eigenvalues meet, so each is in a form
that has no cancellation at any gap (see ``docs/math.md``).
"""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import array_api_compat
import numpy as np
from array_api_compat import device, is_numpy_array, is_torch_array

Array = Any


def array_namespace(*arrays: Array) -> Any:
    """Array namespace of the input; that of NumPy arrays, the common case, at once."""
    for array in arrays:
        if type(array) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return np


# ---------------------------------------------------------------------------
# One eigendecomposition


class Spectrum(NamedTuple):
    """Eigenvalues (ascending) and eigenvectors of a stack of symmetric matrices."""

    values: Array  # (..., d)
    vectors: Array  # (..., d, d), one eigenvector a column

    def compose(self, values: Array) -> Array:
        """Return ``V diag(values) V'``: a function of the matrices, given on the spectrum."""
        return (self.vectors * values[..., None, :]) @ self.vectors.mT

    def rotate(self, E: Array) -> Array:
        """Return ``V' E V``: symmetric ``E`` in the eigenbases."""
        return self.vectors.mT @ E @ self.vectors

    def restore(self, E: Array) -> Array:
        """Return ``V E V'``, the inverse of `rotate`."""
        return self.vectors @ E @ self.vectors.mT


def spectrum(S: Array) -> Spectrum:
    """Eigendecomposition of each matrix of a stack (the lower triangle is read)."""
    values, vectors = array_namespace(S).linalg.eigh(S)
    return Spectrum(values, vectors)


def symmetrize(A: Array) -> Array:
    """Symmetric part of each matrix of a stack."""
    return (A + A.mT) / 2


def congruence(W: Array, X: Array) -> Array:
    """Return ``W X W'`` for each matrix of a stack, exactly symmetric."""
    return symmetrize(W @ X @ W.mT)


# ---------------------------------------------------------------------------
# Functions of symmetric matrices


def expm(S: Array) -> Array:
    """Exponential of symmetric matrices."""
    s = spectrum(S)
    return s.compose(array_namespace(S).exp(s.values))


def logm(X: Array) -> Array:
    """Logarithm of SPD matrices."""
    s = spectrum(X)
    return s.compose(array_namespace(X).log(s.values))


def powm(X: Array, exponent: float) -> Array:
    """Real power of SPD matrices."""
    s = spectrum(X)
    return s.compose(s.values**exponent)


def sqrtm(X: Array) -> Array:
    """Square root of SPD matrices."""
    return powm(X, 0.5)


def invsqrtm(X: Array) -> Array:
    """Inverse square root of SPD matrices."""
    return powm(X, -0.5)


# ---------------------------------------------------------------------------
# Vectors: the upper triangle, row by row, off-diagonal entries times sqrt(2),
# so that Euclidean and Frobenius geometry are the same.


@lru_cache(maxsize=32)
def _triangle(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where each vector entry sits in the flat matrix, its weight, and the way back."""
    i, j = np.triu_indices(d)
    back = np.empty((d, d), dtype=np.int64)
    back[i, j] = back[j, i] = np.arange(i.size)
    return i * d + j, np.where(i == j, 1.0, sqrt(2.0)), back.ravel()


def like(constant: np.ndarray, x: Array) -> Array:
    """Return a constant in the namespace of ``x``, and in its dtype where both are floats."""
    if is_numpy_array(x):
        both = constant.dtype.kind == x.dtype.kind == "f"
        return constant.astype(x.dtype, copy=False) if both else constant
    dtype = None if constant.dtype.kind == "i" else x.dtype
    return array_namespace(x).asarray(constant, dtype=dtype, device=device(x))


def beside(A: Array, X: Array) -> Array:
    """Return ``A`` where ``X`` is: a NumPy array beside a tensor becomes one, all else stays."""
    return like(A, X) if is_numpy_array(A) and not is_numpy_array(X) else A


def detached(X: Array) -> Array:
    """Return an array for numbers that are read, not differentiated: torch asks to be told."""
    return X.detach() if is_torch_array(X) else X


def vech(S: Array) -> Array:
    """Vectors of symmetric matrices; Euclidean distances are Frobenius distances."""
    d = S.shape[-1]
    xp = array_namespace(S)
    place, weight, _ = _triangle(d)
    flat = xp.reshape(S, (*S.shape[:-2], d * d))
    return xp.take(flat, like(place, S), axis=-1) * like(weight, S)


def unvech(v: Array) -> Array:
    """Symmetric matrices of vectors: the inverse of `vech`."""
    d = triangular_root(v.shape[-1])
    xp = array_namespace(v)
    _, weight, back = _triangle(d)
    flat = xp.take(v / like(weight, v), like(back, v), axis=-1)
    return xp.reshape(flat, (*v.shape[:-1], d, d))


def triangular_root(p: int) -> int:
    """Return d with ``d (d + 1) / 2 = p``, or say that there is none."""
    d = (int(sqrt(8 * p + 1)) - 1) // 2
    if d < 1 or d * (d + 1) // 2 != p:
        raise ValueError(
            f"A vector of length {p} is not the upper triangle of a symmetric matrix: "
            "expected length d(d+1)/2, that is 1, 3, 6, 10, 15, ..."
        )
    return d


# ---------------------------------------------------------------------------
# Two even functions without cancellation; in place of zeros, numbers so small that they take their limits


def sinhc(u: Array) -> Array:
    """``sinh(u) / u``."""
    xp = array_namespace(u)
    u = xp.where(u == 0, 1e-30, u)
    return xp.sinh(u) / u


def ucothu(u: Array) -> Array:
    """``u coth(u)``: smooth, at least 1, and ``1 + u**2 / 3`` near zero."""
    xp = array_namespace(u)
    u = xp.where(u == 0, 1e-30, u)
    return u / xp.tanh(u)


# ---------------------------------------------------------------------------
# The divided difference of the exponential: its derivative on matrices (Daleckii and Krein)


def exp_slope(x: Array, y: Array) -> Array:
    """First divided difference ``exp[x, y]``, free of cancellation."""
    return array_namespace(x).exp((x + y) / 2) * sinhc((x - y) / 2)


# ---------------------------------------------------------------------------
# The logarithm along a congruence
#
# For a stack A, let L(xi) = log(exp(-xi/2) A exp(-xi/2)).  Moving W to exp(-xi/2) W moves
# log(W X W') this way, and moves G = (W'W)^-1 along the geodesic that leaves it in
# direction xi.  In the eigenbasis of A the first derivative is multiplication by
# -h(t), t the gaps of the log-eigenvalues, h(t) = (t/2) coth(t/2).


class LogCongruence(NamedTuple):
    """``log A`` and its derivatives in xi, where A becomes ``exp(-xi/2) A exp(-xi/2)``."""

    log: Spectrum  # log-eigenvalues and eigenvectors of A

    @classmethod
    def of(cls, A: Array) -> LogCongruence:
        s = spectrum(A)
        return cls(Spectrum(array_namespace(A).log(s.values), s.vectors))

    def push(self, eta: Array) -> Array:
        """Derivative of ``log A`` along ``eta``; it is its own adjoint."""
        x, V = self.log
        h = ucothu((x[..., :, None] - x[..., None, :]) / 2)
        return V @ (-h * (V.mT @ eta @ V)) @ V.mT

    def pull_factor(self, M: Array, WX: Array) -> Array:
        """Derivative in W of ``sum <M, log(W X W')>``, given the products W X: ``2 sum D log[M] W X``."""
        xp, x = array_namespace(M), self.log.values
        root = xp.exp(-x / 2)
        slope = root[..., :, None] * root[..., None, :] / sinhc((x[..., :, None] - x[..., None, :]) / 2)
        B = self.log.restore(slope * self.log.rotate(M))  # (n, m, m)
        return 2 * xp.tensordot(B, WX, axes=((0, 2), (0, 1)))
