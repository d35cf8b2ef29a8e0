"""The logarithm along a congruence, as the oracle of the kernels and of NumPy's form of them.

For a stack A, let L(xi) = log(exp(-xi/2) A exp(-xi/2)).  Moving W to exp(-xi/2) W moves
log(W X W') this way, and moves G = (W'W)^-1 along the geodesic that leaves it in
direction xi.  In the eigenbasis of A the first derivative is multiplication by
-h(t), t the gaps of the log-eigenvalues, h(t) = (t/2) coth(t/2).
"""

from __future__ import annotations

from typing import NamedTuple

from spdmetric.linalg.symmetric import Array, array_namespace, compose, sinhc, ucothu


class Spectrum(NamedTuple):
    """Eigenvalues, ascending, and eigenvectors of a stack."""

    values: Array
    vectors: Array

    def compose(self, values: Array) -> Array:
        return compose(values, self.vectors)


def spectrum(S: Array) -> Spectrum:
    return Spectrum(*array_namespace(S).linalg.eigh(S))


class LogCongruence:
    """``log A`` and its derivatives in xi, where A becomes ``exp(-xi/2) A exp(-xi/2)``."""

    def __init__(self, log: Spectrum):
        self.log = log  # log-eigenvalues and eigenvectors of A

    @classmethod
    def of(cls, A: Array) -> LogCongruence:
        s = spectrum(A)
        return cls(Spectrum(array_namespace(A).log(s.values), s.vectors))

    @property
    def h(self) -> Array:
        """``(t/2) coth(t/2)`` of the gaps t, (..., d, d)."""
        return ucothu(gaps(self.log.values) / 2)

    def push(self, eta: Array) -> Array:
        """Derivative of ``log A`` along ``eta``."""
        return _restore(self.log, -self.h * _rotate(self.log, eta))

    def pull(self, M: Array) -> Array:
        """Sum over the stack of the adjoint of `push` at ``M``."""
        return array_namespace(M).sum(self.push(M), axis=-3)

    def pull_factor(self, M: Array, WX: Array) -> Array:
        """Derivative in W of ``sum <M, log(W X W')>``, given the products W X: ``2 sum D log[M] W X``."""
        xp = array_namespace(M)
        root = xp.exp(-self.log.values / 2)
        slope = root[..., :, None] * root[..., None, :] / sinhc(gaps(self.log.values) / 2)
        B = _restore(self.log, slope * _rotate(self.log, M))  # (n, m, m)
        return 2 * xp.tensordot(B, WX, axes=((0, 2), (0, 1)))


def gaps(x: Array) -> Array:
    """Return the differences ``x_a - x_b``, of shape (..., d, d)."""
    return x[..., :, None] - x[..., None, :]


def _rotate(s: Spectrum, E: Array) -> Array:
    """Symmetric ``E`` in the eigenbases."""
    return s.vectors.mT @ E @ s.vectors


def _restore(s: Spectrum, E: Array) -> Array:
    """The inverse of `_rotate`."""
    return s.vectors @ E @ s.vectors.mT
