"""The objective with a Gaussian kernel: alignment where classes are not told apart by their means.

The kernel of two matrices is ``k_ij = exp(-gamma delta_ij^2)``, delta the Euclidean distance of their tangent
vectors.  Its alignment has no form in features: all pairs are gone through, in tiles, each pair once.  Their
distances and kernel are kept, 8 n^2 bytes at each of two points: 1 GB for `MOST` matrices.

A width that is not set is *learned*: ``f = max over gamma`` at every point, within bounds on
``tau = gamma spread^2``.  Derivations: ``docs/math.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Polynomial

from spdmetric.linalg.symmetric import lazy
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.alignment import Evaluation, Misalignment
from spdmetric.objectives.data import Target

# Candidates for log tau, each twice the one before.  The mean of delta^2 is 2 spread^2: below,
# the kernel is the linear one to within 0.1 %; above, it tells every matrix from every other,
# and its alignment is that of the identity matrix, whatever the metric.
LOG_TAUS = np.log(2) * np.arange(-10, 3)

MOST = 8000  # matrices of which all pairs are compared
TILE = 160  # rows and columns of pairs handled at a time: the temporaries stay in the cache


class Tile(NamedTuple):
    """Pairs (i, j), i < j, of some rows and some columns; an entry with j <= i is no pair, and 0."""

    rows: slice
    columns: slice
    entries: np.ndarray

    def only_pairs(self, values: np.ndarray) -> np.ndarray:
        """The values with 0, in place, where there is no pair."""
        if self.rows == self.columns:
            values[np.tri(len(values), dtype=bool)] = 0.0
        return values


class KernelFamily:
    """Gaussian kernels of all widths on the same points (n, p), centered and in units of their spread."""

    def __init__(self, points: np.ndarray, target: Target):
        Y, w = target.Y, target.weight[:, None]
        self.points, self.target, self.norm = points, target, float(np.linalg.norm(target.squares))
        self.weight, self.total = target.weight, float(target.weight.sum())
        self.probe = np.hstack([w, w * Y])  # (n, 1 + c)
        self.tiles: list[Tile] = []  # squared distances, in units of the squared spread
        norms = np.sum(points**2, axis=1)
        parts = [slice(k, min(k + TILE, len(points))) for k in range(0, len(points), TILE)]
        for k, rows in enumerate(parts):
            for columns in parts[k:]:
                square = points[rows] @ (-2 * points[columns].T)
                square += norms[rows, None]
                square += norms[columns]
                # Where two matrices are the same, rounding can leave a little less than zero.
                self.tiles.append(Tile(rows, columns, np.maximum(square, 0.0, out=square)))
                self.tiles[-1].only_pairs(square)

    # -- as a function of the width, by sums that need no centered matrix --------
    #
    # Matrices here are ``(k - 1) / (1 - exp(-tau))`` and its derivatives, 0 on the diagonal:
    # centering removes the 1, and no digits are lost as tau -> 0.

    def slope(self, log_tau: float) -> tuple[float, float, float]:
        """Alignment and its first two derivatives in log tau."""
        tau = float(np.exp(log_tau))
        unit = -np.expm1(-tau)
        sums = _Sums(self, 3)
        for tile in self.tiles:
            exponent = tile.entries * -tau
            K = np.expm1(exponent)
            K /= unit
            K1 = K + 1 / unit  # the kernel itself, in the same scale
            K1 *= exponent
            exponent += 1
            sums.add(tile, K, K1, exponent * K1)
        n, n1, n2 = sums.with_target
        square = sums.inner(0, 0)
        q1 = 2 * sums.inner(0, 1) / square
        q2 = 2 * (sums.inner(1, 1) + sums.inner(0, 2)) / square
        scale = sqrt(square) * self.norm
        second = n2 - n1 * q1 + n * (0.75 * q1**2 - q2 / 2)
        return float(n / scale), float((n1 - n * q1 / 2) / scale), float(second / scale)

    def on_grid(self) -> np.ndarray:
        """Alignments on the grid; ``exp(-2 tau D) - 1 = E^2 + 2 E`` with E that of tau."""
        sums = [_Sums(self, 1) for _ in LOG_TAUS]
        for tile in self.tiles:
            E = tile.entries * -np.exp(LOG_TAUS[0])
            np.expm1(E, out=E)
            for of_tau in sums:
                square = of_tau.add(tile, E)
                E *= 2
                E += square
        return np.array([s.with_target[0] / (np.sqrt(s.inner(0, 0)) * self.norm) for s in sums])


class _Sums:
    """Sums over all pairs of a matrix K and its derivatives in log tau, of which each tile is added once."""

    def __init__(self, family: KernelFamily, number: int):
        self._family = family
        self._rows = np.zeros((number, len(family.weight)))  # weighted row sums
        self.with_target = np.zeros(number)
        self._products = dict.fromkeys([(0, 0), (0, 1), (1, 1), (0, 2)][: 1 if number == 1 else 4], 0.0)

    def add(self, tile: Tile, *matrices: np.ndarray) -> np.ndarray:
        """Add a tile of each matrix; return the entries of the first, squared."""
        rows, columns, probe = tile.rows, tile.columns, self._family.probe
        w = self._family.weight
        for k, K in enumerate(matrices):
            product = K @ probe[columns]
            self._rows[k, rows] += product[:, 0]
            self._rows[k, columns] += w[rows] @ K
            self.with_target[k] += 2 * np.vdot(probe[rows, 1:], product[:, 1:])
        square = np.square(matrices[0])
        for j, k in self._products:
            product = square if j == k == 0 else matrices[j] * matrices[k]
            self._products[j, k] += 2 * (w[rows] @ (product @ w[columns]))
        return square

    def inner(self, j: int, k: int) -> float:
        """Inner product of two of the matrices once centered."""
        w, s, (r, q) = self._family.weight, self._family.total, self._rows[[j, k]]
        return float(self._products[j, k] - 2 / s * ((w * r) @ q) + (w @ r) * (w @ q) / s**2)


class Kernel:
    """The Gaussian kernel of one width, as ``(k - 1) / (1 - exp(-tau))``: alignment to the last digits."""

    def __init__(self, family: KernelFamily, tau: float):
        self.family, self.tau, self._unit = family, tau, -float(np.expm1(-tau))
        self._tiles = [t._replace(entries=np.expm1(-tau * t.entries) / self._unit) for t in family.tiles]
        Y, probe, w, total = family.target.Y, family.probe, family.weight, family.total
        sums = np.zeros(len(w))
        for rows, columns, K in self._tiles:
            sums[rows] += K @ w[columns]
            sums[columns] += w[rows] @ K
        self._mean, self._overall = sums / total, float(w @ sums) / total**2  # of rows, and of all entries
        diagonal = self._overall - 2 * self._mean
        # Inner products of the centered kernel with the target and with itself.
        self._with_target = float(w**2 * diagonal @ np.sum(Y**2, axis=1))
        self._square = float(w**2 @ diagonal**2)
        for tile in self._tiles:
            rows, columns, K = tile.rows, tile.columns, self._centered(tile)
            self._with_target += 2 * float(np.vdot(probe[rows, 1:], K @ probe[columns, 1:]))
            K *= K
            self._square += 2 * float(w[rows] @ (K @ w[columns]))
        self.alignment = self._with_target / (sqrt(self._square) * family.norm)

    def _centered(self, tile: Tile) -> np.ndarray:
        K = tile.entries - self._mean[tile.rows, None]
        K -= self._mean[tile.columns] - self._overall
        return tile.only_pairs(K)

    def cotangents(self) -> np.ndarray:
        """``sum_j R_ij (x_i - x_j)`` of points x, R the derivative of the alignment in ``-tau square``."""
        Y, points, w = self.family.target.Y, self.family.points, self.family.weight[:, None]
        probe = w * np.hstack([points, np.ones_like(w)])
        total = np.zeros_like(probe)
        for tile in self._tiles:
            rows, columns, K = tile
            R = self._centered(tile)
            R *= -self._with_target / self._square
            R += Y[rows] @ Y[columns].T
            R *= K + 1 / self._unit
            tile.only_pairs(R)
            total[rows] += R @ probe[columns]
            total[columns] += R.T @ probe[rows]
        total *= w / (sqrt(self._square) * self.family.norm)
        return total[:, -1:] * points - total[:, :-1]


# -- The best width -----------------------------------------------------------


def best_log_tau(family: KernelFamily) -> float:
    """Return where in the bounds alignment is highest.

    Every local maximum of a grid is polished: so the highest alignment is continuous in the points.
    """
    values = family.on_grid()
    ahead = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= ahead[:-2]) & (values > ahead[2:]))
    last = len(LOG_TAUS) - 1
    polished = [
        _polish(family, LOG_TAUS[max(k - 1, 0)], _peak(values, k), LOG_TAUS[min(k + 1, last)])
        for k in peaks.tolist()
    ]
    return max(polished, key=lambda candidate: candidate[1])[0]


def _peak(values: np.ndarray, k: int) -> float:
    """Where the polynomial through values on the grid about the k-th, itself inside it, is highest."""
    if not 0 < k < len(LOG_TAUS) - 1:
        return LOG_TAUS[k]
    near = slice(max(k - 3, 0), k + 4)
    model = Polynomial.fit(LOG_TAUS[near], values[near], len(values[near]) - 1)
    flat = model.deriv().roots()
    flat = flat[np.isreal(flat)].real
    between = flat[(LOG_TAUS[k - 1] < flat) & (flat < LOG_TAUS[k + 1])]
    return max([*between, LOG_TAUS[k]], key=model)


def _polish(family: KernelFamily, left: float, start: float, right: float) -> tuple[float, float]:
    """Newton's method for a zero of the slope, halving the bracket where it would leave it."""
    x = start
    for _ in range(60):
        value, first, second = family.slope(x)
        left, right = (x, right) if first > 0 else (left, x)
        newton = x - first / second if second < 0 else np.inf
        there = newton if left <= newton <= right else (left + right) / 2
        # Convergence is quadratic: after a step of 1e-8 nothing is left but rounding.
        if abs(there - x) < 1e-8:
            return there, value
        x = there
    return x, value


