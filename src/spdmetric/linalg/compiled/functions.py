"""Logarithm and divided differences on Lanes, with relative errors below 1e-15 and 1e-14."""

from __future__ import annotations

import numpy as np

from spdmetric.linalg.compiled.lanes import exponent, fill, mantissa, part, where

_TINY = float(np.finfo(np.float64).tiny)
_BIAS = 2.0**52 + 1023
_LN2_HIGH = float.fromhex("0x1.62e42fefp-1")  # the 33 leading bits: times an exponent it is exact
_LN2_LOW = float.fromhex("0x1.473de6af278edp-34")  # log(2) minus the above
_SQRT2 = float(np.sqrt(2.0))

# atanh(z) / z = sum_k z^2k / (2k + 1): thirteen terms leave 1e-17 at z = 1/4.
_ATANH = tuple(1.0 / (2 * k + 1) for k in range(13))
_NEAR = 0.25


@part
def atanhc(square):  # type: ignore[no-untyped-def]
    """``atanh(z) / z`` for ``z^2`` up to 1/16."""
    total = fill(_ATANH[12])
    for k in range(11, -1, -1):
        total = total * square + _ATANH[k]
    return total


@part
def log(x):  # type: ignore[no-untyped-def]
    """Natural logarithm; minus infinity at 0 and below the normal numbers, NaN for negative ones.

    With ``x = 2^k m``, m between sqrt(1/2) and sqrt(2), and ``z = (m - 1) / (m + 1)``, it is
    ``k log 2 + 2 atanh z``.
    """
    m = mantissa(x)
    k = exponent(x) - _BIAS
    large = m > _SQRT2
    m = where(large, 0.5 * m, m)
    k = where(large, k + 1.0, k)
    z = (m - 1.0) / (m + 1.0)
    value = k * _LN2_HIGH + (k * _LN2_LOW + 2.0 * z * atanhc(z * z))
    value = where(x >= _TINY, value, -np.inf)
    return where(x >= 0.0, value, np.nan)


@part
def ucothu(a, b, log_a, log_b):  # type: ignore[no-untyped-def]
    """``(t/2) coth(t/2)`` for ``t = log(a) - log(b)``, from a, b and their logarithms.

    ``z = tanh(t/2)`` is ``(a - b) / (a + b)``, without a transcendental function.  Far from 0
    the answer is ``(t/2) / z``; near, the difference t would lose digits, and the answer is
    ``atanh(z) / z`` from its series.
    """
    total, gap = a + b, a - b
    z = gap / total
    square = z * z
    near = square <= _NEAR * _NEAR
    far_value = (0.5 * (log_a - log_b)) / where(near, 1.0, z)
    return where(near, atanhc(square), far_value)
