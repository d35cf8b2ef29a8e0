"""A whole process, import, fit of toy 8 x 8, exit: with the compiled kernels, cached, and without."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.cases import Case
from benchmarks.clock import evenly, race
from benchmarks.outcomes import Outcome, Setting, share
from benchmarks.peers import load_peer
from benchmarks.processes import UNTOUCHED, Environment, run_python

_FIT = """
import sys
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
X, y, *_ = make_toy(50, 2, d=8, random_state=2015)
LogEuclideanMetric().fit(X, y)
print("spdmetric.linalg.compiled.kernels" in sys.modules)
"""


def cases() -> list[Case]:
    return [Case("process/toy8", whole_process, "user")]


def whole_process(setting: Setting) -> Outcome:
    """The script by default against the same without kernels; nothing else is set in the environment."""
    peer = load_peer("numpy_path")

    def process(environment: Environment) -> Callable[[], str]:
        return lambda: run_python(_FIT, environment={**UNTOUCHED, **environment})

    used = process({})().strip() == "True"  # fills the compilation cache too
    contestants = {"ours": process({}), peer.name: process(peer.module.ENVIRONMENT)}
    best, records = race(contestants, evenly(setting))
    note = "by default with kernels" if used else "by default without kernels: both are the NumPy path"
    line = share(peer.title, best["ours"], best[peer.name], most=1.5, note=note)
    return Outcome([line], records, {"kernels": used})
