"""The table of groups: methods compared over groups of rows.

Each number is the mean of a sample: the repeats of a row; in a group of subjects, the means
of its rows; in any other group, the means over its rows of each repeat.  Differences are
paired within that sample.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spdmetric.evaluation.statistics import Mean, Section, number, ranks
from spdmetric.paper.reproduce import KNOWN, Result
from spdmetric.paper.summary import accuracies
from spdmetric.paper.tables import Group, Table
from spdmetric.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Entry(NamedTuple):
    """One method in one row or group."""

    where: str
    method: str
    accuracy: Mean | None = None  # None where it was not run
    against: str | None = None  # the method of the paired difference; None for that method itself
    difference: Mean | None = None
    rank: float | None = None  # 1 is the best

    def as_json(self) -> dict[str, object]:
        """Plain data."""
        mean, se, n = self.accuracy or (None, None, 0)
        difference, difference_se, _ = self.difference or (None, None, 0)
        return {
            **{"method": self.method, "mean": mean, "se": se, "n": n, "against": self.against},
            **{"difference": difference, "difference_se": difference_se, "rank": self.rank},
        }


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
        found = [e.rank for e in self.group_entries if e.method == method and e.rank is not None]
        return (float(np.mean(found)) if found else None), len(found)

    def best(self) -> set[tuple[str, str]]:
        """(group, method) of the highest means; several where they are equal."""
        found = {(e.where, e.method): e.rank for e in self.group_entries if e.rank is not None}
        first = {
            g.name: min(rank for (name, _), rank in found.items() if name == g.name) for g in self.groups
        }
        return {(group, method) for (group, method), rank in found.items() if rank == first[group]}

    def as_json(self) -> dict[str, object]:
        """Plain data for the JSON file."""
        group_of = {row: g.name for g in self.groups for row in g.rows}
        return {
            "table": self.table.name,
            "title": self.table.title,
            "seed": self.seed,
            "groups": [
                {"group": g.name, "title": g.title, "rows": list(g.rows), "error_over": g.over}
                for g in self.groups
            ],
            "by_group": [{"group": e.where, **e.as_json()} for e in self.group_entries],
            "rows": [
                {"group": group_of[e.where], "row": e.where, **e.as_json()}
                for e in self.row_entries
                if e.accuracy is not None
            ],
            "mean_rank": [
                {"method": m, "mean_rank": rank, "groups": n}
                for m in self.methods
                for rank, n in [self.mean_rank(m)]
            ],
            "absent": self.absent,
            "not_run": [{"group": g, "method": m, "reason": why} for (g, m), why in self.not_run.items()],
        }

    # -- text ---------------------------------------------------------------

    def sections(self) -> list[Section]:
        """Accuracies, then paired differences, methods as lines and groups as columns."""
        heads = sorted({KNOWN[KNOWN[m].baseline].short.split(", ")[1] for m in KNOWN if _has_own_baseline(m)})
        note = (
            "Accuracy less that of tangent vectors at the Riemannian mean on the same data: with the same "
            f"head for methods that end in {', '.join(heads)}, with 1-NN for all others."
        )
        return [
            Section(self.table.title, self._accuracies(), self._notes()),
            Section("Paired differences", self._differences(), [note]),
        ]

    def _accuracies(self) -> list[list[str]]:
        best = self.best()
        lines = [["", *(g.name for g in self.groups), "mean rank"]]
        for method in self.methods:
            means = {g.name: self.entry(g.name, method).accuracy for g in self.groups}
            cells = [
                "not run" if mean is None else number(mean.mean, mean.se, bold=(name, method) in best)
                for name, mean in means.items()
            ]
            lines.append([KNOWN[method].short, *cells, self._rank(method)])
        return lines

    def _rank(self, method: str) -> str:
        rank, n = self.mean_rank(method)
        if rank is None:
            return ""
        return f"{rank:.1f}" if n == len(self.groups) else f"{rank:.1f} ({n} of {len(self.groups)})"

    def _differences(self) -> list[list[str]]:
        lines = [["", *(g.name for g in self.groups)]]
        for method in self.methods:
            found = [self.entry(g.name, method).difference for g in self.groups]
            if any(found):
                cells = ["" if d is None else number(d.mean, d.se, sign="+") for d in found]
                lines.append([KNOWN[method].short, *cells])
        return lines

    def _notes(self) -> list[str]:
        notes = [
            f"Accuracy in per cent ± standard error; 1-NN where nothing else is said; seed {self.seed}.",
            "Bold: the best of a group. Mean rank: over the groups in which a method was run, 1 is the best.",
        ]
        notes += [f"{g.name}: {g.title}; {self._over(g)}." for g in self.groups]
        notes += [f"{group}: absent, {reason}." for group, reason in self.absent.items()]
        reasons: dict[str, dict[str, list[str]]] = {}
        for (group, method), reason in self.not_run.items():
            reasons.setdefault(reason, {}).setdefault(KNOWN[method].short, []).append(group)
        for reason, methods in reasons.items():
            what = "; ".join(f"{title} ({', '.join(groups)})" for title, groups in methods.items())
            notes.append(f"Not run: {what}: {reason}.")
        return [*notes, *self.table.notes]

    def _over(self, group: Group) -> str:
        accuracy = next(e.accuracy for e in self.group_entries if e.where == group.name and e.accuracy)
        rows = f"mean of {len(group.rows)} rows" if len(group.rows) > 1 else "one row"
        times = max(e.accuracy.n for e in self.row_entries if e.where in group.rows and e.accuracy)
        repeats = f"{times} repeats each" if times > 1 else "run once"
        if accuracy.se is None:
            return f"{rows}, {repeats}, no standard error"
        what = "subjects" if group.over == "rows" else "repeats"
        return f"{rows}, {repeats}, standard error over {accuracy.n} {what}"

    # -- picture ------------------------------------------------------------

    def picture(self) -> Figure:
        """One panel for each group, one dot with its error bar for each method."""
        n = len(self.groups)
        with style.canvas(max(style.PAGE, 1.6 + 1.1 * n), 1.0 + 0.18 * len(self.methods)) as figure:
            figure.set_layout_engine("constrained")
            panels = figure.subplots(1, n, sharey=True, squeeze=False)[0]
            for axes, group in zip(panels, self.groups, strict=True):
                _draw_group(axes, [self.entry(group.name, m) for m in self.methods])
                axes.set_title(group.name)
            panels[0].set_yticks(range(len(self.methods)), [KNOWN[m].short for m in self.methods])
            panels[0].set_ylim(len(self.methods) - 0.5, -0.5)
            figure.supxlabel("accuracy (%)", fontsize=8)
        return figure


def _has_own_baseline(method: str) -> bool:
    return KNOWN[method].baseline != "logeuclid-mean"


def _draw_group(axes: Any, entries: list[Entry]) -> None:
    for place, entry in enumerate(entries):
        if entry.accuracy is not None:
            color = style.BLUE if KNOWN[entry.method].family == "learned" else style.GRAY
            error = entry.accuracy.se or 0.0
            axes.errorbar(entry.accuracy.mean, place, xerr=error, fmt="o", color=color, ms=3.5, lw=1)
    axes.grid(color="0.92", lw=0.6)
    axes.set_axisbelow(True)


# ---------------------------------------------------------------------------
# From results to entries

Sample = dict[str, np.ndarray]  # method -> values, paired


def summarize(table: Table, results: Iterable[Result], methods: tuple[str, ...], seed: int) -> Summary:
    """Reduce the results of a table with groups."""
    samples: dict[str, Sample] = {}
    for (row, method), values in accuracies(results).items():
        samples.setdefault(row, {})[method] = values
    run = [replace(g, rows=tuple(row for row in g.rows if row in samples)) for g in table.groups]
    groups = tuple(g for g in run if g.rows)
    not_quick = {g.name: "not part of a quick run" for g in run if not g.rows}
    not_run = {
        (g.name, method): reason
        for g in groups
        for method, reason in table.left_out.get(g.rows[0], {}).items()
        if method in methods
    }
    return Summary(
        table,
        methods,
        groups,
        [e for g in groups for e in _entries(g.name, _group_sample(g, samples), methods)],
        [e for g in groups for row in g.rows for e in _entries(row, samples[row], methods)],
        {**table.absent, **not_quick},
        not_run,
        seed,
    )


def _group_sample(group: Group, samples: dict[str, Sample]) -> Sample:
    methods = samples[group.rows[0]]
    if group.over == "rows":
        return {m: np.array([samples[row][m].mean() for row in group.rows]) for m in methods}
    return {m: np.mean([samples[row][m] for row in group.rows], axis=0) for m in methods}


def _entries(where: str, sample: Sample, methods: tuple[str, ...]) -> list[Entry]:
    rank = ranks(sample)
    entries = []
    for method in methods:
        if method not in sample:
            entries.append(Entry(where, method))
            continue
        against: str | None = KNOWN[method].baseline
        if against == method or against not in sample:
            against = None
        difference = None if against is None else Mean.of(sample[method] - sample[against])
        entries.append(Entry(where, method, Mean.of(sample[method]), against, difference, rank[method]))
    return entries
