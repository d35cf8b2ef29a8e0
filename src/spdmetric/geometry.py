"""Geometry of the data: how SPD matrices are compared.

A reference point G enters through any factor W with ``W'W = G^-1``: all of
``log(W X W')`` for ``W`` and for ``QW``, Q orthogonal, have the same distances and
inner products.  The *tangent vectors* ``vech(log(W X W'))`` turn the LogEuclidean
distance at G into the Euclidean one (Theorem 2 of [Yger2015]_).

Naming trap: the inner product here, the paper's k_G, is pyRiemann's
``kernel_riemann(Cref=G)``; its ``kernel_logeuclid(Cref=G)`` is another kernel.

Nothing is checked here, where most of the time is spent: `spdmetric.validation.check_spd` says of a stack
whether it holds SPD matrices, or what is wrong with the first that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from array_api_compat import device
from sklearn.exceptions import ConvergenceWarning

from spdmetric.caller import warn_at_caller
from spdmetric.linalg.batch import stack_of
from spdmetric.linalg.compiled import EVALUATIONS, pays
from spdmetric.linalg.symmetric import (
    Array,
    LogCongruence,
    Spectrum,
    array_namespace,
    beside,
    congruence,
    detached,
    expm,
    invsqrtm,
    like,
    logm,
    powm,
    spectrum,
    sqrtm,
    symmetrize,
    transpose,
    triangular_root,
    ucothu,
    unvech,
    vech,
)
from spdmetric.linalg.threads import one_thread

_EPS = float(np.finfo(np.float64).eps)
_TINY = 1e-150  # a distance whose square is still a number
_SHORT = 0.02  # share of a step in the search for a median below which the steps before it are forgotten
_NEAR = 0.01  # distances below this share of their mean count as squares in a median

# ---------------------------------------------------------------------------
# The tangent space at G


@one_thread
def tangent_vectors(X: Array, reference: Array | None = None, *, factor: Array | None = None) -> Array:
    """Vectors whose Euclidean distances are the LogEuclidean distances at a reference point.

    Parameters
    ----------
    X : array of shape (..., d, d)
        SPD matrices.
    reference : array of shape (d, d), optional
        The reference point G; the identity by default.  Beside a tensor X it may be
        NumPy's, as the estimators keep it.
    factor : array of shape (m, d), optional
        A factor W to use instead of ``G^{-1/2}``; give one of the two.

    Returns
    -------
    vectors : array of shape (..., d(d+1)/2), or (..., m(m+1)/2)
    """
    if factor is None and reference is not None:
        factor = invsqrtm(reference)
    return vech(logm(X if factor is None else congruence(beside(factor, X), X)))


def matrices_at(vectors: Array, reference: Array) -> Array:
    """SPD matrices whose `tangent_vectors` at ``reference`` are the given ones."""
    return congruence(beside(sqrtm(reference), vectors), expm(unvech(vectors)))


def log_map(X: Array, reference: Array) -> Array:
    """Riemannian logarithm ``G^{1/2} log(G^{-1/2} X G^{-1/2}) G^{1/2}``, equation (9) of [Yger2015]_."""
    root, factor = Frame.of(spectrum(reference))
    return congruence(root, logm(congruence(factor, X)))


def exp_map(S: Array, reference: Array) -> Array:
    """Riemannian exponential, the inverse of `log_map`, equation (8) of [Yger2015]_."""
    root, factor = Frame.of(spectrum(reference))
    return congruence(root, expm(congruence(factor, S)))


def geodesic(A: Array, B: Array, t: float) -> Array:
    """Point at share ``t`` of the affine-invariant geodesic from ``A`` to ``B``."""
    root, factor = Frame.of(spectrum(A))
    return congruence(root, powm(congruence(factor, B), t))


# ---------------------------------------------------------------------------
# Distances and inner products


def distance_euclid(A: Array, B: Array) -> Array:
    """Frobenius distance, equation (1) of [Yger2015]_."""
    xp = array_namespace(A, B)
    return xp.linalg.vector_norm(vech(A - B), axis=-1)


@one_thread
def distance_logeuclid(A: Array, B: Array, reference: Array | None = None) -> Array:
    """LogEuclidean distance at a reference point, equations (2) and (3) of [Yger2015]_."""
    xp = array_namespace(A, B)
    difference = tangent_vectors(A, reference) - tangent_vectors(B, reference)
    return xp.linalg.vector_norm(difference, axis=-1)


@one_thread
def distance_riemann(A: Array, B: Array) -> Array:
    """Affine-invariant distance, equation (10) of [Yger2015]_."""
    xp = array_namespace(A, B)
    values = xp.linalg.eigvalsh(congruence(invsqrtm(B), A))
    return xp.linalg.vector_norm(xp.log(values), axis=-1)


def distance_stein(A: Array, B: Array) -> Array:
    """Square root of the symmetrized Stein divergence (pyRiemann's ``distance_logdet``)."""
    xp = array_namespace(A, B)

    def log_det(C: Array) -> Array:
        return xp.linalg.slogdet(C)[1]

    divergence = log_det((A + B) / 2) - (log_det(A) + log_det(B)) / 2
    return xp.sqrt(xp.where(divergence > 0, divergence, xp.zeros_like(divergence)))


@one_thread
def kernel_tangent(X: Array, Y: Array | None = None, reference: Array | None = None) -> Array:
    """Inner products of tangent vectors: the paper's k_G.

    Parameters
    ----------
    X, Y : array of shape (n, d, d) and (m, d, d)
        SPD matrices; ``Y = X`` by default.
    reference : array of shape (d, d), optional
        The reference point G; the identity by default.

    Returns
    -------
    K : array of shape (n, m)
    """
    vectors = tangent_vectors(X, reference)
    others = vectors if Y is None else tangent_vectors(Y, reference)
    return vectors @ transpose(others)


PAIRWISE_METRICS = ("euclid", "logeuclid", "riemann", "stein")


@one_thread
def pairwise_distance(
    X: Array, Y: Array | None = None, metric: str = "riemann", *, reference: Array | None = None
) -> Array:
    """Distances between all matrices of two stacks.

    Parameters
    ----------
    X, Y : array of shape (n, d, d) and (m, d, d)
        SPD matrices; ``Y = X`` by default.
    metric : {"euclid", "logeuclid", "riemann", "stein"}, default="riemann"
        The two flat metrics embed each matrix once and compare vectors; the two
        curved ones factor each matrix of ``Y`` once.
    reference : array of shape (d, d), optional
        Reference point of ``"logeuclid"``; the identity by default.

    Returns
    -------
    D : array of shape (n, m)
    """
    X, Y = _floating(X), None if Y is None else _floating(Y)
    if metric == "euclid":
        return _distances_of_vectors(vech(X), None if Y is None else vech(Y))
    if metric == "logeuclid":
        others = None if Y is None else tangent_vectors(Y, reference)
        return _distances_of_vectors(tangent_vectors(X, reference), others)
    if metric in ("riemann", "stein"):
        distance = _riemann_for(X, Y) if metric == "riemann" else distance_stein
        if Y is None:
            return _symmetric(distance, X)
        return array_namespace(X, Y).stack([distance(X, Y[j, ...]) for j in range(Y.shape[0])], axis=-1)
    raise ValueError(f"Unknown metric {metric!r}; expected one of {', '.join(PAIRWISE_METRICS)}.")


def _floating(X: Array) -> Array:
    """Return integers as float64, floats as they are."""
    xp = array_namespace(X)
    return X if xp.isdtype(X.dtype, "real floating") else xp.asarray(X, dtype=xp.float64)


def _distances_of_vectors(u: Array, v: Array | None) -> Array:
    """Euclidean distances, rows by rows; a whole stack at once would need n m p numbers."""
    v = u if v is None else v
    xp = array_namespace(u, v)
    return xp.stack([xp.linalg.vector_norm(u[i : i + 1, :] - v, axis=-1) for i in range(u.shape[0])])


def _symmetric(distance: Callable[[Array, Array], Array], X: Array) -> Array:
    """Distances of all pairs of one stack, each computed once."""
    xp, n = array_namespace(X), X.shape[0]
    zeros = xp.zeros(n, dtype=X.dtype, device=device(X))
    below = [xp.concat([zeros[: j + 1], distance(X[j + 1 :, ...], X[j, ...])]) for j in range(n - 1)]
    D = xp.stack([*below, zeros], axis=-1)
    return D + transpose(D)


def _riemann_for(X: Array, Y: Array | None) -> Callable[[Array, Array], Array]:
    """Return the quickest `distance_riemann` of a stack from one matrix, given how many there will be."""
    n = X.shape[0] * (X.shape[0] // 2 if Y is None else Y.shape[0]) // EVALUATIONS
    if type(X) is not np.ndarray or not pays(n, X.shape[-1]):
        return distance_riemann

    def compiled(X: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.linalg.norm(stack_of(X, n).decompose(invsqrtm(B)).features, axis=-1).astype(X.dtype)

    return compiled


# ---------------------------------------------------------------------------
# Means


def mean_euclid(X: Array, sample_weight: Array | None = None, *, chunk_size: int | None = None) -> Array:
    """Arithmetic mean: its determinant can exceed every determinant (the swelling effect)."""
    return euclid_of(averaging(X, sample_weight, chunk_size))


@one_thread
def mean_logeuclid(X: Array, sample_weight: Array | None = None, *, chunk_size: int | None = None) -> Array:
    """LogEuclidean mean, ``exp(mean(log X))``."""
    return logeuclid_of(averaging(X, sample_weight, chunk_size))


@one_thread
def mean_riemann(
    X: Array,
    sample_weight: Array | None = None,
    *,
    chunk_size: int | None = None,
    tol: float = 1e-9,
    max_iter: int = 200,
) -> Array:
    """Riemannian (affine-invariant, Karcher) mean of SPD matrices.

    Parameters
    ----------
    X : array of shape (n, d, d)
        SPD matrices.
    sample_weight : array of shape (n,), optional
        Non-negative weights; a weight of 2 is the matrix given twice.
    chunk_size : int, optional
        How many matrices to hold whitened at a time; all of them by default.
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
    return riemann_of(averaging(X, sample_weight, chunk_size), X.shape[0], tol=tol, max_iter=max_iter)


@one_thread
def median_riemann(X: Array, sample_weight: Array | None = None, *, chunk_size: int | None = None) -> Array:
    """Geometric median of SPD matrices by the affine-invariant distance, which outlying ones hardly move.

    The point of the least sum of distances, not of squared ones [Fletcher2009]_; distances below 1 % of
    their mean count less, as squares, so that the sum is smooth.  Parameters are those of `mean_riemann`.

    References
    ----------
    .. [Fletcher2009] P. T. Fletcher, S. Venkatasubramanian and S. Joshi, "The geometric median on
       Riemannian manifolds with application to robust atlas estimation", NeuroImage 45, 2009.
    """
    return median_of(averaging(X, sample_weight, chunk_size), X.shape[0])


# The same means where the matrices are not at hand as one array: all that a mean needs is
# the average of a function of stacks over all matrices, wherever they are.

RowFunction = Callable[[Array], Array]  # of a stack of matrices, one row for each
Average = Callable[[RowFunction], Array]  # the weighted mean of the rows


def euclid_of(average: Average, n: int | None = None) -> Array:
    """`mean_euclid`, given how to average."""
    return average(lambda X: X)


def logeuclid_of(average: Average, n: int | None = None) -> Array:
    """`mean_logeuclid`, given how to average."""
    return expm(average(logm))


def riemann_of(average: Average, n: int | None = None, *, tol: float = 1e-9, max_iter: int = 200) -> Array:
    """`mean_riemann`, given how to average, over n matrices in all."""
    s = spectrum(_between_means(average))
    frame = Frame.of(s)
    condition = float(detached(s.values[-1] / s.values[0]))
    here, axes = _first_mean_log(average, frame, n)
    secants, rate = Secants(axes), 1.0
    for _ in range(max_iter):
        step = secants.solve(here.J, here.curvature)
        # The smallest log-eigenvalues are known no better than to the condition numbers times eps.
        floor = s.values.shape[-1] * _EPS * (here.condition + condition)
        if min(rate, 1.0) * here.length <= max(tol, floor):
            return here.frame.moved(step).point
        there = _mean_log(average, here.frame.moved(step), n)
        if there.length < here.length:
            secants.learn(detached(step), detached(here.J - there.J))
        else:  # the secants have misled: forget them, and take a step that cannot be too long
            secants, step = Secants(axes), here.J * (2 / (1 + here.bound))
            there = _mean_log(average, here.frame.moved(step), n)
        rate, here = there.length / here.length, there
    warn_at_caller(
        f"The Riemannian mean stopped after {max_iter} iterations with a gradient of length "
        f"{here.length:.2g} (tol={tol:.2g}): raise max_iter, or look for outlying matrices.",
        ConvergenceWarning,
    )
    return here.frame.point


def median_of(average: Average, n: int | None = None, *, tol: float = 1e-9, max_iter: int = 500) -> Array:
    """`median_riemann`, given how to average, over n matrices in all.

    The gradient is the mean of the tangent vectors, each divided by its distance; where past steps tell
    nothing, the curvature is the mean of one over the distances (Weiszfeld).  A step is halved where the sum
    of distances would grow.
    """
    frame = Frame.of(spectrum(_between_means(average)))
    spread = float(detached(average(_by_distance(frame.factor, n, _TINY))[-1]))
    bound = max(tol * spread, 100 * frame.factor.shape[-1] * _EPS)  # of matrices that are the same
    near = max(_NEAR * spread, _TINY)
    here, secants, length = average(_by_distance(frame.factor, n, near)), Secants(Even()), 1.0
    for _ in range(max_iter):
        step = secants.solve(here[:-2], float(detached(here[-2])))
        size = float(array_namespace(step).linalg.vector_norm(detached(step)))
        if length * size <= bound:
            return frame.point
        step = step * (length * min(1.0, 2 * spread / size))  # a sum of distances may be flat for long
        moved = frame.moved(step)
        there = average(_by_distance(moved.factor, n, near))
        if float(detached(there[-1])) <= float(detached(here[-1])) * (1 + 4 * _EPS):
            secants.learn(detached(step), detached(here[:-2] - there[:-2]))
            frame, here, length = moved, there, 1.0
            continue
        length /= 2
        if length < _SHORT:  # the secants have misled: forget them
            secants = Secants(Even())
    warn_at_caller(
        f"The median stopped after {max_iter} iterations: look for matrices that are near singular.",
        ConvergenceWarning,
    )
    return frame.point


def _by_distance(factor: Array, n: int | None, near: float) -> RowFunction:
    """Map X to its tangent vector over its distance, behind it one over the distance, and the distance."""
    of_log = _log_and_curvature(factor, n)

    def rows(X: Array) -> Array:
        features = of_log(X)[:, :-3]
        xp = array_namespace(features)
        distance = xp.sqrt(xp.sum(features * features, axis=-1) + near**2)[:, None]
        return xp.concat([features / distance, 1 / distance, distance], axis=-1)

    return rows


def _between_means(average: Average) -> Array:
    """Half way between the arithmetic and the harmonic mean, whose errors are opposite to first order."""
    mean = euclid_of(average)
    xp = array_namespace(mean)
    harmonic = symmetrize(xp.linalg.inv(average(xp.linalg.inv)))
    usable = bool(xp.all(xp.isfinite(harmonic))) and bool(xp.all(spectrum(harmonic).values > 0))
    return geodesic(mean, harmonic, 0.5) if usable else mean


class Frame(NamedTuple):
    """A point ``root root'``, and the inverse of the root, in whose coordinates it is the identity."""

    root: Array  # (d, d)
    factor: Array  # (d, d)

    @classmethod
    def of(cls, s: Spectrum) -> Frame:
        return cls(s.compose(s.values**0.5), s.compose(s.values**-0.5))

    @property
    def point(self) -> Array:
        return self.root @ transpose(self.root)

    def moved(self, step: Array) -> Frame:
        """The same after a step along a geodesic, given as a vector in these coordinates."""
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


def _mean_log(average: Average, frame: Frame, n: int | None) -> MeanLog:
    return _of_means(average(_log_and_curvature(frame.factor, n)), frame)


def _of_means(mean: Array, frame: Frame) -> MeanLog:
    J, rest = mean[:-3], [float(detached(mean[k])) for k in (-3, -2, -1)]
    return MeanLog(frame, J, float(array_namespace(J).linalg.vector_norm(detached(J))), *rest)


def _first_mean_log(average: Average, frame: Frame, n: int | None) -> tuple[MeanLog, Axes]:
    """The same, and the axes that the scatter of the logarithms has."""
    of_log = _log_and_curvature(frame.factor, n)
    d = frame.factor.shape[-1]
    p = d * (d + 1) // 2

    def rows(X: Array) -> Array:
        of_X = of_log(X)
        L = unvech(_traceless(of_X[:, :p]))
        return array_namespace(X).concat([vech(L @ L), of_X], axis=-1)

    mean = average(rows)
    J = unvech(_traceless(detached(mean[p : 2 * p])))
    return _of_means(mean[p:], frame), Axes.of(unvech(detached(mean[:p])) - J @ J)


class Axes(NamedTuple):
    """A guess of the Hessian of half the mean squared distance, diagonal on the axes of a scatter matrix.

    To second order in the logarithms L the Hessian is ``x -> x + mean [L, [L, x]] / 12``.  The main part of
    that mean is ``M x + x M``, with M the mean of L^2: it is diagonal on the axes of M (``docs/math.md``).
    """

    vectors: Array  # (d, d)
    excess: Array  # (d, d), of the curvature over 1, 1 on the mean

    @classmethod
    def of(cls, M: Array) -> Axes:
        xp, (values, vectors) = array_namespace(M), spectrum(M)
        square = values[:, None] + values[None, :]  # of the root mean square gap
        excess = ucothu(xp.sqrt(xp.where(square > 0, square, xp.zeros_like(square))) / 2) - 1
        mean = float(xp.mean(excess))
        return cls(vectors, excess / mean if mean > 0 else excess)

    def solve(self, q: Array, curvature: float) -> Array:
        """Inverse of the guess times a vector, given the mean curvature; it is 1 along the trace, exactly."""
        P, rest = self.vectors, _traceless(q)
        hat = transpose(P) @ unvech(rest) @ P / (1 + (curvature - 1) * self.excess)
        return q - rest + _traceless(vech(P @ hat @ transpose(P)))


class Even(NamedTuple):
    """The guess that the Hessian is the same in all directions."""

    def solve(self, q: Array, curvature: float) -> Array:
        """Inverse of the guess times a vector."""
        return q / curvature


class Secants:
    """Limited-memory BFGS in the frame of the factor, in which vectors stay parallel along each step.

    Where past steps tell nothing the Hessian is guessed, for a mean from the axes along which matrices vary.
    """

    def __init__(self, axes: Axes | Even, memory: int = 8):
        self._axes, self._memory = axes, memory
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
        q = self._axes.solve(q, curvature)
        for (step, change, scale), share in zip(self._pairs, reversed(shares), strict=True):
            q = q + (share - scale * _inner(change, q)) * step
        return q


def _inner(a: Array, b: Array) -> Array:
    return array_namespace(a).sum(a * b)


@lru_cache(maxsize=32)
def _unit_trace(d: int) -> np.ndarray:
    """The vector of the identity, of length 1."""
    return vech(np.eye(d)) / np.sqrt(d)


def _traceless(vectors: Array) -> Array:
    """Vectors of matrices without their traces, (..., p)."""
    trace = like(_unit_trace(triangular_root(vectors.shape[-1])), vectors)
    return vectors - (vectors @ trace)[..., None] * trace


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
            log = LogCongruence.of(congruence(factor, X)).log
            features, spread = vech(log.compose(log.values)), log.values[..., -1:] - log.values[..., :1]
        if not bool(xp.all(xp.isfinite(spread))):
            raise ValueError(
                "A matrix of X is no longer positive definite once it is whitened by the mean: it is too "
                "close to singular for float64. Estimate the matrices with shrinkage, or bring the channels "
                "to comparable units."
            )
        along = features @ like(_unit_trace(d), features)
        square = xp.sum(features * features, axis=-1) - along**2
        gap = xp.sqrt(xp.where(square > 0, square, xp.zeros_like(square)) * (2 / max(d - 1, 1)))
        pairs, others = d * (d - 1) / 2, d - 1
        curvature = (others + pairs * ucothu(gap / 2)) / max(others + pairs, 1) + float(d == 1)
        return xp.concat([features, curvature[:, None], ucothu(spread / 2), xp.exp(spread)], axis=-1)

    return rows


def averaging(X: Array, sample_weight: Array | None = None, chunk_size: int | None = None) -> Average:
    """Average over the matrices of an array, chunk by chunk."""
    xp = array_namespace(X)
    w = xp.ones(X.shape[0], dtype=X.dtype, device=device(X)) if sample_weight is None else sample_weight

    def average(f: RowFunction) -> Array:
        total: Array = 0.0
        for part in chunks(X.shape[0], chunk_size):
            total = total + weighted_sum(f, X[part, ...], w[part])
        return total / xp.sum(w)

    return average


def weighted_sum(f: RowFunction, X: Array, weight: Array) -> Array:
    """Weighted sum of the rows of ``f`` over a stack."""
    values = f(X)
    xp = array_namespace(values)
    return xp.sum(xp.reshape(weight, (-1,) + (1,) * (values.ndim - 1)) * values, axis=0)


def chunks(n: int, size: int | None) -> Iterator[slice]:
    """Slices that cut ``range(n)`` into chunks of like sizes, at most ``size``; one slice for None.

    Where ``size`` is a multiple of eight, so are the chunks but for the last: compiled kernels
    take eight matrices at a time.
    """
    if size is not None and n > size:
        even = -(-n // -(-n // size))
        size = even if size % 8 else -(-even // 8) * 8
    size = n if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


# By name, given how to average over n matrices.
MEANS: dict[str, Callable[[Average, int | None], Array]] = {
    "riemann": riemann_of,
    "logeuclid": logeuclid_of,
    "euclid": euclid_of,
    "median": median_of,
}
