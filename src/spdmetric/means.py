"""Means of SPD matrices; `spdmetric.geometry` gives those that are public.

All that a mean needs is the average of a function of stacks over all matrices: the same code serves
matrices in one array, in a file, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from operator import truediv
from typing import NamedTuple

import numpy as np
from array_api_compat import device
from sklearn.exceptions import ConvergenceWarning

from spdmetric.caller import warn_at_caller
from spdmetric.linalg.batch import stack_of
from spdmetric.linalg.symmetric import (
    Array,
    Spectrum,
    array_namespace,
    congruence,
    detached,
    expm,
    like,
    logm,
    powm,
    spectrum,
    symmetrize,
    transpose,
    triangular_root,
    ucothu,
    unvech,
    vech,
)
from spdmetric.linalg.threads import one_thread

RowFunction = Callable[[Array], Array]  # of a stack of matrices, one row for each
Average = Callable[[RowFunction], Array]  # the weighted mean of the rows
Guess = Callable[[Array, float], Array]  # a vector over a guessed Hessian, given its mean curvature

_EPS = float(np.finfo(np.float64).eps)


def mean_euclid(X: Array, sample_weight: Array | None = None) -> Array:
    """Arithmetic mean: its determinant can exceed every determinant (the swelling effect)."""
    return average_over(X, sample_weight)(lambda X: X)


@one_thread
def mean_logeuclid(X: Array, sample_weight: Array | None = None) -> Array:
    """LogEuclidean mean, ``exp(mean(log X))``."""
    return expm(average_over(X, sample_weight)(logm))


@one_thread
def mean_riemann(
    X: Array, sample_weight: Array | None = None, *, tol: float = 1e-9, max_iter: int = 200
) -> Array:
    """Riemannian (affine-invariant, Karcher) mean of SPD matrices.

    Parameters
    ----------
    X : array of shape (n, d, d)
        SPD matrices.
    sample_weight : array of shape (n,), optional
        Non-negative weights; a weight of 2 is the matrix given twice.
    tol : float, default=1e-9
        Stop when the gradient, the mean tangent vector at the iterate, is this short.
    max_iter : int, default=200
        A `~sklearn.exceptions.ConvergenceWarning` tells when it did not suffice.

    Returns
    -------
    G : array of shape (d, d)

    Notes
    -----
    Limited-memory BFGS on the manifold, from the middle of the arithmetic and the harmonic mean: some
    five to eight passes of eigendecompositions.  Where a step does not shorten the gradient, the next
    one is that of [Bini2013]_: the curvature of half the squared distance to X_i lies between 1 and
    h_i, the largest value of ``(t/2) coth(t/2)`` over the gaps t of the log-eigenvalues of the
    whitened X_i.
    """
    return average_riemann(average_over(X, sample_weight), X.shape[0], tol=tol, max_iter=max_iter)


@one_thread
def median_riemann(X: Array, sample_weight: Array | None = None) -> Array:
    """Geometric median of SPD matrices by the affine-invariant distance, which outlying ones hardly move.

    The point of the least sum of distances, not of squared ones [Fletcher2009]_; distances below 1 % of
    their mean count less, as squares, so that the sum is smooth.  Parameters are those of `mean_riemann`.

    References
    ----------
    .. [Fletcher2009] P. T. Fletcher, S. Venkatasubramanian and S. Joshi, "The geometric median on
       Riemannian manifolds with application to robust atlas estimation", NeuroImage 45, 2009.
    """
    return average_median(average_over(X, sample_weight), X.shape[0])


# ---------------------------------------------------------------------------
# The same, given how to average over n matrices in all


def average_over(X: Array, sample_weight: Array | None = None) -> Average:
    """Return the average over the matrices of an array."""
    xp = array_namespace(X)
    w = xp.ones(X.shape[0], dtype=X.dtype, device=device(X)) if sample_weight is None else sample_weight
    return lambda f: weighted_sum(f, X, w) / xp.sum(w)


def weighted_sum(f: RowFunction, X: Array, weight: Array) -> Array:
    """Weighted sum of the rows of ``f`` over a stack."""
    values = f(X)
    xp = array_namespace(values)
    return xp.sum(xp.reshape(weight, (-1,) + (1,) * (values.ndim - 1)) * values, axis=0)


def average_riemann(
    average: Average, n: int | None = None, *, tol: float = 1e-9, max_iter: int = 200
) -> Array:
    """`mean_riemann`, given how to average."""
    s = spectrum(_between_means(average))
    frame = Frame.from_spectrum(s)
    condition = float(detached(s.values[-1] / s.values[0]))
    here, axes = _first_mean_log(average, frame, n)
    secants, rate = Secants(axes.solve), 1.0
    for _ in range(max_iter):
        step = secants.solve(here.J, here.curvature)
        # The smallest log-eigenvalues are known no better than to the condition numbers times eps.
        floor = s.values.shape[-1] * _EPS * (here.condition + condition)
        if min(rate, 1.0) * here.length <= max(tol, floor):
            return here.frame.move(step).point
        there = _mean_log(average, here.frame.move(step), n)
        if there.length < here.length:
            secants.learn(detached(step), detached(here.J - there.J))
        else:  # the secants have misled: forget them, and take a step that cannot be too long
            secants, step = Secants(axes.solve), here.J * (2 / (1 + here.bound))
            there = _mean_log(average, here.frame.move(step), n)
        rate, here = there.length / here.length, there
    warn_at_caller(
        f"The Riemannian mean stopped after {max_iter} iterations with a gradient of length "
        f"{here.length:.2g} (tol={tol:.2g}): raise max_iter, or look for outlying matrices.",
        ConvergenceWarning,
    )
    return here.frame.point


def average_median(
    average: Average, n: int | None = None, *, tol: float = 1e-9, max_iter: int = 500
) -> Array:
    """`median_riemann`, given how to average.

    The gradient is the mean of the tangent vectors, each divided by its distance; where past steps tell
    nothing, the curvature is the mean of one over the distances (Weiszfeld).  A step is halved where the sum
    of distances would grow.
    """
    tiny = 1e-150  # a distance whose square is still a number
    frame = Frame.from_spectrum(spectrum(_between_means(average)))
    spread = float(detached(average(_by_distance(frame.factor, n, tiny))[-1]))
    bound = max(tol * spread, 100 * frame.factor.shape[-1] * _EPS)  # of matrices that are the same
    near = max(0.01 * spread, tiny)  # distances below it count as squares
    here, secants, length = average(_by_distance(frame.factor, n, near)), Secants(truediv), 1.0
    for _ in range(max_iter):
        step = secants.solve(here[:-2], float(detached(here[-2])))
        size = float(array_namespace(step).linalg.vector_norm(detached(step)))
        if length * size <= bound:
            return frame.point
        step = step * (length * min(1.0, 2 * spread / size))  # a sum of distances may be flat for long
        moved = frame.move(step)
        there = average(_by_distance(moved.factor, n, near))
        if float(detached(there[-1])) <= float(detached(here[-1])) * (1 + 4 * _EPS):
            secants.learn(detached(step), detached(here[:-2] - there[:-2]))
            frame, here, length = moved, there, 1.0
            continue
        length /= 2
        if length < 0.02:  # the secants have misled: forget them
            secants = Secants(truediv)
    warn_at_caller(
        f"The median stopped after {max_iter} iterations: look for matrices that are near singular.",
        ConvergenceWarning,
    )
    return frame.point


# By name, given how to average over n matrices.
MEANS: dict[str, Callable[[Average, int | None], Array]] = {
    "riemann": average_riemann,
    "logeuclid": lambda average, n: expm(average(logm)),
    "euclid": lambda average, n: average(lambda X: X),
    "median": average_median,
}


def _between_means(average: Average) -> Array:
    """Half way between the arithmetic and the harmonic mean, whose errors are opposite to first order."""
    mean = average(lambda X: X)
    xp = array_namespace(mean)
    harmonic = symmetrize(xp.linalg.inv(average(xp.linalg.inv)))
    usable = bool(xp.all(xp.isfinite(harmonic))) and bool(xp.all(spectrum(harmonic).values > 0))
    return Frame.from_spectrum(spectrum(mean)).apply(lambda B: powm(B, 0.5), harmonic) if usable else mean


# ---------------------------------------------------------------------------
# Steps on the manifold


class Frame(NamedTuple):
    """A point ``root root'``, and the inverse of the root, in whose coordinates it is the identity."""

    root: Array  # (d, d)
    factor: Array  # (d, d)

    @classmethod
    def from_spectrum(cls, s: Spectrum) -> Frame:
        return cls(s.compose(s.values**0.5), s.compose(s.values**-0.5))

    @property
    def point(self) -> Array:
        return self.root @ transpose(self.root)

    def apply(self, function: Callable[[Array], Array], X: Array) -> Array:
        """Apply a function of matrices in these coordinates."""
        return congruence(self.root, function(congruence(self.factor, X)))

    def move(self, step: Array) -> Frame:
        """Return the frame after a step along a geodesic, given as a vector in these coordinates."""
        half = spectrum(unvech(step) / 2)
        grown, shrunk = (half.compose(array_namespace(step).exp(sign * half.values)) for sign in (1, -1))
        return Frame(self.root @ grown, shrunk @ self.factor)


