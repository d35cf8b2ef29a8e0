"""Radius, rank and weighting chosen by cross-validation."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import is_dask_array
from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from spdmetric import validation
from spdmetric.caller import spell, warn_at_caller
from spdmetric.estimators import _selection as selection
from spdmetric.estimators._domains import groups_of_domains
from spdmetric.estimators._fitted import (
    CallbackSupportMixin,
    FittedMetric,
    StackEstimator,
    follow_folds,
    with_progress,
)
from spdmetric.estimators._selection import Candidate, Whitened
from spdmetric.estimators._streaming import RandomState, draw_seed
from spdmetric.estimators.heads import fit_head
from spdmetric.estimators.metric import (
    LogEuclideanMetric,
    check_data,
    check_parameters,
    learn_weighting,
    solve_path,
)
from spdmetric.linalg.symmetric import Array
from spdmetric.linalg.threads import one_thread
from spdmetric.objectives.data import Data, is_stored, read
from spdmetric.objectives.start import Start, ViewStarts
from spdmetric.validation import COUNT, N_JOBS, RANDOM_STATE, check_value, one_of, optional

CONSTRAINTS: dict[str, validation.Constraint] = {
    "n_jobs": N_JOBS,
    "scoring": (
        lambda value: value is None or isinstance(value, str) or callable(value),
        "None, the name of a scorer of scikit-learn, or a function of estimator, X and y",
    ),
    "random_state": RANDOM_STATE,
    "rule": one_of("clear", "best"),
    "head": one_of("neighbors", "centroid", "auto", "ridge"),
    "n_neighbors": optional(COUNT),
}
# What a fit has at hand of the matrices with weight, for a head and for `adapt`: the matrices; where the last
# fit starts, in their coordinates; and the vectors of `transform`, (n, p), without the weighting.
Training = tuple[Whitened, Start | ViewStarts, np.ndarray]

# Candidates that may be given, the parameter of a metric that each is a value of, and its type.
_CANDIDATES = {"radii": ("radius", float), "ranks": ("rank", int), "weightings": ("weighting", str)}


class LogEuclideanMetricCV(FittedMetric):
    """LogEuclidean metric whose radius, rank and weighting are chosen by cross-validation.

    All candidates are learned on the same folds, around the center of all matrices, in few steps each: later
    steps mostly fit noise.  Each is scored on the matrices that a fold leaves out, with neighbors or class
    means as the classifier, by the logarithm of the probability of the true label; for regression targets
    with neighbors or ridge regression, by the squared error in units of the spread of y.  The usual
    candidate, the tangent vectors at the mean with a discriminant weighting, is chosen unless another is
    better by more than the noise of the comparison.

    Parameters
    ----------
    metric : LogEuclideanMetric or None, default=None
        The metric to learn; candidates take the place of its ``radius``, ``rank`` and ``weighting``.  What
        this estimator has too, ``n_jobs``, ``random_state`` and ``verbose``, must have its default there;
        "stochastic" is refused.  None is ``LogEuclideanMetric(tol=3e-2, max_iter=40)``.  No warning is given
        when the steps of a radius are used up.
    radii : array-like of float or None, default=None
        Radii to try; None: 0, 2, 8 at full rank if d is at most 32, else 0; and 0, 4 at low rank.
    ranks : array-like of (int or None) or None, default=None
        Ranks to try; None: full rank, or the smallest rank of a matrix, and 4 and 8 if they are below it.
    weightings : array-like of {None, "discriminant"} or None, default=None
        Weightings to try; None is both, with ``kernel="rbf"`` no weighting.
    head : {"neighbors", "centroid", "ridge", "auto"}, default="neighbors"
        What the metric is chosen for: nearest neighbors, the nearest class mean ("ridge" regression for
        regression targets), or the better of the two.
    n_neighbors : int or None, default=None
        Number of neighbors, at most as many as there are matrices to learn from in every fold;
        None chooses among 1, 5, 11 and 21, if the smallest class has that many matrices.
    cv : int, splitter, iterable or None, default=None
        Folds of the choice, as in scikit-learn.  None: five stratified folds in random order, fewer for small
        classes, twice for fewer than 200 matrices; of whole groups where there are ``groups`` or domains,
        each of at most five left out in turn.  For these folds at most 2,000 matrices, or 60,000 / d if that
        is more, are drawn; what is chosen is learned from all.
    scoring : str, callable or None, default=None
        Scorer of scikit-learn; targets are given to it about their mean, in units of their spread.  None is
        the mean logarithm of the probability of the true label, calibrated and at least 0.001, or R².
        Candidates are compared by the standard error of a mean over matrices, with a scorer over folds.
    rule : {"clear", "best"}, default="clear"
        "clear" chooses the usual candidate unless another is better by more than half a standard error of the
        paired difference, or by two if it has a larger radius.  It prefers class means to neighbors with
        their own metric, unless these are right more often, or score higher, by two.  "best" chooses the
        highest mean score.
    n_jobs : int or None, default=None
        Processes that share the folds; None is 1, -1 one for each core.  The result does not depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the order of the matrices in the default folds.
    verbose : bool, default=False
        Show a progress bar of the folds, and print the iterations of the final fit.

    Attributes
    ----------
    best_params_ : dict
        The radius, rank and weighting chosen, and ``n_neighbors``, None for class means.
    best_score_ : float
        Their mean score over the folds.
    best_index_ : int
        Their place in ``cv_results_``.
    cv_results_ : dict of arrays
        As of `~sklearn.model_selection.GridSearchCV`, a row for each metric and head; also
        ``mean_test_accuracy``, ``mean_gain``, the mean paired difference to the usual candidate with class
        means, and its standard error ``gain_error``.
    n_neighbors_ : int or None
        Neighbors chosen; None where the head is the class mean, or ridge regression.
    temperature_ : float
        Divides the log likelihoods of the head so that its probabilities agree with the labels left out; 1
        for regression targets.
    path_ : Bunch
        What learning does as the ball grows, at the rank chosen, on all the data: ``radius``, ``alignment``,
        ``distance`` reached, and ``condition`` number of the metric, how stretched it is.

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

    # Groups that are routed to a splitter do not come here unless set_fit_request(groups=True) says so.
    __metadata_request__fit: ClassVar = {"groups": False}

    def __init__(
        self,
        metric: LogEuclideanMetric | None = None,
        *,
        radii: Sequence[float] | None = None,
        ranks: Sequence[int | None] | None = None,
        weightings: Sequence[str | None] | None = None,
        head: str = "neighbors",
        n_neighbors: int | None = None,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "clear",
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        verbose: bool = False,
    ):
        self.metric = metric
        self.radii = radii
        self.ranks = ranks
        self.weightings = weightings
        self.head = head
        self.n_neighbors = n_neighbors
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _template(self) -> LogEuclideanMetric:
        """The metric whose parameters all candidates share."""
        if self.metric is None:
            return LogEuclideanMetric(tol=3e-2, max_iter=40)
        if not isinstance(self.metric, LogEuclideanMetric):
            raise ValueError(f"metric={self.metric!r}: expected a LogEuclideanMetric, or None.")
        return self.metric

    @property
    def init(self) -> str | Array:  # type: ignore[override]
        """Where learning starts, a parameter of ``metric``."""
        return self._template.init

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
            Labels of at least two classes, or regression targets.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights, used in learning, not in scoring; zero leaves the matrix out of both.
        groups : array-like of shape (n_matrices,), optional
            Groups that folds keep together; None: the domains, if there are several.
        sample_domain : array-like of shape (n_matrices,), optional
            Session or subject of each matrix, by whose own mean it is recentered; see
            `LogEuclideanMetric.fit`.

        Returns
        -------
        self : LogEuclideanMetricCV
        """
        self._choose_and_learn(X, y, sample_weight, groups, sample_domain)
        return self

    @with_progress(lambda self: 1)
    @one_thread
    def _choose_and_learn(
        self, X: Array, y: Array, sample_weight: Any, groups: Any, sample_domain: Any
    ) -> Training:
        """`fit`, and return what it has at hand of the matrices with weight, for a head and for `adapt`."""
        metric, (radii, ranks, weightings) = self._check_parameters()
        if is_dask_array(X):
            raise ValueError(
                "Cross-validation needs the matrices in this process, and those of a dask array stay on the "
                "workers: fit on X.compute(), or use LogEuclideanMetric."
            )
        # By default ranks follow those that the matrices have; at full rank matrices must be definite.
        needed = 1 if ranks is None else None if None in ranks else max(ranks)
        here = read(X, slice(None)) if is_stored(X) else X  # folds are in memory
        data, classes, domains = check_data(metric, here, y, sample_weight, sample_domain, rank=needed)
        weighted, by_head = data.weighted, self.head in ("centroid", "ridge")
        use, holds = ("ridge", "regression targets") if classes is None else ("centroid", "labels")
        if by_head and self.head != use:
            raise ValueError(f"head={self.head!r} is not for y that holds {holds}: use head={use!r}.")
        if classes is not None:
            check_class_sizes(classes, weighted.target.counts)
        if groups is not None:
            groups = validation.check_groups(groups, data.shape[0])
        elif sample_domain is not None and not isinstance(self.cv, Integral):  # a number takes no groups
            groups = groups_of_domains(sample_domain, sample_weight)
        seed = self.random_state if isinstance(self.random_state, Integral) else draw_seed(self.random_state)
        folds = selection.make_folds(self.cv, data, classes, groups, int(seed))
        data, fewest = weighted, min(len(train) for train, _ in folds)
        if by_head:
            numbers = []
        elif self.n_neighbors is None:
            sizes = [] if classes is None else data.target.counts.tolist()
            numbers = [k for k in selection.NUMBERS if k <= min([fewest, *filter(None, sizes)])]
        elif self.n_neighbors > fewest:
            raise ValueError(
                f"{spell('n_neighbors', self.n_neighbors)}: expected at most {fewest}, as many matrices "
                "as the smallest fold has to learn from. Leave it out to have it chosen."
            )
        else:
            numbers = [int(self.n_neighbors)]
        candidates = selection.make_candidates(radii, ranks, weightings, numbers, data)
        parts: dict[str | None, Data] = {None: data}
        # The first view alone stands for itself; of a single metric that is given there is nothing to choose.
        if len(data.shape) == 4 and data.shape[1] > 1 and len(candidates) > 1 + len(numbers):
            parts = {"first": replace(data, X=data.X[:, :1]), "all": data}
            candidates = [candidate._replace(views=views) for views in parts for candidate in candidates]
        whitened = {
            views: selection.whiten_at_center(part, candidates, metric.init) for views, part in parts.items()
        }
        quiet = copy(metric).set_params(callback=None)  # a callback may not reach other processes
        tasks = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(selection.score_fold)(whitened, fold, candidates, quiet) for fold in folds
        )
        scores = list(follow_folds(self, tasks, "cross-validation", len(folds)))
        table = selection.tabulate(scores, folds, data.target, classes, self.scoring)
        chosen = selection.choose(table, self.head, self.rule)
        by_accuracy = self.scoring is None and classes is not None
        self.cv_results_ = selection.lay_out_results(table, accuracy=by_accuracy)
        self.best_index_ = table.candidates.index(chosen)
        self.temperature_ = float(table.temperatures[self.best_index_])
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.n_neighbors_ = chosen.n_neighbors
        radii = selection.values_of("radius", (one for one in candidates if one.rank == chosen.rank))
        inputs = data.shape, getattr(X, "view_names", None), classes, domains
        return self._learn_chosen(whitened[chosen.views], chosen, radii, metric, inputs)

    def _learn_chosen(
        self,
        whitened: Whitened,
        chosen: Candidate,
        radii: list[float],
        metric: LogEuclideanMetric,
        inputs: tuple[Any, ...],
    ) -> Training:
        """Learn the chosen metric on all matrices, from the center that the folds have used."""
        problem = whitened.find_problem(slice(None), chosen.rank, metric, searched=radii != [0.0])
        solutions = solve_path(problem, radii, metric, metric._report)
        solution = solutions[radii.index(chosen.radius)]
        weighting = None if chosen.weighting is None else learn_weighting(solution)
        start: Any = problem.start
        placed = start if whitened.center is None else start.placed_at(whitened.center)
        self._keep(placed, solution, weighting, *inputs)
        points = [solution.point for solution in solutions]
        self.path_ = Bunch(
            radius=np.array(radii, dtype=float),
            alignment=np.array([1 - solution.value for solution in solutions]),
            distance=np.array([np.linalg.norm(p.S) for p in points]) / np.sqrt(len(self.embedding_.starts)),
            condition=np.exp([point.spread for point in points]),
        )
        vectors = solution.evaluation.vectors
        if chosen.rank is None and chosen.radius > 0:  # at the center the frame is the identity
            vectors = self.embedding_.turn(vectors)
        return whitened, start, vectors

    def _check_parameters(self) -> tuple[LogEuclideanMetric, list[Any]]:
        """Check the parameters; return the metric to learn; radii, ranks and weightings that are given."""
        check_nested(self, self._template)
        metric = copy(self._template).set_params(verbose=self.verbose)
        check_parameters(metric)
        if metric.solver == "stochastic":
            raise ValueError(
                "solver='stochastic' cannot follow a path of radii: choose radius and rank with "
                "'trust-region' on a part of the data, then use LogEuclideanMetric(solver='stochastic')."
            )
        for name, constraint in CONSTRAINTS.items():
            check_value(name, getattr(self, name), constraint)
        tried: list[Any] = []
        for name, (parameter, kind) in _CANDIDATES.items():
            values = getattr(self, name)
            if name == "weightings" and values is None and metric.kernel != "linear":
                values = [None]  # it has no other
            if values is not None and len(values) == 0:
                raise ValueError(f"{name} is empty: expected at least one candidate.")
            given = () if values is None else values
            for value in given:
                check_parameters(copy(metric).set_params(**{parameter: value}))
            tried.append([None if value is None else kind(value) for value in given] or None)
        return metric, tried


def check_class_sizes(classes: np.ndarray, counts: np.ndarray) -> None:
    """Refuse classes of one matrix each, and warn of some."""
    single = classes[counts == 1].tolist()
    if len(single) == len(classes):
        raise ValueError(
            f"Each of the {len(single)} classes of y has one matrix: expected several of a class, to learn "
            "what they have in common. Are these regression targets, or names of matrices?"
        )
    if single:
        names = ", ".join(map(repr, single[:8])) + (" and others" if len(single) > 8 else "")
        warn_at_caller(
            f"Only one matrix has the label {names}: it is learned from, but no default fold leaves it out, "
            "and nothing tells how well its class is recognized. Expected two or more.",
            UserWarning,
        )


def check_nested(outer: BaseEstimator, inner: BaseEstimator) -> None:
    """Refuse a parameter of an inner estimator that the outer one has too, unless it is the default."""
    own, defaults = outer.get_params(deep=False), type(inner)().get_params(deep=False)
    for name in own.keys() & defaults.keys() - {"metric"}:
        value, default = getattr(inner, name), defaults[name]
        if value is default or (isinstance(value, (str, Integral)) and value == default):
            continue
        raise ValueError(
            f"metric={type(inner).__name__}({name}={value!r}): {name} is a parameter of "
            f"{type(outer).__name__}, and holds there. Pass {type(outer).__name__}({name}={value!r}) instead."
        )


def set_nested(estimator: BaseEstimator, name: str, value: object) -> bool:
    """Set a parameter of an estimator, or of the metric inside it, if there is one; return whether it was."""
    if name in estimator.get_params(deep=False):
        estimator.set_params(**{name: value})
        return True
    if isinstance(estimator, MetricPredictor):
        inner = LogEuclideanMetricCV() if estimator.metric is None else estimator.metric
    elif isinstance(estimator, LogEuclideanMetricCV):
        inner = estimator._template
    else:
        return False
    found = set_nested(inner, name, value)
    if found:
        estimator.set_params(metric=inner)
    return found


# -- What classifier and regressor share --------------------------------------


class MetricPredictor(StackEstimator, CallbackSupportMixin):
    """A chosen metric with a head behind it."""

    __metadata_request__fit: ClassVar = {"groups": False}  # as above
    _task: ClassVar[str]
    _usual_head: ClassVar[str]  # what the head is called if it is not neighbors

    metric: LogEuclideanMetric | LogEuclideanMetricCV | None

    @one_thread
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        groups: Array | None = None,
        sample_domain: Array | None = None,
    ) -> Self:
        """Choose and learn the metric and the head.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,) or (n_matrices, n_outputs)
            For a classifier labels of at least two classes.  For a regressor targets; several outputs count
            in units of their spread.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights; a weight of zero leaves the matrix out.
        groups : array-like of shape (n_matrices,), optional
            Groups that folds keep together; None: the domains, if there are several.
        sample_domain : array-like of shape (n_matrices,), optional
            Session or subject of each matrix, strings or whole numbers.  Every domain is recentered by its
            own Riemannian mean, by ``sample_weight``, and one metric is learned for all.

        Returns
        -------
        self : estimator
        """
        metric = self._prepare_metric()
        training = metric._choose_and_learn(X, y, sample_weight, groups, sample_domain)
        whitened, _, vectors = training
        self._store(metric, vectors, whitened.target)
        self._keep_training(training, y, sample_weight)
        return self

    def _store(self, metric: LogEuclideanMetricCV, vectors: np.ndarray, target: Any) -> None:
        """Set metric and head, given vectors without the weighting and what they should tell."""
        Q, number = metric.embedding_.weighting, metric.n_neighbors_
        self.metric_, self.n_features_in_ = metric, metric.n_features_in_
        self.head_ = self._usual_head if number is None else "neighbors"
        self._head = fit_head(vectors if Q is None else vectors @ Q, target, number)

    @abstractmethod
    def _keep_training(self, training: Training, y: Array, sample_weight: Array | None) -> None:
        """Keep what else is needed of the matrices with weight."""

    def _prepare_metric(self) -> LogEuclideanMetricCV:
        """What ``metric`` says to try, with this estimator's own parameters."""
        metric = LogEuclideanMetricCV() if self.metric is None else self.metric
        if not isinstance(metric, (LogEuclideanMetric, LogEuclideanMetricCV)):
            raise ValueError(
                f"metric={metric!r}: expected a LogEuclideanMetric, a LogEuclideanMetricCV, or None."
            )
        check_nested(self, metric)
        if isinstance(metric, LogEuclideanMetric):
            radii, ranks, weightings = [metric.radius], [metric.rank], [metric.weighting]
            metric = LogEuclideanMetricCV(metric, radii=radii, ranks=ranks, weightings=weightings)
        template = metric._template
        check_nested(self, template)
        if template.task not in ("auto", self._task):
            raise ValueError(
                f"metric has task={template.task!r}, and {type(self).__name__} is for {self._task}."
            )
        own, inner = self.get_params(deep=False), template.get_params(deep=False)
        inner |= {"task": self._task, "class_weight": own.pop("class_weight", template.class_weight)}
        own["metric"] = LogEuclideanMetric(**inner)
        metric = LogEuclideanMetricCV(**metric.get_params(deep=False) | own)
        if watching := getattr(self, "_skl_callbacks", None):  # those of scikit-learn follow the choice
            metric.set_callbacks(*watching)
        return metric

    def partial_adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the estimator to a session that arrives batch by batch, as the metric is carried."""
        check_is_fitted(self)
        validation.check_size(self, X)
        return self._carry(lambda metric: metric.partial_adapt(X, sample_weight))

    def _transform(self, X: Array, sample_domain: Array | None) -> np.ndarray:
        """Check that it is fitted, and return vectors in float64, wherever the matrices are."""
        check_is_fitted(self)
        validation.check_size(self, X)
        return np.asarray(validation.to_numpy(self.metric_.transform(X, sample_domain)), dtype=np.float64)

    def _carry(self, carry: Callable[[LogEuclideanMetricCV], LogEuclideanMetricCV]) -> Self:
        """A copy whose metric is that of another session."""
        adapted = copy(self)
        adapted.metric_ = carry(self.metric_)
        return adapted
