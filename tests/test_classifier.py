"""The classifier: a chosen metric, a chosen head, calibrated probabilities."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_toy
from spdmetric.estimators.heads import find_nearest, fit_head, fit_temperature
from spdmetric.objectives.data import ClassTarget


@pytest.fixture(scope="module")
def toy():
    return make_toy(n_train=60, n_test=200, d=6, random_state=5001)


def clusters(rng, n):
    """Two classes of two clusters each, whose means are the same."""
    side = rng.choice([-1, 1], size=(n, 2))
    logs = 0.3 * rng.standard_normal((n, 4))
    logs[:, :2] += 0.9 * side
    A = np.array([[2.0, 0.5, 0, 0], [0, 1, 0.3, 0], [0, 0, 1, 0.2], [0.1, 0, 0, 1]])
    return np.einsum("ij,nj,kj->nik", A, np.exp(logs), A), np.where(side.prod(axis=1) > 0, "same", "other")


def test_neighbors_are_those_of_sklearn(toy):
    X, y, X_test, _ = toy
    model = LogEuclideanClassifier(head="neighbors").fit(X, y)
    metric = model.metric_
    assert model.head_ == "neighbors"
    neighbors = KNeighborsClassifier(metric.n_neighbors_).fit(metric.transform(X), y)
    np.testing.assert_array_equal(model.predict(X_test), neighbors.predict(metric.transform(X_test)))
    chosen = LogEuclideanMetricCV().fit(X, y)
    np.testing.assert_array_equal(chosen.components_, metric.components_)
    assert chosen.best_params_ == metric.best_params_


def test_classes_of_several_clusters_get_neighbors(rng):
    X, y = clusters(rng, 150)
    model = LogEuclideanClassifier().fit(X, y)
    assert model.head_ == "neighbors"
    assert model.score(*clusters(rng, 200)) > 0.85
    assert LogEuclideanClassifier(head="centroid").fit(X, y).head_ == "centroid"


# -- heads ------------------------------------------------------------------------------------


def test_class_means_are_linear_discriminant_analysis(rng):
    """With a spherical covariance both are the same distribution."""
    from scipy.stats import multivariate_normal

    Z, codes, weight = rng.standard_normal((20, 3)), np.arange(20) % 3, rng.uniform(0.5, 2, 20)
    head = fit_head(Z, ClassTarget.from_codes(codes, weight))
    new = rng.standard_normal((5, 3))
    means = [np.average(Z[codes == c], axis=0, weights=weight[codes == c]) for c in range(3)]
    np.testing.assert_allclose(head.means, means)
    shares = np.ones(3) / 3  # 20 matrices in classes as equal as these may be of equal classes
    densities = [
        s * multivariate_normal(m, head.variance * np.eye(3)).pdf(new)
        for s, m in zip(shares, means, strict=True)
    ]
    expected = np.array(densities).T / np.sum(densities, axis=0)[:, None]
    np.testing.assert_allclose(softmax(head.predict(new) + head.offset, axis=1), expected)


def test_shares_count_where_they_are_not_chance(rng):
    codes = np.repeat([0, 1], [90, 10])
    head = fit_head(rng.standard_normal((100, 2)), ClassTarget.from_codes(codes))
    np.testing.assert_allclose(np.exp(head.offset), [0.9, 0.1])
    few = fit_head(rng.standard_normal((30, 2)), ClassTarget.from_codes(np.repeat([0, 1], [17, 13])))
    np.testing.assert_allclose(np.exp(few.offset), [0.5, 0.5])


def test_an_absent_class_has_no_probability(rng):
    target = ClassTarget.from_codes(np.array([0, 2] * 3))
    head = fit_head(rng.standard_normal((6, 2)), target)
    posterior = softmax(head.predict(rng.standard_normal((4, 2))) + head.offset, axis=1)
    np.testing.assert_array_equal(posterior[:, 1], 0)
    np.testing.assert_allclose(posterior.sum(axis=1), 1)


@pytest.mark.parametrize("k", [1, 4, 11])
def test_votes_of_neighbors(k, rng):
    Z, codes, weight = rng.standard_normal((30, 2)), rng.integers(0, 3, 30), rng.uniform(0.5, 2, 30)
    head, new = (fit_head(Z, ClassTarget.from_codes(codes, weight, 3), k), rng.standard_normal((7, 2)))
    for row, v in zip(np.exp(head.predict(new)), new, strict=True):
        nearest = np.argsort(np.linalg.norm(Z - v, axis=1))[:k]
        votes = np.full(3, 0.5)
        for i in nearest:
            votes[codes[i]] += weight[i] / weight.mean()
        np.testing.assert_allclose(row, votes / votes.sum())


def test_temperature_is_that_of_the_labels():
    """Labels drawn at a temperature of 3 give it back; labels that are all right, a finite one."""
    rng = np.random.default_rng(0)
    evidence, offset = 4 * rng.standard_normal((20000, 3)), np.log([[0.5, 0.3, 0.2]]) + np.zeros((20000, 1))
    p = softmax(evidence / 3.0 + offset, axis=1)
    codes = (rng.random(20000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    assert fit_temperature(evidence, offset, codes) == pytest.approx(3.0, rel=0.05)
    assert 0.01 < fit_temperature(evidence[:10], 0 * offset[:10], evidence[:10].argmax(axis=1)) < 2
    unsure = fit_temperature(1e6 * evidence[:60], offset[:60], rng.integers(0, 3, 60))
    assert unsure > 1e6  # evidence that tells nothing counts for nothing, however large it is


@pytest.mark.parametrize("q", [1, 3, 4])
@pytest.mark.parametrize("copies", [1, 8])
def test_a_tree_finds_the_same_neighbors(q, copies, rng):
    """Of vectors that are there several times the first, as the distances of all pairs give them."""
    known = np.tile(rng.standard_normal((2000 // copies, q)), (copies, 1))
    new = rng.standard_normal((600, q))
    np.testing.assert_array_equal(find_nearest(new, known, 21), find_nearest(new, known, 21, tree=False))


@pytest.mark.parametrize(("known", "k"), [(1, 1), (21, 21), (50, 21), (400, 5), (5000, 21)])
@pytest.mark.parametrize("digits", [1, 16])
def test_nearest_are_those_of_a_stable_sort(known, k, digits, rng):
    """Also where many are equally near."""
    Z, new = np.round(rng.standard_normal((known, 2)), digits), np.round(rng.standard_normal((9, 2)), digits)
    far = np.round(((new[:, None] - Z) ** 2).sum(axis=2), 12)
    order = np.argsort(far, axis=1, kind="stable")[:, :k]
    found = find_nearest(new, Z, k, tree=False)
    np.testing.assert_allclose(np.take_along_axis(far, found, axis=1), np.take_along_axis(far, order, axis=1))


# -- composition ------------------------------------------------------------------------------


def test_a_metric_is_taken_as_it_is(toy):
    X, y, X_test, _ = toy
    inner = LogEuclideanMetric(1.0, rank=2, weighting="discriminant", tol=1e-4)
    model = LogEuclideanClassifier(inner, head="centroid").fit(X, y)
    assert len(model.metric_.cv_results_["params"]) == 1
    alone = clone(inner).fit(X, y)
    np.testing.assert_allclose(model.metric_.alignment_, alone.alignment_, rtol=1e-6)
    own, other = (np.linalg.norm(m.transform(X_test), axis=1) for m in (model.metric_, alone))
    np.testing.assert_allclose(own, other, rtol=1e-3)
    assert not hasattr(inner, "embedding_")


def test_a_choice_says_what_to_try(toy):
    X, y, X_test, _ = toy
    inner = LogEuclideanMetric(init="euclid", tol=3e-2, max_iter=40)
    choice = LogEuclideanMetricCV(inner, radii=(0, 2), ranks=(None, 2), weightings=(None,), rule="best")
    model = LogEuclideanClassifier(choice, head="neighbors", n_neighbors=3, cv=3).fit(X, y)
    alone = clone(choice).set_params(head="neighbors", n_neighbors=3, cv=3).fit(X, y)
    np.testing.assert_array_equal(model.metric_.transform(X_test), alone.transform(X_test))
    assert model.metric_.cv_results_["params"] == alone.cv_results_["params"]
    assert choice.get_params()["head"] == "neighbors"


@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        ("riemann", r"metric='riemann': expected a LogEuclideanMetric, a LogEuclideanMetricCV, or None"),
        (LogEuclideanMetricCV(head="auto"), r"LogEuclideanMetricCV\(head='auto'\): head is a parameter of"),
        (LogEuclideanMetricCV(n_neighbors=3), r"Pass LogEuclideanClassifier\(n_neighbors=3\) instead"),
        (LogEuclideanMetricCV(cv=[([0], [1])]), "cv is a parameter of LogEuclideanClassifier"),
        (LogEuclideanMetricCV(random_state=1), "random_state is a parameter of LogEuclideanClassifier"),
        (LogEuclideanMetric(class_weight="balanced"), "class_weight is a parameter of LogEuclid"),
        (LogEuclideanMetric(verbose=True), "verbose is a parameter of LogEuclideanClassifier"),
        (LogEuclideanMetricCV(LogEuclideanMetric(class_weight={0: 2.0})), "class_weight is a parameter of"),
        (LogEuclideanMetric(task="regression"), "task='regression', and LogEuclideanClassifier is for class"),
        (LogEuclideanMetric(solver="stochastic"), "solver='stochastic' cannot follow a path"),
    ],
)
def test_what_the_metric_inside_may_not_say(metric, sentence, toy):
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanClassifier(metric).fit(*toy[:2])


def test_parameters_inside_can_be_set_and_searched(toy):
    X, y, _, _ = toy
    model = LogEuclideanClassifier(LogEuclideanMetricCV(LogEuclideanMetric(), radii=(0,)))
    assert model.get_params()["metric__metric__init"] == "riemann"
    again = clone(model).set_params(metric__metric__init="euclid", metric__ranks=(2,), n_neighbors=1)
    assert again.fit(X, y).metric_.best_params_["rank"] == 2
    assert model.metric.metric.init == "riemann"
