"""Radius and rank chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed

from spdmetric.estimators._data import is_dask
from spdmetric.estimators._inputs import check_choice, printing
from spdmetric.estimators._problem import Problem
from spdmetric.estimators._progress import with_progress
from spdmetric.estimators._tensors import to_numpy
from spdmetric.estimators.metric import LogEuclideanMetric
from spdmetric.geometry import tangent_vectors
from spdmetric.linalg.symmetric import Array
from spdmetric.solvers import SOLVERS, Callback, Solution
from spdmetric.validation import check_count

RADII = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
RANKS = (2, 3, 4, 6, 8, 10, 12)
RULES = ("best", "one-se")

# Past this size the default candidates hold full rank without learning only: its d(d+1)/2
# directions are far too many for the data, and cost more than all low ranks together.
LARGEST_FULL = 32


class Candidate(NamedTuple):
    """A radius and a rank to try."""

    radius: float
    rank: int | None


Grid = dict[int | None, list[float]]  # radii for each rank
Learned = dict[Candidate, np.ndarray]  # the factor W of each candidate


def default_ranks(d: int) -> list[int | None]:
    """Full rank, and low ranks of at most d / 2, or 4."""
    return [None, *(m for m in RANKS if m < d and m <= max(4, d // 2))]


class Path(NamedTuple):
    """What learning does as the ball grows."""

    radius: np.ndarray  # (n_radii,)
    alignment: np.ndarray
    distance: np.ndarray  # reached; at most the radius
    condition: np.ndarray  # condition number of exp(S): how stretched the metric is


def radius_path(
    problem: Problem,
    radii: Sequence[float],
    *,
    solver: str,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> list[Solution]:
    """Solve a problem for all radii, ascending, each from the solution before it.

    A solution on one sphere, stretched to the next, is a good start there: the whole path
    costs little more than its last point alone.
    """
    S = np.zeros_like(problem.start.center)
    solutions = []
    for radius in radii:
        ball, length = problem.ball(radius), np.linalg.norm(S)
        start = ball.point(S * (radius / length) if length > 0 else S)
        # A ball of one point has nothing to search.
        options: dict[str, Any] = (
            {"tol": np.inf, "max_iter": 0} if radius == 0 else {"tol": tol, "max_iter": max_iter}
        )
        solutions.append(SOLVERS[solver](problem.objective, ball, start, callback=callback, **options))
        S = solutions[-1].point.S
    return solutions


def describe_path(radii: Sequence[float], solutions: Sequence[Solution]) -> Path:
    """Reduce a path to arrays."""
    spectra = [np.linalg.eigvalsh(solution.point.S) for solution in solutions]
    return Path(
        radius=np.array(radii, dtype=float),
        alignment=np.array([1 - solution.value for solution in solutions]),
        distance=np.array([np.linalg.norm(s) for s in spectra]),
        condition=np.array([np.exp(s[-1] - s[0]) for s in spectra]),
    )


class LogEuclideanMetricCV(LogEuclideanMetric):
    """LogEuclidean metric whose radius and rank are chosen by cross-validation.

    Every candidate is judged by the nearest neighbors that would follow it.  Among them is
    "no learning", radius 0 at full rank: the tangent vectors at the mean.  All radii of a
    rank are learned in one sweep, a bounded number of steps for each: what few matrices
    teach is learned in the first steps, and later ones rather fit noise.

    Parameters
    ----------
    radii : sequence of float or None, default=None
        Radii to try; None is 0, 1, 2, 4, 8, 16.
    ranks : sequence of (int or None) or None, default=None
        Ranks to try; None is full rank and some of 2, 3, 4, 6, 8, 10, 12 below the size d:
        those of them that are at most d / 2, or 4.
    cv : int, splitter or iterable, default=5
        As in scikit-learn; a number makes stratified folds.
    scoring : str, callable or None, default=None
        Scorer of the classifier that follows; None is accuracy.
    n_neighbors : int, default=1
        Neighbors of the classifier that judges.
    rule : {"best", "one-se"}, default="best"
        "best" takes the highest mean score; with few matrices several candidates often
        share it, and of those the one with the widest mean margin between the nearest
        matrix of another class and the nearest of the own.  "one-se" takes the simplest
        candidate within one standard error of the best: a small radius, then full rank,
        then a small rank.
    init : str or array of shape (d, d), default="riemann"
        See `LogEuclideanMetric`.
    kernel : {"linear", "gaussian"}, default="linear"
        See `LogEuclideanMetric`.
    gamma : float or None, default=None
        See `LogEuclideanMetric`.
    class_weight : {None, "balanced"}, default=None
        See `LogEuclideanMetric`.
    solver : {"trust-region", "gradient"}, default="trust-region"
        See `LogEuclideanMetric`.
    tol : float, default=1e-3
        Bound on the KKT residual.
    max_iter : int, default=40
        Steps for each radius; no warning is given when they are used up.
    chunk_size : int or None, default=None
        See `LogEuclideanMetric`.
    n_jobs : int or None, default=None
        Processes for the folds and ranks.
    callback : callable or None, default=None
        Called in the final fit.
    verbose : bool, default=False
        Print the iterations of the final fit.

    Attributes
    ----------
    best_params_ : dict
        The radius and rank chosen.
    best_score_ : float
        Their mean score over the folds.
    best_index_ : int
        Their place in ``cv_results_``.
    cv_results_ : dict of arrays
        As of `~sklearn.model_selection.GridSearchCV`.
    path_ : Path
        Alignment, distance and condition number along the radii, at the rank chosen, on all
        the data.

    And all attributes of `LogEuclideanMetric`.
    """

    def __init__(
        self,
        *,
        radii: Sequence[float] | None = None,
        ranks: Sequence[int | None] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        n_neighbors: int = 1,
        rule: str = "best",
        init: str | Array = "riemann",
        kernel: str = "linear",
        gamma: float | None = None,
        class_weight: str | None = None,
        solver: str = "trust-region",
        tol: float = 1e-3,
        max_iter: int = 40,
        chunk_size: int | None = None,
        n_jobs: int | None = None,
        callback: Any = None,
        verbose: bool = False,
    ):
        self.radii = radii
        self.ranks = ranks
        self.cv = cv
        self.scoring = scoring
        self.n_neighbors = n_neighbors
        self.rule = rule
        self.init = init
        self.kernel = kernel
        self.gamma = gamma
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.chunk_size = chunk_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @with_progress(lambda self: 1)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LogEuclideanMetricCV:
        """Choose radius and rank, and learn the metric with them.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights, used in learning, not in scoring.
        groups : array-like of shape (n_matrices,), optional
            Groups for the splitter, sessions or subjects for instance.

        Returns
        -------
        self : LogEuclideanMetricCV
        """
        self._check_parameters()
        if is_dask(X):
            raise ValueError(
                "Cross-validation needs the matrices in this process, and those of a dask array stay on the "
                "workers: fit on X.compute(), or choose a radius and use LogEuclideanMetric."
            )
        X, codes, weight = self._check_data(X, y, sample_weight)
        grid = self._grid(X.shape[1])
        folds = list(check_cv(self.cv, codes, classifier=True).split(X, codes, to_numpy(groups)))
        learned = self._learn(X, codes, weight, grid, [train for train, _ in folds])
        self._choose(*self._judge(X, self.classes_[codes], learned, folds))
        radius, rank = self.best_params_["radius"], self.best_params_["rank"]
        problem = self._problem(X, codes, weight, rank)
        solutions = self._path(
            problem, grid[rank], printing(self.callback) if self.verbose else self.callback
        )
        self.path_ = describe_path(grid[rank], solutions)
        self._keep(problem, solutions[grid[rank].index(radius)])
        return self

    def _path(
        self, problem: Problem, radii: Sequence[float], callback: Callback | None = None
    ) -> list[Solution]:
        options: dict[str, Any] = {"solver": self.solver, "tol": self.tol, "max_iter": self.max_iter}
        return radius_path(problem, radii, callback=callback, **options)

    def _grid(self, d: int) -> Grid:
        """Radii to try for each rank, full rank first."""
        radii = sorted(RADII if self.radii is None else set(map(float, self.radii)))
        ranks = list(default_ranks(d) if self.ranks is None else dict.fromkeys(self.ranks))
        grid = {rank: radii for rank in sorted(ranks, key=lambda m: 0 if m is None else m)}
        if self.ranks is None and d > LARGEST_FULL:
            grid[None] = radii[:1]
        return grid

    def _learn(
        self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray, grid: Grid, folds: list[np.ndarray]
    ) -> list[Learned]:
        """Learn all candidates on the training part of each fold."""
        full = {rank: radii for rank, radii in grid.items() if rank is None}
        low = {rank: radii for rank, radii in grid.items() if rank is not None}
        halves = [half for half in (full, low) if half]
        tasks = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(self._learn_fold)(X[train], codes[train], weight[train], half)
            for train in folds
            for half in halves
        )
        found = list(self._followed(tasks, "cross-validation", len(folds) * len(halves)))
        rows = [found[k : k + len(halves)] for k in range(0, len(found), len(halves))]
        return [{c: W for half in row for c, W in half.items()} for row in rows]

    def _learn_fold(self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray, grid: Grid) -> Learned:
        """Learn candidates that are all of full rank, or all of low rank: they share one start."""
        codes = np.unique(codes, return_inverse=True)[1]
        shared = self._problem(X, codes, weight, next(iter(grid)))
        W0, learned = shared.start.factor, {}
        for rank, radii in grid.items():
            solutions = self._path(shared._replace(rank=rank), radii)
            for radius, solution in zip(radii, solutions, strict=True):
                learned[Candidate(radius, rank)] = solution.point.factor @ W0
        return learned

    def _judge(
        self, X: np.ndarray, y: np.ndarray, learned: list[Learned], folds: list[Any]
    ) -> tuple[list[Candidate], np.ndarray, np.ndarray]:
        """Return the candidates, simplest first, their scores and margins, (n_candidates, n_folds)."""
        candidates = sorted(learned[0], key=lambda c: (c.radius, c.rank or 0))
        table = [
            [self._judge_factor(row[c], X, y, *fold) for row, fold in zip(learned, folds, strict=True)]
            for c in candidates
        ]
        scores, margins = np.array(table).transpose(2, 0, 1)
        return candidates, scores, margins

    def _judge_factor(
        self, W: np.ndarray, X: np.ndarray, y: np.ndarray, train: np.ndarray, test: np.ndarray
    ) -> tuple[float, float]:
        from sklearn.metrics import check_scoring
        from sklearn.neighbors import KNeighborsClassifier

        known, new = tangent_vectors(X[train], factor=W), tangent_vectors(X[test], factor=W)
        judge = KNeighborsClassifier(min(self.n_neighbors, len(train))).fit(known, y[train])
        score = float(check_scoring(judge, scoring=self.scoring)(judge, new, y[test]))
        return score, mean_margin(known, y[train], new, y[test])

    def _choose(self, candidates: list[Candidate], scores: np.ndarray, margins: np.ndarray) -> None:
        """Apply the rule, and lay the scores out as scikit-learn does; candidates come simplest first."""
        params = [candidate._asdict() for candidate in candidates]
        mean, n_folds = scores.mean(axis=1), scores.shape[1]
        best = max(range(len(params)), key=lambda i: (round(mean[i], 12), margins[i].mean()))
        if self.rule == "one-se" and n_folds > 1:
            error = scores[best].std(ddof=1) / np.sqrt(n_folds)
            best = int(np.argmax(mean >= mean[best] - error))
        self.best_index_, self.best_params_, self.best_score_ = best, params[best], float(mean[best])
        self.cv_results_ = {
            "params": params,
            "param_radius": np.array([p["radius"] for p in params]),
            "param_rank": np.array([p["rank"] for p in params], dtype=object),
            **{f"split{k}_test_score": scores[:, k] for k in range(n_folds)},
            "mean_test_score": mean,
            "std_test_score": scores.std(axis=1),
            "rank_test_score": 1 + np.array([int(np.sum(mean > m)) for m in mean]),
            "mean_test_margin": margins.mean(axis=1),
        }

    def _rank_asked(self) -> int | None:
        """The smallest rank among the candidates, if none of them is full."""
        ranks = [None] if self.ranks is None else list(self.ranks)
        return None if None in ranks else min(rank for rank in ranks if rank is not None)

    def _check_parameters(self) -> None:
        check_choice("rule", self.rule, RULES)
        if self.solver == "stochastic":
            raise ValueError(
                "solver='stochastic' cannot follow a path of radii: choose radius and rank with "
                "'trust-region' on a part of the data, then use LogEuclideanMetric(solver='stochastic')."
            )
        check_count("n_neighbors", self.n_neighbors)
        for name in ("radii", "ranks"):
            values = getattr(self, name)
            if values is not None and len(values) == 0:
                raise ValueError(f"{name} is empty: expected at least one candidate.")
        for radius in self.radii or RADII:
            for rank in self.ranks or (None,):
                candidate = _as_metric(self, radius, rank)
                candidate._check_parameters()


def mean_margin(train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> float:
    """Mean of (other - own) / (other + own), the distances to the nearest of another class and of the own.

    Between -1 and 1, positive where the nearest neighbor is right.  A class without
    training matrices counts as infinitely far.
    """
    distance = np.sqrt(np.maximum(0, _square(test)[:, None] + _square(train) - 2 * test @ train.T))
    same = y_test[:, None] == y
    own = np.where(same, distance, np.inf).min(axis=1)
    other = np.where(same, np.inf, distance).min(axis=1)
    far = np.isinf(own) | np.isinf(other)
    limit = np.where(np.isinf(own), -1.0, 1.0)
    own, other = np.where(far, 1.0, own), np.where(far, 1.0, other)
    return float(np.mean(np.where(far, limit, (other - own) / np.maximum(other + own, 1e-300))))


def _square(vectors: np.ndarray) -> np.ndarray:
    return np.sum(vectors**2, axis=1)


def _as_metric(estimator: BaseEstimator, radius: float, rank: int | None) -> LogEuclideanMetric:
    """One candidate, for the checks that it has in common with `LogEuclideanMetric`."""
    shared = (
        "init",
        "kernel",
        "gamma",
        "class_weight",
        "solver",
        "tol",
        "max_iter",
        "chunk_size",
        "callback",
    )
    return LogEuclideanMetric(radius, rank=rank, **{name: getattr(estimator, name) for name in shared})
