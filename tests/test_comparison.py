"""`spdmetric compare`: numbers against oracles, the journal, the page, and the code that it offers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise, repeat
from signal import SIG_DFL, SIGINT, SIGKILL
from signal import signal as set_handler
from time import sleep

import mne
import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spdmetric
from comparison_data import FEW, matrices, write_page
from nightly import NIGHTLY, share_of
from random_matrices import labeled
from spdmetric.cli import main
from spdmetric.comparison import run, scores, verdict
from spdmetric.comparison.methods import METHODS
from spdmetric.comparison.page import Origin, describe
from spdmetric.comparison.plan import Entry, make_plan
from spdmetric.comparison.report import COLUMNS
from spdmetric.comparison.run import run_plan
from spdmetric.datasets import recenter
from spdmetric.io.matrices import Matrices

pytestmark = pytest.mark.usefixtures("numpy_only")


def toy(n=40, d=4, **rest):
    X, y = matrices(n, d)
    return Matrices(X, y, rest.pop("groups", None), "toy")


# -- numbers ---------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.booleans())
def test_scores_are_those_of_scikit_learn(seed, n_classes, tied):
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    rng = np.random.default_rng(seed)
    truth = np.r_[np.arange(n_classes), np.arange(n_classes), rng.integers(n_classes, size=30)]
    labels = rng.integers(n_classes, size=len(truth))
    values = scores.balance((labels == truth).astype(float), truth)
    assert values.mean() == pytest.approx(balanced_accuracy_score(truth, labels))
    told = rng.standard_normal((len(truth), 1 if n_classes == 2 else n_classes))
    told = np.round(told) if tied else told
    values = scores.compute_auc(told, truth, [np.arange(len(truth))])
    columns = [roc_auc_score(truth == c, told[:, c]) for c in range(n_classes)] if n_classes > 2 else None
    assert values.mean() == pytest.approx(np.mean(columns) if columns else roc_auc_score(truth, told[:, 0]))


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_log_loss_is_that_of_scikit_learn(seed, n_classes):
    from sklearn.metrics import log_loss

    rng = np.random.default_rng(seed)
    truth, classes = rng.integers(n_classes, size=30), np.arange(n_classes)
    told = rng.dirichlet(np.ones(n_classes), 30)
    told[0] = classes == truth[0] - 1  # sure, and wrong unless the class is not there
    told[0, 0] += not told[0].any()
    assert scores.compute_losses(told, classes, truth).mean() == pytest.approx(
        log_loss(truth, told, labels=classes)
    )
    known = scores.compute_losses(told[:, 1:], classes[1:], truth)  # no training matrix has the first
    assert np.allclose(known[truth == 0], -np.log(np.finfo(float).eps))
    assert np.array_equal(known[truth > 0], scores.compute_losses(told, classes, truth)[truth > 0])


def test_errors_of_the_area_are_those_of_delong(rng):
    own, score = np.repeat([True, False], [30, 50]), rng.standard_normal(80) + np.repeat([0.8, 0.0], [30, 50])
    above = (score[own][:, None] > score[~own]) + 0.5 * (score[own][:, None] == score[~own])
    variance = above.mean(axis=1).var(ddof=1) / 30 + above.mean(axis=0).var(ddof=1) / 50
    found = scores.compute_auc(score[:, None], own.astype(int), [np.arange(80)])
    assert found.mean() == pytest.approx(above.mean())
    assert found.std() / np.sqrt(80) == pytest.approx(np.sqrt(variance), rel=0.03)  # but for n - 1


def test_r2_is_that_of_scikit_learn_and_its_errors_those_of_resampling(rng):
    from sklearn.metrics import r2_score

    y = rng.standard_normal(300)
    predicted = y + 0.5 * rng.standard_normal(300)
    values = scores.explain_variance(y, predicted)
    assert values.mean() == pytest.approx(r2_score(y, predicted))
    drawn = [r2_score(y[rows], predicted[rows]) for rows in rng.integers(300, size=(2000, 300))]
    assert values.std() / np.sqrt(300) == pytest.approx(np.std(drawn), rel=0.1)


def test_only_matrices_of_one_fold_are_compared(rng):
    """A scale of its own for each fold changes nothing; a fold of one class tells nothing."""
    truth, score = np.arange(40) % 2, rng.standard_normal((40, 1))
    folds = [np.arange(20), np.arange(20, 40)]
    moved = score + np.repeat([0.0, 100.0], 20)[:, None]
    assert np.allclose(scores.compute_auc(score, truth, folds), scores.compute_auc(moved, truth, folds))
    assert scores.compute_auc(score, np.zeros(40, int), folds) is None
    half = scores.compute_auc(score, np.r_[truth[:20], np.zeros(20, int)], folds)
    assert half.mean() == pytest.approx(scores.compute_auc(score[:20], truth[:20], folds[:1]).mean())


def test_description(rng):
    X = np.array([np.diag([1.0, 2.0, 4.0]) * (1 + 0.1 * rng.random()) for _ in range(12)])
    X[3] *= 1e6
    X[5] = X[4]
    d = describe(X, np.arange(12) % 2, np.arange(12) // 6)
    assert np.allclose(d["condition"], 4)
    assert d["definite"]
    assert d["far"] == [3]
    assert d["duplicates"] == 1
    assert d["contradictory"] == 2
    assert describe(X, np.arange(12) // 6)["contradictory"] == 0
    assert d["groups"] == [("0", 6), ("1", 6)]
    X[0] = np.diag([1.0, 2.0, 0.0])
    d = describe(X, np.arange(12) % 2)
    assert d["ranks"].min() == 2
    assert np.isinf(d["condition"][0])
    X[0] = np.diag([1.0, 2.0, -1.0])
    with pytest.raises(ValueError, match=r"X\[0\] is not positive semi-definite"):
        describe(X, np.arange(12) % 2)


# -- folds -----------------------------------------------------------------------------


def test_every_matrix_is_tested_once_in_each_repeat():
    plan = make_plan(toy(), repeats=3)
    assert len(plan.splits) == 3
    for folds in plan.splits:
        assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(40))
        assert not any(np.intersect1d(train, test).size for train, test in folds)
    again = make_plan(toy(), repeats=3)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(plan.splits[2], again.splits[2], strict=True))
    other = make_plan(toy(), repeats=3, seed=1)
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(plan.splits[2], other.splits[2], strict=True))


def test_groups_are_left_out_whole():
    groups = np.repeat(["a", "b", "c", "d"], 10)
    plan = make_plan(toy(groups=groups))
    assert [set(groups[test]) for _, test in plan.splits[0]] == [{"a"}, {"b"}, {"c"}, {"d"}]
    assert "4 groups was left out in turn" in plan.how
    many = make_plan(toy(groups=np.arange(40) // 2))
    assert len(many.splits[0]) == 10
    assert many.design.codes.max() == 19


def test_a_test_file_is_one_fold():
    data = toy()
    test = Matrices(data.X[:6], data.y[:6], None, "later")
    plan = make_plan(data, test)
    assert plan.tested.tolist() == list(range(40, 46))
    assert plan.trained.tolist() == list(range(40))
    with pytest.raises(ValueError, match="has the label 'feet', which toy has not"):
        make_plan(data, replace(test, y=np.array(["feet"] * 6)))
    with pytest.raises(ValueError, match="matrices 3 x 3 and toy 4 x 4: expected the same"):
        make_plan(data, replace(test, X=test.X[:, :3, :3]))


@pytest.mark.parametrize(
    ("y", "groups", "message"),
    [
        (None, None, "toy has no labels"),
        (np.zeros(40, int), None, "at least two classes"),
        (np.arange(40) // 14, np.zeros(40), "at least two groups"),
        (np.repeat([0, 1], 20), np.repeat([0, 1], 20), "one class only"),
        (np.array([0] * 38 + [1] * 2), None, "The classes have 2, 38 matrices: expected at least 2"),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(y, groups, message):
    data = replace(toy(), y=y, groups=groups)
    with pytest.raises(ValueError, match=message):
        make_plan(data)


# -- the journal -----------------------------------------------------------------------


FAST = ("euclid", "logeuclid-mean", "mdm")


def test_results_of_other_settings_are_computed_beside(tmp_path):
    """And more repeats of the same folds resume."""
    path = tmp_path / "a.state"
    for k, options in enumerate(({}, {"seed": 1}, {"class_weight": "balanced"})):
        run_plan(make_plan(toy(), methods=FAST, repeats=1, **options), path)
        assert len(path.read_text().splitlines()) == 15 * (k + 1)
    run_plan(make_plan(toy(), methods=FAST, repeats=2), path)
    assert len(path.read_text().splitlines()) == 15 * 4


class Fails:
    """A classifier whose `fit` fails when it is the turn of the error."""

    def __init__(self, error, turns):
        self.error, self.turns = error, turns

    def fit(self, X, y):
        if next(self.turns):
            raise self.error
        self.label = y[0]
        return self

    def predict(self, X):
        return np.full(len(X), self.label)

    def get_params(self, deep=True):
        return {}


def test_a_method_that_fails_is_said_and_the_others_go_on(tmp_path, monkeypatch):
    broken = Fails(ValueError("no luck"), repeat(True))
    monkeypatch.setitem(METHODS, "spdmetric", replace(METHODS["spdmetric"], recipe=lambda sizes: broken))
    report = spdmetric.compare(toy(), methods=("euclid", "spdmetric"), repeats=1)
    assert report.verdict.failed == {Entry("spdmetric"): "ValueError: no luck"}
    assert [entry.method for entry in report.verdict.scores] == ["euclid"]
    said = "1 of 2 methods failed and are not compared: LogEuclideanClassifier (ValueError: no luck)."
    assert said in str(report)
    report.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "The learned metric</h2>" not in text
    assert "LogEuclideanClassifier: ValueError: no luck." in text
    with pytest.raises(ValueError, match=r"No method could be run\. LogEuclideanClassifier: ValueError: no"):
        spdmetric.compare(toy(), methods="spdmetric", repeats=1)


def test_what_all_matrices_do_not_give_is_said_and_not_drawn(tmp_path):
    """Each matrix is there with both labels: only in the folds do the classes differ, by chance."""
    X = np.concatenate([matrices(20)[0]] * 2)
    report = spdmetric.compare(X, np.repeat(["a", "b"], 20), methods="spdmetric-weighting", repeats=1)
    report.save(tmp_path / "page.html")
    text = re.sub(r"<[^>]*>", "", (tmp_path / "page.html").read_text())
    sentence = (
        "LogEuclideanClassifier, weighting was trained in every fold, and cannot be trained on all 40 "
        "matrices: "
    )
    assert sentence in text
    assert "40 matrices are equal to one of another class" in text
    with pytest.raises(ValueError, match=sentence):
        report.best_estimator()


def test_slow_methods_are_run_where_they_are_named(monkeypatch):
    monkeypatch.setitem(METHODS, "mdm", replace(METHODS["mdm"], is_slow=lambda n, d, n_classes: True))
    assert "mdm" not in make_plan(toy()).methods
    assert "would take long with 40 matrices of size 4" in make_plan(toy()).left_out["mdm"]
    assert make_plan(toy(), methods=("mdm",)).methods == ("mdm",)


# -- what is said, on made-up results whose truth is known -----------------------------


def made_up(right, *, groups=None, recentered=False, X=None, losses=None, **options):
    """The verdict where each method labels the given matrices of 100 rightly, and the others wrongly."""
    data = toy(100, groups=groups) if X is None else X
    plan = make_plan(data, repeats=1, methods=("euclid",), **options)
    truth = plan.codes
    outcomes = {
        entry_of(name): outcome(
            np.where(np.isin(np.arange(100), rows), truth, 1 - truth)[None], (losses or {}).get(name)
        )
        for name, rows in right.items()
    }
    return verdict.judge(replace(plan, recentered=plan.X if recentered else None), outcomes, {})


def outcome(labels, losses=None):
    return {"labels": labels, "scores": None, "losses": losses, "seconds": 1.0, "warning": None}


def entry_of(name):
    """``mdm`` and ``mdm recentered``, as these tests write them."""
    method, _, recentered = name.partition(" ")
    return Entry(method, bool(recentered))


def said(right, **options):
    return verdict.sentences(made_up(right, **options))


# Which of 100 matrices are right: a tenth more, or a tenth that differs without a gain.
NINETY, EIGHTY, OTHER_EIGHTY = range(90), range(80), (*range(70), *range(80, 90))
HALF = np.arange(100) % 2  # two groups
GROUPS = np.arange(100) // 34  # three


@pytest.mark.parametrize(
    ("better", "worse", "groups", "answer"),
    [
        (NINETY, range(70), HALF, "{} helps: +20.0 points {} (95 % interval +11.9 to +28.1)."),
        (range(70), NINETY, HALF, "{} hurts: -20.0 points {} (95 % interval -28.1 to -11.9)."),
        (
            OTHER_EIGHTY,
            EIGHTY,
            HALF,
            "Whether {} helps cannot be told: +0.0 points {} (95 % interval -9.0 to +9.0).",
        ),
        # One matrix more of each group: as sure as three of a hundred are.
        (
            [*range(0, 30), *range(34, 64), *range(68, 98)],
            [*range(0, 29), *range(34, 63), *range(68, 97)],
            GROUPS,
            "Whether {} helps cannot be told: +3.0 points {} (95 % interval -0.9 to +6.9).",
        ),
    ],
)
def test_whether_learning_and_recentering_help(better, worse, groups, answer):
    answer = answer.replace("-", "\N{MINUS SIGN}")

    def expected(what, against):
        return answer.format(what if answer.startswith("{") else f"{what[0].lower()}{what[1:]}", against)

    found = said({"spdmetric": better, "spdmetric-mean": worse}, groups=groups)[1]
    assert found == expected("Learning the metric", "against LogEuclideanClassifier at the mean")
    _, untested, recentering = said({"mdm": worse, "mdm recentered": better}, recentered=True, groups=groups)
    assert untested == "Whether learning the metric helps was not tested: run spdmetric and spdmetric-mean."
    what = expected("Recentering each group by its own mean", "with MDM")
    assert recentering == f"{what} It needs all matrices of a new group at once, without labels."


LDA = "logeuclid-mean-lda"


@pytest.mark.parametrize(
    ("right", "groups", "answer"),
    [
        (
            {"mdm": range(96), LDA: range(93)},
            HALF,
            "Use MDM: 96 % right on matrices it had not seen (best of 2; guessing: 50 %). Plain tangent "
            "space + LDA: 93 % right. The difference is within the noise of 100 matrices in 2 groups.",
        ),
        (
            {"mdm": range(96), LDA: range(70), "svm": range(96)},
            None,
            "Use MDM: 96 % right on matrices it had not seen (best of 3; guessing: 50 %). Plain tangent "
            "space + LDA: 70 % right. The difference is more than the noise of 100 matrices.",
        ),
        (
            {LDA: EIGHTY, "mdm": OTHER_EIGHTY},
            np.arange(100) % 3,
            "Use Tangent space + LDA: 80 % right on matrices it had not seen (best of 2; guessing: 50 %). "
            "The next, MDM: 80 % right. The difference is within the noise of 100 matrices in 3 groups.",
        ),
        (
            {"mdm": EIGHTY},
            HALF,
            "MDM, the only method that was run: 80 % right on matrices it had not seen (guessing: 50 %).",
        ),
        (
            {"mdm": range(100), LDA: range(100), "svm": range(100)},
            HALF,
            "All 3 methods are right on all 100 matrices that they had not seen (95 % interval 96.3 to 100 %"
            "): these data do not tell them apart.",
        ),
        (
            {"mdm": range(55), LDA: range(50)},
            HALF,
            "Nothing here is clearly better than guessing: the best of 2, MDM: 55 % right on matrices it "
            "had not seen (guessing: 50 %), within the noise of 100 matrices in 2 groups.",
        ),
        (
            {"mdm": range(70), LDA: range(69), "mdm recentered": NINETY},
            HALF,
            "The difference is within the noise of 100 matrices in 2 groups. Where all matrices of a new "
            "group are there at once: 90 % right with MDM (recentered).",
        ),
    ],
)
def test_the_headline_can_be_read_alone(right, groups, answer):
    found = said(right, groups=groups, recentered="mdm recentered" in right)[0]
    assert answer in found


def test_ties_are_named_up_to_three_and_never_out_of_order():
    """The third of the table is clearly worse; the fourth would not be, were its rank not below."""
    right = {"mdm": range(92), "svm": range(90), "euclid": range(84), "nca": (*range(60, 100), *range(43))}
    judged = made_up(right, groups=HALF)
    assert [entry in judged.tied for entry in judged.scores] == [False, True, False, False]
    assert [gain.sign for gain in judged.behind.values()] == [0, 1, 0]
    assert verdict.remarks(judged)["ties"] == "Not clearly behind MDM: Tangent space + SVM."
    many = dict.fromkeys(("mdm", "svm", "euclid", "nca", LDA), EIGHTY)
    found = verdict.remarks(made_up(many))["ties"]
    assert found == "Not clearly behind MDM: 4 others, marked ≈ in the table."
    assert verdict.remarks(made_up({"mdm": EIGHTY}))["ties"] == ""


@pytest.mark.parametrize(("noise", "word"), [(0.6, "is more than"), (0.2, "is within")])
def test_regression_is_answered_with_r2(noise, word, rng):
    X, y = toy(100).X, np.linspace(0, 3, 100)
    plan = make_plan(Matrices(X, y, None, "toy"), repeats=1)
    assert set(plan.methods) == {"regressor", "regressor-mean", "logeuclid-mean-ridge", "mean"}
    scatter = rng.standard_normal((2, 1, 100))
    told = {"regressor": y + 0.2 * scatter[0], "logeuclid-mean-ridge": y + noise * scatter[1]}
    told |= {"regressor-mean": y + 0.2 * scatter[0], "mean": np.full((1, 100), 1.5)}
    judged = verdict.judge(plan, {Entry(k): outcome(v) for k, v in told.items()}, {})
    headline, learning = verdict.sentences(judged)
    assert headline.startswith("Use LogEuclideanRegressor: R² 0.9")
    assert "(best of 4; predicting the mean: 0.00). Plain tangent space + ridge: R² 0." in headline
    assert f"The difference {word} the noise of 100 matrices." in headline
    assert learning.startswith("Whether learning the metric helps cannot be told: +0.000")
    assert judged.scores[Entry("mean")]["mae"].mean == pytest.approx(np.mean(np.abs(y - 1.5)))


def test_groups_that_carry_the_target_are_told_of():
    data = replace(
        toy(100), y=np.repeat([0, 1], 50), groups=np.r_[np.repeat([0, 1], [48, 2]), np.repeat([1, 2], 25)]
    )
    assert "Groups carry the target: 92%" in verdict.confound_sentence(make_plan(data, recenter=True))
    assert verdict.confound_sentence(make_plan(replace(data, groups=np.arange(100) % 5))) == ""


def test_learning_is_paired_with_the_mean_in_both_forms():
    right = {"spdmetric": range(70), "spdmetric-weighting": EIGHTY, "spdmetric-mean": range(70)}
    right |= {"spdmetric recentered": NINETY, "spdmetric-mean recentered": range(70)}
    gains = made_up(right, recentered=True).learning
    assert [(a.method, a.recentered, round(gain.mean)) for (a, _), gain in gains.items()] == [
        ("spdmetric", False, 0),
        ("spdmetric-weighting", False, 10),
        ("spdmetric", True, 20),
    ]


def test_the_score_that_was_asked_for_decides():
    """Of 90 and 10 matrices: right on the large class alone, or on four fifths of both."""
    data = replace(toy(100), y=np.repeat([0, 1], [90, 10]), groups=HALF)
    right = {"mdm": range(90), "svm": (*range(72), *range(90, 98))}
    assert made_up(right, X=data).best.method == "mdm"
    judged = made_up(right, X=data, scoring="balanced")
    assert judged.best.method == "svm"
    for score in ("balanced", "accuracy"):
        assert judged.scores[judged.best][score].mean == pytest.approx(80)
    assert judged.chance == 50
    assert "Use Tangent space + SVM: balanced accuracy 80 % on" in verdict.headline(judged)
    with pytest.raises(ValueError, match="No method gives scores for AUC"):
        made_up(right, X=data, scoring="auc")


def test_less_log_loss_is_better_and_methods_without_probabilities_come_last():
    right = {"mdm": EIGHTY, "svm": NINETY, "euclid": EIGHTY, "spdmetric": EIGHTY}
    noise = np.tile([-0.1, 0.1], 50)
    losses = {name: [of + noise] for name, of in {"mdm": 0.5, "spdmetric": 0.25, "euclid": 2.0}.items()}
    judged = made_up(right, scoring="logloss", losses=losses)
    assert [entry.method for entry in judged.scores] == ["spdmetric", "mdm", "euclid", "svm"]
    assert [entry.method for entry in judged.deciding] == ["spdmetric", "mdm", "euclid"]
    assert "logloss" not in judged.scores[Entry("svm")]
    assert judged.behind[Entry("mdm")].mean == pytest.approx(0.25)
    assert verdict.headline(judged).startswith(
        "Use LogEuclideanClassifier: log loss 0.250 on matrices it had not seen (best of 3; guessing: 0.693)."
    )
    pair = {"spdmetric": [0.4 + noise], "spdmetric-mean": [0.5 - noise]}
    found = said(dict.fromkeys(pair, EIGHTY), scoring="logloss", losses=pair, groups=HALF)
    assert "Learning the metric helps: +0.100 nats against" in found[1]


def test_what_was_saved_is_said():
    right = {"mdm recentered": NINETY, "mdm": EIGHTY, "euclid": range(60)}
    judged = made_up(right, recentered=True)
    assert verdict.saved_sentence(judged, "mdm", "m.skops") == (
        "m.skops holds MDM, trained on all 100 matrices. MDM (recentered) needs all matrices of a new group "
        "at once and cannot be kept."
    )
    other = verdict.saved_sentence(judged, "euclid", "m.skops")
    assert other == "m.skops holds Euclid + 1-NN, trained on all 100 matrices."


# The code that the page offers


@pytest.mark.parametrize(
    ("origin", "known", "new"),
    [
        (Origin("a.npz"), "'a.npz'", "'new.npz'"),
        (Origin("a.npy", None, {"labels": "y.csv"}), "'a.npy', labels='y.csv'", "'new.npz'"),
        (
            Origin("a.mat", "b.mat", {"labels": "cue", "subject": 3}),
            "'a.mat', labels='cue', subject=3",
            "'b.mat', subject=3",
        ),
        (
            Origin("a.edf", None, {"events": "T1,T2"}, signals=True),
            "'a.edf', events='T1,T2'",
            "'new.edf', events='T1,T2'",
        ),
    ],
)
def test_the_code_reads_what_was_read(origin, known, new):
    function = "read_signals" if origin.signals else "read_matrices"
    assert origin.calls() == (f"{function}({known})", f"{function}({new})")


def test_the_code_leaves_out_what_was_left_out(tmp_path, monkeypatch, capsys):
    """And the page says what that was."""
    X, y = matrices(30)
    X, codes = np.insert(X, [4, 9], np.nan, axis=0), np.unique(y, return_inverse=True)[1]
    monkeypatch.chdir(tmp_path)
    np.savez("toy.npz", X=X, y=np.insert(codes, [4, 9], 0), groups=np.arange(32) % 4)
    np.savez("new.npz", X=X[:6])
    command = ["compare", "toy.npz", "--skip-bad", "--methods", "spdmetric-mean", "--jobs", "1"]
    assert main([*command, "--save", "m.skops", "--no-recenter"]) == 0
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Left out by --skip-bad, 2 of 32: X[4] (contains NaN in 16 of 16 entries), X[10] (" in text
    assert "nothing removed but what could not be used" in text
    scope = {}
    exec(unescape(re.search("<pre.*?><code>(.*?)</code>", text, re.S)[1]), scope)
    assert scope["usable"](scope["known"]) == [k for k in range(32) if k not in (4, 10)]
    labels = spdmetric.load("m.skops").predict(X[[0, 1, 2, 3, 5]])
    assert capsys.readouterr().out.endswith(f"\n{labels}\n")


# -- the page --------------------------------------------------------------------------


class Outline(HTMLParser):
    """What the checks below need of a page: its elements with their attributes, and the headings' order."""

    def __init__(self, text):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "wbr", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture
