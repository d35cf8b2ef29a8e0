"""From signals of several subjects to labels of another, as MOABB's cross-subject evaluation asks for it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators._fitted import StackEstimator
from spdmetric.estimators.classifier import LogEuclideanClassifier
from spdmetric.linalg.symmetric import Array


class TransferClassifier(ClassifierMixin, StackEstimator):
    """Covariances, and a classifier that is carried to a new subject.

    Its `fit` requests what MOABB routes: the subject of each training trial, and, where the protocol has
    them, signals of the new subject with or without labels.  Without any the new subject is recentered by
    the mean of the others' means.

    Parameters
    ----------
    covariance : transformer or None, default=None
        From signals to SPD matrices; None is ``pyriemann.estimation.Covariances("oas")``.
    classifier : LogEuclideanClassifier or None, default=None
        What is learned on them; None is one with the defaults.

    Attributes
    ----------
    model_ : LogEuclideanClassifier
        The classifier, carried to the new subject.
    covariance_ : transformer
        The fitted first step.
    classes_ : ndarray of shape (n_classes,)
        The labels seen in `fit`.
    """

    __metadata_request__fit: ClassVar = dict.fromkeys(
        ("subjects", "X_target_unlabeled", "X_target_labeled", "y_target_labeled"), True
    )

    def __init__(self, covariance: Any = None, classifier: LogEuclideanClassifier | None = None):
        self.covariance = covariance
        self.classifier = classifier

    def fit(
        self,
        X: Array,
        y: Array,
        subjects: Array | None = None,
        X_target_unlabeled: Array | None = None,
        X_target_labeled: Array | None = None,
        y_target_labeled: Array | None = None,
    ) -> TransferClassifier:
        """Learn on some subjects, and adapt to another.

        Parameters
        ----------
        X, y : array-like of shape (n_trials, n_channels, n_times) and (n_trials,)
            Signals and their labels.
        subjects : array-like of shape (n_trials,), optional
            Subject of each trial, its domain.
        X_target_unlabeled, X_target_labeled : array-like of shape (n, n_channels, n_times), optional
            Signals of the new subject.
        y_target_labeled : array-like of shape (n,), optional
            Labels of the latter.

        Returns
        -------
        self : TransferClassifier
        """
        covariance = self.covariance
        if covariance is None:
            from pyriemann.estimation import Covariances

            covariance = Covariances("oas")
        covariance = clone(covariance)
        matrices = covariance.fit_transform(X, y)
        model = LogEuclideanClassifier() if self.classifier is None else clone(self.classifier)
        model.fit(matrices, y, sample_domain=subjects)
        if X_target_labeled is not None:
            model = model.adapt(covariance.transform(X_target_labeled), y_target_labeled)
        elif model.metric_.domain_means_ is not None:
            model = model.adapt(model.metric_.domain_means_)
        if X_target_unlabeled is not None:
            model = model.adapt(covariance.transform(X_target_unlabeled))
        self.covariance_, self.model_, self.classes_ = covariance, model, model.classes_
        return self

    def predict_proba(self, X: Array) -> np.ndarray:
        """Probability of every class, (n_trials, n_classes)."""
        check_is_fitted(self)
        return self.model_.predict_proba(self.covariance_.transform(X))

    def predict(self, X: Array) -> np.ndarray:
        """Most probable class of every trial, (n_trials,)."""
        check_is_fitted(self)
        return self.model_.predict(self.covariance_.transform(X))
