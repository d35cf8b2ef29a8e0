"""The default fit, from raw matrices to return, beside SLSQP on the same matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.cases.fit import RADIUS
from benchmarks.clock import race
from benchmarks.data import Labeled, subject9, toy, whitened
from benchmarks.outcomes import Outcome, Setting, lead
from benchmarks.peers import load_peer
from benchmarks.task import Budget, OutOfBudget, Task
from spdmetric import LogEuclideanMetric

# Sound solvers end at local maxima up to three hundredths apart.
NEAR = 0.97


def cases() -> list[Case]:
    return [
        case("toy8", lambda seed: toy(8, 50, seed)),
        case("toy20", lambda seed: toy(20, 50, seed)),
        case("subject9", lambda seed: subject9(), patience=4),
        case("toy20-n2000", lambda seed: toy(20, 2000, seed), patience=4),
    ]


def case(name: str, draw: Callable[[int], Labeled], *, patience: float = 1) -> Case:
    """A default-fit case; the budget of SLSQP is twice the setting's times ``patience``."""
    return Case(
        f"fit/default-{name}",
        lambda setting: _beside(draw(setting.seed), setting, 2 * patience * setting.seconds),
    )


def _beside(data: Labeled, setting: Setting, seconds: float) -> Outcome:
    X, codes = data
    peer = load_peer("slsqp")
    found: dict[str, Any] = {}

    def ours() -> None:
        found["ours"] = LogEuclideanMetric().fit(X, codes)

    def slsqp() -> None:
        task = Task(whitened(data), RADIUS, Budget(seconds, 10**9))
        found["task"], found["cut"] = task, False
        try:
            peer.module.solve(task)
        except OutOfBudget:
            found["cut"] = True

    best, records = race({"ours": ours, peer.name: slsqp}, setting)
    alignments = found["ours"].alignment_, _final(found["task"])
    counts = found["ours"].solution_.history[-1].evaluations, found["task"].count
    records["ours"] |= {"evaluations": counts[0], "alignment": alignments[0]}
    records[peer.name] |= {"evaluations": counts[1], "alignment": alignments[1], "cut": found["cut"]}
    note = f"alignment {alignments[0]:.4f} and {alignments[1]:.4f}"
    note += ", SLSQP cut short by its budget" if found["cut"] else ""
    line = lead(peer.title, best["ours"], best[peer.name], least=5.0, evaluations=counts, note=note)
    if not line.holds and (found["cut"] or alignments[1] < NEAR * alignments[0]):
        # It was cut short, or stopped at a worse place: its time does not tell what a good one takes.
        line = replace(line, holds=None)
    return Outcome([line], records, {"budget_seconds": seconds})


def _final(task: Task) -> float:
    """Alignment of SLSQP's last point, pulled back into the ball."""
    S = task.visits[-1].S
    assert S is not None  # it is evaluated by our objective
    size = float(np.linalg.norm(S))
    return task.objective.at(task.ball.point(S * min(1.0, task.radius / size) if size else S)).alignment
