"""Eigendecomposition of LANES symmetric matrices at once.

The classical route [GolubVanLoan2013]_, sections 8.3.1 to 8.3.3: Householder reflectors
bring a matrix to tridiagonal form, implicit QR steps with Wilkinson's shift make the
couplings vanish.  What is particular here:

- Every number is a `Lanes` value (see `spdmetric.linalg.compiled.lanes`): there is no branch on
  data.  Each lane has its own window [low, high] of the tridiagonal matrix, still coupled;
  a sweep runs over the union of the windows, and a lane rests (cosine 1, sine 0) outside
  of its own.  Lanes therefore do not wait for each other at each eigenvalue, only at the end.
- A sweep first works on the tridiagonal matrix alone and writes down its rotations, then
  takes them along the rows of the eigenvector matrix, so that each entry is read and
  written once a sweep.  The windows and the shift of the next sweep are found on the way.
- Each rotation waits for a root and a quotient of the one before.  Two groups of matrices take their
  steps in turn, so that the processor works on one while the other waits.
- Reflectors start at the first column and couplings vanish at the last rows first.  For
  matrices graded from large (top left) to small (bottom right), this is the order in which
  small eigenvalues keep their digits; `spdmetric.linalg.compiled.kernels` sees to that order.
- Couplings vanish by the relative test ``e_k^2 <= eps^2 |d_k d_{k+1}|``, for the same reason.

Eigenvalues come in no particular order.  A lane with NaN, infinity, or entries beyond 1e300
gives NaN; it costs no more than others and does not touch its neighbors.
"""

from __future__ import annotations

import numpy as np

from spdmetric.linalg.compiled.lanes import (
    anywhere,
    fabs,
    fill,
    get1,
    get2,
    part,
    power_below,
    put1,
    put2,
    sqrt,
    where,
    with_sign,
)

_EPS2 = float(np.finfo(np.float64).eps) ** 2 / 4  # square of the rounding unit
_TINY = float(np.finfo(np.float64).tiny)
_SWEEPS = 30  # allowed for each eigenvalue; about 1.7 are needed


@part
def _scale(A, n):  # type: ignore[no-untyped-def]
    """Divide the lower triangles by powers of two, to about 1; return these, NaN where it cannot be."""
    largest = fill(0.0)
    sound = fill(0.0)  # NaN from the first NaN on: a maximum would step over it
    for i in range(n):
        for j in range(i + 1):
            entry = fabs(get2(A, i, j))
            largest = where(entry > largest, entry, largest)
            sound = sound + entry
    good = sound <= 1e300
    power = where(good & (largest >= _TINY), power_below(largest), 1.0)
    inverse = where(good, 1.0 / power, 0.0)
    for i in range(n):
        for j in range(i + 1):
            # Not a product: NaN times zero is NaN, and would keep its lane from converging.
            put2(A, i, j, where(good, get2(A, i, j) * inverse, 0.0))
    return where(good, power, np.nan)


@part
def _reflector(A, k, n, v):  # type: ignore[no-untyped-def]
    """Reflector ``I - tau v v'`` that clears column k of A below the subdiagonal; return tau, coupling.

    ``v`` has a 1 at k + 1.  Where there is nothing to clear tau is 0.
    """
    tail = fill(0.0)
    for i in range(k + 2, n):
        entry = get2(A, i, k)
        tail = tail + entry * entry
    head = get2(A, k + 1, k)
    some = tail > 0.0
    coupling = where(some, with_sign(sqrt(head * head + tail), fill(0.0) - head), head)
    pivot = head - coupling
    inverse = where(some, 1.0 / where(some, pivot, 1.0), 0.0)
    put1(v, k + 1, fill(1.0))
    for i in range(k + 2, n):
        put1(v, i, get2(A, i, k) * inverse)
    tau = where(some, (fill(0.0) - pivot) / where(some, coupling, 1.0), 0.0)
    return tau, coupling


@part
def _symmetric_product(A, first, n, v, p):  # type: ignore[no-untyped-def]
    """``p = A v`` on rows ``first``..n, from the lower triangle."""
    for i in range(first, n):
        vi = get1(v, i)
        total = get2(A, i, i) * vi
        for j in range(first, i):
            entry = get2(A, i, j)
            total = total + entry * get1(v, j)
            put1(p, j, get1(p, j) + entry * vi)
        put1(p, i, total)


