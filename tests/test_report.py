"""`spdmetric compare`: numbers against oracles, the journal, the page, and the code that it offers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_matrices import spd
from report_data import FEW, NAMES, matrices, write_page
from spdmetric.cli import main
from spdmetric.comparison import comparison, verdict
from spdmetric.comparison.describe import describe
from spdmetric.comparison.html import DARK, FULL, LIGHT, contrast
from spdmetric.comparison.methods import ENTRIES, Fold, distances_wasserstein, left_out, means_for, program
from spdmetric.evaluation.journal import StateError
from spdmetric.io.matrices import Matrices

pytestmark = pytest.mark.usefixtures("numpy_only")


@pytest.fixture(scope="module")
def numpy_only():
    """Problems this small do not repay loading the compiled kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPDMETRIC_COMPILED", "0")
        yield


def toy(n=40, d=4, **rest):
    X, y = matrices(n, d)
    return Matrices(X, y, rest.pop("groups", None), "toy")


def plan_of(data, test=None, **options):
    rank = int(describe(data.X, data.y).ranks.min())
    return comparison.make_plan(data, test, rank, **options)


# ---------------------------------------------------------------------------
# Numbers


def test_wasserstein_is_that_of_pyriemann(rng):
    from pyriemann.geometry.distance import distance_wasserstein

    X, Y = spd(rng, 4, 5), spd(rng, 3, 5)
    expected = [[distance_wasserstein(A, B) for B in Y] for A in X]
    assert np.allclose(distances_wasserstein(X, Y), expected, rtol=1e-9)


def test_wasserstein_of_singular_diagonal_matrices():
    """Matrices that commute: the distance of their square roots."""
    a = np.array([[4.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
    X = np.array([np.diag(row) for row in a])
    expected = np.linalg.norm(np.sqrt(a)[:, None] - np.sqrt(a), axis=-1)
    assert np.allclose(distances_wasserstein(X, X), expected, atol=1e-7)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=40))
def test_standard_error_is_that_of_a_mean(values):
    values = np.array(values)
    found = verdict.estimate(values)
    assert found.mean == pytest.approx(100 * values.mean())
    assert found.se == pytest.approx(100 * values.std(ddof=1) / np.sqrt(len(values)))
    alone = verdict.estimate(values, np.arange(len(values)))
    assert alone.se == pytest.approx(found.se)


def test_copies_in_one_cluster_add_nothing(rng):
    values = rng.random(12)
    found = verdict.estimate(np.repeat(values, 5), np.repeat(np.arange(12), 5))
    assert found.se == pytest.approx(verdict.estimate(values).se)
    assert found.half == pytest.approx(verdict.estimate(values).half)


def test_confusion_counts():
    truth = np.array([0, 0, 1, 1, 1])
    labels = np.array([[0, 1, 1, 1, 0], [0, 0, 1, 1, 0]])
    counts = verdict.confusion(truth, labels, 3)
    assert counts.tolist() == [[1.5, 0.5, 0], [1, 2, 0], [0, 0, 0]]


def test_description(rng):
    X = np.array([np.diag([1.0, 2.0, 4.0]) * (1 + 0.1 * rng.random()) for _ in range(12)])
    X[3] *= 1e6
    X[5] = X[4]
    d = describe(X, np.arange(12) % 2, np.arange(12) // 6)
    assert np.allclose(d.condition, 4)
    assert d.definite
    assert d.far == (3,)
    assert d.duplicates == 1
    assert d.groups == (("0", 6), ("1", 6))
    X[0] = np.diag([1.0, 2.0, 0.0])
    d = describe(X, np.arange(12) % 2)
    assert d.ranks.min() == 2
    assert np.isinf(d.condition[0])
    X[0] = np.diag([1.0, 2.0, -1.0])
    with pytest.raises(ValueError, match=r"X\[0\] is not positive semi-definite"):
        describe(X, np.arange(12) % 2)


# ---------------------------------------------------------------------------
# Folds


def test_every_matrix_is_tested_once_in_each_repeat():
    plan = plan_of(toy(), repeats=3)
    assert len(plan.splits) == 3
    for folds in plan.splits:
        assert np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(40))
        assert not any(np.intersect1d(train, test).size for train, test in folds)
    again = plan_of(toy(), repeats=3)
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(plan.splits[2], again.splits[2], strict=True))
    other = plan_of(toy(), repeats=3, seed=1)
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(plan.splits[2], other.splits[2], strict=True))


