"""The command reproduce as a user types it: what it writes, what it says, how it ends."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from spdmetric import cli
from spdmetric.cli import reproduce


def run(*arguments, **options):
    command = [sys.executable, "-m", "spdmetric", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def fails(capsys, *arguments):
    """Return the one line that the command fails with."""
    code = cli.main([str(argument) for argument in arguments])
    error = capsys.readouterr().err.strip()
    assert code == 2
    assert error.startswith("spdmetric: error: ")
    assert "\n" not in error
    return error


def rows_of(path):
    with path.open() as file:
        return [{**line, "seconds": None} for line in csv.DictReader(file)]


# The columns that take no time; the whole table is a matter of minutes.
FAST = "logeuclid-identity,logeuclid-mean,logeuclid-kta,riemann,euclid,stein"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """One uninterrupted run of the smallest real table."""
    out = tmp_path_factory.mktemp("toy")
    finished = run("reproduce", "toy", "--repeats", 2, "--jobs", 2, "--methods", FAST, "--out", out)
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


def test_killed_and_restarted_it_gives_the_same_table(toy, tmp_path):
    """kill -9 in the middle, then the same command with another number of jobs."""
    command = ["reproduce", "toy", "--repeats", "2", "--methods", FAST, "--out", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "spdmetric", *command, "--jobs", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    state = tmp_path / "toy.state"
    deadline = time.monotonic() + 120
    while (not state.exists() or state.read_text().count("\n") < 18) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 18 <= state.read_text().count("\n") < 48
    assert not (tmp_path / "toy.csv").exists()
    finished = run(*command, "--jobs", 2)
    assert finished.returncode == 0, finished.stderr
    assert rows_of(tmp_path / "toy.csv") == rows_of(toy[0] / "toy.csv")


def test_beyond_without_data_is_the_toy_set(tmp_path, capsys):
    command = ["reproduce", "beyond", "--repeats", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main([*command, "--methods", "logeuclid-mean,csp-lda"]) == 0
    said = capsys.readouterr().out
    assert "cho: absent, needs --data." in said
    lines = rows_of(tmp_path / "beyond.csv")
    assert len(lines) == 4 * 2 * 2
    content = json.loads((tmp_path / "beyond.json").read_text())
    assert set(content["absent"]) >= {"cho", "eegmmi-64", "textures"}
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".json", ".md", ".png", ".state"}


@pytest.mark.parametrize("data", [None, "somewhere"])
def test_all_goes_beyond_only_with_data(data, monkeypatch, tmp_path, capsys):
    done = []
    monkeypatch.setattr(reproduce, "run_one", lambda what, folder, arguments: done.append((what, folder)))
    where = [] if data is None else ["--data", str(tmp_path)]
    assert cli.main(["reproduce", "all", "--out", str(tmp_path / "out"), *where]) == 0
    assert done[0][0] == "toy"
    assert (("beyond", tmp_path) in done) is (data is not None)


def test_missing_data_are_said(tmp_path, capsys):
    nowhere, empty = tmp_path / "nowhere", tmp_path / "empty"
    empty.mkdir()
    out = tmp_path / "out"
    assert "nowhere is not a folder" in fails(
        capsys, "reproduce", "textures", "--data", nowhere, "--out", out
    )
    assert "holds no images" in fails(capsys, "reproduce", "textures", "--data", empty, "--out", out)
    assert "nowhere is not a folder" in fails(capsys, "reproduce", "bci", "--data", nowhere, "--out", out)
    assert "nowhere is not a folder" in fails(capsys, "reproduce", "toy", "--data", nowhere, "--out", out)
    assert "looked for A09T.mat" in fails(capsys, "reproduce", "bci", "--data", empty, "--out", out)
    assert "S001R04.edf" in fails(capsys, "reproduce", "eegmmi", "--data", empty, "--out", out)
    assert "needs --data" in fails(capsys, "reproduce", "eegmmi", "--out", out)
    assert "nowhere is not a folder" in fails(capsys, "reproduce", "beyond", "--data", nowhere, "--out", out)
    assert list(out.iterdir()) == []


def test_damaged_data_are_said(tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "out"
    data.mkdir()
    (data / "MotorImagery.mat").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    assert "MotorImagery.mat" in fails(capsys, "reproduce", "bci", "--data", data, "--out", out)
    for name in ("D2", "D28", "D29", "D92"):
        (data / f"{name}.gif").write_bytes(b"GIF89a" + bytes(20))
    assert "D2.gif cannot be read as an image" in fails(
        capsys, "reproduce", "textures", "--data", data, "--out", out
    )
    for run_number in (4, 8, 12):
        (data / f"S001R{run_number:02d}.edf").write_bytes(bytes(300))
    assert "S001R04.edf cannot be read" in fails(capsys, "reproduce", "eegmmi", "--data", data, "--out", out)


def test_a_missing_image_lists_those_there(tmp_path, capsys):
    Image = pytest.importorskip("PIL.Image")
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (64, 128)).astype(np.uint8)).save(
        tmp_path / "D2.png"
    )
    error = fails(capsys, "reproduce", "textures", "--data", tmp_path, "--out", tmp_path / "out")
    assert "no image 'D28'" in error
    assert "there are D2" in error


def test_an_unknown_method_lists_those_there(tmp_path, capsys):
    error = fails(capsys, "reproduce", "toy", "--methods", "euclid,manhattan", "--out", tmp_path)
    assert "no method manhattan; there are spdmetric, spdmetric-neighbors, logeuclid-identity" in error
    assert "kta-early-stop" in error


def test_unwritable_output_is_said_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert "cannot write to --out" in fails(capsys, "reproduce", "toy", "--out", tmp_path / "file")


def test_a_full_disk_is_said(tmp_path, capsys, monkeypatch):
    from spdmetric.comparison import store as runner

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner.os, "fsync", full)
    said = fails(capsys, "reproduce", "toy", "--repeats", 1, "--out", tmp_path)
    assert "toy.state could not be written to its end (No space left on device)" in said
    assert [path.name for path in tmp_path.iterdir()] == ["toy.state"]


def test_interruption_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    from spdmetric.paper import reproduce as runner

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_table", interrupted)
    assert cli.main(["reproduce", "toy", "--out", str(tmp_path)]) == 130
    assert "same command again" in capsys.readouterr().err


def test_an_interruption_that_a_module_swallows_is_one(tmp_path, capsys, monkeypatch):
    """As of compiled modules, which turn a ^C while they are loaded into an error of their own."""
    from spdmetric.paper import reproduce as runner

    def swallowed(*_, **__):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("extensions cannot be imported") from None

    monkeypatch.setattr(runner, "run_table", swallowed)
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # what runs in the background ignores it
    try:
        assert cli.main(["reproduce", "toy", "--out", str(tmp_path)]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err.endswith("same command again to resume.\n")


def test_figures(tmp_path, capsys):
    assert cli.main(["reproduce", "figures", "--out", str(tmp_path)]) == 0
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert len(names) == 12
    assert {"cone.png", "ascent.pdf", "whitening.png"} <= names