def outline(page):
    return Outline(page.read_text("utf-8"))


def test_page_is_balanced_and_its_ids_are_its_own(outline):
    assert outline.unbalanced == []
    assert outline.open == []
    ids = [attrs["id"] for _, attrs in outline.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = [a[key] for _, a in outline.elements for key in ("aria-labelledby",) if key in a]
    linked = [a["href"][1:] for a in outline.all("a") if a["href"].startswith("#")]
    assert {*named, *linked} <= set(ids)


def test_page_asks_the_network_for_nothing_and_escapes_what_users_write(page, outline):
    for tag, attrs in outline.elements:
        for key in ("src", "href"):
            value = attrs.get(key, "#")
            assert value.startswith(("#", "data:")), (tag, value[:60])
    assert "default-src 'none'" in page.read_text("utf-8")
    assert "@import" not in page.read_text("utf-8")
    assert "&lt;b&gt;left&lt;/b&gt; &amp; co" in page.read_text("utf-8")
    assert "<b>left" not in page.read_text("utf-8")


def test_page_is_made_for_everyone(outline):
    assert outline.all("html") == [{"lang": "en"}]
    headings = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert headings.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(headings))
    images = outline.all("img")
    assert len(images) == len(outline.all("figure")) >= 5
    assert all(len(image["alt"]) > 20 for image in images)
    assert all("scope" in th for th in outline.all("th"))


