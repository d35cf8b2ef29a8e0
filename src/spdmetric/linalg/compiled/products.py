"""Products of matrices of Lanes, two by two entries at a time.

All are of the form ``C[i, j] = sum_k A[i, k] B[j, k]``: rows against rows, both read in the
order of memory.  Four sums are in flight together, so that every value read is used
twice and the adders do not wait for their own results.  Therefore rows come in pairs: where
a size is odd, one more row is read, and one more row or column of C written; what stands
there is never used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spdmetric.linalg.compiled.lanes import fill, get2, part, put2


@part
def _entry(W, i, k):  # type: ignore[no-untyped-def]
    return W[i, k]


def _inner(entry: Any) -> Callable[..., Any]:
    """``C = A B'`` of shape (rows, columns), sums of ``size`` terms; with ``lower``, its lower triangle."""

    @part
    def product(A, rows, B, columns, size, C, lower):  # type: ignore[no-untyped-def]
        for i in range(0, rows, 2):
            for j in range(0, min(i + 2, columns) if lower else columns, 2):
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
