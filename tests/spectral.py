"""Derivatives of any function of symmetric matrices (Daleckii and Krein), as an oracle.

The package needs the divided differences of the exponential and of the logarithm only, each in a form
of its own; here they follow from one general form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spdmetric.linalg.symmetric import Array, Spectrum, array_namespace, exp_slope, sinhc


class SpectralFunction(NamedTuple):
    """A scalar function with what its derivatives on matrices need.

    ``slope(x, y)`` is the first divided difference, free of cancellation.
    """

    value: Callable[[Array], Array]
    slope: Callable[[Array, Array], Array]


def _log_slope(x: Array, y: Array) -> Array:
    xp = array_namespace(x)
    return 1 / (xp.sqrt(x) * xp.sqrt(y) * sinhc((xp.log(x) - xp.log(y)) / 2))


EXP = SpectralFunction(
    value=lambda x: array_namespace(x).exp(x),
    slope=exp_slope,
)
LOG = SpectralFunction(
    value=lambda x: array_namespace(x).log(x),
    slope=_log_slope,
)


def power(exponent: float) -> SpectralFunction:
    """``x ** exponent`` for positive ``x``, with its derivatives."""

    def slope(x: Array, y: Array) -> Array:
        xp = array_namespace(x)
        u = (xp.log(x) - xp.log(y)) / 2
        return exponent * (xp.sqrt(x) * xp.sqrt(y)) ** (exponent - 1) * sinhc(exponent * u) / sinhc(u)

    return SpectralFunction(lambda x: x**exponent, slope)


def derivative(f: SpectralFunction, at: Spectrum, E: Array) -> Array:
    """Directional derivative ``D f(X)[E]`` of a matrix function, ``E`` symmetric."""
    x = at.values
    return at.restore(f.slope(x[..., :, None], x[..., None, :]) * at.rotate(E))
