"""Domains: matrices of several sessions or subjects, each seen from its own mean."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax, logsumexp
from sklearn import config_context
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from random_matrices import labeled, spd
from spdmetric import (
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    LogEuclideanRegressor,
    load,
    save,
)
from spdmetric.comparison.plan import make_plan
from spdmetric.datasets import recenter
from spdmetric.estimators._adaptation import LabeledVectors, find_left_out_errors, find_shifted_mean
from spdmetric.estimators._domains import CONFOUNDED, check_domains, share_between_domains
from spdmetric.estimators.heads import fit_head
from spdmetric.geometry import distance_riemann, matrices_at, mean_riemann, tangent_vectors
from spdmetric.io.matrices import Matrices
from spdmetric.linalg.symmetric import congruence, invsqrtm, sqrtm, symmetrize, vech
from spdmetric.objectives.data import ClassTarget
from spdmetric.objectives.weighting import discriminant_weighting
from test_weighting import refitted


def sessions(rng, n=72, d=4, n_domains=3):
    """Matrices of two classes, each domain seen through a mixing of its own."""
    X, y = labeled(rng, n, d)
    domain = np.arange(n) // 2 % n_domains
    mixings = [np.eye(d) + 0.4 * rng.standard_normal((d, d)) for _ in range(n_domains)]
    return np.stack([congruence(mixings[k], x) for k, x in zip(domain, X, strict=True)]), y, domain


ESTIMATORS = [
    LogEuclideanMetric(2.0),
    LogEuclideanMetric(2.0, rank=2, weighting="discriminant"),
    LogEuclideanMetric(1.0, init="identity"),
    LogEuclideanMetricCV(radii=(0, 2)),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_same_as_whitening_by_hand(estimator, rng):
    X, y, domain = sessions(rng)
    Z = recenter(X, domain)
    by_hand = estimator.fit(Z, y, **({"groups": domain} if "CV" in str(estimator) else {}))
    expected, factor = by_hand.transform(Z), by_hand.components_
    metric = estimator.fit(X, y, sample_domain=domain)
    np.testing.assert_array_equal(metric.components_, factor)
    np.testing.assert_allclose(metric.transform(X, domain), expected, atol=1e-12)
    np.testing.assert_allclose(metric.fit_transform(X, y, sample_domain=domain), expected, atol=1e-12)
    np.testing.assert_array_equal(metric.domains_, [0, 1, 2])
    for k, mean in enumerate(metric.domain_means_):
        assert distance_riemann(mean, mean_riemann(X[domain == k])) < 1e-8


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_new_session_is_seen_from_its_mean(estimator, rng):
    """`adapt`, a domain that was not in `fit` and whitening by hand are one thing."""
    X, y, domain = sessions(rng, 96, n_domains=4)
    old, new = domain < 3, domain == 3
    Z = recenter(X, domain)
    by_hand = estimator.fit(Z[old], y[old], **({"groups": domain[old]} if "CV" in str(estimator) else {}))
    expected = by_hand.transform(Z[new])
    metric = estimator.fit(X[old], y[old], sample_domain=domain[old])
    adapted = metric.adapt(X[new])
    np.testing.assert_allclose(adapted.transform(X[new]), expected, atol=1e-11)
    np.testing.assert_allclose(metric.partial_adapt(X[new]).transform(X[new]), expected, atol=1e-11)
    known = metric.transform(X[old], domain[old])
    np.testing.assert_array_equal(adapted.transform(X[old], domain[old]), known)
    np.testing.assert_allclose(metric.transform(X[new], domain[new]), expected, atol=1e-11)
    with pytest.raises(
        ValueError, match="Domain 3 of sample_domain: expected two or more matrices with weight, got 1"
    ):
        metric.transform(X[new][:1], domain[new][:1])


def test_weights_count_in_the_means(rng):
    X, y, domain = sessions(rng)
    weight = rng.integers(0, 3, len(X)).astype(float)
    metric = LogEuclideanMetric(1.0).fit(X, y, weight, domain)
    many = np.repeat(np.arange(len(X)), weight.astype(int))
    again = LogEuclideanMetric(1.0).fit(X[many], y[many], sample_domain=domain[many])
    np.testing.assert_allclose(metric.domain_means_, again.domain_means_, rtol=1e-7, atol=1e-9)


def test_folds_leave_whole_domains_out(rng):
    X, y, domain = sessions(rng)
    given = LogEuclideanMetricCV(radii=(0, 1), ranks=(None,)).fit(X, y, sample_domain=domain)
    assert sum(name.startswith("split") for name in given.cv_results_) == 3
    explicit = LogEuclideanMetricCV(radii=(0, 1), ranks=(None,), cv=LeaveOneGroupOut())
    explicit.fit(X, y, sample_domain=domain)
    for name in ("split0_test_score", "split2_test_score"):
        np.testing.assert_array_equal(explicit.cv_results_[name], given.cv_results_[name])
    one = LogEuclideanMetricCV(radii=(0,), ranks=(None,)).fit(X, y, sample_domain=np.zeros(len(X), int))
    assert sum(name.startswith("split") for name in one.cv_results_) == 10


def test_the_classifier_with_domains(rng):
    X, y, domain = sessions(rng, 120, n_domains=4)
    old, new = domain < 3, domain == 3
    model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,))).fit(
        X[old], y[old], sample_domain=domain[old]
    )
    Z = recenter(X, domain)
    by_hand = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,))).fit(Z[old], y[old], groups=domain[old])
    expected = by_hand.predict_proba(Z[new])
    np.testing.assert_allclose(model.adapt(X[new]).predict_proba(X[new]), expected, atol=1e-9)
    with pytest.raises(ValueError, match="fitted with sample_domain"):
        model.predict(X[new])
    np.testing.assert_allclose(model.predict_proba(X[new], domain[new]), expected, atol=1e-9)
    assert model.score(X[new], y[new], sample_domain=domain[new]) == np.mean(
        by_hand.predict(Z[new]) == y[new]
    )


@pytest.fixture(scope="module")
def subjects():
    """A classifier of three subjects, and the matrices of a fourth."""
    X, y, domain = sessions(np.random.default_rng(7), 200, n_domains=4)
    old, new = domain < 3, domain == 3
    model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,), ranks=(2,)), head="centroid")
    return model.fit(X[old], y[old], sample_domain=domain[old]), X[new], y[new]


@pytest.mark.parametrize("weight", [None, 5.0])
def test_labels_of_a_new_domain_by_hand(weight, subjects):
    """The vectors of both, of twice the rank; ridge regression, class means after it; and own ones alone."""
    model, X, y = subjects
    adapted = model.adapt(X[:20], y[:20], weight=weight)
    own = adapted.metric_.embedding_.domain_means[0]
    np.testing.assert_allclose(own, mean_riemann(X[:20]), rtol=1e-8)
    Z = congruence(invsqrtm(own), X[20:])
    W = adapted.metric_.embedding_.factors[0] @ model.metric_.embedding_.whitening[0]
    np.testing.assert_allclose(W[:2], model.metric_.components_, atol=1e-10)
    V = tangent_vectors(Z, factor=W)
    codes, training = np.searchsorted(model.classes_, y), model._training
    both = np.concatenate([training.codes, codes[:20]])
    weights = np.r_[np.ones(150), np.full(20, adapted.own_weight_)]
    V_own = tangent_vectors(congruence(invsqrtm(own), X[:20]), factor=W)
    scale = np.ones((4, 4))
    scale[:2, :2] = 2
    scale = (vech(scale) / vech(np.ones((4, 4))))[None]
    pooled = scale * np.concatenate([training.vectors, V_own])
    target = ClassTarget.from_codes(both, weights, 2)
    Q = discriminant_weighting(pooled, target, by_error=True).directions
    head = fit_head(pooled @ Q, target)
    expected = log_softmax(head.predict(scale * V @ Q) / model.metric_.temperature_ + head.offset, axis=1)
    alone = LogEuclideanClassifier(
        LogEuclideanMetricCV(radii=(0,), ranks=(None,), weightings=("discriminant",)), head="centroid"
    )
    expected = 0.6 * expected + 0.4 * alone.fit(X[:20], y[:20]).predict_log_proba(
        X[20:]
    )  # 30 and 20 matrices
    expected -= logsumexp(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(adapted.predict_log_proba(X[20:]), expected, atol=1e-6)
    assert adapted.own_weight_ in ((5.0,) if weight else (5.0, 15.0, 150 / 90, 1.0))


def test_own_labels_speak_for_themselves_where_each_class_has_two(subjects):
    model, X, y = subjects
    rows = np.r_[np.flatnonzero(y == 0)[:5], np.flatnonzero(y == 1)[:1]]
    alone = model.adapt(X[rows], y[rows])  # one label of a class is not enough
    assert alone._own is None
    both = model.adapt(X[:20], y[:20])
    assert both._own is not None
    moved = both.adapt(X[20:])  # the second opinion moves along
    np.testing.assert_allclose(moved._own.metric_.embedding_.means[0], mean_riemann(X[20:]), rtol=1e-8)
    assert moved.partial_adapt(X[20:])._own is not None
    contradictory = model.adapt(np.repeat(X[:3], 2, axis=0), np.tile([0, 1], 3))
    assert contradictory._own is None
    one_sided = moved.adapt(X[rows], y[rows])
    assert one_sided._own is None
    assert copy(both).fit(X, y)._own is None


@pytest.mark.parametrize("ranks", [(2,), (None,)])
def test_in_model_files(ranks, rng, tmp_path):
    X, y, domain = sessions(rng, 96, n_domains=3)
    old = domain < 2
    model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(1,), ranks=ranks), head="centroid")
    model.fit(X[old], y[old], sample_domain=domain[old])
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    expected = model.predict_proba(X[old], domain[old])
    np.testing.assert_array_equal(loaded.predict_proba(X[old], domain[old]), expected)
    adapted = model.adapt(X[~old], y[~old])
    again = loaded.adapt(X[~old], y[~old])
    np.testing.assert_array_equal(again.predict_proba(X[~old]), adapted.predict_proba(X[~old]))
    save(adapted, tmp_path / "adapted.skops")
    expected = adapted.predict_proba(X[~old])
    np.testing.assert_array_equal(load(tmp_path / "adapted.skops").predict_proba(X[~old]), expected)


def test_left_out_errors_are_those_of_refits(rng):
    """The closed form against a regression without the matrix, at the same penalty."""
    for p in (3, 15):  # fewer features than matrices; more
        size = {3: 2, 15: 5}[p]
        others = LabeledVectors(rng.standard_normal((8, p)), np.arange(8) % 2, rng.uniform(0.5, 2, 8), size)
        own = LabeledVectors(rng.standard_normal((4, p)), np.arange(4) % 2, np.ones(4), size)
        joined = others.join(own, 3.0)
        w, V = joined.weight, joined.vectors
        target = ClassTarget.from_codes(joined.codes, w, 2)
        penalty = discriminant_weighting(V, target, by_error=True).penalty
        expected = np.sum(refitted(V, joined.codes, w, 2, penalty)[8:] ** 2, axis=1)
        np.testing.assert_allclose(find_left_out_errors(joined, 4, 2), expected, rtol=1e-8)


def test_after_labels_a_session_goes_on(subjects):
    model, X, y = subjects
    adapted = model.adapt(X[:20], y[:20])
    again = adapted.adapt(X[20:])
    assert again.predict(X[20:]).shape == (30,)
    np.testing.assert_allclose(again.metric_.embedding_.domain_means[0], mean_riemann(X[20:]), rtol=1e-8)
    twice = adapted.adapt(X[:20], y[:20])  # training is not forgotten, nor counted twice
    np.testing.assert_array_equal(twice.predict_proba(X), adapted.predict_proba(X))
    assert not hasattr(model, "own_weight_")
    zero = np.r_[np.ones(20), np.zeros(5)]
    left = model.adapt(X[:25], y[:25], zero)
    np.testing.assert_allclose(left.predict_proba(X), adapted.predict_proba(X), atol=1e-9)
    single = model.adapt(X[:20].astype(np.float32), y[:20])
    np.testing.assert_allclose(single.predict_proba(X), adapted.predict_proba(X), atol=1e-2)


def test_labels_that_cannot_be(subjects):
    model, X, y = subjects
    with pytest.raises(ValueError, match=r"y\[1\] is 7, a class that was not in fit"):
        model.adapt(X[:3], [0, 7, 1])
    with pytest.raises(ValueError, match="y has one class"):
        model.adapt(X[:3], [1, 1, 1])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.adapt(X[:3], [1, 0])
    for weight in (0, -1, np.nan, "much", 1e300):
        with pytest.raises(ValueError, match=r"expected a number > 0, between 1e-12 and 1e\+12, or None"):
            model.adapt(X, y, weight=weight)
    with pytest.raises(ValueError, match="is that of labeled matrices"):
        model.adapt(X, weight=2.0)
    with pytest.raises(ValueError, match="X has 3 x 3 matrices"):
        model.adapt(X[:, :3, :3], y)


def test_routed_through_a_pipeline(rng):
    X, y, domain = sessions(rng)
    with config_context(enable_metadata_routing=True):
        metric = LogEuclideanMetric(1.0)
        metric.set_fit_request(sample_domain=True).set_transform_request(sample_domain=True)
        model = make_pipeline(metric, KNeighborsClassifier(3))
        found = cross_validate(
            model,
            X,
            y,
            cv=LeaveOneGroupOut(),
            params={"sample_domain": domain, "groups": domain},
            error_score="raise",
        )
    expected = []
    Z = recenter(X, domain)
    for k in range(3):
        by_hand = make_pipeline(LogEuclideanMetric(1.0), KNeighborsClassifier(3))
        expected.append(by_hand.fit(Z[domain != k], y[domain != k]).score(Z[domain == k], y[domain == k]))
    np.testing.assert_array_equal(found["test_score"], expected)


@pytest.mark.parametrize("estimator", [LogEuclideanMetricCV, LogEuclideanClassifier, LogEuclideanRegressor])
def test_groups_of_a_splitter_do_not_collide_with_those_of_fit(estimator, rng):
    X, y, domain = sessions(rng)
    y = y + 0.1 * rng.standard_normal(len(y)) if estimator is LogEuclideanRegressor else y
    options = {"radii": [0], "ranks": [None]}
    model = estimator(**options) if estimator is LogEuclideanMetricCV else estimator(LogEuclideanMetric(0.0))
    model = make_pipeline(model, KNeighborsClassifier()) if estimator is LogEuclideanMetricCV else model
    options = {"cv": LeaveOneGroupOut(), "error_score": "raise"}
    expected = cross_validate(model, X, y, groups=domain, **options)["test_score"]
    with config_context(enable_metadata_routing=True):
        found = cross_validate(model, X, y, params={"groups": domain}, **options)["test_score"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("domain", "sentence"),
    [
        ([0] * 11, r"shape \(11,\) for 12 matrices"),
        ([0] * 11 + [None], r"sample_domain\[11\] is None"),
        ([0] * 11 + [float("nan")], r"sample_domain\[11\] is nan"),
        (["a"] * 11 + [float("nan")], r"sample_domain\[11\] is nan"),
        (["a"] * 11 + [1], r"sample_domain\[11\] is 1"),
        ([0.5] * 12, r"sample_domain\[0\] is 0.5"),
        ([0] * 11 + [1], "Domain 1 of sample_domain: expected two or more matrices with weight, got 1"),
        (np.arange(12), "Domain 0 of sample_domain: expected two or more matrices with weight, got 1"),
    ],
)
@pytest.mark.parametrize("estimator", [LogEuclideanMetric(1.0), LogEuclideanMetricCV()])
def test_domains_that_cannot_be(estimator, domain, sentence, rng):
    X, y = labeled(rng, 12, 3)
    with pytest.raises(ValueError, match=sentence):
        estimator.fit(X, y, sample_domain=domain)


def test_what_cannot_be_done_with_domains(rng):
    X, y, domain = sessions(rng)
    metric = LogEuclideanMetric(1.0).fit(X, y, sample_domain=domain)
    with pytest.raises(ValueError, match="pass sample_domain to transform, or adapt"):
        metric.transform(X)
    with pytest.raises(ValueError, match="pass sample_domain to transform, or adapt"):
        metric.pairwise_kernel(X)
    with pytest.raises(ValueError, match="X has 3 x 3 matrices"):
        metric.adapt(labeled(rng, 12, 3)[0])
    with pytest.raises(ValueError, match="fitted without"):
        LogEuclideanMetric(1.0).fit(X, y).transform(X, domain)
    singular = X.copy()
    singular[:, -1], singular[:, :, -1] = 0, 0
    with pytest.raises(ValueError, match="not positive definite"):
        LogEuclideanMetric(1.0, rank=2).fit(singular, y, sample_domain=domain)
    # The labels are those of the domains: every fold lacks a class.
    with (
        pytest.warns(UserWarning, match="carry the target: 100%"),
        pytest.raises(ValueError, match="expected two classes or more in each fold"),
    ):
        LogEuclideanMetricCV().fit(X[domain < 2], domain[domain < 2], sample_domain=domain[domain < 2])


# -- label shift ------------------------------------------------------------------------------


def two_classes(rng, n, share, mixing):
    """Normal tangent vectors around two class means, seen through a mixing."""
    d, y = 4, (rng.random(n) >= share).astype(int)
    side = np.zeros(10)
    side[[0, 3, 7]] = 0.5, -0.4, 0.3
    V = np.where(y == 0, -1, 1)[:, None] * side + 0.35 * rng.standard_normal((n, 10))
    return congruence(mixing, matrices_at(V, np.eye(d))), y


@pytest.mark.parametrize("with_domains", [False, True])
def test_shares_of_a_session_are_estimated(with_domains):
    """At nine to one most of what the mean loses is won back; at one to one nothing is lost."""
    rng = np.random.default_rng(11)
    X, y = two_classes(rng, 160, 0.5, np.eye(4))
    domain = np.arange(160) // 80 if with_domains else None
    model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,), ranks=(None, 2)), head="centroid")
    model.fit(X, y, sample_domain=domain)
    found = []
    for share in (0.5, 0.9):
        for _ in range(4):
            mixing = sqrtm(spd(rng, 4))
            (buffer, labels), (new, y_new) = (
                two_classes(rng, n, s, mixing) for n, s in ((100, share), (300, 0.5))
            )
            plain, shifted = model.adapt(buffer), model.adapt(buffer, prior="estimate")
            off = np.abs(shifted.prior_ - np.bincount(labels, minlength=2) / 100).max()
            known = model.adapt(buffer, sample_weight=1 / np.bincount(labels)[labels])
            found.append([model.score(new, y_new) for model in (plain, shifted, known)] + [off])
    even, uneven = np.mean(found[:4], axis=0), np.mean(found[4:], axis=0)
    assert even[1] > even[0] - 0.01
    assert uneven[1] > (uneven[0] + uneven[2]) / 2 > uneven[0] + 0.02
    assert max(even[3], uneven[3]) < 0.1


def test_shares_that_cannot_be_estimated(subjects, rng):
    model, X, y = subjects
    with pytest.raises(ValueError, match="prior='guess'"):
        model.adapt(X, prior="guess")
    with pytest.raises(ValueError, match="for matrices without labels"):
        model.adapt(X, y, prior="estimate")
    X, y = labeled(rng, 40, 3)
    neighbors = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,)), head="neighbors", n_neighbors=3).fit(
        X, y
    )
    with pytest.raises(ValueError, match="head_='centroid'"):
        neighbors.adapt(X, prior="estimate")


@pytest.mark.parametrize("dtype", ["uint64", "int64", "int8", "U3", "category"])
def test_domains_keep_their_identity(rng, dtype):
    """Hashes of pandas are of uint64, and three of them near 2**63 are no two numbers of float64."""
    X, y = labeled(rng, 24, 3)
    top = {"uint64": 2**63 + 5, "int64": 2**62, "int8": 120}.get(dtype, 700)
    kind = "uint64" if dtype == "uint64" else "int64"
    given = np.array([1, top, top + 1], dtype=kind)[np.arange(24) % 3]
    given = pd.Series(given.astype(str)).astype("category") if dtype == "category" else given.astype(dtype)
    metric = LogEuclideanMetric(1.0, tol=1e-2).fit(X, y, sample_domain=given)
    assert len(metric.domains_) == 3
    assert set(metric.domains_.tolist()) == set(np.asarray(given).tolist())
    np.testing.assert_array_equal(metric.transform(X, given)[:3], metric.transform(X[:3], given[:3]))


def test_numbers_that_no_integer_type_holds():
    with pytest.raises(ValueError, match="from -1 to 9223372036854775808: expected a range that int64 or"):
        check_domains([-1, 2**63], 2)


@pytest.mark.parametrize("condition", [1e6, 1e12])
def test_shares_of_a_session_of_matrices_far_apart(condition, rng):
    d = 4
    X, y = labeled(rng, 40, d)
    model = LogEuclideanClassifier(LogEuclideanMetric(0.0), cv=2, head="centroid").fit(X, y)
    axes = np.linalg.qr(rng.standard_normal((30, d, d)))[0]
    far = symmetrize((axes * np.geomspace(1, condition, d)) @ axes.mT)
    assert np.isfinite(model.adapt(far, prior="estimate").predict_proba(far)).all()
    mean, target = mean_riemann(far), 0.1 * rng.standard_normal(d * (d + 1) // 2)
    found = find_shifted_mean(far, np.ones(30), mean, target)
    misses = [np.linalg.norm(tangent_vectors(far, point).mean(axis=0) - target) for point in (mean, found)]
    assert misses[1] < 1e-3 * misses[0]


@pytest.mark.parametrize(("condition", "digits"), [(1e6, 1e-6), (1e12, 3e-3)])
def test_shares_of_a_session_are_those_of_it_in_other_units(condition, digits, rng):
    """Mixed by a symmetric matrix and recentered, a session about the identity is what it was."""

    def draw(n, share):
        y = (rng.random(n) < share).astype(int)
        A = rng.standard_normal((n, 4, 30)) * np.where(np.arange(4) == 0, 1 + y[:, None], 1)[..., None]
        return A @ A.mT / 30, y

    model = LogEuclideanClassifier(LogEuclideanMetric(0.0), cv=2, head="centroid").fit(*draw(200, 0.5))
    X, y = draw(80, 0.8)
    X = congruence(invsqrtm(mean_riemann(X)), X)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    moved = congruence((Q * np.geomspace(1, condition**-0.5, 4)) @ Q.T, X)
    here, there = (model.adapt(Z, prior="estimate").prior_ for Z in (X, moved))
    assert here[1] == pytest.approx(y.mean(), abs=0.1)
    np.testing.assert_allclose(there, here, atol=digits)


def test_float32_is_symmetric_up_to_its_own_rounding(rng):
    """Everywhere, adaptation with labels and to other shares included; `compare` runs as many methods."""
    X, y = labeled(rng, 40, 3)
    noise = 3e-7 * np.abs(X).max(axis=(1, 2), keepdims=True) * rng.standard_normal(X.shape)
    rough = (X + noise).astype(np.float32)
    model = LogEuclideanClassifier(cv=2, head="centroid").fit(rough, y)
    for adapted in (model.adapt(rough), model.adapt(rough, y), model.adapt(rough, prior="estimate")):
        assert adapted.predict(rough).shape == (40,)
    plan = make_plan(Matrices(rough, y, None, "rough"))
    np.testing.assert_array_equal(plan.X, plan.X.mT)


# -- domains that carry the target -----------------------------------------------------


def target_of(domain, share, n_classes, rng):
    """Targets of which a share of the variance is that of their domains; 0 classes: regression targets."""
    if n_classes:
        of_domain = (np.arange(domain.max() + 1) % n_classes)[domain]
        return np.where(
            rng.uniform(size=domain.size) < share, of_domain, rng.integers(0, n_classes, domain.size)
        )
    level = rng.standard_normal(domain.max() + 1)
    level = (level - level.mean()) / level.std()
    return np.sqrt(share) * level[domain] + np.sqrt(1 - share) * rng.standard_normal(domain.size)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_the_share_between_domains_is_an_adjusted_r2(n_classes, rng):
    domain = rng.integers(0, 5, 60)
    y = target_of(domain, 0.5, n_classes, rng)
    Y = np.eye(n_classes)[y] if n_classes else y[:, None]
    w = rng.integers(0, 2, 60)  # counts matrices
    n, dummies = w.sum(), np.eye(5)[domain]
    predicted = LinearRegression().fit(dummies, Y, w).predict(dummies)
    about = Y - np.average(Y, axis=0, weights=w)
    r2 = 1 - np.sum(w @ (Y - predicted) ** 2) / np.sum(w @ about**2)
    expected = 1 - (1 - r2) * (n - 1) / (n - 5)
    names = np.array(list("edcba"))[domain]
    np.testing.assert_allclose(share_between_domains(y, names, w), expected, atol=1e-12)


def test_domains_carry_the_target_where_it_is_mostly_theirs_never_where_unrelated(rng):
    for draw in range(200):
        domain = np.repeat(np.arange(rng.integers(3, 21)), rng.integers(5, 51))
        shares = [
            share_between_domains(target_of(domain, share, (0, 2, 4)[draw % 3], rng), domain)
            for share in (0, 0.9)
        ]
        assert shares[0] < CONFOUNDED <= shares[1]


def test_subjects_of_eegmmi_do_not_carry_the_target(data_folder):
    path = data_folder / "eegmmi" / "covariances_S001-S020.npz"
    with np.load(path) as file:
        y = [file[f"y{k}"] for k in range(1, 21)]
    assert abs(share_between_domains(np.concatenate(y), np.repeat(np.arange(20), [len(v) for v in y]))) < 0.05


@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS[:1], ESTIMATORS[-1], LogEuclideanClassifier(cv=2), LogEuclideanRegressor(cv=2)]
)
def test_domains_that_carry_the_target_are_warned_of(estimator, rng):
    X, _, domain = sessions(rng)
    y = target_of(domain, 0.9, 0 if isinstance(estimator, LogEuclideanRegressor) else 2, rng)
    share = share_between_domains(y, domain)
    with pytest.warns(UserWarning, match=f"carry the target: {share:.0%} of the variance of y") as caught:
        estimator.fit(X, y, sample_domain=domain)
    assert [warning.filename for warning in caught] == [__file__]
