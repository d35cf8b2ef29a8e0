"""The battery for estimators on 3-D input: what scikit-learn's own checks ask of 2-D ones."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import estimator_checks
import spdmetric
from estimator_checks import ESTIMATORS
from random_matrices import labeled, spd
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV


def briefly(record):
    """Stop the stochastic solver, which would go on for five hundred mini-batches, where the noise begins."""
    return record.iteration >= 10


MODELS = {
    "full rank": LogEuclideanMetric(2.0),
    "rank 2": LogEuclideanMetric(2.0, rank=2),
    "stochastic": LogEuclideanMetric(2.0, solver="stochastic", random_state=0, callback=briefly),
    "Gaussian": LogEuclideanMetric(2.0, kernel="rbf"),
    "shape": LogEuclideanMetric(2.0, weighting="discriminant"),
    "shape alone": LogEuclideanMetric(0.0, weighting="discriminant"),
    "chosen": LogEuclideanMetricCV(LogEuclideanMetric(tol=3e-2), radii=(0, 2), ranks=(None, 2), cv=2),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def inside(model, name):
    """The name of a parameter of a metric, or of the metric inside a choice."""
    return name if name in model.get_params(deep=False) else f"metric__{name}"


classes = pytest.mark.parametrize("Estimator", [LogEuclideanMetric, LogEuclideanMetricCV])


@pytest.fixture
def data(rng):
    return labeled(rng, 24, 3, classes=2)


# scikit-learn says that it skips most of its checks on 3-D input (its issue 14057): hence this file.
@pytest.mark.filterwarnings("ignore:Can't test estimator:sklearn.exceptions.SkipTestWarning")
@models
def test_sklearns_own_checks(model):
    """Those that run on 3-D input must pass."""
    check_estimator(clone(model))


@pytest.mark.parametrize("name", estimator_checks.AS_IT_IS)
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_checks_of_sklearn_that_need_no_data(estimator, name):
    check = getattr(sklearn.utils.estimator_checks, name, None)  # not in every version
    if check is not None:
        check(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize("check", dict.fromkeys(estimator_checks.ADAPTED.values()), ids=lambda f: f.__name__)
@pytest.mark.parametrize("estimator", ESTIMATORS.values(), ids=ESTIMATORS)
def test_checks_of_sklearn_on_matrices(estimator, check):
    if check.__name__ in estimator_checks.OF_LABELS and not get_tags(estimator).target_tags.required:
        return  # it takes neither labels nor weights
    if check.__name__ in estimator_checks.OF_CLASSES and is_regressor(estimator):
        return
    check(clone(estimator))


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


@classes
def test_no_work_in_init(Estimator):
    for name, parameter in inspect.signature(Estimator).parameters.items():
        sentinel = object()
        assert getattr(Estimator(**{name: sentinel}), name) is sentinel
        assert parameter.default is not inspect.Parameter.empty


@classes
def test_docstring_names_every_parameter(Estimator):
    for name in inspect.signature(Estimator).parameters:
        assert f"{name} : " in inspect.getdoc(Estimator)


@models
def test_parameters_round_trip(model):
    estimator = clone(model)
    assert list(estimator.get_params(deep=False)) == sorted(inspect.signature(type(model)).parameters)
    tol = inside(estimator, "tol")
    assert estimator.set_params(**{tol: 0.25}).get_params()[tol] == 0.25
    assert repr(clone(estimator)) == repr(estimator)
    assert "tol=0.25" in repr(estimator)


@models
def test_fit_changes_no_parameter_and_no_data_and_returns_self(model, data):
    X, y = data
    X_before, y_before = X.copy(), y.copy()
    estimator = clone(model)
    estimator.set_params(**{inside(estimator, "init"): np.eye(3)})
    before = dict(estimator.get_params())
    assert estimator.fit(X, y) is estimator
    assert all(estimator.get_params()[name] is value for name, value in before.items())
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    public = [name for name in vars(estimator) if not name.startswith("_")]
    assert all(name.endswith("_") for name in set(public) - set(before))


@models
def test_fit_is_idempotent_and_forgets(model, data, rng):
    X, y = data
    fresh, refitted = clone(model).fit(X, y), clone(model).fit(spd(rng, 10, 5), [0, 1] * 5)
    refitted.fit(X, y).fit(X, y)
    np.testing.assert_array_equal(fresh.transform(X), refitted.transform(X))
    assert refitted.n_features_in_ == 3


@models
def test_fit_transform_is_fit_then_transform(model, data):
    X, y = data
    np.testing.assert_array_equal(clone(model).fit_transform(X, y), clone(model).fit(X, y).transform(X))
    weight = np.arange(1, 25)  # whole numbers, which are weights by position, not domains
    by_position = clone(model).fit_transform(X, y, weight)
    np.testing.assert_array_equal(by_position, clone(model).fit(X, y, weight).transform(X))


@models
def test_transform_of_a_part_is_the_part_of_the_transform(model, data):
    X, y = data
    estimator = clone(model).fit(X, y)
    np.testing.assert_allclose(
        estimator.transform(X[5:9]), estimator.transform(X)[5:9], rtol=1e-12, atol=1e-12
    )


@models
def test_awkward_arrays(model, data):
    """float32, read-only and non-contiguous matrices are learned from as they are."""
    X, y = data
    expected = clone(model).fit(X, y).transform(X)
    frozen = X.copy()
    frozen.setflags(write=False)
    for other in (frozen, np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        # Sums in another order round otherwise, and `tol` leaves the solution some slack.
        np.testing.assert_allclose(clone(model).fit(other, y).transform(other), expected, atol=1e-3)
    single = clone(model).fit(X.astype(np.float32), y).transform(X.astype(np.float32))
    assert single.dtype == np.float32


@models
@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_pickling(model, way, data, tmp_path):
    X, y = data
    estimator = clone(model).fit(X, y)
    if way == "pickle":
        other = pickle.loads(pickle.dumps(estimator))
    else:
        other = joblib.load(joblib.dump(estimator, tmp_path / "model.joblib")[0])
    np.testing.assert_array_equal(other.transform(X), estimator.transform(X))
    assert other.solution_.status is estimator.solution_.status


@models
def test_unfitted(model, data):
    X, _ = data
    for use in ("transform", "inverse_transform", "pair_distance", "pair_score"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(clone(model), use)(X)
    for use in ("adapt", "partial_adapt", "pairwise_kernel"):
        with pytest.raises(NotFittedError):
            getattr(clone(model), use)(X)
    assert not hasattr(clone(model), "components_")
    for use in ("get_metric", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(clone(model), use)()


@models
def test_n_features_in(model, data, rng):
    X, y = data
    estimator = clone(model).fit(X, y)
    assert estimator.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 4 features, but"):
        estimator.transform(spd(rng, 2, 4))


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


@models
def test_pipeline_grid_search_and_cross_validation(model, data):
    X, y = data
    pipe = make_pipeline(clone(model), KNeighborsClassifier(1))
    assert cross_val_score(pipe, X, y, cv=3).shape == (3,)
    weight = f"{type(model).__name__.lower()}__{inside(model, 'class_weight')}"
    search = GridSearchCV(pipe, {weight: [None, "balanced"]}, cv=3).fit(X, y)
    assert search.best_params_[weight] in (None, "balanced")
    assert search.predict(X).shape == y.shape


@models
def test_metadata_routing(model, data):
    X, y = data
    w = np.where(np.arange(24) % 3 == 0, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        step = clone(model).set_fit_request(sample_weight=True)
        pipe = Pipeline([("metric", step), ("knn", KNeighborsClassifier(1))]).fit(X, y, sample_weight=w)
    direct = clone(model).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(pipe["metric"].components_, direct.components_)
    assert pipe["metric"].alignment_ != clone(model).fit(X, y).alignment_


@models
def test_tags(model):
    tags = get_tags(model)
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


@models
def test_html_links_to_the_documentation(model):
    page = f"https://spdmetric.readthedocs.io/en/latest/api/generated/spdmetric.{type(model).__name__}.html"
    assert page in clone(model)._repr_html_()
