"""A whole process, import, fit of toy 8 x 8, exit: with the compiled kernels, cached, and without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.cases import Case
from benchmarks.clock import race
from benchmarks.compiled import SWITCH, run_python
from benchmarks.outcomes import Outcome, Setting, share
from benchmarks.peers import load_peer

_FIT = """
import sys
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
X, y, *_ = make_toy(50, 2, d=8, random_state=2015)
LogEuclideanMetric().fit(X, y)
print("spdmetric.linalg.compiled.kernels" in sys.modules)
"""


def cases() -> list[Case]:
    return [Case("process/toy8", whole_process)]


def whole_process(setting: Setting) -> Outcome:
    peer = load_peer("numpy_path")

    def process(wish: str | None) -> Callable[[], str]:
        return lambda: run_python(_FIT, environment={SWITCH: wish})

    exists = process("1")().strip() == "True"  # fills the compilation cache too
    used = process(None)().strip() == "True"
    contestants = {
        "ours": process(None),
        "forced": process("1"),
        peer.name: lambda: run_python(_FIT, environment=peer.module.ENVIRONMENT),
    }
    # A process takes a second or more, whatever it does: several need more patience.
    best, records = race(contestants, replace(setting, patience=5 * setting.patience))
    note = (
        "by default with kernels"
        if used
        else "by default without kernels: so small a problem stays with NumPy"
    )
    line = share(peer.title, best["ours"], best[peer.name], most=1.5, note=note)
    note = f"{SWITCH}=1" if exists else "no compiled kernels were loaded: both sides are the NumPy path"
    forced = share(f"{peer.title}, kernels forced", best["forced"], best[peer.name], note=note)
    return Outcome([line, forced], records, {"kernels": used, "kernels_exist": exists})
