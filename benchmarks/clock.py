"""Contestants take turns: what disturbs the machine disturbs them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, TypeVar

from benchmarks.outcomes import Setting, best

Result = TypeVar("Result")


def rounds(
    contestants: Mapping[str, Callable[[], Result]], setting: Setting
) -> dict[str, list[tuple[float, Result]]]:
    """Run the contestants in rounds, in alternating order.

    Parameters
    ----------
    contestants : mapping
        Functions without arguments.
    setting : Setting
        A contestant that has used up its patience sits the other rounds out.

    Returns
    -------
    runs : dict
        By name, for each run its seconds and what it returned.
    """
    runs: dict[str, list[tuple[float, Result]]] = {name: [] for name in contestants}
    order = list(contestants)
    for _ in range(setting.rounds):
        for name in order:
            if _goes_on([seconds for seconds, _ in runs[name]], setting.patience):
                began = time.perf_counter()
                result = contestants[name]()
                runs[name].append((time.perf_counter() - began, result))
        order.reverse()
    return runs


def _goes_on(seconds: list[float], patience: float) -> bool:
    """Until patience is used up; three times, if that takes no more than three times as long."""
    used = sum(seconds)
    return not seconds or used < patience or (len(seconds) < 3 and used < 3 * patience)


def evenly(setting: Setting) -> Setting:
    """The setting for contestants that are processes: few repeats, as many for each of them.

    A process takes a second or more whatever it does, and the best of five is less than the best of three.
    """
    return replace(setting, rounds=min(setting.rounds, 3 if setting.quick else 5), patience=inf)


def race(
    contestants: Mapping[str, Callable[[], Any]], setting: Setting, *, warm: str | None = "ours"
) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Best seconds of each contestant, and the record of all of them.

    One contestant is called once off the clock: loading compiled code must not use up its
    patience.  For the others the best of several takes care of caches.
    """
    if warm is not None:
        contestants[warm]()
    runs = rounds(contestants, setting)
    seconds = {name: [s for s, _ in of_one] for name, of_one in runs.items()}
    records = {
        name: {"seconds": best(of_one), "repeats": len(of_one), "all_seconds": of_one}
        for name, of_one in seconds.items()
    }
    return {name: best(of_one) for name, of_one in seconds.items()}, records
