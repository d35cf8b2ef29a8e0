"""Where learning starts: the center of the ball, and at low rank the directions that tell most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from math import inf, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from spdmetric.caller import spell
from spdmetric.linalg.batch import Views, make_stack, map_views, view_columns
from spdmetric.linalg.symmetric import Array, congruence, is_complex, logm, powm
from spdmetric.manifolds import Ball, ProductBall, RankBall
from spdmetric.means import Average, find_mean
from spdmetric.objectives.data import Data, Summand, Target, count_differences, take_view, view_sizes, whiten
from spdmetric.validation import (
    RADIUS,
    UninformativeDataError,
    check_spd,
    check_value,
    is_definite,
    to_numpy,
)

_EPS = float(np.finfo(np.float64).eps)

Total = Callable[[Summand], Any]  # a function of chunks, summed over all of them


class Start(NamedTuple):
    """Coordinates in which learning starts at the first axes.

    Matrices are brought to the range that they share, whitened by the center G0, and rotated so that the
    first axes tell most of the targets (at full rank the rotation is the identity).
    """

    basis: np.ndarray  # (d, k), orthonormal columns that span the common range
    center: np.ndarray  # (k, k), G0 in that basis
    rotation: np.ndarray  # (k, k)

    def placed_at(self, center: Start) -> Start:
        """The same, of matrices that were whitened by the center of another start."""
        return self._replace(center=center.center)

    @property
    def factor(self) -> np.ndarray:
        """W0, of shape (k, d): the coordinates of X are ``W0 X W0'``."""
        return self.rotation @ powm(self.center, -0.5) @ self.basis.conj().T

    def ball(self, rank: int | None, radius: float, *, real: bool = True) -> Any:
        """The points within a distance; with ``real``, complex coordinates are shown as real ones."""
        if real and is_complex(self.center):
            return ProductBall([self.ball(rank, inf, real=False)], None, radius)
        k, dtype = self.center.shape[0], self.center.dtype
        return Ball(np.eye(k, dtype=dtype), radius) if rank is None else RankBall(k, rank, radius, dtype)


class ViewStarts(NamedTuple):
    """Where learning starts in each view, without its padding, and what multiplies its tangent vectors."""

    views: tuple[Start, ...]
    scales: tuple[float, ...]

    @property
    def rotation(self) -> Views:
        """That of each view."""
        return Views(tuple(start.rotation for start in self.views), self.scales)

    @property
    def factor(self) -> Views:
        """W0 of each view."""
        return Views(tuple(start.factor for start in self.views), self.scales)

    def placed_at(self, center: ViewStarts) -> ViewStarts:
        """The same, of matrices that were whitened by the centers of others."""
        return self._replace(views=tuple(map(Start.placed_at, self.views, center.views)))

    def rescaled(self, data: Data, factors: Iterable[np.ndarray]) -> ViewStarts:
        """The same with scales that give the tangent vectors of all views at some factors one spread."""
        if len(self.views) == 1:
            return self
        unscaled = Views(tuple(factors), (1.0,) * len(self.views))
        sums, squares = data.total(partial(_sum_features, unscaled)) / data.target.total, []
        for v, columns in enumerate(view_columns(unscaled.views)):
            mean = sums[columns]
            squares.append(float(sums[len(sums) - len(self.views) + v] - mean @ mean))
            if squares[-1] <= (100 * data.shape[-1] * _EPS) ** 2:
                raise UninformativeDataError(
                    f"All matrices of view {v}, X[:, {v}], are the same: it tells nothing. Leave it out."
                )
        usual = sum(squares) / len(squares)  # that of all together
        shares = [usual / square for square in squares]
        return self._replace(scales=tuple(sqrt(share) if isfinite(share) else 1.0 for share in shares))

    def ball(self, rank: int | None, radius: float) -> ProductBall:
        """The points within a distance of it, in the mean square of the views."""
        ranks = [None if rank is None else min(rank, len(start.center)) for start in self.views]
        balls = [start.ball(m, inf, real=False) for start, m in zip(self.views, ranks, strict=True)]
        radius *= sqrt(len(balls))
        check_value("radius", radius, RADIUS)
        return ProductBall(balls, self.scales, radius)


