"""The learning problem as the solvers see it: where it starts, the objective, the ball."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from spdmetric.estimators._inputs import check_choice
from spdmetric.estimators._sources import in_memory
from spdmetric.estimators._tensors import to_numpy
from spdmetric.geometry import (
    MEANS,
    Average,
    RowFunction,
    averaging,
    euclid_of,
    logeuclid_of,
    riemann_of,
)
from spdmetric.linalg.symmetric import congruence, invsqrtm, logm, spectrum
from spdmetric.manifolds import Ball, RankBall
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.gaussian import GaussianMisalignment
from spdmetric.validation import check_spd, is_definite

_EPS = float(np.finfo(np.float64).eps)

INITS = (*MEANS, "identity")
KERNELS = ("linear", "gaussian")


class Start(NamedTuple):
    """Coordinates in which learning starts at the first axes.

    Matrices are first brought to the range that they share, then whitened by the center G0,
    then rotated so that the first axes are those on which the classes differ most (at full
    rank the rotation is the identity).
    """

    basis: np.ndarray  # (d, k), orthonormal columns that span the common range
    center: np.ndarray  # (k, k), G0 in that basis
    rotation: np.ndarray  # (k, k)

    @property
    def factor(self) -> np.ndarray:
        """W0, of shape (k, d): the coordinates of X are ``W0 X W0'``."""
        return self.rotation @ invsqrtm(self.center) @ self.basis.T


class Problem(NamedTuple):
    """An objective in the coordinates of its start."""

    start: Start
    objective: Misalignment
    rank: int | None

    def ball(self, radius: float) -> Ball:
        """Return the points within a distance of the start."""
        k = self.start.center.shape[0]
        return Ball(np.eye(k), radius) if self.rank is None else RankBall(k, self.rank, radius)

    def gamma(self, point: Any) -> float | None:
        """The gamma of the Gaussian kernel at a point; None for the linear kernel."""
        if isinstance(self.objective, GaussianMisalignment):
            return self.objective.at(point).gamma
        return None