@part
def _reflect_both_sides(A, first, n, v, tau, p):  # type: ignore[no-untyped-def]
    """``A <- H A H`` on rows and columns ``first``..n, H the reflector of v and tau."""
    _symmetric_product(A, first, n, v, p)
    inner = fill(0.0)
    for i in range(first, n):
        inner = inner + get1(p, i) * get1(v, i)
    half = 0.5 * tau * inner
    for i in range(first, n):
        put1(p, i, tau * (get1(p, i) - half * get1(v, i)))
    for i in range(first, n):
        vi, pi = get1(v, i), get1(p, i)
        for j in range(first, i + 1):
            put2(A, i, j, get2(A, i, j) - (vi * get1(p, j) + pi * get1(v, j)))


@part
def _tridiagonal(A, n, d, e, tau, v, p):  # type: ignore[no-untyped-def]
    """Reduce the lower triangles of A to diagonals d and couplings e; the reflectors stay in A."""
    for k in range(n - 2):
        t, coupling = _reflector(A, k, n, v)
        put1(tau, k, t)
        put1(e, k, coupling)
        _reflect_both_sides(A, k + 1, n, v, t, p)
        for i in range(k + 2, n):
            put2(A, i, k, get1(v, i))
    if n > 1:
        put1(e, n - 2, get2(A, n - 1, n - 2))
    put1(e, n - 1, fill(0.0))
    for k in range(n):
        put1(d, k, get2(A, k, k))


@part
def _orthogonal(A, n, tau, p, V):  # type: ignore[no-untyped-def]
    """V, the product of the reflectors, from the last to the first: each meets only its own corner."""
    for i in range(V.shape[0]):
        for j in range(n):
            put2(V, i, j, fill(1.0 if i == j else 0.0))
    for k in range(n - 3, -1, -1):
        t = get1(tau, k)
        for j in range(k + 1, n):
            put1(p, j, get2(V, k + 1, j))
        for i in range(k + 2, n):
            vi = get2(A, i, k)
            for j in range(k + 1, n):
                put1(p, j, get1(p, j) + vi * get2(V, i, j))
        for j in range(k + 1, n):
            pj = t * get1(p, j)
            put1(p, j, pj)
            put2(V, k + 1, j, get2(V, k + 1, j) - pj)
        for i in range(k + 2, n):
            vi = get2(A, i, k)
            for j in range(k + 1, n):
                put2(V, i, j, get2(V, i, j) - vi * get1(p, j))


@part
def _negligible(coupling, above, below):  # type: ignore[no-untyped-def]
    return coupling * coupling <= _EPS2 * fabs(above * below) + _TINY


@part
def _wilkinson(above, coupling, below):  # type: ignore[no-untyped-def]
    """Eigenvalue of ``[[above, coupling], [coupling, below]]`` that is nearer to ``below``."""
    half = 0.5 * (above - below)
    square = coupling * coupling
    wide = half + with_sign(sqrt(half * half + square), half)
    return below - where(square > 0.0, square / where(square > 0.0, wide, 1.0), 0.0)


@part
def _windows(d, e, n):  # type: ignore[no-untyped-def]
    """Clear negligible couplings; return the last coupled run (low, high) of each lane, and its shift."""
    low, high, start = fill(0.0), fill(0.0), fill(0.0)
    above, between, below = fill(0.0), fill(0.0), fill(0.0)
    for k in range(1, n):
        upper, lower, coupling = get1(d, k - 1), get1(d, k), get1(e, k - 1)
        cut = _negligible(coupling, upper, lower)
        put1(e, k - 1, where(cut, 0.0, coupling))
        start = where(cut, float(k), start)
        high = where(cut, high, float(k))
        low = where(cut, low, start)
        above = where(cut, above, upper)
        between = where(cut, between, coupling)
        below = where(cut, below, lower)
    return low, high, _wilkinson(above, between, below)


