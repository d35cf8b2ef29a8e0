"""The choice of radius, rank and weighting."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline

from random_matrices import labeled, spd
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_toy
from spdmetric.estimators import _selection
from spdmetric.estimators._selection import Candidate, Table
from spdmetric.estimators.metric import find_problem, solve_path
from spdmetric.geometry import mean_riemann
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.objectives.start import find_start
from spdmetric.validation import UninformativeDataError

FAST = {"radii": (0, 1, 3), "ranks": (None, 2), "weightings": (None,), "n_neighbors": 1, "cv": 3}
RBF = {"metric": LogEuclideanMetric(kernel="rbf")}
PLAIN = {"weightings": (None,), "n_neighbors": 1}


@pytest.fixture(scope="module")
def fitted():
    X, y = labeled(np.random.default_rng(0), 40, 4)
    return LogEuclideanMetricCV(**FAST).fit(X, y), X, y


def test_results_are_laid_out_as_sklearns(fitted):
    metric, _, _ = fitted
    results = metric.cv_results_
    assert len(results["params"]) == 12  # six metrics, class means and neighbors
    splits = np.array([results[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"].min() == 1
    assert metric.best_params_ == results["params"][metric.best_index_]
    assert metric.best_score_ == results["mean_test_score"][metric.best_index_]
    assert set(results["param_radius"]) == {0, 1, 3}


@pytest.mark.parametrize("weighting", [None, "discriminant"])
def test_scores_are_those_of_refitting_every_candidate(weighting):
    """The slow way: LogEuclideanMetric in a pipeline, one fold and one candidate at a time (radius 0).

    All folds are at the center of all matrices.
    """
    X, y = labeled(np.random.default_rng(1), 40, 4)
    center = mean_riemann(X)
    options = {
        "radii": (0,),
        "ranks": (None, 2),
        "weightings": (weighting,),
        "n_neighbors": 3,
        "scoring": "accuracy",
    }
    results = LogEuclideanMetricCV(cv=4, **options).fit(X, y).cv_results_
    for rank in (None, 2):
        for head, number in ((KNeighborsClassifier(3), 3), (NearestCentroid(), None)):
            row = {"radius": 0.0, "rank": rank, "weighting": weighting, "n_neighbors": number}
            k = results["params"].index(row)
            metric = LogEuclideanMetric(0, rank=rank, weighting=weighting, init=center)
            slow = cross_val_score(make_pipeline(metric, head), X, y, cv=4)
            np.testing.assert_allclose([results[f"split{i}_test_score"][k] for i in range(4)], slow)


def test_log_probabilities_are_those_of_normal_class_means():
    """The score without a scorer, by scipy's normal distribution of a calibrated variance, one by one."""
    from scipy.stats import multivariate_normal

    X, y = labeled(np.random.default_rng(2), 30, 3)
    fold = (np.arange(20), np.arange(20, 30))
    metric = LogEuclideanMetricCV(
        radii=(0,), ranks=(None,), weightings=(None,), head="centroid", cv=[fold]
    ).fit(X, y)
    vectors = LogEuclideanMetric(0).fit(X, y).transform(X)  # at the center of all, which knows no labels
    classes = np.unique(y)
    means = {c: vectors[:20][y[:20] == c].mean(axis=0) for c in classes}
    variance = metric.temperature_ * np.mean(np.var(vectors[:20], axis=0))
    scores = []
    for v, label in zip(vectors[20:], y[20:], strict=True):
        densities = {c: multivariate_normal(means[c], variance * np.eye(len(v))).pdf(v) for c in classes}
        scores.append(np.log(densities[label] / sum(densities.values())))
    assert metric.best_score_ == pytest.approx(np.mean(scores))


@pytest.mark.parametrize("d", [5, 34])
def test_folds_learn_around_the_center_as_fits_of_their_own_do(d):
    """What is shared by the folds, against `LogEuclideanMetric` with that center on each of them."""
    X, y = labeled(np.random.default_rng(3), 24, d)
    metric = LogEuclideanMetricCV(ranks=(None, 2), head="centroid", cv=3).fit(X, y)
    center = LogEuclideanMetric(0).fit(X, y).reference_
    classes, codes = np.unique(y, return_inverse=True)
    rows = [row for row, of in enumerate(metric.cv_results_["params"]) if of["weighting"] is None]
    assert len(rows) == (5 if d == 5 else 3)
    for row in rows:
        of, right = metric.cv_results_["params"][row], []
        data = Data(X, ClassTarget.from_codes(codes))
        for train, test in _selection.make_folds(3, data, classes, None, 0):
            alone = LogEuclideanMetric(of["radius"], rank=of["rank"], init=center, tol=3e-2, max_iter=40)
            vectors = alone.fit(X[train], y[train]).transform(X)
            predicted = NearestCentroid().fit(vectors[train], y[train]).predict(vectors[test])
            right += list(predicted == y[test])
        assert metric.cv_results_["mean_test_accuracy"][row] == np.mean(right)