def timeless(page):
    """The page without what tells when it was made, and how long that took."""
    text = re.sub(r'<th scope="row">(Date|Time)</th><td>.*?</td>', "", page.read_text("utf-8"))
    return re.sub(r"data:application/json;base64,[^\"]*", "", text)


def test_the_same_command_again_writes_the_same_page(page, capsys):
    before = timeless(page)
    again = write_page(page.parent, "--methods", FEW)
    assert timeless(again) == before
    assert "written:" in capsys.readouterr().out
    assert json.loads(page.with_suffix(".state").read_text().splitlines()[0])["key"]["version"]


@pytest.mark.parametrize("shared", [True, False])
def test_singular_matrices_get_a_page_of_what_allows_them(shared, tmp_path):
    X, y = matrices(24, 4)
    half = np.linalg.qr(np.random.default_rng(0).standard_normal((1 if shared else 24, 4, 3)))[0]
    P = half @ half.transpose(0, 2, 1)
    X = P @ X @ P
    methods = "euclid,wasserstein,logeuclid-kta-rank" + ",logeuclid-chosen" * shared + ",mdm,spdmetric-mean"
    out = write_page(tmp_path, "--methods", methods, data=((X + X.transpose(0, 2, 1)) / 2, y))
    text = out.read_text("utf-8")
    assert ">3 of 4<" in text
    assert ("MDM; LogEuclideanClassifier at the mean: needs matrices of full rank" in text) is not shared
    why = "was not tested: LogEuclideanClassifier at the mean needs matrices of full rank"
    assert (why in text.replace("<wbr>", "")) is not shared
    assert ("all in the same direction of 4" in text) is shared
    assert ("CommonRange()" in text) is shared
    assert "The learned metric</h2>" in text


