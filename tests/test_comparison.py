"""`spdmetric compare`: numbers against oracles, the journal, the page, and the code that it offers."""

from __future__ import annotations

import json
import re
import sys
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise, repeat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spdmetric
from comparison_data import FEW, matrices, write_page
from spdmetric.cli import main
from spdmetric.comparison import run, verdict
from spdmetric.comparison.describe import describe
from spdmetric.comparison.page import Origin, shaded, shown
from spdmetric.comparison.plan import make_plan
from spdmetric.comparison.run import run_plan
from spdmetric.evaluation.journal import JournalError
from spdmetric.evaluation.methods import METHODS
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
    return make_plan(data, test, rank, **options)


# ---------------------------------------------------------------------------
# Numbers


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
        make_plan(data, None, 4)


def test_what_the_data_do_not_allow_is_left_out_with_a_reason():
    plan = make_plan(toy(), None, 3)
    assert plan.methods == (
        *("spdmetric", "spdmetric-neighbors", "euclid", "wasserstein", "logeuclid-kta-rank"),
        *("logeuclid-kta-cv", "logeuclid-kta-cv-11nn", "logeuclid-kta-cv-lda"),
    )
    assert "the lowest here is 3 of 4" in plan.left_out["mdm"]
    few = make_plan(toy(), None, 3, methods=("mdm", "euclid"))
    assert (few.methods, set(few.left_out)) == (("euclid",), {"mdm"})
    with pytest.raises(ValueError, match="No method manhattan; there are spdmetric"):
        make_plan(toy(), None, 4, methods=("euclid", "manhattan"))


# ---------------------------------------------------------------------------
# The journal


FAST = ("euclid", "logeuclid-mean", "mdm")


def test_interrupted_and_continued_is_the_same(tmp_path):
    plan = plan_of(toy(), methods=FAST, repeats=2)
    whole = run_plan(plan, tmp_path / "whole.state")

    def stop(finished, done, total):
        for i, task in enumerate(finished):
            yield task
            if i == 3:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_plan(plan, tmp_path / "cut.state", progress=stop)
    lines = (tmp_path / "cut.state").read_text().splitlines()
    assert len(lines) == 1 + 4
    (tmp_path / "cut.state").write_text("\n".join(lines) + '\n{"task": "qui')  # killed within a line
    seen = []
    rest = run_plan(
        plan, tmp_path / "cut.state", progress=lambda it, done, total: seen.append((done, total)) or it
    )
    assert seen == [(4, 10)]
    for method in FAST:
        assert np.array_equal(whole.given[method], rest.given[method])


TAMPERED = {
    "a label out of range": lambda piece: piece["labels"].__setitem__(0, 7),
    "a negative label": lambda piece: piece["labels"].__setitem__(0, -1),
    "a label that is no number": lambda piece: piece["labels"].__setitem__(0, "left"),
    "too few labels": lambda piece: piece["labels"].pop(),
    "no seconds": lambda piece: piece.pop("seconds"),
    "a text for a number": lambda piece: piece.update(seconds="1"),
    "warnings that are none": lambda piece: piece.update(warnings=[3]),
    "labels that are none": lambda piece: piece.update(labels=3),
}


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_lines_are_computed_again(case, signed, tmp_path):
    """Whether the digest of the line was made to hold or not."""
    plan, path = plan_of(toy(), methods=FAST, repeats=1), tmp_path / "a.state"
    whole = run_plan(plan, path)
    head, first, *rest = path.read_text().splitlines()
    line = json.loads(first)
    TAMPERED[case](line["pieces"]["mdm"])
    digest = line.pop("sha256")
    if signed:
        digest = sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()[:16]
    path.write_text("\n".join([head, json.dumps({**line, "sha256": digest}), *rest]) + "\n")
    sentence = "1 results that cannot be right" if signed else "1 lines that are damaged"
    with pytest.warns(UserWarning, match=sentence):
        again = run_plan(plan, path)
    for method in FAST:
        assert np.array_equal(whole.given[method], again.given[method])


def test_a_journal_of_other_settings_is_refused(tmp_path):
    plan = plan_of(toy(), methods=FAST, repeats=1)
    run_plan(plan, tmp_path / "a.state")
    with pytest.raises(JournalError, match="seed differ"):
        run_plan(replace(plan, seed=5), tmp_path / "a.state")


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


