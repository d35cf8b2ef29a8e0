"""Stamps: results say which code computed them, and pages say it where that was other code."""

from __future__ import annotations

import csv
import importlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction import stamps
from reproduction.runs import Settings, run_table, verify_table, write_table
from reproduction.stamps import Stamp, code_stamp, stamp_part
from reproduction.statistics import number
from reproduction.tables import TABLES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


@pytest.fixture
def quotes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module("quotes")


@pytest.fixture
def stamped(tmp_path):
    """The stamp of a small package, with a source of the geometry and perhaps another one."""
    (tmp_path / "spdmetric" / "plots").mkdir(parents=True)
    (tmp_path / "spdmetric" / "io").mkdir()

    def stamp(source: str, **others: str) -> str:
        for name, text in {"geometry": source, **others}.items():
            (tmp_path / "spdmetric" / f"{name.replace('__', '/')}.py").write_text(text)
        code_stamp.cache_clear()
        return code_stamp((tmp_path / "spdmetric",))

    return stamp


def test_comments_docstrings_and_layout_are_aside(stamped):
    plain = '"""A."""\ndef f(x):\n    """B."""\n    return x + 1\n'
    first = stamped(plain)
    assert stamped('"""C."""\n# why\ndef f(x):\n    return (x\n        + 1)\n') == first
    assert stamped(plain.replace("x + 1", "x + 2")) != first
    assert stamped(plain, plots__paths="x = 1\n") == first  # draws, computes nothing
    assert stamped(plain, io__signals="x = 1\n") != first  # the filter of EEG is there


def test_the_stamp_reads_what_it_names():
    names = [
        p.relative_to(folder.parent).as_posix() for folder in stamps.FOLDERS for p in folder.rglob("*.py")
    ]
    assert set(stamps.OF_COMPARISON) <= set(names)
    for part in stamps.ASIDE:
        assert any(name.startswith(part) for name in names), part
    for name in ("spdmetric/io/signals.py", "spdmetric/geometry.py", "reproduction/datasets/eeg.py"):
        assert name in names
        assert stamps.decides(name)


def test_every_file_of_results_has_a_stamp():
    files = [path for path in RESULTS.rglob("*.json") if path.name != "times.json"]
    assert len(files) >= 10
    for path in files:
        assert Stamp.of(json.loads(path.read_text())).code, path
    for path in set(RESULTS.rglob("*.csv")) - {RESULTS / "moabb.csv"}:  # that has MOABB's columns
        with path.open(newline="") as file:
            codes = {line["code"] for line in csv.DictReader(file)}
        told = Stamp.of(json.loads(path.with_suffix(".json").read_text())).code
        assert codes == set(told.split(", ")), path  # several where a part was computed anew
    cases = json.loads((ROOT / "benchmarks" / "results.json").read_text())["cases"]
    assert all(case["code"] for case in cases.values())
    for path in set((ROOT / "benchmarks").glob("*.json")) - {ROOT / "benchmarks" / "results.json"}:
        assert Stamp.of(json.loads(path.read_text())).code, path


def test_a_file_that_was_computed_in_parts_has_all_their_stamps():
    content = {"codes": {"growth": "before", "memory": "long before"}}
    stamp_part(content, "memory")
    assert Stamp.of(content).code.split(", ") == sorted(["before", code_stamp()])
    assert not Stamp.of(content).holds(code_stamp())
    stamp_part(content, "growth")
    assert Stamp.of(content).holds(code_stamp())


def test_pages_quote_what_this_code_computed_or_say_that_they_do_not(quotes):
    assert quotes.problems() == []


@pytest.fixture
def site(quotes, tmp_path, monkeypatch):
    """A repository of one page and one file of results."""
    monkeypatch.setattr(quotes, "ROOT", tmp_path)
    monkeypatch.setattr(quotes, "RESULTS", tmp_path / "docs" / "results")
    shutil.copytree(RESULTS, tmp_path / "docs" / "results")
    return tmp_path


