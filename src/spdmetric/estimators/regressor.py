"""From matrices to regression targets: the chosen metric and its head."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators._streaming import RandomState
from spdmetric.estimators.cv import LogEuclideanMetricCV, MetricPredictor, Training
from spdmetric.estimators.metric import LogEuclideanMetric
from spdmetric.linalg.symmetric import Array
from spdmetric.objectives.data import check_values
from spdmetric.validation import check_size, check_weights


class LogEuclideanRegressor(RegressorMixin, MetricPredictor):
    """Regression on SPD matrices: metric and regressor are both chosen by cross-validation.

    Metrics of several radii, ranks and weightings are learned on the same folds, each with ridge regression
    and with nearest neighbors.  The tangent vectors at the mean with a weighting are chosen unless another
    metric is clearly better, by the squared error of what the folds leave out.

    Parameters
    ----------
    metric : LogEuclideanMetric, LogEuclideanMetricCV or None, default=None
        What to try: None the candidates of `LogEuclideanMetricCV`, a `LogEuclideanMetric` only that, and a
        `LogEuclideanMetricCV` its radii, ranks, weightings and rule.  Parameters that this estimator has too
        are set here, and must have their defaults there.
    head : {"auto", "neighbors", "ridge"}, default="auto"
        How vectors predict: the mean of the nearest neighbors, ridge regression, or ridge regression
        unless neighbors are clearly better.
    n_neighbors : int or None, default=None
        Number of neighbors, at most as many as there are matrices to learn from in every fold; None
        chooses among 1, 5, 11, 21.
    cv : int, splitter, iterable or None, default=None
        Folds of the choice, as in scikit-learn.  None: five folds with values of all sizes in each, of whole
        groups where there are ``groups`` or domains; more of these at `LogEuclideanMetricCV`.
    scoring : str, callable or None, default=None
        Scorer of the choice, a name or a function of scikit-learn; targets are given to it about their mean,
        in units of their spread.  None is R².
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
    head_ : {"neighbors", "ridge"}
        How vectors of ``metric_`` predict; its number of neighbors is ``metric_.n_neighbors_``.
    n_features_in_ : int
        The size d of the matrices.

    Examples
    --------
    >>> from spdmetric import LogEuclideanRegressor
    >>> from spdmetric.datasets import make_regression
    >>> X, y, X_test, y_test = make_regression(n_train=80, n_test=100, d=5, random_state=0)
    >>> model = LogEuclideanRegressor().fit(X, y)
    >>> bool(model.score(X_test, y_test) > 0.9)
    True
    """

    def __init__(
        self,
        metric: LogEuclideanMetric | LogEuclideanMetricCV | None = None,
        *,
        head: str = "auto",
        n_neighbors: int | None = None,
        cv: Any = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        verbose: bool = False,
    ):
        self.metric = metric
        self.head = head
        self.n_neighbors = n_neighbors
        self.cv = cv
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    _task = "regression"
    _usual_head = "ridge"

    def _keep_training(self, training: Training, y: Array, sample_weight: Array | None) -> None:
        """Keep level and spread of the targets, which the head was learned without."""
        values = check_values(y, y)
        values = values[check_weights(sample_weight, values, scaled=True) > 0]
        Y = training[0].target.values  # in units of their spread, about their mean
        self._scale = np.ptp(values, axis=0) / np.ptp(Y, axis=0)
        self._level = values.min(axis=0) - self._scale * Y.min(axis=0)
        self._one_output = np.ndim(y) == 1

    def predict(self, X: Array, sample_domain: Array | None = None) -> np.ndarray:
        """Regression targets of matrices.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        sample_domain : array-like of shape (n_matrices,), optional
            Domain of each matrix, if `fit` had domains; one that was not there is recentered by the mean of
            its matrices in X.  None: the session of the last `adapt`.

        Returns
        -------
        y : ndarray of shape (n_matrices,) or (n_matrices, n_outputs)
            As in `fit`.
        """
        vectors = self._transform(X, sample_domain)
        Y = self._level + self._scale * self._head.predict(vectors)
        return Y[:, 0] if self._one_output else Y

    def score(
        self, X: Array, y: Array, sample_weight: Array | None = None, sample_domain: Array | None = None
    ) -> float:
        """R², the share of the variance of y that is explained, of several outputs the mean.

        Parameters
        ----------
        X, y, sample_weight, sample_domain
            Matrices, their targets and weights, and their domains as in `predict`.

        Returns
        -------
        score : float
        """
        predicted = self.predict(X, sample_domain)
        values, weight = check_values(predicted, y), check_weights(sample_weight, predicted, scaled=True)
        return float(r2_score(values, predicted.reshape(len(predicted), -1), sample_weight=weight))

    def adapt(self, X: Array, sample_weight: Array | None = None) -> Self:
        """Carry the regressor to a new, unlabeled session.

        New matrices are recentered by their own Riemannian mean, as those of training were by theirs.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Matrices of the new session.  Their targets should be distributed as in training.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.

        Returns
        -------
        adapted : LogEuclideanRegressor
            A copy, for the new session.
        """
        check_is_fitted(self)
        check_size(self, X)
        return self._carry(lambda metric: metric.adapt(X, sample_weight))
