"""The learning problem as the solvers see it: where it starts, the objective, the ball."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import NamedTuple

import numpy as np

from spdmetric.estimators._settings import Settings
from spdmetric.estimators.embedding import Embedding
from spdmetric.manifolds import Ball, RankBall
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.gaussian import GaussianMisalignment
from spdmetric.objectives.local import Data
from spdmetric.objectives.start import Start, start_of
from spdmetric.objectives.weighting import Weighting
from spdmetric.solvers import SOLVERS, Callback, Solution, trust_region
from spdmetric.validation import TellsNothingError, check_radius

_EPS = float(np.finfo(np.float64).eps)

Solver = Callable[..., Solution]


class Problem(NamedTuple):
    """An objective in the coordinates of its start."""

    start: Start
    objective: Misalignment
    rank: int | None

    def embedding(self, solution: Solution) -> Embedding:
        """What a solution gives."""
        return embedding_of(self.start, self.rank, solution)

    def gamma(self, solution: Solution) -> float | None:
        """The gamma of the Gaussian kernel at a solution; None for the linear kernel."""
        if isinstance(self.objective, GaussianMisalignment):
            return self.objective.at(solution.point).gamma
        return None

    def weighting(self, solution: Solution, kind: str | None) -> Weighting | None:
        """The weighting of the tangent vectors at a solution, in the frame of its factor."""
        if kind is None:
            return None
        weighting = self.objective.at(solution.point).weighting()
        if weighting.directions.shape[1] == 0:
            raise TellsNothingError(
                "The classes have the same mean tangent vector, or the numbers to predict do not depend on "
                "it: no direction says anything of y, and there is no weighting to learn. See whether X and y "
                "belong together; without a weighting (weighting=None, weightings=[None]) neighbors can still be asked."
            )
        return weighting


def ball_around(start: Start, rank: int | None, radius: float) -> Ball | RankBall:
    """Return the points within a distance of the start."""
    k = start.center.shape[0]
    return Ball(np.eye(k), radius) if rank is None else RankBall(k, rank, radius)


def embedding_of(start: Start, rank: int | None, solution: Solution) -> Embedding:
    """What a solution in the coordinates of a start gives."""
    distance = float(np.linalg.norm(solution.point.S))
    return Embedding.of(start, solution.point.factor, low_rank=rank is not None, distance=distance)


def problem_of(data: Data, rank: int | None, settings: Settings, start: Start | None = None) -> Problem:
    """Choose the start, unless it is given, and whiten the data.

    Whitened once, the data keep one set of rounding errors, however ill-conditioned they
    are, and the objective stays smooth.
    """
    start, gamma = start or start_of(data, rank, settings.init), settings.gamma
    if rank is not None:
        _check_seen(data, start, rank)
    objective = data.objective(start.factor, kernel=settings.kernel, gamma=gamma)
    here = objective.at(ball_around(start, rank, 0.0).center)
    _check_spread(here.spread, data.shape[1])
    if gamma is not None and not getattr(here, "resolved", True):
        raise ValueError(
            f"gamma={gamma!r}: with it the Gaussian kernel is, in float64, the same for all pairs of "
            "matrices, and nothing can be learned. Expected a number near one over the squared spread of the "
            f"tangent vectors, {1 / here.spread**2:.2g}, or None to learn it."
        )
    return Problem(start, objective, rank)


def radius_path(
    problem: Problem,
    radii: Sequence[float],
    settings: Settings,
    *,
    solver: Solver | None = None,
    callback: Callback | None = None,
) -> list[Solution]:
    """Solve a problem for all radii, ascending, each from the solution before it.

    A solution on one sphere, stretched to the next, is a good start there: the whole path
    costs little more than its last point alone.
    """
    for radius in radii:
        check_radius(radius, settings.solver)
    solutions: list[Solution] = []
    for radius in radii:
        ball = ball_around(problem.start, problem.rank, radius)
        S = solutions[-1].point.S if solutions else ball.center.S
        length = np.linalg.norm(S)
        start = ball.point(S * (radius / length)) if length > 0 else ball.center
        solve, tol, max_iter = solver or SOLVERS[settings.solver], settings.tol, settings.max_iter
        if radius == 0:  # a ball of one point: nothing to search, and every gradient is normal to it
            solve, tol, max_iter = trust_region, np.inf, 0
        solutions.append(solve(problem.objective, ball, start, tol=tol, max_iter=max_iter, callback=callback))
    return solutions


def _check_seen(data: Data, start: Start, rank: int) -> None:
    """Refuse matrices that are singular on the directions where learning starts."""
    factor = np.eye(rank, len(start.center))
    embedding = Embedding.of(start, factor, low_rank=True, distance=0.0)
    unseen = int(data.total(lambda X, codes, weight: np.array(embedding.count_unseen(X))))
    if unseen:
        raise ValueError(
            f"{unseen} of {data.shape[0]} matrices of X cannot be compared with the start: they are singular "
            f"on the {rank} directions on which the classes differ most. Choose a smaller rank, drop them, "
            "or estimate the matrices with shrinkage."
        )


def _check_spread(spread: float, d: int) -> None:
    if not isfinite(spread):
        raise ValueError(
            "A matrix of X cannot be compared with the start in float64: together they are too close to "
            "singular. Estimate the matrices with shrinkage, or choose another init."
        )
    if spread <= 100 * d * _EPS:
        raise TellsNothingError(
            "All matrices of X are the same: their alignment with the labels is undefined. Expected at least "
            "two different matrices."
        )
