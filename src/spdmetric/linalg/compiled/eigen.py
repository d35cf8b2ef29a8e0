"""Eigendecomposition of LANES symmetric matrices at once.

The classical route [GolubVanLoan2013]_, sections 8.3.1 to 8.3.3: Householder reflectors
bring a matrix to tridiagonal form, implicit QR steps with Wilkinson's shift make the
couplings vanish.  What is particular here:

- Every number is a `Lanes` value (see `spdmetric.linalg.compiled.lanes`): there is no branch on
  data.  Each lane has its own window [low, high] of the tridiagonal matrix, still coupled;
  a sweep runs over the union of the windows, and a lane rests (cosine 1, sine 0) outside
  of its own.  Lanes therefore do not wait for each other at each eigenvalue, only at the end.
- A sweep works on the tridiagonal matrix alone and writes down its rotations.  Those of two sweeps are
  then taken along the rows of the eigenvector matrix together, so that each entry is read and
  written once in two sweeps.
- Each rotation waits for a root and a quotient of the one before.  A few groups of matrices take their
  steps in turn, so that the processor works on one while the others wait.
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
    WIDE,
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
_SWEEPS = 30  # allowed for each eigenvalue; about 1.9 are needed

# Rows of the scratch of a group: the couplings, four for reflectors and then for the rotations of two sweeps,
# and the state of its sweep, entries of the last row.
LINES, MORE = 6, 6
_STATE = 5
_LOW, _HIGH, _SHIFT, _X, _Z, _SCALE = range(6)
GROUPS = 4 if WIDE else 2  # that take their steps in turn


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

    ``v`` has a 0 at k and a 1 at k + 1.  Where there is nothing to clear tau is 0.
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
    put1(v, k, fill(0.0))
    put1(v, k + 1, fill(1.0))
    for i in range(k + 2, n):
        put1(v, i, get2(A, i, k) * inverse)
    tau = where(some, (fill(0.0) - pivot) / where(some, coupling, 1.0), 0.0)
    return tau, coupling


@part
def _symmetric_product(A, first, n, v, p):  # type: ignore[no-untyped-def]
    """``p = A v`` on rows ``first``..n, from the lower triangle; there are evenly many rows."""
    for i in range(first, n, 2):
        v0, v1 = get1(v, i), get1(v, i + 1)
        across = get2(A, i + 1, i)
        total0 = get2(A, i, i) * v0 + across * v1
        total1 = across * v0 + get2(A, i + 1, i + 1) * v1
        for j in range(first, i):
            entry0, entry1, vj = get2(A, i, j), get2(A, i + 1, j), get1(v, j)
            total0 = total0 + entry0 * vj
            total1 = total1 + entry1 * vj
            put1(p, j, get1(p, j) + entry0 * v0 + entry1 * v1)
        put1(p, i, total0)
        put1(p, i + 1, total1)


@part
def _subtract_both(A, first, n, v, p):  # type: ignore[no-untyped-def]
    """``A <- A - v p' - p v'`` in the lower triangle of evenly many rows ``first``..n."""
    for i in range(first, n, 2):
        v0, v1, p0, p1 = get1(v, i), get1(v, i + 1), get1(p, i), get1(p, i + 1)
        for j in range(first, i + 2):
            vj, pj = get1(v, j), get1(p, j)
            put2(A, i, j, get2(A, i, j) - (v0 * pj + p0 * vj))
            put2(A, i + 1, j, get2(A, i + 1, j) - (v1 * pj + p1 * vj))


@part
def _reflect_both_sides(A, first, n, v, tau, p):  # type: ignore[no-untyped-def]
    """``A <- H A H`` on rows and columns ``first``..n, H the reflector of v and tau.

    Rows go by pairs: of an odd number, the row before them comes along, where v is zero.
    """
    even = first - (n - first) % 2
    _symmetric_product(A, even, n, v, p)
    inner = fill(0.0)
    for i in range(first, n):
        inner = inner + get1(p, i) * get1(v, i)
    half = 0.5 * tau * inner
    for i in range(first, n):
        put1(p, i, tau * (get1(p, i) - half * get1(v, i)))
    if even < first:
        put1(p, even, fill(0.0))
    _subtract_both(A, even, n, v, p)


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
def _orthogonal(A, n, tau, p, q, V):  # type: ignore[no-untyped-def]
    """V, the product of the reflectors, from the last to the first: each meets only its own corner.

    Reflectors go by pairs, ``(I - tau v v') (I - omega w w')``, v and w two columns of A, and rows do as in
    `_reflect_both_sides`: every entry of V that is read is used twice.
    """
    for i in range(V.shape[0]):
        for j in range(n):
            put2(V, i, j, fill(1.0 if i == j else 0.0))
    put1(tau, max(n - 2, 0), fill(0.0))  # the second of the last pair may be none
    for k in range((n - 3) // 2 * 2, -1, -2):
        first = k + 1
        _complete(A, k)
        between = get2(A, first + 1, k)
        for i in range(first + 2, n):
            between = between + get2(A, i, k) * get2(A, i, first)
        even = first - (n - first) % 2
        _multiply_rows(A, k, even, n, V, p, q)
        t, omega = get1(tau, k), get1(tau, first)
        for j in range(first, n):
            second = omega * get1(q, j)
            put1(q, j, second)
            put1(p, j, t * (get1(p, j) - between * second))
        _subtract_rows(A, k, even, n, V, p, q)


@part
def _complete(A, k):  # type: ignore[no-untyped-def]
    """Put the ones and zeros of the reflectors k and k + 1 into their columns."""
    put2(A, k, k, fill(0.0))
    put2(A, k + 1, k, fill(1.0))
    put2(A, k, k + 1, fill(0.0))
    put2(A, k + 1, k + 1, fill(0.0))
    put2(A, k + 2, k + 1, fill(1.0))


@part
def _multiply_rows(A, k, first, n, V, p, q):  # type: ignore[no-untyped-def]
    """``p = v'V`` and ``q = w'V``, over rows ``first``..n, for columns past k."""
    for j in range(k + 1, n):
        put1(p, j, fill(0.0))
        put1(q, j, fill(0.0))
    for i in range(first, n, 2):
        v0, v1, w0, w1 = get2(A, i, k), get2(A, i + 1, k), get2(A, i, k + 1), get2(A, i + 1, k + 1)
        for j in range(k + 1, n):
            upper, lower = get2(V, i, j), get2(V, i + 1, j)
            put1(p, j, get1(p, j) + v0 * upper + v1 * lower)
            put1(q, j, get1(q, j) + w0 * upper + w1 * lower)


@part
def _subtract_rows(A, k, first, n, V, p, q):  # type: ignore[no-untyped-def]
    """``V <- V - v p - w q`` on the same rows and columns."""
    for i in range(first, n, 2):
        v0, v1, w0, w1 = get2(A, i, k), get2(A, i + 1, k), get2(A, i, k + 1), get2(A, i + 1, k + 1)
        for j in range(k + 1, n):
            pj, qj = get1(p, j), get1(q, j)
            put2(V, i, j, get2(V, i, j) - v0 * pj - w0 * qj)
            put2(V, i + 1, j, get2(V, i + 1, j) - v1 * pj - w1 * qj)


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
def _windows(d, lines, n):  # type: ignore[no-untyped-def]
    """Clear negligible couplings; note the last coupled run (low, high) of each lane, and its shift."""
    e, state = lines[0], lines[_STATE]
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
    put1(state, _LOW, low)
    put1(state, _HIGH, high)
    put1(state, _SHIFT, _wilkinson(above, between, below))


@part
def _step(k, d, lines, sweep):  # type: ignore[no-untyped-def]
    """The k-th rotation of an implicit QR step, written down; x and z are what the next one starts from."""
    e, state = lines[0], lines[_STATE]
    low, high = get1(state, _LOW), get1(state, _HIGH)
    here, following, coupling = get1(d, k), get1(d, k + 1), get1(e, k)
    begins = low == float(k)
    x = where(begins, here - get1(state, _SHIFT), get1(state, _X))
    z = where(begins, coupling, get1(state, _Z))
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
    put1(e, k + 1, c * beyond)
    put1(state, _X, x)
    put1(state, _Z, s * beyond)
    put1(lines[1 + 2 * sweep], k, c)
    put1(lines[2 + 2 * sweep], k, s)


@part
def _rest(lines, sweep, first, last):  # type: ignore[no-untyped-def]
    """Write down rotations that turn nothing."""
    for k in range(first, last):
        put1(lines[1 + 2 * sweep], k, fill(1.0))
        put1(lines[2 + 2 * sweep], k, fill(0.0))


@part
def _rotate(V, last, lines):  # type: ignore[no-untyped-def]
    """Take the rotations of two sweeps along the rows of V, the second one column behind the first.

    Two rows at a time: four chains of sums that do not wait for each other.
    """
    cosines, sines, cosines2, sines2 = lines[1], lines[2], lines[3], lines[4]
    for i in range(0, V.shape[0], 2):
        left, right = get2(V, i, 0), get2(V, i + 1, 0)  # on their way through the first sweep
        left2, right2 = left, right  # and through the second
        for k in range(last):
            c, s = get1(cosines, k), get1(sines, k)
            left_next, right_next = get2(V, i, k + 1), get2(V, i + 1, k + 1)
            left_done, right_done = c * left + s * left_next, c * right + s * right_next
            left, right = c * left_next - s * left, c * right_next - s * right
            if k == 0:
                left2, right2 = left_done, right_done
            else:
                left2, right2 = _second(V, i, k - 1, cosines2, sines2, left2, right2, left_done, right_done)
        left2, right2 = _second(V, i, last - 1, cosines2, sines2, left2, right2, left, right)
        put2(V, i, last, left2)
        put2(V, i + 1, last, right2)


@part
def _second(V, i, k, cosines, sines, left, right, left_next, right_next):  # type: ignore[no-untyped-def]
    """A rotation of the second sweep; return what it takes along."""
    c, s = get1(cosines, k), get1(sines, k)
    put2(V, i, k, c * left + s * left_next)
    put2(V, i + 1, k, c * right + s * right_next)
    return c * left_next - s * left, c * right_next - s * right


@part
def _coupled(lines, groups, last):  # type: ignore[no-untyped-def]
    """Where the last window of all lanes of all groups ends, at ``last`` or before."""
    for end in range(last, 0, -1):
        for g in range(groups):
            if anywhere(get2(lines[g], _STATE, _HIGH) > float(end - 1)):
                return end
    return 0


@part
def tridiagonalize(A, n, V, d, lines):  # type: ignore[no-untyped-def]
    """Make ``A = V T V'``, T tridiagonal, of the lower triangles of A, which are lost.

    Shapes, before the axis of lanes: A at least (n, n), V (n or n + 1, even, n), d (n,), lines `LINES` by
    at least n + `MORE`.
    """
    e, tau, v, p = lines[0], lines[1], lines[2], lines[3]
    put1(lines[_STATE], _SCALE, _scale(A, n))
    _tridiagonal(A, n, d, e, tau, v, p)
    _orthogonal(A, n, tau, v, p, V)


@part
def _finish(n, d, state):  # type: ignore[no-untyped-def]
    factor = where(get1(state, _HIGH) > 0.0, np.nan, get1(state, _SCALE))
    for k in range(n):
        put1(d, k, factor * get1(d, k))


@part
def diagonalize(n, V, d, lines):  # type: ignore[no-untyped-def]
    """Sweep until all couplings of all groups are gone.

    What `tridiagonalize` left for each group becomes eigenvalues d and eigenvectors V (columns).
    """
    groups = V.shape[0]
    for g in range(groups):
        _windows(d[g], lines[g], n)
    last = n - 1
    for _ in range(_SWEEPS * n):
        last = end = _coupled(lines, groups, last)
        if last == 0:
            break
        for sweep in range(2):
            for k in range(end):
                for g in range(groups):
                    _step(k, d[g], lines[g], sweep)
            for g in range(groups):
                _rest(lines[g], sweep, end, last)
                _windows(d[g], lines[g], end + 1)
            end = _coupled(lines, groups, end)
        for g in range(groups):
            _rotate(V[g], last, lines[g])
    for g in range(groups):
        _finish(n, d[g], lines[g, _STATE])