def test_many_classes_some_of_two_matrices_get_a_page_that_can_be_read(tmp_path):
    """Twenty classes: a picture and the worst confusions instead of a table of 400 cells."""
    rng = np.random.default_rng(0)
    y = np.r_[np.repeat(np.arange(18), 5), 18, 18, 19, 19]
    scales = np.exp(rng.standard_normal((20, 3)))[y]
    vectors = np.sqrt(scales)[:, :, None] * rng.standard_normal((len(y), 3, 30))
    X, y = vectors @ vectors.transpose(0, 2, 1) / 30, np.array([f"kind {c:02d}" for c in range(20)])[y]
    text = write_page(tmp_path, "--methods", "euclid,logeuclid-mean,mdm", data=(X, y)).read_text("utf-8")
    assert "20, each of 2 to 5 matrices (<bdi>kind 00</bdi>:&nbsp;5" in text
    assert re.search(r"<li><bdi>kind \d\d</bdi> was called <bdi>kind \d\d</bdi>: \d of \d</li>", text)
    assert 'class="confusion"' not in text
    assert len(text) < 400_000


def test_a_test_file_and_groups_from_the_command_line(tmp_path, capsys):
    X, y = matrices(60)
    y = np.array(["a", "b"])[np.unique(y, return_inverse=True)[1]]
    np.save(tmp_path / "X.npy", X[:40])
    (tmp_path / "y.csv").write_text("label\n" + "\n".join(y[:40]))
    (tmp_path / "g.csv").write_text("\n".join(str(i // 8) for i in range(40)))
    np.savez(tmp_path / "later.npz", X=X[40:], y=y[40:])
    common = ["compare", str(tmp_path / "X.npy"), "--labels", str(tmp_path / "y.csv"), "--jobs", "1"]
    common += ["--methods", "euclid,logeuclid-mean"]
    assert main([*common, "--groups", str(tmp_path / "g.csv"), "--out", str(tmp_path / "g.html")]) == 0
    text = (tmp_path / "g.html").read_text("utf-8")
    assert "Each of the 5 groups was left out" in text
    assert "of 40 matrices in 5 groups" in text
    assert main([*common, "--test", str(tmp_path / "later.npz"), "--out", str(tmp_path / "t.html")]) == 0
    text = (tmp_path / "t.html").read_text("utf-8")
    assert "tested on the 20 of later" in text
    assert "read_matrices(&#39;later.npz&#39;)" in text


def test_arrays_are_compared_without_files(tmp_path):
    X, y = matrices(40)
    report = spdmetric.compare(X[:30], y[:30], test=(X[30:], y[30:]), methods=("euclid", "mdm"))
    assert report.verdict.plan.how.endswith("tested on the 10 of the test matrices.")
    assert str(report).count("\n") == 2
    report.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Which metric suits these matrices?" in text
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_without_jinja_the_extra_is_named_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr(run, "run_tasks", None)
    X, y = matrices()
    np.savez(tmp_path / "toy.npz", X=X, y=y)
    assert main(["compare", str(tmp_path / "toy.npz"), "--out", str(tmp_path / "report.html")]) == 2
    assert "pip install 'spdmetric[compare]'" in capsys.readouterr().err


# -- groups ----------------------------------------------------------------------------


def sessions(n=60, d=3, seed=0):
    """Two classes in three sessions, each seen through a mixture of its own."""
    rng = np.random.default_rng(seed)
    y, groups = np.arange(n) % 2, np.arange(n) % 3
    scales = np.where(y[:, None] == 1, [4.0, 1.0, 1.0], [1.0, 4.0, 1.0])
    A = rng.standard_normal((n, d, 20)) * np.sqrt(scales)[:, :, None]
    mixing = rng.standard_normal((3, d, d))[groups]
    return Matrices(mixing @ (A @ A.swapaxes(1, 2) / 20) @ mixing.swapaxes(1, 2), y, groups, "sessions")


def labels(report, name, recentered=False):
    return report.verdict.outcomes[Entry(name, recentered)]["labels"]


def test_recentered_methods_see_what_whitening_by_hand_gives():
    data = sessions()
    report = spdmetric.compare(data, methods=("mdm", "euclid"))
    by_hand = spdmetric.compare(recenter(data.X, data.groups), data.y, data.groups, methods=("mdm", "euclid"))
    for name in ("mdm", "euclid"):
        assert np.array_equal(labels(report, name, True), labels(by_hand, name))
    assert report.verdict.recentering[Entry("mdm")].mean > 10
    assert report.table.recentered.sum() == 8


def test_singular_sessions_are_recentered_in_their_range():
    data = sessions()
    basis = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 3)))[0]
    low = replace(data, X=basis @ data.X @ basis.T)
    low, full = (labels(spdmetric.compare(m, methods=("mdm",)), "mdm", True) for m in (low, data))
    assert np.array_equal(low, full)


