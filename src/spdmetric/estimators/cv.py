"""Radius, rank and weighting chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import validate_data

from spdmetric import validation
from spdmetric.estimators import _choice
from spdmetric.estimators._choice import Answered, Fold, Grid, Seen
from spdmetric.estimators._data import checked_of
from spdmetric.estimators._domains import UNSEEN, groups_of, seen_from_means
from spdmetric.estimators._fitted import FittedMetric
from spdmetric.estimators._problem import problem_of, radius_path
from spdmetric.estimators._progress import followed, with_progress
from spdmetric.estimators._settings import Settings, settings_of
from spdmetric.linalg.symmetric import Array
from spdmetric.linalg.threads import one_thread
from spdmetric.objectives.local import Labeled, View, in_memory
from spdmetric.solvers import Callback, Solution
from spdmetric.validation import ClassWeight, check_candidates, check_radius, check_rank

RULES = ("clear", "best")
HEADS = ("neighbors", "centroid", "auto", "ridge")


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
    """LogEuclidean metric whose radius, rank and weighting are chosen by cross-validation.

    Candidates are learned on the same folds, around the center of all matrices, and each is judged by what
    its head, neighbors or class means, says of matrices that neither has seen: the logarithm of the
    probability of their labels.  The usual candidate, the tangent vectors at the mean with a discriminant
    weighting, is left only for one that is better by more than the noise of the comparison.  All radii of a rank
    are learned in one sweep, a bounded number of steps for each: what few matrices teach is learned in the
    first steps, and later ones rather fit noise.  For numbers to predict, ridge regression takes the place
    of class means, and the squared error, in units of the spread of y, that of the logarithm.

    Parameters
    ----------
    radii : array-like of float or None, default=None
        Radii to try; None is 0, 2, 8 at full rank, where the size d is at most 32, else 0; and 0, 4 at
        low rank.
    ranks : array-like of (int or None) or None, default=None
        Ranks to try; None is full rank, 4 and 8, as far as they are below d.  Of rank-deficient matrices
        the smallest rank among them takes the place of full rank.
    weightings : array-like of {None, "discriminant"} or None, default=None
        Weightings to try; None is both, with ``kernel="rbf"`` no weighting.
    head : {"neighbors", "centroid", "ridge", "auto"}, default="neighbors"
        What the metric is chosen for: the nearest neighbors, the nearest class mean ("ridge" regression
        for numbers to predict), or the better of the two.
    n_neighbors : int or None, default=None
        Neighbors of that classifier, at most as many as there are matrices to learn from in every fold;
        None chooses among 1, 5, 11, 21, as far as the smallest class has so many matrices.
    cv : int, splitter, iterable or None, default=None
        As in scikit-learn.  None makes five stratified folds of matrices in random order, fewer for small
        classes, twice where there are fewer than 200 matrices; with ``groups``, or else domains, five
        stratified folds of whole groups, or each of at most five groups left out in turn.
    scoring : str, callable or None, default=None
        Scorer of the classifier, or regression; numbers are given to it about their mean, in units of their
        spread.  None is the mean logarithm of the probability of the true label, calibrated and at least
        0.001, or R², and differences have the standard error of a mean over matrices; with a scorer they
        have that of a mean over folds.
    rule : {"clear", "best"}, default="clear"
        "clear" takes the usual candidate unless another is better by more than half a standard error of the
        paired difference, by two where it learns in a larger radius; and for class means neighbors with a
        metric of their own only if they are right more often, or their score is higher, by two.  "best"
        takes the highest mean score.
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds, see `LogEuclideanMetric`.
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
        Processes that share the folds; None is 1, -1 one for each core.  (In
        `LogEuclideanMetric` there is one fit, and threads share its chunks.)  BLAS runs one thread
        in each of them, and the result does not depend on their number.
    callback : callable or None, default=None
        Called in the final fit.
    random_state : int, default=0
        Of the order of the matrices in the default folds.
    verbose : bool, default=False
        Show a bar of the folds, and print the iterations of the final fit.
    unseen_domain : {"error", "recenter"}, default="error"
        See `LogEuclideanMetric`.

    Attributes
    ----------
    best_params_ : dict
        The radius, rank and weighting chosen, and ``n_neighbors``, None for class means.
    best_score_ : float
        Their mean score over the folds.
    best_index_ : int
        Their place in ``cv_results_``.
    cv_results_ : dict of arrays
        As of `~sklearn.model_selection.GridSearchCV`, a row for each metric and head; and ``mean_gain``,
        the mean paired difference to the usual candidate with class means, with its standard error
        ``gain_error``, and ``mean_test_accuracy``.
    n_neighbors_ : int or None
        Neighbors chosen; None where the head is the class mean, or ridge regression.
    temperature_ : float
        By what to divide the log likelihoods of the head so that its probabilities agree with the labels
        of matrices that were left out; 1 for numbers to predict.
    path_ : Path
        Alignment, distance and condition number along the radii, at the rank chosen, on all
        the data.

    And all attributes of `LogEuclideanMetric`.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from spdmetric import LogEuclideanMetricCV
    >>> from spdmetric.datasets import make_toy
    >>> X, y, X_test, y_test = make_toy(n_train=50, n_test=100, d=6, random_state=0)
    >>> metric = LogEuclideanMetricCV().fit(X, y)
    >>> neighbors = KNeighborsClassifier(metric.n_neighbors_).fit(metric.transform(X), y)
    >>> bool(neighbors.score(metric.transform(X_test), y_test) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        radii: Sequence[float] | None = None,
        ranks: Sequence[int | None] | None = None,
        weightings: Sequence[str | None] | None = None,
        head: str = "neighbors",
        n_neighbors: int | None = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "clear",
        task: str = "auto",
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
        random_state: int = 0,
        verbose: bool = False,
        unseen_domain: str = "error",
    ):
        self.radii = radii
        self.ranks = ranks
        self.weightings = weightings
        self.head = head
        self.n_neighbors = n_neighbors
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.task = task
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
        self.random_state = random_state
        self.verbose = verbose
        self.unseen_domain = unseen_domain

    @with_progress(lambda self: 1)
    @one_thread
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        groups: Array | None = None,
        sample_domain: Array | None = None,
    ) -> LogEuclideanMetricCV:
        """Choose radius, rank and weighting, and learn the metric with them.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices; rank-deficient ones where all candidates are of low rank, or ranks is None.
        y : array-like of shape (n_matrices,) or (n_matrices, n_outputs)
            Labels of at least two classes, or numbers to predict.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights, used in learning, not in scoring.  A weight of zero leaves the
            matrix out of both; folds are made of all matrices as they are given.
        groups : array-like of shape (n_matrices,), optional
            Groups that folds keep together, sessions or subjects for instance; None: the domains, if
            there are several.
        sample_domain : array-like of shape (n_matrices,), optional
            See `LogEuclideanMetric`.

        Returns
        -------
        self : LogEuclideanMetricCV
        """
        settings = self._settings()
        asked = self._asked(settings)
        validation.check_choice("unseen_domain", self.unseen_domain, UNSEEN)
        seen, domains = seen_from_means(X, sample_domain, sample_weight, mean=self._mean_name)
        seen = seen[:] if isinstance(seen, View) else seen  # all folds are in memory
        groups = groups_of(sample_domain) if groups is None else groups
        classes, data = checked_of(
            seen, y, sample_weight, settings.class_weight, _rank_needed(asked[1]), self.task
        )
        self._check_head(classes is not None)
        groups = validation.check_groups(groups, len(data.codes))
        folds = _choice.folds_of(self.cv, data, classes, groups, self.random_state)
        grid = self._grid(data, folds, *asked)
        centered, settings = _choice.seen_from_center(data, grid, settings)
        answered = self._answered(centered, grid, folds, settings, None if classes is None else len(classes))
        table = _choice.table_of(answered, folds, data.codes, classes, self.scoring)
        chosen = _choice.choose(table, grid, self.head, self.rule)
        radius, rank, weighting = chosen.metric
        problem = problem_of(in_memory(data.counting, settings.chunk_size), rank, settings)
        solutions = radius_path(problem, grid.radii[rank], settings, callback=settings.report)
        solution = solutions[grid.radii[rank].index(radius)]
        validate_data(self, X, reset=True, skip_check_array=True)
        gamma, learned = problem.gamma(solution), problem.weighting(solution, weighting)
        embedding = problem.embedding(solution)
        self._keep(classes, embedding, solution, gamma=gamma, weighting=learned, domains=domains)
        usual = _choice.Option(grid.usual, None)
        by_accuracy = self.scoring is None and classes is not None
        self.cv_results_ = _choice.results_of(table, usual, accuracy=by_accuracy)
        self.best_index_ = table.options.index(chosen)
        self.temperature_ = float(table.temperatures[self.best_index_])
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.n_neighbors_ = chosen.n_neighbors
        self.path_ = describe_path(grid.radii[rank], solutions)
        return self

    def _settings(self) -> Settings:
        """Return the parameters shared with the other estimator, after a check of the others."""
        settings = settings_of(self.get_params(deep=False))
        if settings.solver == "stochastic":
            raise ValueError(
                "solver='stochastic' cannot follow a path of radii: choose radius and rank with "
                "'trust-region' on a part of the data, then use LogEuclideanMetric(solver='stochastic')."
            )
        validation.check_n_jobs(self.n_jobs)
        validation.check_scorer(self.scoring)
        validation.check_choice("rule", self.rule, RULES)
        validation.check_choice("head", self.head, HEADS)
        validation.check_count("n_neighbors", self.n_neighbors, optional=True)
        return settings

    def _check_head(self, classes: bool) -> None:
        """Refuse the head of the other task."""
        other = "ridge" if classes else "centroid"
        if self.head == other:
            holds, use = ("labels", "centroid") if classes else ("numbers to predict", "ridge")
            raise ValueError(f"head={self.head!r} is not for y that holds {holds}: use head={use!r}.")

    def _asked(self, settings: Settings) -> tuple[list[Any] | None, list[Any] | None, list[Any] | None]:
        """Radii, ranks and weightings that were asked for, each None where the defaults are."""
        radii = check_candidates("radii", self.radii, check_radius)
        ranks = check_candidates("ranks", self.ranks, partial(check_rank, solver=settings.solver))
        given = [None] if self.weightings is None and settings.kernel != "linear" else self.weightings
        weightings = check_candidates(
            "weightings", given, partial(validation.check_weighting, kernel=settings.kernel)
        )
        return radii, ranks, weightings

    def _grid(self, data: Labeled, folds: list[Fold], radii: Any, ranks: Any, weightings: Any) -> Grid:
        """Candidates for these data."""
        most = min(len(train) for train, _ in folds)
        if data.codes.ndim == 1:
            counts = np.bincount(data.codes[data.weight > 0])
            most = min(most, counts[counts > 0].min())
        if self.head in ("centroid", "ridge"):
            numbers: list[int] = []
        elif self.n_neighbors is not None:
            numbers = [validation.check_neighbors(self.n_neighbors, min(len(train) for train, _ in folds))]
        else:
            numbers = [k for k in _choice.NUMBERS if k <= most]
        d = data.X.shape[1]
        smallest = d if ranks is not None else validation.smallest_rank(data.X)
        return _choice.grid_of(radii, ranks, weightings, numbers, (d, smallest))

    def _answered(
        self, seen: Seen, grid: Grid, folds: list[Fold], settings: Settings, n_classes: int | None
    ) -> list[Answered]:
        """Learn all candidates on each fold, and ask them."""
        quiet = settings._replace(callback=None, verbose=False)  # a callback may not reach other processes
        tasks = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_choice.ask_fold)(seen, fold, grid, quiet, n_classes) for fold in folds
        )
        return list(followed(self, tasks, "cross-validation", len(folds)))


def _rank_needed(ranks: list[int | None] | None) -> int | None:
    """Smallest rank from which all candidates can be learned; None where matrices must be definite."""
    if ranks is None:
        return 1  # the candidates follow the ranks that the matrices have
    low = [rank for rank in ranks if rank is not None]
    return max(low) if len(low) == len(ranks) else None
