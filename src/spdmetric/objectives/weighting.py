"""The weighting of a metric: how much each direction of the tangent space counts.

With a weighting Q, (p, q), the distance of tangent vectors u and v is ``|Q'(u - v)|``.  It has a closed form:
ridge regression of the targets on the vectors, and the scores scaled so that the errors are alike in every
direction [Hastie1995]_.  The penalty is the one that makes the covariance within classes as good as so few
matrices allow [Ledoit2004]_, [Chen2010]_, or 0.3 or 3 times as much where the leave-one-out error, which is
exact, is then clearly less; of regression targets, it is the one of the least such error.

With ``C = sum w_i Phi_i' Phi_i = U diag(e) U'`` of centered vectors, the coefficients and the error of every
matrix left out are known for all penalties at once.  `FeatureRidge` needs the moments of all matrices and one
more pass for the errors, or estimates these; `GramRidge`, for fewer matrices than features, forms nothing of
size p x p and never subtracts a leverage from 1.  Derivations: ``docs/math.md``, "The weighting of a metric".
"""

from __future__ import annotations

from operator import add
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spdmetric.linalg.symmetric import Moments, center
from spdmetric.objectives.data import Target

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)

# Of regression targets, in units of the largest eigenvalue of C; of classes, the first and last are bounds.
_PENALTIES = np.logspace(-10, 2, 25)
# Of classes, in units of the closed form.  That makes the covariance good as a whole, whatever directions the
# classes differ in; it is left for another whose error is less by so many standard errors of the difference.
_FACTORS, _USUAL, _CLEARLY = np.array([0.3, 1.0, 3.0]), 1, 2.0
# Below this, leverages in the feature form lose their digits.
_LEAST_OF_FEATURES = 1e-8
# A direction that explains less than this share of the targets is rounding.
_LEAST_EXPLAINED = 1e-8
# Errors of less than this share, 1 % of the spread, are not told apart: without a floor a target free of
# noise would outweigh all others, and its scale would be that of rounding.
_LEAST_UNEXPLAINED = 1e-4
# Of the largest: targets spread less along a combination that is rounding, as the sum of all indicators is.
_LEAST_SPREAD = 1e-13
# A fit that explains more than this share of the targets, on the mean of the directions, interpolates.
_INTERPOLATES = 0.99


def rows_of(target: Target) -> np.ndarray:
    """Centered targets times the roots of their weights, (n, c)."""
    return np.sqrt(target.weight)[:, None] * target.Y


class Errors(NamedTuple):
    """Sums over matrices, each left out in turn; those of chunks add up."""

    squares: np.ndarray  # (n_penalties,), weighted squared errors
    products: np.ndarray  # (n_penalties, c, c), of which these are the traces
    total: float  # the same sum without any regression
    gaps: np.ndarray  # (n_penalties,), squares of the differences from the errors at the usual penalty
    n: int  # matrices

    def __add__(self, other: tuple[Any, ...]) -> Errors:
        return Errors(*map(add, self, other))


# Coefficients B, (p, c); what is explained, (c, c), sum w_i Y_i' F_i of the fitted F, and what is not.
Fit: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


class Weighting(NamedTuple):
    """Directions of the tangent space, scaled by what they tell of the targets."""

    directions: np.ndarray  # Q, (p, q)
    penalty: float  # of the ridge regression; it scales with the weights
    score: float  # share of the targets' variance explained, each matrix left out in turn


def discriminant_weighting(
    vectors: np.ndarray, target: Target, *, learned: bool = False, by_error: bool = False
) -> Weighting:
    """Weighting of tangent vectors (n, p) that are all at hand.

    They may be ``learned`` from the targets already; ``by_error`` the penalty is that of the least error for
    classes too, as for regression targets.
    """
    w, per_class = target.weight, None if by_error else target.per_class
    mean = (w @ vectors) / w.sum()
    rows = center(vectors, mean, w[:, None])  # (n, p)
    if rows.shape[0] < rows.shape[1]:
        gram = GramRidge.from_rows(rows, rows @ rows.T, target, per_class, learned)
        return weigh_directions(gram, gram.errors(target))
    Y = rows_of(target)
    moments = Moments(float(w.sum()), mean, np.zeros(Y.shape[1]), rows.T @ Y, rows.T @ rows)
    ridge = FeatureRidge.from_moments(moments, Y.T @ Y, per_class, learned)
    return weigh_directions(ridge, ridge.errors(rows, target))


# -- Ridge regression for all penalties at once -------------------------------


