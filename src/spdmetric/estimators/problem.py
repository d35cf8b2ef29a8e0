"""The learning problem as the solvers see it: where it starts, the objective, the ball."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from spdmetric.alignment import Misalignment, Target
from spdmetric.checks import check_spd, is_definite
from spdmetric.estimators.inputs import check_choice
from spdmetric.estimators.tensors import to_numpy
from spdmetric.gaussian import GaussianMisalignment
from spdmetric.geometry import MEANS, mean_euclid
from spdmetric.manifolds import Ball, RankBall
from spdmetric.matrices import congruence, invsqrtm, logm, spectrum

_EPS = float(np.finfo(np.float64).eps)

INITS = (*MEANS, "identity")
KERNELS = ("linear", "gaussian")


class Start(NamedTuple):
    """Coordinates in which learning starts at the first axes.

    Matrices are first brought to the range that they share, then whitened by the centre G0,
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
    """Choose the start and whiten the data.

    Whitened once, the data keep one set of rounding errors, however ill-conditioned they
    are, and the objective stays smooth.
    """
    d = X.shape[1]
    if rank is not None and rank > d:
        raise ValueError(f"rank={rank} is more than the size of the matrices, {d} x {d}.")
    init = _check_init(init, d)
    if rank is None:
        start = Start(np.eye(d), _center(X, weight, init, chunk_size, np.eye(d)), np.eye(d))
    else:
        start = _low_rank_start(X, codes, weight, init, chunk_size)
    whitened, target = congruence(start.factor, X), Target.one_hot(codes, weight)
    shared: dict[str, Any] = {"chunk_size": chunk_size, "map": map_chunks}
    if kernel == "linear":
        objective = Misalignment(whitened, target, **shared)
    else:
        objective = GaussianMisalignment(whitened, target, gamma=gamma, **shared)
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


def _check_init(init: Any, d: int) -> str | np.ndarray:
    """Return the name of a start, or the SPD matrix that was given."""
    if isinstance(init, str):
        return init
    init = check_spd(np.asarray(to_numpy(init))[None], name="init")[0]
    if init.shape != (d, d):
        raise ValueError(f"init has shape {init.shape}, but the matrices of X are {d} x {d}.")
    return init


def _low_rank_start(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray, init: str | np.ndarray, chunk_size: int | None
) -> Start:
    basis = common_range(X, weight)
    inside = congruence(basis.T, X)
    if not is_definite(inside) and isinstance(init, str) and init in ("riemann", "logeuclid"):
        raise ValueError(
            f"init={init!r} needs matrices that are positive definite on the {basis.shape[1]} dimensions of "
            "their common range, and some are singular there (fewer samples than channels?): pass "
            "init='euclid', or estimate the matrices with shrinkage."
        )
    center = _center(inside, weight, init, chunk_size, basis)
    whitened = congruence(invsqrtm(center), inside)
    return Start(basis, center, class_directions(whitened, codes, weight))


def _center(
    X: np.ndarray, weight: np.ndarray, init: str | np.ndarray, chunk_size: int | None, basis: np.ndarray
) -> np.ndarray:
    """G0 in the basis in which X is given."""
    if not isinstance(init, str):
        return congruence(basis.T, init)
    if init == "identity":
        return np.eye(X.shape[1])
    return MEANS[init](X, weight, chunk_size=chunk_size)


def common_range(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Orthonormal basis, in columns, of the range that the matrices span together."""
    scale = np.trace(X, axis1=1, axis2=2)
    s = spectrum(mean_euclid(X / scale[:, None, None], weight))
    return s.vectors[:, s.values > X.shape[1] * _EPS * s.values[-1]]


# The mean variance, times this, is added to the variance within the classes in every direction.
_SHRINKAGE = 1.0


def class_directions(X: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Orthogonal matrix whose first rows span the directions that tell the classes apart best.

    X is whitened, so the mean is the identity and its logarithms L_i say how matrices depart
    from it.  A direction u tells class c apart by ``|L_c u|^2 / sum_i |(L_i - L_{c_i}) u|^2``,
    L_c the mean of a class: Fisher's ratio, a generalised eigenproblem for each class.  Two
    classes depart in opposite directions and share one problem; of more, each class gives
    its best direction in turn, and all rows are made orthogonal to those before them.  Where
    matrices are singular, ``X - I`` takes the place of the logarithm.
    """
    d = X.shape[1]
    L = logm(X) if is_definite(X) else X - np.eye(d)
    means, within = [], np.zeros((d, d))
    for code in np.unique(codes):
        of_class = codes == code
        means.append(np.average(L[of_class], axis=0, weights=weight[of_class]))
        apart = np.sqrt(weight[of_class])[:, None, None] * (L[of_class] - means[-1])
        within += np.tensordot(apart, apart, axes=((0, 1), (0, 1)))
    within += _SHRINKAGE * (np.trace(within) + _EPS * np.trace(np.sum(L @ L, axis=0))) / d * np.eye(d)
    contrasts = [means[0] - means[1]] if len(means) == 2 else means
    best_first = [eigh(mean @ mean, within)[1][:, ::-1] for mean in contrasts]
    return _orthogonalised(np.stack(best_first, axis=2).reshape(d, -1))


def _orthogonalised(columns: np.ndarray) -> np.ndarray:
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
