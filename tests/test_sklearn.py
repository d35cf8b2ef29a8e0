"""The battery for estimators on 3-D input: what scikit-learn's own checks ask of 2-D ones."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline

import estimator_checks
import spdmetric
from estimator_checks import ESTIMATORS
from random_matrices import labeled
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV


def briefly(record):
    """Stop the stochastic solver, which would go on for five hundred mini-batches, where the noise begins."""
    return record.iteration >= 10


MODELS = {
    "full rank": LogEuclideanMetric(2.0),
    "rank 2": LogEuclideanMetric(2.0, rank=2),
    "stochastic": LogEuclideanMetric(2.0, solver="stochastic", random_state=0, callback=briefly),
    "Gaussian": LogEuclideanMetric(2.0, kernel="rbf"),
    "weighting": LogEuclideanMetric(2.0, weighting="discriminant"),
    "weighting alone": LogEuclideanMetric(0.0, weighting="discriminant"),
    "chosen": LogEuclideanMetricCV(LogEuclideanMetric(tol=3e-2), radii=(0, 2), ranks=(None, 2), cv=2),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
both = pytest.mark.parametrize("model", [MODELS["full rank"], MODELS["chosen"]], ids=["metric", "CV"])


def inside(model, name):
    """The name of a parameter of a metric, or of the metric inside a choice."""
    return name if name in model.get_params(deep=False) else f"metric__{name}"


@pytest.fixture
def data(rng):
    return labeled(rng, 24, 3, classes=2)


@pytest.mark.parametrize("name", estimator_checks.AS_IT_IS)
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_checks_of_sklearn_that_need_no_data(estimator, name):
    check = getattr(sklearn.utils.estimator_checks, name, None)  # not in every version
    if check is not None:
        check(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{name}-{check.__name__}")
        for name, estimator in ESTIMATORS.items()
        for check in dict.fromkeys(estimator_checks.ADAPTED.values())
        if estimator_checks.concerns(check, estimator)
    ],
)
def test_checks_of_sklearn_on_matrices(estimator, check):
    check(clone(estimator), *estimator_checks.data())


@pytest.mark.parametrize("name", ["stochastic", "Gaussian", "weighting", "weighting alone"])
@pytest.mark.parametrize("check", estimator_checks.OF_ANY_METRIC, ids=lambda f: f.__name__)
def test_checks_of_sklearn_on_other_metrics(name, check):
    check(clone(MODELS[name]), *estimator_checks.data())


@models
def test_unfitted(model, data):
    X, _ = data
    for use in (
        "inverse_transform",
        "pair_distance",
        "pair_score",
        "adapt",
        "partial_adapt",
        "pairwise_kernel",
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(clone(model), use)(X)
    for use in ("get_metric", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(clone(model), use)()


def test_every_public_estimator_is_checked():
    public = {getattr(spdmetric, name) for name in spdmetric.__all__}
    found = {c for c in public if inspect.isclass(c) and issubclass(c, BaseEstimator)}
    assert found == {type(estimator) for estimator in ESTIMATORS.values()}, "add it to ESTIMATORS"


def test_every_check_of_sklearn_is_adapted_or_cannot_apply():
    """Those that scikit-learn has for a transformer with labels and for classifiers."""
    peers = (NeighborhoodComponentsAnalysis(), LogisticRegression(), SGDClassifier())
    names = set.union(*map(estimator_checks.names_of, peers))
    known = [*estimator_checks.ADAPTED, *estimator_checks.CANNOT, *estimator_checks.AS_IT_IS]
    assert names <= set(known), "adapt it, or say why it cannot apply"
    assert len(set(known)) == len(known)


def test_the_table_in_the_documentation_is_that_of_the_checks():
    page = Path(__file__).parents[1] / "docs/estimator_checks.md"
    rows = dict(re.findall(r"^\| `(check_\w+)` \| (.+) \|$", page.read_text(), flags=re.MULTILINE))
    told = {name: check.__name__.replace("_", " ") for name, check in estimator_checks.ADAPTED.items()}
    told |= {name: f"cannot apply: {reason}" for name, reason in estimator_checks.CANNOT.items()}
    told |= dict.fromkeys(estimator_checks.AS_IT_IS, "runs as it is")
    assert rows == told


@models
def test_the_third_argument_of_fit_transform_is_a_weight(model, data):
    X, y = data
    weight = np.arange(1, 25)  # whole numbers, which are weights by position, not domains
    by_position = clone(model).fit_transform(X, y, weight)
    np.testing.assert_array_equal(by_position, clone(model).fit(X, y, weight).transform(X))


@models
def test_feature_names_and_pandas(model, data):
    X, y = data
    estimator = clone(model).set_output(transform="pandas").fit(X, y)
    frame = estimator.transform(X)
    m = estimator.components_.shape[0]
    p = m * (m + 1) // 2 if estimator.weighting_ is None else 1  # two classes differ in one direction
    names = [f"{type(model).__name__.lower()}{i}" for i in range(p)]
    assert list(frame.columns) == names
    assert list(estimator.get_feature_names_out()) == names


@both
def test_pipeline_grid_search_and_cross_validation(model, data):
    X, y = data
    pipe = make_pipeline(clone(model), KNeighborsClassifier(1))
    assert cross_val_score(pipe, X, y, cv=3).shape == (3,)
    weight = f"{type(model).__name__.lower()}__{inside(model, 'class_weight')}"
    search = GridSearchCV(pipe, {weight: [None, "balanced"]}, cv=3).fit(X, y)
    assert search.best_params_[weight] in (None, "balanced")
    assert search.predict(X).shape == y.shape


@both
def test_metadata_routing(model, data):
    X, y = data
    w = np.where(np.arange(24) % 3 == 0, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        step = clone(model).set_fit_request(sample_weight=True)
        pipe = Pipeline([("metric", step), ("knn", KNeighborsClassifier(1))]).fit(X, y, sample_weight=w)
    direct = clone(model).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(pipe["metric"].components_, direct.components_)
    assert pipe["metric"].alignment_ != clone(model).fit(X, y).alignment_
