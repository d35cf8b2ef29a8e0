"""How many functions of the package run in a fit, and in how many files.

    python benchmarks/count_functions.py            # a table
    python benchmarks/count_functions.py --list     # and the functions, file by file

Counted with `sys.setprofile` in a second fit on 20 matrices 4 x 4, which takes the NumPy path: distinct
functions below the package's folder, in all threads; comprehensions, lambdas and generator expressions are
not counted.  The package is the one that Python finds, PYTHONPATH included.
"""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import spdmetric

PACKAGE = Path(spdmetric.__file__).parent
LEARNERS = ("LogEuclideanMetric", "LogEuclideanMetricCV", "LogEuclideanClassifier", "LogEuclideanRegressor")


def functions_of(work: Callable[[], object]) -> dict[str, list[str]]:
    """Names of the functions of the package that run, by file."""
    ran: set[CodeType] = set()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            ran.add(frame.f_code)

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    found: dict[str, list[str]] = {}
    for code in sorted(ran, key=lambda code: (code.co_filename, code.co_firstlineno)):
        path = Path(code.co_filename)
        # <listcomp>, <lambda>, <module> and their like are no functions with a name
        if PACKAGE in path.parents and not code.co_name.startswith("<"):
            found.setdefault(str(path.relative_to(PACKAGE)), []).append(code.co_qualname)
    return found


def labeled(n: int = 20, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Covariances of two classes."""
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    samples = rng.standard_normal((n, 5 * d, d)) * (1 + y[:, None, None] * (np.arange(d) < d // 2))
    return samples.transpose(0, 2, 1) @ samples / (5 * d), y


def count(name: str) -> dict[str, list[str]]:
    """Functions in the second fit of an estimator with every default."""
    X, y = labeled()
    learner = getattr(spdmetric, name)
    learner().fit(X, y)
    found = functions_of(lambda: learner().fit(X, y))
    assert "spdmetric.linalg.compiled.kernels" not in sys.modules, "this was not the NumPy path"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Functions of the package that run in a fit.")
    parser.add_argument("--list", action="store_true", help="list them by file")
    listed = parser.parse_args().list
    counted = {name: count(name) for name in LEARNERS if hasattr(spdmetric, name)}
    print("| fit of 20 matrices 4 x 4 | functions | files |\n|---|---|---|")
    for name, files in counted.items():
        print(f"| `{name}().fit` | {sum(map(len, files.values()))} | {len(files)} |")
    for name, files in counted.items() if listed else ():
        print(f"\n{name}")
        for file, functions in files.items():
            print(f"  {file} ({len(functions)}): {', '.join(functions)}")


if __name__ == "__main__":
    main()
