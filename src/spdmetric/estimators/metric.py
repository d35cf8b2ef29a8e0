"""The metric of one radius and one rank: learn the reference point, then turn SPD matrices into vectors."""

from __future__ import annotations

from copy import deepcopy

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from spdmetric import validation
from spdmetric.caller import warn_at_caller
from spdmetric.estimators._data import data_of
from spdmetric.estimators._domains import UNSEEN, seen_from_means
from spdmetric.estimators._fitted import FittedMetric
from spdmetric.estimators._problem import embedding_of, problem_of, radius_path
from spdmetric.estimators._progress import reported, with_progress
from spdmetric.estimators._settings import settings_of
from spdmetric.estimators._streaming import RandomState, Stream, draw_seed, solver_named
from spdmetric.linalg.symmetric import Array
from spdmetric.linalg.threads import threads
from spdmetric.objectives.local import Labeled
from spdmetric.solvers import Callback
from spdmetric.validation import ClassWeight, check_radius, check_rank, to_numpy


class LogEuclideanMetric(FittedMetric):
    """LogEuclidean metric whose reference point is learned from labels, or from numbers to predict.

    Maximizes the centered kernel-target alignment of the LogEuclidean kernel at G over
    the SPD matrices within a geodesic ball around G0 [Yger2015]_.  `transform` gives
    vectors whose Euclidean distances are the learned LogEuclidean distances, so that
    any scikit-learn estimator can follow.

    Parameters
    ----------
    radius : float, default=10.0
        Largest affine-invariant distance between the reference point and its start,
        the capacity of the model, at most 300.  0 learns nothing: the reference point is the start.
    rank : int or None, default=None
        Rows m of the factor.  None learns a reference point, m = d.  With m < d the metric
        sees m learned directions only: supervised feature extraction, which also works on
        rank-deficient matrices as long as m is at most their rank.  The radius then bounds
        how far the factor moves from its start, the directions on which the class means
        differ most; with ``radius=0`` it is that start, and 2 to 5 is plenty.
    weighting : {None, "discriminant"}, default=None
        How much each direction of the tangent space counts.  None: all the same, the paper's metric.
        "discriminant": after the reference point, or the factor, is learned, directions are weighed in
        closed form by what they reliably tell of the classes (discriminant analysis with a shrunk
        covariance), and the distance is ``|Q'(u - v)|`` for tangent vectors u and v [Hastie1995]_.  With
        ``radius=0`` it is a model by itself, without any search.  Needs ``kernel="linear"``.  For numbers
        to predict it is the same with their covariance: one direction for one number.
    task : {"auto", "classification", "regression"}, default="auto"
        What y holds.  "auto" takes numbers that are not all whole for numbers to predict, and all else for
        labels, as scikit-learn's `~sklearn.utils.multiclass.type_of_target` does: 1, 2, 3 can be grades or
        names, and only you know.  For an age in years say "regression".
    init : {"riemann", "median", "logeuclid", "euclid", "identity"} or array of shape (d, d), \
            default="riemann"
        The start G0 and center of the ball: a mean of the training matrices, the
        identity, or an SPD matrix.  "median" is the geometric median, which outlying matrices hardly move;
        domains and new sessions are then seen from their medians, too.
    kernel : {"linear", "rbf"}, default="linear"
        Kernel of the tangent vectors whose alignment is maximized: "linear" is the paper's,
        their inner product; "rbf", the Gaussian ``exp(-gamma distance^2)``, also brings together
        classes of several clusters.  It compares all pairs: up to 8,000 matrices they are kept, in 16 n^2
        bytes (1 GB); of more each pass computes them anew in little memory, in a time that grows as n^2,
        some minutes an iteration for 20,000 matrices.
    gamma : float or None, default=None
        Of the Gaussian kernel, in units of the squared learned distance; None learns it with
        the metric, between 1/1024 and 4 divided by the squared spread of the vectors.
    class_weight : {None, "balanced"} or dict {label: weight}, default=None
        None is the paper's target, in which large classes count more; "balanced"
        weighs the matrices of class k by ``n / (n_classes * n_k)``; a dict gives the weights,
        1 for labels that it leaves out.
    solver : {"trust-region", "newton", "gradient", "stochastic"}, default="trust-region"
        "trust-region": Riemannian trust region, its curvature learned from the steps;
        "newton": the same with exact second derivatives, for a radius up to 20; "gradient": steepest
        ascent along geodesics.  These return a KKT point of the constrained problem.  "stochastic":
        Riemannian stochastic gradient on mini-batches, for many matrices; it ends near a
        KKT point after a few passes over the data.  Alignment has several local maxima in
        the ball, and solvers may end at different ones, of nearly the same value.
    tol : float, default=1e-3
        Bound on the KKT residual: by how much of itself alignment would change, to first order,
        over the radius of the ball.  1e-3 leaves some 1e-5 of the alignment, 1e-2 some 1e-3,
        whatever the data.  The stochastic solver stops at the noise of its mini-batches instead.
    max_iter : int, default=1000
        Bound on the number of iterations; a warning tells when it did not suffice.  An
        iteration of the stochastic solver is a pass over the data.
    batch_size : int or None, default=None
        Matrices in a mini-batch of the stochastic solver and of `partial_fit`; None chooses
        by their number and size.
    chunk_size : int or None, default=None
        How many matrices to handle at a time; None chooses by their size.
    n_jobs : int or None, default=None
        Threads that share the chunks of one fit; None is 1, -1 one for each core.  BLAS runs one
        thread in each of them, whatever ``n_jobs``.
    callback : callable or None, default=None
        Called after each iteration with a `~spdmetric.solvers.Record`; returning True
        stops the run.
    random_state : int, RandomState instance or None, default=None
        Order of the matrices in the stochastic solver and in `partial_fit`.
    verbose : bool, default=False
        Print a line for each iteration.
    unseen_domain : {"error", "recenter"}, default="error"
        What `transform` does with a domain that was not in `fit`: it refuses, or sees its matrices from
        their own mean, which is transductive: what becomes of a matrix depends on the others at hand.

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
        The weighting Q: vectors without a weighting, of length p, times Q are those of `transform`.  q is at most
        the number of classes less one, or the number of outputs.
    weighting_penalty_ : float or None
        Penalty of the regression that the weighting comes from: of classes Ledoit and Wolf's for their
        covariance, at radius 0 and full rank also 0.3 or 3 times that, where the leave-one-out error is
        then clearly less; of numbers to predict the best by that error.
    weighting_score_ : float or None
        Share of the variance of the labels that it explains, each matrix left out in turn; 0 where
        every class has one matrix.  Optimistic for a learned reference point, which stays as it is.
    radius_ : float
        Affine-invariant distance between G0 and G, at most ``radius``.
    n_iter_ : int
        Iterations of the solver.
    embedding_ : Embedding
        The way from matrices to vectors, all that is kept of it (`spdmetric.estimators.embedding`).
    solution_ : Solution
        Status sentence, KKT residual and multiplier, history.
    classes_ : ndarray of shape (n_classes,) or None
        The labels seen in `fit`; None for numbers to predict.
    domains_ : ndarray of shape (n_domains,) or None
        The domains seen in `fit`, sorted; None without ``sample_domain``.  With it the attributes above are
        of matrices that are whitened by the means of their domains.
    domain_means_ : ndarray of shape (n_domains, d, d) or None
        Their Riemannian means.
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

    _stream: Stream | None = None

    def __init__(
        self,
        radius: float = 10.0,
        *,
        rank: int | None = None,
        weighting: str | None = None,
        task: str = "auto",
        init: str | Array = "riemann",
        kernel: str = "linear",
        gamma: float | None = None,
        class_weight: ClassWeight = None,
        solver: str = "trust-region",
        tol: float = 1e-3,
        max_iter: int = 1000,
        batch_size: int | None = None,
        chunk_size: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
        unseen_domain: str = "error",
    ):
        self.radius = radius
        self.rank = rank
        self.weighting = weighting
        self.task = task
        self.init = init
        self.kernel = kernel
        self.gamma = gamma
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.chunk_size = chunk_size
        self.n_jobs = n_jobs
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose
        self.unseen_domain = unseen_domain

    @with_progress(lambda self: self.max_iter + 1)
    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        sample_domain: Array | None = None,
    ) -> LogEuclideanMetric:
        """Learn the reference point.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.  ``np.memmap`` and whatever else has a weighting and slices (HDF5, Zarr) is
            read chunk by chunk, in each pass anew; a dask array stays on the workers of the
            Dask client, or is computed chunk by chunk where there is none.
        y : array-like of shape (n_matrices,) or (n_matrices, n_outputs)
            Labels of any kind, of at least two classes; or numbers to predict, see ``task``, one or
            several for each matrix.  Each counts in units of its own spread.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights: a weight of w is the matrix given w times, in the mean
            as in the alignment, except that a weighting's penalty is chosen by leaving it out with
            all of its weight.  One of zero leaves the matrix out.  Only ratios matter, up to 1e12.
        sample_domain : array-like of shape (n_matrices,), optional
            Session or subject of each matrix, strings or whole numbers.  Every domain is seen from its own
            Riemannian mean, by ``sample_weight``, and one metric is learned for all.  Not for dask arrays.

        Returns
        -------
        self : LogEuclideanMetric
        """
        settings = settings_of(self.get_params(deep=False))
        radius, rank = check_radius(self.radius, settings.solver), check_rank(self.rank, settings.solver)
        validation.check_weighting(self.weighting, settings.kernel)
        validation.check_choice("unseen_domain", self.unseen_domain, UNSEEN)
        validation.check_n_jobs(self.n_jobs)
        solver = solver_named(settings.solver, self.batch_size, self.random_state)
        callback = reported(self, settings.report, settings.max_iter)
        with threads(self.n_jobs) as map_chunks:
            seen, domains = seen_from_means(
                X, sample_domain, sample_weight, mean=self._mean_name, map=map_chunks
            )
            classes, data = data_of(
                seen, y, sample_weight, settings, rank=rank, task=self.task, map=map_chunks
            )
            problem = problem_of(data, rank, settings)
            del data  # what the problem does not keep need not stay on the workers
            (solution,) = radius_path(problem, [radius], settings, solver=solver, callback=callback)
            validate_data(self, X, reset=True, skip_check_array=True)
            gamma, weighting = problem.gamma(solution), problem.weighting(solution, self.weighting)
            embedding = problem.embedding(solution)
            self._keep(classes, embedding, solution, gamma=gamma, weighting=weighting, domains=domains)
        self._stream = None
        if not solution.converged and solution.status.name != "CALLBACK":
            warn_at_caller(
                f"{type(self).__name__}: {solution.status.value} (KKT residual {solution.residual:.2g}, "
                f"tol={self.tol:.2g}, {solution.n_iter} iterations)",
                ConvergenceWarning,
            )
        return self

    def partial_fit(
        self, X: Array, y: Array, classes: Array | None = None, sample_weight: Array | None = None
    ) -> LogEuclideanMetric:
        """Learn from one more batch of a stream; no matrix is kept for long.

        A call that raises leaves the estimator as it was.

        G0, the start and center of the ball, is that of the first batches: they are kept until
        they hold d(d+1)/2 matrices and two classes (or 4d(d+1) of one class), and G0 is fixed
        then.  Until then the metric is that at the mean of what was seen.  Afterwards matrices
        are kept until there are ``batch_size`` of them (None: 4d, at least 32); they are cut
        into mini-batches of about that size, a step is taken by each, and they are forgotten.
        The stream should be mixed: what came first counts less and less.  ``solver``, ``tol``,
        ``max_iter`` and ``n_jobs`` are not used.

        A weighting is renewed whenever the reference point is, from moments of all that was learned from: with
        ``radius=0`` it is that of `fit`, otherwise matrices count in proportion to what had come before them,
        as the reference point was elsewhere then.  Until two classes have come ``weighting_`` is None.  Each time
        takes an eigendecomposition of size d(d+1)/2, or m(m+1)/2 at rank m; a larger ``batch_size`` makes it
        rarer.  Matrices that come again count as new ones, so that many passes over a few leave the penalty
        too small.

        Attributes are those of `fit`: ``alignment_`` is an estimate from the last
        mini-batches, ``weighting_score_`` one from the moments (generalized cross-validation),
        ``n_iter_`` counts mini-batches, and the history has a record for each
        of the last thousand calls.  `fit` forgets the stream.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Labels, all of them in ``classes``.
        classes : array-like of shape (n_classes,)
            All labels that the stream may bring; needed in the first call.  One may come late,
            and one that never comes changes nothing; a warning names those that were not there
            when G0 was fixed.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.

        Returns
        -------
        self : LogEuclideanMetric
        """
        settings = settings_of(self.get_params(deep=False))
        radius, rank = check_radius(self.radius), check_rank(self.rank, settings.solver)
        validation.check_stream_task(self.task)
        past = self._stream
        known = None if past is None else self.classes_
        classes = validation.check_stream(classes, known, settings.kernel, settings.class_weight)
        validation.check_weighting(self.weighting, settings.kernel)
        X = validation.check_psd(to_numpy(X), rank)
        if past is not None:
            validate_data(self, X, reset=False, skip_check_array=True)
        codes, weight = validation.check_batch(X, y, sample_weight, classes, settings.class_weight)
        # All is done with copies until nothing can fail any more: a call that raises changes nothing.
        stream = Stream(classes, rank, deepcopy(self.random_state)) if past is None else past.copy()
        with threads():
            batch = Labeled(X, codes, weight).counting
            absent = stream.see(
                batch,
                radius=radius,
                batch_size=self.batch_size,
                with_weighting=self.weighting is not None,
                settings=settings,
            )
            solution = stream.solution
            embedding = embedding_of(stream.start, stream.rank, solution)
        if absent.size:
            warn_at_caller(
                f"Among the first {stream.seen.sum()} matrices of the stream, whose mean G0 is, there is "
                f"none of {absent.tolist()}: what is learned takes no account of these classes until they "
                "come. Mix the stream, or leave out of classes= what will never come.",
                UserWarning,
            )
        settings.report(stream.history[-1])
        if past is None:
            validate_data(self, X, reset=True, skip_check_array=True)
            draw_seed(self.random_state)  # that of the stream, drawn from a copy
        self._keep(classes, embedding, solution, weighting=stream.weighting)
        self._stream = stream
        return self

    def _adapted(self, X: Array, sample_weight: Array | None, *, continued: bool) -> LogEuclideanMetric:
        adapted = super()._adapted(X, sample_weight, continued=continued)
        adapted._stream = None  # another session: a stream goes on in the metric that saw it
        return adapted
