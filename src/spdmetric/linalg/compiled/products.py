"""Products of matrices of Lanes, two by two entries at a time, or four by two.

All are of the form ``C[i, j] = sum_k A[i, k] B[j, k]``: rows against rows, both read in the order of memory.
Four sums, or eight where there are registers for them, are in flight together, so that every value read is
used twice and the adders do not wait for their own results.  Therefore rows come in pairs: where a size is
odd, one more row is read, and one more row or column of C written; what stands there is never used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spdmetric.linalg.compiled.lanes import LANES, WIDE, fill, get2, part, put2


@part
def _entry(W, i, k):  # type: ignore[no-untyped-def]
    return W[i, k]


def _inner(entry: Any) -> Callable[..., Any]:
    """``C = A B'`` of shape (rows, columns), sums of ``size`` terms; with ``lower``, its lower triangle."""

    @part
    def two_rows(A, i, B, j, size, C):  # type: ignore[no-untyped-def]
        c00, c01, c10, c11 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for k in range(size):
            a0, a1 = entry(A, i, k), entry(A, i + 1, k)
            b0, b1 = get2(B, j, k), get2(B, j + 1, k)
            c00 = c00 + a0 * b0
            c01 = c01 + a0 * b1
            c10 = c10 + a1 * b0
            c11 = c11 + a1 * b1
        put2(C, i, j, c00)
        put2(C, i, j + 1, c01)
        put2(C, i + 1, j, c10)
        put2(C, i + 1, j + 1, c11)

    @part
    def four_rows(A, i, B, j, size, C):  # type: ignore[no-untyped-def]
        c00, c01, c10, c11 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        c20, c21, c30, c31 = fill(0.0), fill(0.0), fill(0.0), fill(0.0)
        for k in range(size):
            a0, a1, a2, a3 = entry(A, i, k), entry(A, i + 1, k), entry(A, i + 2, k), entry(A, i + 3, k)
            b0, b1 = get2(B, j, k), get2(B, j + 1, k)
            c00 = c00 + a0 * b0
            c01 = c01 + a0 * b1
            c10 = c10 + a1 * b0
            c11 = c11 + a1 * b1
            c20 = c20 + a2 * b0
            c21 = c21 + a2 * b1
            c30 = c30 + a3 * b0
            c31 = c31 + a3 * b1
        put2(C, i, j, c00)
        put2(C, i, j + 1, c01)
        put2(C, i + 1, j, c10)
        put2(C, i + 1, j + 1, c11)
        put2(C, i + 2, j, c20)
        put2(C, i + 2, j + 1, c21)
        put2(C, i + 3, j, c30)
        put2(C, i + 3, j + 1, c31)

    @part
    def product(A, rows, B, columns, size, C, lower):  # type: ignore[no-untyped-def]
        done = rows - rows % 4 if WIDE else 0
        for i in range(0, done, 4):
            for j in range(0, min(i + 4, columns) if lower else columns, 2):
                four_rows(A, i, B, j, size, C)
        for i in range(done, rows, 2):
            for j in range(0, min(i + 2, columns) if lower else columns, 2):
                two_rows(A, i, B, j, size, C)

    return product


inner = _inner(get2)
inner_shared = _inner(_entry)  # where all lanes share the left matrix, an array of floats


@part
def transpose(A, rows, columns, C):  # type: ignore[no-untyped-def]
    """``C = A'``, for A of shape (rows, columns)."""
    for j in range(columns):
        for i in range(rows):
            put2(C, j, i, get2(A, i, j))


@part
def add(C, rows, columns, total):  # type: ignore[no-untyped-def]
    """``total += C``, for C of shape (rows, columns)."""
    for i in range(rows):
        for j in range(columns):
            put2(total, i, j, get2(total, i, j) + get2(C, i, j))


@part
def sum_lanes(x):  # type: ignore[no-untyped-def]
    """Sum of the lanes of one entry, in their order."""
    total = 0.0
    for lane in range(LANES):
        total += x[lane]
    return total
