"""Default fits of many small matrices, read from a memory map, in a process of their own."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.cases.growth import reset_peak, resident
from benchmarks.cases.tolerance import both, count, lost
from benchmarks.data import Labeled, toy
from benchmarks.outcomes import Absent, Bound, Outcome, Setting, quantity
from benchmarks.processes import UNTOUCHED, run_python

SIZES = (200_000, 1_000_000)
MOST_EVALUATIONS = 40
MOST_LOST = 1e-3

_MEASURE = """
import json, sys
from benchmarks.cases.large import measure
print(json.dumps(measure(sys.argv[1])))
"""
_WRITE = """
import sys
from benchmarks.cases.large import write
folder, n, d, seed = sys.argv[1:]
write(folder, int(n), int(d), int(seed))
"""


def cases() -> list[Case]:
    return [case(n, 8) for n in SIZES]


def case(n: int, d: int) -> Case:
    def run(setting: Setting) -> Outcome:
        if setting.quick:
            raise Absent("takes minutes: run without --quick")
        return fit(n, d, setting)

    return Case(f"large/n{n}-d{d}", run, "user")


def fit(n: int, d: int, setting: Setting) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        run_python(_WRITE, folder, str(n), str(d), str(setting.seed))
        found = json.loads(run_python(_MEASURE, folder, environment=UNTOUCHED))
    evaluations = found["evaluations"]
    note = f"{found['bytes'] / 2**20:.0f} MiB at the peak beyond what was resident before"
    lines = [
        quantity("evaluations", evaluations, "count", Bound("<=", MOST_EVALUATIONS), note=note),
        quantity("tighter fit", found["lost"], "alignment lost", Bound("<=", MOST_LOST)),
    ]
    return Outcome(lines, {"ours": found})


def write(folder: str, n: int, d: int, seed: int) -> None:
    """Toy matrices and their classes, as files to map."""
    X, codes = toy(d, n, seed)
    np.save(Path(folder, "X.npy"), X)
    np.save(Path(folder, "y.npy"), codes)


def measure(folder: str) -> dict[str, Any]:
    data = Labeled(np.load(Path(folder, "X.npy"), mmap_mode="r"), np.load(Path(folder, "y.npy")))
    reset_peak()
    before = resident()
    loose, tight = both(data)
    return {
        "seconds": loose.solution_.history[-1].seconds,
        "evaluations": count(loose),
        "evaluations_tight": count(tight),
        "lost": lost(loose, tight),
        "bytes": resident(peak=True) - before,
    }