class Data(Protocol):
    """Labeled matrices, wherever they are."""

    shape: tuple[int, ...]  # (n, d, d)
    n_classes: int

    def average(self, f: RowFunction) -> np.ndarray:
        """Weighted mean of the rows ``f(X)``, one for each matrix."""
        ...

    def total(self, f: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> Any:
        """Sum over chunks, in their order, of arrays ``f(X, codes, weight)``."""
        ...

    def objective(self, factor: np.ndarray, *, kernel: str, gamma: float | None) -> Any:
        """The objective of the matrices ``W X W'``."""
        ...


def make_problem(
    X: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    *,
    rank: int | None,
    init: Any,
    kernel: str,
    gamma: float | None,
    chunk_size: int | None,
    map_chunks: Callable[..., Iterable[Any]] = map,
) -> Problem:
    """Choose the start and whiten the data, for matrices in memory."""
    data = in_memory(X, codes, weight, chunk_size, map_chunks)
    return problem_of(data, rank=rank, init=init, kernel=kernel, gamma=gamma)


def problem_of(data: Data, *, rank: int | None, init: Any, kernel: str, gamma: float | None) -> Problem:
    """Choose the start and whiten the data.

    Whitened once, the data keep one set of rounding errors, however ill-conditioned they
    are, and the objective stays smooth.
    """
    start, d = start_of(data, rank=rank, init=init), data.shape[1]
    objective = data.objective(start.factor, kernel=kernel, gamma=gamma)
    problem = Problem(start, objective, rank)
    here = objective.at(problem.ball(0.0).point(np.zeros_like(start.center)))
    _check_spread(here.spread, d)
    if gamma is not None and not getattr(here, "resolved", True):
        raise ValueError(
            f"gamma={gamma!r}: with it the Gaussian kernel is, in float64, the same for all pairs of "
            "matrices, and nothing can be learned. Expected a number near one over the squared spread of the "
            f"tangent vectors, {1 / here.spread**2:.2g}, or None to learn it."
        )
    return problem


def make_start(
    X: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    *,
    rank: int | None,
    init: Any,
    chunk_size: int | None,
) -> Start:
    """Choose where learning starts, for matrices in memory; classes may be absent."""
    codes = np.unique(codes, return_inverse=True)[1]
    return start_of(in_memory(X, codes, weight, chunk_size, map), rank=rank, init=init)


def start_of(data: Data, *, rank: int | None, init: Any) -> Start:
    """Choose where learning starts."""
    d = data.shape[1]
    if rank is not None and rank > d:
        raise ValueError(f"rank={rank} is more than the size of the matrices, {d} x {d}.")
    init = _check_init(init, d)
    if rank is None:
        return Start(np.eye(d), _center(data, init, None), np.eye(d))
    return _low_rank_start(data, init)


def check_kernel(kernel: Any, gamma: Any, solver: str) -> None:
    """Refuse parameters of the kernel that mean nothing, or nothing together."""
    check_choice("kernel", kernel, KERNELS)
    if kernel == "linear" and gamma is not None:
        raise ValueError(
            f"gamma={gamma!r} is of the Gaussian kernel, and kernel='linear' has none: pass "
            "kernel='gaussian', or leave gamma=None."
        )
    if gamma is not None and (not isinstance(gamma, Real) or not isfinite(gamma) or gamma <= 0):
        raise ValueError(
            f"gamma={gamma!r}: expected a finite number > 0, or None to learn it with the metric."
        )
    if kernel == "gaussian" and solver == "newton":
        raise ValueError(
            "solver='newton' has second derivatives for the linear kernel only: with kernel='gaussian' use "
            "'trust-region'."
        )
    if kernel == "gaussian" and solver == "stochastic":
        raise ValueError(
            "solver='stochastic' takes the linear kernel apart into mini-batches; the Gaussian one compares "
            "all pairs of matrices: with kernel='gaussian' use 'trust-region'."
        )


def _check_init(init: Any, d: int) -> str | np.ndarray:
    """Return the name of a start, or the SPD matrix that was given."""
    if isinstance(init, str):
        return init
    init = check_spd(np.asarray(to_numpy(init))[None], name="init")[0]
    if init.shape != (d, d):
        raise ValueError(f"init has shape {init.shape}, but the matrices of X are {d} x {d}.")
    return init


def _low_rank_start(data: Data, init: str | np.ndarray) -> Start:
    basis = _range_of(data.average)
    definite = _through(basis.T, data.total)(_indefinite) == 0
    if isinstance(init, str) and init in ("riemann", "logeuclid") and not definite:
        raise ValueError(
            f"init={init!r} needs matrices that are positive definite on the {basis.shape[1]} dimensions of "
            "their common range, and some are singular there (fewer samples than channels?): pass "
            "init='euclid', or estimate the matrices with shrinkage."
        )
    center = _center(data, init, basis)
    whitened = _through(invsqrtm(center), _through(basis.T, data.total))
    return Start(basis, center, _directions_of(whitened, center.shape[0], data.n_classes))


Summand = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
Total = Callable[[Summand], Any]  # a function of chunks, summed over all of them


def _through(factor: np.ndarray, total: Total) -> Total:
    """Sum over the matrices ``W X W'`` instead of X."""
    return lambda f: total(lambda X, codes, weight: f(congruence(factor, X), codes, weight))


def _indefinite(X: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """1 for a chunk with a singular matrix."""
    return 0.0 if is_definite(X) else 1.0


def _center(data: Data, init: str | np.ndarray, basis: np.ndarray | None) -> np.ndarray:
    """G0, in a basis if one is given."""
    if not isinstance(init, str):
        return init if basis is None else congruence(basis.T, init)
    if init == "identity":
        return np.eye(data.shape[1] if basis is None else basis.shape[1])

    def average(f: RowFunction) -> np.ndarray:
        return data.average(f if basis is None else lambda X: f(congruence(basis.T, X)))

    if init == "euclid":
        return euclid_of(average)
    if init == "logeuclid":
        return logeuclid_of(average)
    return riemann_of(average, data.shape[0])


def common_range(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Orthonormal basis, in columns, of the range that the matrices span together."""
    return _range_of(averaging(X, weight))


def _range_of(average: Average) -> np.ndarray:
    s = spectrum(average(lambda X: X / np.trace(X, axis1=1, axis2=2)[:, None, None]))
    return s.vectors[:, s.values > s.values.size * _EPS * s.values[-1]]


# The mean variance, times this, is added to the variance within the classes in every direction.
_SHRINKAGE = 1.0


def class_directions(X: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Orthogonal matrix whose first rows span the directions that tell the classes apart best.

    X is whitened, so the mean is the identity and its logarithms L_i say how matrices depart
    from it.  A direction u tells class c apart by ``|L_c u|^2 / sum_i |(L_i - L_{c_i}) u|^2``,
    L_c the mean of a class: Fisher's ratio, a generalized eigenproblem for each class.  Two
    classes depart in opposite directions and share one problem; of more, each class gives
    its best direction in turn, and all rows are made orthogonal to those before them.  Where
    matrices are singular, ``X - I`` takes the place of the logarithm.
    """
    codes = np.unique(codes, return_inverse=True)[1]
    return _directions_of(lambda f: f(X, codes, weight), X.shape[1], int(codes.max()) + 1)


def _directions_of(total: Total, d: int, n_classes: int) -> np.ndarray:
    """`class_directions`, given how to sum over chunks: once for the means, once about them."""
    departure: Callable[[np.ndarray], np.ndarray] = logm
    if total(_indefinite) > 0:
        departure = _from_identity

    def first(X: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        L, sums = departure(X), np.zeros((n_classes + 1, d * d + 1))
        for code in np.unique(codes):
            w, of_class = weight[codes == code], L[codes == code]
            sums[code] = np.append((w[:, None, None] * of_class).sum(axis=0), w.sum())
        sums[-1, 0] = np.sum(L * L)
        return sums

    sums = total(first)
    means = (sums[:-1, :-1] / sums[:-1, -1:]).reshape(n_classes, d, d)

    def about(X: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        L, within = departure(X), np.zeros((d, d))
        for code in np.unique(codes):
            of_class = codes == code
            apart = np.sqrt(weight[of_class])[:, None, None] * (L[of_class] - means[code])
            within += np.tensordot(apart, apart, axes=((0, 1), (0, 1)))
        return within

    within = total(about)
    within = within + _SHRINKAGE * (np.trace(within) + _EPS * sums[-1, 0]) / d * np.eye(d)
    contrasts = [means[0] - means[1]] if n_classes == 2 else list(means)
    best_first = [eigh(mean @ mean, within)[1][:, ::-1] for mean in contrasts]
    return _orthogonalized(np.stack(best_first, axis=2).reshape(d, -1))


def _from_identity(X: np.ndarray) -> np.ndarray:
    return X - np.eye(X.shape[-1])


def _orthogonalized(columns: np.ndarray) -> np.ndarray:
    """Orthogonal matrix whose first rows span the first columns, as far as these are independent."""
    rows: list[np.ndarray] = []
    for column in columns.T:
        v = column / np.linalg.norm(column)
        for _ in range(2):  # twice is enough
            v = v - sum(np.vdot(row, v) * row for row in rows)
        if np.linalg.norm(v) > 1e-3:
            rows.append(v / np.linalg.norm(v))
        if len(rows) == columns.shape[0]:
            break
    return np.array(rows)


def _check_spread(spread: float, d: int) -> None:
    if not isfinite(spread):
        raise ValueError(
            "A matrix of X cannot be compared with the start in float64: together they are too close to "
            "singular. Estimate the matrices with shrinkage, or choose another init."
        )
    if spread <= 100 * d * _EPS:
        raise ValueError(
            "All matrices of X are the same: their alignment with the labels is undefined. Expected at least "
            "two different matrices."
        )
