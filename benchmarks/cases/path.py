"""A path over radii, and cross-validation over radii and ranks, against fits and refits."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.cases import Case
from benchmarks.clock import race
from benchmarks.data import Labeled, subject9
from benchmarks.outcomes import Line, Outcome, Setting, lead, missing, share
from benchmarks.peers import load_peer
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.estimators._problem import Problem, problem_of, radius_path
from spdmetric.estimators._settings import settings_of
from spdmetric.objectives import local
from spdmetric.solvers import Solution

RADII = tuple(np.linspace(1.0, 10.0, 10))
RANKS = (None, 2, 4, 8)
FOLDS = 5


def cases() -> list[Case]:
    return [
        Case("path/subject9", lambda setting: one_fit(subject9(), setting)),
        Case("path/refit", lambda setting: refits(subject9(), setting)),
        Case("cv/subject9", lambda setting: cross_validation(subject9(), setting)),
    ]


def _problem(data: Labeled) -> Problem:
    X, codes = data
    settings = settings_of(LogEuclideanMetric().get_params())
    return problem_of(local.LocalData(local.Labeled(X, codes, np.ones(len(X)))), None, settings)


def _path(problem: Problem, radii: tuple[float, ...]) -> list[Solution]:
    """A path at the defaults of `LogEuclideanMetric`; over one radius it is a cold fit."""
    return radius_path(problem, radii, settings_of(LogEuclideanMetric().get_params()))


def _count(solutions: list[Solution]) -> int:
    return sum(solution.history[-1].evaluations for solution in solutions)


def one_fit(data: Labeled, setting: Setting, radii: tuple[float, ...] = RADII) -> Outcome:
    """The whole path against one cold fit at its largest radius."""
    problem = _problem(data)
    found: dict[str, list[Solution]] = {}

    def keep(name: str, chosen: tuple[float, ...]) -> Callable[[], None]:
        return lambda: found.__setitem__(name, _path(problem, chosen))

    best, records = race({"ours": keep("ours", radii), "fit": keep("fit", radii[-1:])}, setting)
    counts = _count(found["ours"]), _count(found["fit"])
    note = f"{len(radii)} radii; {_ends(found['ours'][-1:], found['fit'])}"
    line = share("one cold fit", best["ours"], best["fit"], most=5.0, evaluations=counts, note=note)
    return Outcome([line], _counted(records, ours=counts[0], fit=counts[1]), {"radii": list(radii)})


def refits(data: Labeled, setting: Setting, radii: tuple[float, ...] = RADII) -> Outcome:
    """The whole path against a cold fit at each radius."""
    problem = _problem(data)
    found: dict[str, list[Solution]] = {}

    def ours() -> None:
        found["ours"] = _path(problem, radii)

    def cold() -> None:
        found["refits"] = [_path(problem, (radius,))[0] for radius in radii]

    best, records = race({"ours": ours, "refits": cold}, setting)
    counts = _count(found["ours"]), _count(found["refits"])
    note = _ends(found["ours"], found["refits"])
    line = lead(f"{len(radii)} cold fits", best["ours"], best["refits"], evaluations=counts, note=note)
    return Outcome([line], _counted(records, ours=counts[0], refits=counts[1]), {"radii": list(radii)})


def _ends(ours: list[Solution], theirs: list[Solution]) -> str:
    """How the alignments compare, ours minus theirs: there are several local maxima."""
    gains = [b.value - a.value for a, b in zip(ours, theirs, strict=True)]
    return f"alignment ahead by {min(gains):+.4f} to {max(gains):+.4f}"


def _counted(records: dict[str, dict[str, Any]], **counts: int) -> dict[str, dict[str, Any]]:
    return {name: record | {"evaluations": counts[name]} for name, record in records.items()}


# ---------------------------------------------------------------------------
# Cross-validation


def cross_validation(
    data: Labeled,
    setting: Setting,
    radii: tuple[float, ...] = RADII,
    ranks: tuple[int | None, ...] = RANKS,
) -> Outcome:
    """`LogEuclideanMetricCV` against one cold fit, and against the same grid by refitting."""
    X, codes = data
    folds = list(StratifiedKFold(FOLDS).split(X, codes))
    search = LogEuclideanMetricCV(radii=radii, ranks=ranks, cv=folds)
    fit = LogEuclideanMetric(radius=radii[-1])
    contestants = {"ours": lambda: search.fit(X, codes), "fit": lambda: fit.fit(X, codes)}
    best, records = race(contestants, setting, warm="fit")
    grid = f"{len(radii)} radii x {len(ranks)} ranks x {FOLDS} folds"
    lines = [share("one cold fit", best["ours"], best["fit"], most=100.0, note=grid)]
    refit, seconds = _refit_line(data, best["ours"], radii, ranks, folds, setting)
    records["grid_search"] = {"seconds": seconds, "repeats": 1, "extrapolated": setting.quick}
    return Outcome([*lines, refit], records, {"radii": list(radii), "ranks": list(ranks), "folds": FOLDS})


def _refit_line(
    data: Labeled,
    ours: float,
    radii: tuple[float, ...],
    ranks: tuple[int | None, ...],
    folds: list[Any],
    setting: Setting,
) -> tuple[Line, float | None]:
    """The grid by refitting, with the tolerance and steps of `LogEuclideanMetricCV`; quick runs one fold."""
    peer = load_peer("grid_search")
    if peer.missing:
        return missing(peer.title, peer.missing), None
    default = LogEuclideanMetricCV()
    used = folds[:1] if setting.quick else folds
    began = time.perf_counter()
    peer.module.search(*data, radii, ranks, used, tol=default.tol, max_iter=default.max_iter)
    seconds = (time.perf_counter() - began) * len(folds) / len(used)
    note = f"extrapolated from one fold of {len(folds)}" if setting.quick else ""
    return lead(peer.title, ours, seconds, note=note), seconds
