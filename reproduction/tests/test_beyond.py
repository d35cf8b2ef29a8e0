"""The table beyond the paper: its groups and data, its summary, its text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from random_matrices import labeled
from reproduction import beyond
from reproduction.datasets import load_cho2017, load_ssvep
from reproduction.runs import Settings, run_table
from reproduction.statistics import as_markdown, as_plain
from reproduction.summary import summarize
from reproduction.tables import DrawnRow, FixedRow, Group, Result, Table, folds_of
from spdmetric.comparison.store import Store
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann

CHEAP = ("logeuclid-mean", "logeuclid-mean-11nn", "csp-lda")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twenty subjects of EEGMMI, one of Cho 2017, two of SSVEP, of random 4 x 4 matrices each."""
    rng = np.random.default_rng(0)
    data = tmp_path_factory.mktemp("data")
    (data / "cho2017").mkdir()
    X, y = labeled(rng, 20, 4)
    np.savez(data / "cho2017" / "subject03.npz", covs=X, labels=np.array(["left_hand", "right_hand"])[y])
    (data / "eegmmi").mkdir()
    arrays = {}
    for s in range(1, 21):
        X, y = labeled(rng, 12, 4)
        arrays |= {f"X{s}": X.astype(np.float32), f"y{s}": y, f"r{s}": np.repeat([4, 8, 12], 4)}
    np.savez(data / "eegmmi" / "covariances_S001-S020.npz", **arrays)
    (data / "ssvep").mkdir()
    X, y = labeled(rng, 18, 4, classes=3)
    runs = {"r1": np.repeat([0, 1, 2], 6), "r2": np.repeat([3, 2, 2], 6)}
    np.savez(data / "ssvep" / "covariances.npz", X1=X, y1=y, X2=X, y2=y, **runs)
    return data


# -- data ---------------------------------------------------------------------------------


def test_absent_folders_are_named(folder):
    table = beyond.beyond_table(folder)
    assert [g.name for g in table.groups] == [
        "toy",
        "cho",
        "eegmmi-21",
        "eegmmi-64",
        "eegmmi-across",
        "ssvep",
    ]
    assert table.absent == {
        "subject 9, pairs": f"no folder bci2a or bci2a-a09 in {folder}",
        "subject 9, four": f"no folder bci2a or bci2a-a09 in {folder}",
        "textures": f"no folder brodatz in {folder}",
    }
    assert set(beyond.beyond_table(None).absent) == {
        name for name, source in beyond.GROUPS.items() if source.folders
    }


def test_rows_of_the_groups(folder):
    table = beyond.beyond_table(folder)
    assert next(iter(table.rows)) == "eegmmi-across"  # the heaviest begins
    groups = {g.name: g for g in table.groups}
    assert len(groups["eegmmi-64"].rows) == 20
    assert set(table.rows) == {row for g in table.groups for row in g.rows}
    assert (groups["cho"].n_train, groups["eegmmi-21"].n_train) == (16, 8)
    assert groups["eegmmi-across"].n_train == 120
    X, _, X_test, _ = table.rows["eegmmi-across"].split(0, 0)
    for part in (X[:12], X_test[:12]):  # each subject is whitened by its own mean
        np.testing.assert_allclose(mean_riemann(part), np.eye(4), atol=1e-7)


def test_the_first_recording_of_ssvep_is_tested_as_it_is(folder):
    table, X = beyond.beyond_table(folder), load_ssvep(1, folder / "ssvep").X
    rows = {"ssvep 1": np.arange(18) < 6, "ssvep 2": np.arange(18) >= 6}
    assert {g.name: g.rows for g in table.groups}["ssvep"] == tuple(rows)
    for name, tested in rows.items():
        X_train, _, X_test, _ = table.rows[name].split(0, 0)
        assert len(table.rows[name].tests) == 1
        np.testing.assert_array_equal(X_test, X[tested])
        np.testing.assert_array_equal(X_train, X[~tested])


