"""As users run it: fresh processes that find no variable set and take every default.

Beside each runs the same "pinned": one BLAS thread by the environment, kernels loaded off the clock.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.clock import evenly, rounds
from benchmarks.data import Labeled, cho2017, virus
from benchmarks.outcomes import Absent, Outcome, Setting, share
from benchmarks.processes import PINNED, UNTOUCHED, Environment, run_python

MOST = 1.3  # of the pinned time
MOST_LOADING = 0.5  # seconds that a first fit may take beyond a pinned one and ``import numba``
MOST_FITS = 25  # warm fits that a cross-validation may take
MOST_DECOMPOSITIONS = 150  # of the 45 matrices of Virus, that its cross-validation may take

_SESSION = "from benchmarks.sessions import main; main()"

Process = Callable[[], list[float]]  # gives the seconds measured in it


def cases() -> list[Case]:
    return [
        Case("session/fits", lambda setting: fits(cho2017(1), setting), "user"),
        Case("session/cv", lambda setting: cross_validation(cho2017(1), setting), "user"),
        Case("session/grid", lambda setting: grid(cho2017(1), setting), "user"),
        Case("session/cv-virus", cross_validation_virus, "user"),
    ]


def fits(data: Labeled, setting: Setting) -> Outcome:
    """The first, second and tenth fit of a session."""
    with in_processes(data) as process:
        contestants = {
            "user": process("fits"),
            "pinned": process("fits", PINNED),
            "numba": process("import numba"),
        }
        found = race_processes(contestants, evenly(setting))
    user, pinned, (numba,) = (best_seconds(found[name]) for name in ("user", "pinned", "numba"))
    allowed = pinned[0] + numba + MOST_LOADING
    note = f"allowed: pinned {pinned[0]:.2g} s, import numba {numba:.2g} s, and {MOST_LOADING} s"
    lines = [
        share("first fit, allowed", user[0], allowed, most=1.0, note=note),
        *(
            share(f"{name} fit, pinned", user[k], pinned[k], most=MOST)
            for name, k in (("second", 1), ("tenth", 9))
        ),
    ]
    return Outcome(lines, records_of(found))


def cross_validation(data: Labeled, setting: Setting) -> Outcome:
    """`LogEuclideanMetricCV` as the first and the second thing that a session does."""
    with in_processes(data) as process:
        contestants = {
            "user": process("cv"),
            "pinned": process("cv", PINNED),
            "fits": process("fits"),
        }
        found = race_processes(contestants, evenly(setting))
    user, pinned, fits = (best_seconds(found[name]) for name in ("user", "pinned", "fits"))
    lines = [
        share("first CV, pinned", user[0], pinned[0], most=MOST, note="loading included"),
        share("second CV, pinned", user[1], pinned[1], most=MOST),
        share("one warm fit", user[0], min(fits[1:]), most=MOST_FITS, note="the first CV of a session"),
    ]
    return Outcome(lines, records_of(found))


def grid(data: Labeled, setting: Setting) -> Outcome:
    """`GridSearchCV` over ten radii and five folds."""
    with in_processes(data) as process:
        contestants = {"user": process("grid"), "pinned": process("same fits", PINNED)}
        found = race_processes(contestants, evenly(setting))
    (user,), (pinned,) = best_seconds(found["user"]), best_seconds(found["pinned"])
    note = "pinned: the same 50 fits without transforming and scoring"
    return Outcome([share("50 fits, pinned", user, pinned, most=MOST, note=note)], records_of(found))


def cross_validation_virus(setting: Setting) -> Outcome:
    """`LogEuclideanMetricCV` on 45 matrices 400 x 400."""
    if setting.quick:
        raise Absent("takes minutes: run without --quick")
    with in_processes(virus(setting.seed)) as process:
        found = race_processes({"user": process("one cv"), "eigh": process("eigh", PINNED)}, setting)
    (user,), eigh = best_seconds(found["user"]), min(best_seconds(found["eigh"]))
    return Outcome([share("numpy.linalg.eigh", user, eigh, most=MOST_DECOMPOSITIONS)], records_of(found))


# ---------------------------------------------------------------------------
# Processes


@contextmanager
def in_processes(data: Labeled) -> Iterator[Callable[..., Process]]:
    """How to make the process of a session of `benchmarks.sessions` on these data."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data.npz")
        np.savez(path, X=data.X, y=data.codes)

        def process(session: str, environment: Environment = UNTOUCHED) -> Process:
            state = "preloaded" if environment is PINNED and session != "eigh" else "fresh"
            return lambda: json.loads(
                run_python(_SESSION, session, str(path), state, environment=environment)
            )

        yield process


def race_processes(contestants: Mapping[str, Process], setting: Setting) -> dict[str, list[list[float]]]:
    """The seconds measured in each process of each contestant, which take turns."""
    return {name: [seconds for _, seconds in of_one] for name, of_one in rounds(contestants, setting).items()}


def best_seconds(processes: list[list[float]]) -> list[float]:
    """Best of the first, the second, ... over processes: each as often repeated as the other side's."""
    return [min(seconds) for seconds in zip(*processes, strict=True)]


def records_of(found: Mapping[str, list[list[float]]]) -> dict[str, dict[str, Any]]:
    return {
        name: {"seconds": best_seconds(processes), "repeats": len(processes), "all_seconds": processes}
        for name, processes in found.items()
    }
