"""The estimator on odd but good input, and what it learns."""

from dataclasses import replace

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from random_matrices import labeled, rotation, spd
from spdmetric import CommonRange, LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV, geometry
from spdmetric.datasets import make_toy
from spdmetric.estimators import _fitted, embedding, preprocessing
from spdmetric.geometry import distance_riemann, mean_euclid, mean_logeuclid, mean_riemann
from spdmetric.linalg import symmetric
from spdmetric.linalg.symmetric import congruence
from spdmetric.objectives import alignment

# -- what is learned --------------------------------------------------------------


def test_what_a_fitted_metric_says_of_itself(rng):
    X, y = labeled(rng, 30, 4, classes=3)
    metric = LogEuclideanMetric(3.0).fit(X, y)
    W, G = metric.components_, metric.reference_
    np.testing.assert_allclose(W, W.T, atol=1e-14)
    np.testing.assert_allclose(W @ W, np.linalg.inv(G), rtol=1e-8, atol=1e-10)
    assert metric.radius_ <= 3.0 * (1 + 1e-9)
    G0 = mean_riemann(X)
    assert float(distance_riemann(G0, G)) == pytest.approx(metric.radius_, rel=1e-8)
    assert np.linalg.slogdet(G)[1] == pytest.approx(np.linalg.slogdet(G0)[1], abs=1e-8)
    assert 0 < metric.alignment_ < 1
    assert metric.solution_.converged
    assert metric.n_iter_ == metric.solution_.n_iter > 0
    assert metric.solution_.value == 1 - metric.alignment_
    assert "Converged" in metric.solution_.status.value
    np.testing.assert_array_equal(metric.classes_, [0, 1, 2])


def test_far_out_the_vectors_keep_their_digits(rng):
    X, y = labeled(rng, 20, 4)
    metric = LogEuclideanMetric(25.0, tol=1e-4).fit(X, y)
    assert metric.radius_ > 15
    np.testing.assert_allclose(metric.inverse_transform(metric.transform(X)), X, rtol=1e-6, atol=1e-9)


def test_get_metric_outlives_a_refit(rng):
    X, y = labeled(rng, 20, 4)
    metric = LogEuclideanMetric(2.0).fit(X, y)
    distance, before = metric.get_metric(), metric.get_metric()(X[0], X[1])
    metric.fit(100 * X[::-1], y)
    assert distance(X[0], X[1]) == before


MEANS = {"riemann": mean_riemann, "logeuclid": mean_logeuclid, "euclid": mean_euclid}


@pytest.mark.parametrize("init", [*MEANS, "identity"])
def test_inits(init, rng):
    X, y = labeled(rng, 20, 4)
    G0 = np.eye(4) if init == "identity" else MEANS[init](X)
    np.testing.assert_allclose(LogEuclideanMetric(0, init=init).fit(X, y).reference_, G0, rtol=1e-11)
    named, given = LogEuclideanMetric(2, init=init).fit(X, y), LogEuclideanMetric(2, init=G0).fit(X, y)
    np.testing.assert_allclose(named.reference_, given.reference_, rtol=1e-5)
    assert float(distance_riemann(G0, named.reference_)) <= 2 * (1 + 1e-9)


KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf"])


def test_weights_of_classes_by_label(rng):
    X, y = labeled(rng, 30, 3, classes=3)
    names = np.array(["a", "b", "c"])[y]
    by_label = LogEuclideanMetric(2, class_weight={"a": 2.0, "c": 0.5}).fit(X, names)
    by_hand = LogEuclideanMetric(2).fit(X, names, sample_weight=np.array([2.0, 1.0, 0.5])[y])
    np.testing.assert_array_equal(by_label.reference_, by_hand.reference_)
    stream = LogEuclideanMetric(2, class_weight={0: 2.0}, random_state=0).partial_fit(X, y, [0, 1, 2])
    weight = np.where(y == 0, 2.0, 1.0)
    by_weight = LogEuclideanMetric(2, random_state=0).partial_fit(X, y, [0, 1, 2], weight)
    np.testing.assert_array_equal(stream.components_, by_weight.components_)