def test_a_group_of_one_matrix_cannot_be_recentered():
    data = replace(sessions(), groups=np.r_[np.zeros(30), np.ones(29), 2])
    with pytest.raises(ValueError, match="a group has one matrix, its own mean"):
        make_plan(data, recenter=True)


def test_recentering_is_for_groups_and_can_be_left_out():
    assert make_plan(sessions()).recentered is not None
    assert make_plan(sessions(), recenter=False).recentered is None
    assert make_plan(replace(sessions(), groups=None)).recentered is None
    data = replace(sessions(), groups=None)
    test = replace(data, X=data.X[:20], y=data.y[:20], name="later")
    moved = make_plan(data, test, recenter=True).recentered
    assert np.allclose(moved[60:], recenter(test.X, np.zeros(20)))
    assert np.allclose(moved[:60], recenter(data.X, np.zeros(60)))


def test_folds_inside_keep_groups_together(monkeypatch):
    """Unless one group is left to learn from, or leaving one out would leave one class."""
    seen = []

    class Asks(Fails):
        def fit(self, X, y, groups=None):
            seen.append(groups)
            return super().fit(X, y)

    monkeypatch.setitem(
        METHODS, "mdm", replace(METHODS["mdm"], recipe=lambda s: Asks(ValueError(), repeat(False)))
    )
    data = sessions()
    spdmetric.compare(data, methods=("mdm",), recenter=False)
    assert [sorted(set(groups)) for groups in seen] == [[1, 2], [0, 2], [0, 1]]
    seen.clear()
    spdmetric.compare(replace(data, groups=data.groups % 2), methods=("mdm",), recenter=False)
    assert seen == [None, None]


