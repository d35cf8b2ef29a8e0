"""Means of SPD matrices; `spdmetric.geometry` gives those that are public.

All that a mean needs is the average of a function of stacks over all matrices: the same code serves
matrices in one array, in a file, or on the workers of a cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from math import isqrt
from operator import truediv
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from spdmetric.caller import warn_at_caller
from spdmetric.linalg.batch import make_stack
from spdmetric.linalg.hermitian import to_complex, to_real
from spdmetric.linalg.symmetric import (
    Array,
    array_namespace,
    compose,
    congruence,
    detached,
    expm,
    is_complex,
    like,
    logm,
    powm,
    symmetrize,
    ucothu,
    unvech,
    vech,
)
from spdmetric.linalg.threads import one_thread
from spdmetric.validation import check_stack, check_weights

RowFunction = Callable[[Array], Array]  # of a stack of matrices, one row for each
Average = Callable[[RowFunction], Array]  # the weighted mean of the rows
Guess = Callable[[Array, float], Array]  # a vector over a guessed Hessian, given the mean curvature

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
        SPD matrices, or Hermitian positive definite ones.
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
    if is_complex(X):
        return to_complex(mean_riemann(to_real(X), sample_weight, tol=tol, max_iter=max_iter))
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
    if is_complex(X):
        return to_complex(median_riemann(to_real(X), sample_weight))
    return average_median(average_over(X, sample_weight), X.shape[0])


# -- The same, given how to average over n matrices in all --------------------


def average_over(X: Array, sample_weight: Array | None = None) -> Average:
    """Return the average over the matrices of an array."""
    check_stack(X, "X")
    xp, weight = array_namespace(X), check_weights(sample_weight, X)
    if not weight.all():  # not even singular matrices count
        X = xp.take(X, like(np.flatnonzero(weight), X), axis=0)
    w = like(weight[weight > 0], X)
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
    frame, condition = _start_frame(average)
    d = frame.factor.shape[-1]
    p = d * (d + 1) // 2
    rows = average(partial(_log_and_curvature, factor=frame.factor, n=n, square=True))
    xp, square, here = array_namespace(rows), unvech(detached(rows[:p])), rows[p:]
    L = unvech(_traceless(detached(here[:p])))
    guess = partial(_solve_guess, *xp.linalg.eigh(square - L @ L))
    length, secants, rate = float(xp.linalg.vector_norm(detached(here[:p]))), Secants(), 1.0
    for _ in range(max_iter):
        J, (curvature, bound, ratio) = here[:p], (float(detached(here[k])) for k in (-3, -2, -1))
        step = secants.solve(J, curvature, guess)
        moved = frame.move(step)
        # The smallest log-eigenvalues are known no better than to the condition numbers times eps.
        if min(rate, 1.0) * length <= max(tol, d * _EPS * (ratio + condition)):
            return moved.root @ moved.root.mT
        here = average(partial(_log_and_curvature, factor=moved.factor, n=n))
        if float(xp.linalg.vector_norm(detached(here[:p]))) < length:
            secants.learn(detached(step), detached(J - here[:p]))
        else:  # the secants have misled: forget them, and take a step that cannot be too long
            secants, moved = Secants(), frame.move(J * (2 / (1 + bound)))
            here = average(partial(_log_and_curvature, factor=moved.factor, n=n))
        frame, after = moved, float(xp.linalg.vector_norm(detached(here[:p])))
        rate, length = after / length, after
    warn_at_caller(
        f"The Riemannian mean stopped after {max_iter} iterations with a gradient of length "
        f"{length:.2g} (tol={tol:.2g}): raise max_iter, or look for outlying matrices.",
        ConvergenceWarning,
    )
    return frame.root @ frame.root.mT


def average_median(
    average: Average, n: int | None = None, *, tol: float = 1e-9, max_iter: int = 500
) -> Array:
    """`median_riemann`, given how to average.

    The gradient is the mean of the tangent vectors over their distances; where past steps tell nothing, the
    curvature is the mean of one over the distances (Weiszfeld).
    """
    tiny = 1e-150  # a distance whose square is still a number
    frame, _ = _start_frame(average)
    spread = float(detached(average(partial(_by_distance, factor=frame.factor, n=n, near=tiny))[-1]))
    bound = max(tol * spread, 100 * frame.factor.shape[-1] * _EPS)  # of matrices that are the same
    near = max(0.01 * spread, tiny)  # distances below it count as squares
    here = average(partial(_by_distance, factor=frame.factor, n=n, near=near))
    secants, length = Secants(), 1.0
    for _ in range(max_iter):
        step = secants.solve(here[:-2], float(detached(here[-2])), truediv)
        size = float(array_namespace(step).linalg.vector_norm(detached(step)))
        if length * size <= bound:
            return frame.root @ frame.root.mT
        step = step * (length * min(1.0, 2 * spread / size))  # a sum of distances may be flat for long
        moved = frame.move(step)
        there = average(partial(_by_distance, factor=moved.factor, n=n, near=near))
        if float(detached(there[-1])) <= float(detached(here[-1])) * (1 + 4 * _EPS):
            secants.learn(detached(step), detached(here[:-2] - there[:-2]))
            frame, here, length = moved, there, 1.0
            continue
        length /= 2
        if length < 0.02:  # the secants have misled: forget them
            secants = Secants()
    warn_at_caller(
        f"The median stopped after {max_iter} iterations: look for matrices that are near singular.",
        ConvergenceWarning,
    )
    return frame.root @ frame.root.mT


# By name, given how to average over n matrices.
MEANS: dict[str, Callable[[Average, int | None], Array]] = {
    "riemann": average_riemann,
    "logeuclid": lambda average, n: expm(average(logm)),
    "euclid": lambda average, n: average(lambda X: X),
    "median": average_median,
}


def find_mean(name: str, average: Average, n: int, dtype: Any) -> Array:
    """A mean by its name, given how to average; of Hermitian matrices by their real ones."""
    if np.dtype(dtype).kind == "c" and name in ("riemann", "median"):
        return to_complex(MEANS[name](lambda f: average(lambda X: f(to_real(X))), n))
    return MEANS[name](average, n)


# -- Steps on the manifold ----------------------------------------------------


class Frame(NamedTuple):
    """A point ``root root'``, and the inverse of the root, in whose coordinates it is the identity."""

    root: Array  # (d, d)
    factor: Array  # (d, d)

    def move(self, step: Array) -> Frame:
        """Return the frame after a step along a geodesic, given as a vector in these coordinates."""
        xp = array_namespace(step)
        half, V = xp.linalg.eigh(unvech(step) / 2)
        grown, shrunk = (compose(xp.exp(sign * half), V) for sign in (1, -1))
        return Frame(self.root @ grown, shrunk @ self.factor)