# -- The objective ------------------------------------------------------------


@dataclass(eq=False)
class GaussianMisalignment(Misalignment):
    """``1 - f`` for the kernel ``exp(-gamma delta^2)``, by default with the best gamma at each point."""

    gamma: float | None = None

    def at(self, point: FactorPoint) -> GaussianEvaluation:
        return GaussianEvaluation(self, point)


class GaussianEvaluation(Evaluation):
    """Misalignment with a Gaussian kernel at a point."""

    objective: GaussianMisalignment
    needs_scatter = False

    @lazy
    def alignment(self) -> float:
        """The centered kernel-target alignment f, between 0 and 1; minus infinity where it is unknown."""
        mean, gamma = self.summary.mean, self.objective.gamma
        if not np.isfinite(mean).all():
            return -np.inf
        points = np.concatenate([part.features - mean for part in self.parts]) / self.spread
        family = KernelFamily(points, self.data.target)
        tau = float(np.exp(best_log_tau(family))) if gamma is None else gamma * self.spread**2
        self._kernel = Kernel(family, tau)
        return self._kernel.alignment

    @property
    def gamma(self) -> float:
        """The gamma set, or the best one here."""
        return self._kernel.tau / self.spread**2

    @property
    def resolved(self) -> bool:
        """Whether the kernel tells some pairs from others: neither all 0 nor all 1 in float64."""
        tau, squares = self._kernel.tau, [tile.entries for tile in self._kernel.family.tiles]
        high = max(square.max() for square in squares)
        # Below 1e-12 it is one matrix twice.
        low = min(square.min(initial=np.inf, where=square > 1e-12) for square in squares)
        return bool(-np.expm1(-tau * high) > np.finfo(float).tiny and -np.expm1(-tau * low) < 1)

    def _cotangents(self) -> np.ndarray:
        """Derivative of the misalignment in the features, (n, p)."""
        points, scale = self._kernel.family.points, self._kernel.tau / self.spread
        D = self._kernel.cotangents()
        M = (4 * scale) * D
        if self.objective.gamma is None:
            # What is held is tau, hence gamma follows the spread.  Inside the bounds the
            # derivative in tau is zero (the envelope theorem); at their ends it is not.
            along_tau = -2 * float(np.vdot(points, D))  # minus the sum of R_ij square_ij
            share = self.data.target.weight[:, None] / self.summary.weight
            M += (2 * scale * along_tau) * share * points
        return M
