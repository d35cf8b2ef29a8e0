"""Radius and rank chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from spdmetric import validation
from spdmetric.estimators._data import labeled_of
from spdmetric.estimators._fitted import FittedMetric
from spdmetric.estimators._problem import problem_of, radius_path
from spdmetric.estimators._progress import followed, with_progress
from spdmetric.estimators._settings import Settings, settings_of
from spdmetric.geometry import tangent_vectors
from spdmetric.linalg.symmetric import Array
from spdmetric.objectives.local import Labeled, in_memory, threads
from spdmetric.solvers import Callback, Solution
from spdmetric.validation import ClassWeight, check_candidates, check_radius, check_rank, to_numpy

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
Fold = tuple[np.ndarray, np.ndarray]  # rows to train on, rows to test on
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


def describe_path(radii: Sequence[float], solutions: Sequence[Solution]) -> Path:
    """Reduce a path to arrays."""
    points = [solution.point for solution in solutions]
    return Path(
        radius=np.array(radii, dtype=float),
        alignment=np.array([1 - solution.value for solution in solutions]),
        distance=np.array([np.linalg.norm(point.S) for point in points]),
        condition=np.exp([point.spread for point in points]),
    )


class LogEuclideanMetricCV(FittedMetric):
    """LogEuclidean metric whose radius and rank are chosen by cross-validation.

    Every candidate is judged by the nearest neighbors that would follow it.  Among them is
    "no learning", radius 0 at full rank: the tangent vectors at the mean.  All radii of a
    rank are learned in one sweep, a bounded number of steps for each: what few matrices
    teach is learned in the first steps, and later ones rather fit noise.

    Parameters
    ----------
    radii : array-like of float or None, default=None
        Radii to try; None is 0, 1, 2, 4, 8, 16.
    ranks : array-like of (int or None) or None, default=None
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
    kernel : {"linear", "rbf"}, default="linear"
        See `LogEuclideanMetric`.
    gamma : float or None, default=None
        See `LogEuclideanMetric`.
    class_weight : {None, "balanced"} or dict {label: weight}, default=None
        See `LogEuclideanMetric`.
    solver : {"trust-region", "gradient"}, default="trust-region"
        See `LogEuclideanMetric`.
    tol : float, default=3e-2
        Bound on the KKT residual, see `LogEuclideanMetric`.
    max_iter : int, default=40
        Steps for each radius; no warning is given when they are used up.
    chunk_size : int or None, default=None
        See `LogEuclideanMetric`.
    n_jobs : int or None, default=None
        Processes that share the folds and ranks; None is 1, -1 one for each core.  (In
        `LogEuclideanMetric` there is one fit, and threads share its chunks.)  BLAS runs one thread
        in each of them, and the result does not depend on their number.
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
        class_weight: ClassWeight = None,
        solver: str = "trust-region",
        tol: float = 3e-2,
        max_iter: int = 40,
        chunk_size: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
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
    def fit(
        self, X: Array, y: Array, sample_weight: Array | None = None, groups: Array | None = None
    ) -> LogEuclideanMetricCV:
        """Choose radius and rank, and learn the metric with them.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights, used in learning, not in scoring.  A weight of zero leaves the
            matrix out of both; folds are made of all matrices as they are given.
        groups : array-like of shape (n_matrices,), optional
            Groups for the splitter, sessions or subjects for instance.

        Returns
        -------
        self : LogEuclideanMetricCV
        """
        settings = self._settings()
        radii = check_candidates("radii", self.radii, check_radius)
        ranks = check_candidates("ranks", self.ranks, partial(check_rank, solver=settings.solver))
        classes, data = labeled_of(X, y, sample_weight, settings.class_weight, rank_needed(ranks))
        folds = folds_of(self.cv, data, classes, to_numpy(groups))
        grid = grid_of(radii, ranks, data.X.shape[1])
        with threads():
            learned = self._learn(data, grid, [train for train, _ in folds], settings)
            judge = NeighborsJudge(data.X, classes[data.codes], self.scoring, self.n_neighbors)
            candidates, scores, margins = judged(learned, folds, judge)
            best = choose(scores, margins, self.rule)
            radius, rank = candidates[best]
            problem = problem_of(in_memory(data.counting, settings.chunk_size), rank, settings)
            solutions = radius_path(problem, grid[rank], settings, callback=settings.report)
            solution = solutions[grid[rank].index(radius)]
            validate_data(self, X, reset=True, skip_check_array=True)
            self._keep(classes, problem.embedding(solution), solution, gamma=problem.gamma(solution))
        self.cv_results_ = results_of(candidates, scores, margins)
        self.best_index_, self.best_params_ = best, self.cv_results_["params"][best]
        self.best_score_ = float(self.cv_results_["mean_test_score"][best])
        self.path_ = describe_path(grid[rank], solutions)
        return self

    def _settings(self) -> Settings:
        """Return the parameters shared with the other estimator, after a check of the others."""
        settings = settings_of(self.get_params(deep=False))
        if settings.solver == "stochastic":
            raise ValueError(
                "solver='stochastic' cannot follow a path of radii: choose radius and rank with "
                "'trust-region' on a part of the data, then use LogEuclideanMetric(solver='stochastic')."
            )
        validation.check_choice("rule", self.rule, RULES)
        validation.check_count("n_neighbors", self.n_neighbors)
        return settings

    def _learn(
        self, data: Labeled, grid: Grid, trains: list[np.ndarray], settings: Settings
    ) -> list[Learned]:
        """Learn all candidates on the training part of each fold."""
        # Full and low ranks: those of a half share one start.
        halves = [{m: grid[m] for m in grid if (m is None) is full} for full in (True, False)]
        halves = [half for half in halves if half]
        quiet = settings._replace(callback=None, verbose=False)  # a callback may not reach other processes
        tasks = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(learn_fold)(data.take(train), half, quiet) for train in trains for half in halves
        )
        found = list(followed(self, tasks, "cross-validation", len(trains) * len(halves)))
        rows = [found[k : k + len(halves)] for k in range(0, len(found), len(halves))]
        return [{c: W for half in row for c, W in half.items()} for row in rows]


