"""What an import costs, what the front matter says, and whether each block of the README runs alone."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


HEAVY = {"matplotlib", "torch", "dask", "pyriemann", "mne", "moabb", "skimage", "PIL"}


def test_import_loads_nothing_heavy():
    loaded = set(run("import sys, spdmetric; print(*sys.modules)").split())
    assert not loaded & {"numpy", "scipy", "sklearn", "numba", *HEAVY}


def test_submodules_are_loaded_when_asked_for():
    code = "import sys, spdmetric; spdmetric.datasets.make_toy; print(*sys.modules)"
    loaded = set(run(code).split())
    assert "numpy" in loaded
    assert not loaded & HEAVY


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


def test_the_estimators_bring_little_beyond_sklearn_neighbors():
    """No time is asserted: what is counted is what would take it, the modules loaded."""
    neighbors = len(run("import sys, sklearn.neighbors; print(*sys.modules)").split())
    ours = len(run("import sys; from spdmetric import LogEuclideanMetric; print(*sys.modules)").split())
    assert ours <= 1.1 * neighbors


def test_front_matter():
    for name in (
        "README.md",
        "CHANGES.md",
        "CITATION.cff",
        "LICENSE",
        "docs/architecture.md",
        "docs/math.md",
        "docs/dependencies.md",
        "docs/speed.md",
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
