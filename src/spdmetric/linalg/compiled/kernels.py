"""The two passes over a stack of matrices, compiled: features of log(W X W'), and their adjoint.

A *group* is LANES matrices side by side (see `spdmetric.linalg.compiled.lanes`).  Shapes,
m and d being the sizes of W:

    packed   (groups, d(d+1)/2, LANES)   lower triangles of X, row by row
    W        (even m, d)                 rows from large to small, and a row of zeros if m is odd
    column   (m, m)                      which feature the entry (i, j) of log(W X W') is
    values, logs  (groups, m, LANES)     eigenvalues of W X W', and their logarithms
    vectors  (groups, even m, m, LANES)
    products (groups, even m, even d, LANES)  W X, kept where W has low rank; else none, (0, ...)
    features (matrices, p)               as `spdmetric.linalg.symmetric.vech` gives them
    work     (5, side, side, LANES)      scratch for five matrices; side is even, at least m and d
    lines    (GROUPS, LINES, m + MORE, LANES)   and for some vectors of each of a few groups

The backward pass is that of `spdmetric.linalg.batch.PlainDecomposition`: in the eigenbasis a cotangent
is multiplied by -h(t) (frame), or by the divided difference of the logarithm (factor), which
is ``2 h / (a + b)``.
"""

from __future__ import annotations

import numpy as np

from spdmetric.linalg.compiled.cache import kernel
from spdmetric.linalg.compiled.eigen import GROUPS, diagonalize, tridiagonalize
from spdmetric.linalg.compiled.functions import log, ucothu
from spdmetric.linalg.compiled.lanes import LANES, fill, get1, get2, part, put1, put2
from spdmetric.linalg.compiled.products import add, inner, inner_shared, sum_lanes, transpose

_SQRT2, _HALF_SQRT2 = float(np.sqrt(2.0)), float(np.sqrt(0.5))

# ---------------------------------------------------------------------------
# Between arrays and lanes


@part
def _unpack(packed, d, X):  # type: ignore[no-untyped-def]
    """Full symmetric matrices of packed lower triangles."""
    k = 0
    for i in range(d):
        for j in range(i + 1):
            entry = get1(packed, k)
            put2(X, i, j, entry)
            put2(X, j, i, entry)
            k += 1


@part
def _write_features(L, m, column, features, first):  # type: ignore[no-untyped-def]
    """Rows of features, from the lower triangles of L; lanes past the last matrix are left out."""
    lanes = min(LANES, features.shape[0] - first)
    for i in range(m):
        for j in range(i + 1):
            scale, place = _SQRT2 if j < i else 1.0, column[i, j]
            for lane in range(lanes):
                features[first + lane, place] = scale * L[i, j, lane]


@part
def _read_cotangents(rows, m, column, first, M):  # type: ignore[no-untyped-def]
    """Symmetric matrices M of rows of cotangents, zero in lanes past the last row."""
    lanes = min(LANES, rows.shape[0] - first)
    for i in range(m):
        for j in range(i + 1):
            scale, place = _HALF_SQRT2 if j < i else 1.0, column[i, j]
            if lanes < LANES:
                put2(M, i, j, fill(0.0))
            for lane in range(lanes):
                M[i, j, lane] = scale * rows[first + lane, place]
    for i in range(m):
        for j in range(i):
            put2(M, j, i, get2(M, i, j))


@part
def _clear(total, rows, columns):  # type: ignore[no-untyped-def]
    for i in range(rows):
        for j in range(columns):
            put2(total, i, j, fill(0.0))


# ---------------------------------------------------------------------------
# Forward


