"""From matrices to probabilities: the chosen metric and its head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators._fitted import DOCUMENTATION
from spdmetric.estimators._heads import head_of, log_posterior
from spdmetric.estimators.cv import LogEuclideanMetricCV
from spdmetric.linalg.symmetric import Array
from spdmetric.validation import ClassWeight, encode, to_numpy, weights_of


class LogEuclideanClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of SPD matrices: a metric and a head, both chosen by cross-validation.

    `LogEuclideanMetricCV` chooses the metric and whether the nearest class mean or nearest neighbors
    follow it.  The probabilities are calibrated on the matrices that the folds leave out.

    Parameters
    ----------
    head : {"auto", "neighbors", "centroid"}, default="auto"
        What labels the vectors: nearest neighbors, the nearest class mean, or the class mean unless
        neighbors are clearly better.
    n_neighbors : int or None, default=None
        Number of neighbors; None chooses it.
    radii : array-like of float or None, default=None
        See `LogEuclideanMetricCV`.
    ranks : array-like of (int or None) or None, default=None
        See `LogEuclideanMetricCV`.
    shapes : array-like of {None, "discriminant"} or None, default=None
        See `LogEuclideanMetricCV`.
    cv : int, splitter, iterable or None, default=None
        See `LogEuclideanMetricCV`.
    scoring : str, callable or None, default=None
        See `LogEuclideanMetricCV`.
    init : str or array of shape (d, d), default="riemann"
        See `LogEuclideanMetric`.
    class_weight : {None, "balanced"} or dict {label: weight}, default=None
        See `LogEuclideanMetric`; the head counts matrices by their weights too, so that "balanced"
        gives classes the same probability before anything is seen.
    n_jobs : int or None, default=None
        Processes that share the folds and ranks; None is 1, -1 one for each core.
    random_state : int, default=0
        Of the order of the matrices in the default folds.
    verbose : bool, default=False
        Print the iterations of the final fit.
    unseen_domain : {"error", "recenter"}, default="error"
        See `LogEuclideanMetric`.

    Attributes
    ----------
    metric_ : LogEuclideanMetricCV
        The metric, with all that is known of the choice.
    head_ : {"neighbors", "centroid"}
        What labels the vectors of ``metric_``; its number of neighbors is ``metric_.n_neighbors_``.
    classes_ : ndarray of shape (n_classes,)
        The labels seen in `fit`.
    n_features_in_ : int
        The size d of the matrices.

    Examples
    --------
    >>> from spdmetric import LogEuclideanClassifier
    >>> from spdmetric.datasets import make_toy
    >>> X, y, X_test, y_test = make_toy(n_train=50, n_test=100, d=6, random_state=0)
    >>> model = LogEuclideanClassifier().fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    >>> model.predict_proba(X_test).shape
    (100, 2)
    """

    _doc_link_module = "spdmetric"
    _doc_link_template = DOCUMENTATION + "api/generated/spdmetric.{estimator_name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"estimator_name": type(self).__name__}

    def __init__(
        self,
        *,
        head: str = "auto",
        n_neighbors: int | None = None,
        radii: Sequence[float] | None = None,
        ranks: Sequence[int | None] | None = None,
        shapes: Sequence[str | None] | None = None,
        cv: Any = None,
        scoring: Any = None,
        init: str | Array = "riemann",
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: bool = False,
        unseen_domain: str = "error",
    ):
        self.head = head
        self.n_neighbors = n_neighbors
        self.radii = radii
        self.ranks = ranks
        self.shapes = shapes
        self.cv = cv
        self.scoring = scoring
        self.init = init
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.unseen_domain = unseen_domain

    def fit(
        self,
        X: Array,
        y: Array,
        sample_weight: Array | None = None,
        groups: Array | None = None,
        sample_domain: Array | None = None,
    ) -> LogEuclideanClassifier:
        """Choose and learn the metric and the head.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights; a weight of zero leaves the matrix out.
        groups : array-like of shape (n_matrices,), optional
            Groups that folds keep together, sessions or subjects for instance; None: the domains, if
            there are several.
        sample_domain : array-like of shape (n_matrices,), optional
            Session or subject of each matrix: see `LogEuclideanMetric`.

        Returns
        -------
        self : LogEuclideanClassifier
        """
        metric = LogEuclideanMetricCV(**self.get_params(deep=False))
        metric.fit(X, y, sample_weight, groups, sample_domain)
        classes, codes = encode(X, y)
        weight = weights_of(sample_weight, codes, classes, self.class_weight)
        counts = np.flatnonzero(weight > 0)
        matrices = np.asarray(to_numpy(X), dtype=np.float64)
        vectors = np.asarray(metric.transform(matrices, sample_domain))[counts]
        number = metric.n_neighbors_
        self._head = head_of(vectors, codes[counts], weight[counts], len(classes), number)
        self.metric_, self.classes_, self.n_features_in_ = metric, classes, metric.n_features_in_
        self.head_ = "centroid" if number is None else "neighbors"
        return self

    def predict_log_proba(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        check_is_fitted(self)
        vectors = to_numpy(self.metric_.transform(X, sample_domain))
        evidence = self._head.evidence(np.asarray(vectors, dtype=np.float64))
        return log_posterior(evidence, self._head.offset, self.metric_.temperature_)

    def predict_proba(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Probability of every class.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        sample_domain : array-like of shape (n_matrices,), optional
            See `LogEuclideanMetric.transform`.

        Returns
        -------
        probabilities : ndarray of shape (n_matrices, n_classes)
            In the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X, sample_domain))

    def predict(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Most probable class of every matrix.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        sample_domain : array-like of shape (n_matrices,), optional
            See `LogEuclideanMetric.transform`.

        Returns
        -------
        labels : ndarray of shape (n_matrices,)
        """
        return self.classes_[np.argmax(self.predict_log_proba(X, sample_domain), axis=1)]

    def decision_function(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Log probabilities, of two classes the log odds of the second, (n_matrices,)."""
        known = self.predict_log_proba(X, sample_domain)
        return known[:, 1] - known[:, 0] if len(self.classes_) == 2 else known

    def score(
        self, X: Array, y: Array, sample_weight: Array | None = None, sample_domain: Array | None = None
    ) -> float:
        """Share of right labels.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Their labels.
        sample_weight : array-like of shape (n_matrices,), optional
            Their weights.
        sample_domain : array-like of shape (n_matrices,), optional
            See `LogEuclideanMetric.transform`.

        Returns
        -------
        score : float
        """
        predicted = self.predict(X, sample_domain)
        return float(accuracy_score(to_numpy(y), predicted, sample_weight=to_numpy(sample_weight)))

    def adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the classifier to a new, unlabeled session: see `LogEuclideanMetric.adapt`."""
        return self._adapted(self.metric_.adapt(X, sample_weight))

    def partial_adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the classifier to a session that arrives batch by batch, as the metric is carried."""
        return self._adapted(self.metric_.partial_adapt(X, sample_weight))

    def _adapted(self, metric: LogEuclideanMetricCV) -> Self:
        adapted = copy(self)
        adapted.metric_ = metric
        return adapted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags
