"""The learning problem as the solvers see it: where it starts, the objective, the ball."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from spdmetric.estimators.embedding import Embedding
from spdmetric.manifolds import Ball, RankBall
from spdmetric.objectives.alignment import Evaluation, Misalignment
from spdmetric.objectives.data import Data
from spdmetric.objectives.gaussian import MOST, GaussianEvaluation, GaussianMisalignment
from spdmetric.objectives.start import Start
from spdmetric.objectives.weighting import Weighting
from spdmetric.solvers import SOLVERS, Callback, Solution, trust_region
from spdmetric.validation import UninformativeDataError

_EPS = float(np.finfo(np.float64).eps)

Solver = Callable[..., Solution]


class Problem(NamedTuple):
    """An objective in the coordinates of its start, evaluated there."""

    start: Start
    objective: Misalignment
    rank: int | None
    here: Evaluation  # at the start

    def at_rank(self, rank: int) -> Problem:
        """The same of another low rank."""
        return self._replace(rank=rank, here=self.objective.at(ball_around(self.start, rank, 0.0).center))


def ball_around(start: Start, rank: int | None, radius: float) -> Ball | RankBall:
    """Return the points within a distance of a start."""
    k = start.center.shape[0]
    return Ball(np.eye(k), radius) if rank is None else RankBall(k, rank, radius)


def find_problem(
    data: Data,
    start: Start,
    rank: int | None,
    *,
    kernel: str = "linear",
    gamma: float | None = None,
    whitened: bool = False,
) -> Problem:
    """Whiten the data at their start unless they are, and evaluate the objective there.

    Whitened once, the data keep one set of rounding errors, however ill-conditioned they
    are, and the objective stays smooth.
    """
    n, d, _ = data.shape
    if kernel == "rbf" and n > MOST:
        raise ValueError(
            f"kernel='rbf' compares all pairs of matrices, and X has {n}: expected at most {MOST}. Use "
            "kernel='linear', or learn from some of the matrices."
        )
    if rank is not None:
        _check_comparable(data, start, rank)
    rotation = start.rotation if whitened else None
    data = data if whitened else data.whitened(start.factor)
    objective = (
        Misalignment(data, rotation)
        if kernel == "linear"
        else GaussianMisalignment(data, rotation, gamma=gamma)
    )
    here = objective.at(ball_around(start, rank, 0.0).center)
    spread = here.spread
    if not isfinite(spread):
        raise ValueError(
            "A matrix of X cannot be compared with the start in float64: together they are too close to "
            "singular. Estimate the matrices with shrinkage, or choose another init."
        )
    if spread <= 100 * d * _EPS:
        raise UninformativeDataError(
            "All matrices of X are the same: their alignment with the labels is undefined. Expected at least "
            "two different matrices."
        )
    if gamma is not None and isinstance(here, GaussianEvaluation) and not here.resolved:
        raise ValueError(
            f"gamma={gamma!r}: with it the Gaussian kernel is, in float64, the same for all pairs of "
            "matrices, and nothing can be learned. Expected a number near one over the squared spread of the "
            f"tangent vectors, {1 / spread**2:.2g}, or None to learn it."
        )
    return Problem(start, objective, rank, here)


def _check_comparable(data: Data, start: Start, rank: int) -> None:
    """Refuse matrices that are singular on the directions where learning starts."""
    embedding = Embedding.from_point(start, ball_around(start, rank, 0.0).center)
    singular = int(data.total(partial(_count_singular, embedding)))
    if singular:
        raise ValueError(
            f"{singular} of {data.shape[0]} matrices of X cannot be compared with the start: they are "
            f"singular on the {rank} directions on which the classes differ most. Choose a smaller rank, "
            "drop them, or estimate the matrices with shrinkage."
        )


def _count_singular(embedding: Embedding, X: np.ndarray, target: object) -> np.ndarray:
    return np.array(embedding.count_singular(X))


def solve_path(
    problem: Problem,
    radii: Sequence[float],
    *,
    solver: Solver | str = "trust-region",
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> list[Solution]:
    """Solve a problem for all radii, ascending, each from the solution before it.

    A solution on one sphere, stretched to the next, is a good start there: the whole path
    costs little more than its last point alone.
    """
    named = SOLVERS[solver] if isinstance(solver, str) else solver
    solutions: list[Solution] = []
    for radius in radii:
        ball, here = ball_around(problem.start, problem.rank, radius), problem.here
        first: dict[str, Any] = {"start": here.point, "here": here, "callback": callback}
        if solutions and (length := float(np.linalg.norm(solutions[-1].point.S))) > 0:
            first |= {"start": ball.point(solutions[-1].point.S * (radius / length)), "here": None}
        if radius > 0:
            solutions.append(named(problem.objective, ball, tol=tol, max_iter=max_iter, **first))
        else:  # a ball of one point: nothing to search, and every gradient is normal to it
            solutions.append(trust_region(problem.objective, ball, tol=np.inf, max_iter=0, **first))
    return solutions


def learn_weighting(solution: Solution) -> Weighting:
    """The weighting of the tangent vectors at a solution, in the frame of its factor."""
    weighting: Weighting = solution.evaluation.weighting()
    if weighting.directions.shape[1] == 0:
        raise UninformativeDataError(
            "The classes have the same mean tangent vector, or the regression targets do not depend on it: "
            "no direction says anything of y, and there is no weighting to learn. See whether X and y belong "
            "together; without a weighting (weighting=None, weightings=[None]) neighbors can still be asked."
        )
    return weighting