@kernel
def arrange(W, size, factor, order, column):  # type: ignore[no-untyped-def]
    """Rows of W from large to small, their order, and which feature each entry then is.

    In this order small eigenvalues of W X W' keep their digits.  ``size`` is scratch, (m,): NumPy's
    functions, here, would have every process load half of numba.
    """
    m, d = W.shape
    for i in range(m):
        size[i] = 0.0
        for j in range(d):
            size[i] = max(size[i], abs(W[i, j]))
        k = i
        while k > 0 and size[order[k - 1]] < size[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i
    for i in range(factor.shape[0]):
        for j in range(d):
            factor[i, j] = W[order[i], j] if i < m else 0.0
    for i in range(m):
        for j in range(m):
            low, high = min(order[i], order[j]), max(order[i], order[j])
            column[i, j] = low * m - low * (low + 1) // 2 + high


@part
def _logarithm(values, logs, V, m, scaled, L):  # type: ignore[no-untyped-def]
    """Logarithms of the eigenvalues, and the lower triangle of ``L = V diag(logs) V'``."""
    for a in range(m):
        put1(logs, a, log(get1(values, a)))
    for i in range(m):
        for a in range(m):
            put2(scaled, i, a, get1(logs, a) * get2(V, i, a))
    inner(scaled, m, V, m, m, L, True)


@kernel
def forward(packed, W, column, values, logs, vectors, features, products, work, lines):  # type: ignore[no-untyped-def]
    """Decompose ``W X W'`` and write the features of its logarithm, and W X if products have room for it."""
    m, d, groups = column.shape[0], W.shape[1], packed.shape[0]
    X, T, A, U = work[0], work[1], work[2], work[3]
    kept = products.shape[0] > 0
    for first in range(0, groups, GROUPS):
        last = min(first + GROUPS, groups)
        for g in range(first, last):
            _unpack(packed[g], d, X)
            WX = products[g] if kept else T
            inner_shared(W, m, X, d, d, WX, False)
            inner_shared(W, m, WX, m, d, A, True)
            tridiagonalize(A, m, vectors[g], values[g], lines[g - first])
        diagonalize(m, vectors[first:last], values[first:last], lines)
        for g in range(first, last):
            _logarithm(values[g], logs[g], vectors[g], m, U, A)
            _write_features(A, m, column, features, g * LANES)


# ---------------------------------------------------------------------------
# Backward


@part
def _multiply(hat, values, logs, m, frame):  # type: ignore[no-untyped-def]
    """Multiply the lower triangle by ``-h`` (frame) or ``log[a, b]`` (factor), and mirror it."""
    for a in range(m):
        value, log_value = get1(values, a), get1(logs, a)
        for b in range(a + 1):
            other = get1(values, b)
            h = ucothu(value, other, log_value, get1(logs, b))
            scale = fill(-1.0) if frame else 2.0 / (value + other)
            entry = scale * h * get2(hat, a, b)
            put2(hat, a, b, entry)
            put2(hat, b, a, entry)


@part
def _adjoint(rows, m, column, first, values, logs, V, work, frame):  # type: ignore[no-untyped-def]
    """``V (factors o V' M V) V'``, in work[0]; the lower triangle is valid."""
    M, Vt, Z, E = work[0], work[1], work[2], work[3]
    _read_cotangents(rows, m, column, first, M)
    transpose(V, m, m, Vt)
    inner(Vt, m, M, m, m, Z, False)
    inner(Z, m, Vt, m, m, E, True)
    _multiply(E, values, logs, m, frame)
    inner(V, m, E, m, m, Z, False)
    inner(Z, m, V, m, m, M, frame)


@kernel
def pull_frame(rows, column, order, values, logs, vectors, work, result):  # type: ignore[no-untyped-def]
    """``result = -sum V (h o V' M V) V'``, (m, m), its rows and columns put back in place."""
    m = column.shape[0]
    total = work[4]
    _clear(total, m, m)
    for g in range(values.shape[0]):
        _adjoint(rows, m, column, g * LANES, values[g], logs[g], vectors[g], work, True)
        add(work[0], m, m, total)
    for i in range(m):
        for j in range(i + 1):
            entry = sum_lanes(total[i, j])
            result[order[i], order[j]] = entry
            result[order[j], order[i]] = entry


@kernel
def pull_factor(rows, packed, W, column, order, values, logs, vectors, products, work, result):  # type: ignore[no-untyped-def]
    """``result = 2 sum V (log[,] o V' M V) V' W X``, (m, d), its rows put back in place."""
    m, d = column.shape[0], W.shape[1]
    B, X, WX, XW, total = work[0], work[1], work[2], work[3], work[4]
    _clear(total, m, d)
    for g in range(values.shape[0]):
        _adjoint(rows, m, column, g * LANES, values[g], logs[g], vectors[g], work, False)
        if products.shape[0] > 0:
            transpose(products[g], m, d, XW)
        else:
            _unpack(packed[g], d, X)
            inner_shared(W, m, X, d, d, WX, False)
            transpose(WX, m, d, XW)
        inner(B, m, XW, d, m, WX, False)
        add(WX, m, d, total)
    for i in range(m):
        for j in range(d):
            result[order[i], j] = 2.0 * sum_lanes(total[i, j])


@kernel
def pack(X, packed):  # type: ignore[no-untyped-def]
    """Lower triangles of matrices, LANES of them side by side.

    Idle lanes repeat the last matrix: nothing new can go wrong in them.
    """
    last, d = X.shape[0] - 1, X.shape[1]
    for group in range(packed.shape[0]):
        for lane in range(LANES):
            row = min(group * LANES + lane, last)
            k = 0
            for i in range(d):
                for j in range(i + 1):
                    packed[group, k, lane] = X[row, i, j]
                    k += 1