def _start_frame(average: Average) -> tuple[Frame, float]:
    """The frame half way between the arithmetic and the harmonic mean, and the condition number there."""
    start = average(lambda X: X)
    xp = array_namespace(start)
    s, V = xp.linalg.eigh(start)
    harmonic = symmetrize(xp.linalg.inv(average(xp.linalg.inv)))
    if bool(xp.all(xp.isfinite(harmonic))) and bool(xp.all(xp.linalg.eigh(harmonic)[0] > 0)):
        root, factor = compose(s**0.5, V), compose(s**-0.5, V)
        s, V = xp.linalg.eigh(congruence(root, powm(congruence(factor, harmonic), 0.5)))
    return Frame(compose(s**0.5, V), compose(s**-0.5, V)), float(detached(s[-1] / s[0]))


def _solve_guess(values: Array, P: Array, q: Array, curvature: float) -> Array:
    """The inverse of a guess of the Hessian of half the mean squared distance, times a vector.

    To second order in the logarithms L it is ``x -> x + mean [L, [L, x]] / 12``, mainly ``M x + x M`` over 12
    with ``M = P diag(values) P'`` the mean of L^2 (``docs/math.md``).  Along the trace it is 1, exactly.
    """
    xp = array_namespace(values)
    square = values[:, None] + values[None, :]  # of the root mean square gap
    excess = ucothu(xp.sqrt(xp.where(square > 0, square, 0.0)) / 2) - 1  # of the curvature over 1
    mean = float(xp.mean(excess))
    excess = excess / mean if mean > 0 else excess
    rest = _traceless(q)
    hat = P.mT @ unvech(rest) @ P / (1 + (curvature - 1) * excess)
    return q - rest + _traceless(vech(P @ hat @ P.mT))