class FeatureRidge(NamedTuple):
    """From the moments of vectors and targets."""

    values: np.ndarray  # e, (p,)
    basis: np.ndarray  # U, (p, p)
    inner: np.ndarray  # U' sum w_i Phi_i' Y_i, (p, c)
    squares: np.ndarray  # sum w_i Y_i' Y_i, (c, c)
    weight: float  # of all matrices
    penalties: np.ndarray  # to try
    # Which of them is left only for one that is clearly better.  Of vectors that were learned it is the only
    # one: errors of the matrices that they were learned from are optimistic, and ask for too little of it.
    usual: int | None = None

    @classmethod
    def from_moments(
        cls, moments: Moments, squares: np.ndarray, per_class: float | None, learned: bool
    ) -> FeatureRidge:
        """From the moments of all vectors, and of the targets B; see `ClassTarget.per_class`."""
        values, basis = np.linalg.eigh(np.asarray(moments.C))
        values, inner, weight = np.maximum(values, 0.0), basis.T @ moments.A, moments.weight
        grid = _PENALTIES[_PENALTIES >= _LEAST_OF_FEATURES]
        tried = _penalties(grid, values, inner, squares, weight, len(basis), per_class, learned)
        return cls(values, basis, inner, squares, weight, *tried)

    def errors(self, rows: np.ndarray, target: Target) -> Errors:
        """Errors of a chunk: rows are its centered vectors, times the roots of their weights."""
        inverse = 1 / (self.values[:, None] + self.penalties)  # (p, n_penalties)
        found, Y, judged = [], rows_of(target), target.judged
        for start in range(0, rows.shape[0], 1024):
            part = slice(start, start + 1024)
            T = rows[part] @ self.basis
            residual = Y[part, None, :] - _products(T, inverse, self.inner)  # (n, n_penalties, c)
            leverage = T**2 @ inverse + (target.weight[part] / self.weight)[:, None]
            residual /= (1 - leverage)[:, :, None]
            found.append(_errors(residual[judged[part]], Y[part][judged[part]], self.usual))
        return sum(found[1:], start=found[0])

    def estimated_errors(self, n: float) -> Errors:
        """Errors of n matrices of one weight that are gone: each leverage is their mean [Golub1979]_."""
        scaled = self.inner / (self.values + self.penalties)[:, None]
        across, fitted = self.inner.T @ scaled, scaled.T @ (self.values[:, None] * scaled)
        leverage = (float(np.sum(self.values / (self.values + self.penalties))) + 1) / n
        products = (self.squares - across - across.T + fitted) / max(1 - leverage, 1 / n) ** 2
        square, total = max(float(np.trace(products)), 0.0), float(np.trace(self.squares))
        products = products * (square > _LEAST_EXPLAINED * total)
        return Errors(np.array([square]), products[None], total, np.zeros(1), 0)

    def fit(self, penalty: float) -> Fit:
        """Coefficients at a penalty."""
        scaled = self.inner / (self.values + penalty)[:, None]
        explained = scaled.T @ self.inner
        return self.basis @ scaled, explained, self.squares - explained


class GramRidge(NamedTuple):
    """From the inner products of the vectors.

    The root of the weights, which centering took out, is made an eigenvector apart from the others: then
    errors are quotients of sums of like signs.
    """

    values: np.ndarray  # e, (n - 1,)
    basis: np.ndarray  # (n, n - 1)
    inner: np.ndarray  # basis' times the targets, (n - 1, c)
    rows: np.ndarray  # (n, p)
    penalties: np.ndarray  # to try
    usual: int | None = None  # as above

    @classmethod
    def from_rows(
        cls, rows: np.ndarray, K: np.ndarray, target: Target, per_class: float | None, learned: bool
    ) -> GramRidge:
        """From rows as in `FeatureRidge.errors` and their inner products, (n, n)."""
        root = np.sqrt(target.weight / target.weight.sum())
        apart = 2 * np.trace(K) + np.finfo(float).tiny
        values, basis = np.linalg.eigh(K + apart * np.outer(root, root))
        values, basis = values[:-1], basis[:, :-1]
        floor = len(K) * _EPS * max(values[-1], 0.0) if values.size else 0.0
        values, inner = np.where(values > floor, values, 0.0), basis.T @ rows_of(target)
        along, squares, weight = np.sqrt(values)[:, None] * inner, inner.T @ inner, float(target.weight.sum())
        tried = _penalties(_PENALTIES, values, along, squares, weight, rows.shape[1], per_class, learned)
        return cls(values, basis, inner, rows, *tried)

    def errors(self, target: Target) -> Errors:
        left = self.penalties / (self.values[:, None] + self.penalties)  # (n - 1, n_penalties)
        leverage_left = self.basis**2 @ left  # 1 - leverage, (n, n_penalties)
        left_out = _products(self.basis, left, self.inner) / leverage_left[:, :, None]
        judged = target.judged
        return _errors(left_out[judged], rows_of(target)[judged], self.usual)

    def fit(self, penalty: float) -> Fit:
        """Coefficients at a penalty, in the space that the rows span."""
        scaled = self.inner / (self.values + penalty)[:, None]
        explained = (self.inner * self.values[:, None]).T @ scaled
        return ((self.basis @ scaled).T @ self.rows).T, explained, penalty * self.inner.T @ scaled


