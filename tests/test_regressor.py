"""The regressor: a chosen metric, and ridge regression or neighbors behind it."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor

from random_matrices import spd
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV, LogEuclideanRegressor
from spdmetric.datasets import make_regression
from spdmetric.linalg.symmetric import congruence

AT_MEAN = LogEuclideanMetric(0.0)


@pytest.fixture(scope="module")
def data():
    return make_regression(80, 100, d=4, r2=0.9, random_state=0)


def test_neighbors_are_those_of_sklearn_on_tangent_vectors(data):
    X, y, X_test, _ = data
    model = LogEuclideanRegressor(AT_MEAN, head="neighbors", n_neighbors=5).fit(X, y)
    vectors = AT_MEAN.fit(X, y).transform
    peer = KNeighborsRegressor(5).fit(vectors(X), y)
    np.testing.assert_allclose(model.predict(X_test), peer.predict(vectors(X_test)))
    assert model.head_ == "neighbors"


def test_ridge_is_that_of_sklearn_on_tangent_vectors(data):
    """Both choose a penalty by the leave-one-out error, on grids of their own."""
    X, y, X_test, y_test = data
    model = LogEuclideanRegressor(AT_MEAN, head="ridge").fit(X, y)
    vectors = AT_MEAN.fit(X, y).transform
    peer = RidgeCV(np.logspace(-6, 4, 60)).fit(vectors(X), y)
    predicted = model.predict(X_test)
    assert r2_score(predicted, peer.predict(vectors(X_test))) > 0.999
    assert model.score(X_test, y_test) == pytest.approx(r2_score(y_test, predicted))
    assert model.head_ == "ridge"


def test_the_default_predicts_nearly_as_well_as_the_noise_allows(data):
    X, y, X_test, y_test = data
    assert LogEuclideanRegressor().fit(X, y).score(X_test, y_test) > 0.85
    assert cross_val_score(LogEuclideanRegressor(AT_MEAN), X, y, cv=3).mean() > 0.75


@pytest.mark.parametrize("head", ["ridge", "neighbors"])
def test_several_outputs_each_in_its_own_unit(head, data):
    X, y, X_test, _ = data
    both = np.column_stack([y, 1e6 - 1e3 * y])
    model = LogEuclideanRegressor(AT_MEAN, head=head).fit(X, both)
    predicted = model.predict(X_test)
    assert predicted.shape == (100, 2)
    np.testing.assert_allclose(1e6 - 1e3 * predicted[:, 0], predicted[:, 1], rtol=1e-6)
    one = model.set_params(metric=AT_MEAN).fit(X, both[:, :1])
    assert one.predict(X_test).shape == (100, 1)


def test_weights_groups_and_domains(data):
    X, y, X_test, y_test = data
    weight = np.where(np.arange(80) < 10, 0.0, 1.0)
    spoiled = np.where(weight == 0, 1e6, y)
    model = LogEuclideanRegressor(LogEuclideanMetricCV(radii=(0,), ranks=(None,)), cv=3)
    assert clone(model).fit(X, spoiled, weight).score(X_test, y_test) > 0.8
    groups = np.repeat(["a", "b", "c", "d"], 20)
    model = model.set_params(cv=None)
    by_group = clone(model).fit(X, y, groups=groups)
    assert "split3_test_score" in by_group.metric_.cv_results_
    A = spd(np.random.default_rng(0), 1, 4)[0]
    moved = np.where((groups == "a")[:, None, None], congruence(A, X), X)
    model = clone(model).fit(moved, y, sample_domain=groups)
    known = model.predict(moved, sample_domain=groups)
    assert r2_score(y, known) > 0.8
    new = model.adapt(congruence(A, X_test))
    assert new.score(congruence(A, X_test), y_test) > 0.8
    recentered = model.predict(congruence(A, X_test), sample_domain=["new"] * 100)
    np.testing.assert_allclose(recentered, new.predict(congruence(A, X_test)), rtol=1e-6)


def test_whole_numbers_are_targets_here(data):
    X, y, X_test, y_test = data
    model = LogEuclideanRegressor(AT_MEAN).fit(X, np.round(10 * y).astype(int))
    assert model.score(X_test, np.round(10 * y_test)) > 0.8


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"head": "centroid"},
            r"head='centroid' is not for y that holds regression targets: use head='ridge'",
        ),
        ({"head": "svm"}, r"head='svm': expected one of"),
        ({"metric": "riemann"}, r"metric='riemann': expected a LogEuclideanMetric, a LogEuclideanMetricCV"),
        ({"metric": LogEuclideanMetric(task="classification")}, r"task='classification', and .* regression"),
        ({"metric": LogEuclideanMetric(class_weight="balanced")}, r"class_weight='balanced' is for classes"),
        ({"metric": LogEuclideanMetricCV(cv=3)}, r"cv=3\): cv is a parameter of LogEuclideanRegressor"),
    ],
)
def test_bad_parameters(parameters, sentence, data):
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanRegressor(**parameters).fit(data[0], data[1])
