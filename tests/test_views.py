"""Several views: one is what there was, copies are copies, padding is nothing, and the gradient is right."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import literal
from random_matrices import labeled, spd, symmetric
from spdmetric import (
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    LogEuclideanRegressor,
    PairDistanceDisplay,
    ReferenceSpectrumDisplay,
    compare,
    load,
    save,
    stack_views,
)
from spdmetric.cli import main
from spdmetric.geometry import geodesic, mean_riemann
from spdmetric.io.tables import read_column
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.objectives.start import find_start

RADIUS = 3.0


@pytest.fixture(scope="module")
def one():
    return labeled(np.random.default_rng(0), 48, 4, classes=3)


@pytest.fixture(scope="module")
def several(one):
    """Three views of different sizes, in a dict."""
    X, y = one
    rng = np.random.default_rng(1)
    noise = spd(rng, len(X), 2, spread=0.3)
    return {"large": X, "small": noise + X[:, 1:3, 1:3], "other": labeled(rng, len(X), 4, classes=3)[0]}, y


def vary(**others):
    return [
        LogEuclideanMetric(RADIUS, **others),
        LogEuclideanMetric(RADIUS, rank=2, **others),
        LogEuclideanMetric(RADIUS, weighting="discriminant", **others),
    ]


KINDS = [*vary(), *vary(solver="gradient")[:2], *vary(solver="stochastic", random_state=0)[:2]]
KINDS += [LogEuclideanMetric(RADIUS, kernel="rbf"), LogEuclideanMetric(0.0, init="logeuclid")]


@pytest.mark.parametrize("metric", KINDS, ids=repr)
def test_one_view_gives_the_bits_of_three_axes(metric, one):
    X, y = one
    weight, domain = 1 + np.arange(len(y)) % 2, np.arange(len(y)) % 2
    plain = LogEuclideanMetric(**metric.get_params()).fit(X, y, weight)
    views = metric.fit(X[:, None], y, weight)
    vectors = plain.transform(X)
    assert np.array_equal(views.transform(X[:, None]), vectors)
    assert np.array_equal(views.components_[0], plain.components_)
    assert np.array_equal(views.pairwise_kernel(X[:, None]), plain.pairwise_kernel(X))
    pairs = np.stack([X, X[::-1]], axis=1)
    assert np.array_equal(views.pair_distance(pairs[:, :, None]), plain.pair_distance(pairs))
    if metric.weighting is None:
        assert np.array_equal(views.inverse_transform(vectors)[:, 0], plain.inverse_transform(vectors))
    if metric.rank is None:
        assert np.array_equal(views.reference_[0], plain.reference_)
    if metric.init == "riemann":
        adapted = plain.adapt(X[:9]).partial_adapt(X[9:20])
        assert np.array_equal(
            views.adapt(X[:9, None]).partial_adapt(X[9:20, None]).transform(X[:, None]), adapted.transform(X)
        )
    if metric.kernel == "linear" and metric.solver == "trust-region":
        plain.fit(X, y, sample_domain=domain)
        views.fit(X[:, None], y, sample_domain=domain)
        assert np.array_equal(views.transform(X[:, None], domain), plain.transform(X, domain))
        for rows in (slice(0, 20), slice(20, 48)):
            plain.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
            views.partial_fit(X[rows, None], y[rows], classes=[0, 1, 2])
        assert np.array_equal(views.transform(X[:, None]), plain.transform(X))


@pytest.mark.parametrize(
    "estimator",
    [
        LogEuclideanClassifier(),
        LogEuclideanClassifier(LogEuclideanMetric(2.0, rank=2, weighting="discriminant"), head="centroid"),
        LogEuclideanMetricCV(radii=[0, 2], ranks=[None]),
        LogEuclideanRegressor(LogEuclideanMetricCV(radii=[0], ranks=[None, 2])),
    ],
    ids=repr,
)
def test_one_view_gives_the_choice_of_three_axes(estimator, one):
    X, y = one
    y = X[:, 0, 0] if isinstance(estimator, LogEuclideanRegressor) else y
    of = "predict_proba" if hasattr(estimator, "predict_proba") else "predict"
    of = of if hasattr(estimator, "predict") else "transform"
    plain, views = (type(estimator)(**estimator.get_params(deep=False)) for _ in range(2))
    plain.fit(X, y)
    views.fit(X[:, None], y)
    assert np.array_equal(getattr(views, of)(X[:, None]), getattr(plain, of)(X))
    adapted, there = plain.adapt(X[:24]), views.adapt(X[:24, None])
    assert np.array_equal(getattr(there, of)(X[:, None]), getattr(adapted, of)(X))
    if isinstance(estimator, LogEuclideanClassifier):
        adapted, there = plain.adapt(X[:24], y[:24]), views.adapt(X[:24, None], y[:24])
        assert np.array_equal(there.predict_proba(X[:, None]), adapted.predict_proba(X))


@pytest.mark.parametrize("radius", [0.0, 4.0])
def test_copies_of_a_view_give_distances_times_the_root_of_their_number(radius, one):
    X, y = one
    plain = LogEuclideanMetric(radius, tol=1e-8).fit(X, y)
    copies = LogEuclideanMetric(radius, tol=1e-8).fit(np.repeat(X[:, None], 3, axis=1), y)
    pairs = np.stack([X, X[::-1]], axis=1)
    found = copies.pair_distance(np.repeat(pairs[:, :, None], 3, axis=2))
    assert np.allclose(found, np.sqrt(3) * plain.pair_distance(pairs), rtol=1e-8)
    assert np.allclose(copies.view_scales_, 1, rtol=1e-12)
    assert np.isclose(copies.radius_, plain.radius_, rtol=1e-9)


@pytest.mark.parametrize("metric", KINDS[:3], ids=repr)
def test_order_of_views_and_padding_do_not_matter(metric, several):
    views, y = several
    names, columns = list(views), [2, 0, 1]
    X = stack_views(views)
    turned = stack_views({names[k]: views[names[k]] for k in columns})
    assert np.array_equal(turned, X[:, columns])
    metric.set_params(radius=1.0, tol=1e-10)
    distances = metric.fit(X, y).pair_distance(np.stack([X, X[::-1]], axis=1))
    scales, W = metric.view_scales_, metric.components_
    other = metric.fit(turned, y)
    assert np.allclose(other.pair_distance(np.stack([turned, turned[::-1]], axis=1)), distances, rtol=1e-7)
    assert np.allclose(other.view_scales_, scales[columns], rtol=1e-9)
    wide = np.tile(np.eye(6), (*X.shape[:2], 1, 1))  # all views padded
    wide[..., :4, :4] = X
    padded = metric.fit(wide, y)
    assert np.allclose(padded.pair_distance(np.stack([wide, wide[::-1]], axis=1)), distances, rtol=1e-10)
    assert np.array_equal(padded.components_[..., :4], W)
    assert not padded.components_[..., 4:].any()
    assert padded.transform(wide).shape == metric.fit(X, y).transform(X).shape


def test_gradient_is_that_of_the_literal_transcription(one):
    rng = np.random.default_rng(3)
    X = np.stack([labeled(rng, 8, 3)[0], labeled(rng, 8, 3)[0]], axis=1)
    y = np.arange(8) % 2
    data = Data(X, ClassTarget.from_codes(y))
    start = find_start(data, "riemann", None)
    ball = start.ball(None, 2.0)
    step = np.hstack([symmetric(rng, 3, traceless=True) for _ in range(2)])
    point = ball.retract(ball.center, 0.3 * step)
    here = Misalignment(data.whitened(start.factor)).at(point)

    def alignment(coordinates):
        G = [
            np.linalg.inv(W0) @ literal.expm(S) @ np.linalg.inv(W0).T
            for W0, S in zip(start.factor.views, coordinates, strict=True)
        ]
        K = sum(a**2 * literal.gram(G[v], X[:, v]) for v, a in enumerate(start.scales))
        U = literal.centering(8)
        h, target = U @ K @ U, U @ np.outer(2 * y - 1, 2 * y - 1) @ U
        return np.sum(h * target) / np.linalg.norm(h) / np.linalg.norm(target)

    assert np.isclose(1 - here.value, alignment(point.split(point.S)), rtol=1e-9)
    along, t = np.hstack([symmetric(rng, 3) for _ in range(2)]), 1e-4
    ahead, behind = (alignment(point.split(point.S + sign * t * along)) for sign in (1, -1))
    assert np.isclose(-np.vdot(here.gradient, along), (ahead - behind) / (2 * t), rtol=1e-5)


@pytest.mark.parametrize("where", ["chunks", "file", "dask"])
@pytest.mark.parametrize("metric", KINDS[:3], ids=repr)
def test_wherever_samples_are_the_metric_is_the_same(metric, where, several, tmp_path, monkeypatch):
    views, y = several
    X = stack_views(views)
    domain = np.repeat([0, 1], len(y) // 2)
    there = np.asarray(X)
    if where == "chunks":
        monkeypatch.setattr("spdmetric.objectives.data.default_chunk_size", lambda d: 24)
    if where == "file":
        np.save(tmp_path / "X.npy", X)
        there = np.load(tmp_path / "X.npy", mmap_mode="r")
    if where == "dask":
        there = pytest.importorskip("dask.array").from_array(np.asarray(X), chunks=(16, 3, 4, 4))
    for domains in (None, domain):
        metric.set_params(tol=1e-8).fit(X, y, sample_domain=domains)
        expected, means = metric.transform(X, domains), metric.domain_means_
        vectors = np.asarray(metric.transform(there, domains))
        assert np.allclose(vectors, expected, rtol=0, atol=1e-12)
        assert np.allclose(
            np.asarray(metric.fit(there, y, sample_domain=domains).transform(X, domains)),
            expected,
            rtol=0,
            atol=1e-7,
        )
        assert domains is None or np.allclose(metric.domain_means_, means, rtol=1e-9)


def test_each_view_is_recentered_by_its_own_mean(several):
    views, y = several
    X, domain = stack_views(views), np.repeat([0, 1], len(y) // 2)
    metric = LogEuclideanMetric(0.0).fit(X, y, sample_domain=domain)
    assert np.allclose(metric.domain_means_[1, 1, :2, :2], mean_riemann(views["small"][domain == 1]))
    assert np.array_equal(metric.domain_means_[:, 1, 2:], np.broadcast_to(np.eye(4)[2:], (2, 2, 4)))
    first, second = metric.adapt(X[:9]), metric.adapt(X[:9]).partial_adapt(X[9:])
    moved = [mean_riemann(X[:9, 2]), mean_riemann(X[9:, 2])]
    assert np.allclose(first.embedding_.domain_means[2], moved[0])
    assert np.allclose(second.embedding_.domain_means[2], geodesic(*moved, (len(X) - 9) / len(X)))


@pytest.mark.parametrize("metric", [*vary(), LogEuclideanMetric(2.0, rank=3)], ids=repr)
def test_what_a_metric_of_views_gives(metric, several, tmp_path):
    views, y = several
    X = stack_views(views)
    m = metric.rank or 4
    metric.fit(X, y)
    assert metric.components_.shape == (3, m, 4)
    assert metric.n_features_in_ == 4
    save(metric, tmp_path / "metric.skops")
    vectors = metric.transform(X)
    assert np.array_equal(load(tmp_path / "metric.skops").transform(X), vectors)
    assert np.allclose(metric.transform(X.astype(np.float32)), vectors, atol=1e-3)
    assert np.isclose(metric.get_metric()(X[0], X[1]), np.linalg.norm(vectors[0] - vectors[1]))
    names = metric.get_feature_names_out(list("abcd"))
    assert len(set(names)) == vectors.shape[1]
    if metric.rank is None and metric.weighting is None:
        assert np.allclose(metric.inverse_transform(vectors), X, rtol=1e-9)
        assert list(names[9:14]) == ["large·d·d", "small·a·a", "small·a·b", "small·b·b", "other·a·a"]
        spread = [np.std(vectors[:, rows], axis=0) for rows in (slice(10), slice(10, 13), slice(13, 23))]
        start = LogEuclideanMetric(0.0).fit(X, y).transform(X)
        spread = [np.sqrt(np.sum(np.var(start[:, rows], axis=0))) for rows in (slice(10), slice(10, 13))]
        assert np.isclose(*spread)
        assert metric.reference_.shape == (3, 4, 4)
        for view, size in (("small", 2), (2, 4), (None, 4)):
            assert len(ReferenceSpectrumDisplay.from_estimator(metric, view=view).values) == size
        with pytest.raises(ValueError, match="expected one of those that the metric uses"):
            ReferenceSpectrumDisplay.from_estimator(metric, view="none")
        assert PairDistanceDisplay.from_estimator(metric, X, y).figure_ is not None


def test_first_view_alone_is_taken_unless_all_are_clearly_better():
    rng = np.random.default_rng(5)
    X, y = labeled(rng, 60, 3)
    noise = labeled(rng, 60, 3)[0][rng.permutation(60)]
    for views, chosen, used in (([X, noise], "first", 1), ([noise, X], "all", 2)):
        model = LogEuclideanClassifier().fit(np.stack(views, axis=1), y)
        assert model.metric_.best_params_["views"] == chosen
        assert np.count_nonzero(model.metric_.view_scales_) == used == len(model.metric_.reference_)
        assert set(model.metric_.cv_results_["param_views"]) == {"first", "all"}
    given = LogEuclideanClassifier(LogEuclideanMetric(0.0)).fit(np.stack([X, noise], axis=1), y)
    assert "views" not in given.metric_.best_params_
    assert np.count_nonzero(given.metric_.view_scales_) == 2


def test_classifier_of_views_is_carried_saved_and_validated(several, tmp_path):
    views, y = several
    X = stack_views({name: views[name] for name in ("small", "large", "other")})
    for domain in (None, np.repeat([0, 1], len(y) // 2)):
        model = LogEuclideanClassifier(LogEuclideanMetric(1.0, rank=2), head="centroid")
        model.fit(X, y, sample_domain=domain)
        save(model, tmp_path / "model.skops")
        for same in (model, load(tmp_path / "model.skops")):
            there = same.adapt(X[:24]), same.adapt(X[:24], y[:24]), same.adapt(X[:24], prior="estimate")
            assert all(one.score(X, y) > 0.5 for one in there)
    scores = cross_val_score(LogEuclideanClassifier(LogEuclideanMetric(0.0)), X, y, cv=2, error_score="raise")
    assert scores.min() > 0.5


def test_commands_take_samples_of_several_matrices(several, tmp_path, capsys):
    views, y = several
    X, (data, model) = np.asarray(stack_views(views)), (tmp_path / name for name in ("X.npz", "m.skops"))
    np.savez(data, X=X, y=y)
    main(["fit", str(data), "-o", str(model), "--radius", "0", "--rank", "full"])
    assert "48 samples of 3 matrices 4 x 4" in capsys.readouterr().out
    main(["predict", str(model), str(data), "-o", str(tmp_path / "y.csv")])
    np.testing.assert_array_equal(
        read_column(tmp_path / "y.csv", 48, ("label",)).astype(int), load(model).predict(X)
    )
    X[7, 1, 0, 0] = np.nan
    np.savez(data, X=X, y=y)
    assert main(["fit", str(data), "-o", str(model)]) == 2
    assert "1 of 48 cannot be used, X[7] (view 1: contains NaN" in capsys.readouterr().err


def test_compare_gives_all_views_to_our_metrics_and_the_first_to_others(several, tmp_path):
    views, y = several
    X, groups = stack_views(views), np.arange(48) // 16
    methods = ("mdm", "euclid", "logeuclid-mean-lda", "logeuclid-mean-logistic")
    report = compare(X, y, groups, methods=methods)
    first = compare(views["large"], y, groups, methods=methods)
    means = [
        {entry: own["accuracy"].mean for entry, own in of.verdict.scores.items()} for of in (report, first)
    ]
    for entry in means[0]:
        if entry.method in ("mdm", "euclid"):
            assert means[0][entry] == means[1][entry], entry
    vectors = LogEuclideanMetric(0.0).fit(X, y).transform(X)
    made = report.best_estimator("logeuclid-mean-lda")
    np.testing.assert_array_equal(made.predict(X), clone(made[-1]).fit(vectors, y).predict(vectors))
    save(report.best_estimator("mdm"), tmp_path / "mdm.skops")
    np.testing.assert_array_equal(
        load(tmp_path / "mdm.skops").predict(X), report.best_estimator("mdm").predict(X)
    )
    low = compare(X, y, methods="logeuclid-kta-rank", repeats=1)
    low.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "48 samples of 3 matrices of size 4" in page
    rank = low.best_estimator()[0].components_.shape[1]
    assert f"learned from all 48 matrices: rank {rank};" in " ".join(page.split())


def test_names_go_with_samples_and_with_nothing_else(several):
    X = stack_views(several[0])
    names = ("large", "small", "other")
    for some in (X, X[:5], X[[0, 3]], X[np.arange(48) % 2 == 0], X[2:4, ...], pickle.loads(pickle.dumps(X))):
        assert some.view_names == names
    for other in (X[:, ::-1], X[0], X[:, 0], X * 1, np.concatenate([X, X])):
        assert getattr(other, "view_names", None) is None
    assert type(X[0, 0, 0, 0]) is np.float64


def test_bad_views_get_a_sentence(several):
    views, y = several
    X = np.asarray(stack_views(views))
    metric = LogEuclideanMetric(1.0).fit(stack_views(views), y)
    renamed = stack_views({"large": views["large"], "b": views["small"], "other": views["other"]})
    padded, constant, singular = X.copy(), X.copy(), X.copy()
    padded[7, 1, 3, 3] = 2.0
    constant[:, 2] = constant[0, 2]
    singular[7, 2] = np.diag([1.0, 1.0, 1.0, 0.0])
    expected = [
        (lambda: stack_views({"a": X[:, 0], "b": X[1:, 1]}), r"View 'b' has 47 samples, and view 'a' has 48"),
        (lambda: metric.transform(renamed), r"X has the views \['large', 'b', 'other'\]: expected"),
        (lambda: metric.transform(X[:, :2]), r"X has shape \(48, 2, 4, 4\): expected \(n_samples, 3, d, d\)"),
        (lambda: metric.transform(X[:, 0]), r"X has shape \(48, 4, 4\): expected \(n_samples, 3, d, d\)"),
        (lambda: LogEuclideanMetric().fit(X[:, 0], y).transform(X), "fit had no views"),
        (lambda: metric.transform(padded), r"X\[:, 1\]\[7\] is not padded with the identity beyond 2 x 2"),
        (lambda: metric.fit(constant, y), r"All matrices of view 2, X\[:, 2\], are the same"),
        (lambda: metric.fit(singular, y), r"X\[:, 2\]\[7\] is not positive definite"),
        (lambda: metric.transform(singular), r"X\[:, 2\]\[7\] is not positive definite"),
        (lambda: metric.pair_distance(X[:, :2]), r"Expected pairs of shape \(n_pairs, 2, 3, d, d\)"),
        (
            lambda: LogEuclideanMetric(init=np.eye(4)).fit(X, y),
            r"init has shape \(4, 4\): expected \(3, 4, 4\)",
        ),
    ]
    for call, sentence in expected:
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(TypeError, match=r"X is a dict: expected an array. Of views spdmetric.stack_views"):
        metric.transform(views)