def test_folds_are_stratified_whole_and_the_same_for_every_seed(rng):
    X, y = labeled(rng, 20, 3)
    row = FixedRow.of_parts(X, y, folds_of(y))
    splits = [row.split(k, seed=k) for k in range(len(row.tests))]
    assert all(list(np.bincount(y_test)) == [2, 2] for *_, y_test in splits)
    tested = np.concatenate([X_test for _, _, X_test, _ in splits])
    np.testing.assert_array_equal(np.sort(tested[:, 0, 0]), np.sort(X[:, 0, 0]))
    np.testing.assert_array_equal(splits[1][2], row.split(1, seed=99)[2])
    whitened = FixedRow.of_parts(X, y, folds_of(y), "session")
    assert whitened.digest != row.digest
    X_train, *_ = whitened.split(0, 0)
    np.testing.assert_allclose(mean_riemann(X_train), np.eye(3), atol=1e-8)


def test_repeats_are_of_drawn_rows_and_quick_cuts_all(folder):
    table = beyond.beyond_table(folder)
    tasks = table.tasks(7)
    assert sum(row == "toy 6x6" for row, _ in tasks) == 7
    assert sum(row == "cho 3" for row, _ in tasks) == 5
    assert sum(row == "eegmmi-64 20" for row, _ in tasks) == 3
    quick = table.tasks(2, quick=True)
    assert set(quick) <= set(tasks)
    assert sum(row == "cho 3" for row, _ in quick) == 2
    rows = {row for row, _ in quick}
    assert "eegmmi-across" not in rows
    assert "eegmmi-64 5" in rows
    assert "eegmmi-64 6" not in rows


# -- running ------------------------------------------------------------------------------


def small(table):
    """Without the rows that take their time."""
    groups = tuple(g for g in table.groups if g.name != "toy")
    rows = {row: table.rows[row] for g in groups for row in g.rows}
    return replace(table, title="Small", rows=rows, repeats=2, quick=1, notes=(), groups=groups)


def test_the_whole_resumes_a_quick_run(folder, tmp_path, monkeypatch):
    table, kept = small(beyond.beyond_table(folder)), []
    quick = run_table(table, Settings(CHEAP, repeats=2, quick=True), tmp_path)
    put = Store.put
    monkeypatch.setattr(Store, "put", lambda store, key, result: kept.append(key) or put(store, key, result))
    whole = run_table(table, Settings(CHEAP), tmp_path)
    assert len(kept) == len(whole) - len(quick)
    assert set(quick) < set(whole)
    summary = summarize(table, quick, CHEAP, 0)
    assert summary.absent["eegmmi-across"] == "not part of a quick run"
    assert {g.name: len(g.rows) for g in summary.groups} == {
        "cho": 1,
        "eegmmi-21": 5,
        "eegmmi-64": 5,
        "ssvep": 2,
    }
    assert {r.method for r in whole if r.row == "eegmmi-64 7"} == {"logeuclid-mean", "csp-lda"}
    assert {r.method for r in whole if r.row == "eegmmi-across"} == set(CHEAP)


# -- summary ------------------------------------------------------------------------------

REASON = "too few"