def test_a_warm_path_ends_as_well_as_a_cold_fit():
    X, y, *_ = make_toy(d=6, random_state=3)
    cold = LogEuclideanMetric(8.0).fit(X, y)
    data = Data(X, ClassTarget.from_codes((y == 1).astype(int)))
    problem = find_problem(data, find_start(data, "riemann", None), None, cold)
    path = solve_path(problem, (0, 1, 2, 4, 8), cold)
    assert 1 - path[-1].value == pytest.approx(cold.alignment_, rel=0.05)
    assert all(solution.converged for solution in path)


def test_low_rank_is_found_on_the_toy_set():
    X, y, X_test, y_test = make_toy(d=8, random_state=1000)
    metric = LogEuclideanMetricCV(ranks=(None, 2, 3, 4), **PLAIN).fit(X, y)
    assert metric.best_params_["rank"] in (2, 3, 4)
    score = KNeighborsClassifier(1).fit(metric.transform(X), y).score(metric.transform(X_test), y_test)
    assert score > 0.9
    chosen = LogEuclideanMetricCV().fit(X, y)
    neighbors = KNeighborsClassifier(chosen.n_neighbors_).fit(chosen.transform(X), y)
    assert neighbors.score(chosen.transform(X_test), y_test) > 0.95


def test_deterministic_for_any_number_of_jobs(fitted):
    metric, X, y = fitted
    again = LogEuclideanMetricCV(**FAST, n_jobs=2).fit(X, y)
    assert again.best_params_ == metric.best_params_
    np.testing.assert_array_equal(again.transform(X), metric.transform(X))


# -- the rule ---------------------------------------------------------------------------------


def table(rows, right=None):
    """A table of candidates with a usual one; ``rows`` are gains over it, a number a matrix."""
    options = [Candidate(r, None, "discriminant", n_neighbors=k) for k in (None, 5) for r in (0.0, 2.0, 8.0)]
    units = np.zeros((len(options), len(rows[0])))
    units[1 : 1 + len(rows)] = rows
    right = np.zeros_like(units) if right is None else np.array(right)
    return Table(options, units, units, right, np.ones(len(options)))


def test_the_usual_candidate_is_left_for_a_clear_gain_only():
    """By half a standard error where nothing more is learned, by two in a larger radius."""
    noise = np.tile([1.0, -1.0], 50)  # a standard error of 0.1005
    usual = table([noise + 0.19, noise - 0.3])
    assert _selection.choose(usual, "centroid", "clear") == usual.candidates[0]
    assert _selection.choose(usual, "centroid", "best").radius == 2
    clear = table([noise + 0.21, noise + 0.22])
    assert _selection.choose(clear, "centroid", "clear").radius == 8
    options = [Candidate(r, m, "discriminant") for r, m in ((0.0, None), (0.0, 4), (4.0, 4))]
    for still, learned, chosen in ((0.04, 0.1, None), (0.06, 0.3, (4, 0.0)), (0.06, 0.4, (4, 4.0))):
        units = np.array([np.zeros(100), noise + still, np.tile([1.0, 1.0, -1.0, -1.0], 25) + learned])
        scores = Table(options, units, units, units, np.ones(3))
        found = _selection.choose(scores, "centroid", "clear")
        assert (found.rank and (found.rank, found.radius)) == chosen


def test_neighbors_are_taken_where_they_are_clearly_better():
    """Where they are right more often, or where labels are more probable."""
    same, noise = np.zeros(100), np.tile([1.0, -1.0], 50)  # a standard error of 0.1005
    for share, gains, number in (
        (0.02, same, None),
        (0.2, same, 5),
        (0, noise + 0.19, None),
        (0, noise + 0.21, 5),
    ):
        scores = table([same, same, gains])
        right = np.zeros((6, 100))
        right[3, : int(100 * share)] = 1.0  # the usual metric with five neighbors
        scores = scores._replace(right=right)
        chosen = _selection.choose(scores, "auto", "clear")
        assert chosen == scores.candidates[0]._replace(n_neighbors=number)
        assert _selection.choose(scores, "neighbors", "clear").n_neighbors == 5