@pytest.mark.parametrize("rank", [None, 2])
def test_congruence_of_the_data_carries_the_reference_along(rank, rng):
    """Whatever the units and the mixing of the channels, the same metric is learned."""
    X, y = labeled(rng, 20, 3)
    moved = congruence(rng.standard_normal((3, 3)) + 3 * np.eye(3), X)
    here, there = (LogEuclideanMetric(3, rank=rank).fit(Z, y) for Z in (X, moved))
    assert there.alignment_ == pytest.approx(here.alignment_, rel=1e-7)
    pairs = np.stack([np.stack([X, X[::-1]], axis=1), np.stack([moved, moved[::-1]], axis=1)])
    np.testing.assert_allclose(there.pair_distance(pairs[1]), here.pair_distance(pairs[0]), rtol=1e-3)


@KERNELS
def test_the_learned_kernel(kernel, rng):
    X, y, X_test, y_test = make_toy(d=4, random_state=0)
    metric = LogEuclideanMetric(3.0, kernel=kernel, tol=1e-3).fit(X, y)
    assert (metric.gamma_ is None) is (kernel == "linear")
    u, v = metric.transform(X), metric.transform(X_test)
    expected = v @ u.T if kernel == "linear" else rbf_kernel(v, u, gamma=metric.gamma_)
    np.testing.assert_allclose(metric.pairwise_kernel(X_test, X), expected, rtol=1e-10, atol=1e-12)
    K = metric.pairwise_kernel(X)
    np.testing.assert_allclose(K, metric.pairwise_kernel(X, X), rtol=1e-12)  # BLAS has its own way for u u'
    assert np.linalg.eigvalsh(K).min() > -1e-9 * np.trace(K)
    score = SVC(kernel="precomputed").fit(K, y).score(metric.pairwise_kernel(X_test, X), y_test)
    assert score == SVC(kernel=kernel, gamma=metric.gamma_ or 1.0).fit(u, y).score(v, y_test) > 0.8
    strict_kernel = metric.pairwise_kernel(strict.asarray(X_test), strict.asarray(X))
    np.testing.assert_allclose(np.asarray(strict_kernel), expected, rtol=1e-8, atol=1e-10)
    pandas = metric.set_output(transform="pandas")
    np.testing.assert_array_equal(pandas.pairwise_kernel(X), K)
    with pytest.raises(ValueError, match=r"Y\[0\] is not positive definite"):
        metric.pairwise_kernel(X, -X)


# -- odd but good input ---------------------------------------------------------------


@pytest.mark.parametrize(("kind", "digits"), [("channels of different units", 1e-6), ("mixed", 5e-2)])
def test_condition_numbers_to_1e12(kind, digits, rng):
    """Graded diagonals keep their digits; when they are mixed, what float64 can hold is what is left."""
    X, y = labeled(rng, 30, 4)
    D = np.diag(np.logspace(0, -5.5, 4))
    M = D if kind == "channels of different units" else rotation(rng, 4) @ D
    plain, harsh = LogEuclideanMetric(3).fit(X, y), LogEuclideanMetric(3).fit(congruence(M, X), y)
    assert np.linalg.cond(congruence(M, X)[0]) > 1e10
    assert harsh.alignment_ == pytest.approx(plain.alignment_, rel=digits)
    assert harsh.radius_ <= 3 * (1 + 1e-9)
    assert np.isfinite(harsh.transform(congruence(M, X))).all()


@KERNELS
def test_two_matrices(kernel, rng):
    metric = LogEuclideanMetric(kernel=kernel).fit(spd(rng, 2, 3), ["a", "b"])
    assert metric.alignment_ == pytest.approx(1.0, abs=1e-12)


# -- reporting ------------------------------------------------------------------------


