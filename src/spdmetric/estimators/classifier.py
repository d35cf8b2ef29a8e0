"""From matrices to probabilities: the chosen metric and its head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators._adaptation import (
    WORTH,
    ClassCenters,
    Kept,
    estimated_shares,
    relearned,
    shifted_mean,
)
from spdmetric.estimators._fitted import DOCUMENTATION
from spdmetric.estimators._progress import CallbackSupportMixin
from spdmetric.estimators.cv import LogEuclideanMetricCV
from spdmetric.estimators.heads import ClassMeans, Head, head_of, log_posterior
from spdmetric.geometry import tangent_vectors
from spdmetric.linalg.symmetric import Array, triangular_root
from spdmetric.linalg.threads import one_thread
from spdmetric.validation import (
    ClassWeight,
    TellsNothingError,
    check_choice,
    check_domains,
    check_labels,
    check_own,
    check_own_weight,
    check_weights,
    encode,
    is_definite,
    smallest_rank,
    to_numpy,
    weight_unit,
    weights_of,
)


class Opinion(NamedTuple):
    """A metric, what labels its vectors, and how much that counts."""

    metric: LogEuclideanMetricCV
    head: Head
    share: float = 1.0

    def log_proba(self, X: Array, sample_domain: Array | None) -> np.ndarray:
        """Log probabilities of the classes, (n, c)."""
        vectors = np.asarray(to_numpy(self.metric.transform(X, sample_domain)), dtype=np.float64)
        return log_posterior(self.head.evidence(vectors), self.head.offset, self.metric.temperature_)


class LogEuclideanClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classifier of SPD matrices: a metric and a head, both chosen by cross-validation.

    `LogEuclideanMetricCV` chooses the metric and whether the nearest class mean or nearest neighbors
    follow it.  The probabilities are calibrated on the matrices that the folds leave out.

    Parameters
    ----------
    head : {"auto", "neighbors", "centroid"}, default="auto"
        What labels the vectors: nearest neighbors, the nearest class mean, or the class mean unless
        neighbors are clearly better.
    n_neighbors : int or None, default=None
        Number of neighbors, at most as many as there are matrices to learn from in every fold; None
        chooses it.
    radii : array-like of float or None, default=None
        See `LogEuclideanMetricCV`.
    ranks : array-like of (int or None) or None, default=None
        See `LogEuclideanMetricCV`.
    weightings : array-like of {None, "discriminant"} or None, default=None
        See `LogEuclideanMetricCV`.
    cv : int, splitter, iterable or None, default=None
        See `LogEuclideanMetricCV`.
    scoring : str, callable or None, default=None
        See `LogEuclideanMetricCV`.
    init : str or array of shape (d, d), default="riemann"
        See `LogEuclideanMetric`.
    class_weight : {None, "balanced"} or dict {label: weight}, default=None
        See `LogEuclideanMetric`; the head counts matrices by their weights too, so that "balanced"
        gives classes the same probability before anything is seen.  So does None where their numbers
        differ by no more than chance.
    n_jobs : int or None, default=None
        Processes that share the folds and ranks; None is 1, -1 one for each core.
    random_state : int, default=0
        Of the order of the matrices in the default folds.
    verbose : bool, default=False
        Show a bar of the folds, and print the iterations of the final fit.
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

    Notes
    -----
    For `adapt` with labels it keeps the tangent vectors of the training matrices, not the matrices: at rank
    m, 2m(2m+1)/2 numbers for each, at full rank d(d+1)/2.

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

    # What adapt needs of training; neither is in a model file.
    _training: Kept | None = None
    _centers: ClassCenters | None = None
    # After adapt with labels, what the new matrices say by themselves.
    _own: Opinion | None = None

    def __init__(
        self,
        *,
        head: str = "auto",
        n_neighbors: int | None = None,
        radii: Sequence[float] | None = None,
        ranks: Sequence[int | None] | None = None,
        weightings: Sequence[str | None] | None = None,
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
        self.weightings = weightings
        self.cv = cv
        self.scoring = scoring
        self.init = init
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.unseen_domain = unseen_domain

    @one_thread
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
        metric = LogEuclideanMetricCV(task="classification", **self.get_params(deep=False))
        if watching := getattr(self, "_skl_callbacks", None):  # those of scikit-learn follow the choice
            metric.set_callbacks(*watching)
        metric.fit(X, y, sample_weight, groups, sample_domain)
        classes, codes = encode(X, y)
        weight = weights_of(sample_weight, codes, classes, self.class_weight)
        counts = np.flatnonzero(weight > 0)
        matrices = np.asarray(to_numpy(X), dtype=np.float64)
        vectors = np.asarray(metric.transform(matrices, sample_domain))[counts]
        number = metric.n_neighbors_
        head = head_of(vectors, codes[counts], weight[counts], len(classes), number)
        m = len(metric.embedding_.factor)
        wide = _widened(metric, min(2 * m, smallest_rank(matrices[counts])))
        vectors = np.asarray(wide.transform(matrices, sample_domain))[counts]
        self._keep(metric, head)
        self._training = Kept(vectors, codes[counts], weight[counts], m)
        self._centers = None
        if is_definite(matrices):  # else there is no mean to be moved
            logs = _logs(metric, matrices, sample_domain)[counts]
            self._centers = ClassCenters.of(logs, codes[counts], weight[counts])
        return self

    def _keep(self, metric: LogEuclideanMetricCV, head: Head, own: Opinion | None = None) -> Self:
        """Set the attributes that a fit leaves behind."""
        self.metric_, self._head, self._own = metric, head, own
        self.n_features_in_ = metric.n_features_in_
        self.classes_ = np.asarray(metric.classes_)
        self.head_ = "centroid" if metric.n_neighbors_ is None else "neighbors"
        return self

    @one_thread
    def predict_log_proba(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        check_is_fitted(self)
        known, own = Opinion(self.metric_, self._head).log_proba(X, sample_domain), self._own
        if own is None or sample_domain is not None:  # a domain of training
            return known
        both = (1 - own.share) * known + own.share * own.log_proba(X, None)
        return np.asarray(log_softmax(both, axis=1))

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
        known = self.predict_log_proba(X, sample_domain)
        return self.classes_[np.argmax(known, axis=1)]

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
        y, weight = check_labels(predicted, y, method="score"), check_weights(sample_weight, predicted)
        return float(accuracy_score(y, predicted, sample_weight=weight * weight_unit(float(weight.max()))))

    @one_thread
    def adapt(
        self,
        X: Array,
        y: Array | None = None,
        sample_weight: Array | None = None,
        *,
        weight: float | None = None,
        prior: str = "train",
    ) -> Self:
        """Carry the classifier to a new session or subject, with or without labels.

        Without labels the metric is carried, see `LogEuclideanMetric.adapt`.  With labels the new matrices,
        seen from their mean, join those of training, at a weight of their own, and weighting and head are learned
        anew; the reference point stays, and a factor of low rank gets as many directions again, those on
        which the classes of training differ next most.  Where every class has two labeled matrices or more,
        these are also asked by themselves, at their mean and with their own weighting.  The log probabilities
        are a mean of both answers, in which n labeled matrices count n, and the others 30.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Matrices of the new session.
        y : array-like of shape (n_matrices,), optional
            Their labels, of at least two of the classes.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.
        weight : float or None, default=None
            How many matrices of training each labeled one counts as.  None: all those of training count as
            30 new ones, unless 10, 90 or 270 predict the labels of new matrices, each left out in turn,
            clearly better.
        prior : {"train", "estimate"}, default="train"
            Without labels, how frequent the classes of the session are: as in training, so that its mean
            takes the place of theirs, or as estimated from what the classifier says of them.  The latter is
            for classes that are told apart well, and with shares far from those of training: what is learned
            from weak evidence about shares is noise, and a class that is absent cannot be told from one
            whose matrices are all taken for another.

        Returns
        -------
        adapted : LogEuclideanClassifier
            A copy, for the new session; where that goes on without labels, ``adapt`` it again to the new
            matrices alone.  ``own_weight_`` is the weight of the labeled matrices,
            ``prior_`` the estimated shares of the classes.
        """
        check_is_fitted(self)
        check_choice("prior", prior, ("train", "estimate"))
        if y is None:
            if weight is not None:
                raise ValueError(f"weight={weight!r} is that of labeled matrices: pass y, or leave it out.")
            adapted = self._carried(lambda metric: metric.adapt(X, sample_weight))
            return adapted if prior == "train" else adapted._shifted(X, sample_weight)
        if prior == "estimate":
            raise ValueError("prior='estimate' is for matrices without labels: leave out y, or prior.")
        check_own_weight(weight)
        (codes, own), training = check_own(X, y, sample_weight, self.classes_), self._training
        if training is None:
            raise ValueError(
                "adapt with labels needs the vectors of the training matrices, which a model file does not "
                "hold: fit again, or adapt without y."
            )
        rank = triangular_root(training.vectors.shape[1])
        metric = _widened(self.metric_.adapt(X, sample_weight), rank)
        vectors = np.asarray(metric.transform(np.asarray(to_numpy(X), dtype=np.float64)))
        counts = np.flatnonzero(own > 0)
        mine = Kept(vectors[counts], codes[counts], own[counts], training.rank)
        pooled, Q, weight = relearned(training, mine, weight, len(self.classes_))
        metric.embedding_ = replace(metric.embedding_, weighting=Q)
        learned = pooled.vectors @ Q, pooled.codes, pooled.weight, len(self.classes_)
        adapted = copy(self)
        adapted._keep(
            metric, head_of(*learned, self.metric_.n_neighbors_), self._own_opinion(X, mine, counts)
        )
        adapted.own_weight_ = weight
        return adapted

    def _own_opinion(self, X: Array, mine: Kept, counts: np.ndarray) -> Opinion | None:
        """What labeled matrices of a new domain say by themselves, if each class has two or more.

        Nothing is learned but the weighting: few matrices tell no more.
        """
        if np.bincount(mine.codes, minlength=len(self.classes_)).min() < 2:
            return None
        own = np.asarray(to_numpy(X), dtype=np.float64)[counts]
        ranks = [None if is_definite(own) else smallest_rank(own)]
        metric = LogEuclideanMetricCV(
            task="classification", head="centroid", radii=[0.0], ranks=ranks, weightings=["discriminant"]
        )
        try:
            metric.fit(own, self.classes_[mine.codes], mine.weight)
        except TellsNothingError:
            return None
        vectors = np.asarray(metric.transform(own))
        head = ClassMeans.of(vectors, mine.codes, mine.weight, len(self.classes_))
        return Opinion(metric, head, len(own) / (len(own) + WORTH[0]))

    def _shifted(self, X: Array, sample_weight: Array | None) -> Self:
        """A copy that sees a session as its estimated shares of the classes ask for."""
        centers, head, metric = self._centers, self._head, self.metric_
        if centers is None or not isinstance(head, ClassMeans):
            raise ValueError(
                "prior='estimate' needs head_='centroid' and the class means of positive definite training "
                "matrices, which a model file does not hold: fit again with head='centroid', or use "
                "prior='train'."
            )
        X = np.asarray(to_numpy(X), dtype=np.float64)
        weight, variance = check_weights(sample_weight, X), head.variance * metric.temperature_
        vectors = np.asarray(metric.transform(X))
        share = estimated_shares(vectors, weight, head, variance, centers.share)
        mean = shifted_mean(X, weight, metric.embedding_.mean, share @ centers.vectors)

        def moved(metric: LogEuclideanMetricCV) -> LogEuclideanMetricCV:
            there = copy(metric)
            there.embedding_ = metric.embedding_.moved(mean)
            return there

        adapted = self._carried(moved)
        adapted.prior_ = share
        return adapted

    def partial_adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the classifier to a session that arrives batch by batch, as the metric is carried."""
        check_is_fitted(self)
        return self._carried(lambda metric: metric.partial_adapt(X, sample_weight))

    def _carried(self, carry: Callable[[LogEuclideanMetricCV], LogEuclideanMetricCV]) -> Self:
        """A copy whose metrics see another session."""
        adapted, own = copy(self), self._own
        adapted.metric_ = carry(self.metric_)
        adapted._own = None if own is None else own._replace(metric=carry(own.metric))
        return adapted

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags


def _widened(metric: LogEuclideanMetricCV, rank: int) -> LogEuclideanMetricCV:
    """A copy whose vectors have no weighting, and at low rank more directions."""
    wide, embedding = copy(metric), replace(metric.embedding_, weighting=None)
    if embedding.low_rank and rank > len(embedding.factor):
        wide.solution_ = replace(metric.solution_, point=metric.solution_.point.widened(rank))
        embedding = replace(embedding, factor=wide.solution_.point.factor, frame=np.eye(rank))
    wide.embedding_ = embedding
    return wide


def _logs(metric: LogEuclideanMetricCV, X: np.ndarray, sample_domain: Array | None) -> np.ndarray:
    """Tangent vectors of training matrices at the mean of all, or of the domain of each."""
    if metric.domains_ is None or metric.domain_means_ is None:
        return tangent_vectors(X, metric.embedding_.mean)
    domain, logs = (
        check_domains(sample_domain, len(X)),
        np.empty((len(X), X.shape[1] * (X.shape[1] + 1) // 2)),
    )
    for name, mean in zip(metric.domains_, metric.domain_means_, strict=True):
        logs[domain == name] = tangent_vectors(X[domain == name], mean)
    return logs
