"""Time and peak memory of one evaluation as n or d grows, each size in a process of its own."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.compiled import load_kernels, recomputing
from benchmarks.data import covariances
from benchmarks.outcomes import Bound, Line, Outcome, Setting, quantity, share
from benchmarks.processes import run_python
from spdmetric.manifolds import Ball, BallPoint
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data

N_SIZES = (100, 316, 1000, 3162, 10_000, 31_623, 100_000)
D_SIZES = (4, 8, 16, 32, 64, 128)
UPPER = 4  # sizes, from the largest down, that the exponents are fitted to

_MEASURE = """
import json, sys
from benchmarks.cases.growth import measure
n, d, mode, repeats, seed = sys.argv[1:]
print(json.dumps(measure(int(n), int(d), mode, int(repeats), int(seed))))
"""


def cases() -> list[Case]:
    return [
        Case("growth/n", lambda setting: growth_n(setting)),
        Case("growth/d", lambda setting: growth_d(setting)),
    ]


def growth_n(setting: Setting, sizes: Sequence[int] = N_SIZES, d: int = 8) -> Outcome:
    whole = [_process(n, d, "whole", setting) for n in sizes]
    again = [_process(n, d, "recomputing", setting) for n in sizes]
    times = _column(whole, "seconds"), _column(again, "seconds")
    lines = [
        _exponent("time in n", sizes, times[0], Bound("<=", 1.05)),
        _exponent("time in n, recomputing", sizes, times[1], Bound("<=", 1.05)),
        share("in memory, when recomputing", times[1][-1], times[0][-1], most=2.2, note=f"n = {sizes[-1]}"),
        _exponent("peak memory in n", sizes, _column(whole, "bytes")),
        # Independent of n: an exponent of nought, but for what the allocator rounds.
        _exponent("peak memory in n, recomputing", sizes, _column(again, "bytes"), Bound("<=", 0.1)),
    ]
    return Outcome(lines, {"whole": _curve(sizes, whole), "recomputing": _curve(sizes, again)}, {"d": d})


def growth_d(setting: Setting, sizes: Sequence[int] = D_SIZES, n: int = 100) -> Outcome:
    whole = [_process(n, d, "whole", setting) for d in sizes]
    lines = [
        _exponent("time in d", sizes, _column(whole, "seconds"), Bound("<=", 3.2)),
        _exponent("peak memory in d", sizes, _column(whole, "bytes")),
    ]
    return Outcome(lines, {"whole": _curve(sizes, whole)}, {"n": n})


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Slope of the logarithms by least squares, over the largest sizes."""
    x, y = np.log(sizes[-UPPER:]), np.log(np.maximum(values[-UPPER:], 1.0e-12))
    return float(np.polyfit(x, y, 1)[0])


def _exponent(name: str, sizes: Sequence[int], values: list[float], bound: Bound | None = None) -> Line:
    used = sizes[-UPPER:]
    note = f"{used[0]} to {used[-1]}"
    return quantity(name, exponent(sizes, values), "exponent", bound, note=note)


def _column(rows: list[dict[str, float]], name: str) -> list[float]:
    return [row[name] for row in rows]


def _curve(sizes: Sequence[int], rows: list[dict[str, float]]) -> dict[str, Any]:
    return {"size": list(sizes), "seconds": _column(rows, "seconds"), "bytes": _column(rows, "bytes")}


def _process(n: int, d: int, mode: str, setting: Setting) -> dict[str, float]:
    repeats = 3 if setting.quick else 7
    return json.loads(run_python(_MEASURE, str(n), str(d), mode, str(repeats), str(setting.seed)))


# ---------------------------------------------------------------------------
# In the process


def measure(n: int, d: int, mode: str, repeats: int, seed: int) -> dict[str, float]:
    """Best seconds of an evaluation, and the peak of memory beyond matrices and targets."""
    X, codes = covariances(n, d, seed)
    target, few = ClassTarget.from_codes(codes), ClassTarget.from_codes(codes[:10])
    point = Ball(np.eye(d), 10.0).point(np.diag(np.linspace(-1.0, 1.0, d)))
    make = recomputing if mode == "recomputing" else lambda X, target: Misalignment(Data(X, target))
    load_kernels()
    _seconds(make(X[:10], few), point)  # libraries are loaded before memory is counted
    reset_peak()
    before = resident()
    objective = make(X, target)
    seconds = min(_seconds(objective, point) for _ in range(repeats))
    return {"seconds": seconds, "bytes": float(max(resident(peak=True) - before, 0))}


def _seconds(objective: Misalignment, point: BallPoint) -> float:
    began = time.perf_counter()
    here = objective.at(point)
    _ = here.value, here.gradient
    return time.perf_counter() - began


def reset_peak() -> None:
    """Let the kernel forget the peak so far, where it can (Linux)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:  # then the peak is that of the whole process, which the input dominates
        pass


def resident(*, peak: bool = False) -> int:
    """Resident memory of this process in bytes, now or at its peak."""
    name = "VmHWM:" if peak else "VmRSS:"
    try:
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith(name))
    except OSError:
        import resource

        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