# -- what is kept when a run ends early ------------------------------------------------


INTERRUPTED = share_of(20) if NIGHTLY else 1  # runs, each interrupted two or three times


FOUR = "euclid,logeuclid-mean,mdm,spdmetric-mean"
COMMAND = ("compare", "toy.npz", "--repeats=1", "--csv=numbers.csv", f"--methods={FOUR}")  # 20 results


def begun(folder, *more):
    """The command in a session of its own: ^C reaches its workers too, as in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "spdmetric", *COMMAND, *more],
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: set_handler(SIGINT, SIG_DFL),  # what runs in the background ignores it
    )


def parts_in(state):
    """Method and fold of each whole line of a store."""
    lines = state.read_bytes().split(b"\n")[:-1] if state.exists() else []
    return [(line["key"]["method"], line["key"]["fold"]) for line in map(json.loads, lines)]


def numbers_in(folder):
    """The table without how long it took."""
    return [line.rpartition(",")[0] for line in (folder / "numbers.csv").read_text().splitlines()]


@pytest.mark.parametrize("seed", range(INTERRUPTED))
def test_finished_folds_survive_interruptions_at_any_moment(seed, tmp_path, monkeypatch):
    """None is run again, and in the end the numbers are those of one run."""
    rng, state, jobs = np.random.default_rng(seed), tmp_path / "report.state", f"--jobs={1 + seed % 2}"
    X, y = matrices(40)
    np.savez(tmp_path / "toy.npz", X=X, y=np.unique(y, return_inverse=True)[1])
    for signal in rng.permutation([SIGINT, SIGKILL, *([SIGINT] if NIGHTLY else [])]):
        before = parts_in(state)
        process = begun(tmp_path, jobs)
        if NIGHTLY and rng.random() < 0.3:
            sleep(rng.uniform(0, 3))  # while modules are loaded, and later
        else:
            wanted = len(before) + rng.integers(6)
            while process.poll() is None and (not state.exists() or len(parts_in(state)) < wanted):
                sleep(0.002)
            sleep(rng.uniform(0, 0.05))
        if process.poll() is None:
            os.killpg(process.pid, signal)
        error = process.communicate()[1]
        kept = parts_in(state)
        assert kept[: len(before)] == before
        of_python = ("Could not import runpy", "Fatal Python error: init_")
        began = not any(words in error for words in of_python)  # before anything of ours
        assert process.returncode in ((0, 130, -signal) if began else (1,)), error
        if process.returncode == 130 and began:
            assert "interrupted; give the same command again to resume." in error
            assert "Traceback" not in error
    process = begun(tmp_path, jobs)
    error = process.communicate()[1]
    assert process.returncode == 0, error
    parts = parts_in(state)
    assert parts[: len(kept)] == kept
    assert len(parts) == len(set(parts)) == 20
    found = numbers_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main([*COMMAND, "--jobs=1", "--out=once.html"]) == 0
    assert numbers_in(tmp_path) == found


# -- files, notebooks, models ----------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory, numpy_only):
    folder = tmp_path_factory.mktemp("written")
    page = write_page(
        folder,
        *("--methods", "mdm,logeuclid-mean,svm", "--scoring", "auc", "--save", str(folder / "model.skops")),
        *("--csv", str(folder / "numbers.csv"), "--json", str(folder / "numbers.json")),
    )
    return page


def test_tables_load_in_one_line_and_have_the_numbers_of_the_page(written):
    by_csv = pandas.read_csv(written.parent / "numbers.csv")
    by_json = pandas.read_json(written.parent / "numbers.json", orient="table")
    pandas.testing.assert_frame_equal(by_csv, by_json, check_dtype=False, check_column_type=False)
    assert list(by_csv.columns) == list(COLUMNS)
    assert set(by_csv.schema) == {1}
    rows = re.findall(
        r'<tr[^>]*><th scope="row">(.*?)</th>((?:<td class="number" data-value="[^"]*">[^<]*</td>){4})',
        written.read_text("utf-8").partition('id="accuracies"')[2].partition("</table>")[0],
    )
    assert len(rows) == 3
    for title, cells in rows:
        own = by_csv[by_csv.title == re.sub("<.*?>", "", title)].set_index("score")
        shown = re.findall(r">([^<]*)</td>", cells)
        for score, cell in zip(("accuracy", "balanced", "auc", "logloss"), shown, strict=True):
            mean, se, digits = own["mean"][score], own["se"][score], 3 if score == "logloss" else 1
            assert cell == ("\N{EN DASH}" if np.isnan(mean) else f"{mean:.{digits}f} ± {se:.{digits}f}")
    assert by_csv[by_csv.decides].score.unique().tolist() == ["auc"]


def test_the_json_file_holds_the_answer_and_the_facts(written):
    found = json.loads((written.parent / "numbers.json").read_text())
    assert found["format"] == "spdmetric.compare 1"
    assert any("AUC" in sentence for sentence in found["answer"])
    assert found["facts"]["Score that decides"] == "AUC"
    assert {"Date", "Versions", "Time", "Data digest", "Folds", "Methods"} <= set(found["facts"])
    text = re.sub('<span class="word">(.*?)</span>', r"\1", written.read_text("utf-8"))
    for name, value in found["facts"].items():
        assert f'<th scope="row">{name}</th><td>{value}</td>' in text


def test_what_is_saved_predicts_as_the_code_of_the_page(written, monkeypatch, capsys):
    folder = written.parent
    text = written.read_text("utf-8")
    code = unescape(re.search("<pre.*?><code>(.*?)</code>", text, re.S)[1])
    monkeypatch.chdir(folder)
    np.savez("new.npz", X=matrices(30)[0])
    capsys.readouterr()
    scope = {}
    exec(code, scope)
    model = spdmetric.load("model.skops")
    assert np.array_equal(model.predict(scope["new"].X), scope["model"].predict(scope["new"].X))
    assert re.search("<li>model.skops holds .*, trained on all 24 matrices.</li>", text)


def test_another_method_can_be_saved(tmp_path):
    write_page(
        tmp_path, "--methods", "euclid,mdm", "--save", str(tmp_path / "m.skops"), "--method", "logeuclid-mean"
    )
    assert type(spdmetric.load(tmp_path / "m.skops")[-1]).__name__ == "KNeighborsClassifier"


def test_a_report_in_a_notebook(tmp_path, monkeypatch):
    X, y = matrices(30)
    report = spdmetric.compare(
        X, y, methods=("euclid", "logeuclid-kta"), repeats=1, channels=["C3", "Cz", "C4", "<b>"]
    )
    html = report._repr_html_()
    assert html.startswith('<iframe title="spdmetric.compare" srcdoc="&lt;!DOCTYPE html&gt;')
    assert html.count("<") == 2
    page = unescape(re.search('srcdoc="(.*?)"', html, re.S)[1])
    pictures = [b64decode(data).decode() for data in re.findall('svg\\+xml;base64,([^"]*)"', page)]
    for name in ("C3", "Cz", "C4", "&lt;b&gt;"):
        assert any(f">{name}</text>" in picture for picture in pictures)
    assert '<th scope="row">File</th><td>none: arrays in Python</td>' in page
    model = report.best_estimator()
    assert model is report.best_estimator()
    assert np.array_equal(model.classes_, np.unique(y))
    axes = report.plot()
    assert axes.get_xlabel() == "accuracy, per cent"
    low, high = axes.get_ylim()
    assert low <= -0.5, "marks on the edge are cut"
    assert high >= len(axes.get_yticks()) - 0.5
    assert len(report.table) == len(report.rows) == 8
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert report.table == report.rows
    with pytest.raises(ValueError, match="channels has 2 names: expected 4"):
        spdmetric.compare(X, y, channels=["C3", "C4"])
    with pytest.raises(ValueError, match="No method manhattan"):
        report.best_estimator("manhattan")


def test_singular_matrices_that_no_method_takes_get_the_reason(capsys, tmp_path):
    X, y = matrices(24)
    X[:, 0] = X[:, :, 0] = 0
    X[0] += np.diag([1.0, 0, 0, 0])  # no common range
    np.savez(tmp_path / "low.npz", X=X, y=y)
    out = str(tmp_path / "r.html")
    assert main(["compare", str(tmp_path / "low.npz"), "--methods", "mdm", "--out", out]) == 2
    assert "No method can be run on these matrices: mdm needs matrices of full" in capsys.readouterr().err


def test_signals_epochs_and_frames_are_compared(rng):
    """By their covariances, with the names of the channels; names with places are drawn as heads."""
    channels, y = ["C3", "Cz", "C4", "Pz", "Fz"], np.arange(40) % 2
    signals = rng.standard_normal((40, 5, 60)) * np.where(y, 1.0, 3.0)[:, None, None]
    options = {"methods": ("logeuclid-kta", "mdm"), "repeats": 1}
    found = spdmetric.compare(signals, y, **options)
    assert "estimated by OAS" in found.data.notes[-1]
    events = np.column_stack([np.arange(40), np.zeros(40, int), y + 1])
    info = mne.create_info(channels, 100.0, "eeg")
    epochs = mne.EpochsArray(1e-6 * signals, info, events, event_id={"rest": 1, "move": 2}, verbose=False)
    report = spdmetric.compare(epochs, **options)
    assert report.channels == tuple(channels)
    assert set(report.data.y) == {"rest", "move"}
    page = unescape(report._repr_html_())
    assert any(
        "component 1" in b64decode(one).decode() for one in re.findall('svg\\+xml;base64,([^"]*)"', page)
    )
    rows = [pandas.DataFrame(one.T, columns=channels).assign(trial=k) for k, one in enumerate(signals)]
    frame = pandas.concat(rows).groupby("trial").cov()
    assert spdmetric.compare(frame, y, **options).channels == tuple(channels)


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"repeats": -1}, ValueError, "repeats=-1: expected a whole number >= 1"),
        ({"methods": "mdmm"}, ValueError, "No method mdmm; there are"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0: expected a whole number"),
        ({"groups": ["s", "s"]}, ValueError, r"groups has shape \(2,\) for 24 matrices: expected one"),
        ({"groups": [object()] * 24}, TypeError, r"groups\[0\] is <object"),
        ({"y": None}, ValueError, "There are no labels of these matrices: pass them as y"),
        ({"X": "file.npz"}, TypeError, "'file.npz' is the name of a file: pass read_matrices"),
    ],
)
def test_arguments_of_compare(given, error, sentence, rng):
    X, y = labeled(rng, 24, 3)
    with pytest.raises(error, match=sentence):
        spdmetric.compare(**{"X": X, "y": y} | given)