def test_a_method_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    broken = Fails(np.linalg.LinAlgError("no luck"), repeat(True))
    monkeypatch.setitem(METHODS, "mdm", replace(METHODS["mdm"], recipe=lambda sizes: broken))
    found = run_plan(plan_of(toy(), methods=FAST, repeats=1), tmp_path / "a.state")
    assert found.failed == {"mdm": "LinAlgError: no luck"}
    assert [line.method for line in verdict.judge(found).lines if line.method == "mdm"] == []


def test_without_a_metric_of_all_matrices_the_page_goes_without_it(tmp_path, rng):
    """Singular matrices without a common range: no method by cross-validation can start."""
    A = rng.standard_normal((40, 5, 3))
    report = spdmetric.compare(
        A @ A.swapaxes(1, 2), np.arange(40) % 2, methods=("euclid", "logeuclid-kta-cv")
    )
    assert set(report.comparison.failed) == {"logeuclid-kta-cv"}
    assert report.comparison.learned is None
    report.save(tmp_path / "page.html")
    assert "The learned metric</h2>" not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("error", [MemoryError("too large"), ValueError("bad luck")])
def test_what_failed_is_tried_again_and_nothing_else(error, tmp_path, monkeypatch):
    """An error of one fold is not a result: the same command again computes that fold."""
    data, journal, folds = toy(), tmp_path / "a.state", []

    def compared(turns):
        method = Fails(error, turns)
        counted = replace(METHODS["mdm"], recipe=lambda s: folds.append(0) or method)
        monkeypatch.setitem(METHODS, "mdm", counted)
        return spdmetric.compare(data, methods=FAST, repeats=1, journal=journal)

    first = compared(iter([False, True, False, False, False]))
    assert set(first.comparison.failed) == {"mdm"}
    assert len(folds) == 5
    again = compared(iter([False]))  # one fold, once
    assert again.comparison.failed == {}
    assert len(folds) == 6
    assert (again.comparison.given["mdm"] >= 0).all()


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


# The code that the page offers


@pytest.mark.parametrize(
    ("origin", "known", "new"),
    [
        (Origin("a.npz"), "'a.npz'", "'new.npz'"),
        (Origin("a.npy", labels="y.csv"), "'a.npy', labels='y.csv'", "'new.npz'"),
        (Origin("a.mat", "b.mat", "cue", 3), "'a.mat', labels='cue', subject=3", "'b.mat', subject=3"),
    ],
)
def test_the_code_reads_what_was_read(origin, known, new):
    assert origin.calls() == (f"read_matrices({known})", f"read_matrices({new})")


def test_the_code_names_the_subject(tmp_path, monkeypatch, capsys):
    """Copied from the page, it reads the matrices of that subject, not the whole file."""
    X, y = matrices()
    monkeypatch.chdir(tmp_path)
    codes = np.unique(y, return_inverse=True)[1]
    np.savez("several.npz", X1=X[::-1], y1=codes[::-1], X2=X, y2=codes)
    command = [
        "compare",
        "several.npz",
        "--subject",
        "2",
        "--methods",
        "euclid",
        "--jobs",
        "1",
        "--repeats",
        "1",
    ]
    assert main(command) == 0
    text = unescape(re.search("<pre.*?><code>(.*?)</code>", (tmp_path / "report.html").read_text(), re.S)[1])
    assert "known = read_matrices('several.npz', subject=2)" in text
    np.savez("new.npz", X=X)
    capsys.readouterr()
    exec(text, {})
    assert capsys.readouterr().out == f"{codes}\n"


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
    return write_page(tmp_path_factory.mktemp("comparison"), "--methods", FEW)


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


