"""Derivatives of any function of symmetric matrices (Daleckii and Krein), as an oracle.

The package needs the divided differences of the exponential and of the logarithm only, each in a form
of its own; here they follow from one general form.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, factorial
from typing import NamedTuple

from spdmetric.linalg.symmetric import Array, Spectrum, array_namespace, exp_slope, sinhc


class SpectralFunction(NamedTuple):
    """A scalar function with what its derivatives on matrices need.

    ``slope(x, y)`` is the first divided difference, free of cancellation;
    ``coefficient(m, k)`` is ``f^(k)(m) / k!``; ``scale(m)`` is the length over which
    the function varies near ``m`` (its Taylor series converges fast well inside it).
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array, Array], Array]
    coefficient: Callable[[Array, int], Array]
    scale: Callable[[Array], Array]

    def bend(self, x: Array, y: Array, z: Array) -> Array:
        """Second divided difference ``f[x, y, z]``, accurate at every gap.

        The quotient of slopes over the *widest* gap is accurate unless all three
        points are close; there the series about their mean takes over.  With the
        deviations summing to zero its symmetric polynomials are products of
        ``e2`` and ``e3``.
        """
        xp = array_namespace(x)
        x, y, z = xp.broadcast_arrays(x, y, z)
        points = xp.sort(xp.stack([x, y, z], axis=-1), axis=-1)
        low, middle, high = points[..., 0], points[..., 1], points[..., 2]
        gap, m = high - low, xp.mean(points, axis=-1)
        near = gap <= 0.01 * self.scale(m)
        a, b, c = low - m, middle - m, high - m
        e2, e3 = a * b + b * c + c * a, a * b * c
        c2, c4, c5, c6, c7 = (self.coefficient(m, k) for k in (2, 4, 5, 6, 7))
        series = c2 - c4 * e2 + c5 * e3 + c6 * e2**2 - 2 * c7 * e2 * e3
        quotient = self.slope(middle, high) - self.slope(low, middle)
        return xp.where(near, series, quotient / xp.where(near, xp.ones_like(gap), gap))


def _one(m: Array) -> Array:
    return array_namespace(m).ones_like(m)


def _log_slope(x: Array, y: Array) -> Array:
    xp = array_namespace(x)
    return 1 / (xp.sqrt(x) * xp.sqrt(y) * sinhc((xp.log(x) - xp.log(y)) / 2))


EXP = SpectralFunction(
    value=lambda x: array_namespace(x).exp(x),
    slope=exp_slope,
    coefficient=lambda m, k: array_namespace(m).exp(m) / factorial(k),
    scale=_one,
)
LOG = SpectralFunction(
    value=lambda x: array_namespace(x).log(x),
    slope=_log_slope,
    coefficient=lambda m, k: (-1) ** (k + 1) / (k * m**k),
    scale=lambda m: m,
)


def power(exponent: float) -> SpectralFunction:
    """``x ** exponent`` for positive ``x``, with its derivatives."""

    def slope(x: Array, y: Array) -> Array:
        xp = array_namespace(x)
        u = (xp.log(x) - xp.log(y)) / 2
        return exponent * (xp.sqrt(x) * xp.sqrt(y)) ** (exponent - 1) * sinhc(exponent * u) / sinhc(u)

    def coefficient(m: Array, k: int) -> Array:
        return _binomial(exponent, k) * m ** (exponent - k)

    return SpectralFunction(lambda x: x**exponent, slope, coefficient, lambda m: m)


def _binomial(a: float, k: int) -> float:
    if a == int(a) and a >= 0:
        return float(comb(int(a), k))
    result = 1.0
    for j in range(k):
        result *= (a - j) / (j + 1)
    return result


def derivative(f: SpectralFunction, at: Spectrum, E: Array) -> Array:
    """Directional derivative ``D f(X)[E]`` of a matrix function, ``E`` symmetric."""
    x = at.values
    return at.restore(f.slope(x[..., :, None], x[..., None, :]) * at.rotate(E))


def second_derivative(f: SpectralFunction, at: Spectrum, E: Array, F: Array) -> Array:
    """Second derivative ``D^2 f(X)[E, F]``: d**3 memory a matrix."""
    x = at.values
    bend = f.bend(x[..., :, None, None], x[..., None, :, None], x[..., None, None, :])  # a, c, b
    E, F = at.rotate(E), at.rotate(F)
    terms = E[..., :, :, None] * F[..., None, :, :] + F[..., :, :, None] * E[..., None, :, :]
    return at.restore(array_namespace(x).sum(bend * terms, axis=-2))
