"""Cross-validation over radii and ranks, against one fit and against refits."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.cases import Case
from benchmarks.clock import race
from benchmarks.data import Labeled, subject9
from benchmarks.outcomes import Line, Outcome, Setting, lead, missing, share
from benchmarks.peers import load_peer
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

RADII = tuple(np.linspace(1.0, 10.0, 10))
RANKS = (None, 2, 4, 8)
FOLDS = 5
SEARCHED = {"tol": 3e-2, "max_iter": 40}  # the metric that LogEuclideanMetricCV fits by default


def cases() -> list[Case]:
    return [Case("cv/subject9", lambda setting: cross_validation(subject9(), setting))]


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
    used = folds[:1] if setting.quick else folds
    began = time.perf_counter()
    peer.module.search(*data, radii, ranks, used, **SEARCHED)
    seconds = (time.perf_counter() - began) * len(folds) / len(used)
    note = f"extrapolated from one fold of {len(folds)}" if setting.quick else ""
    return lead(peer.title, ours, seconds, note=note), seconds
