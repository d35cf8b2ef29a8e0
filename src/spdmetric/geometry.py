"""Geometry of the data: how SPD matrices are compared.

A reference point G enters through any factor W with ``W'W = G^-1``.  The *tangent vectors* ``vech(log(W X
W'))`` turn the LogEuclidean distance at G into the Euclidean one (Theorem 2 of [Yger2015]_).  Hermitian
matrices are compared in the same way.  Nothing is checked here: `spdmetric.validation.check_spd` does that.

Naming trap: the inner product here, the paper's k_G, is pyRiemann's
``kernel_riemann(Cref=G)``; its ``kernel_logeuclid(Cref=G)`` is another kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from array_api_compat import device

from spdmetric.linalg.batch import make_stack, pays
from spdmetric.linalg.compiled import EVALUATIONS
from spdmetric.linalg.hermitian import fill_matrices, list_entries
from spdmetric.linalg.symmetric import (
    Array,
    array_namespace,
    beside,
    compose,
    congruence,
    expm,
    invsqrtm,
    is_complex,
    logm,
    powm,
    sqrtm,
)
from spdmetric.linalg.threads import one_thread
from spdmetric.means import mean_euclid as mean_euclid
from spdmetric.means import mean_logeuclid as mean_logeuclid
from spdmetric.means import mean_riemann as mean_riemann
from spdmetric.means import median_riemann as median_riemann

PAIRWISE_METRICS = ("euclid", "logeuclid", "riemann", "stein")

# -- The tangent space at G ---------------------------------------------------


@one_thread
def tangent_vectors(X: Array, reference: Array | None = None, *, factor: Array | None = None) -> Array:
    """Vectors whose Euclidean distances are the LogEuclidean distances at a reference point.

    Parameters
    ----------
    X : array of shape (..., d, d)
        SPD matrices, or Hermitian positive definite ones.
    reference : array of shape (d, d), optional
        The reference point G; the identity by default.  Beside a tensor X it may be
        NumPy's, as the estimators keep it.
    factor : array of shape (m, d), optional
        A factor W to use instead of ``G^{-1/2}``; give one of the two.

    Returns
    -------
    vectors : array of shape (..., d(d+1)/2), or (..., m(m+1)/2)
        For Hermitian matrices real ones of d^2 or m^2 entries: the real parts, then the imaginary ones.
    """
    if factor is None and reference is not None:
        factor = invsqrtm(reference)
    return list_entries(logm(X if factor is None else congruence(beside(factor, X), X)))


def matrices_at(vectors: Array, reference: Array) -> Array:
    """SPD matrices whose `tangent_vectors` at ``reference`` are the given ones; it is complex if they are."""
    logs = fill_matrices(vectors, reference)
    return congruence(beside(sqrtm(reference), logs), expm(logs))


def log_map(X: Array, reference: Array) -> Array:
    """Riemannian logarithm ``G^{1/2} log(G^{-1/2} X G^{-1/2}) G^{1/2}``, equation (9) of [Yger2015]_."""
    return _apply_at(reference, logm, X)


def exp_map(S: Array, reference: Array) -> Array:
    """Riemannian exponential, the inverse of `log_map`, equation (8) of [Yger2015]_."""
    return _apply_at(reference, expm, S)


def geodesic(A: Array, B: Array, t: float) -> Array:
    """Point at share ``t`` of the affine-invariant geodesic from ``A`` to ``B``."""
    return _apply_at(A, lambda X: powm(X, t), B)


# -- Distances and inner products ---------------------------------------------


def _apply_at(reference: Array, function: Callable[[Array], Array], X: Array) -> Array:
    """Apply a function of matrices in coordinates in which the reference is the identity."""
    s, V = array_namespace(reference).linalg.eigh(reference)
    root, factor = compose(s**0.5, V), compose(s**-0.5, V)
    return congruence(root, function(congruence(factor, X)))


def distance_euclid(A: Array, B: Array) -> Array:
    """Frobenius distance, equation (1) of [Yger2015]_."""
    xp = array_namespace(A, B)
    return xp.linalg.vector_norm(list_entries(A - B), axis=-1)


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
    middle, a, b = (xp.linalg.slogdet(C)[1] for C in ((A + B) / 2, A, B))
    divergence = middle - (a + b) / 2
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
    return vectors @ others.mT


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
    if metric in ("euclid", "logeuclid"):
        embed = list_entries if metric == "euclid" else partial(tangent_vectors, reference=reference)
        u = embed(X)
        return _distances_of_vectors(u, u if Y is None else embed(Y))
    if metric in ("riemann", "stein"):
        distance = _riemann_for(X, Y) if metric == "riemann" else distance_stein
        if Y is None:
            return _symmetric(distance, X)
        return array_namespace(X, Y).stack([distance(X, Y[j, ...]) for j in range(Y.shape[0])], axis=-1)
    raise ValueError(f"Unknown metric {metric!r}; expected one of {', '.join(PAIRWISE_METRICS)}.")


def _floating(X: Array) -> Array:
    """Return integers as float64, real and complex floats as they are."""
    xp = array_namespace(X)
    floats = ("real floating", "complex floating")
    return X if xp.isdtype(X.dtype, floats) else xp.asarray(X, dtype=xp.float64)


def _distances_of_vectors(u: Array, v: Array) -> Array:
    """Euclidean distances, rows by rows; a whole stack at once would need n m p numbers."""
    xp = array_namespace(u, v)
    return xp.stack([xp.linalg.vector_norm(u[i : i + 1, :] - v, axis=-1) for i in range(u.shape[0])])


def _symmetric(distance: Callable[[Array, Array], Array], X: Array) -> Array:
    """Distances of all pairs of one stack, each computed once."""
    xp, n = array_namespace(X), X.shape[0]
    zeros = xp.zeros(n, dtype=xp.real(X).dtype if is_complex(X) else X.dtype, device=device(X))
    below = [xp.concat([zeros[: j + 1], distance(X[j + 1 :, ...], X[j, ...])]) for j in range(n - 1)]
    D = xp.stack([*below, zeros], axis=-1)
    return D + D.mT


def _riemann_for(X: Array, Y: Array | None) -> Callable[[Array, Array], Array]:
    """Return the quickest `distance_riemann` of a stack from one matrix, given how many there will be."""
    n = X.shape[0] * (X.shape[0] // 2 if Y is None else Y.shape[0]) // EVALUATIONS
    if type(X) is not np.ndarray or is_complex(X) or not pays(n, X.shape[-1]):
        return distance_riemann

    def compiled(X: np.ndarray, B: np.ndarray) -> np.ndarray:
        return np.linalg.norm(make_stack(X, n).decompose(invsqrtm(B)).features, axis=-1).astype(X.dtype)

    return compiled
