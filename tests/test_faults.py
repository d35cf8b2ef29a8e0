"""Broken machines: killed at any moment, no space, no permission, input that vanishes.

Afterwards there is the old output, the new one or none, never a half, and the same command again ends
with the same numbers.  With ``SPDMETRIC_NIGHTLY=1`` every command is killed at 30 random moments.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from nightly import NIGHTLY, share_of
from random_matrices import labeled
from spdmetric import load
from spdmetric.cli import inputs, main

MOMENTS = share_of(30) if NIGHTLY else 1
# Problems this small do not repay loading the compiled kernels.
ENVIRONMENT = {**os.environ, "SPDMETRIC_COMPILED": "0", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}

TRANSFORM = """
import numpy as np, spdmetric
from spdmetric.objectives import data
data.default_chunk_size = lambda d: 50
metric = spdmetric.load("model.skops").metric_
metric.transform_to(np.load("many.npy", mmap_mode="r"), "vectors.npy")
"""
METHODS = "euclid,logeuclid-mean,mdm"
COMMANDS = {
    "fit": ("-m", "spdmetric", "fit", "train.npz", "-o", "out.skops", "--folds", "2"),
    "predict": ("-m", "spdmetric", "predict", "model.skops", "new.npz", "-o", "labels.csv"),
    "compare": (
        *("-m", "spdmetric", "compare", "train.npz", "--out", "report.html", "--jobs", "1"),
        *("--methods", METHODS, "--repeats", "2"),
    ),
    "transform_to": ("-c", TRANSFORM),
}
OUTPUTS = {
    **{"fit": ("out.skops",), "predict": ("labels.csv",), "compare": ("report.html",)},
    "transform_to": ("vectors.npy",),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Input of every command."""
    folder = tmp_path_factory.mktemp("faults")
    X, y = labeled(np.random.default_rng(0), 400, 3)
    y = np.array(["left", "right"])[y]
    np.savez(folder / "train.npz", X=X[:40], y=y[:40])
    np.savez(folder / "new.npz", X=X, y=y)
    np.save(folder / "many.npy", np.tile(X, (20, 1, 1)))
    paths = [str(folder / name) for name in ("train.npz", "model.skops")]
    assert main(["fit", paths[0], "-o", paths[1], "--folds", "2", "--radius", "1", "--rank", "full"]) == 0
    return folder


def start(command, folder, more=(), **rest):
    arguments = [*COMMANDS[command], *more]
    return subprocess.Popen(
        [sys.executable, *arguments],
        **{"cwd": folder, "env": ENVIRONMENT, "text": True, **rest},
        **{"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE},
    )


def finish(command, folder, more=()) -> float:
    """Run a command to its end; the seconds that it took."""
    began = time.perf_counter()
    process = start(command, folder, more)
    said = process.communicate()[1]
    assert process.returncode == 0, said
    return time.perf_counter() - began


def clear(command, folder):
    """As if the command had never run, and none had been killed."""
    left = [path for kind in ("*.state", "*.part") for path in folder.rglob(kind)]
    for path in [*map(folder.joinpath, OUTPUTS[command]), *left]:
        path.unlink(missing_ok=True)


def numbers_of(command, folder):
    """What the output of a command says, without how long it took; None where there is none."""
    paths = [folder / name for name in OUTPUTS[command]]
    return [numbers_in(path) if path.exists() else None for path in paths]


def numbers_in(path: Path):
    if path.suffix == ".html":
        text = path.read_text()
        assert text.endswith("</html>")
        return re.findall(r'<td class="number" data-value="[^"]*">([^<]*)</td>(?!</tr>)', text)
    if path.suffix == ".skops":  # its bytes tell of the time, and of addresses of its arrays
        return load(path).predict_proba(np.load(path.with_name("new.npz"))["X"]).tobytes()
    return path.read_bytes()


@pytest.mark.parametrize("command", COMMANDS if NIGHTLY else ["predict"])
def test_killed_at_any_moment(command, folder, record_property):
    if NIGHTLY:
        finish(command, folder)  # once before it is timed, while nothing is cached
        clear(command, folder)
    seconds = finish(command, folder)
    new = numbers_of(command, folder)
    assert None not in new
    rng, killed, left = np.random.default_rng(None if NIGHTLY else 0), 0, [0, 0, 0]
    for k in range(MOMENTS):
        clear(command, folder)
        old = b"the output of another day"
        if k % 2:
            for name in OUTPUTS[command]:
                (folder / name).write_bytes(old)
        process = start(command, folder)
        time.sleep(rng.uniform(0.3, 1.02) * seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        for name, expected in zip(OUTPUTS[command], new, strict=True):
            path = folder / name
            if not path.exists():
                left[0] += 1
            elif path.read_bytes() == old:
                left[1] += 1
            else:
                left[2] += 1
                assert numbers_in(path) == expected
        finish(command, folder)
        assert numbers_of(command, folder) == new
        if process.returncode != -signal.SIGKILL and NIGHTLY:  # it was faster: other work has ended
            clear(command, folder)
            seconds = finish(command, folder)
    if NIGHTLY:
        what = f"{left[0]} absent, {left[1]} old, {left[2]} new, 0 halves"
        record_property(f"killed, {command}", f"{killed} of {MOMENTS} times, outputs afterwards: {what}")
        record_property("kills", MOMENTS)
        record_property("before the command had ended", killed)


@pytest.mark.parametrize("command", COMMANDS if NIGHTLY else ["fit", "transform_to"])
def test_no_space(command, folder):
    """A file may grow to 1,000 bytes only, as on a disk that is full."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    clear(command, folder)
    process = start(command, folder, preexec_fn=limit)
    said = process.communicate()[1]
    assert process.returncode == (1 if command == "transform_to" else 2), said
    last = said.strip().splitlines()[-1]
    assert re.search(r"could not be written to its end \(File too large\)\. Free some space", last), said
    assert numbers_of(command, folder) == [None]
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("command", ["fit", "predict", "compare"])
def test_a_folder_that_cannot_be_written(command, capsys):
    arguments = {"predict": ["model.skops", "new.npz"]}.get(command, ["train.npz"])
    with TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        locked = Path(place) / "locked"
        locked.mkdir(mode=0o555)
        name = {"fit": "out.skops", "predict": "out.csv", "compare": "out.html"}[command]
        out = locked / name
        root = os.geteuid() == 0
        assert main([command, *arguments, "--out", place]) == 2  # imports what nobody else may read
        capsys.readouterr()
        if root:  # who may write anywhere
            os.seteuid(65534)
        try:
            code = main([command, *arguments, "--out", str(out)])
        finally:
            if root:
                os.seteuid(0)
    said = capsys.readouterr().err
    assert code == 2
    assert f"cannot write to --out {locked}: Permission denied" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("command", ["fit", "predict", "compare"])
def test_input_that_vanishes(command, folder, monkeypatch, capsys):
    """After the command began, and before the file is read."""
    name = {"predict": "new.npz"}.get(command, "train.npz")
    content = (folder / name).read_bytes()
    monkeypatch.chdir(folder)
    read = inputs.read_input

    def vanished(path, *rest):
        path.unlink()
        return read(path, *rest)

    monkeypatch.setattr(f"spdmetric.cli.{command}.read_input", vanished)
    try:
        code = main(list(COMMANDS[command][2:]))
    finally:
        (folder / name).write_bytes(content)
    assert code == 2
    assert f"There is no file {name}" in capsys.readouterr().err
