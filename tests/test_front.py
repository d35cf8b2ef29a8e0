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


def test_what_is_loaded_and_when():
    """By the import nothing; by a submodule NumPy; by a fit nothing optional, by a small one no kernels."""
    code = (
        "import sys, spdmetric\n"
        "print(*sys.modules)\n"
        "X, y, *_ = spdmetric.datasets.make_toy(10, 2, d=4, random_state=0)\n"
        "print(*sys.modules)\n"
        "spdmetric.LogEuclideanMetric(1.0).fit(X, y).transform(X)\n"
        "print(*sys.modules)"
    )
    imported, submodule, fitted = (set(line.split()) for line in run(code).splitlines())
    assert not imported & {"numpy", "scipy", "sklearn", "numba", *HEAVY}
    assert "numpy" in submodule
    assert not fitted & {"numba", *HEAVY}


def test_the_estimators_bring_little_beyond_sklearn_neighbors():
    """No time is asserted: what is counted is what would take it, the modules loaded."""
    code = (
        "import sys, sklearn.neighbors\n"
        "print(len(sys.modules))\n"
        "from spdmetric import LogEuclideanMetric\n"
        "print(len(sys.modules))"
    )
    neighbors, ours = map(int, run(code).split())
    assert ours <= 1.1 * neighbors


def test_every_block_of_the_readme_runs_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
