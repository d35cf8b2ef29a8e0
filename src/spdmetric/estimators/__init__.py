"""The scikit-learn API: learn the metric, then turn SPD matrices into vectors."""

from spdmetric.estimators.classifier import LogEuclideanClassifier
from spdmetric.estimators.cv import LogEuclideanMetricCV
from spdmetric.estimators.filterbank import FilterBankCovariances
from spdmetric.estimators.metric import LogEuclideanMetric
from spdmetric.estimators.preprocessing import CommonRange, Shrinkage
from spdmetric.estimators.regressor import LogEuclideanRegressor
from spdmetric.estimators.transfer import TransferClassifier

__all__ = [
    "CommonRange",
    "FilterBankCovariances",
    "LogEuclideanClassifier",
    "LogEuclideanMetric",
    "LogEuclideanMetricCV",
    "LogEuclideanRegressor",
    "Shrinkage",
    "TransferClassifier",
]