# ---------------------------------------------------------------------------
# Candidates and folds


def rank_needed(ranks: list[int | None] | None) -> int | None:
    """Smallest rank from which all candidates can be learned; None where matrices must be definite."""
    low = [rank for rank in ranks or [] if rank is not None]
    return max(low) if ranks and len(low) == len(ranks) else None


def grid_of(radii: list[float] | None, ranks: list[int | None] | None, d: int) -> Grid:
    """Radii to try for each rank, full rank first."""
    ascending = sorted(RADII if radii is None else set(radii))
    chosen = list(default_ranks(d) if ranks is None else dict.fromkeys(ranks))
    grid = {rank: ascending for rank in sorted(chosen, key=lambda m: 0 if m is None else m)}
    if ranks is None and d > LARGEST_FULL:
        grid[None] = ascending[:1]
    return grid


def folds_of(cv: Any, data: Labeled, classes: np.ndarray, groups: Array | None) -> list[Fold]:
    """Split the matrices as they are given; those without weight are left out afterwards."""
    splits = list(check_cv(cv, data.codes, classifier=True).split(data.X, data.codes, groups))
    counts = data.weight > 0
    folds = [(np.arange(len(counts))[train], np.arange(len(counts))[test]) for train, test in splits]
    folds = [(train[counts[train]], test[counts[test]]) for train, test in folds]
    for k, (train, test) in enumerate(folds):
        present = classes[np.unique(data.codes[train])].tolist()
        if len(present) < 2:
            raise ValueError(
                f"Fold {k} of {len(folds)} has matrices of classes {present} to learn from: expected two "
                "classes or more in each fold. Use stratified folds (a number for cv), or larger groups."
            )
        if test.size == 0:
            raise ValueError(
                f"Fold {k} of {len(folds)} has no matrices with weight to score: expected at least one."
            )
    return folds


# ---------------------------------------------------------------------------
# Learning and judging them