@dataclass
class Secants:
    """Limited-memory BFGS in the frame of the factor, in which vectors stay parallel along each step."""

    memory: int = 8
    # Step, change of the gradient, 1 / their product.
    pairs: list[tuple[Array, Array, float]] = field(default_factory=list)

    def learn(self, step: Array, change: Array) -> None:
        product = array_namespace(step).sum(step * change)
        if product > 0:
            self.pairs = [*self.pairs[1 - self.memory :], (step, change, 1 / product)]

    def solve(self, gradient: Array, curvature: float, guess: Guess) -> Array:
        """Inverse Hessian times a gradient."""
        xp, q, shares = array_namespace(gradient), gradient, []
        for step, change, scale in reversed(self.pairs):
            shares.append(scale * xp.sum(step * q))
            q = q - shares[-1] * change
        q = guess(q, curvature)
        for (step, change, scale), share in zip(self.pairs, reversed(shares), strict=True):
            q = q + (share - scale * xp.sum(change * q)) * step
        return q


# -- Rows to average ----------------------------------------------------------


def _log_and_curvature(X: Array, factor: Array, n: int | None, square: bool = False) -> Array:
    """The vectors of ``log(W X W')``, behind them two curvatures and the condition number.

    With ``square``, before them the vectors of the squared logarithms without their traces.  The mean vector
    is minus the gradient of half the mean squared distance; of its curvature the first number is about the
    mean over all directions, and the second a bound.

    Along an eigenvector pair with gap t of log-eigenvalues the curvature of half the squared distance is
    ``(t/2) coth(t/2)``; its mean is taken at the root mean square gap, which the vector tells.
    """
    xp, d = array_namespace(X), X.shape[-1]
    if isinstance(X, np.ndarray):
        decomposed = make_stack(X, n).decompose(factor)
        features, spread = decomposed.features, decomposed.spread[:, None]
    else:
        values, V = xp.linalg.eigh(congruence(factor, X))
        logs = xp.log(values)
        features, spread = vech(compose(logs, V)), logs[..., -1:] - logs[..., :1]
    if not bool(xp.all(xp.isfinite(spread))):
        raise ValueError(
            "A matrix of X is no longer positive definite once it is whitened by the mean: it is too "
            "close to singular for float64. Estimate the matrices with shrinkage, or bring the channels "
            "to comparable units."
        )
    along = features @ like(_unit_trace(d), features)
    rest = xp.sum(features * features, axis=-1) - along**2
    gap = xp.sqrt(xp.where(rest > 0, rest, 0.0) * (2 / max(d - 1, 1)))
    pairs, others = d * (d - 1) / 2, d - 1
    curvature = (others + pairs * ucothu(gap / 2)) / max(others + pairs, 1) + float(d == 1)
    rows = [features, curvature[:, None], ucothu(spread / 2), xp.exp(spread)]
    if square:
        L = unvech(_traceless(features))
        rows = [vech(L @ L), *rows]
    return xp.concat(rows, axis=-1)


def _by_distance(X: Array, factor: Array, n: int | None, near: float) -> Array:
    """Tangent vectors over their distances, behind them one over the distance, and the distance."""
    features = _log_and_curvature(X, factor, n)[:, :-3]
    xp = array_namespace(features)
    distance = xp.sqrt(xp.sum(features * features, axis=-1) + near**2)[:, None]
    return xp.concat([features / distance, 1 / distance, distance], axis=-1)


@lru_cache(maxsize=32)
def _unit_trace(d: int) -> np.ndarray:
    """The vector of the identity, of length 1."""
    return vech(np.eye(d)) / np.sqrt(d)


def _traceless(vectors: Array) -> Array:
    """Vectors of matrices without their traces, (..., p)."""
    trace = like(_unit_trace(isqrt(2 * vectors.shape[-1])), vectors)  # p is d (d + 1) / 2
    return vectors - (vectors @ trace)[..., None] * trace
