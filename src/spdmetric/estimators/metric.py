"""The metric of one radius and one rank: learn the reference point, then turn SPD matrices into vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from math import isfinite, prod
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from array_api_compat import is_dask_array
from sklearn.exceptions import ConvergenceWarning

from spdmetric import validation
from spdmetric.caller import warn_at_caller
from spdmetric.distributed import arrays, cluster
from spdmetric.distributed.data import check_cluster_data
from spdmetric.estimators._domains import recenter_domains, warn_if_confounded
from spdmetric.estimators._fitted import FittedMetric, end_task, with_progress
from spdmetric.estimators._streaming import (
    RandomState,
    Stream,
    check_batch,
    check_stream_classes,
    draw_seed,
    stochastic_solver,
)
from spdmetric.linalg.batch import Factor, Views, map_views
from spdmetric.linalg.symmetric import Array, congruence
from spdmetric.linalg.threads import Map, threads
from spdmetric.means import MEANS
from spdmetric.objectives.alignment import Evaluation, Misalignment
from spdmetric.objectives.data import (
    Data,
    check_stored,
    check_target,
    fits,
    is_stored,
    leave_out_stored,
    row_chunks,
    stored_shape,
    take_view,
)
from spdmetric.objectives.gaussian import MOST, GaussianEvaluation, GaussianMisalignment
from spdmetric.objectives.start import ViewStarts, find_start
from spdmetric.objectives.weighting import Weighting
from spdmetric.solvers import SOLVERS, Callback, Record, Solution, trust_region
from spdmetric.validation import UninformativeDataError, is_finite_number, one_of, optional

_EPS = float(np.finfo(np.float64).eps)


class LogEuclideanMetric(FittedMetric):
    """LogEuclidean metric whose reference point is learned from labels, or from regression targets.

    Maximizes the centered kernel-target alignment of the LogEuclidean kernel at G over the SPD matrices
    within a geodesic ball around G0 [Yger2015]_.  `transform` gives vectors whose Euclidean distances are the
    learned LogEuclidean distances, so that any scikit-learn estimator can follow.

    Parameters
    ----------
    radius : float, default=10.0
        Largest affine-invariant distance of the reference point from its start, the capacity of the model, at
        most 300.  0 learns nothing: the reference point is the start.
    rank : int or None, default=None
        Rows m of the factor.  None learns a reference point, m = d.  With m < d the metric sees m learned
        directions only, so that it also takes rank-deficient matrices, of rank m or more.  The radius then
        bounds how far the factor moves from its start, the directions on which the class means differ most;
        with ``radius=0`` it is that start, and 2 to 5 is enough.
    weighting : {None, "discriminant"}, default=None
        How much each direction of the tangent space counts.  None: all the same, the paper's metric.
        "discriminant": in closed form, after the reference point is learned, by how reliably a direction
        separates the classes (discriminant analysis with a shrunk covariance [Hastie1995]_) or varies with
        the targets.  With ``radius=0`` it is a model by itself.  Needs ``kernel="linear"``.
    init : {"riemann", "median", "logeuclid", "euclid", "identity"} or array, default="riemann"
        The start G0 and center of the ball: a mean of the training matrices, the identity, or an SPD matrix
        of shape (d, d).  "median" is the geometric median, which outlying matrices hardly move; domains and
        new sessions are then recentered by their medians, too.
    kernel : {"linear", "rbf"}, default="linear"
        Kernel of the tangent vectors whose alignment is maximized: "linear" is the paper's, their inner
        product; "rbf", the Gaussian ``exp(-gamma distance^2)``, also brings together classes of several
        clusters.  It compares all pairs, of at most 8,000 matrices, in 16 n^2 bytes.
    gamma : float or None, default=None
        Of the Gaussian kernel, in units of the squared learned distance; None learns it with the metric,
        between 1/1024 and 4 divided by the squared spread of the vectors.
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds.  "auto" takes numbers that are not all whole for regression targets, and all else for
        labels: 1, 2, 3 can be grades or names, and only you know.  For an age in years say "regression".
    class_weight : {None, "balanced"} or dict {label: weight}, default=None
        None is the paper's target, in which large classes count more; "balanced" weighs the matrices of class
        k by ``n / (n_classes * n_k)``; a dict gives the weights, 1 for labels that it leaves out.
    solver : {"trust-region", "gradient", "stochastic"}, default="trust-region"
        "trust-region": Riemannian trust region, its curvature learned from the steps; "gradient": steepest
        ascent along geodesics.  These return a KKT point of the constrained problem.  "stochastic":
        Riemannian stochastic gradient on mini-batches, for many matrices; it ends near a KKT point after a
        few passes over the data.  Solvers may end at different local maxima, of nearly the same alignment.
    tol : float, default=1e-3
        Bound on the KKT residual: by how much of itself alignment would change, to first order, over the
        radius of the ball.  1e-3 leaves some 1e-5 of the alignment, 1e-2 some 1e-3, whatever the data.  The
        stochastic solver stops at the noise of its mini-batches instead.
    max_iter : int, default=1000
        Bound on the number of iterations, of the stochastic solver passes over the data; a warning says when
        they were not enough.
    n_jobs : int or None, default=None
        Threads that share the chunks of one fit; None is 1, -1 one for each core.  BLAS runs one thread in
        each of them, whatever ``n_jobs``.
    callback : callable or None, default=None
        Called after each iteration with a `~spdmetric.solvers.Record`; returning True stops the run.
    random_state : int, RandomState instance or None, default=None
        Order of the matrices in the stochastic solver and in `partial_fit`.
    verbose : bool, default=False
        Print a line for each iteration.

    Attributes
    ----------
    reference_ : ndarray of shape (d, d)
        The reference point G; at low rank there is none.
    components_ : ndarray of shape (d, d) or (rank, d)
        The factor W: ``G^{-1/2}``, symmetric, or at low rank the learned m x d factor.
    alignment_ : float
        Centered kernel-target alignment reached, between 0 and 1.
    gamma_ : float or None
        The gamma of the Gaussian kernel, given or learned; None for the linear kernel.
    weighting_ : ndarray of shape (p, q) or None
        The weighting Q: vectors without a weighting, of length p, times Q are those of `transform`, with the
        distance ``|Q'(u - v)|``.  q is at most the number of classes less one, or the number of outputs.
    weighting_penalty_ : float or None
        Penalty of the regression behind it: of classes Ledoit and Wolf's for their covariance, at radius 0
        and full rank also 0.3 or 3 times that where the leave-one-out error is then clearly less; of targets
        the best by that error.
    weighting_score_ : float or None
        Share of the variance of the labels that it explains, each matrix left out in turn; 0 where every
        class has one matrix.  Optimistic for a learned reference point, which stays as it is.
    radius_ : float
        Affine-invariant distance between G0 and G, at most ``radius``.
    n_iter_ : int
        Iterations of the solver.
    embedding_ : Embedding
        The way from matrices to vectors, all that is kept of it (`spdmetric.estimators.embedding`).
    solution_ : Solution
        Status sentence, KKT residual and multiplier, history.
    classes_ : ndarray of shape (n_classes,) or None
        The labels seen in `fit`; None for regression targets.
    domains_, domain_means_ : ndarrays of shape (n_domains,) and (n_domains, d, d), or None
        The domains seen in `fit`, sorted, and their Riemannian means; with them the attributes above are of
        recentered matrices.
    n_features_in_ : int
        The size d of the matrices.

    Notes
    -----
    The kernel that is aligned is pyRiemann's ``kernel_riemann(Cref=G)``; its
    ``kernel_logeuclid(Cref=G)`` is another one.

    References
    ----------
    .. [Yger2015] F. Yger and M. Sugiyama, "Supervised LogEuclidean Metric Learning for
       Symmetric Positive Definite Matrices", arXiv:1502.03505, 2015.
    .. [Hastie1995] T. Hastie, A. Buja and R. Tibshirani, "Penalized Discriminant Analysis", Annals of
       Statistics 23(1), 1995.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from spdmetric import LogEuclideanMetric
    >>> from spdmetric.datasets import make_toy
    >>> X, y, X_test, y_test = make_toy(n_train=50, n_test=100, d=8, random_state=0)
    >>> model = make_pipeline(LogEuclideanMetric(), KNeighborsClassifier(1)).fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.8)
    True
    """

    def __init__(
        self,
        radius: float = 10.0,
        *,
        rank: int | None = None,
        weighting: str | None = None,
        init: str | Array = "riemann",
        kernel: str = "linear",
        gamma: float | None = None,
        task: str = "auto",
        class_weight: validation.ClassWeight = None,
        solver: str = "trust-region",
        tol: float = 1e-3,
        max_iter: int = 1000,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.radius = radius
        self.rank = rank
        self.weighting = weighting
        self.init = init
        self.kernel = kernel
        self.gamma = gamma
        self.task = task
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    @with_progress(lambda self: self.max_iter + 1)
    def fit(self, X: Array, y: Array, sample_weight: Array = None, sample_domain: Array = None) -> Self:
        """Learn the reference point.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.  ``np.memmap`` and whatever else has a shape and slices (HDF5, Zarr) is
            read chunk by chunk, in each pass anew; a dask array stays on the workers of the
            Dask client, or is computed chunk by chunk where there is none.
        y : array-like of shape (n_matrices,) or (n_matrices, n_outputs)
            Labels of any kind, of at least two classes; or regression targets, see ``task``, one or
            several for each matrix.  Each counts in units of its own spread.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights, up to a ratio of 1e12: a weight of w is the matrix given w times, except
            that the penalty of a weighting is chosen by leaving it out with all of its weight.
        sample_domain : array-like of shape (n_matrices,), optional
            Session or subject of each matrix, strings or whole numbers.  Every domain is recentered by its
            own Riemannian mean, by ``sample_weight``, and one metric is learned for all.

        Returns
        -------
        self : LogEuclideanMetric
        """
        check_parameters(self)
        with threads(self.n_jobs) as map_chunks:
            data, classes, domains = check_data(
                self, X, y, sample_weight, sample_domain, self.rank, map_chunks
            )
            if sample_weight is not None and data.gathers:
                data = data.weighted
            start = find_start(data, self.init, self.rank)
            problem, shape = find_problem(data, start, self.rank, self), data.shape
            del data  # what the problem does not keep need not stay on the workers
            (solution,) = solve_path(problem, [float(self.radius)], self, self._report)
            weighting = None if self.weighting is None else learn_weighting(solution)
            names = getattr(X, "view_names", None)
            self._keep(start, solution, weighting, shape, names, classes, domains)
        if solution.status.name not in ("CONVERGED", "NOISE", "CALLBACK"):
            warn_at_caller(
                f"{type(self).__name__}: {solution.status.value} (KKT residual {solution.residual:.2g}, "
                f"tol={self.tol:.2g}, {self.n_iter_} iterations)",
                ConvergenceWarning,
            )
        return self

    def partial_fit(self, X: Array, y: Array, classes: Array = None, sample_weight: Array = None) -> Self:
        """Learn from one more batch of a stream; no matrix is kept for long.

        A call that raises leaves the estimator as it was.

        The first matrices are kept until there are d(d+1)/2 of two classes (or 4d(d+1) of one), and G0, the
        center of the ball, is fixed as their mean; until then that is the metric.  Afterwards they are kept
        until there are 4d, at least 32, and each mini-batch of about that size is a step.  The stream should
        be mixed: what came first counts less and less.  ``solver``, ``tol``, ``max_iter`` and ``n_jobs`` are
        not used, and `fit` forgets the stream.

        A weighting is renewed with the reference point, from moments of all that was learned from: with
        ``radius=0`` it is that of `fit`, otherwise matrices count in proportion to what had come before them.
        Until two classes have come ``weighting_`` is None.  Each time takes an eigendecomposition of size
        d(d+1)/2, or m(m+1)/2 at rank m.  Matrices that come again count as new ones.

        ``alignment_`` is an estimate from the last mini-batches, ``weighting_score_`` one from the moments
        (generalized cross-validation), ``n_iter_`` counts mini-batches, and the history has a record for each
        of the last thousand calls.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Labels, all of them in ``classes``.
        classes : array-like of shape (n_classes,)
            All labels that the stream may bring; needed in the first call.  One may come late, and one that
            never comes changes nothing; a warning names those that were not there when G0 was fixed.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.

        Returns
        -------
        self : LogEuclideanMetric
        """
        check_parameters(self)
        _refuse(self, _NOT_IN_A_STREAM)
        past = self._stream
        classes = check_stream_classes(classes, None if past is None else self.classes_)
        names = getattr(X, "view_names", None)
        X = validation.check_psd(validation.leave_out(X, sample_weight), self.rank)
        if past is not None:
            self._check_shape(X, names)
        codes, weight = check_batch(X, y, sample_weight, classes, self.class_weight)
        # All is done with copies until nothing can fail any more: a call that raises changes nothing.
        stream = Stream(classes, self.rank, deepcopy(self.random_state)) if past is None else past.copy()
        with threads():
            stream.learn(X, codes, weight, self)
            solution = stream.solution
        self._report(stream.history[-1])
        if past is None:
            draw_seed(self.random_state)  # that of the stream, drawn from a copy
        self._keep(stream.start, solution, stream.weighting, X.shape, names, classes)
        self._stream = stream
        return self

    def _report(self, record: Record) -> object:
        """Print a record if that is wanted, and give it to the callback and to those of scikit-learn."""
        if self.verbose:
            print(
                f"iteration {record.iteration:4d}  alignment {1 - record.value:.6f}  "
                f"KKT residual {record.residual:.1e}  distance {record.distance:6.3f}  "
                f"evaluations {record.evaluations:5d}  {record.seconds:.2f} s"
            )
        stop = None if self.callback is None else self.callback(record)
        context = getattr(self, "_callback_fit_ctx", None)  # None outside a watched `fit`
        if context is not None and record.iteration <= self.max_iter:  # no more were promised to the bar
            stop = end_task(self, context, "iteration") or stop
        return stop


# What each parameter may be.
CONSTRAINTS: dict[str, validation.Constraint] = {
    "radius": validation.RADIUS,
    "rank": optional(validation.COUNT),
    "weighting": one_of(None, "discriminant"),
    "init": one_of(*MEANS, "identity", other="an SPD matrix of shape (d, d)"),
    "kernel": one_of("linear", "rbf"),
    "gamma": (
        lambda value: value is None or (is_finite_number(value) and float(value) > 0),
        "a finite number > 0, or None to learn it with the metric",
    ),
    "task": one_of("auto", "classification", "regression"),
    "class_weight": (
        lambda value: isinstance(value, Mapping) or value in (None, "balanced"),
        "one of None, 'balanced', or a dict of weights",
    ),
    "solver": one_of(*SOLVERS, "stochastic"),
    "tol": (lambda value: isinstance(value, Real) and value > 0, "a positive number"),  # type: ignore[operator]
    "max_iter": validation.COUNT,
    "n_jobs": validation.N_JOBS,
    "callback": (lambda value: value is None or callable(value), "a function of one Record, or None"),
    "random_state": validation.RANDOM_STATE,
}


# Values of parameters that cannot be, and why.
_NOT_WITH_RBF = {
    ("solver", "stochastic"): "has mini-batches, and kernel='rbf' compares all pairs of matrices.",
    ("weighting", "discriminant"): "needs kernel='linear': 'rbf' is learned without one. Use one of the two.",
}
_NOT_ON_WORKERS = {
    ("kernel", "rbf"): "needs all matrices in this process: use kernel='linear', or fit on X.compute().",
    ("solver", "stochastic"): "needs all matrices here: use solver='trust-region', or fit on X.compute().",
}
_NOT_IN_A_STREAM = {
    ("task", "regression"): "needs the spread of all targets, which a stream does not know: use fit.",
    ("kernel", "rbf"): "compares all pairs of matrices, and a stream forgets them: use 'linear'.",
    ("class_weight", "balanced"): "needs the sizes of all classes: give a dict, or pass sample_weight.",
}


def check_parameters(metric: LogEuclideanMetric) -> None:
    """Refuse parameters that mean nothing, or nothing together, before any data are looked at."""
    for name, constraint in CONSTRAINTS.items():
        validation.check_value(name, getattr(metric, name), constraint)
    if metric.gamma is not None and metric.kernel == "linear":
        raise ValueError(
            f"gamma={metric.gamma!r} is of the Gaussian kernel, and kernel='linear' has none: pass "
            "kernel='rbf', or leave gamma=None."
        )
    if metric.kernel == "rbf":
        _refuse(metric, _NOT_WITH_RBF)
    by_label = metric.class_weight
    for label, weight in by_label.items() if isinstance(by_label, Mapping) else ():
        if not (is_finite_number(weight) and float(weight) > 0):
            raise ValueError(
                f"class_weight[{label!r}]={weight!r}: expected a finite number > 0. To leave a class out, "
                "drop its matrices."
            )


def _refuse(metric: Any, values: Mapping[tuple[str, str], str]) -> None:
    for (name, value), why in values.items():
        if getattr(metric, name) == value:
            raise ValueError(f"{name}={value!r} {why}")


# -- From what the user gives to what is learned from: the one place that asks what kind of array X is


def check_data(
    metric: Any,
    X: Array,
    y: Array,
    sample_weight: Array,
    sample_domain: Array,
    rank: int | None,
    map: Map = map,
) -> tuple[Data, np.ndarray | None, tuple[np.ndarray, np.ndarray] | None]:
    """Check the data where they are, in memory, in a file, or on a cluster, and recenter domains.

    ``metric`` says what y holds, how classes are weighed, and what domains are recentered by.  Returns the
    data, the classes, None for regression targets, and names and means of the domains.
    """
    client, rows, domains = None, None, None
    leave_out: Any = validation.leave_out
    if is_dask_array(X):
        X, y, sample_weight = arrays.align_columns(X, y, sample_weight)
        client = cluster.current_client()
        if client is not None:
            leave_out = arrays.leave_out
        else:
            rows = arrays.chunk_rows(X)
            X = arrays.compute(X) if fits(prod(X.shape[:-2]), X.shape[-1]) else arrays.compute_lazily(X)
            y, sample_weight = (None if v is None else arrays.compute(v) for v in (y, sample_weight))
    if is_stored(X):
        rows, leave_out = rows or row_chunks(stored_shape(X)), leave_out_stored
    if sample_weight is not None:
        X = leave_out(X, sample_weight)
    X = validation.to_numpy(X)
    if sample_domain is not None:
        X, domains = recenter_domains(X, sample_domain, sample_weight, metric._mean_name, map)
    what = sample_weight, metric.class_weight, metric.task
    classes: np.ndarray | None
    data: Data
    if client is not None:
        _refuse(metric, _NOT_ON_WORKERS)
        classes, data = check_cluster_data(client, X, y, *what, rank)
    else:
        checked = validation.check_psd(X, rank) if rows is None else check_stored(X, rank, rows, map)
        X = checked if rows is None or is_stored(X) else checked[: X.shape[0]]
        classes, target = check_target(X, y, *what)
        data = Data(X, target, rows, map)
    if sample_domain is not None:
        warn_if_confounded(y, sample_domain, sample_weight, metric.task)
    return data, classes, domains


# -- The learning problem as the solvers see it: where it starts, the objective, the ball


class Problem(NamedTuple):
    """An objective in the coordinates of its start, evaluated there."""

    start: Any  # a `Start`, or `ViewStarts`
    objective: Misalignment
    rank: int | None
    here: Evaluation  # at the start

    def at_rank(self, rank: int) -> Problem:
        """The same of another low rank."""
        start, R = self.start, self.objective.rotation
        center = start.ball(rank, 0.0).center
        if isinstance(start, ViewStarts):
            factor = center.factor if R is None else map_views(np.matmul, center.factor, R)
            start = start.rescaled(self.objective.data, factor.views)
            center = start.ball(rank, 0.0).center
        return Problem(start, self.objective, rank, self.objective.at(center))


def find_problem(data: Data, start: Any, rank: int | None, metric: Any, *, whitened: bool = False) -> Problem:
    """Whiten the data at their start unless they are, and evaluate the objective of a metric there.

    Whitened once, the data keep one set of rounding errors, however ill-conditioned they
    are, and the objective stays smooth.
    """
    n, d, kernel, gamma = data.shape[0], data.shape[-1], metric.kernel, metric.gamma
    if kernel == "rbf" and n > MOST:
        raise ValueError(
            f"kernel='rbf' compares all pairs of matrices, and X has {n}: expected at most {MOST}. Use "
            "kernel='linear', or learn from some of the matrices."
        )
    if rank is not None and (singular := int(data.total(partial(_count_singular, start.factor, rank)))):
        raise ValueError(
            f"{singular} of {n} matrices of X cannot be compared with the start: they are singular on the "
            f"{rank} directions on which the classes differ most. Choose a smaller rank, drop them, or "
            "estimate the matrices with shrinkage."
        )
    rotation = start.rotation if whitened else None
    data = data if whitened else data.whitened(start.factor)
    make = Misalignment if kernel == "linear" else partial(GaussianMisalignment, gamma=gamma)
    objective = make(data, rotation)
    here = objective.at(start.ball(rank, 0.0).center)
    spread = here.spread
    if not isfinite(spread):
        raise ValueError(
            "A matrix of X cannot be compared with the start in float64: together they are too close to "
            "singular. Estimate the matrices with shrinkage, or choose another init."
        )
    if spread <= 100 * d * _EPS:
        raise UninformativeDataError(
            "All matrices to learn from are the same: their alignment with the labels is undefined. Expected "
            "at least two different ones, in each fold of a cross-validation too."
        )
    if gamma is not None and isinstance(here, GaussianEvaluation) and not here.resolved:
        raise ValueError(
            f"gamma={gamma!r}: with it the Gaussian kernel is, in float64, the same for all pairs of "
            "matrices, and nothing can be learned. Expected a number near one over the squared spread of the "
            f"tangent vectors, {1 / spread**2:.2g}, or None to learn it."
        )
    return Problem(start, objective, rank, here)


def _count_singular(factor: Factor, rank: int, X: Any, target: object) -> int:
    """How many matrices are singular, but for rounding, on the first directions of a start."""
    count = 0
    for v, W0 in enumerate(factor.views if isinstance(factor, Views) else (factor,)):
        view = take_view(X, v, W0.shape[1]) if isinstance(factor, Views) else X
        traces = (view.reshape(len(view), -1) @ (W0.conj().T @ W0).conj().reshape(-1)).real
        smallest = np.linalg.eigvalsh(congruence(W0[:rank], view))[:, 0]
        count += int(np.count_nonzero(smallest <= len(W0) * _EPS * traces))
    return count


def solve_path(
    problem: Problem, radii: Sequence[float], metric: LogEuclideanMetric, callback: Callback | None = None
) -> list[Solution]:
    """Solve the problem of a metric for all radii, ascending, each from the solution before it.

    A solution on one sphere, stretched to the next, is a good start there: the whole path
    costs little more than its last point alone.
    """
    solver = SOLVERS.get(metric.solver) or partial(stochastic_solver, random_state=metric.random_state)
    solutions: list[Solution] = []
    for radius in radii:
        ball, here = problem.start.ball(problem.rank, radius), problem.here
        first: dict[str, Any] = {"start": here.point, "here": here, "callback": callback}
        if solutions and (length := float(np.linalg.norm(solutions[-1].point.S))) > 0:
            first |= {"start": ball.point(solutions[-1].point.S * (ball.radius / length)), "here": None}
        if radius > 0:
            solution = solver(problem.objective, ball, tol=metric.tol, max_iter=metric.max_iter, **first)
        else:  # a ball of one point: nothing to search, and every gradient is normal to it
            solution = trust_region(problem.objective, ball, tol=np.inf, max_iter=0, **first)
        solutions.append(solution)
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
