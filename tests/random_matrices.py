"""Random symmetric and SPD matrices for tests."""

from __future__ import annotations

import numpy as np


def symmetric(rng: np.random.Generator, *shape: int, traceless: bool = False) -> np.ndarray:
    """Random symmetric matrices; ``shape`` ends with d."""
    d = shape[-1]
    A = rng.standard_normal((*shape, d))
    A = (A + np.swapaxes(A, -1, -2)) / 2
    if traceless:
        A = A - np.trace(A, axis1=-2, axis2=-1)[..., None, None] / d * np.eye(d)
    return A


def spd(rng: np.random.Generator, *shape: int, spread: float = 1.0) -> np.ndarray:
    """Random SPD matrices with log-eigenvalues of the given spread; ``shape`` ends with d."""
    values, vectors = np.linalg.eigh(symmetric(rng, *shape))
    return (vectors * np.exp(spread * values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def rotation(rng: np.random.Generator, d: int) -> np.ndarray:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    return Q * np.sign(np.diag(R))


def labeled(rng: np.random.Generator, n: int, d: int, classes: int = 2, scale: float = 1.0):
    """SPD matrices whose classes differ a little, and their codes."""
    y = np.arange(n) % classes
    drift = symmetric(rng, classes, d)
    values, vectors = np.linalg.eigh(0.5 * symmetric(rng, n, d) + 0.5 * drift[y])
    X = (vectors * np.exp(values)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return scale * (X + X.transpose(0, 2, 1)) / 2, y


def rank_coordinates(rng, rank, d):
    """Coordinates of a factor of low rank: the first rows of a symmetric matrix, (rank, d)."""
    S = symmetric(rng, d)[:rank]
    S[:, rank:] *= np.sqrt(2)
    return S