def test_warnings_point_at_the_line_of_the_caller(rng):
    X, y = labeled(rng, 20, 4)
    sentence = r"LogEuclideanMetric: Stopped after max_iter.*tol=0.001"
    with pytest.warns(ConvergenceWarning, match=sentence) as caught:
        LogEuclideanMetric(max_iter=1).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UserWarning, match="none of") as caught:
        LogEuclideanMetric(1.0).partial_fit(X, y, classes=[0, 1, 2])
    assert [warning.filename for warning in caught] == [__file__]


def test_blas_runs_one_thread(rng, monkeypatch):
    """Matrices of the size of image sets took forty times as long where other processes wanted the cores."""
    X, y = labeled(rng, 20, 4)
    metric, classifier = LogEuclideanMetric(1.0).fit(X, y), LogEuclideanClassifier().fit(X, y)
    vectors, seen = metric.transform(X), {}
    calls = {
        "fit": lambda: LogEuclideanMetric(1.0).fit(X, y),
        "choice": lambda: LogEuclideanMetricCV(radii=(1,), ranks=(None,), cv=2).fit(X, y),
        "transform": lambda: metric.transform(X),
        "inverse_transform": lambda: metric.inverse_transform(vectors),
        "pair_distance": lambda: metric.pair_distance(np.stack([X[:5], X[5:10]], axis=1)),
        "pairwise_kernel": lambda: metric.pairwise_kernel(X),
        "adapt": lambda: metric.adapt(X),
        "predict": lambda: classifier.predict(X),
        "classifier.adapt": lambda: classifier.adapt(X, y),
        "CommonRange": lambda: CommonRange().fit_transform(X),
        "mean_riemann": lambda: geometry.mean_riemann(X),
        "pairwise_distance": lambda: geometry.pairwise_distance(X),
    }
    real = symmetric.array_namespace  # what every one of them asks, inside

    def look(*arrays):
        pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        seen.setdefault(name, set()).update(pools)
        return real(*arrays)

    for module in (symmetric, geometry, _fitted, embedding, preprocessing):
        monkeypatch.setattr(module, "array_namespace", look)
    with threadpool_limits(2, user_api="blas"):
        for name, call in calls.items():  # noqa: B007 - look reads the name
            call()
    assert seen == {name: {1} for name in calls}


def test_a_radius_of_zero_computes_no_gradient(rng, monkeypatch):
    X, y = labeled(rng, 20, 4)
    monkeypatch.delattr(alignment.Evaluation, "frame_gradient")
    metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, y)
    assert metric.solution_.residual == 0
    assert metric.solution_.converged