def test_an_untold_stamp_and_a_stale_table_are_found(quotes, site):
    (site / "README.md").write_text("See docs/results/toy.json.\n")  # which tells no stamps
    page = site / "docs" / "page.md"
    page.write_text("The numbers are in docs/results/toy.json.\n")
    (problem,) = quotes.problems("another")
    assert problem.startswith("docs/page.md quotes results of stamp")
    page.write_text(
        '<!-- quote: toy rows="6x6" -->\nold\n<!-- end of quote -->\nSee docs/results/toy.json.\n'
    )
    assert any("a table differs from its file" in problem for problem in quotes.problems())
    assert quotes.write_pages() == [page]
    assert quotes.problems() == []
    code = quotes.stamp_of("toy").code
    assert "| 6x6 | " in page.read_text()
    assert quotes.written(page.read_text(), code).count("Computed with this state of the code") == 1
    shutil.copytree(ROOT / "benchmarks", site / "benchmarks")
    other = site / "docs" / "other.md"
    other.write_text("See benchmarks/scale.json and benchmarks/results.json.\n")
    assert [p for p in quotes.problems() if p.startswith("docs/other.md quotes results of stamp")]
    other.unlink()
    page.write_text(quotes.written(page.read_text(), code))  # as it was when that code computed the table
    assert any("a table differs" in problem for problem in quotes.problems("another"))


def test_paired_differences_are_those_of_the_table(quotes):
    """Against the method that the file of results itself is compared with."""
    baselines = importlib.import_module("baselines")
    content = json.loads((RESULTS / "beyond.json").read_text())
    told = {(e["group"], e["method"]): e for e in content["by_group"]}
    accuracy = baselines.accuracies(RESULTS)
    for group in content["groups"]:
        entry = told[group["group"], "spdmetric"]
        expected = number(entry["difference"], entry["difference_se"], sign="+")
        assert baselines.difference(accuracy, group, "spdmetric", entry["against"]) == expected
    assert [len(line) for line in baselines.differences(RESULTS)] == [5] * (len(content["groups"]) + 3)


def test_the_file_in_the_format_of_moabb_follows_from_the_choice(quotes, tmp_path):
    moabb = importlib.import_module("moabb_format")
    moabb.write_moabb(out=tmp_path / "moabb.csv")
    assert (tmp_path / "moabb.csv").read_text() == (RESULTS / "moabb.csv").read_text()


METHODS = ("logeuclid-mean", "logeuclid-kta")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A small table as other code wrote it."""
    folder, toy = tmp_path_factory.mktemp("written"), TABLES["toy"](None)
    toy = replace(toy, rows={name: toy.rows[name] for name in ("6x6", "8x8")})
    settings = Settings(METHODS, repeats=2)
    write_table(toy, run_table(toy, settings, folder), settings, folder)
    content = json.loads((folder / "toy.json").read_text())
    assert Stamp.of(content) == Stamp(code_stamp())
    content["stamp"]["code"] = "before"
    (folder / "toy.json").write_text(json.dumps(content))
    return toy, folder


@pytest.fixture
def table(written, tmp_path):
    toy, folder = written
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return toy


def test_verify_stamps_what_agrees(table, tmp_path):
    said = verify_table(table, tmp_path)
    assert "4 of 8 accuracies (the first repeat of every row) came out the same" in said
    stamp = Stamp.of(json.loads((tmp_path / "toy.json").read_text()))
    assert stamp.holds(code_stamp())
    assert stamp.code == "before"
    assert stamp.sentence("later") == "Computed with an earlier state of the code (stamp `before`)."


def test_verify_refuses_what_differs(table, tmp_path):
    path = tmp_path / "toy.csv"
    lines = path.read_text().splitlines()
    parts = lines[1].split(",")
    parts[4] = str(float(parts[4]) + 0.2)
    path.write_text("\n".join([lines[0], ",".join(parts), *lines[2:]]) + "\n")
    with pytest.raises(ValueError, match=r"row 6x6, logeuclid-kta: .* before, .* now\. Run it anew\."):
        verify_table(table, tmp_path)
    assert Stamp.of(json.loads((tmp_path / "toy.json").read_text())) == Stamp("before")
