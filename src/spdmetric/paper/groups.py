"""From the tidy results to a comparison of methods over groups of rows.

Each number is the mean of a sample: the repeats of a row; in a group of subjects, the means
of its rows; in any other group, the means over its rows of each repeat.  Differences are
paired within that sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from spdmetric.evaluation.journal import Result
from spdmetric.evaluation.methods import BASELINE, BASELINES
from spdmetric.paper.tables import Group, Table


class Mean(NamedTuple):
    """A mean in per cent, its standard error where there is more than one value, and their number."""

    mean: float
    se: float | None
    n: int


class Entry(NamedTuple):
    """One method in one row or group."""

    where: str
    method: str
    accuracy: Mean | None  # None where it was not run
    against: str | None  # the method of the paired difference; None for that method itself
    difference: Mean | None
    rank: float | None  # 1 is the best


class Summary(NamedTuple):
    """A finished comparison."""

    table: Table
    methods: tuple[str, ...]
    groups: tuple[Group, ...]  # those with results, with the rows that were run
    group_entries: list[Entry]
    row_entries: list[Entry]
    absent: dict[str, str]  # group -> reason
    not_run: dict[tuple[str, str], str]  # group, method -> reason
    seed: int

    def entry(self, group: str, method: str) -> Entry:
        return next(e for e in self.group_entries if (e.where, e.method) == (group, method))

    def mean_rank(self, method: str) -> tuple[float | None, int]:
        """Mean rank over the groups in which a method was run, and their number."""
        ranks = [e.rank for e in self.group_entries if e.method == method and e.rank is not None]
        return (float(np.mean(ranks)) if ranks else None), len(ranks)

    def best(self) -> set[tuple[str, str]]:
        """(group, method) of the highest means; several where they are equal."""
        ranks = {(e.where, e.method): e.rank for e in self.group_entries if e.rank is not None}
        first = {
            g.name: min(rank for (name, _), rank in ranks.items() if name == g.name) for g in self.groups
        }
        return {(group, method) for (group, method), rank in ranks.items() if rank == first[group]}


Sample = dict[str, np.ndarray]  # method -> values, paired


def summarize(table: Table, results: Iterable[Result], methods: tuple[str, ...], seed: int) -> Summary:
    """Reduce the results of a table with groups."""
    samples = _row_samples(results)
    absent = dict(table.absent)
    groups = []
    for group in table.groups:
        rows = tuple(row for row in group.rows if row in samples)
        if rows:
            groups.append(Group(group.name, group.title, rows, group.over, group.n_train))
        else:
            absent[group.name] = "not part of a quick run"
    not_run = {
        (g.name, method): reason
        for g in groups
        for method, reason in table.left_out.get(g.rows[0], {}).items()
        if method in methods
    }
    return Summary(
        table,
        methods,
        tuple(groups),
        [e for g in groups for e in _entries(g.name, _group_sample(g, samples), methods)],
        [e for g in groups for row in g.rows for e in _entries(row, samples[row], methods)],
        absent,
        not_run,
        seed,
    )


def _row_samples(results: Iterable[Result]) -> dict[str, Sample]:
    values: dict[str, dict[str, list[float]]] = {}
    for r in sorted(results, key=lambda r: r.repeat):
        values.setdefault(r.row, {}).setdefault(r.method, []).append(r.accuracy)
    return {row: {m: np.array(v) for m, v in methods.items()} for row, methods in values.items()}


def _group_sample(group: Group, samples: dict[str, Sample]) -> Sample:
    methods = samples[group.rows[0]]
    if group.over == "rows":
        return {m: np.array([samples[row][m].mean() for row in group.rows]) for m in methods}
    return {m: np.mean([samples[row][m] for row in group.rows], axis=0) for m in methods}


def _entries(where: str, sample: Sample, methods: tuple[str, ...]) -> list[Entry]:
    ranks = _ranks(sample)
    entries = []
    for method in methods:
        if method not in sample:
            entries.append(Entry(where, method, None, None, None, None))
            continue
        against = BASELINES.get(method, BASELINE)
        paired = against != method and against in sample
        difference = _mean(sample[method] - sample[against]) if paired else None
        accuracy = _mean(sample[method])
        entries.append(Entry(where, method, accuracy, against if paired else None, difference, ranks[method]))
    return entries


def _mean(values: np.ndarray) -> Mean:
    se = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None
    return Mean(float(values.mean()), se, values.size)


def _ranks(sample: Sample) -> dict[str, float]:
    """Ranks of the means, 1 the highest; equal ones share the mean of their ranks."""
    from scipy.stats import rankdata

    means = [round(float(values.mean()), 9) for values in sample.values()]
    return dict(zip(sample, map(float, rankdata(np.negative(means))), strict=True))


# ---------------------------------------------------------------------------
# Plain data


def as_json(summary: Summary) -> dict[str, Any]:
    """Plain data for the JSON file."""
    group_of = {row: g.name for g in summary.groups for row in g.rows}
    return {
        "table": summary.table.name,
        "title": summary.table.title,
        "seed": summary.seed,
        "groups": [
            {"group": g.name, "title": g.title, "rows": list(g.rows), "error_over": g.over}
            for g in summary.groups
        ],
        "by_group": [{"group": e.where, **_plain(e)} for e in summary.group_entries],
        "rows": [
            {"group": group_of[e.where], "row": e.where, **_plain(e)}
            for e in summary.row_entries
            if e.accuracy is not None
        ],
        "mean_rank": [
            {"method": m, "mean_rank": rank, "groups": n}
            for m in summary.methods
            for rank, n in [summary.mean_rank(m)]
        ],
        "absent": summary.absent,
        "not_run": [{"group": g, "method": m, "reason": why} for (g, m), why in summary.not_run.items()],
    }


def _plain(entry: Entry) -> dict[str, Any]:
    mean, se, n = entry.accuracy or (None, None, 0)
    difference, difference_se, _ = entry.difference or (None, None, 0)
    return {
        "method": entry.method,
        "mean": mean,
        "se": se,
        "n": n,
        "against": entry.against,
        "difference": difference,
        "difference_se": difference_se,
        "rank": entry.rank,
    }