class MeanLog(NamedTuple):
    """Mean tangent vector at a point: minus the gradient of half the mean squared distance."""

    frame: Frame
    J: Array  # (p,)
    length: float
    curvature: float  # of half the mean squared distance, about, on the mean of all directions
    bound: float  # in no direction is it more
    condition: float  # condition number of the whitened matrices

    @classmethod
    def from_rows(cls, mean: Array, frame: Frame) -> MeanLog:
        J, rest = mean[:-3], [float(detached(mean[k])) for k in (-3, -2, -1)]
        return cls(frame, J, float(array_namespace(J).linalg.vector_norm(detached(J))), *rest)


def _mean_log(average: Average, frame: Frame, n: int | None) -> MeanLog:
    return MeanLog.from_rows(average(_log_and_curvature(frame.factor, n)), frame)


def _first_mean_log(average: Average, frame: Frame, n: int | None) -> tuple[MeanLog, Axes]:
    """The same, and the axes that the scatter of the logarithms has."""
    take_log = _log_and_curvature(frame.factor, n)
    d = frame.factor.shape[-1]
    p = d * (d + 1) // 2

    def rows(X: Array) -> Array:
        logs = take_log(X)
        L = unvech(_traceless(logs[:, :p]))
        return array_namespace(X).concat([vech(L @ L), logs], axis=-1)

    mean = average(rows)
    J = unvech(_traceless(detached(mean[p : 2 * p])))
    return MeanLog.from_rows(mean[p:], frame), Axes.from_scatter(unvech(detached(mean[:p])) - J @ J)