def test_verbose_prints_and_silence_does_not(rng, capsys):
    X, y = labeled(rng, 20, 4)
    LogEuclideanMetric(1.0).fit(X, y)
    assert capsys.readouterr().out == ""
    metric = LogEuclideanMetric(1.0, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == metric.n_iter_ + 1
    assert "alignment" in lines[0]


# -- bad input --------------------------------------------------------------------------

BAD_PARAMETERS = {
    "negative radius": ({"radius": -1}, r"radius=-1: expected a finite number >= 0"),
    "NaN radius": ({"radius": np.nan}, r"radius=nan: expected a finite number"),
    "infinite radius": ({"radius": np.inf}, r"radius=inf: .*Without a bound the search runs away"),
    "radius in words": ({"radius": "ten"}, r"radius='ten'"),
    "init": (
        {"init": "mode"},
        r"init='mode': .* 'riemann', 'logeuclid', 'euclid', 'median', 'identity', or an",
    ),
    "init of another size": ({"init": np.eye(3)}, r"init has shape \(3, 3\), but .* are 4 x 4"),
    "init not SPD": ({"init": -np.eye(4)}, r"init\[0\] is not positive definite"),
    "solver": ({"solver": "sgd"}, r"solver='sgd': expected one of 'trust-region', 'gradient', 'stochastic'"),
    "class_weight": ({"class_weight": "equal"}, r"class_weight='equal': expected one of None, 'balanced'"),
    "class_weight of nothing": (
        {"class_weight": {0: 0.0}},
        r"class_weight\[0\]=0.0: expected a finite number",
    ),
    "misspelled": ({"class_weight": {"0": 2.0}}, r"class_weight names \['0'\], .* leaves out \[0, 1\]"),
    "radius past float64": ({"radius": 1e3}, r"radius=1000.0: expected a finite number >= 0, at most 300"),
    "n_jobs": ({"n_jobs": 1.5}, r"n_jobs=1.5: .*expected a whole number"),
    "weighting": ({"weighting": "round"}, r"weighting='round': expected one of None, 'discriminant'"),
    "weighting of rbf": (
        {"weighting": "discriminant", "kernel": "rbf"},
        r"weighting='discriminant' needs kernel='linear'",
    ),
    "tol": ({"tol": 0}, r"tol=0: expected a positive number"),
    "max_iter": ({"max_iter": 0}, r"max_iter=0: expected a whole number >= 1"),
    "kernel": ({"kernel": "gaussian"}, r"kernel='gaussian': expected one of 'linear', 'rbf'"),
    "mini-batches": ({"kernel": "rbf", "solver": "stochastic"}, "all pairs of matrices"),
    "negative gamma": ({"kernel": "rbf", "gamma": -1}, r"gamma=-1: expected a finite number > 0, or None"),
    "gamma in words": ({"kernel": "rbf", "gamma": "scale"}, r"gamma='scale': expected a finite number"),
    "gamma of linear": ({"gamma": 1.0}, r"gamma=1.0 is of the Gaussian kernel, and kernel='linear' has none"),
    "narrow": ({"kernel": "rbf", "gamma": 1e6}, r"gamma=1000000.0: .* the same for all .*near .*0\.\d"),
    "wide": ({"kernel": "rbf", "gamma": 1e-309}, r"gamma=1e-309: .*nothing can be learned"),
    "callback": ({"callback": 3}, r"callback=3: expected a function"),
}


@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_get_a_sentence(case, rng):
    parameters, sentence = BAD_PARAMETERS[case]
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanMetric(**parameters).fit(*labeled(rng, 20, 4))


def test_a_start_too_far_from_the_data(rng):
    X, y = labeled(rng, 20, 4)
    init = congruence(rotation(rng, 4), np.diag([1.0, 1e-4, 1e-8, 3e-15]))
    with pytest.raises(ValueError, match=r"cannot be compared with the start in float64.*another init"):
        LogEuclideanMetric(init=init).fit(congruence(rotation(rng, 4), np.diag([1, 1, 1e-5, 1e-6]) * X), y)


def test_transform_beyond_float64(rng):
    """A factor that float64 cannot apply to these matrices, whatever way it was learned."""
    X, y = labeled(rng, 20, 4)
    metric = LogEuclideanMetric(1.0).fit(X, y)
    W = rotation(rng, 4) @ np.diag([1e9, 1, 1, 1e-9]) @ metric.embedding_.factors[0]
    metric.embedding_ = replace(metric.embedding_, factors=(W,))
    with pytest.raises(ValueError, match=r"too close to singular to compare .* smaller radius"):
        metric.transform(X)


def test_many_classes_are_no_regression(rng):
    """scikit-learn warns of as many classes as labels; the list of classes must not look like that."""
    X, _ = labeled(rng, 90, 3)
    metric = LogEuclideanMetric(1.0, max_iter=50, tol=0.5).fit(X, np.arange(90) % 45)
    assert metric.classes_.size == 45


@pytest.mark.parametrize("solver", ["trust-region", "gradient"])
@pytest.mark.parametrize("radius", [40.0, 80.0])
@pytest.mark.parametrize("seed", [0, 9, 25, 38])
def test_a_long_first_step_is_taken_back(solver, radius, seed):
    """On a large sphere all is flat: a run that rests there, worse than at the mean, begins again."""
    A = np.random.default_rng(seed).standard_normal((20, 3, 9))
    X, y = A @ A.transpose(0, 2, 1), np.arange(20) % 2
    metric = LogEuclideanMetric(radius, solver=solver, max_iter=2000).fit(X, y)
    assert metric.solution_.converged
    assert metric.solution_.residual <= 1e-3
    assert metric.alignment_ > LogEuclideanMetric(0.0).fit(X, y).alignment_