def test_the_policy_has_the_hashes_of_what_is_there(page, outline):
    text = page.read_text("utf-8")
    policy = next(
        a["content"] for a in outline.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert f"{tag}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy
    assert not [
        attrs for _, attrs in outline.elements if any(k == "style" or k.startswith("on") for k in attrs)
    ]


def test_long_names_are_shortened_and_kept_apart_from_what_stands_beside_them():
    assert shown("left") == "left"
    assert shown("x" * 5000) == "x" * 28 + "… (5000 letters)"
    assert len(shown("x" * 10**6)) < 60


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
        assert METHODS[method].title in text
    assert re.search(r"Learning (helps|hurts)|cannot be shown that learning helps", text)
    assert "1 farther from the mean" in text


def test_the_same_command_again_writes_the_same_page(page, capsys):
    before = page.read_bytes()
    again = write_page(page.parent, "--methods", FEW)
    assert again.read_bytes() == before
    assert "written:" in capsys.readouterr().out
    assert json.loads(page.with_suffix(".state").read_text().splitlines()[0])["seed"] == 0


@pytest.mark.parametrize("shared", [True, False])
def test_singular_matrices_get_a_page_of_what_allows_them(shared, tmp_path):
    X, y = matrices(24, 4)
    half = np.linalg.qr(np.random.default_rng(0).standard_normal((1 if shared else 24, 4, 3)))[0]
    P = half @ half.transpose(0, 2, 1)
    X = P @ X @ P
    np.savez(tmp_path / "low.npz", X=(X + X.transpose(0, 2, 1)) / 2, y=y)
    methods = "euclid,wasserstein,logeuclid-kta-rank" + ",logeuclid-kta-cv" * shared + ",mdm"
    out = tmp_path / "low.html"
    command = ["compare", str(tmp_path / "low.npz"), "--out", str(out), "--jobs", "1", "--methods", methods]
    assert main([*command, "--repeats", "1"]) == 0
    text = out.read_text("utf-8")
    assert ">3 of 4<" in text
    assert ("MDM: needs matrices of full rank" in text) is not shared
    assert ("all in the same 1 of 4 directions" in text) is shared
    assert ("CommonRange()" in text) is shared
    assert ("Eigenvectors of log" in text) is shared


def test_many_classes_some_of_two_matrices_get_a_page_that_can_be_read(tmp_path):
    """Twenty classes: a picture and the worst confusions instead of a table of 400 cells."""
    rng = np.random.default_rng(0)
    y = np.r_[np.repeat(np.arange(18), 5), 18, 18, 19, 19]
    scales = np.exp(rng.standard_normal((20, 3)))[y]
    vectors = np.sqrt(scales)[:, :, None] * rng.standard_normal((len(y), 3, 30))
    names = np.array([f"kind {c:02d}" for c in range(20)])
    np.savez(tmp_path / "many.npz", X=vectors @ vectors.transpose(0, 2, 1) / 30, y=names[y])
    out = tmp_path / "many.html"
    command = ["compare", str(tmp_path / "many.npz"), "--out", str(out), "--jobs", "1", "--repeats", "1"]
    assert main([*command, "--methods", "euclid,logeuclid-mean,mdm"]) == 0
    text = out.read_text("utf-8")
    assert "20 of 2 to 5 matrices (<bdi>kind 00</bdi>: 5" in text
    assert "Labels given to 20 classes" in text
    assert re.search(r"<li><bdi>kind \d\d</bdi> was called <bdi>kind \d\d</bdi>: \d of \d</li>", text)
    assert 'class="confusion"' not in text
    assert len(text) < 400_000


def test_what_was_confused_most():
    counts = np.array([[5.0, 0, 2], [0, 6, 0], [3, 0, 1]])
    assert verdict.confused(counts) == [(2, 0, 3.0, 4.0), (0, 2, 2.0, 7.0)]
    assert verdict.confused(counts, most=1) == [(2, 0, 3.0, 4.0)]


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
    assert "read_matrices(&#39;later.npz&#39;)" in (tmp_path / "t.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.npz"], "There is no file absent.npz"),
        (["here.npz", "--out", "."], "is a folder: expected the name of a file"),
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


def test_arrays_are_compared_without_files(tmp_path):
    X, y = matrices(40)
    report = spdmetric.compare(X[:30], y[:30], X_test=X[30:], y_test=y[30:], methods=("euclid", "mdm"))
    assert report.comparison.plan.how.endswith("tested on the 10 of the test matrices.")
    assert str(report).count("\n") == 1
    report.save(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert "Which metric suits these matrices?" in text
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]


def test_without_jinja_the_extra_is_named_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.setattr(run.journal, "run", None)
    X, y = matrices()
    np.savez(tmp_path / "toy.npz", X=X, y=y)
    assert main(["compare", str(tmp_path / "toy.npz"), "--out", str(tmp_path / "report.html")]) == 2
    assert "pip install 'spdmetric[compare]'" in capsys.readouterr().err


def contrast(a, b):
    """Contrast ratio of two colors after WCAG 2, between 1 and 21."""
    parts = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in (a, b)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    dark, bright = sorted(linear @ (0.2126, 0.7152, 0.0722))
    return (bright + 0.05) / (dark + 0.05)


def test_colors_can_be_read():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    for share in np.linspace(0, 1, 1001):
        ground, ink = shaded(share)
        assert contrast(ground, ink) >= 4.5
        other = {"#000000": "#ffffff", "#ffffff": "#000000"}[ink]
        assert contrast(ground, other) <= contrast(ground, ink) + 0.1