def find_start(
    data: Data, init: str | Array, rank: int | None, *, view: tuple[int, int] | None = None
) -> Any:
    """Choose where learning starts, of several views but for one ``view``, (number, size), a `ViewStarts`."""
    d = data.shape[-1] if view is None else view[1]
    if rank is not None and rank > d:
        raise ValueError(f"{spell('rank', rank)} is more than the size of the matrices, {d} x {d}.")
    average, total = data.average, data.total
    if view is not None:
        average, total = (partial(over_view, of_all, *view) for of_all in (average, total))
    elif len(data.shape) == 4:
        return _find_view_starts(data, init, rank)
    if not isinstance(init, str):
        init = check_spd(np.asarray(to_numpy(init))[None], name="init")[0]
        if init.shape != (d, d):
            raise ValueError(f"init has shape {init.shape}, but the matrices of X are {d} x {d}.")
        init = init.astype(np.result_type(init, data.dtype), copy=False)  # a real one of complex matrices
    basis = np.eye(d)
    if rank is not None:  # of singular matrices, on the range that they share
        basis = common_range(average)
        average = _of(partial(congruence, basis.conj().T), average)
        inward = _of(partial(congruence, basis.conj().T), total)
        definite = inward(lambda X, target: not is_definite(X)) == 0
        if isinstance(init, str) and init in ("riemann", "median", "logeuclid") and not definite:
            raise ValueError(
                f"init={init!r} needs matrices that are positive definite on the {basis.shape[1]} dimensions "
                "of their common range, and some are singular there (fewer samples than channels?): pass "
                "init='euclid', or estimate the matrices with shrinkage."
            )
    if not isinstance(init, str):
        center = init if rank is None else congruence(basis.conj().T, init)
    elif init == "identity":
        center = np.eye(basis.shape[1], dtype=data.dtype)
    else:
        center = find_mean(init, average, data.shape[0], data.dtype)
    if rank is None:
        return Start(basis, center, np.eye(d))
    whitened = _of(partial(congruence, powm(center, -0.5) @ basis.conj().T), total)
    departures = _of(logm if definite else lambda X: X - np.eye(X.shape[-1]), whitened)
    return Start(basis, center, class_directions(departures, center.shape[0], data.target.contrasts))


def _find_view_starts(data: Data, init: str | Array, rank: int | None) -> ViewStarts:
    """Start each view by itself; of low rank, a small view has at most its own size."""
    V, d = data.shape[1], data.shape[-1]
    inits = [init] * V if isinstance(init, str) else list(np.asarray(to_numpy(init)))
    if not isinstance(init, str) and np.shape(init) != (V, d, d):
        raise ValueError(f"init has shape {np.shape(init)}: expected {(V, d, d)}, a matrix for each view.")
    starts = []
    for v, (k, own) in enumerate(zip(view_sizes(data.total(count_differences)), inits, strict=True)):
        own = own if isinstance(own, str) else own[:k, :k]
        starts.append(find_start(data, own, None if rank is None else min(rank, k), view=(v, k)))
    return ViewStarts(tuple(starts), (1.0,) * V).rescaled(data, (start.factor[:rank] for start in starts))


def over_view(of_all: Callable[..., Any], v: int, size: int, f: Callable[..., Any]) -> Any:
    """An average or a total of a function of one view."""
    return of_all(lambda X, *target: f(take_view(X, v, size), *target))


