"""The file of results: one record a case, kept as soon as the case is done."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.outcomes import Line, Outcome, Setting
from reproduction.stamps import code_stamp
from spdmetric.io.atomic import write_atomically

FORMAT = 1
_PACKAGES = ("spdmetric", "numpy", "scipy", "scikit-learn", "pyriemann", "numba", "pymanopt", "torch")

Record = dict[str, Any]


def load(path: Path) -> dict[str, Record]:
    """Records by key; empty where there is no file yet."""
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text())
        cases = stored["cases"] if stored["format"] == FORMAT else None
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(_unreadable(path)) from error
    if not isinstance(cases, dict):
        raise ValueError(_unreadable(path))
    return cases


def _unreadable(path: Path) -> str:
    return (
        f"{path} is not a file of benchmark results of format {FORMAT}, and results are merged into it: "
        "move it away, or choose another --out."
    )


def keep(path: Path, key: str, record: Record, order: Mapping[str, int]) -> dict[str, Record]:
    """Merge one record into the file, in the order of the cases, and return all records.

    Keys that the order does not know come last: a case that was renamed is not lost.
    """
    records = {**load(path), key: record}
    records = dict(sorted(records.items(), key=lambda item: order.get(item[0], len(order))))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({"format": FORMAT, "cases": records}, indent=1, allow_nan=False) + "\n")
    return records


# ---------------------------------------------------------------------------
# Records


class Span:
    """Time since it was made: of the clock, and of the processor, child processes included."""

    def __init__(self) -> None:
        self._began = os.times()

    def seconds(self) -> float:
        return os.times().elapsed - self._began.elapsed

    def processor_share(self) -> float:
        """Near 1 when nothing else runs on the machine, for nothing here waits."""
        now, began = os.times(), self._began
        return (sum(now[:4]) - sum(began[:4])) / max(self.seconds(), 1e-9)


def record_of(outcome: Outcome, setting: Setting, span: Span) -> Record:
    """The record of a case that ran."""
    return {
        "status": "ok",
        "lines": [_plain_line(line) for line in outcome.lines],
        "contestants": outcome.contestants,
        **outcome.details,
        **_circumstances(setting, span),
    }


def record_without(status: str, message: str, setting: Setting, span: Span) -> Record:
    """The record of a case that is absent here, or failed."""
    return {"status": status, "message": message, "lines": [], **_circumstances(setting, span)}


def _plain_line(line: Line) -> Record:
    return {**asdict(line), "bound": None if line.bound is None else asdict(line.bound)}


def _circumstances(setting: Setting, span: Span) -> Record:
    return {
        "quick": setting.quick,
        "seed": setting.seed,
        "rounds": setting.rounds,
        "took": round(span.seconds(), 2),
        "processor_share": round(span.processor_share(), 2),
        "environment": environment(),
        "code": code_stamp(),
    }


def environment() -> Record:
    """What the numbers depend on besides the code."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "blas_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: found for name in _PACKAGES if (found := _version(name))},
    }


def cpu_name() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