def of_rank(d, rank):
    return Data(np.diag(np.arange(d) < rank)[None] * 1.0, ClassTarget.from_codes(np.zeros(1, dtype=int)))


def radii_of(candidates):
    ranks = _selection.values_of("rank", candidates)
    return {m: _selection.values_of("radius", (c for c in candidates if c.rank == m)) for m in ranks}


def test_the_usual_candidate_is_the_mean_with_a_weighting():
    found = _selection.make_candidates(None, None, None, [1], of_rank(16, 16))
    assert found[0] == Candidate(0.0, None, "discriminant")
    assert radii_of(found) == {None: [0, 2, 8], 4: [0, 4], 8: [0, 4]}
    large = _selection.make_candidates(None, None, None, [1], of_rank(64, 64))
    assert radii_of(large) == {None: [0], 4: [0, 4], 8: [0, 4]}
    deficient = _selection.make_candidates(None, None, None, [1], of_rank(16, 6))
    assert radii_of(deficient) == {6: [0], 4: [0, 4]}
    assert deficient[0] == Candidate(0.0, 6, "discriminant")
    small = _selection.make_candidates((1, 0), (2, None), (None, "discriminant"), [], of_rank(3, 3))
    assert small[0] == Candidate(0, None, "discriminant")


def test_folds_are_stratified_and_repeated_for_few(rng):
    codes = rng.permutation(np.repeat([0, 1, 2], [30, 20, 10]))
    folds = _selection.stratified_folds(codes, 0)
    assert len(folds) == 10
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(60))
        np.testing.assert_array_equal(np.bincount(codes[test]), [6, 4, 2])
    for half in (folds[:5], folds[5:]):
        np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in half])), np.arange(60))
    assert len(_selection.stratified_folds(np.tile([0, 1], 100), 0)) == 5
    assert len(_selection.stratified_folds(np.repeat(np.arange(15), 3), 0)) == 6  # three to a class
    one = _selection.stratified_folds(np.array([0, 1, 1, 1, 1, 1, 2, 2, 2, 2]), 0)
    assert all(len(np.unique(np.array([0, 1, 1, 1, 1, 1, 2, 2, 2, 2])[train])) >= 2 for train, _ in one)


@pytest.mark.parametrize("grouped", [False, True])
def test_of_many_matrices_some_are_drawn_for_the_choice(rng, monkeypatch, grouped):
    """The same share of each class in each fold, at least one; folds that are given are taken whole."""
    monkeypatch.setattr(_selection, "LEAST_DRAWN", 60)
    monkeypatch.setattr(_selection, "MOST_ROWS", 0)
    X, _ = labeled(rng, 306, 3)
    codes = rng.permutation(np.repeat([0, 1, 2], [200, 100, 6]))
    data = Data(X, ClassTarget.from_codes(codes, np.where(np.arange(306) == 9, 0.0, 1.0)))
    groups = np.arange(306) % 30 if grouped else None
    given = GroupKFold(5) if grouped else 5
    whole = _selection.make_folds(given, data, np.arange(3), groups, 0)
    assert sum(len(test) for _, test in whole) == 305
    folds = _selection.make_folds(None, data, np.arange(3), groups, 0)
    kept = np.delete(codes, 9)
    tested = np.concatenate([test for _, test in folds])
    assert 60 <= len(np.unique(tested)) == len(tested) <= 75  # at most one more of each class in each fold
    for train, test in folds:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.sort(tested))
        assert (np.bincount(kept[test], minlength=3) >= [4, 2, 1 - grouped]).all()
    metric = LogEuclideanMetricCV(**FAST).fit(X, codes)
    assert metric.cv_results_["split0_test_score"].shape == metric.cv_results_["mean_gain"].shape
    alone = LogEuclideanMetric(0.0, tol=3e-2, max_iter=40).fit(X, codes)
    np.testing.assert_allclose(
        metric.embedding_.starts[0].center, alone.embedding_.starts[0].center, rtol=1e-9
    )  # that of all


