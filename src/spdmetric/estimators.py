"""The scikit-learn face: learn the reference point, then turn SPD matrices into vectors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
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

from spdmetric.alignment import Misalignment, Target
from spdmetric.checks import check_count, check_spd
from spdmetric.geometry import MEANS
from spdmetric.manifolds import Ball
from spdmetric.matrices import (
    Array,
    congruence,
    expm,
    invsqrtm,
    logm,
    symmetrize,
    triangular_root,
    unvech,
    vech,
)
from spdmetric.solvers import SOLVERS, Callback, Record, Solution

INITS = (*MEANS, "identity")


class LogEuclideanMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """LogEuclidean metric whose reference point is learned from labels.

    Maximises the centred kernel-target alignment of the LogEuclidean kernel at G over
    the SPD matrices within a geodesic ball around G0 [Yger2015]_.  `transform` gives
    vectors whose Euclidean distances are the learned LogEuclidean distances, so that
    any scikit-learn estimator can follow.

    Parameters
    ----------
    radius : float, default=10.0
        Largest affine-invariant distance between the reference point and its start,
        the capacity of the model.  0 learns nothing: the reference point is the start.
    init : {"riemann", "logeuclid", "euclid", "identity"} or array of shape (d, d), \
            default="riemann"
        The start G0 and centre of the ball: a mean of the training matrices, the
        identity, or an SPD matrix.
    class_weight : {None, "balanced"}, default=None
        None is the paper's target, in which large classes count more; "balanced"
        weighs the matrices of class k by ``n / (n_classes * n_k)``.
    solver : {"trust-region", "newton", "gradient"}, default="trust-region"
        "trust-region": Riemannian trust region with truncated conjugate gradients, its
        curvature learned from the steps; "newton": the same with exact second
        derivatives; "gradient": steepest ascent along geodesics.  All return a KKT point
        of the constrained problem.  Alignment has several local maxima in the ball, and
        solvers may end at different ones, of nearly the same value.
    tol : float, default=1e-6
        Bound on the KKT residual: the affine-invariant length of the gradient of the
        Lagrangian.  Alignment lies between 0 and 1, so it has no unit.
    max_iter : int, default=1000
        Bound on the number of iterations; a warning tells when it did not suffice.
    chunk_size : int or None, default=None
        How many matrices to handle at a time; None handles all at once.
    callback : callable or None, default=None
        Called after each iteration with a `~spdmetric.solvers.Record`; returning True
        stops the run.
    verbose : bool, default=False
        Print a line for each iteration.

    Attributes
    ----------
    reference_ : ndarray of shape (d, d)
        The reference point G.
    components_ : ndarray of shape (d, d)
        ``G^{-1/2}``, symmetric.
    alignment_ : float
        Centred kernel-target alignment reached, between 0 and 1.
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
        init: str | Array = "riemann",
        class_weight: str | None = None,
        solver: str = "trust-region",
        tol: float = 1e-6,
        max_iter: int = 1000,
        chunk_size: int | None = None,
        callback: Callback | None = None,
        verbose: bool = False,
    ):
        self.radius = radius
        self.init = init
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.chunk_size = chunk_size
        self.callback = callback
        self.verbose = verbose

    # -- learning -------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogEuclideanMetric:
        """Learn the reference point.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
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
        X = self._check_matrices(X, reset=True)
        codes = self._check_labels(X, y)
        X, codes, weight = _weigh(X, codes, sample_weight, self.classes_, self.class_weight)
        G0 = self._start(X, weight)
        # Whitened once, the data keep one set of rounding errors, however ill-conditioned they
        # are, and the objective stays smooth; the ball is then centred at the identity.
        W0 = invsqrtm(G0)
        objective = Misalignment(congruence(W0, X), Target.one_hot(codes, weight), chunk_size=self.chunk_size)
        ball = Ball(np.eye(len(G0)), float(self.radius))
        start = ball.point(np.zeros_like(G0))
        _check_spread(objective.at(start).spread, X.shape[1])
        self._keep(self._solve(objective, ball, start), G0, W0)
        return self

    def _solve(self, objective: Misalignment, ball: Ball, start: Any) -> Solution:
        callback = _printing(self.callback) if self.verbose else self.callback
        if ball.radius == 0:
            # A ball of one point: nothing to search, and every gradient is normal to it.
            return SOLVERS[self.solver](objective, ball, start, tol=np.inf, max_iter=0, callback=callback)
        solution = SOLVERS[self.solver](
            objective, ball, start, tol=self.tol, max_iter=self.max_iter, callback=callback
        )
        if not solution.converged and solution.status.name != "CALLBACK":
            warnings.warn(
                f"{type(self).__name__}: {solution.status.value} (KKT residual {solution.residual:.2g}, "
                f"tol={self.tol:.2g}, {solution.n_iter} iterations)",
                ConvergenceWarning,
                stacklevel=3,
            )
        return solution

    def _keep(self, solution: Solution, G0: np.ndarray, W0: np.ndarray) -> None:
        W = solution.point.factor @ W0
        # W = U diag(sigma) V' is (U V') times the symmetric G^{-1/2} = V diag(sigma) V'.
        U, sigma, Vt = np.linalg.svd(W)
        self.components_ = symmetrize((Vt.T * sigma) @ Vt)
        self.reference_ = symmetrize((Vt.T / sigma**2) @ Vt) if solution.point.S.any() else G0
        self._embedding = W0, solution.point.factor, U @ Vt
        self.alignment_ = 1.0 - solution.value
        self.radius_ = float(np.linalg.norm(solution.point.S))
        self.n_iter_ = solution.n_iter
        self.solution_ = solution
        self._n_features_out = W.shape[0] * (W.shape[0] + 1) // 2

    def _start(self, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
        d = X.shape[1]
        if not isinstance(self.init, str):
            G0 = check_spd(np.asarray(self.init)[None], name="init")[0]
            if G0.shape != (d, d):
                raise ValueError(f"init has shape {G0.shape}, but the matrices of X are {d} x {d}.")
            return G0
        if self.init == "identity":
            return np.eye(d)
        return MEANS[self.init](X, weight, chunk_size=self.chunk_size)

    # -- using what was learned -----------------------------------------------

    def transform(self, X: Any) -> Any:
        """Turn SPD matrices into vectors whose Euclidean distances are the learned ones.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.

        Returns
        -------
        vectors : ndarray of shape (n_matrices, d(d+1)/2)
            float32 for float32 input.
        """
        check_is_fitted(self)
        single = getattr(X, "dtype", None) == np.float32
        vectors = self._embed(self._check_matrices(X))
        return vectors.astype(np.float32) if single else vectors

    def inverse_transform(self, vectors: Any) -> np.ndarray:
        """SPD matrices of vectors: the inverse of `transform`.

        Parameters
        ----------
        vectors : array-like of shape (n_matrices, d(d+1)/2)
            Vectors as `transform` gives them.

        Returns
        -------
        X : ndarray of shape (n_matrices, d, d)
        """
        check_is_fitted(self)
        vectors = np.asarray(vectors, dtype=np.float64)
        if vectors.ndim != 2 or triangular_root(vectors.shape[1]) != self.n_features_in_:
            raise ValueError(
                f"Expected vectors of shape (n_matrices, {self._n_features_out}), got {vectors.shape}."
            )
        W0, W, Q = self._embedding
        whitened = congruence(np.linalg.inv(W), expm(congruence(Q, unvech(vectors))))
        return congruence(np.linalg.inv(W0), whitened)

    def pair_distance(self, pairs: Any) -> np.ndarray:
        """Learned distance between the two matrices of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, d, d)
            Pairs of SPD matrices.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
        """
        check_is_fitted(self)
        pairs = np.asarray(pairs)
        if pairs.ndim != 4 or pairs.shape[1] != 2:
            raise ValueError(f"Expected pairs of shape (n_pairs, 2, d, d), got {pairs.shape}.")
        sides = [self._check_matrices(pairs[:, side], name=f"pairs[:, {side}]") for side in (0, 1)]
        vectors = [self._embed(X) for X in sides]
        return np.linalg.norm(vectors[0] - vectors[1], axis=1)

    def pair_score(self, pairs: Any) -> np.ndarray:
        """Similarity of the two matrices of each pair: the learned distance, negated.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, d, d)
            Pairs of SPD matrices.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
        """
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the learned distance as a function of two matrices.

        Returns
        -------
        distance : callable
            Takes two arrays of shape (d, d); independent of later changes of the estimator.
        """
        check_is_fitted(self)
        frozen = copy(self)

        def distance(A: Any, B: Any) -> float:
            return float(frozen.pair_distance(np.stack([A, B])[None])[0])

        return distance

    def _embed(self, X: np.ndarray) -> np.ndarray:
        """Tangent vectors for ``components_``, by factors that keep their digits far out.

        X is whitened by the start, moved by the graded factor W of the solver, and its
        logarithm rotated to the symmetric factor: ``log(QAQ') = Q log(A) Q'``.
        """
        W0, W, Q = self._embedding
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = logm(congruence(W, congruence(W0, X)))
        if not np.isfinite(logs).all():
            raise ValueError(
                f"At a distance of {self.radius_:.3g} from its start the reference point is too close to "
                "singular to compare these matrices in float64: learn with a smaller radius."
            )
        return vech(congruence(Q.T, logs))

    # -- checking ---------------------------------------------------------------

    def _check_matrices(self, X: Any, *, reset: bool = False, name: str = "X") -> np.ndarray:
        X = check_spd(X, name=name)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _check_labels(self, X: np.ndarray, y: Any) -> np.ndarray:
        """Set ``classes_`` and return the class of each matrix as a code 0, 1, ..."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise ValueError(
                f"y has 1 class, {self.classes_[0]!r}: expected at least two, there is nothing to tell apart."
            )
        return codes

    def _check_parameters(self) -> None:
        radius = self.radius
        if not isinstance(radius, Real) or not isfinite(radius) or radius < 0:
            raise ValueError(
                f"radius={radius!r}: expected a finite number >= 0, the largest affine-invariant distance "
                "from the start; 0 learns nothing. Without a bound the search runs away to degenerate G."
            )
        _check_choice("init", self.init, INITS, other="an SPD matrix of shape (d, d)")
        _check_choice("solver", self.solver, tuple(SOLVERS))
        _check_choice("class_weight", self.class_weight, (None, "balanced"))
        if not isinstance(self.tol, Real) or not self.tol > 0:
            raise ValueError(f"tol={self.tol!r}: expected a positive number.")
        check_count("max_iter", self.max_iter)
        if self.chunk_size is not None:
            check_count("chunk_size", self.chunk_size)
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


def _weigh(
    X: np.ndarray, codes: np.ndarray, sample_weight: Any, classes: np.ndarray, class_weight: str | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the matrices that count, with their classes and weights."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    totals = np.bincount(codes, weights=weight, minlength=classes.size)
    if not weight.any():
        raise ValueError("sample_weight is zero for every matrix: nothing is left to learn from.")
    if not totals.all():
        raise ValueError(
            f"sample_weight is zero for all matrices of class {classes[np.argmin(totals)]!r}: drop the class "
            "or give it weight."
        )
    if class_weight == "balanced":
        weight = weight * (weight.sum() / (classes.size * totals))[codes]
    counts = weight > 0
    return (X, codes, weight) if counts.all() else (X[counts], codes[counts], weight[counts])


def _check_spread(spread: float, d: int) -> None:
    if not isfinite(spread):
        raise ValueError(
            "A matrix of X cannot be compared with the start in float64: together they are too close to "
            "singular. Estimate the matrices with shrinkage, or choose another init."
        )
    if spread <= 100 * d * np.finfo(float).eps:
        raise ValueError(
            "All matrices of X are the same: their alignment with the labels is undefined. Expected at least "
            "two different matrices."
        )


def _check_choice(name: str, value: Any, valid: tuple[Any, ...], other: str | None = None) -> None:
    if other is not None and not isinstance(value, str):
        return
    if value not in valid:
        raise ValueError(
            f"{name}={value!r}: expected one of {', '.join(map(repr, valid))}"
            + (f", or {other}." if other else ".")
        )


def _printing(callback: Callback | None) -> Callback:
    """Return a callback that prints each record before it calls the given one."""

    def report(record: Record) -> Any:
        print(
            f"iteration {record.iteration:4d}  alignment {1 - record.value:.6f}  "
            f"KKT residual {record.residual:.1e}  distance {record.distance:6.3f}  "
            f"evaluations {record.evaluations:5d}  {record.seconds:.2f} s"
        )
        return None if callback is None else callback(record)

    return report
