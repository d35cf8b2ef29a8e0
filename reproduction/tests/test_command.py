"""The command as a user types it: what it writes, what it says, how it ends."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reproduction import __main__ as command

ROOT = Path(__file__).parents[2]


def run(*arguments, **options):
    words = [sys.executable, "-m", "reproduction", *map(str, arguments)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, **options)


def fails(capsys, *arguments):
    """Return the one line that the command fails with."""
    code = command.main([str(argument) for argument in arguments])
    error = capsys.readouterr().err.strip()
    assert code == 2
    assert error.startswith("error: ")
    assert "\n" not in error
    return error


def rows_of(path):
    with path.open() as file:
        return [{**line, "seconds": None} for line in csv.DictReader(file)]


def test_help_names_everything_and_wrong_words_end_with_2(capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(["--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    for what in (*command.FOLDERS, "all", "--quick", "MotorImagery.mat"):
        assert what in said
    for words in ([], ["tables"], ["toy", "--jobs", "0"]):
        with pytest.raises(SystemExit) as stop:
            command.main(words)
        assert stop.value.code == 2


# The columns that take no time; the whole table is a matter of minutes.
FAST = "logeuclid-identity,logeuclid-mean,logeuclid-kta,riemann,euclid,stein"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """One uninterrupted run of the smallest real table."""
    out = tmp_path_factory.mktemp("toy")
    finished = run("toy", "--repeats", 2, "--jobs", 2, "--methods", FAST, "--out", out)
    assert finished.returncode == 0, finished.stderr
    return out, finished


def test_outputs(toy):
    out, finished = toy
    assert {path.name for path in out.iterdir()} == {
        f"toy.{kind}" for kind in ("csv", "json", "md", "png", "state")
    }
    assert "16x16" in finished.stdout
    said = [line for line in finished.stderr.splitlines() if "compiling kernels" not in line]
    assert said == []  # no progress bar where there is no terminal
    lines = rows_of(out / "toy.csv")
    assert len(lines) == 4 * 2 * 6
    assert lines == sorted(lines, key=lambda r: (r["row"], int(r["repeat"]), r["method"]))
    content = json.loads((out / "toy.json").read_text())
    cell = next(e for e in content["rows"] if (e["row"], e["method"]) == ("8x8", "logeuclid-kta"))
    mine = [float(r["accuracy"]) for r in lines if (r["row"], r["method"]) == ("8x8", "logeuclid-kta")]
    assert cell["mean"] == pytest.approx(np.mean(mine))
    assert (cell["n"], cell["paper"]) == (2, 86.78)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("textures", "--data", "nowhere"), "nowhere is not a folder"),
        (("toy", "--data", "nowhere"), "nowhere is not a folder"),
        (("textures", "--data", "."), "holds no images"),
        (("bci", "--data", "."), "looked for A09T.mat"),
        (("eegmmi", "--data", "."), "S001R04.edf"),
        (("eegmmi",), "needs --data"),
    ],
)
def test_missing_data_are_said(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    assert sentence in fails(capsys, *words, "--out", "out")
    assert list((tmp_path / "out").glob("*")) == []


def test_interruption_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    from reproduction import runs

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "run_table", interrupted)
    assert command.main(["toy", "--out", str(tmp_path)]) == 130
    assert "same command again" in capsys.readouterr().err
