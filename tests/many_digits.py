"""Divided differences in 60 digits, with the standard library's decimal."""

from __future__ import annotations

from decimal import Decimal, getcontext

getcontext().prec = 120

VALUE = {
    "exp": lambda x: x.exp(),
    "log": lambda x: x.ln(),
    "sqrt": lambda x: x.sqrt(),
    "inverse": lambda x: 1 / x,
    "square": lambda x: x * x,
}


def second_difference(name: str, x: float, y: float, z: float) -> float:
    """f[x, y, z], equal points parted by 1e-30 (an error of 1e-30)."""
    f = VALUE[name]
    a, b, c = (Decimal(v) + k * Decimal("1e-30") for k, v in enumerate((x, y, z)))
    return float(((f(a) - f(b)) / (a - b) - (f(b) - f(c)) / (b - c)) / (a - c))