def test_groups_are_left_out_whole():
    groups = np.repeat(["a", "b", "c", "d"], 10)
    plan = plan_of(toy(groups=groups))
    assert [set(groups[test]) for _, test in plan.splits[0]] == [{"a"}, {"b"}, {"c"}, {"d"}]
    assert "4 groups was left out in turn" in plan.how
    many = plan_of(toy(groups=np.arange(40) // 2))
    assert len(many.splits[0]) == 10
    assert len(np.unique(many.clusters)) == 20


def test_a_test_file_is_one_fold():
    data = toy()
    test = Matrices(data.X[:6], data.y[:6], None, "later")
    plan = plan_of(data, test)
    assert plan.tested.tolist() == list(range(40, 46))
    assert plan.trained.tolist() == list(range(40))
    with pytest.raises(ValueError, match="has the label 'feet', which toy has not"):
        plan_of(data, replace(test, y=np.array(["feet"] * 6)))
    with pytest.raises(ValueError, match="expected one size"):
        plan_of(data, replace(test, X=test.X[:, :3, :3]))


@pytest.mark.parametrize(
    ("y", "groups", "message"),
    [
        (None, None, "toy has no labels"),
        (np.zeros(40, int), None, "at least two classes"),
        (np.arange(40) // 14, np.zeros(40), "at least two groups"),
        (np.repeat([0, 1], 20), np.repeat([0, 1], 20), "one class only"),
        (np.array([0] * 38 + [1] * 2), None, "The smallest class has 2 matrices"),
    ],
)
def test_what_cannot_be_compared_gets_a_sentence(y, groups, message):
    data = replace(toy(), y=y, groups=groups)
    with pytest.raises(ValueError, match=message):
        comparison.make_plan(data, None, 4)


def test_what_the_data_do_not_allow_is_left_out_with_a_reason():
    out = left_out(6, 4, 100)
    assert set(ENTRIES) - set(out) == {
        *("euclid", "wasserstein", "logeuclid-kta-rank"),
        *("logeuclid-kta-cv", "logeuclid-kta-cv-11nn", "logeuclid-kta-cv-lda"),
    }
    assert "the lowest here is 4 of 6" in out["mdm"]
    assert "svm" not in left_out(6, 6, 15)
    assert "eleven" in left_out(6, 6, 15)["logeuclid-mean-11nn"]
    assert means_for(6, 4, 3).ranks == (2, 3, 4)
    assert means_for(6, 4, 3).inner == 3


# ---------------------------------------------------------------------------
# The journal


FAST = ("euclid", "logeuclid-mean", "mdm")


def test_interrupted_and_gone_on_with_is_the_same(tmp_path):
    plan = plan_of(toy(), methods=FAST, repeats=2)
    whole = comparison.compare(plan, tmp_path / "whole.state")

    def stop(finished, done, total):
        for i, task in enumerate(finished):
            yield task
            if i == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        comparison.compare(plan, tmp_path / "cut.state", progress=stop)
    lines = (tmp_path / "cut.state").read_text().splitlines()
    assert len(lines) == 1 + 4
    (tmp_path / "cut.state").write_text("\n".join(lines) + '\n{"row": "qui')  # killed within a line
    seen = []
    rest = comparison.compare(
        plan, tmp_path / "cut.state", progress=lambda it, done, total: seen.append((done, total)) or it
    )
    assert seen == [(4, 10)]
    for method in FAST:
        assert np.array_equal(whole.given[method], rest.given[method])


def test_a_journal_of_other_settings_is_refused(tmp_path):
    plan = plan_of(toy(), methods=FAST, repeats=1)
    comparison.compare(plan, tmp_path / "a.state")
    with pytest.raises(StateError, match="seed differ"):
        comparison.compare(replace(plan, seed=5), tmp_path / "a.state")


def test_a_method_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    def fails(fold):
        raise np.linalg.LinAlgError("no luck")

    monkeypatch.setitem(ENTRIES, "mdm", replace(ENTRIES["mdm"], run=fails))
    found = comparison.compare(plan_of(toy(), methods=FAST, repeats=1), tmp_path / "a.state")
    assert found.failed == {"mdm": "LinAlgError: no luck"}
    assert [line.method for line in verdict.judge(found).lines if line.method == "mdm"] == []


# ---------------------------------------------------------------------------
# What is said


def estimates(mean, half):
    return verdict.Estimate(mean, half / 2, half)


@pytest.mark.parametrize(
    ("mean", "half", "said"),
    [
        (5.0, 2.0, "Learning helps here"),
        (-5.0, 2.0, "Learning hurts here"),
        (1.0, 2.0, "cannot be shown that learning helps"),
        (0.0, 0.0, "cannot be shown that learning helps"),
    ],
)
def test_the_sentence_follows_the_interval(mean, half, said):
    pair = verdict.Pair("logeuclid-kta-cv", "logeuclid-mean", "one nearest neighbor", estimates(mean, half))
    line = verdict.Line("mdm", estimates(80, 4), 80, None, 1.0)
    text = verdict.learning_sentence(verdict.Verdict((line,), (pair,), 50.0, None))
    assert said in text
    assert f"{abs(mean):.1f} ± {half / 2:.1f} points" in text


def test_those_that_cannot_be_told_from_the_best_are_named():
    lines = (
        verdict.Line("mdm", estimates(80, 4), 80, None, 1.0),
        verdict.Line("svm", estimates(79, 4), 79, estimates(1, 2), 1.0),
        verdict.Line("euclid", estimates(60, 4), 60, estimates(20, 2), 1.0),
    )
    text = verdict.best_sentence(verdict.Verdict(lines, (), 50.0, None))
    assert "80.0 ± 2.0 %, of MDM" in text
    assert "1 of the 2 others (Tangent space + SVM)" in text


# ---------------------------------------------------------------------------
# The code that the page offers


@pytest.mark.parametrize("name", ENTRIES)
def test_the_code_runs_and_gives_the_labels_of_the_comparison(name, tmp_path, monkeypatch, capsys):
    X, y = matrices(48)
    monkeypatch.chdir(tmp_path)
    np.savez("known.npz", X=X[:36], y=y[:36])
    np.savez("new.npz", X=X[36:])
    means = means_for(4, 4, 3)
    code = program(name, means, 4, 36, "read_matrices('known.npz')", "read_matrices('new.npz')")
    space: dict = {}
    exec(code, space)
    codes = np.unique(y, return_inverse=True)[1]
    expected = np.unique(y)[ENTRIES[name].run(Fold(X[:36], codes[:36], X[36:], means))]
    assert capsys.readouterr().out == f"{expected}\n"


# ---------------------------------------------------------------------------
# The page


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
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(tmp_path_factory, numpy_only):
    return write_page(tmp_path_factory.mktemp("report"), "--methods", FEW)


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
    used = [a["xlink:href"][1:] for a in outline.all("use")]
    assert {*named, *linked, *used} <= set(ids)


def test_page_asks_the_network_for_nothing(page, outline):
    for tag, attrs in outline.elements:
        for key in ("src", "href", "xlink:href"):
            value = attrs.get(key, "#")
            assert value.startswith(("#", "data:")), (tag, value[:60])
    assert "default-src 'none'" in page.read_text("utf-8")
    assert "@import" not in page.read_text("utf-8")


def test_page_is_made_for_everyone(outline):
    assert outline.all("html") == [{"lang": "en"}]
    headings = [int(tag[1]) for tag, _ in outline.elements if re.fullmatch("h[1-6]", tag)]
    assert headings.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(headings))
    svgs = outline.all("svg")
    assert len(svgs) == 9
    assert all(svg["role"] == "img" and svg["aria-labelledby"] for svg in svgs)
    assert all("scope" in th for th in outline.all("th"))


def test_page_escapes_what_users_write(page):
    text = page.read_text("utf-8")
    assert "&lt;b&gt;left&lt;/b&gt; &amp; co" in text
    assert "<b>left" not in text
    assert "toy &lt;1&gt;" in text


def test_page_has_its_tables_and_sentences(page, outline):
    text = page.read_text("utf-8")
    assert [t.get("id") for t in outline.all("table") if t.get("class") == "sortable"] == [
        "far",
        "accuracies",
        "gains",
    ]
    for method in FEW.split(","):
        assert ENTRIES[method].title in text
    assert re.search(r"Learning (helps|hurts)|cannot be shown that learning helps", text)
    assert "1 farther from the mean" in text


def test_the_same_command_again_writes_the_same_page(page, capsys):
    before = page.read_bytes()
    again = write_page(page.parent, "--methods", FEW)
    assert again.read_bytes() == before
    assert "written:" in capsys.readouterr().out
    assert json.loads(page.with_suffix(".state").read_text().splitlines()[0])["seed"] == 0


def test_singular_matrices_get_a_page_of_what_allows_them(tmp_path):
    X, y = matrices(24, 4)
    half = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 3)))[0]
    X = half @ half.T @ X @ half @ half.T
    np.savez(tmp_path / "low.npz", X=(X + X.transpose(0, 2, 1)) / 2, y=y)
    methods = "euclid,wasserstein,logeuclid-kta-rank,logeuclid-kta-cv,mdm"
    out = tmp_path / "low.html"
    command = ["compare", str(tmp_path / "low.npz"), "--out", str(out), "--jobs", "1", "--methods", methods]
    assert main([*command, "--repeats", "1"]) == 0
    text = out.read_text("utf-8")
    assert ">3 of 4<" in text
    assert "MDM: needs matrices of full rank" in text
    assert "Rows of the learned low-rank factor W" in text