@part
def _step(k, d, e, low, high, shift, cosines, sines, x, z):  # type: ignore[no-untyped-def]
    """The k-th rotation of an implicit QR step, written down; return what the next one starts from."""
    here, following, coupling = get1(d, k), get1(d, k + 1), get1(e, k)
    begins = low == float(k)
    x = where(begins, here - shift, x)
    z = where(begins, coupling, z)
    square = x * x + z * z
    turns = (low <= float(k)) & (high > float(k)) & (square > 0.0)
    length = sqrt(square)
    inverse = 1.0 / where(turns, length, 1.0)
    c = where(turns, x * inverse, 1.0)
    s = where(turns, z * inverse, 0.0)
    if k > 0:
        put1(e, k - 1, where((low < float(k)) & (high > float(k)), length, get1(e, k - 1)))
    r = (following - here) * s + 2.0 * (c * coupling)
    step = s * r
    put1(d, k, here + step)
    put1(d, k + 1, following - step)
    x = c * r - coupling
    put1(e, k, x)
    beyond = get1(e, k + 1)
    z = s * beyond
    put1(e, k + 1, c * beyond)
    put1(cosines, k, c)
    put1(sines, k, s)
    return x, z


@part
def _rotate(V, last, cosines, sines):  # type: ignore[no-untyped-def]
    """Take the rotations of a sweep along the rows of V, two rows at a time."""
    for i in range(0, V.shape[0], 2):
        left, right = get2(V, i, 0), get2(V, i + 1, 0)
        for k in range(last):
            c, s = get1(cosines, k), get1(sines, k)
            left_next, right_next = get2(V, i, k + 1), get2(V, i + 1, k + 1)
            put2(V, i, k, c * left + s * left_next)
            put2(V, i + 1, k, c * right + s * right_next)
            left = c * left_next - s * left
            right = c * right_next - s * right
        put2(V, i, last, left)
        put2(V, i + 1, last, right)


@part
def _coupled(high, last):  # type: ignore[no-untyped-def]
    """Where the last window of all lanes ends, at ``last`` or before."""
    while last > 0 and not anywhere(high > float(last - 1)):
        last -= 1
    return last


@part
def tridiagonalize(A, n, V, d, lines):  # type: ignore[no-untyped-def]
    """Make ``A = V T V'``, T tridiagonal, of the lower triangles of A, which are lost.

    Shapes, before the axis of lanes: A at least (n, n), V (n or n + 1, even, n), d (n,), lines (5, n + 1).
    """
    e, tau, v, p, scale = lines[0], lines[1], lines[2], lines[3], lines[4]
    power = _scale(A, n)
    _tridiagonal(A, n, d, e, tau, v, p)
    _orthogonal(A, n, tau, p, V)
    put1(scale, n, power)


@part
def _finish(n, d, lines, left):  # type: ignore[no-untyped-def]
    factor = where(left > 0.0, np.nan, get1(lines[4], n))
    for k in range(n):
        put1(d, k, factor * get1(d, k))


@part
def diagonalize(n, V, d, lines, V2, d2, lines2, both):  # type: ignore[no-untyped-def]
    """Sweep until all couplings are gone, in the second group too if there are ``both``.

    What `tridiagonalize` left there becomes eigenvalues d and eigenvectors V (columns).
    """
    e, cosines, sines = lines[0], lines[4], lines[2]
    e2, cosines2, sines2 = lines2[0], lines2[4], lines2[2]
    low, high, shift = _windows(d, e, n)
    low2, high2, shift2 = _windows(d2, e2, n if both else 1)
    last = last2 = n - 1
    for _ in range(_SWEEPS * n):
        last, last2 = _coupled(high, last), _coupled(high2, last2)
        if last == 0 and last2 == 0:
            break
        x, z, x2, z2 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for k in range(max(last, last2)):
            x, z = _step(k, d, e, low, high, shift, cosines, sines, x, z)
            x2, z2 = _step(k, d2, e2, low2, high2, shift2, cosines2, sines2, x2, z2)
        if last > 0:
            _rotate(V, last, cosines, sines)
            low, high, shift = _windows(d, e, last + 1)
        if last2 > 0:
            _rotate(V2, last2, cosines2, sines2)
            low2, high2, shift2 = _windows(d2, e2, last2 + 1)
    _finish(n, d, lines, high)
    if both:
        _finish(n, d2, lines2, high2)
