"""Stacks of symmetric matrices: one eigendecomposition, functions of it, exact derivatives.

Shapes are ``(..., d, d)`` for a stack, ``(..., d)`` for its eigenvalues, ``(..., d(d+1)/2)`` for its vectors.
Every function takes the array namespace of its input, so NumPy arrays and tensors are treated alike.
Derivatives are in a form that has no cancellation where eigenvalues meet (see ``docs/math.md``).
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import array_api_compat
import numpy as np
from array_api_compat import device, is_numpy_array, is_torch_array
from scipy.linalg.blas import dger

Array = Any


if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy:
        """`functools.cached_property` without the lock of Python 3.11, which costs as much as a product."""

        def __init__(self, function):
            self._function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner):
            if instance is None:
                return self
            # Found in the instance's own dictionary, it is not looked for here again.
            value = instance.__dict__[self._name] = self._function(instance)
            return value


def array_namespace(*arrays: Array) -> Any:
    """Array namespace of the input; that of NumPy arrays, the common case, at once."""
    for array in arrays:
        if type(array) is not np.ndarray:
            return array_api_compat.array_namespace(*arrays)
    return np


def is_complex(X: Array) -> bool:
    """Whether an array is of complex numbers."""
    if type(X) is np.ndarray:
        return X.dtype.kind == "c"
    return array_namespace(X).isdtype(X.dtype, "complex floating")


def adjoint(A: Array) -> Array:
    """Transpose of each matrix of a stack, conjugate where it is complex."""
    return array_namespace(A).conj(A.mT) if is_complex(A) else A.mT


def symmetrize(A: Array) -> Array:
    """Symmetric part of each matrix of a stack; the Hermitian one of complex matrices."""
    return (A + adjoint(A)) / 2


def congruence(W: Array, X: Array) -> Array:
    """Return ``W X W'`` for each matrix of a stack, exactly symmetric."""
    return symmetrize(W @ X @ adjoint(W))


# -- Functions of symmetric matrices ------------------------------------------


def compose(values: Array, V: Array) -> Array:
    """Return ``V diag(values) V'`` of eigenvalues (..., d), or functions of them, and eigenvectors."""
    return (V * values[..., None, :]) @ adjoint(V)


def expm(S: Array) -> Array:
    """Exponential of symmetric matrices."""
    xp = array_namespace(S)
    values, V = xp.linalg.eigh(S)
    return compose(xp.exp(values), V)


def logm(X: Array) -> Array:
    """Logarithm of SPD matrices."""
    xp = array_namespace(X)
    values, V = xp.linalg.eigh(X)
    return compose(xp.log(values), V)


def powm(X: Array, exponent: float) -> Array:
    """Real power of SPD matrices."""
    values, V = array_namespace(X).linalg.eigh(X)
    return compose(values**exponent, V)


def sqrtm(X: Array) -> Array:
    """Square root of SPD matrices."""
    return powm(X, 0.5)


def invsqrtm(X: Array) -> Array:
    """Inverse square root of SPD matrices."""
    return powm(X, -0.5)


# -- Vectors: the upper triangle, row by row, off-diagonal entries times sqrt(2),
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
    xp, p = array_namespace(v), v.shape[-1]
    d = (isqrt(8 * p + 1) - 1) // 2
    if d < 1 or d * (d + 1) // 2 != p:
        raise ValueError(
            f"A vector of length {p} is not the upper triangle of a symmetric matrix: "
            "expected length d(d+1)/2, that is 1, 3, 6, 10, 15, ..."
        )
    _, weight, back = _triangle(d)
    flat = xp.take(v / like(weight, v), like(back, v), axis=-1)
    return xp.reshape(flat, (*v.shape[:-1], d, d))


# -- Two even functions without cancellation; in place of zeros, numbers so small that they take their limits


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


# -- The divided difference of the exponential: its derivative on matrices (Daleckii and Krein)


def exp_slope(x: Array, y: Array) -> Array:
    """First divided difference ``exp[x, y]``, free of cancellation."""
    return array_namespace(x).exp((x + y) / 2) * sinhc((x - y) / 2)


# -- Moments of vectors and targets: what the alignment is computed from, chunk by chunk


class Moments(NamedTuple):
    """Moments of a chunk of features about its own means, ready to be merged."""

    weight: float
    mean: np.ndarray  # (p,)
    target_mean: np.ndarray  # (c,)
    A: np.ndarray  # (p, c)
    C: np.ndarray | float  # (p, p), or 0 where the Gram form makes it unnecessary

    def merge(self, other: Moments, *, overwrite: bool = False) -> Moments:
        """Moments of both chunks together [Chan1983]_: no cancellation.

        With ``overwrite`` this C is written over: fresh memory for each merge costs more than the sums.
        """
        weight = self.weight + other.weight
        share = other.weight / weight
        with np.errstate(invalid="ignore"):  # of what has left float64
            step, target_step = other.mean - self.mean, other.target_mean - self.target_mean
            across = (self.weight * share) * step
            C = self.C
            if isinstance(C, np.ndarray):
                C = C if overwrite else C.copy()
                C += other.C
                C = dger(1.0, step, across, a=C.T, overwrite_a=1).T  # in place
            return Moments(
                weight,
                self.mean + share * step,
                self.target_mean + share * target_step,
                self.A + other.A + np.outer(across, target_step),
                C,
            )


class Summary(NamedTuple):
    """What is sent from where the moments are: p c numbers instead of p^2."""

    weight: float
    mean: np.ndarray  # (p,)
    A: np.ndarray  # (p, c)
    C_norm: float
    C_trace: float

    @classmethod
    def from_moments(cls, moments: Moments) -> Summary:
        """All but C itself."""
        C = np.atleast_2d(moments.C)
        return cls(moments.weight, moments.mean, moments.A, sqrt(np.vdot(C, C)), float(C.trace()))


def compute_moments(
    features: np.ndarray, Y: np.ndarray, weight: np.ndarray, *, gram: bool = False
) -> Moments:
    """Moments of features (n, p) and targets (n, c) with weights (n, 1) about their means.

    C is 0 where the Gram form replaces it.  Features that are not finite show in the mean.
    """
    total = float(weight.sum())
    mean, target_mean = (weight.T @ features)[0] / total, (weight.T @ Y)[0] / total
    # Infinite features are not an error here: the mean tells of them.
    with np.errstate(invalid="ignore"):
        R = center(features, mean, weight)
        A = R.T @ (np.sqrt(weight) * (Y - target_mean))
        # R'R, of one array with itself, takes NumPy half the time of another product.
        return Moments(total, mean, target_mean, A, 0.0 if gram else R.T @ R)


def center(features: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Rows ``sqrt(w) (features - mean)``, given weights (n, 1)."""
    rows = features - mean
    if (weight != 1.0).any():  # mostly they are 1, and a pass is saved
        rows *= np.sqrt(weight)
    return rows


def compute_cotangents(
    features: np.ndarray,
    mean: np.ndarray,
    Y: np.ndarray,
    weight: np.ndarray,
    right: np.ndarray,
    across: np.ndarray,
) -> np.ndarray:
    """Return ``w ((features - mean) right + Y across')``.

    Shapes: features (n, p), mean (p,), centered targets Y (n, c), weight (n, 1), right (p, p), symmetric,
    across (p, c).
    """
    rows = (features - mean) @ right
    rows += Y @ across.T
    if (weight != 1.0).any():
        rows *= weight
    return rows