class Axes(NamedTuple):
    """A guess of the Hessian of half the mean squared distance, diagonal on the axes of a scatter matrix.

    To second order in the logarithms L the Hessian is ``x -> x + mean [L, [L, x]] / 12``.  The main part of
    that mean is ``M x + x M``, with M the mean of L^2: it is diagonal on the axes of M (``docs/math.md``).
    """

    vectors: Array  # (d, d)
    excess: Array  # (d, d), of the curvature over 1, 1 on the mean

    @classmethod
    def from_scatter(cls, M: Array) -> Axes:
        xp, (values, vectors) = array_namespace(M), spectrum(M)
        square = values[:, None] + values[None, :]  # of the root mean square gap
        excess = ucothu(xp.sqrt(_positive_part(square)) / 2) - 1
        mean = float(xp.mean(excess))
        return cls(vectors, excess / mean if mean > 0 else excess)

    def solve(self, q: Array, curvature: float) -> Array:
        """Inverse of the guess times a vector, given the mean curvature; it is 1 along the trace, exactly."""
        P, rest = self.vectors, _traceless(q)
        hat = transpose(P) @ unvech(rest) @ P / (1 + (curvature - 1) * self.excess)
        return q - rest + _traceless(vech(P @ hat @ transpose(P)))


class Secants:
    """Limited-memory BFGS in the frame of the factor, in which vectors stay parallel along each step.

    Where past steps tell nothing the Hessian is guessed: for a mean from the axes along which matrices vary,
    for a median as the same in all directions.
    """

    def __init__(self, guess: Guess, memory: int = 8):
        self._guess, self._memory = guess, memory
        self._pairs: list[tuple[Array, Array, float]] = []  # step, change of the gradient, 1 / their product

    def learn(self, step: Array, change: Array) -> None:
        product = _inner(step, change)
        if product > 0:
            self._pairs = [*self._pairs[1 - self._memory :], (step, change, 1 / product)]

    def solve(self, gradient: Array, curvature: float) -> Array:
        """Inverse Hessian times a gradient."""
        q, shares = gradient, []
        for step, change, scale in reversed(self._pairs):
            shares.append(scale * _inner(step, q))
            q = q - shares[-1] * change
        q = self._guess(q, curvature)
        for (step, change, scale), share in zip(self._pairs, reversed(shares), strict=True):
            q = q + (share - scale * _inner(change, q)) * step
        return q


