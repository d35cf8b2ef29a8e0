"""The wheel alone: it imports, fits, and names the missing extra of each optional feature.

In CI the wheel is unpacked beside the packages of this environment, and those that are
optional are hidden; with ``SPDMETRIC_NIGHTLY=1`` it is installed into a new environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from nightly import NIGHTLY

ROOT = Path(__file__).parents[1]
SCRIPT = Path(__file__).with_name("wheel_alone.py")
OPTIONAL = (
    *("numba", "llvmlite"),  # hard dependencies, and still to be done without where they are broken
    *("jinja2", "pyriemann", "matplotlib", "skimage", "PIL", "mne", "moabb"),
    *("h5py", "torch", "dask", "pandas"),
)


def run(*command: str | Path, **environment: str) -> str:
    # Nothing of the source tree may be found by accident.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=inherited | environment, cwd="/"
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def build(folder: Path, *options: str, **environment: str) -> Path:
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check")
    run(*pip, "--no-deps", *options, "--wheel-dir", folder, ROOT, **environment)
    (wheel,) = folder.glob("spdmetric-*.whl")
    return wheel


def test_the_wheel_with_optional_packages_hidden(tmp_path):
    here = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    wheel = build(tmp_path, "--no-build-isolation", "--no-index", **here)
    home = tmp_path / "home"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(home)
    assert "spdmetric/py.typed" in names
    assert not [name for name in names if name.startswith(("tests", "docs", "examples", "benchmarks"))]
    said = run(sys.executable, SCRIPT, home, *OPTIONAL, PYTHONPATH=str(home))
    assert re.search(r"\b([1-9]\d*) of \1 optional features name their extra", said), said


@pytest.mark.skipif(not NIGHTLY, reason="installs packages, a minute: SPDMETRIC_NIGHTLY=1")
def test_the_wheel_in_a_new_environment(tmp_path, record_property):
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, build(tmp_path))
    said = run(python, SCRIPT, home)
    record_property("wheel", " ".join(said.split()))
    assert "name their extra" in said