def test_classes_of_one_matrix_have_their_place(rng):
    X, y = labeled(rng, 30, 3)
    with pytest.warns(UserWarning, match="Only one matrix has the label 9: it is") as caught:
        metric = LogEuclideanMetricCV().fit(X, np.where(np.arange(30) == 7, 9, y))
    assert [warning.filename for warning in caught] == [__file__]
    assert 9 in metric.classes_
    assert metric.n_neighbors_ == 1
    with pytest.warns(UserWarning, match="label 'lo'"):
        model = LogEuclideanClassifier().fit(X[:12], np.where(np.arange(12) == 3, "lo", "hi"))
    assert model.predict_proba(X).shape == (30, 2)
    with pytest.raises(ValueError, match="Each of the 30 classes of y has one matrix: expected several"):
        LogEuclideanClassifier().fit(X, np.arange(30))


def test_identical_matrices_with_different_labels(rng):
    X, y = labeled(rng, 30, 3)
    X[1], y[0], y[1] = X[0], 0, 1
    assert np.isfinite(LogEuclideanMetricCV(head="auto").fit(X, y).best_score_)


def test_groups_splitters_scoring_and_neighbors(rng):
    X, y = labeled(rng, 36, 3)
    kept = LogEuclideanMetricCV(radii=(0, 2), ranks=(None,)).fit(X, y, groups=np.repeat(list("abc"), 12))
    assert "split2_test_score" in kept.cv_results_
    assert "split3_test_score" not in kept.cv_results_
    with pytest.raises(ValueError, match="groups has one group"):
        LogEuclideanMetricCV().fit(X, y, groups=np.zeros(36))
    groups = np.repeat([0, 1, 2], 12)
    metric = LogEuclideanMetricCV(radii=(0, 2), ranks=(None,), cv=LeaveOneGroupOut()).fit(X, y, groups=groups)
    assert "split2_test_score" in metric.cv_results_
    assert "split3_test_score" not in metric.cv_results_
    grouped = LogEuclideanMetricCV(
        radii=(0, 2), ranks=(None,), cv=GroupKFold(3), scoring="roc_auc", n_neighbors=5
    )
    assert 0 <= grouped.fit(X, y, groups=groups).best_score_ <= 1


