"""`LogEuclideanClassifier().fit` in fresh processes, in units of one eigendecomposition of its matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.cases import Case
from benchmarks.cases.session import best_seconds, in_processes, race_processes, records_of
from benchmarks.clock import evenly
from benchmarks.data import Labeled, connectomes, three_directions
from benchmarks.outcomes import Outcome, Setting, share
from benchmarks.processes import PINNED

# (n, d), and how many decompositions, one thread each, a fit may take
SIZES = ((495, 200, 12.0), (1000, 100, 12.0), (5000, 22, 25.0), (20_000, 8, 60.0), (200_000, 8, 150.0))
MOST_CONNECTOMES = 18.0


def cases() -> list[Case]:
    sizes = [case(f"n{n}-d{d}", three_directions, n, d, most) for n, d, most in SIZES]
    return [*sizes, case("connectomes", connectomes, 495, 200, MOST_CONNECTOMES)]


def case(name: str, draw: Callable[[int, int, int], Labeled], n: int, d: int, most: float) -> Case:
    return Case(f"classifier/{name}", lambda setting: fit(draw(n, d, setting.seed), most, setting), "user")


def fit(data: Labeled, most: float, setting: Setting) -> Outcome:
    """A first fit with every default, what it loads included; the decomposition has one thread."""
    few = replace(setting, rounds=min(setting.rounds, 3))
    with in_processes(data) as process:
        contestants = {"user": process("classifier"), "eigh": process("eigh", PINNED)}
        found = race_processes(contestants, evenly(few))
    (user,), eigh = best_seconds(found["user"]), min(best_seconds(found["eigh"]))
    line = share("numpy.linalg.eigh", user, eigh, most=most, note="loading included")
    return Outcome([line], records_of(found))