def learn_fold(data: Labeled, grid: Grid, settings: Settings) -> Learned:
    """Learn candidates that are all of full rank, or all of low rank: they share one start."""
    codes = np.unique(data.codes, return_inverse=True)[1]  # a class may be absent
    learned = {}
    with threads():
        source = in_memory(data._replace(codes=codes), settings.chunk_size)
        shared = problem_of(source, next(iter(grid)), settings)
        W0 = shared.start.factor
        for rank, radii in grid.items():
            solutions = radius_path(shared._replace(rank=rank), radii, settings)
            for radius, solution in zip(radii, solutions, strict=True):
                learned[Candidate(radius, rank)] = solution.point.factor @ W0
    return learned


class NeighborsJudge(NamedTuple):
    """Scores factors by the nearest neighbors that would follow them."""

    X: np.ndarray
    y: np.ndarray
    scoring: str | Callable[..., float] | None
    n_neighbors: int

    def score(self, W: np.ndarray, train: np.ndarray, test: np.ndarray) -> tuple[float, float]:
        """Score and mean margin of the matrices of a test set."""
        from sklearn.metrics import check_scoring
        from sklearn.neighbors import KNeighborsClassifier

        known, new = (tangent_vectors(self.X[rows], factor=W) for rows in (train, test))
        neighbors = KNeighborsClassifier(min(self.n_neighbors, len(train))).fit(known, self.y[train])
        score = float(check_scoring(neighbors, scoring=self.scoring)(neighbors, new, self.y[test]))
        return score, mean_margin(known, self.y[train], new, self.y[test])


def judged(
    learned: list[Learned], folds: list[Fold], judge: NeighborsJudge
) -> tuple[list[Candidate], np.ndarray, np.ndarray]:
    """Return the candidates, simplest first, their scores and margins, (n_candidates, n_folds)."""
    candidates = sorted(learned[0], key=lambda c: (c.radius, c.rank or 0))
    table = [
        [judge.score(row[c], *fold) for row, fold in zip(learned, folds, strict=True)] for c in candidates
    ]
    scores, margins = np.array(table).transpose(2, 0, 1)
    return candidates, scores, margins


def choose(scores: np.ndarray, margins: np.ndarray, rule: str) -> int:
    """Apply the rule to candidates that come simplest first."""
    mean, n_folds = scores.mean(axis=1), scores.shape[1]
    best = max(range(len(mean)), key=lambda i: (round(mean[i], 12), margins[i].mean()))
    if rule == "one-se" and n_folds > 1:
        error = scores[best].std(ddof=1) / np.sqrt(n_folds)
        best = int(np.argmax(mean >= mean[best] - error))
    return best


def results_of(candidates: list[Candidate], scores: np.ndarray, margins: np.ndarray) -> dict[str, Any]:
    """Lay the scores out as scikit-learn does."""
    mean = scores.mean(axis=1)
    return {
        "params": [candidate._asdict() for candidate in candidates],
        "param_radius": np.array([candidate.radius for candidate in candidates]),
        "param_rank": np.array([candidate.rank for candidate in candidates], dtype=object),
        **{f"split{k}_test_score": scores[:, k] for k in range(scores.shape[1])},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": 1 + np.array([int(np.sum(mean > m)) for m in mean]),
        "mean_test_margin": margins.mean(axis=1),
    }


def mean_margin(train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> float:
    """Mean of (other - own) / (other + own), the distances to the nearest of another class and of the own.

    Between -1 and 1, positive where the nearest neighbor is right.  A class without
    training matrices counts as infinitely far.
    """
    squares = np.sum(test**2, axis=1)[:, None] + np.sum(train**2, axis=1)
    distance = np.sqrt(np.maximum(0, squares - 2 * test @ train.T))
    same = y_test[:, None] == y
    own = np.where(same, distance, np.inf).min(axis=1)
    other = np.where(same, np.inf, distance).min(axis=1)
    far = np.isinf(own) | np.isinf(other)
    limit = np.where(np.isinf(own), -1.0, 1.0)
    own, other = np.where(far, 1.0, own), np.where(far, 1.0, other)
    return float(np.mean(np.where(far, limit, (other - own) / np.maximum(other + own, 1e-300))))
