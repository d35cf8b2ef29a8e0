"""The scikit-learn face: learn the reference point, then turn SPD matrices into vectors."""

from __future__ import annotations

import warnings
from copy import copy
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from spdmetric.estimators._data import data_of, is_dask, vectors_on_cluster
from spdmetric.estimators._inputs import check_choice, printing, threads, weigh
from spdmetric.estimators._pairs import PairMixin
from spdmetric.estimators._problem import INITS, Problem, check_kernel, make_problem, problem_of
from spdmetric.estimators._progress import ProgressMixin, with_progress
from spdmetric.estimators._sources import is_stored
from spdmetric.estimators._storing import StoringMixin, check_embedded, embed
from spdmetric.estimators._streaming import StreamMixin, mini_batch_solver
from spdmetric.estimators._tensors import (
    as_float64,
    embed_tensor,
    is_single,
    is_tensor,
    narrowed,
    restore,
    to_numpy,
)
from spdmetric.geometry import geodesic, mean_riemann
from spdmetric.linalg.symmetric import (
    Array,
    congruence,
    symmetrize,
)
from spdmetric.solvers import SOLVERS, Callback, Solution, trust_region
from spdmetric.validation import check_count, check_psd, check_spd


class LogEuclideanMetric(
    PairMixin,
    StoringMixin,
    StreamMixin,
    ProgressMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """LogEuclidean metric whose reference point is learned from labels.

    Maximizes the centered kernel-target alignment of the LogEuclidean kernel at G over
    the SPD matrices within a geodesic ball around G0 [Yger2015]_.  `transform` gives
    vectors whose Euclidean distances are the learned LogEuclidean distances, so that
    any scikit-learn estimator can follow.

    Parameters
    ----------
    radius : float, default=10.0
        Largest affine-invariant distance between the reference point and its start,
        the capacity of the model.  0 learns nothing: the reference point is the start.
    rank : int or None, default=None
        Rows m of the factor.  None learns a reference point, m = d.  With m < d the metric
        sees m learned directions only: supervised feature extraction, which also works on
        rank-deficient matrices as long as m is at most their rank.  The radius then bounds
        how far the factor moves from its start, the directions on which the class means
        differ most; with ``radius=0`` it is that start, and 2 to 5 is plenty.
    init : {"riemann", "logeuclid", "euclid", "identity"} or array of shape (d, d), \
            default="riemann"
        The start G0 and center of the ball: a mean of the training matrices, the
        identity, or an SPD matrix.
    kernel : {"linear", "gaussian"}, default="linear"
        Kernel of the tangent vectors whose alignment is maximized: "linear" is the paper's,
        their inner product; "gaussian", ``exp(-gamma distance^2)``, also brings together
        classes of several clusters, at the price of an n x n matrix in memory.
    gamma : float or None, default=None
        Of the Gaussian kernel, in units of the squared learned distance; None learns it with
        the metric, between 1/1024 and 4 divided by the squared spread of the vectors.
    class_weight : {None, "balanced"}, default=None
        None is the paper's target, in which large classes count more; "balanced"
        weighs the matrices of class k by ``n / (n_classes * n_k)``.
    solver : {"trust-region", "newton", "gradient", "stochastic"}, default="trust-region"
        "trust-region": Riemannian trust region, its curvature learned from the steps;
        "newton": the same with exact second derivatives; "gradient": steepest ascent along
        geodesics.  These return a KKT point of the constrained problem.  "stochastic":
        Riemannian stochastic gradient on mini-batches, for many matrices; it ends near a
        KKT point after a few passes over the data.  Alignment has several local maxima in
        the ball, and solvers may end at different ones, of nearly the same value.
    tol : float, default=1e-6
        Bound on the KKT residual: the affine-invariant length of the gradient of the
        Lagrangian.  Alignment lies between 0 and 1, so it has no unit.  The stochastic
        solver stops at the noise of its mini-batches instead.
    max_iter : int, default=1000
        Bound on the number of iterations; a warning tells when it did not suffice.  An
        iteration of the stochastic solver is a pass over the data.
    batch_size : int or None, default=None
        Matrices in a mini-batch of the stochastic solver and of `partial_fit`; None chooses
        by their number and size.
    chunk_size : int or None, default=None
        How many matrices to handle at a time; None chooses by their size.
    n_jobs : int or None, default=None
        Threads that share the chunks; None is 1, -1 one for each core.  The result does not
        depend on it.
    callback : callable or None, default=None
        Called after each iteration with a `~spdmetric.solvers.Record`; returning True
        stops the run.
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
    radius_ : float
        Affine-invariant distance between G0 and G, at most ``radius``.
    n_iter_ : int
        Iterations of the solver.
    solution_ : Solution
        Status sentence, KKT residual and multiplier, history.
    classes_ : ndarray of shape (n_classes,)
        The labels seen in `fit`.
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
        init: str | Array = "riemann",
        kernel: str = "linear",
        gamma: float | None = None,
        class_weight: str | None = None,
        solver: str = "trust-region",
        tol: float = 1e-6,
        max_iter: int = 1000,
        batch_size: int | None = None,
        chunk_size: int | None = None,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.radius = radius
        self.rank = rank
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

    # -- learning -------------------------------------------------------------

    @with_progress(lambda self: self.max_iter + 1)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogEuclideanMetric:
        """Learn the reference point.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.  ``np.memmap`` and whatever else has a shape and slices (HDF5, Zarr) is
            read chunk by chunk, in each pass anew; a dask array stays on the workers of the
            Dask client, or is computed chunk by chunk where there is none.
        y : array-like of shape (n_matrices,)
            Labels of any kind, of at least two classes.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights: a weight of w is the matrix given w times, in the mean
            as in the alignment.

        Returns
        -------
        self : LogEuclideanMetric
        """
        self._check_parameters()
        self._stream = None
        with threads(self.n_jobs) as map_chunks:
            # Nobody but the problem has the data: what it does not keep need not stay on the workers.
            problem = problem_of(
                data_of(self, X, y, sample_weight, map_chunks),
                rank=self.rank,
                init=self.init,
                kernel=self.kernel,
                gamma=self.gamma,
            )
            self._keep(problem, self._solve(problem, float(self.radius)))
        return self

    def _check_data(self, X: Any, y: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the matrices that count, their classes as codes 0, 1, ..., and their weights."""
        X = self._check_matrices(to_numpy(X), reset=True)
        codes = self._check_labels(X, to_numpy(y))
        return weigh(X, codes, to_numpy(sample_weight), self.classes_, self.class_weight)

    def _problem(
        self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray, rank: int | None, map_chunks: Any = map
    ) -> Problem:
        shared = {name: getattr(self, name) for name in ("init", "kernel", "gamma", "chunk_size")}
        return make_problem(X, codes, weight, rank=rank, map_chunks=map_chunks, **shared)

    def _solve(self, problem: Problem, radius: float) -> Solution:
        callback = self._watched(printing(self.callback) if self.verbose else self.callback)
        ball = problem.ball(radius)
        start = ball.point(np.zeros_like(problem.start.center))
        objective, solve = problem.objective, SOLVERS.get(self.solver, trust_region)
        if radius == 0:
            # A ball of one point: nothing to search, and every gradient is normal to it.
            return solve(objective, ball, start, tol=np.inf, max_iter=0, callback=callback)
        if self.solver == "stochastic":
            objective, solve = mini_batch_solver(objective, self.batch_size, self.random_state)
        solution = solve(objective, ball, start, tol=self.tol, max_iter=self.max_iter, callback=callback)
        if not solution.converged and solution.status.name != "CALLBACK":
            warnings.warn(
                f"{type(self).__name__}: {solution.status.value} (KKT residual {solution.residual:.2g}, "
                f"tol={self.tol:.2g}, {solution.n_iter} iterations)",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def _keep(self, problem: Problem, solution: Solution) -> None:
        self._start, self._solution_factor = problem.start, solution.point.factor
        self._low_rank, self._adapted_weight = problem.rank is not None, 0.0
        self._set_factor(None)
        self.alignment_ = 1.0 - solution.value
        self.gamma_ = problem.gamma(solution.point)
        self.radius_ = float(np.linalg.norm(solution.point.S))
        self.n_iter_ = solution.n_iter
        self.solution_ = solution
        m = solution.point.factor.shape[0]
        self._n_features_out = m * (m + 1) // 2

    def _set_factor(self, Q: np.ndarray | None) -> None:
        """Derive what is public from the start, the factor found in its coordinates, and the frame Q.

        Vectors of different sessions must be in one frame, so a metric that is carried to a
        new session keeps its Q.  At full rank it is chosen in `fit` to make the factor
        symmetric: ``W W0 = U diag(sigma) V'`` is ``U V'`` times ``V diag(sigma) V'``.
        """
        W0, W = self._start.factor, self._solution_factor
        if self._low_rank:
            Q, self._reference = np.eye(len(W)), None
        else:
            U, sigma, Vt = np.linalg.svd(W @ W0)
            Q = U @ Vt if Q is None else Q
            self._reference = symmetrize((Vt.T / sigma**2) @ Vt)
        self._embedding = W0, W, Q
        self.components_: np.ndarray = Q.T @ W @ W0

    @property
    def reference_(self) -> np.ndarray:
        """The reference point G."""
        if not hasattr(self, "_reference"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: it has no reference_.")
        if self._reference is None:
            m, d = self.components_.shape
            raise AttributeError(
                f"A metric of rank {m} on {d} x {d} matrices has no reference point: use components_, its "
                f"{m} x {d} factor W."
            )
        return self._reference

    # -- using what was learned -----------------------------------------------

    def transform(self, X: Any) -> Any:
        """Turn SPD matrices into vectors whose Euclidean distances are the learned ones.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices, where `fit` takes them from; see `transform_to` for vectors that do
            not fit in memory.

        Returns
        -------
        vectors : ndarray of shape (n_matrices, d(d+1)/2), or (n_matrices, m(m+1)/2) at rank m
            float32 for float32 input; tensors, on their own device, for tensors; for a dask array a
            dask array, computed when it is asked.
        """
        check_is_fitted(self)
        if is_dask(X):
            return vectors_on_cluster(self, X)
        if is_stored(X):
            return self._transform_stored(X)
        return narrowed(self._embed(self._check_matrices(X)), is_single(X))

    def inverse_transform(self, vectors: Any) -> Array:
        """SPD matrices of vectors: the inverse of `transform`, at low rank as far as there is one.

        Parameters
        ----------
        vectors : array-like of shape (n_matrices, d(d+1)/2)
            Vectors as `transform` gives them.

        Returns
        -------
        X : ndarray of shape (n_matrices, d, d)
            At rank m, the m x m matrices ``W X W'``.
        """
        check_is_fitted(self)
        vectors = as_float64(vectors)
        if vectors.ndim != 2 or vectors.shape[1] != self._n_features_out:
            raise ValueError(
                f"Expected vectors of shape (n_matrices, {self._n_features_out}), got {tuple(vectors.shape)}."
            )
        return restore(self._embedding, vectors, low_rank=self._low_rank)

    def _embed(self, X: Array) -> Array:
        """Tangent vectors of checked matrices for ``components_``."""
        if is_tensor(X):
            return check_embedded(embed_tensor(self._embedding, X), self.radius_)
        return embed(self._embedding, self.radius_, X)

    # -- new sessions -------------------------------------------------------------

    def adapt(self, X: Any, sample_weight: Any = None) -> LogEuclideanMetric:
        """Carry the metric to a new, unlabeled session.

        The factor W learned around the mean M of the training matrices becomes
        ``W M^{1/2} N^{-1/2}``, N the Riemannian mean of the new session: new matrices are
        seen from their own mean as the training matrices were seen from theirs.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Matrices of the new session.  Their classes should be as frequent as in
            training: the mean of a session that lacks a class is off by what the class
            would have contributed, and so are the vectors.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.

        Returns
        -------
        adapted : LogEuclideanMetric
            A copy; use it to transform the new session.
        """
        return self._adapted(X, sample_weight, before=0.0)

    def adapt_partial(self, X: Any, sample_weight: Any = None) -> LogEuclideanMetric:
        """Carry the metric to a new session that arrives batch by batch.

        Parameters are those of `adapt`.  The running mean moves along the geodesic toward
        the mean of the batch, by the batch's share of all matrices seen; the first batch
        begins a new session.

        Returns
        -------
        adapted : LogEuclideanMetric
            A copy; call its ``adapt_partial`` with the next batch.
        """
        check_is_fitted(self)
        return self._adapted(X, sample_weight, before=self._adapted_weight)

    def _adapted(self, X: Any, sample_weight: Any, before: float) -> LogEuclideanMetric:
        check_is_fitted(self)
        if not isinstance(self.init, str) or self.init != "riemann":
            raise ValueError(
                "adapt needs the Riemannian mean of the training matrices, which is known with "
                f"init='riemann' only; this metric was learned with init={self.init!r}."
            )
        X = self._check_matrices(to_numpy(X))
        weight = _check_sample_weight(to_numpy(sample_weight), X, dtype=np.float64, ensure_non_negative=True)
        new = mean_riemann(congruence(self._start.basis.T, X), weight)
        total = before + weight.sum()
        adapted = copy(self)
        adapted._start = self._start._replace(center=geodesic(self._start.center, new, weight.sum() / total))
        adapted._adapted_weight, adapted._stream = total, None
        adapted._set_factor(self._embedding[2])
        return adapted

    # -- checking ---------------------------------------------------------------

    def _check_matrices(self, X: Any, *, reset: bool = False, name: str = "X") -> np.ndarray:
        X = self._check_chunk(X, name=name)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _check_chunk(self, X: Any, *, name: str = "X", first: int = 0) -> np.ndarray:
        rank = self._rank_asked()
        if rank is None:
            return check_spd(X, name=name, first=first)
        return check_psd(X, rank, name=name, first=first)

    def _rank_asked(self) -> int | None:
        """Smallest rank that the matrices must have; None where they must be definite."""
        return self.rank

    def _check_labels(self, X: Any, y: Any) -> np.ndarray:
        """Set ``classes_`` and return the class of each matrix as a code 0, 1, ..."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
        self._set_classes(classes)
        return codes

    def _set_classes(self, classes: np.ndarray) -> None:
        if classes.size < 2:
            raise ValueError(
                f"y has 1 class, {classes[0]!r}: expected at least two, there is nothing to tell apart."
            )
        self.classes_ = classes

    def _check_parameters(self) -> None:
        radius = self.radius
        if not isinstance(radius, Real) or not isfinite(radius) or radius < 0:
            raise ValueError(
                f"radius={radius!r}: expected a finite number >= 0, the largest affine-invariant distance "
                "from the start; 0 learns nothing. Without a bound the search runs away to degenerate G."
            )
        check_choice("init", self.init, INITS, other="an SPD matrix of shape (d, d)")
        check_choice("solver", self.solver, (*SOLVERS, "stochastic"))
        check_kernel(self.kernel, self.gamma, self.solver)
        check_choice("class_weight", self.class_weight, (None, "balanced"))
        if not isinstance(self.tol, Real) or not self.tol > 0:
            raise ValueError(f"tol={self.tol!r}: expected a positive number.")
        check_count("max_iter", self.max_iter)
        if self.rank is not None:
            check_count("rank", self.rank)
            if self.solver == "newton":
                raise ValueError(
                    "solver='newton' has second derivatives at full rank only: with rank= use 'trust-region'."
                )
        for name in ("batch_size", "chunk_size"):
            if getattr(self, name, None) is not None:
                check_count(name, getattr(self, name))
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r}: expected a function of one Record, or None.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = True
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
