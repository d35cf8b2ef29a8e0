"""From matrices to probabilities: the chosen metric and its head."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from spdmetric import validation
from spdmetric.estimators._adaptation import (
    WORTH,
    LabeledVectors,
    estimate_shares,
    find_shifted_mean,
    relearn_weighting,
)
from spdmetric.estimators._selection import Whitened, embed
from spdmetric.estimators._streaming import RandomState
from spdmetric.estimators.cv import LogEuclideanMetricCV, MetricPredictor, Training
from spdmetric.estimators.embedding import Embedding
from spdmetric.estimators.heads import ClassMeans, order_classes
from spdmetric.estimators.metric import LogEuclideanMetric
from spdmetric.linalg.batch import count_features, map_views, view_columns
from spdmetric.linalg.symmetric import Array, invsqrtm, powm
from spdmetric.linalg.threads import one_thread
from spdmetric.manifolds import ProductPoint
from spdmetric.objectives.start import ViewStarts
from spdmetric.validation import ClassWeight, UninformativeDataError

# Of the matrices of a new session; past these, the others are lost beside them in rounding.
_WEIGHT = validation.optional(
    (
        lambda value: validation.is_finite_number(value) and 1e-12 <= float(value) <= 1e12,
        "a number > 0, between 1e-12 and 1e+12, or None to choose it",
    )
)


class LogEuclideanClassifier(ClassifierMixin, MetricPredictor):
    """Classifier of SPD matrices: metric and classifier are both chosen by cross-validation.

    Metrics of several radii, ranks and weightings are learned on the same folds, each with the nearest class
    mean and with nearest neighbors.  The tangent vectors at the mean with a discriminant weighting are chosen
    unless another metric is clearly better.  Probabilities are calibrated on what the folds leave out.

    Parameters
    ----------
    metric : LogEuclideanMetric, LogEuclideanMetricCV or None, default=None
        What to try: None the candidates of `LogEuclideanMetricCV`, a `LogEuclideanMetric` only that, and a
        `LogEuclideanMetricCV` its radii, ranks, weightings and rule.  Parameters that this estimator has too
        are set here, and must have their defaults there.
    head : {"auto", "neighbors", "centroid"}, default="auto"
        How vectors are classified: nearest neighbors, nearest class mean, or the class mean unless
        neighbors are clearly better.
    n_neighbors : int or None, default=None
        Number of neighbors, at most as many as there are matrices to learn from in every fold; None
        chooses among 1, 5, 11, 21, as far as the smallest class has so many matrices.
    cv : int, splitter, iterable or None, default=None
        Folds of the choice, as in scikit-learn.  None: five stratified folds, of whole groups where there are
        ``groups`` or domains; more of these at `LogEuclideanMetricCV`.
    scoring : str, callable or None, default=None
        Scorer of the choice, a name or a function of scikit-learn.  None is the mean logarithm of the
        probability of the true label, calibrated and at least 0.001.
    class_weight : {None, "balanced"} or dict {label: weight}, default=None
        "balanced" weighs the matrices of class k by ``n / (n_classes * n_k)``; a dict gives the weights, 1
        for labels that it leaves out.  Weights are also the prior probabilities of the classes, which None
        takes as equal where their numbers differ by no more than chance.
    n_jobs : int or None, default=None
        Processes that share the folds; None is 1, -1 one for each core.
    random_state : int, RandomState or None, default=0
        Seed of the order of the matrices in the default folds.
    verbose : bool, default=False
        Show a progress bar of the folds, and print the iterations of the final fit.

    Attributes
    ----------
    metric_ : LogEuclideanMetricCV
        The metric that was chosen, with the results of all candidates.
    head_ : {"neighbors", "centroid"}
        How vectors of ``metric_`` are classified; its number of neighbors is ``metric_.n_neighbors_``.
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

    def __init__(
        self,
        metric: LogEuclideanMetric | LogEuclideanMetricCV | None = None,
        *,
        head: str = "auto",
        n_neighbors: int | None = None,
        cv: Any = None,
        scoring: Any = None,
        class_weight: ClassWeight = None,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        verbose: bool = False,
    ):
        self.metric = metric
        self.head = head
        self.n_neighbors = n_neighbors
        self.cv = cv
        self.scoring = scoring
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _task = "classification"
    _usual_head = "centroid"
    _training = cast("LabeledVectors | None", None)  # what adapt needs of training
    # After adapt with labels what is learned from the new matrices alone, and how much it counts.
    _own = cast("LogEuclideanClassifier | None", None)
    _own_share = 0.0

    def _keep_training(self, training: Training, y: Array, sample_weight: Array | None) -> None:
        """Keep what `adapt` needs: vectors as `_widen` gives them, of twice the rank if matrices have it."""
        (whitened, start, vectors), metric = training, self.metric_
        self._own, self.classes_, target = None, np.asarray(metric.classes_), whitened.target
        self._order = order_classes(target.values, len(self.classes_))
        stacks = metric.embedding_.split(whitened.X)
        ranks = wide = list(map(len, metric.embedding_.factors))
        if metric.embedding_.low_rank:
            full = whitened.logs is not None  # all matrices are definite
            most = [X.shape[1] if full else validation.smallest_rank(X) for X in stacks]
            wide = [min(2 * m, rank) for m, rank in zip(ranks, most, strict=True)]
        if wide != ranks:
            point = metric.solution_.point.widened(*wide)
            vectors = embed(whitened.X, map_views(np.matmul, point.factor, start.factor))
        centers = _find_centers(metric, whitened, stacks)
        both = tuple(zip(ranks, wide, strict=True))
        self._training = LabeledVectors(vectors, target.values, target.weight, both, centers)

    @one_thread
    def predict_log_proba(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Logarithms of `predict_proba`."""
        vectors, head = self._transform(X, sample_domain), self._head
        known = log_softmax(head.predict(vectors) / self.metric_.temperature_ + head.offset, axis=1)
        if self._own is None or sample_domain is not None:  # a domain of training
            return known
        both = (1 - self._own_share) * known + self._own_share * self._own.predict_log_proba(X)
        return np.asarray(log_softmax(both, axis=1))

    def predict_proba(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Probability of every class.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        sample_domain : array-like of shape (n_matrices,), optional
            Domain of each matrix, if `fit` had domains; one that was not there is recentered by the mean of
            its matrices in X.  None: the session of the last `adapt`.

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
        X, sample_domain
            Matrices and their domains, as in `predict_proba`.

        Returns
        -------
        labels : ndarray of shape (n_matrices,)
        """
        known = self.predict_log_proba(X, sample_domain)[:, self._order]
        return self.classes_[self._order[np.argmax(known, axis=1)]]

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
        X, y, sample_weight, sample_domain
            Matrices, their labels and weights, and their domains as in `predict_proba`.

        Returns
        -------
        score : float
        """
        predicted = self.predict(X, sample_domain)
        y = validation.check_labels(predicted, y, method="score")
        weight = validation.check_weights(sample_weight, predicted, scaled=True)
        return float(accuracy_score(y, predicted, sample_weight=weight))

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

        Without labels the new matrices are recentered by their Riemannian mean, as those of training were by
        theirs.  With labels they also join those of training, at a weight of their own, and weighting and
        head are learned anew; the reference point stays, and a factor of low rank gets as many directions
        again, those on which the classes of training differ next most.  Where every class has two labeled
        matrices, a model is also learned from these alone.  The log probabilities are a mean of both models,
        in which n labeled matrices count n, and the others 30.

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
            Without labels, how frequent the classes of the session are: as in training, or as estimated from
            the predictions (label shift).  The latter is for classes that are told apart well and shares far
            from those of training; a class that is absent cannot be told from one whose matrices are all
            taken for another.

        Returns
        -------
        adapted : LogEuclideanClassifier
            A copy, for the new session; where that goes on without labels, ``adapt`` it again to the new
            matrices alone.  ``own_weight_`` is the weight of the labeled matrices,
            ``prior_`` the estimated shares of the classes.
        """
        check_is_fitted(self)
        validation.check_size(self, X)
        validation.check_value("prior", prior, validation.one_of("train", "estimate"))
        X = validation.leave_out(X, sample_weight)
        if y is None:
            if weight is not None:
                raise ValueError(f"weight={weight!r} is that of labeled matrices: pass y, or leave it out.")
            adapted = self._carry(lambda metric: metric.adapt(X, sample_weight))
            return adapted if prior == "train" else adapted._shift(X, sample_weight)
        if prior == "estimate":
            raise ValueError("prior='estimate' is for matrices without labels: leave out y, or prior.")
        validation.check_value("weight", weight, _WEIGHT)
        (codes, own), training = _check_own(X, y, sample_weight, self.classes_), self._training
        if training is None:
            raise ValueError(
                "adapt with labels needs the vectors of the training matrices, which this model does not "
                "hold: fit again, or adapt without y."
            )
        adapted, counts = copy(self), np.flatnonzero(own > 0)
        adapted.metric_ = metric = self.metric_.adapt(X, sample_weight)
        metric.embedding_ = _widen(metric, [wide for _, wide in training.ranks])
        vectors = adapted._transform(X, None)[counts]
        mine = LabeledVectors(vectors, codes[counts], own[counts], training.ranks)
        pooled, Q, weight = relearn_weighting(training, mine, weight, len(self.classes_))
        metric.embedding_ = replace(metric.embedding_, weighting=Q)
        adapted._store(metric, pooled.vectors, pooled.target(len(self.classes_)))
        adapted._own = self._learn_own_model(X, mine, counts)
        adapted._own_share = len(counts) / (len(counts) + WORTH[0])
        adapted.own_weight_ = weight
        return adapted

    def _learn_own_model(
        self, X: Array, mine: LabeledVectors, counts: np.ndarray
    ) -> LogEuclideanClassifier | None:
        """Learn a weighting, no more, from labeled matrices of a new domain, if each class has two."""
        if np.bincount(mine.codes, minlength=len(self.classes_)).min() < 2:
            return None
        own = validation.check_psd(validation.to_numpy(X), 1)[counts]
        own = own if own.ndim == 3 else own[:, : len(self.metric_.embedding_.starts)]
        rank = validation.smallest_rank(own)
        ranks = [None if rank == own.shape[-1] else rank]
        metric = LogEuclideanMetricCV(radii=[0.0], ranks=ranks, weightings=["discriminant"])
        model = LogEuclideanClassifier(metric, head="centroid")
        try:
            model.fit(own, self.classes_[mine.codes], mine.weight)
        except UninformativeDataError:
            return None
        model.metric_.n_views_ = self.metric_.n_views_  # of which it takes the first, as the other
        model._training = None
        return model

    def _shift(self, X: Array, sample_weight: Array | None) -> Self:
        """A copy that recenters a session as its estimated shares of the classes ask for."""
        training, head, metric = self._training, self._head, self.metric_
        if training is None or training.centers is None or not isinstance(head, ClassMeans):
            raise ValueError(
                "prior='estimate' needs head_='centroid' and the class means of positive definite training "
                "matrices: fit again with head='centroid', or use prior='train'."
            )
        X = validation.check_psd(validation.to_numpy(X), 1)
        weight, variance = validation.check_weights(sample_weight, X), head.variance * metric.temperature_
        vectors = self._transform(X, None)
        usual = training.target(len(self.classes_)).mean
        share = estimate_shares(vectors, weight, head, variance, usual)
        embedding, departure = metric.embedding_, share @ training.centers
        columns = view_columns(start.center for start in embedding.starts)
        parts = zip(embedding.split(X), embedding.means, columns, strict=True)
        means = [find_shifted_mean(stack, weight, mean, departure[at]) for stack, mean, at in parts]

        adapted = self._carry(copy)
        for model in (adapted, adapted._own):
            if model is not None:
                model.metric_.embedding_ = model.metric_.embedding_.moved(means)
        adapted.prior_ = share
        return adapted

    def _carry(self, carry: Callable[[LogEuclideanMetricCV], LogEuclideanMetricCV]) -> Self:
        adapted = super()._carry(carry)
        adapted._own = None if self._own is None else self._own._carry(carry)
        return adapted


def _check_own(X: Any, y: Any, sample_weight: Any, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes, as codes, and the weights of labeled matrices of a new domain."""
    y = validation.check_labels(X, y, method="adapt")
    known = f"a class that was not in fit, whose classes are {classes.tolist()}"
    codes = validation.codes_among(
        classes, y, f"{known}: nothing is known of it from the others. Fit again with its matrices."
    )
    weight = validation.check_weights(sample_weight, codes, scaled=True)
    found = classes[np.unique(codes[weight > 0])].tolist()
    if len(found) < 2:
        raise ValueError(
            f"y has one class, {found[0]!r}: expected at least two. The mean of matrices of one class "
            "is that of the class, and relative to it nothing is left of what they have in common."
        )
    return codes, weight


def _widen(metric: LogEuclideanMetricCV, ranks: Sequence[int]) -> Embedding:
    """The embedding without a weighting, and at low rank with more directions."""
    embedding = replace(metric.embedding_, weighting=None)
    if list(ranks) == list(map(len, embedding.factors)):
        return embedding
    point = metric.solution_.point.widened(*ranks)
    views = point.views if isinstance(point, ProductPoint) else [point]
    factors, frames = (tuple(getattr(one, name) for one in views) for name in ("factor", "frame"))
    return replace(embedding, factors=factors, frames=frames)


def _find_centers(
    metric: LogEuclideanMetricCV, whitened: Whitened, stacks: list[np.ndarray]
) -> np.ndarray | None:
    """Mean tangent vectors of the classes, (c, p), about the mean of all; None for singular matrices.

    They are taken at the mean of all matrices, or of the domain of each.
    """
    embedding, logs, target = metric.embedding_, whitened.logs, whitened.target
    if logs is None and not all(map(validation.is_definite, stacks)):
        return None
    if logs is None or metric.domains_ is not None:
        if metric.domains_ is None:
            roots = list(map(invsqrtm, embedding.means))
        else:  # X is whitened by the center, if there is one, and comes back
            roots = [np.eye(len(s.basis)) if logs is None else powm(s.center, 0.5) for s in embedding.starts]
        logs = np.hstack([embed(X, W) for X, W in zip(stacks, roots, strict=True)])
    elif isinstance(whitened.center, ViewStarts):  # as they were before views were given one spread
        lengths = [count_features(start.center) for start in whitened.center.views]
        logs = logs / np.repeat(whitened.center.scales, lengths)
    means = (target.weight[:, None] * target.regressors).T @ logs
    means /= (target.mean * target.weight.sum())[:, None]
    return means - target.mean @ means