def test_a_test_file_and_groups_from_the_command_line(tmp_path, capsys):
    X, y = matrices(60)
    np.save(tmp_path / "X.npy", X[:40])
    (tmp_path / "y.csv").write_text(
        "label\n" + "\n".join("ab"[i] for i in np.unique(y[:40], return_inverse=True)[1])
    )
    (tmp_path / "g.csv").write_text("\n".join(str(i // 8) for i in range(40)))
    np.savez(
        tmp_path / "later.npz", X=X[40:], y=np.array(["a", "b"])[np.unique(y[40:], return_inverse=True)[1]]
    )
    common = ["compare", str(tmp_path / "X.npy"), "--labels", str(tmp_path / "y.csv"), "--jobs", "1"]
    common += ["--methods", "euclid,logeuclid-mean"]
    assert main([*common, "--groups", str(tmp_path / "g.csv"), "--out", str(tmp_path / "g.html")]) == 0
    assert "Each of the 5 groups was left out" in (tmp_path / "g.html").read_text("utf-8")
    assert "over 5 groups" in (tmp_path / "g.html").read_text("utf-8")
    assert main([*common, "--test", str(tmp_path / "later.npz"), "--out", str(tmp_path / "t.html")]) == 0
    assert "tested on the 20 of later" in (tmp_path / "t.html").read_text("utf-8")
    assert "read_matrices(&#x27;later.npz&#x27;)" in (tmp_path / "t.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.npz"], "There is no file absent.npz"),
        (["here.npz", "--out", "."], "is a folder"),
        (["here.npz", "--out", "page.txt"], "ends in .html"),
        (["here.npz"], "here has no labels"),
    ],
)
def test_errors_are_one_line(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("here.npz", X=matrices()[0])
    assert main(["compare", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_colors_can_be_read():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    for share in np.linspace(0, 1, 101):
        ground = [round(a + share * (b - a)) for a, b in zip(LIGHT, FULL, strict=True)]
        assert max(contrast(DARK, ground), contrast(LIGHT, ground)) >= 4.5
    assert len(NAMES) == 2
