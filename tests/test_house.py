"""The house rules: who may import whom, what an import costs, what the front matter says."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "spdmetric"

# Each room, and the rooms it may import.
ROOMS = {
    "lazy": set(),
    "matrices": set(),
    "checks": {"matrices"},
    "compiled": {"lazy", "matrices"},
    "stacks": {"lazy", "matrices", "compiled"},
    "geometry": {"matrices", "stacks"},
    "manifolds": {"lazy", "matrices"},
    "alignment": {"lazy", "matrices", "geometry", "manifolds", "stacks"},
    "gaussian": {"lazy", "alignment", "geometry"},
    "running": {"lazy", "alignment", "matrices", "stacks"},
    "solvers": set(),
    "archive": set(),
    "distributed": {"matrices", "checks", "geometry", "alignment", "stacks"},
    "estimators": {
        *("matrices", "checks", "geometry", "manifolds", "compiled", "stacks", "alignment"),
        *("gaussian", "running", "solvers", "distributed"),
    },
    "plots": {"matrices", "checks", "geometry", "estimators"},
    "models": {"archive", "estimators", "manifolds", "matrices", "solvers", "__version__"},
}
DATASETS = {"matrices", "checks", "geometry", "files", "datasets"}


def imported_rooms(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [node.module] if node.module != "spdmetric" else [f"spdmetric.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("spdmetric.")}
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_only_downwards(room):
    folder = PACKAGE / room
    for path in folder.glob("*.py") if folder.is_dir() else [PACKAGE / f"{room}.py"]:
        assert imported_rooms(path) - {room} <= ROOMS[room], path.name


def test_data_sets_know_nothing_of_learning():
    for path in (PACKAGE / "datasets").glob("*.py"):
        assert imported_rooms(path) <= DATASETS, path.name


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    code = "import sys, spdmetric, spdmetric.datasets; print(*sys.modules)"
    loaded = set(run(code).split())
    assert not loaded & {"matplotlib", "torch", "dask", "pyriemann", "mne", "moabb", "skimage", "PIL"}


def test_fit_does_not_import_pyriemann():
    code = (
        "import sys, numpy as np\n"
        "from spdmetric import LogEuclideanMetric\n"
        "from spdmetric.datasets import make_toy\n"
        "X, y, *_ = make_toy(10, 2, d=4, random_state=0)\n"
        "LogEuclideanMetric(1.0).fit(X, y).transform(X)\n"
        "print('pyriemann' in sys.modules)"
    )
    assert run(code).strip() == "False"


def test_import_brings_little_beyond_sklearn_neighbors():
    """No time is asserted: what is counted is what would take it, the modules loaded."""
    neighbours = len(run("import sys, sklearn.neighbors; print(*sys.modules)").split())
    ours = len(run("import sys, spdmetric; print(*sys.modules)").split())
    assert ours <= 1.1 * neighbours


def test_files_stay_readable():
    """A room past 500 lines has become two."""
    long = {p.name: n for p in PACKAGE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 500}
    assert not long


def test_front_matter():
    for name in (
        "README.md",
        "CHANGES.md",
        "CITATION.cff",
        "LICENSE",
        "docs/math.md",
        "docs/dependencies.md",
    ):
        assert (ROOT / name).is_file(), name
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_readme_code_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        run(block)


@pytest.mark.parametrize(
    "module",
    [
        "estimators.metric",
        "datasets.textures",
        "plots.paths",
        "plots.spectra",
        "plots.vectors",
        "folders",
        "models",
    ],
)
def test_docstring_examples(module):
    tested = doctest.testmod(importlib.import_module(f"spdmetric.{module}"))
    assert tested.attempted > 0
    assert tested.failed == 0