@pytest.fixture
def summary():
    """Two subjects with two folds each, two drawn rows with three repeats, one row run once."""
    groups = (
        Group("people", "Two people", ("p 1", "p 2"), "rows", 8),
        Group("drawn", "Two sizes", ("a", "b"), "repeats", 50),
        Group("one", "One row", ("once",), "repeats", 99),
    )
    values = {
        ("p 1", "logeuclid-mean"): [60, 70],
        ("p 2", "logeuclid-mean"): [70, 90],
        ("p 1", "csp-lda"): [70, 80],
        ("p 2", "csp-lda"): [90, 90],
        ("a", "logeuclid-mean"): [50, 60, 70],
        ("b", "logeuclid-mean"): [60, 60, 60],
        ("a", "csp-lda"): [52, 60, 74],
        ("b", "csp-lda"): [60, 62, 60],
        ("once", "logeuclid-mean"): [80],
        ("once", "csp-lda"): [80],
        ("once", "logeuclid-mean-11nn"): [75],
        ("once", "svm"): [79],
    }
    results = [
        Result("beyond", row, method, k, float(v), 0.0, 0)
        for (row, method), accuracies in values.items()
        for k, v in enumerate(accuracies)
    ]
    few = {"logeuclid-mean-11nn": REASON, "svm": REASON}
    table = Table(
        "beyond",
        "Small",
        {row: DrawnRow(make_toy, "toy") for g in groups for row in g.rows},
        3,
        1,
        absent={"cho": "no folder cho2017"},
        groups=groups,
        left_out={row: few for g in groups[:2] for row in g.rows},
    )
    methods = ("logeuclid-mean", "csp-lda", "logeuclid-mean-11nn", "svm")
    return summarize(table, results, methods, 4)


def test_errors_are_over_subjects_or_over_repeats(summary):
    people = summary.entries["people", "csp-lda"]
    assert (people.mean, people.se, people.n) == (82.5, pytest.approx(7.5), 2)
    assert (people.difference, people.difference_se) == pytest.approx((10.0, 0.0))  # 10 for both
    drawn = summary.entries["drawn", "csp-lda"]
    assert drawn.mean == pytest.approx(61 + 1 / 3)
    assert drawn.n == 3
    paired = np.array([1.0, 1.0, 2.0])  # means of the two rows, repeat by repeat
    assert drawn.difference == pytest.approx(paired.mean())
    assert drawn.difference_se == pytest.approx(paired.std(ddof=1) / np.sqrt(3))
    one = {method: summary.entries["one", method] for method in summary.methods}
    assert (one["csp-lda"].se, one["svm"].difference) == (None, -1)
    assert (one["csp-lda"].against, one["logeuclid-mean"].against) == ("logeuclid-mean", None)


def test_ranks_share_ties_and_count_their_groups(summary):
    assert summary.entries["one", "csp-lda"].rank == 1.5
    assert summary.mean_rank("csp-lda") == (pytest.approx((1 + 1 + 1.5) / 3), 3)
    assert summary.mean_rank("logeuclid-mean-11nn") == (4.0, 1)
    best = {("one", "csp-lda"), ("one", "logeuclid-mean"), ("people", "csp-lda"), ("drawn", "csp-lda")}
    assert summary.bold() == best


def test_text_says_what_was_run_and_what_not(summary):
    text = as_markdown(*summary.sections())
    assert "| CSP, LDA | **82.50** ± 7.50 |" in text
    assert "| not run |" in text
    assert "4.0 (1 of 3)" in text
    assert "+10.00 ± 0.00" in text
    assert "cho: absent, no folder cho2017." in text
    assert "Not run: LE at mean, 11-NN (people, drawn); LE at mean, SVM (people, drawn): too few." in text
    assert "people: Two people; mean of 2 rows, 2 repeats each, standard error over 2 subjects." in text
    assert "one: One row; one row, run once, no standard error." in text
    plain = as_plain(summary.sections()[0])
    assert "82.50* ± 7.50" in plain
    assert "*: the best" in plain


# -- real data ----------------------------------------------------------------------------


def test_real_folders(data_folder):
    table = beyond.beyond_table(data_folder)
    assert table.absent == {}
    assert [g.name for g in table.groups] == list(beyond.GROUPS)
    groups = {g.name: g for g in table.groups}
    assert len(groups["subject 9, pairs"].rows) == 6
    assert [g.n_train for g in table.groups] == [50, 144, 288, 160, 30, 30, 450, 32, 50]
    assert load_cho2017(1, data_folder / "cho2017").X.shape == (200, 16, 16)
    X, _, X_test, _ = table.rows["eegmmi-21 3"].split(0, 0)
    assert X.shape[1:] == X_test.shape[1:] == (21, 21)
    assert len(beyond.BEYOND) == 21
