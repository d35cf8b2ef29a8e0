"""Moments of features and the cotangents they give, for few features and many matrices.

Tangent vectors of 3 x 3 matrices have six entries: too few for a product of BLAS to be worth
its call, let alone the temporaries around it.  Here rows are taken LANES at a time, and every
row of features is followed by its row of targets: one matrix of second moments holds all
that the objective needs.  With more than `FEW` features NumPy's products do the same.
"""

from __future__ import annotations

import numpy as np

from spdmetric.linalg.compiled.cache import kernel
from spdmetric.linalg.compiled.lanes import LANES, Scratch, fill, get1, get2, part, plain, put1, put2
from spdmetric.linalg.moments import Moments, moments_of

FEW = 45  # features of 9 x 9 matrices: beyond, the moments of LANES rows leave the cache


# Rows of q lanes, their weights, their second moments, and results.
_scratch = Scratch(lambda q: ((q, LANES), (1, LANES), (q, q + 1, LANES), (q, LANES)))


@part
def _gather(features, Y, weight, mean, first, Z, w):  # type: ignore[no-untyped-def]
    """Rows of features and targets, centered, as lanes; past the last row the weight is 0."""
    p, last = features.shape[1], features.shape[0] - 1
    for lane in range(LANES):
        row = min(first + lane, last)
        w[0, lane] = weight[row, 0] if row == first + lane else 0.0
        for a in range(p):
            Z[a, lane] = features[row, a] - mean[a]
        for a in range(Y.shape[1]):
            Z[p + a, lane] = Y[row, a] - mean[p + a]


@part
def _sum_lanes(x):  # type: ignore[no-untyped-def]
    total = 0.0
    for lane in range(LANES):
        total += x[lane]
    return total


@part
def _first_moments(features, Y, weight, Z, w, total, mean):  # type: ignore[no-untyped-def]
    """Sum of the weights; ``mean`` becomes that of [features, Y], from zeros."""
    q = Z.shape[0]
    for a in range(q + 1):
        put2(total, 0, a, fill(0.0))
    for first in range(0, features.shape[0], LANES):
        _gather(features, Y, weight, mean, first, Z, w)
        for a in range(q):
            put2(total, 0, a, get2(total, 0, a) + get1(w, 0) * get1(Z, a))
        put2(total, 0, q, get2(total, 0, q) + get1(w, 0))
    all_weight = _sum_lanes(total[0, q])
    for a in range(q):
        mean[a] = _sum_lanes(total[0, a]) / all_weight
    return all_weight


@part
def _second_moments(features, Y, weight, mean, Z, w, total, A, C):  # type: ignore[no-untyped-def]
    """``sum w [Phi, Y]' [Phi, Y]``, both centered; C and A are its blocks."""
    p, q = features.shape[1], Z.shape[0]
    for a in range(q):
        for b in range(a + 1):
            put2(total, a, b, fill(0.0))
    for first in range(0, features.shape[0], LANES):
        _gather(features, Y, weight, mean, first, Z, w)
        for a in range(q):
            weighted = get1(w, 0) * get1(Z, a)
            for b in range(a + 1):
                put2(total, a, b, get2(total, a, b) + weighted * get1(Z, b))
    for a in range(p):
        for b in range(a + 1):
            C[a, b] = C[b, a] = _sum_lanes(total[a, b])
        for b in range(q - p):
            A[a, b] = _sum_lanes(total[p + b, a])


@kernel
def _moments(features, Y, weight, Z, w, total, mean, A, C):  # type: ignore[no-untyped-def]
    all_weight = _first_moments(features, Y, weight, Z, w, total, mean)
    _second_moments(features, Y, weight, mean, Z, w, total, A, C)
    return all_weight


@kernel
def _rows(features, Y, weight, mean, Q, Z, w, out, rows):  # type: ignore[no-untyped-def]
    """``w [Phi, Y] Q'``, Q of shape (p, q)."""
    p, q = Q.shape
    for first in range(0, features.shape[0], LANES):
        _gather(features, Y, weight, mean, first, Z, w)
        for a in range(p):
            even, odd = fill(0.0), fill(0.0)
            for b in range(0, q - 1, 2):
                even = even + Q[a, b] * get1(Z, b)
                odd = odd + Q[a, b + 1] * get1(Z, b + 1)
            if q % 2:
                even = even + Q[a, q - 1] * get1(Z, q - 1)
            put1(out, a, get1(w, 0) * (even + odd))
        for lane in range(min(LANES, features.shape[0] - first)):
            for a in range(p):
                rows[first + lane, a] = out[a, lane]


def moments(features: np.ndarray, Y: np.ndarray, weight: np.ndarray, *, gram: bool = False) -> Moments:
    """As `spdmetric.linalg.moments.moments_of`."""
    p, q = features.shape[1], features.shape[1] + Y.shape[1]
    if gram or p > FEW:
        return moments_of(features, Y, weight, gram=gram)
    Z, w, total, _ = _scratch(q)
    mean, A, C = np.zeros(q), np.empty((p, q - p)), np.empty((p, p))
    all_weight = _moments(plain(features), plain(Y), plain(weight), Z, w, total, mean, A, C)
    return Moments(all_weight, mean[:p], mean[p:], A, C)


def cotangents(
    features: np.ndarray,
    mean: np.ndarray,
    Y: np.ndarray,
    weight: np.ndarray,
    right: np.ndarray,
    across: np.ndarray,
) -> np.ndarray:
    """Return ``w ((features - mean) right + Y across')``.

    With ``right = -scale ratio C``, symmetric, and ``across = scale A``, these are the
    cotangents of the features in `spdmetric.objectives.alignment`.  Shapes: features (n, p), mean (p,),
    centered targets Y (n, c), weight (n, 1), right (p, p), across (p, c).
    """
    n, p = features.shape
    if p > FEW:
        rows = (features - mean) @ right
        rows += Y @ across.T
        rows *= weight
        return rows
    q = p + Y.shape[1]
    Z, w, _, out = _scratch(q)
    Q, center, rows = np.empty((p, q)), np.zeros(q), np.empty((n, p))
    Q[:, :p], Q[:, p:], center[:p] = right, across, mean
    _rows(plain(features), plain(Y), plain(weight), center, Q, Z, w, out, rows)
    return rows