def _penalties(
    grid: np.ndarray,
    values: np.ndarray,
    along: np.ndarray,
    squares: np.ndarray,
    weight: float,
    p: int,
    per_class: float | None,
    learned: bool,
) -> tuple[np.ndarray, int | None]:
    """Penalties to try, and the usual one among them: without classes a grid, and none.

    Of classes they are about that of [Ledoit2004]_, which brings S, the covariance in a class, closest to
    truth. In units of the mean eigenvalue: what noise adds to the squared norm of S over what the covariance
    differs by from a multiple of the identity.  ``along`` is ``U' sum w_i Phi_i' Y_i``.
    """
    bounds = grid * (float(values[-1]) if values.size and values[-1] * _PENALTIES[0] > _TINY else 1.0)
    if per_class is None:
        return bounds, None
    between = along @ _inverse_root(squares)  # (p, c - 1), a root of the scatter of the class means
    taken = np.sum(between**2, axis=1)
    trace = float(values.sum() - taken.sum()) / weight
    penalty = bounds[len(bounds) // 2]
    if trace * weight > len(values) * _EPS * values.sum():
        square = float(values @ values - 2 * values @ taken + np.sum((between.T @ between) ** 2)) / weight**2
        noise = (trace**2 + square) / per_class  # in S of a class; all classes together have less of it
        distinct = square - trace**2 / p - noise / np.count_nonzero(np.diag(squares))
        penalty = weight * trace / p * noise / distinct if distinct > 0 else np.inf
    penalties = np.clip(_FACTORS * penalty, bounds[0], bounds[-1])
    return (penalties[[_USUAL]], None) if learned else (penalties, _USUAL)


def _products(left: np.ndarray, scales: np.ndarray, right: np.ndarray) -> np.ndarray:
    """``left diag(scales_l) right`` for every column l of scales, as one product; (n, l, c)."""
    k, n_scales = scales.shape
    stacked = (scales[:, :, None] * right[:, None, :]).reshape(k, -1)
    return (left @ stacked).reshape(len(left), n_scales, -1)


def _errors(left_out: np.ndarray, targets: np.ndarray, usual: int | None) -> Errors:
    """Sums over matrices, of errors (n, n_penalties, c) and of targets (n, c)."""
    products = np.einsum("nlc,nld->lcd", left_out, left_out, optimize=True)
    squares = np.sum(left_out**2, axis=2)
    gaps = np.sum((squares - squares[:, [usual or 0]]) ** 2, axis=0)
    return Errors(squares.sum(axis=0), products, float(np.vdot(targets, targets)), gaps, len(targets))


# -- From the regression to the weighting -------------------------------------


def weigh_directions(ridge: FeatureRidge | GramRidge, errors: Errors) -> Weighting:
    """Choose the penalty of the least error, the usual one if that is not clearly worse; scale the scores."""
    judged, usual = errors.total > 0, ridge.usual
    k = int(np.argmin(errors.squares)) if judged else len(errors.squares) // 2
    if usual is not None:
        gain = errors.squares[usual] - errors.squares
        noise = np.sqrt(np.maximum(errors.gaps - gain**2 / max(errors.n, 1), 0.0))
        better = np.flatnonzero(gain > _CLEARLY * noise)
        k = min([usual, *better], key=lambda k: errors.squares[k])
    penalty = float(ridge.penalties[k])
    score = 1.0 - float(errors.squares[k]) / errors.total if judged else 0.0
    return Weighting(_directions(ridge.fit(penalty), errors.products[k]), penalty, score)


def _directions(fit: Fit, left_out: np.ndarray) -> np.ndarray:
    """Scores scaled so that their errors are alike in every direction.

    They are those of the fit itself.  A fit that interpolates has none; there the errors of the matrices left
    out take their place, half of their covariance replaced by its mean as they are few.
    """
    coefficients, explained, unexplained = fit
    root = _inverse_root(explained + unexplained)  # (c, r): r targets are independent
    share, theta = np.linalg.eigh(root.T @ explained @ root)
    known = share > _LEAST_EXPLAINED
    if known.any() and share[known].mean() > _INTERPOLATES and left_out.any():
        contrasts = np.linalg.qr(root)[0]
        errors = contrasts.T @ left_out @ contrasts
        shrunk = errors / np.trace(errors) * len(errors) + np.eye(len(errors))
        directions = coefficients @ (contrasts @ _inverse_root(shrunk))
    else:
        share, theta = (
            share[known][::-1],
            root @ theta[:, known][:, ::-1],
        )  # what is explained best comes first
        rest = np.einsum("ij,ik,kj->j", theta, unexplained, theta)
        directions = coefficients @ (theta / np.sqrt(share * np.maximum(rest, _LEAST_UNEXPLAINED)))
    # The largest entry of each is positive: the sign hangs neither on LAPACK nor on class names.
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=0)[None], axis=0)
    return np.where(largest < 0, -1.0, 1.0) * directions


def _inverse_root(S: np.ndarray) -> np.ndarray:
    """Columns R with ``R' S R = I`` that span the range of S, (c, rank)."""
    values, vectors = np.linalg.eigh(S)
    kept = values > _LEAST_SPREAD * max(values[-1], 0.0)
    return vectors[:, kept] / np.sqrt(values[kept])
