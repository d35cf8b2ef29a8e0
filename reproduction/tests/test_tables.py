"""Tables of the paper: rows, runs, summary, text, picture."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from random_matrices import spd, symmetric
from reproduction import ablations
from reproduction.methods import KNOWN
from reproduction.runs import Settings, run_table
from reproduction.statistics import as_markdown, as_plain
from reproduction.summary import printed_numbers, summarize
from reproduction.tables import (
    PAPER_COLUMNS,
    DrawnRow,
    FixedRow,
    Result,
    Table,
    bci_table,
    texture_table,
    toy_table,
)
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm, logm
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data


def small_row(d):
    """Eight training and twelve test matrices: a table in no time."""
    return DrawnRow(partial(make_toy, 8, 12, d=d), f"small {d}")


def small_table(name="toy", rows=("6x6", "8x8")):
    return Table(name, "Small", {row: small_row(4 + 2 * k) for k, row in enumerate(rows)}, repeats=3, quick=1)


# -- ablations ----------------------------------------------------------------------


def test_early_stop_ends_inside_the_ball_and_improves():
    X, y, *_ = make_toy(30, 2, d=6, random_state=0)
    W0 = invsqrtm(mean_riemann(X))
    relative = ablations.early_stop_factor(X, y) @ np.linalg.inv(W0)
    distance = np.linalg.norm(2 * np.log(np.linalg.svd(relative, compute_uv=False)))
    assert 0 < distance < ablations.RADIUS
    ball, (_, data) = Ball(np.eye(6), 10.0), ablations.whiten_by_mean(X, y)
    objective = Misalignment(data)
    center = objective.at(ball.point(np.zeros((6, 6))))
    assert objective.at(ball.point(logm(relative.T @ relative))).value < center.value


def test_unnormalized_gradient(rng):
    X, y, *_ = make_toy(20, 2, d=4, random_state=0)
    ball = Ball(np.eye(4), 10.0)
    whitened = congruence(invsqrtm(mean_riemann(X)), X)
    data = Data(whitened, ClassTarget.from_codes((y == 1).astype(int)))
    objective = ablations.Unnormalized(data, ball.point(np.zeros((4, 4))))
    S, eta = symmetric(rng, 4, traceless=True), symmetric(rng, 4, traceless=True)
    here, h = objective.at(ball.point(S)), np.logspace(-2, -4, 5)
    remainder = [
        abs(objective.at(ball.point(S + t * eta)).value - here.value - t * np.vdot(here.gradient, eta))
        for t in h
    ]
    assert np.polyfit(np.log(h), np.log(remainder), 1)[0] == pytest.approx(2, abs=0.05)
    assert objective.at(ball.point(0 * S)).value == pytest.approx(0)


# -- the paper's numbers ----------------------------------------------------------------


def test_printed_numbers_are_complete_and_their_means_add_up():
    assert len(printed_numbers("toy")) == len(printed_numbers("toy-easy")) == 20
    for table, rows in (("textures", 6), ("bci", 9)):
        printed = printed_numbers(table)
        methods = {method for _, method in printed}
        assert len(printed) == (rows + 1) * len(methods)
        for method in methods:
            mean = np.mean([n for (row, m), (n, _) in printed.items() if m == method and row != "mean"])
            assert mean == pytest.approx(printed["mean", method][0], abs=0.011)


def test_the_two_misprinted_rows_are_marked():
    printed = printed_numbers("textures")
    marked = {row for (row, _), (_, corrected) in printed.items() if corrected is not None}
    assert marked == {"D28 vs D29", "D28 vs D92"}
    assert printed["D28 vs D92", "logeuclid-kta"][1] == 98.40
    assert printed["D28 vs D92", "logeuclid-kta"][0] == printed["D2 vs D92", "logeuclid-kta"][0]


# -- running --------------------------------------------------------------------------


METHODS_RUN = ("logeuclid-identity", "logeuclid-kta", "euclid")


def without_seconds(results):
    return [r._replace(seconds=0.0) for r in results]


def test_any_number_of_jobs_gives_the_same_numbers(tmp_path):
    settings = Settings(METHODS_RUN, seed=3)
    one = run_table(small_table(), settings, tmp_path / "one", jobs=1)
    two = run_table(small_table(), settings, tmp_path / "two", jobs=2)
    assert without_seconds(one) == without_seconds(two)
    assert len(one) == 2 * 3 * 3
    assert one == sorted(one, key=lambda r: (r.row, r.repeat, r.method))
    assert {r.seed for r in one if (r.row, r.repeat) == ("6x6", 1)} == {4001}


def test_a_method_that_fails_is_told_and_tried_again(tmp_path, monkeypatch):
    """Nothing that failed is kept, and nothing that was computed is lost."""

    def fails(sizes):
        raise MemoryError("too large")

    settings, euclid = Settings(METHODS_RUN, repeats=1), KNOWN["euclid"]

    def make(sizes):
        return fails(sizes) if sizes.d < 8 else euclid.make(sizes)

    monkeypatch.setitem(KNOWN, "euclid", replace(euclid, recipe=make))
    with pytest.raises(ValueError, match=r"2 results are missing \(euclid in row 6x6, repeat 0: MemoryError"):
        run_table(small_table(), settings, tmp_path)
    monkeypatch.undo()
    assert "MemoryError" not in (tmp_path / "toy.state").read_text()
    whole = run_table(small_table(), settings, tmp_path)
    assert without_seconds(whole) == without_seconds(run_table(small_table(), settings, tmp_path / "whole"))


# -- rows -------------------------------------------------------------------------------


def test_parts_are_left_out_as_they_say(rng):
    X, y = spd(rng, 6, 2), np.array([0, 1] * 3)
    row = FixedRow(X, y, np.array([[0, 0, 0, 0, 1, 1]], dtype=bool))
    train, _, test, _ = row.split(0, 0)
    np.testing.assert_array_equal(train, X[:4])
    np.testing.assert_array_equal(test, X[4:])
    assert (len(row.tests), row.n_train) == (1, 4)
    runs = np.array([4, 4, 8, 8, 12, 12])
    row = FixedRow.of_parts(X, y, runs)
    assert (len(row.tests), row.n_train) == (3, 4)
    np.testing.assert_array_equal(row.split(1, 0)[2], X[2:4])
    assert row.digest != FixedRow.of_parts(X + 1, y, runs).digest
    train, _, test, _ = FixedRow.of_parts(X, y, runs, "session").split(1, 0)
    for part in (train, test):
        np.testing.assert_allclose(mean_riemann(part), np.eye(2), atol=1e-8)


def test_toy_rows_are_the_papers():
    table = toy_table("toy-easy")
    assert list(table.rows) == ["6x6", "8x8", "16x16", "20x20"]
    X, _, X_test, _ = table.rows["6x6"].split(0, 5)
    assert X.shape == (50, 6, 6)
    assert X_test.shape == (500, 6, 6)
    np.testing.assert_array_equal(X, make_toy(d=6, noise=3.0, random_state=5)[0])


# -- summary ------------------------------------------------------------------------------


def results_of(values):
    return [
        Result("toy", row, method, k, accuracy, 0.0, 0)
        for (row, method), accuracies in values.items()
        for k, accuracy in enumerate(accuracies)
    ]


def test_means_errors_tests_and_bold():
    table = small_table(rows=("6x6",))
    learned, plain = np.linspace(80, 90, 8), np.linspace(70, 81, 8)
    summary = summarize(
        table,
        results_of({("6x6", "logeuclid-kta"): learned, ("6x6", "euclid"): plain}),
        ("logeuclid-kta", "euclid"),
        0,
    )
    cell = summary.entries["6x6", "logeuclid-kta"]
    assert (cell.mean, cell.n, cell.paper) == (pytest.approx(85.0), 8, 84.78)
    assert cell.se == pytest.approx(learned.std(ddof=1) / np.sqrt(8))
    assert summary.best[0].p == pytest.approx(2 / 2**8)  # all eight differences of one sign
    assert summary.bold() == {("6x6", "logeuclid-kta")}
    assert "mean" not in summary.places  # three rows of the paper were not run
    text = as_markdown(*summary.sections())
    assert "**85.00** ± " in text
    assert "(84.78)" in text
    assert "85.00* ± 1.24 (84.78)" in as_plain(*summary.sections())


def test_json_has_the_promised_fields_and_rows_without_data():
    table = Table("bci", "EEG", {"9": small_row(4)}, 1, 1, absent={"1": "no data here", "2": "no data here"})
    summary = summarize(table, results_of({("9", "euclid"): [84.0]}), ("euclid",), 4)
    content = json.loads(json.dumps(summary.as_json()))
    assert set(content["rows"][0]) == {"row", "method", "mean", "se", "n", "paper"}
    by_row = {entry["row"]: entry for entry in content["rows"]}
    assert by_row["1"]["mean"] is None
    assert by_row["1"]["paper"] == 77.08
    assert by_row["9"]["mean"] == 84.0
    assert by_row["9"]["se"] is None
    assert content["seed"] == 4
    assert "Row 1, 2: no data here." in as_markdown(*summary.sections())
    assert "9" in [axes.get_title(loc="left") for axes in summary.picture().axes]


# -- real data ------------------------------------------------------------------------------


def test_subject_9_is_the_papers(data_folder, tmp_path):
    table = bci_table(data_folder / "bci2a-a09")
    assert sorted(table.absent) == [str(s) for s in range(1, 9)]
    table = replace(table, rows={"9": table.rows["9"]})
    results = run_table(table, Settings(PAPER_COLUMNS), tmp_path)
    summary = summarize(table, results, PAPER_COLUMNS, 0)
    for (row, method), entry in summary.entries.items():
        if row == "9" and entry.paper is not None:
            assert entry.mean == pytest.approx(entry.paper, abs=2.5), method


def test_brodatz_rows(data_folder):
    table = texture_table(data_folder / "brodatz")
    printed = {row for row, _ in printed_numbers("textures")} - {"mean"}
    assert set(table.rows) == printed
    X, y, X_test, _ = table.rows["D2 vs D28"].split(0, 0)
    assert (X.shape, X_test.shape, sorted(set(y))) == ((50, 8, 8), (300, 8, 8), [0, 1])