def test_rank_deficient_matrices_with_low_ranks_only(rng):
    P = np.linalg.qr(rng.standard_normal((5, 3)))[0]
    X, y = labeled(rng, 30, 3)
    singular = P @ X @ P.T
    metric = LogEuclideanMetricCV(radii=(0, 1), ranks=(1, 2), cv=3).fit(singular, y)
    assert metric.transform(singular).shape[0] == 30
    alone = LogEuclideanMetricCV().fit(singular, y)  # the candidates follow the rank of the matrices
    assert alone.cv_results_["param_rank"][0] == 3
    with pytest.raises(ValueError, match="not positive definite"):
        LogEuclideanMetricCV(ranks=(None,), cv=3).fit(singular, y)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"radii": ()}, r"radii is empty"),
        ({"ranks": []}, r"ranks is empty"),
        ({"radii": (0, -1)}, r"radius=-1: expected a finite number >= 0"),
        ({"ranks": (None, 0)}, r"rank=0: expected a whole number"),
        ({"rule": "median"}, r"rule='median': expected one of 'clear', 'best'"),
        ({"head": "svm"}, r"head='svm': expected one of 'neighbors', 'centroid', 'auto'"),
        ({"weightings": ("round",)}, r"weighting='round': expected one of None, 'discriminant'"),
        ({**RBF, "weightings": ("discriminant",)}, r"weighting='discriminant' needs kernel='linear'"),
        ({"n_neighbors": 0}, r"n_neighbors=0: expected a whole number"),
        ({"n_neighbors": 17}, r"n_neighbors=17: expected at most 16, as many matrices as the smallest fold"),
        ({"metric": LogEuclideanMetric(solver="sgd")}, r"solver='sgd'"),
        ({"n_jobs": 0}, r"n_jobs=0: expected a whole number"),
        ({"scoring": {"a": "accuracy"}}, r"scoring=.*expected None, the name of a scorer"),
        ({"cv": [1]}, r"cv=\[1\] cannot split 20 matrices: expected a number of folds"),
        ({"cv": [([0, 1], [20])]}, r"cannot split 20 matrices.*index 20 is out of bounds"),
        ({"cv": 11}, r"cv=11 cannot split 20 matrices.*n_splits=11 cannot be greater"),
        ({"metric": LogEuclideanMetric(tol=-1)}, r"tol=-1"),
        ({"metric": LogEuclideanMetric(solver="stochastic")}, r"solver='stochastic' cannot follow a path"),
        ({"metric": "riemann"}, r"metric='riemann': expected a LogEuclideanMetric, or None"),
        ({"metric": LogEuclideanMetric(n_jobs=2)}, r"n_jobs=2\): n_jobs is a parameter of"),
        ({"metric": LogEuclideanMetric(random_state=0)}, r"random_state is a parameter of"),
        ({"ranks": (None, 9)}, r"rank=9 is more than the size of the matrices, 3 x 3"),
        ({"random_state": -1}, r"random_state=-1: expected a whole number from 0"),
        ({"random_state": "0"}, r"random_state='0': expected a whole number from 0"),
    ],
)
def test_bad_parameters(parameters, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanMetricCV(**parameters).fit(*labeled(rng, 20, 3))


def test_random_states_are_those_of_sklearn(rng):
    X, y = labeled(rng, 20, 3)
    model = LogEuclideanMetricCV(radii=(0,), ranks=(None,), random_state=None)
    scores = [clone(model).set_params(random_state=np.random.RandomState(k)).fit(X, y) for k in (0, 0, 1)]
    scores = [one.cv_results_["split0_test_score"].tolist() for one in scores]
    assert scores[0] == scores[1] != scores[2]
    assert model.fit(X, y).best_score_ < 0


@pytest.mark.parametrize("ranks", [(None,), (2,)], ids=str)
def test_folds_of_equal_matrices(ranks, rng):
    """Where nothing is searched, such a fold knows nothing; else nothing untrue is said of X."""
    X, y = labeled(rng, 64, 3)
    X[:32] = np.eye(3)
    halves = [(np.arange(32), np.arange(32, 64)), (np.arange(32, 64), np.arange(32))]
    with pytest.raises(UninformativeDataError, match="in each fold of a cross-validation too"):
        LogEuclideanMetricCV(ranks=ranks, cv=halves).fit(X, y)
    with pytest.raises(UninformativeDataError, match="to learn from are the same"):
        LogEuclideanMetricCV(ranks=ranks).fit(np.tile(np.eye(3), (64, 1, 1)), y)
    metric = LogEuclideanMetricCV(LogEuclideanMetric(init="identity"), radii=(0,), ranks=(None,), cv=halves)
    assert np.isfinite(metric.fit(X, y).cv_results_["mean_test_score"]).all()  # and no overflow is warned of


def test_a_fold_of_one_value_is_named(rng):
    with pytest.raises(ValueError, match=r"Fold 0 of 4 has matrices of values of y alike to learn from"):
        LogEuclideanMetricCV(LogEuclideanMetric(task="regression", tol=3e-2, max_iter=40)).fit(
            spd(rng, 4, 3), [0, 1, 1, 1]
        )


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (np.zeros((20, 2)), r"groups has shape \(20, 2\) for 20 matrices: expected one group for each"),
        ([0, 1], r"groups has shape \(2,\)"),
        ([object()] * 20, r"groups\[0\] is <object"),
        ([[1], [2, 3]] * 10, r"groups cannot be read as one array"),
        ([None, 1] * 10, r"groups\[0\] is None"),
    ],
    ids=["two columns", "short", "objects", "ragged", "missing"],
)
def test_groups_that_are_none(groups, sentence, rng):
    for model in (LogEuclideanMetricCV(), LogEuclideanMetricCV(cv=LeaveOneGroupOut())):
        with pytest.raises((ValueError, TypeError), match=sentence):
            model.fit(*labeled(rng, 20, 3), groups=groups)


def test_callback_and_verbose_follow_the_final_fit(rng, capsys):
    seen = []
    options = {"radii": (0, 1), "ranks": (None,), "cv": 2}
    inner = LogEuclideanMetric(callback=seen.append, tol=3e-2, max_iter=5)
    metric = LogEuclideanMetricCV(inner, **options).fit(*labeled(rng, 20, 3))
    assert [record.iteration for record in seen].count(0) == 2  # two radii, and no folds
    assert seen[-1].value == pytest.approx(1 - metric.path_.alignment[-1])
    assert capsys.readouterr().out == ""
    LogEuclideanMetricCV(verbose=True, **options).fit(*labeled(rng, 20, 3))
    assert capsys.readouterr().out.count("iteration    0") == 2


# -- folds, weights, candidates ---------------------------------------------------------------


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
    metric = LogEuclideanMetricCV(radii=(0,), ranks=(1, 3), rule="best", cv=2).fit(X, y)
    assert metric.best_params_["rank"] == 3
    flat = np.stack([np.diag([1.0, 2.0, 0.0, 0.0])])  # enough for the smallest candidate
    with pytest.raises(ValueError, match=r"X\[0\] has numerical rank 2, too low for rank=3"):
        metric.transform(flat)
    with pytest.raises(ValueError, match=r"X\[40\] has numerical rank 2, too low for rank=3"):
        clone(metric).fit(np.concatenate([X, flat]), [*y, 0])


