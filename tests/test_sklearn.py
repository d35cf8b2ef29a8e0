"""The battery for estimators on 3-D input: what scikit-learn's own checks ask of 2-D ones."""

from __future__ import annotations

import inspect
import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from random_matrices import labelled, spd
from spdmetric import LogEuclideanMetric

ESTIMATORS = [LogEuclideanMetric]
estimators = pytest.mark.parametrize("Estimator", ESTIMATORS)


@pytest.fixture
def data(rng):
    return labelled(rng, 24, 3, classes=2)


# scikit-learn says that it skips most of its checks on 3-D input (its issue 14057): hence this file.
@pytest.mark.filterwarnings("ignore:Can't test estimator:sklearn.exceptions.SkipTestWarning")
@estimators
def test_sklearns_own_checks(Estimator):
    """Those that run on 3-D input must pass."""
    check_estimator(Estimator())


@estimators
def test_no_work_in_init(Estimator):
    for name, parameter in inspect.signature(Estimator).parameters.items():
        sentinel = object()
        assert getattr(Estimator(**{name: sentinel}), name) is sentinel
        assert parameter.default is not inspect.Parameter.empty


@estimators
def test_parameters_round_trip(Estimator):
    estimator = Estimator()
    assert list(estimator.get_params()) == sorted(inspect.signature(Estimator).parameters)
    assert estimator.set_params(radius=2.5).get_params()["radius"] == 2.5
    assert clone(estimator).get_params() == estimator.get_params()
    assert "radius=2.5" in repr(estimator)


@estimators
def test_fit_changes_no_parameter_and_no_data_and_returns_self(Estimator, data):
    X, y = data
    X_before, y_before = X.copy(), y.copy()
    estimator = Estimator(init=np.eye(3))
    before = dict(estimator.get_params())
    assert estimator.fit(X, y) is estimator
    assert all(estimator.get_params()[name] is value for name, value in before.items())
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)
    public = [name for name in vars(estimator) if not name.startswith("_")]
    assert all(name.endswith("_") for name in set(public) - set(before))


@estimators
def test_fit_is_idempotent_and_forgets(Estimator, data, rng):
    X, y = data
    fresh, refitted = Estimator(radius=2).fit(X, y), Estimator(radius=2).fit(spd(rng, 10, 5), [0, 1] * 5)
    refitted.fit(X, y).fit(X, y)
    np.testing.assert_array_equal(fresh.transform(X), refitted.transform(X))
    assert refitted.n_features_in_ == 3


@estimators
def test_fit_transform_is_fit_then_transform(Estimator, data):
    X, y = data
    np.testing.assert_array_equal(
        Estimator(radius=2).fit_transform(X, y), Estimator(radius=2).fit(X, y).transform(X)
    )


@estimators
def test_transform_of_a_part_is_the_part_of_the_transform(Estimator, data):
    X, y = data
    estimator = Estimator(radius=2).fit(X, y)
    np.testing.assert_allclose(
        estimator.transform(X[5:9]), estimator.transform(X)[5:9], rtol=1e-12, atol=1e-12
    )


@estimators
@pytest.mark.parametrize("way", ["pickle", "joblib"])
def test_pickling(Estimator, way, data, tmp_path):
    X, y = data
    estimator = Estimator(radius=2).fit(X, y)
    if way == "pickle":
        other = pickle.loads(pickle.dumps(estimator))
    else:
        other = joblib.load(joblib.dump(estimator, tmp_path / "model.joblib")[0])
    np.testing.assert_array_equal(other.transform(X), estimator.transform(X))
    assert other.solution_.status is estimator.solution_.status


@estimators
def test_unfitted(Estimator, data):
    X, _ = data
    for use in ("transform", "inverse_transform", "pair_distance", "pair_score"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(Estimator(), use)(X)
    for use in ("get_metric", "get_feature_names_out"):
        with pytest.raises(NotFittedError):
            getattr(Estimator(), use)()


@estimators
def test_n_features_in(Estimator, data, rng):
    X, y = data
    estimator = Estimator(radius=2).fit(X, y)
    assert estimator.n_features_in_ == 3
    with pytest.raises(ValueError, match="X has 4 features, but"):
        estimator.transform(spd(rng, 2, 4))


@estimators
def test_feature_names_and_pandas(Estimator, data):
    X, y = data
    estimator = Estimator(radius=2).set_output(transform="pandas").fit(X, y)
    frame = estimator.transform(X)
    names = [f"{Estimator.__name__.lower()}{i}" for i in range(6)]
    assert list(frame.columns) == names
    assert list(estimator.get_feature_names_out()) == names


@estimators
def test_pipeline_grid_search_and_cross_validation(Estimator, data):
    X, y = data
    pipe = make_pipeline(Estimator(), KNeighborsClassifier(1))
    assert cross_val_score(pipe, X, y, cv=3).shape == (3,)
    step = Estimator.__name__.lower()
    search = GridSearchCV(pipe, {f"{step}__radius": [0, 1.0, 5.0]}, cv=3).fit(X, y)
    assert search.best_params_[f"{step}__radius"] in (0, 1.0, 5.0)
    assert search.predict(X).shape == y.shape


@estimators
def test_metadata_routing(Estimator, data):
    X, y = data
    w = np.where(np.arange(24) % 3 == 0, 3.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        step = Estimator(radius=2).set_fit_request(sample_weight=True)
        pipe = Pipeline([("metric", step), ("knn", KNeighborsClassifier(1))]).fit(X, y, sample_weight=w)
    direct = Estimator(radius=2).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(pipe["metric"].reference_, direct.reference_)
    assert pipe["metric"].alignment_ != Estimator(radius=2).fit(X, y).alignment_


@estimators
def test_tags(Estimator):
    tags = get_tags(Estimator())
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


@estimators
def test_docstring_names_every_parameter(Estimator):
    for name in inspect.signature(Estimator).parameters:
        assert f"{name} : " in inspect.getdoc(Estimator)
