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
from spdmetric.linalg.compiled.products import sum_lanes
from spdmetric.linalg.symmetric import Moments, compute_cotangents, compute_moments

FEW = 45  # features of 9 x 9 matrices: beyond, the moments of LANES rows leave the cache
_TIMES = 4  # LANES rows are added to the second moments in one pass over them

# Rows of q lanes and their weights, their second moments, and results.
_scratch = Scratch(lambda q: ((_TIMES, q, LANES), (_TIMES, 1, LANES), (q, q + 1, LANES), (q + 1, LANES)))


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
    all_weight = sum_lanes(total[0, q])
    for a in range(q):
        mean[a] = sum_lanes(total[0, a]) / all_weight
    return all_weight


@part
def _second_moments(features, Y, weight, mean, Z, w, total, A, C):  # type: ignore[no-untyped-def]
    """``sum w [Phi, Y]' [Phi, Y]``, both centered; C and A are its blocks."""
    p, q = features.shape[1], Z.shape[1]
    for a in range(q):
        for b in range(a + 1):
            put2(total, a, b, fill(0.0))
    Z0, Z1, Z2, Z3 = Z[0], Z[1], Z[2], Z[3]
    for first in range(0, features.shape[0], _TIMES * LANES):
        for k in range(Z.shape[0]):  # not the constant: its loop would be unrolled, and take long to compile
            _gather(features, Y, weight, mean, first + k * LANES, Z[k], w[k])
        for a in range(q):
            a0, a1 = get1(w[0], 0) * get1(Z0, a), get1(w[1], 0) * get1(Z1, a)
            a2, a3 = get1(w[2], 0) * get1(Z2, a), get1(w[3], 0) * get1(Z3, a)
            for b in range(a + 1):
                entry = get2(total, a, b) + a0 * get1(Z0, b)
                entry = entry + a1 * get1(Z1, b)
                entry = entry + a2 * get1(Z2, b)
                put2(total, a, b, entry + a3 * get1(Z3, b))
    for a in range(p):
        for b in range(a + 1):
            C[a, b] = C[b, a] = sum_lanes(total[a, b])
        for b in range(q - p):
            A[a, b] = sum_lanes(total[p + b, a])


@kernel
def _moments(features, Y, weight, Z, w, total, mean, A, C):  # type: ignore[no-untyped-def]
    all_weight = _first_moments(features, Y, weight, Z[0], w[0], total, mean)
    _second_moments(features, Y, weight, mean, Z, w, total, A, C)
    return all_weight


@kernel
def _rows(features, Y, weight, mean, Q, Z, w, out, rows):  # type: ignore[no-untyped-def]
    """``w [Phi, Y] Q'``, Q of shape (even p, q), two columns at a time."""
    p, q = rows.shape[1], Q.shape[1]
    for first in range(0, features.shape[0], LANES):
        _gather(features, Y, weight, mean, first, Z, w)
        for a in range(0, p, 2):
            even, odd, even2, odd2 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
            for b in range(0, q - 1, 2):
                z, z2 = get1(Z, b), get1(Z, b + 1)
                even, odd = even + Q[a, b] * z, odd + Q[a, b + 1] * z2
                even2, odd2 = even2 + Q[a + 1, b] * z, odd2 + Q[a + 1, b + 1] * z2
            if q % 2:
                z = get1(Z, q - 1)
                even, even2 = even + Q[a, q - 1] * z, even2 + Q[a + 1, q - 1] * z
            put1(out, a, get1(w, 0) * (even + odd))
            put1(out, a + 1, get1(w, 0) * (even2 + odd2))
        for lane in range(min(LANES, features.shape[0] - first)):
            for a in range(p):
                rows[first + lane, a] = out[a, lane]


def moments(features: np.ndarray, Y: np.ndarray, weight: np.ndarray, *, gram: bool = False) -> Moments:
    """As `spdmetric.linalg.symmetric.compute_moments`."""
    p, q = features.shape[1], features.shape[1] + Y.shape[1]
    if gram or p > FEW:
        return compute_moments(features, Y, weight, gram=gram)
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
    """As `spdmetric.linalg.symmetric.compute_cotangents`."""
    n, p = features.shape
    if p > FEW:
        return compute_cotangents(features, mean, Y, weight, right, across)
    q = p + Y.shape[1]
    Z, w, _, out = _scratch(q)
    Q, center, rows = np.zeros((p + p % 2, q)), np.zeros(q), np.empty((n, p))
    Q[:p, :p], Q[:p, p:], center[:p] = right, across, mean
    _rows(plain(features), plain(Y), plain(weight), center, Q, Z[0], w[0], out, rows)
    return rows
