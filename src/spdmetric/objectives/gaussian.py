"""The objective with a Gaussian kernel: alignment where classes are not told apart by their means.

The kernel of two matrices is ``k_ij = exp(-gamma delta_ij^2)``, delta the Euclidean distance
of their tangent vectors.  Its centered kernel-target alignment is that of
`spdmetric.objectives.alignment`, but has no form in features: the n x n kernel matrix is built, which
takes memory of order n^2 whatever the size of the chunks.

With weights w_i, ``K`` stands below for ``sqrt(w_i w_j)`` times the kernel of points centered by
their weighted mean, and Y for rows ``sqrt(w_i) Y_i``: then ``f = <K, Y Y'> / (|K| |Y Y'|)``.

A width that is not set is *learned*: ``f = max over gamma`` at every point, within bounds on
``tau = gamma spread^2``.  Derivations: ``docs/math.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from spdmetric.linalg.lazy import lazy
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.alignment import LocalEvaluation, Map, Misalignment, Part, Target

# Candidates for log tau, each twice the one before.  The mean of delta^2 is 2 spread^2: below,
# the kernel is the linear one to within 0.1 %; above, it tells every matrix from every other,
# and its alignment is that of the identity matrix, whatever the metric.
LOG_TAUS = np.log(2) * np.arange(-10, 3)


class Slope(NamedTuple):
    """Alignment as a function of log tau: value and two derivatives."""

    value: float
    first: float
    second: float


class KernelFamily:
    """Gaussian kernels of all widths on the same points.

    Parameters
    ----------
    square : ndarray of shape (n, n)
        Squared distances, in units of the squared spread.
    target : Target
        Centered targets and weights.
    """

    def __init__(self, square: np.ndarray, target: Target):
        Y, w = target
        self.square = square
        self._root, self._total = np.sqrt(w), float(w.sum())
        self._weight = w[:, 0]
        self._probe = np.hstack([w, w * Y])  # (n, 1 + c)
        self._Y = self._root * Y
        self._norm = target.norm

    def kernel(self, tau: float) -> np.ndarray:
        """``(k - 1) / (1 - exp(-tau))``: centering removes the 1, and no digits are lost as tau -> 0."""
        return np.expm1(-tau * self.square) / -np.expm1(-tau)

    def alignment(self, tau: float) -> float:
        """Alignment of the kernel of one width, to the last digits."""
        K = self._centered(self.kernel(tau))
        return float(np.vdot(self._Y, K @ self._Y)) / (float(np.linalg.norm(K)) * self._norm)

    def derivative(self, tau: float) -> np.ndarray:
        """Derivative of the alignment in each ``-tau square_ij``, (n, n)."""
        K = self.kernel(tau)
        k = K - 1 / np.expm1(-tau)  # the kernel itself, in the same scale
        K = self._centered(K)
        square = float(np.vdot(K, K))
        Z = self._Y @ self._Y.T - (float(np.vdot(self._Y, K @ self._Y)) / square) * K
        return self._root * Z * self._root.T * k / (np.sqrt(square) * self._norm)

    def _centered(self, K: np.ndarray) -> np.ndarray:
        """Center a matrix by the weights, and multiply it by their roots."""
        mean = K @ self._probe[:, :1] / self._total
        centered = K - mean - mean.T + self._weight @ mean / self._total
        return self._root * centered * self._root.T

    # -- as a function of the width, by sums that need no centered matrix --------

    def slope(self, log_tau: float) -> Slope:
        """Alignment and its derivatives in log tau."""
        tau = np.exp(log_tau)
        exponent, K = tau * self.square, self.kernel(tau)
        K1 = -exponent * (K - 1 / np.expm1(-tau))
        K2 = (1 - exponent) * K1
        (r, n), (r1, n1), (r2, n2) = (self._sums(derivative) for derivative in (K, K1, K2))
        square = self._inner(K * K, r, r)
        q1 = 2 * self._inner(K * K1, r, r1) / square
        q2 = 2 * (self._inner(K1 * K1, r1, r1) + self._inner(K * K2, r, r2)) / square
        scale = np.sqrt(square) * self._norm
        second = n2 - n1 * q1 + n * (0.75 * q1**2 - q2 / 2)
        return Slope(float(n / scale), float((n1 - n * q1 / 2) / scale), float(second / scale))

    def on_grid(self) -> np.ndarray:
        """Alignments on the grid; ``exp(-2 tau D) - 1 = E^2 + 2 E`` with E that of tau."""
        E = np.expm1(-np.exp(LOG_TAUS[0]) * self.square)
        values = []
        for _ in LOG_TAUS:
            (r, n), square = self._sums(E), E * E
            values.append(n / (np.sqrt(self._inner(square, r, r)) * self._norm))
            E *= 2
            E += square
        return np.array(values)

    def _sums(self, K: np.ndarray) -> tuple[np.ndarray, float]:
        """Weighted row sums, (n,), and the inner product with the target."""
        product = K @ self._probe
        return product[:, 0], float(np.vdot(self._probe[:, 1:], product[:, 1:]))

    def _inner(self, product: np.ndarray, r: np.ndarray, q: np.ndarray) -> float:
        """Inner product of two matrices once centered, from their entrywise product and row sums."""
        w, s = self._weight, self._total
        return float(w @ (product @ w) - 2 / s * ((w * r) @ q) + (w @ r) * (w @ q) / s**2)


# ---------------------------------------------------------------------------
# The best width


def best_log_tau(family: KernelFamily) -> float:
    """Return where in the bounds alignment is highest.

    Every local maximum of a fixed grid is polished, and the best is taken: which one that
    is changes only where two are equal, so the highest alignment is continuous in the points.
    """
    values = family.on_grid()
    ahead = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= ahead[:-2]) & (values > ahead[2:]))
    last = len(LOG_TAUS) - 1
    polished = [
        _polish(family, LOG_TAUS[max(k - 1, 0)], LOG_TAUS[k], LOG_TAUS[min(k + 1, last)]) for k in peaks
    ]
    return max(polished, key=lambda candidate: candidate[1])[0]


def _polish(family: KernelFamily, left: float, start: float, right: float) -> tuple[float, float]:
    """Newton's method for a zero of the slope, halving the bracket where it would leave it.

    At an end of the bounds from which alignment falls, the bracket closes on that end.
    """
    x = start
    for _ in range(60):
        here = family.slope(x)
        left, right = (x, right) if here.first > 0 else (left, x)
        newton = x - here.first / here.second if here.second < 0 else np.inf
        there = newton if left <= newton <= right else (left + right) / 2
        # Convergence is quadratic: after a step of 1e-8 nothing is left but rounding.
        if abs(there - x) < 1e-8:
            return there, here.value
        x = there
    return x, here.value


# ---------------------------------------------------------------------------
# The objective


class GaussianMisalignment(Misalignment):
    """``1 - f`` for a Gaussian kernel, as a function of a factor W of the reference point.

    Parameters
    ----------
    X : array of shape (n, d, d)
        SPD matrices, or anything that slices to arrays.
    target : Target
        Centered targets and weights.
    gamma : float, optional
        The kernel is ``exp(-gamma delta^2)``.  By default the best gamma at each point.
    chunk_size : int, optional
        Matrices decomposed at a time; all by default.  The kernel matrix is n x n in any case.
    rows : iterable of slice, optional
        The chunks themselves, instead of their size.
    map : callable, default=map
        Maps a function over chunks.
    """

    def __init__(
        self,
        X: Any,
        target: Target,
        *,
        gamma: float | None = None,
        chunk_size: int | None = None,
        rows: Iterable[slice] | None = None,
        map: Map = map,
    ):
        super().__init__(X, target, chunk_size=chunk_size, rows=rows, map=map)
        self.target, self.gamma = target, gamma

    def at(self, point: FactorPoint) -> GaussianEvaluation:
        """Return the lazy evaluation at a point."""
        return GaussianEvaluation(self, point)


class GaussianEvaluation(LocalEvaluation):
    """Misalignment with a Gaussian kernel at a point; there are no second derivatives."""

    _objective: GaussianMisalignment

    @property
    def gamma(self) -> float:
        """The gamma set, or the best one here."""
        return self._tau / self._square_spread

    @lazy
    def alignment(self) -> float:
        """The centered kernel-target alignment f, between 0 and 1; minus infinity where it is unknown."""
        if not np.isfinite(self._mean).all():
            return -np.inf
        return self._family.alignment(self._tau)

    @property
    def resolved(self) -> bool:
        """Whether the kernel tells some pairs from others: neither all 0 nor all 1 in float64."""
        apart = self._family.square[~np.eye(self._objective.n, dtype=bool)]
        below_one = -np.expm1(-self._tau * apart[apart > 1e-12])  # the others are one matrix twice
        return bool(np.any(below_one > np.finfo(float).tiny) and np.any(below_one < 1))

    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Not known for the Gaussian kernel: there the secant model serves."""
        raise TypeError("Exact second derivatives are known for the linear kernel only.")

    # -- first pass: the kernel -----------------------------------------------

    @property
    def gram(self) -> bool:
        """Always: the scatter of the features is not needed."""
        return True

    @lazy
    def _square_spread(self) -> float:
        return self.spread**2

    @lazy
    def _Phi_all(self) -> np.ndarray:
        """Centered tangent vectors of all chunks, (n, p)."""
        return np.concatenate([self._Phi(part) for part in self._parts])

    @lazy
    def _family(self) -> KernelFamily:
        Phi = self._Phi_all
        norms = np.sum(Phi**2, axis=1)
        square = norms[:, None] + norms - 2 * Phi @ Phi.T
        np.fill_diagonal(square, 0.0)
        # Where two matrices are the same, rounding can leave a little less than zero.
        return KernelFamily(np.maximum(square, 0.0) / self._square_spread, self._objective.target)

    @lazy
    def _tau(self) -> float:
        gamma = self._objective.gamma
        if gamma is None:
            return float(np.exp(best_log_tau(self._family)))
        return gamma * self._square_spread

    # -- second pass: cotangents ----------------------------------------------

    @lazy
    def _cotangents(self) -> np.ndarray:
        """Derivative of the misalignment in the features, (n, p)."""
        Phi, family, tau = self._Phi_all, self._family, self._tau
        R = family.derivative(tau)
        M = (4 * tau / self._square_spread) * (R.sum(axis=1, keepdims=True) * Phi - R @ Phi)
        if self._objective.gamma is None:
            # What is held is tau, hence gamma follows the spread.  Inside the bounds the
            # derivative in tau is zero (the envelope theorem); at their ends it is not.
            along_tau = -tau * float(np.vdot(R, family.square))
            share = self._objective.target.weight / self._moments.weight
            M += (2 * along_tau / self._square_spread) * share * Phi
        return M

    def _cotangent(self, part: Part) -> np.ndarray:
        return self._cotangents[part.rows]
