"""Hermitian matrices as real symmetric ones of twice the size, and back.

A complex entry a + ib becomes the block ``[a -b; b a]``: products, inverses, logarithms and means of such
matrices are those of the complex ones, and the first 2m rows are the first m complex ones.  Vectors keep the
d^2 numbers that differ: the diagonal and sqrt(2) times the real parts above it as `vech` has them, then
sqrt(2) times the imaginary parts above it.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt, sqrt

import numpy as np

from spdmetric.linalg.symmetric import Array, array_namespace, is_complex, like, unvech, vech


def to_real(Z: Array) -> Array:
    """The real matrices (..., 2m, 2d) of complex ones (..., m, d)."""
    xp = array_namespace(Z)
    a, b = xp.real(Z), xp.imag(Z)
    blocks = xp.stack([xp.stack([a, -b], axis=-1), xp.stack([b, a], axis=-1)], axis=-3)  # (..., m, 2, d, 2)
    return xp.reshape(blocks, (*Z.shape[:-2], 2 * Z.shape[-2], 2 * Z.shape[-1]))


def to_complex(R: Array) -> Array:
    """The complex matrices (..., m, d) nearest to real ones (..., 2m, 2d): `to_real` undone."""
    a = R[..., ::2, ::2] + R[..., 1::2, 1::2]
    b = R[..., 1::2, ::2] - R[..., ::2, 1::2]
    return (a + 1j * b) / 2


# -- Vectors ------------------------------------------------------------------


def list_entries(S: Array) -> Array:
    """Vectors of symmetric matrices, or (..., d^2) of Hermitian ones; distances are Frobenius distances."""
    if not is_complex(S):
        return vech(S)
    xp, d = array_namespace(S), S.shape[-1]
    above = np.flatnonzero(np.triu(np.ones((d, d)), 1))
    imaginary = xp.take(xp.reshape(xp.imag(S), (*S.shape[:-2], d * d)), like(above, S), axis=-1)
    return xp.concat([vech(xp.real(S)), sqrt(2.0) * imaginary], axis=-1)


def fill_matrices(v: Array, example: Array) -> Array:
    """Matrices of vectors, Hermitian ones if the example is complex: the inverse of `list_entries`."""
    if not is_complex(example):
        return unvech(v)
    xp, d = array_namespace(v), isqrt(v.shape[-1])
    if d * d != v.shape[-1]:
        raise ValueError(
            f"A vector of length {v.shape[-1]} is not that of a Hermitian matrix: expected d^2 entries."
        )
    back = np.full((d, d), d * (d - 1) // 2)
    back[np.triu_indices(d, 1)] = np.arange(d * (d - 1) // 2)
    half = d * (d + 1) // 2
    entries = xp.concat([v[..., half:] / sqrt(2.0), 0 * v[..., :1]], axis=-1)
    upper = xp.reshape(xp.take(entries, like(back.ravel(), v), axis=-1), (*v.shape[:-1], d, d))
    return unvech(v[..., :half]) + 1j * (upper - upper.mT)


@lru_cache(maxsize=32)
def _twins(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the vector of the real matrix has each entry, twice, and the sign of the second."""
    place = np.zeros((2 * d, 2 * d), dtype=np.int64)
    place[np.triu_indices(2 * d)] = np.arange(d * (2 * d + 1))
    (i, j), (k, m) = np.triu_indices(d), np.triu_indices(d, 1)
    first = np.concatenate([place[2 * i, 2 * j], place[2 * k + 1, 2 * m]])
    second = np.concatenate([place[2 * i + 1, 2 * j + 1], place[2 * k, 2 * m + 1]])
    return first, second, np.repeat([1.0, -1.0], [i.size, k.size])


def fold(vectors: Array) -> Array:
    """Vectors (..., d^2) of Hermitian matrices, given those of their real matrices, (..., d(2d + 1))."""
    xp, d = array_namespace(vectors), (isqrt(8 * vectors.shape[-1] + 1) - 1) // 4
    first, second, sign = (like(of, vectors) for of in _twins(d))
    return (xp.take(vectors, first, axis=-1) + sign * xp.take(vectors, second, axis=-1)) / 2


def unfold(vectors: np.ndarray) -> np.ndarray:
    """Vectors of the real matrices, given those of Hermitian ones; twice the adjoint of `fold`."""
    d = isqrt(vectors.shape[-1])
    first, second, sign = _twins(d)
    whole = np.zeros((*vectors.shape[:-1], d * (2 * d + 1)))
    whole[..., first], whole[..., second] = vectors, sign * vectors
    return whole