def _inner(a: Array, b: Array) -> Array:
    return array_namespace(a).sum(a * b)


# ---------------------------------------------------------------------------
# Rows to average


def _log_and_curvature(factor: Array, n: int | None) -> RowFunction:
    """Map X to the vector of ``log(W X W')``, behind it two curvatures and the condition number.

    Along an eigenvector pair with gap t of log-eigenvalues the curvature of half the squared distance is
    ``(t/2) coth(t/2)``; its mean is taken at the root mean square gap, which the vector tells.
    """

    def rows(X: Array) -> Array:
        xp, d = array_namespace(X), X.shape[-1]
        if isinstance(X, np.ndarray):
            decomposed = stack_of(X, n).decompose(factor)
            features, spread = decomposed.features, decomposed.spread[:, None]
        else:
            s = spectrum(congruence(factor, X))
            logs = xp.log(s.values)
            features, spread = vech(s.compose(logs)), logs[..., -1:] - logs[..., :1]
        if not bool(xp.all(xp.isfinite(spread))):
            raise ValueError(
                "A matrix of X is no longer positive definite once it is whitened by the mean: it is too "
                "close to singular for float64. Estimate the matrices with shrinkage, or bring the channels "
                "to comparable units."
            )
        along = features @ like(_unit_trace(d), features)
        square = xp.sum(features * features, axis=-1) - along**2
        gap = xp.sqrt(_positive_part(square) * (2 / max(d - 1, 1)))
        pairs, others = d * (d - 1) / 2, d - 1
        curvature = (others + pairs * ucothu(gap / 2)) / max(others + pairs, 1) + float(d == 1)
        return xp.concat([features, curvature[:, None], ucothu(spread / 2), xp.exp(spread)], axis=-1)

    return rows


def _by_distance(factor: Array, n: int | None, near: float) -> RowFunction:
    """Map X to its tangent vector over its distance, behind it one over the distance, and the distance."""
    take_log = _log_and_curvature(factor, n)

    def rows(X: Array) -> Array:
        features = take_log(X)[:, :-3]
        xp = array_namespace(features)
        distance = xp.sqrt(xp.sum(features * features, axis=-1) + near**2)[:, None]
        return xp.concat([features / distance, 1 / distance, distance], axis=-1)

    return rows


@lru_cache(maxsize=32)
def _unit_trace(d: int) -> np.ndarray:
    """The vector of the identity, of length 1."""
    return vech(np.eye(d)) / np.sqrt(d)


def _traceless(vectors: Array) -> Array:
    """Vectors of matrices without their traces, (..., p)."""
    trace = like(_unit_trace(triangular_root(vectors.shape[-1])), vectors)
    return vectors - (vectors @ trace)[..., None] * trace


def _positive_part(x: Array) -> Array:
    xp = array_namespace(x)
    return xp.where(x > 0, x, xp.zeros_like(x))