def _sum_features(factors: Views, X: np.ndarray, target: Target) -> np.ndarray:
    """Weighted sums of the tangent vectors and, last, of the squares of their lengths in each view."""
    identities = map_views(lambda W: np.eye(len(W), dtype=W.dtype), factors)
    features = make_stack(whiten(factors, X)).decompose(identities).features
    squares = [np.sum(features[:, columns] ** 2, axis=1) for columns in view_columns(factors.views)]
    return target.weight @ np.column_stack([features, *squares])


def _of(function: Callable[[np.ndarray], np.ndarray], of_all: Callable[..., Any]) -> Callable[..., Any]:
    """An average, or a total, over functions of matrices instead of the matrices X."""
    return lambda f: of_all(lambda X, *target: f(function(X), *target))


def common_range(average: Average, floor: float | None = None) -> np.ndarray:
    """Columns that span the range of all matrices; a share ``floor`` of the largest eigenvalue is zero."""
    values, vectors = np.linalg.eigh(average(lambda X: X / np.trace(X, axis1=1, axis2=2).real[:, None, None]))
    floor = values.size * _EPS if floor is None else floor
    return vectors[:, values > floor * values[-1]]


def class_directions(total: Total, d: int, contrasts: Callable[[np.ndarray], list[np.ndarray]]) -> np.ndarray:
    """Orthogonal matrix whose first rows span the directions that tell most of the targets.

    The sums are over logarithms L_i of matrices whose mean is the identity; of singular ones ``X - I``.  A
    direction u tells class c apart by ``|L_c u|^2 / sum_i |(L_i - L_{c_i}) u|^2``, L_c the mean of a class:
    Fisher's ratio, a generalized eigenproblem for each class.  Two classes share one problem; of more, each
    gives its best direction, the clearest first, then its second best.  Class means are the regression of L
    on the indicators of the classes; for regression targets their slopes take the place of the class means.
    """

    def first(L: np.ndarray, target: Target) -> np.ndarray:
        L, Y = L.reshape(len(L), -1), target.regressors
        weighted = (target.weight[:, None] * Y).T
        sums = np.hstack([weighted @ L, weighted @ Y])  # of L, which is large, there is no copy
        return np.vstack([sums, np.full(sums.shape[1], np.vdot(L, L).real)])

    sums = total(first)
    means = (np.linalg.pinv(sums[:-1, d * d :], hermitian=True) @ sums[:-1, : d * d]).reshape(-1, d, d)

    def about(L: np.ndarray, target: Target) -> np.ndarray:
        left = np.tensordot(target.regressors, means, axes=1)
        np.subtract(L, left, out=left)
        left *= np.sqrt(target.weight)[:, None, None]
        stacked = left.reshape(-1, d)
        return stacked.conj().T @ stacked  # of one array with itself: half the time of another product

    within = total(about)
    least = _EPS * sums[-1, 0].real + np.finfo(float).tiny  # of matrices that are all the same
    # The mean variance is added to that in every direction.
    within = within + (np.trace(within).real + least) / d * np.eye(d)
    ratios, found = zip(*(eigh(mean @ mean, within) for mean in contrasts(means)), strict=True)
    order = np.argsort(-np.stack(ratios, axis=1)[::-1], axis=1, kind="stable")  # (d, c), for each round
    best_first = np.take_along_axis(np.stack(found, axis=2)[:, ::-1], order[None], axis=2)
    return _orthogonalized(best_first.reshape(d, -1))


def _orthogonalized(columns: np.ndarray) -> np.ndarray:
    """Orthogonal matrix whose first rows span the first columns, as far as these are independent."""
    d, found = len(columns), 0
    rows = np.empty((d, d), columns.dtype)
    for column in columns.T:
        v = column / np.abs(column).max()  # of matrices that are all the same, squares would overflow
        v = v / np.linalg.norm(v)
        for _ in range(2):  # twice is enough
            v = v - (rows[:found] @ v) @ rows[:found].conj()
        if np.linalg.norm(v) > 1e-3:
            rows[found] = v.conj() / np.linalg.norm(v)
            found += 1
        if found == d:
            break
    return rows[:found]
