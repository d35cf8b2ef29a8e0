"""The choice of radius and rank."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from random_matrices import labeled, spd
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_toy
from spdmetric.estimators._problem import problem_of, radius_path
from spdmetric.estimators._settings import settings_of
from spdmetric.estimators.cv import mean_margin
from spdmetric.objectives.local import Labeled, LocalData

FAST = {"radii": (0, 1, 3), "ranks": (None, 2), "cv": 3}


@pytest.fixture(scope="module")
def fitted():
    X, y = labeled(np.random.default_rng(0), 40, 4)
    return LogEuclideanMetricCV(**FAST).fit(X, y), X, y


def test_results_are_laid_out_as_sklearns(fitted):
    metric, _, _ = fitted
    results = metric.cv_results_
    assert len(results["params"]) == 6
    splits = np.array([results[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"].min() == 1
    assert metric.best_params_ == results["params"][metric.best_index_]
    assert metric.best_score_ == results["mean_test_score"].max()
    assert set(results["param_radius"]) == {0, 1, 3}


def test_scores_are_those_of_refitting_every_candidate():
    """The slow way: LogEuclideanMetric in a pipeline, one fold and one candidate at a time (radius 0)."""
    X, y = labeled(np.random.default_rng(1), 40, 4)
    metric = LogEuclideanMetricCV(radii=(0,), ranks=(None, 2), cv=4).fit(X, y)
    for k, rank in enumerate((None, 2)):
        pipe = make_pipeline(LogEuclideanMetric(0, rank=rank), KNeighborsClassifier(1))
        slow = cross_val_score(pipe, X, y, cv=4)
        np.testing.assert_allclose([metric.cv_results_[f"split{i}_test_score"][k] for i in range(4)], slow)


def test_the_final_metric_is_that_of_the_choice(fitted):
    metric, X, _ = fitted
    rank = metric.best_params_["rank"]
    m = 4 if rank is None else rank
    assert metric.transform(X).shape == (40, m * (m + 1) // 2)
    assert metric.radius_ <= metric.best_params_["radius"] * (1 + 1e-9)


def test_path(fitted):
    path = fitted[0].path_
    np.testing.assert_array_equal(path.radius, [0, 1, 3])
    assert np.all(np.diff(path.alignment) > 0)
    assert np.all(path.distance <= path.radius * (1 + 1e-9))
    assert path.condition[0] == 1


def test_a_warm_path_ends_as_well_as_a_cold_fit():
    X, y, *_ = make_toy(d=6, random_state=3)
    cold = LogEuclideanMetric(8.0).fit(X, y)
    data = LocalData(Labeled(X, (y == 1).astype(int), np.ones(50)))
    settings = settings_of(cold.get_params())
    path = radius_path(problem_of(data, None, settings), (0, 1, 2, 4, 8), settings)
    assert 1 - path[-1].value == pytest.approx(cold.alignment_, rel=0.05)
    assert all(solution.converged for solution in path)


def test_low_rank_is_found_on_the_toy_set():
    X, y, X_test, y_test = make_toy(d=8, random_state=1000)
    metric = LogEuclideanMetricCV(n_jobs=2).fit(X, y)
    assert metric.best_params_["rank"] in (2, 3, 4)
    score = KNeighborsClassifier(1).fit(metric.transform(X), y).score(metric.transform(X_test), y_test)
    assert score > 0.93


def test_deterministic_for_any_number_of_jobs(fitted):
    metric, X, y = fitted
    again = LogEuclideanMetricCV(**FAST, n_jobs=2).fit(X, y)
    assert again.best_params_ == metric.best_params_
    np.testing.assert_array_equal(again.transform(X), metric.transform(X))


def test_one_se_is_simpler_or_the_same(fitted):
    metric, X, y = fitted
    simple = LogEuclideanMetricCV(**FAST, rule="one-se").fit(X, y)
    assert simple.best_index_ <= metric.best_index_
    results = metric.cv_results_
    splits = [results[f"split{k}_test_score"][metric.best_index_] for k in range(3)]
    floor = metric.best_score_ - np.std(splits, ddof=1) / np.sqrt(3)
    assert simple.best_score_ >= floor
    assert np.all(results["mean_test_score"][: simple.best_index_] < floor)


def test_groups_splitters_scoring_and_neighbors(rng):
    X, y = labeled(rng, 36, 3)
    groups = np.repeat([0, 1, 2], 12)
    metric = LogEuclideanMetricCV(radii=(0, 2), ranks=(None,), cv=LeaveOneGroupOut()).fit(X, y, groups=groups)
    assert "split2_test_score" in metric.cv_results_
    assert "split3_test_score" not in metric.cv_results_
    grouped = LogEuclideanMetricCV(
        radii=(0, 2), ranks=(None,), cv=GroupKFold(3), scoring="roc_auc", n_neighbors=5
    )
    assert 0 <= grouped.fit(X, y, groups=groups).best_score_ <= 1


def test_margin():
    train, y = np.array([[0.0], [4.0]]), np.array(["a", "b"])
    assert mean_margin(train, y, np.array([[1.0]]), np.array(["a"])) == pytest.approx(0.5)
    assert mean_margin(train, y, np.array([[1.0]]), np.array(["b"])) == pytest.approx(-0.5)
    assert mean_margin(train, y, np.array([[1.0]]), np.array(["c"])) == -1


def test_estimator_manners(fitted):
    metric, X, _ = fitted
    assert clone(metric).get_params() == metric.get_params()
    for name in inspect.signature(LogEuclideanMetricCV).parameters:
        sentinel = object()
        assert getattr(LogEuclideanMetricCV(**{name: sentinel}), name) is sentinel
        assert f"{name} : " in inspect.getdoc(LogEuclideanMetricCV)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(metric)).transform(X), metric.transform(X))
    frame = clone(metric).set_output(transform="pandas")
    assert frame.get_params() == metric.get_params()
    with pytest.raises(NotFittedError):
        LogEuclideanMetricCV().transform(X)
    assert len(metric.get_feature_names_out()) == metric.transform(X).shape[1]


def test_in_a_pipeline(rng):
    X, y = labeled(rng, 30, 3)
    model = make_pipeline(LogEuclideanMetricCV(**FAST), KNeighborsClassifier(1))
    assert cross_val_score(model, X, y, cv=3).shape == (3,)


def test_rank_deficient_matrices_with_low_ranks_only(rng):
    P = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    X, y = labeled(rng, 30, 3)
    singular = P @ X @ P.T
    metric = LogEuclideanMetricCV(radii=(0, 1), ranks=(1, 2), cv=3).fit(singular, y)
    assert metric.transform(singular).shape[0] == 30
    with pytest.raises(ValueError, match="not positive definite"):
        LogEuclideanMetricCV(radii=(0, 1), cv=3).fit(singular, y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"radii": ()}, r"radii is empty"),
        ({"ranks": []}, r"ranks is empty"),
        ({"radii": (0, -1)}, r"radius=-1: expected a finite number >= 0"),
        ({"ranks": (None, 0)}, r"rank=0: expected a whole number"),
        ({"rule": "median"}, r"rule='median': expected one of 'best', 'one-se'"),
        ({"n_neighbors": 0}, r"n_neighbors=0: expected a whole number"),
        ({"solver": "sgd"}, r"solver='sgd'"),
        ({"tol": -1}, r"tol=-1"),
        ({"ranks": (9,)}, r"rank=9 is more than the size"),
    ],
)
def test_bad_parameters(parameters, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanMetricCV(**parameters).fit(*labeled(rng, 20, 3))


def test_bad_data(rng):
    with pytest.raises(ValueError, match="y has 1 class"):
        LogEuclideanMetricCV().fit(spd(rng, 10, 3), np.zeros(10))


def test_callback_and_verbose_follow_the_final_fit(rng, capsys):
    seen = []
    options = {"radii": (0, 1), "ranks": (None,), "cv": 2, "max_iter": 5}
    metric = LogEuclideanMetricCV(callback=seen.append, **options).fit(*labeled(rng, 20, 3))
    assert [record.iteration for record in seen].count(0) == 2  # two radii, and no folds
    assert seen[-1].value == pytest.approx(1 - metric.path_.alignment[-1])
    assert capsys.readouterr().out == ""
    LogEuclideanMetricCV(verbose=True, **options).fit(*labeled(rng, 20, 3))
    assert capsys.readouterr().out.count("iteration    0") == 2


# -- folds, weights, candidates ---------------------------------------------------------------


def test_folds_are_those_of_the_matrices_as_given(rng):
    """Matrices without weight are left out of every fold, and the rows of the others stay what they are."""
    X, y = labeled(rng, 30, 3)
    weight = np.where(np.arange(30) % 5 == 1, 0.0, 1.0)
    folds = [(np.arange(15), np.arange(15, 30)), (np.arange(15, 30), np.arange(15))]
    given = LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), cv=folds).fit(X, y, weight)
    kept = np.flatnonzero(weight)
    moved = [tuple(np.flatnonzero(np.isin(kept, part)) for part in fold) for fold in folds]
    without = LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), cv=moved).fit(X[kept], y[kept])
    for name in ("split0_test_score", "split1_test_score", "mean_test_margin"):
        np.testing.assert_array_equal(given.cv_results_[name], without.cv_results_[name])
    np.testing.assert_array_equal(given.components_, without.components_)


def test_groups_belong_to_the_matrices_as_given(rng):
    X, y = labeled(rng, 24, 3)
    weight = np.where(np.arange(24) == 3, 0.0, 1.0)
    options = {"radii": (0,), "ranks": (None,), "cv": LeaveOneGroupOut()}
    metric = LogEuclideanMetricCV(**options).fit(X, y, weight, groups=np.repeat([0, 1], 12))
    assert "split1_test_score" in metric.cv_results_


def test_candidates_as_arrays(rng):
    X, y = labeled(rng, 24, 3)
    plain = LogEuclideanMetricCV(radii=(0.0, 1.0), ranks=(1, 2), cv=2).fit(X, y)
    arrays = LogEuclideanMetricCV(radii=np.array([0.0, 1.0]), ranks=np.array([1, 2]), cv=2).fit(X, y)
    assert arrays.best_params_ == plain.best_params_
    assert arrays.cv_results_["params"] == plain.cv_results_["params"]
    with pytest.raises(ValueError, match="radii is empty"):
        LogEuclideanMetricCV(radii=np.array([])).fit(X, y)


@pytest.mark.parametrize("ranks", [(None,), (2,)])
def test_a_fold_of_one_class_is_named(ranks, rng):
    X, y = labeled(rng, 20, 3)
    everything = np.arange(20)
    folds = [(everything, everything), (np.flatnonzero(y == 1), everything)]
    with pytest.raises(ValueError, match=r"Fold 1 of 2 has matrices of classes \[1\] .* two classes or more"):
        LogEuclideanMetricCV(radii=(0, 1), ranks=ranks, cv=folds).fit(X, y)
    halves = [(np.arange(10), np.arange(10, 20)), (np.arange(10, 20), np.arange(10))]
    weight = np.where((y == 0) & (everything < 10), 0.0, 1.0)
    with pytest.raises(ValueError, match=r"Fold 0 of 2 has matrices of classes \[1\]"):
        LogEuclideanMetricCV(radii=(0, 1), ranks=ranks, cv=halves).fit(X, y, weight)
    with pytest.raises(ValueError, match=r"Fold 0 of 1 has no matrices with weight to score"):
        LogEuclideanMetricCV(cv=[(everything, [3])]).fit(X, y, np.where(everything == 3, 0.0, 1.0))


def test_matrices_must_have_the_rank_that_was_chosen(rng):
    X, y = labeled(rng, 40, 4)
    metric = LogEuclideanMetricCV(radii=(0,), ranks=(1, 3), cv=2).fit(X, y)
    assert metric.best_params_["rank"] == 3
    flat = np.stack([np.diag([1.0, 2.0, 0.0, 0.0])])  # enough for the smallest candidate
    with pytest.raises(ValueError, match=r"X\[0\] has numerical rank 2, too low for rank=3"):
        metric.transform(flat)
    with pytest.raises(ValueError, match=r"X\[40\] has numerical rank 2, too low for rank=3"):
        clone(metric).fit(np.concatenate([X, flat]), [*y, 0])


def test_it_has_no_parameters_of_the_other_estimator(rng):
    metric = LogEuclideanMetricCV(**FAST).fit(*labeled(rng, 24, 3))
    assert not isinstance(metric, LogEuclideanMetric)
    for name in ("radius", "rank", "batch_size", "random_state", "partial_fit"):
        assert not hasattr(metric, name)
