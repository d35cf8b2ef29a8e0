"""Tables of the paper: rows, runs, summary, text, picture."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from random_matrices import spd, symmetric
from reproduction import ablations
from reproduction.methods import ABLATIONS, KNOWN
from reproduction.runs import Settings, run_table, write_csv
from reproduction.statistics import Section, as_markdown, as_plain
from reproduction.summary import printed_numbers, summarize
from reproduction.tables import (
    COLUMNS,
    PAPER_COLUMNS,
    DrawnRow,
    FixedRow,
    Result,
    Table,
    bci_table,
    texture_table,
    toy_table,
)
from spdmetric.comparison.store import Store
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm, logm
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment, Target


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
    ball, (_, whitened, target) = Ball(np.eye(6), 10.0), ablations.whiten_by_mean(X, y)
    objective = Misalignment(whitened, target)
    center = objective.at(ball.point(np.zeros((6, 6))))
    assert objective.at(ball.point(logm(relative.T @ relative))).value < center.value


def test_unnormalized_gradient(rng):
    X, y, *_ = make_toy(20, 2, d=4, random_state=0)
    ball = Ball(np.eye(4), 10.0)
    whitened = congruence(invsqrtm(mean_riemann(X)), X)
    objective = ablations.Unnormalized(
        whitened, Target.one_hot((y == 1).astype(int)), ball.point(np.zeros((4, 4)))
    )
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


def test_an_interrupted_run_resumes(tmp_path, monkeypatch):
    settings, put, kept = Settings(METHODS_RUN), Store.put, []
    whole = run_table(small_table(), settings, tmp_path / "whole")
    lines = len((tmp_path / "whole" / "toy.state").read_text().splitlines())

    def stop_after_four(store, key, result):
        if len(kept) == 4:
            raise KeyboardInterrupt
        kept.append(key)
        put(store, key, result)

    monkeypatch.setattr(Store, "put", stop_after_four)
    with pytest.raises(KeyboardInterrupt):
        run_table(small_table(), settings, tmp_path / "cut")
    state = tmp_path / "cut" / "toy.state"
    assert len(state.read_text().splitlines()) == 4
    with state.open("a") as file:  # what a crash in mid-write leaves
        file.write('{"key": {"table": "toy", "ro')
    monkeypatch.setattr(Store, "put", lambda store, key, result: kept.append(key) or put(store, key, result))
    found = run_table(small_table(), settings, tmp_path / "cut")
    assert without_seconds(found) == without_seconds(whole)
    assert len(kept) == len(state.read_text().splitlines()) == lines  # none is computed again


def test_more_repeats_extend_a_run(tmp_path):
    few = run_table(small_table(), Settings(METHODS_RUN, repeats=2), tmp_path)
    more = run_table(small_table(), Settings(METHODS_RUN, repeats=4), tmp_path)
    assert [r for r in more if r.repeat < 2] == few
    assert run_table(small_table(), Settings(METHODS_RUN, repeats=2), tmp_path) == few


@pytest.mark.parametrize(
    ("table", "settings", "new"),
    [
        (small_table(), Settings(METHODS_RUN, seed=1, repeats=1), True),
        (small_table(), Settings(METHODS_RUN[:2], repeats=1), False),
        (small_table(rows=("6x6",)), Settings(METHODS_RUN, repeats=1), True),
    ],
)
def test_results_of_other_settings_are_computed_anew(table, settings, new, tmp_path):
    """Another seed or other data; fewer methods are there already."""
    run_table(small_table(), Settings(METHODS_RUN, repeats=1), tmp_path)
    before = (tmp_path / "toy.state").read_bytes()
    run_table(table, settings, tmp_path)
    after = (tmp_path / "toy.state").read_bytes()
    assert after.startswith(before)
    assert (len(after) > len(before)) is new


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


def test_csv_is_tidy(tmp_path):
    results = [Result("toy", "6x6", "euclid", 0, 50.0, 0.1, 7)]
    write_csv(tmp_path / "toy.csv", results)
    with (tmp_path / "toy.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert list(line) == ["table", "row", "method", "repeat", "accuracy", "seconds", "seed", "code"]
    assert line["accuracy"] == "50.0"
    assert list(tmp_path.iterdir()) == [tmp_path / "toy.csv"]


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


def test_equal_columns_are_not_significant():
    values = np.linspace(70, 80, 6)
    summary = summarize(
        small_table(rows=("6x6",)),
        results_of({("6x6", "logeuclid-kta"): values, ("6x6", "euclid"): values}),
        ("logeuclid-kta", "euclid"),
        0,
    )
    assert summary.best[0].p == 1.0
    assert not summary.bold()


def test_mean_row_only_when_every_row_of_the_paper_was_run():
    rows = ("6x6", "8x8", "16x16", "20x20")
    values = {(row, "euclid"): [70.0 + i, 72.0 + i] for i, row in enumerate(rows)}
    summary = summarize(small_table(rows=rows), results_of(values), ("euclid",), 0)
    assert summary.entries["mean", "euclid"].mean == pytest.approx(72.5)
    assert summary.entries["mean", "euclid"].se == pytest.approx(0.5)


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


def test_texture_json_carries_both_papers():
    rows = [row for row, method in printed_numbers("textures") if method == "euclid" and row != "mean"]
    summary = summarize(
        small_table("textures", rows),
        results_of({(row, "euclid"): [60.0, 61.0] for row in rows}),
        ("euclid",),
        0,
    )
    entries = {entry["row"]: entry for entry in summary.as_json()["rows"]}
    assert (entries["D28 vs D92"]["paper"], entries["D28 vs D92"]["paper_corrected"]) == (68.05, 72.93)
    assert entries["D2 vs D28"]["paper_corrected"] == entries["D2 vs D28"]["paper"]
    assert entries["mean"]["paper"] == 65.60
    assert "68.05 → 72.93" in as_markdown(*summary.sections())


def test_picture_has_a_panel_for_each_row_and_every_method():
    methods, rows = (*COLUMNS, *ABLATIONS), tuple(f"row {k}" for k in range(8)) + ("6x6",)
    values = {(row, m): [70.0, 75.0] for row in rows for m in methods}
    figure = summarize(small_table(rows=rows), results_of(values), methods, 0).picture()
    shown = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title(loc="left") for axes in shown] == ["6x6", *rows[:-1]]  # the paper's row first
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        KNOWN[m].short for m in methods
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["printed in the paper"]


def test_long_titles_of_a_picture_stay_apart_and_inside():
    rows = tuple(f"{k}, training and test session whitened apart" for k in range(6))
    values = {(row, "euclid"): [70.0, 75.0] for row in rows}
    figure = summarize(small_table(rows=rows), results_of(values), ("euclid", "riemann"), 0).picture()
    figure.canvas.draw()
    boxes = [axes._left_title.get_window_extent() for axes in figure.axes if axes.axison]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert max(box.x1 for box in boxes) <= figure.bbox.x1
    assert max(box.y1 for box in boxes) <= figure.bbox.y1
    told = [text.get_text() for text in figure.axes[0].texts]
    assert told == ["not run"]  # of riemann, whose line would be empty without a word


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


def test_tables_as_text():
    section = Section("Title", [["", "a"], ["row", "**1.00** ± 2"]], ["Bold: the best."])
    assert as_markdown(section, section).splitlines()[:7] == [
        *("# Title", "", "|  | a |", "| --- | --- |", "| row | **1.00** ± 2 |", "", "Bold: the best."),
    ]
    assert "## Title" in as_markdown(section, section)
    assert as_plain(section).splitlines() == [
        *("Title", "", "             a", "row  1.00* ± 2", "", "*: the best."),
    ]
