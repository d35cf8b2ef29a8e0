"""A number to predict: the generative set, the checks, alignment and shape of continuous targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_regression
from spdmetric.linalg.symmetric import congruence, logm, vech
from spdmetric.validation import check_psd, check_spd

# -- The generative set ----------------------------------------------------------------


def log_powers_of(X: np.ndarray, rank: int, seed: int) -> np.ndarray:
    """The oracle: with the mixing known, drawn as the set draws it, the powers follow."""
    A = np.random.RandomState(seed).standard_normal((X.shape[1], rank))
    back = np.linalg.pinv(A)
    return np.log(np.diagonal(back @ X @ back.T, axis1=1, axis2=2))


@pytest.mark.parametrize(("rank", "r2"), [(8, 0.97), (None, 0.5), (3, 1.0)])
def test_make_regression_is_linear_in_the_log_powers(rank: int | None, r2: float):
    X, y, X_test, y_test = make_regression(3000, 3000, d=8, rank=rank, r2=r2, random_state=5)
    known, new = (log_powers_of(part, rank or 8, 5) for part in (X, X_test))
    assert np.std(known) == pytest.approx(1, rel=0.05)
    found = r2_score(y_test, LinearRegression().fit(known, y).predict(new))
    assert found == pytest.approx(r2, abs=0.03)


def test_make_regression_shapes_ranks_and_seeds():
    X, y, X_test, y_test = make_regression(10, 6, d=5, rank=3, n_outputs=2, random_state=0)
    assert (X.shape, y.shape, X_test.shape, y_test.shape) == ((10, 5, 5), (10, 2), (6, 5, 5), (6, 2))
    check_psd(X, 3)
    with pytest.raises(ValueError, match="numerical rank 3"):
        check_psd(X, 4)
    check_spd(make_regression(10, 6, d=5, random_state=0)[0])
    again = make_regression(10, 6, d=5, rank=3, n_outputs=2, random_state=0)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y_test, again[3])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"rank": 17}, "rank=17: expected a whole number from 1 to d=16"),
        ({"rank": 2.5}, "rank=2.5: expected a whole number"),
        ({"r2": 0.0}, "r2=0.0: expected a number > 0 and <= 1"),
        ({"r2": 1.1}, "r2=1.1: expected a number"),
        ({"n_train": 0}, "n_train=0: expected a whole number >= 1"),
        ({"n_outputs": 0}, "n_outputs=0: expected a whole number >= 1"),
    ],
)
def test_make_regression_says_what_is_wrong(parameters: dict[str, float], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        make_regression(**parameters)


# -- Alignment and shape ---------------------------------------------------------------


def literal_alignment(X: np.ndarray, y: np.ndarray, W: np.ndarray, weight: np.ndarray) -> float:
    """With all n x n matrices: the centered kernel, and that of the standardized target."""
    U = np.eye(len(X)) - np.ones((len(X), 1)) * weight / weight.sum()
    root = np.sqrt(weight)[:, None]
    V, Y = root * (U @ vech(logm(congruence(W, X)))), U @ y.reshape(len(y), -1)
    Y = root * Y / np.sqrt(np.average(Y**2, axis=0, weights=weight))
    K, T = V @ V.T, Y @ Y.T
    return float(np.vdot(K, T) / np.linalg.norm(K) / np.linalg.norm(T))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n", [12, 60])  # fewer matrices than features, and more
@pytest.mark.parametrize("kernel", ["linear", "memory map"])
def test_alignment_is_that_of_the_kernel_of_the_target(n, outputs, kernel, tmp_path, chunks_of):
    X, y, *_ = make_regression(n, 1, d=5, n_outputs=outputs, random_state=2)
    weight = np.random.default_rng(0).uniform(0.5, 2, n)
    if kernel == "memory map":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    chunks_of(7)
    metric = LogEuclideanMetric(1.5).fit(X, y, weight)
    assert metric.classes_ is None
    assert metric.alignment_ == pytest.approx(literal_alignment(X, y, metric.components_, weight), rel=1e-9)
    start = LogEuclideanMetric(0.0).fit(X, y, weight)
    assert metric.alignment_ > start.alignment_


@pytest.mark.parametrize(
    "parameters", [{"rank": 3}, {"kernel": "rbf"}, {"solver": "stochastic", "random_state": 0}], ids=str
)
def test_other_ways_to_learn_take_numbers(parameters):
    X, y, *_ = make_regression(120, 1, d=5, random_state=3)
    learned, start = (LogEuclideanMetric(radius, **parameters).fit(X, y) for radius in (2.0, 0.0))
    assert learned.alignment_ > start.alignment_ > 0


def test_low_rank_starts_at_the_sources_that_matter():
    """One of six sources is the target: the first direction finds it, and tells nearly all."""
    rng = np.random.default_rng(0)
    A, log_powers = rng.standard_normal((6, 6)), 0.3 * rng.standard_normal((300, 6))
    X = (A * np.exp(log_powers)[:, None, :]) @ A.T
    metric = LogEuclideanMetric(0.0, rank=1).fit(X, log_powers[:, 4])
    vectors, y = metric.transform(X), log_powers[:, 4]
    assert LinearRegression().fit(vectors, y).score(vectors, y) > 0.97
    back = np.linalg.inv(A)[4]
    cosine = metric.components_[0] @ back / np.linalg.norm(metric.components_[0]) / np.linalg.norm(back)
    assert abs(cosine) > 0.99


@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize(("n", "d"), [(60, 4), (20, 8)], ids=["features", "gram"])
def test_left_out_errors_are_those_of_n_refits(n, d, outputs):
    """The score of the weighting, from regressions that never saw the matrix; each has its own means."""
    X, y, *_ = make_regression(n, 1, d=d, r2=0.8, n_outputs=outputs, random_state=7)
    weight = np.random.default_rng(1).uniform(0.5, 2, n)
    metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, y, weight)
    plain = LogEuclideanMetric(0.0).fit(X, y, weight)
    V, Y = plain.transform(X), y.reshape(n, -1)
    center = np.average(Y, axis=0, weights=weight)
    Y = (Y - center) / np.sqrt(np.average((Y - center) ** 2, axis=0, weights=weight))
    squares = 0.0
    for i in range(n):
        others = np.arange(n) != i
        ridge = Ridge(alpha=metric.weighting_penalty_, solver="svd").fit(V[others], Y[others], weight[others])
        squares += weight[i] * np.sum((Y[i] - ridge.predict(V[i : i + 1])) ** 2)
    total = float(np.sum(weight[:, None] * Y**2))
    assert metric.weighting_score_ == pytest.approx(1 - squares / total, abs=1e-9)
    assert metric.weighting_.shape[1] == outputs


def test_the_direction_of_one_number_is_that_of_its_regression():
    X, y, X_test, _ = make_regression(200, 100, d=5, r2=0.9, random_state=1)
    metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, y)
    plain = LogEuclideanMetric(0.0).fit(X, y)
    ridge = Ridge(alpha=metric.weighting_penalty_).fit(plain.transform(X), y)
    predicted = ridge.predict(plain.transform(X_test))
    assert np.corrcoef(metric.transform(X_test)[:, 0], predicted)[0, 1] > 1 - 1e-9


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n", [12, 200])
def test_without_noise_shapes_are_finite(n, outputs):
    X, y, X_test, y_test = make_regression(n, 50, d=4, r2=1.0, n_outputs=outputs, random_state=0)
    metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, y)
    assert np.isfinite(metric.weighting_).all()
    scale = np.abs(metric.transform(X_test)).max()
    assert 0.1 < scale < 1e4
    if n == 200:
        head = KNeighborsRegressor(5).fit(metric.transform(X), y)
        assert r2_score(y_test, head.predict(metric.transform(X_test))) > 0.7


# -- What y is -------------------------------------------------------------------------


def test_whole_numbers_are_labels_unless_told():
    X, y, *_ = make_regression(30, 1, d=3, random_state=0)
    years = np.round(3 * y)
    assert LogEuclideanMetric(0.0).fit(X, years).classes_ is not None
    assert LogEuclideanMetric(0.0, task="regression").fit(X, years.astype(int)).classes_ is None
    assert LogEuclideanMetric(0.0, task="classification").fit(X, years).classes_ is not None
    assert LogEuclideanMetric(0.0).fit(X, y.astype(np.float32)[:, None]).classes_ is None


@pytest.mark.parametrize(
    ("y", "parameters", "sentence"),
    [
        (np.full(10, 0.5), {}, "y is constant, 0.5 for every matrix"),
        (np.c_[np.arange(10) / 3, np.ones(10)], {}, r"y\[:, 1\] is constant, 1 for"),
        (np.r_[np.arange(9) / 3, np.nan], {}, r"y\[9\] is nan, NaN or infinity: expected finite"),
        (np.r_[np.arange(9) / 3, np.inf], {"task": "regression"}, r"y\[9\] is inf"),
        (np.arange(9) / 3, {}, "inconsistent numbers of samples"),
        (np.array(list("ababababab")), {"task": "regression"}, "y has dtype <U1: expected numbers"),
        (np.zeros((10, 2, 2)) + 0.5, {"task": "regression"}, r"y has shape \(10, 2, 2\): expected"),
        (np.arange(10) / 3, {"class_weight": "balanced"}, "class_weight='balanced' is for classes"),
        (np.arange(10) / 3, {"task": "classification"}, "Unknown label type: continuous"),
        (np.arange(10) / 3, {"task": "numbers"}, "task='numbers': expected one of 'auto', 'classification'"),
        (None, {"task": "regression"}, "requires y to be passed"),
    ],
)
def test_what_is_no_target_is_told(y, parameters, sentence):
    X, *_ = make_regression(10, 1, d=3, random_state=0)
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanMetric(0.0, **parameters).fit(X, y)


def test_a_stream_of_numbers_is_refused():
    X, y, *_ = make_regression(10, 1, d=3, random_state=0)
    with pytest.raises(ValueError, match="task='regression' needs the spread of all targets"):
        LogEuclideanMetric(task="regression").partial_fit(X, y, classes=[0, 1])


# -- The choice ------------------------------------------------------------------------


def test_the_choice_finds_the_shape_and_scores_by_r2():
    X, y, X_test, y_test = make_regression(120, 200, d=8, rank=5, random_state=0)
    metric = LogEuclideanMetricCV().fit(X, y)  # singular matrices: their common rank is tried
    assert metric.classes_ is None
    assert metric.best_params_["weighting"] == "discriminant"
    assert metric.best_score_ == pytest.approx(0.93, abs=0.06)
    head = KNeighborsRegressor(metric.n_neighbors_).fit(metric.transform(X), y)
    assert head.score(metric.transform(X_test), y_test) > 0.9
    assert "mean_test_accuracy" not in metric.cv_results_


def test_scores_are_those_of_the_folds(rng):
    """The score of the usual candidate with neighbors, from its parts, on folds that are given."""
    X, y, *_ = make_regression(40, 1, d=4, r2=0.8, n_outputs=2, random_state=1)
    folds = [(np.arange(10, 40), np.arange(10)), (np.arange(30), np.arange(30, 40))]
    grid = {"radii": (0,), "ranks": (None,), "weightings": ("discriminant",)}
    chosen = LogEuclideanMetricCV(**grid, n_neighbors=3, cv=folds).fit(X, y)
    Y = (y - y.mean(axis=0)) / y.std(axis=0)
    for k, (train, test) in enumerate(folds):
        metric = LogEuclideanMetric(0.0, weighting="discriminant").fit(X[train], Y[train])
        head = KNeighborsRegressor(3).fit(metric.transform(X[train]), Y[train])
        errors = np.sum((head.predict(metric.transform(X[test])) - Y[test]) ** 2)
        total = np.sum((Y[test] - Y[train].mean(axis=0)) ** 2)
        row = [params["n_neighbors"] for params in chosen.cv_results_["params"]].index(3)
        # Each output is scaled by its spread in the fold here, and by that of all matrices there.
        assert chosen.cv_results_[f"split{k}_test_score"][row] == pytest.approx(1 - errors / total, abs=0.03)


def test_the_choice_takes_weights_groups_scorers_and_heads():
    X, y, *_ = make_regression(60, 1, d=4, random_state=2)
    weight = np.where(np.arange(60) < 10, 0.0, 1.0)
    quick = {"radii": (0.0,), "ranks": (None,)}
    spoiled = np.where(weight == 0, 1e6, y)
    one = LogEuclideanMetricCV(**quick, head="ridge", cv=3).fit(X, spoiled, weight)
    assert one.best_score_ > 0.5  # what has no weight is not judged either
    assert one.n_neighbors_ is None
    two = LogEuclideanMetricCV(**quick, scoring="neg_mean_absolute_error")
    two.fit(X, y, groups=np.arange(60) // 6)
    assert -1 < two.best_score_ < 0
    again = LogEuclideanMetricCV(**quick).fit(X, y)
    np.testing.assert_array_equal(again.transform(X), LogEuclideanMetricCV(**quick).fit(X, y).transform(X))
    labels = (y > 0).astype(int)
    with pytest.raises(ValueError, match="head='centroid' is not for y that holds regression targets"):
        LogEuclideanMetricCV(head="centroid").fit(X, y)
    with pytest.raises(ValueError, match="head='ridge' is not for y that holds labels: use head='centroid'"):
        LogEuclideanMetricCV(head="ridge").fit(X, labels)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        LogEuclideanClassifier().fit(X, y)