def test_the_metric_inside_gives_the_other_parameters(rng):
    """Of radius, rank and weighting the candidates take the place; it is not fitted itself."""
    X, y = labeled(rng, 24, 3)
    inner = LogEuclideanMetric(7.0, rank=2, weighting="discriminant", init="euclid", tol=3e-2, max_iter=40)
    metric = LogEuclideanMetricCV(inner, radii=(1,), ranks=(None,), weightings=(None,), cv=2).fit(X, y)
    alone = LogEuclideanMetric(1.0, init="euclid", tol=3e-2, max_iter=40).fit(X, y)
    np.testing.assert_allclose(metric.reference_, alone.reference_, rtol=1e-6)
    assert not hasattr(inner, "embedding_")
    assert metric.get_params()["metric__init"] == "euclid"
    again = clone(metric).set_params(metric__init="identity", metric__tol=1e-2)
    assert (again.metric.tol, again.init, inner.init) == (1e-2, "identity", "euclid")
    assert not np.allclose(again.fit(X, y).reference_, metric.reference_)


def test_without_a_metric_inside_the_search_is_short(rng):
    X, y = labeled(rng, 24, 3)
    given = LogEuclideanMetricCV(LogEuclideanMetric(tol=3e-2, max_iter=40), cv=2).fit(X, y)
    default = LogEuclideanMetricCV(cv=2).fit(X, y)
    np.testing.assert_array_equal(given.cv_results_["mean_gain"], default.cv_results_["mean_gain"])


@pytest.mark.parametrize("names", ["bca", "cba"])
@pytest.mark.parametrize("groups", [None, np.arange(60) // 5])
def test_class_names_change_nothing_but_names(names, groups, rng):
    """The order of names decides neither directions, nor folds, nor ties."""
    X, y = labeled(rng, 60, 6, classes=3)
    codes, names = np.unique(y, return_inverse=True)[1], np.array(list(names))
    found = []
    for of in (np.array(list("abc")), names):
        metric = LogEuclideanMetric(2.0, rank=2, weighting="discriminant").fit(X, of[codes])
        chosen = LogEuclideanMetricCV(radii=[0.0], ranks=[2, 3]).fit(X, of[codes], groups=groups)
        model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=[0.0, 2.0], ranks=[2]), head="neighbors")
        model.fit(X, of[codes], groups=groups)
        probabilities = model.predict_proba(X)[:, np.searchsorted(np.sort(of), of)]
        predicted = np.argsort(of)[np.searchsorted(np.sort(of), model.predict(X))]
        scores = chosen.cv_results_["mean_test_score"], chosen.cv_results_["mean_test_accuracy"]
        found.append([metric.transform(X), chosen.transform(X), probabilities, predicted, *scores])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_a_matrix_without_weight_does_not_lower_the_ranks_to_try(rng):
    X, y = labeled(rng, 40, 6)
    beside = np.concatenate([X, np.diag([1.0, 0, 0, 0, 0, 0])[None]])
    model = LogEuclideanClassifier().fit(beside, np.append(y, y[0]), np.r_[np.ones(40), 0.0])
    assert model.metric_.cv_results_["param_rank"][0] is None


def test_a_matrix_without_weight_is_no_part_of_a_session_or_batch(rng):
    X, y = labeled(rng, 40, 4)
    with_outlier, weight = np.concatenate([X, np.diag([1.0, 0, 0, 0])[None]]), np.r_[np.ones(40), 0.0]
    model, metric = LogEuclideanClassifier().fit(X, y), LogEuclideanMetric(1.0, random_state=0)
    for adapt in (
        lambda X, y, w: model.adapt(X, sample_weight=w),
        lambda X, y, w: model.adapt(X, y, w),
        lambda X, y, w: model.adapt(X, sample_weight=w, prior="estimate"),
        lambda X, y, w: model.partial_adapt(X, w),
        lambda X, y, w: clone(metric).partial_fit(X, y, classes=[0, 1], sample_weight=w),
    ):
        alone, beside = adapt(X, y, weight[:40]), adapt(with_outlier, np.append(y, 0), weight)
        of = "transform" if isinstance(alone, LogEuclideanMetric) else "predict_proba"
        np.testing.assert_array_equal(getattr(beside, of)(X), getattr(alone, of)(X))
