"""A finished table: means, standard errors, tests and ranks, as plain data, as text, as a picture.

The columns of a table of the paper are methods, its lines rows, with the printed numbers beside
ours.  The table of groups has the methods as lines.  Each number is the mean of a sample: the
repeats of a row; in a group of subjects, the means of its rows; in any other group, the means
over its rows of each repeat.  Differences are paired within that sample.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from reproduction import style
from reproduction.methods import KNOWN
from reproduction.statistics import Mean, Section, number, ranks, wilcoxon
from reproduction.tables import Group, Result, Table

LEVEL = 0.05
LEARNED = "logeuclid-kta"  # the method that is tested against each other one
PANELS, TITLE = 9, 18  # of a picture: panels side by side, letters in a line of their titles
BASELINE = "logeuclid-mean"  # what the paired differences are to
DIFFERENCES = "Accuracy less that of 1-NN on tangent vectors at the Riemannian mean, on the same data."


# Of the paper, by row and method: the number, and the right one where it is a misprint.
Printed = dict[tuple[str, str], tuple[float, float | None]]


def printed_numbers(table: str) -> Printed:
    """Numbers of one table of the paper, from ``paper.csv``."""
    text = Path(__file__).with_name("paper.csv").read_text()
    return {
        (row, method): (float(paper), float(corrected) if corrected else None)
        for name, row, method, paper, corrected, _ in csv.reader(text.splitlines())
        if name == table
    }


class Entry(NamedTuple):
    """One method in one row or group."""

    where: str
    method: str
    mean: float | None = None  # per cent; None where it was not run
    se: float | None = None
    n: int = 0
    paper: float | None = None
    paper_corrected: float | None = None
    against: str | None = None  # the method of the paired difference; None for that method itself
    difference: float | None = None
    difference_se: float | None = None
    rank: float | None = None  # 1 is the highest
    best: bool = False  # whether no rank is better

    def fields(self, *names: str) -> dict[str, object]:
        """Plain data: the method, and what is asked for."""
        return {"method": self.method, **{name: getattr(self, name) for name in names}}

    def text(self, bold: bool, without: str) -> str:
        """Our number with its standard error, the paper's in brackets."""
        ours = without if self.mean is None else number(self.mean, self.se, bold=bold)
        corrected = "" if self.paper_corrected is None else f" → {self.paper_corrected:.2f}"
        return ours if self.paper is None else f"{ours} ({self.paper:.2f}{corrected})"

    def difference_text(self) -> str:
        """The paired difference, signed."""
        return "" if self.difference is None else number(self.difference, self.difference_se, sign="+")


class Comparison(NamedTuple):
    """Two columns of a row, and the test between them."""

    row: str
    first: str
    second: str
    p: float
    significant: bool


class Summary(NamedTuple):
    """A finished table; a table of the paper has its rows for places, the other one its groups."""

    table: Table
    methods: tuple[str, ...]
    places: tuple[str, ...]
    entries: dict[tuple[str, str], Entry]  # of places and of rows, by place and method
    best: list[Comparison]  # the two best columns of each row, as the paper compares them
    learned: list[Comparison]  # the learned metric against each other column
    groups: tuple[Group, ...]  # those with results, with the rows that were run
    absent: dict[str, str]  # row or group -> reason
    seed: int

    def bold(self) -> set[tuple[str, str]]:
        """Significantly better than the second best of the row, or the best of the group."""
        if not self.groups:
            return {(test.row, test.first) for test in self.best if test.significant}
        return {(e.where, e.method) for e in self._of(*self.places) if e.best}

    def _of(self, *places: str) -> list[Entry]:
        """Entries of all methods, place by place."""
        return [self.entries[place, m] for place in places for m in self.methods]

    def mean_rank(self, method: str) -> tuple[float | None, int]:
        """Mean rank over the groups in which a method was run, and their number."""
        run = [e.rank for e in self._of(*self.places) if e.method == method and e.rank is not None]
        return (float(np.mean(run)) if run else None), len(run)

    def not_run(self) -> dict[tuple[str, str], str]:
        """Reasons why methods were left out, by group and method."""
        return {
            (group.name, method): reason
            for group in self.groups
            for method, reason in self.table.left_out.get(group.rows[0], {}).items()
            if method in self.methods
        }

    def as_json(self) -> dict[str, object]:
        """Plain data for the JSON file."""
        head = {"table": self.table.name, "title": self.table.title, "seed": self.seed}
        places = self._of(*self.places)
        if not self.groups:
            paper: tuple[str, ...] = ("mean", "se", "n", "paper")
            if any(e.paper_corrected is not None for e in places):
                paper += ("paper_corrected",)
                places = [e._replace(paper_corrected=e.paper_corrected or e.paper) for e in places]
            rows = [{"row": e.where, **e.fields(*paper)} for e in places]
            best, learned = ([test._asdict() for test in some] for some in (self.best, self.learned))
            tests = {"two_best": best, "learned_against": learned}
            return {**head, "rows": rows, "absent": self.absent, **tests}
        fields = ("mean", "se", "n", "against", "difference", "difference_se", "rank")
        ranked = {m: self.mean_rank(m) for m in self.methods}
        return {
            **head,
            "groups": [
                {"group": g.name, "title": g.title, "rows": list(g.rows), "error_over": g.over}
                for g in self.groups
            ],
            "by_group": [{"group": e.where, **e.fields(*fields)} for e in places],
            "rows": [
                {"group": g.name, "row": e.where, **e.fields(*fields)}
                for g in self.groups
                for e in self._of(*g.rows)
                if e.mean is not None
            ],
            "mean_rank": [{"method": m, "mean_rank": rank, "groups": n} for m, (rank, n) in ranked.items()],
            "absent": self.absent,
            "not_run": [{"group": g, "method": m, "reason": why} for (g, m), why in self.not_run().items()],
        }

    # -- text ---------------------------------------------------------------

    def sections(self) -> list[Section]:
        """The table as text; of groups, followed by the paired differences."""
        titles, bold = [KNOWN[m].short for m in self.methods], self.bold()
        without = "not run" if self.groups else "no data"
        cells = [
            [self.entries[place, m].text((place, m) in bold, without) for place in self.places]
            for m in self.methods
        ]
        if not self.groups:
            lines = [list(line) for line in zip(self.places, *cells, strict=True)]
            return [Section(self.table.title, [["", *titles], *lines], self._notes_of_rows())]
        lines, differences = [["", *self.places, "mean rank"]], [["", *self.places]]
        for title, m, line in zip(titles, self.methods, cells, strict=True):
            lines.append([title, *line, self._rank(m)])
            difference = [self.entries[place, m].difference_text() for place in self.places]
            differences += [[title, *difference]] if any(difference) else []
        paired = Section("Paired differences", differences, [DIFFERENCES])
        first = Section(self.table.title, lines, self._notes_of_groups())
        return [first, paired] if len(differences) > 1 else [first]

    def _rank(self, method: str) -> str:
        rank, n = self.mean_rank(method)
        some = "" if n == len(self.places) else f" ({n} of {len(self.places)})"
        return "" if rank is None else f"{rank:.1f}{some}"

    def _notes_of_rows(self) -> list[str]:
        entries = self._of(*self.places)
        repeats = sorted({e.n for e in entries if e.n and e.where != "mean"})
        times = ", ".join(map(str, repeats))
        over = "one run a row" if repeats == [1] else f"± standard error over {times} repeats"
        notes = [f"1-NN accuracy in per cent, {over}; seed {self.seed}."]
        if any(e.paper is not None for e in entries):
            notes.append("In brackets the number printed in the paper.")
        if any(e.paper_corrected is not None for e in entries):
            notes.append("After an arrow, from its commented source: the printed row is a copy of another.")
        if self.best:
            test = "two-sided Wilcoxon signed-rank test"
            notes.append(f"Bold: better than the second best, {test} at {LEVEL}.")
        reasons: dict[str, list[str]] = {}
        for row, reason in self.absent.items():
            reasons.setdefault(reason, []).append(row)
        notes += [f"Row {', '.join(rows)}: {reason}." for reason, rows in reasons.items()]
        return [*notes, *self.table.notes]

    def _notes_of_groups(self) -> list[str]:
        notes = [
            f"Accuracy in per cent ± standard error; 1-NN where nothing else is said; seed {self.seed}.",
            "Bold: the best of a group. Mean rank: over the groups in which a method was run, 1 is the best.",
        ]
        notes += [f"{g.name}: {g.title}; {self._over(g)}." for g in self.groups]
        notes += [f"{group}: absent, {reason}." for group, reason in self.absent.items()]
        reasons: dict[str, dict[str, list[str]]] = {}
        for (group, method), reason in self.not_run().items():
            reasons.setdefault(reason, {}).setdefault(KNOWN[method].short, []).append(group)
        for reason, methods in reasons.items():
            what = "; ".join(f"{title} ({', '.join(groups)})" for title, groups in methods.items())
            notes.append(f"Not run: {what}: {reason}.")
        return [*notes, *self.table.notes]

    def _over(self, group: Group) -> str:
        first = next(e for e in self._of(group.name) if e.mean is not None)
        rows = f"mean of {len(group.rows)} rows" if len(group.rows) > 1 else "one row"
        times = max(e.n for e in self._of(*group.rows))
        repeats = f"{times} repeats each" if times > 1 else "run once"
        what = "subjects" if group.over == "rows" else "repeats"
        error = "no standard error" if first.se is None else f"standard error over {first.n} {what}"
        return f"{rows}, {repeats}, {error}"

    # -- picture ------------------------------------------------------------

    def picture(self) -> style.Figure:
        """A panel for each row or group, a dot with its error bar for each method, diamonds for the paper."""
        places = [place for place in self.places if any(e.mean is not None for e in self._of(place))]
        columns, n = min(PANELS, len(places)), len(self.methods)
        lines = ceil(len(places) / columns)
        titles = [fill(place, TITLE) for place in places]  # side by side, long ones would run into the next
        height = 0.88 + 0.18 * n + 0.12 * max(title.count("\n") + 1 for title in titles)
        with style.canvas(max(style.PAGE, 1.6 + 1.1 * columns), lines * height) as figure:
            figure.set_layout_engine("constrained")
            panels = figure.subplots(lines, columns, sharey=True, squeeze=False)
            for axes, place, title in zip(panels.flat, places, titles, strict=False):
                _draw_panel(axes, self._of(place))
                axes.set_title(title)
            for axes in panels.flat[len(places) :]:
                axes.set_axis_off()
            panels[0, 0].set_yticks(range(n), [KNOWN[m].short for m in self.methods])
            panels[0, 0].set_ylim(n - 0.5, -0.5)
            figure.supxlabel("accuracy (%)", fontsize=8)
            if any(e.paper is not None for e in self.entries.values()):
                panels[0, 0].scatter([], [], **_DIAMOND, label="printed in the paper")
                figure.legend(loc="outside lower right")
        return figure


_DIAMOND: Any = {"marker": "D", "s": 18, "facecolors": "none", "edgecolors": style.VERMILLION}


def _draw_panel(axes: style.Axes, entries: list[Entry]) -> None:
    for place, entry in enumerate(entries):
        color = style.BLUE if KNOWN[entry.method].family == "learned" else style.GRAY
        if entry.mean is not None:
            axes.errorbar(entry.mean, place, xerr=entry.se or 0.0, fmt="o", color=color, ms=3.5, lw=1)
        else:
            axes.annotate("not run", (0.02, place), xycoords=("axes fraction", "data"), va="center", size=6)
        if entry.paper is not None:
            axes.scatter(entry.paper, place, **_DIAMOND)
    axes.grid(color="0.92", lw=0.6)
    axes.set_axisbelow(True)


# ---------------------------------------------------------------------------
# From results to entries

Sample = dict[str, np.ndarray]  # method -> values, paired


def summarize(table: Table, results: Iterable[Result], methods: tuple[str, ...], seed: int) -> Summary:
    """Reduce the results of a table."""
    samples: dict[str, Sample] = {}
    for r in sorted(results, key=lambda r: r.repeat):
        sample = samples.setdefault(r.row, {})
        sample[r.method] = np.append(sample.get(r.method, np.empty(0)), r.accuracy)
    printed = printed_numbers(table.name)
    entries = _entries(samples, methods, printed)
    if table.groups:
        run = [replace(g, rows=tuple(row for row in g.rows if row in samples)) for g in table.groups]
        groups = tuple(g for g in run if g.rows)
        entries |= _entries({g.name: _group_sample(g, samples) for g in groups}, methods, {})
        absent = table.absent | {g.name: "not part of a quick run" for g in run if not g.rows}
        places = tuple(g.name for g in groups)
        return Summary(table, methods, places, entries, [], [], groups, absent, seed)
    in_paper = list(dict.fromkeys(row for row, _ in printed if row != "mean"))
    shown = [row for row in in_paper if row in table.rows or row in table.absent]
    rows = list(dict.fromkeys([*shown, *table.rows]))
    entries |= _entries({row: {} for row in rows if row not in samples}, methods, printed)
    if in_paper and all(row in table.rows for row in in_paper):
        entries |= {("mean", m): _mean_entry([entries[row, m] for row in in_paper], printed) for m in methods}
        rows.append("mean")
    repeated = {row: samples[row] for row in table.rows if len(samples[row][methods[0]]) > 1}
    best = [_compared(row, *_two_best(sample), sample) for row, sample in repeated.items()]
    others = [m for m in methods if m != LEARNED] if LEARNED in methods else []
    learned = [_compared(row, LEARNED, m, sample) for row, sample in repeated.items() for m in others]
    return Summary(table, methods, tuple(rows), entries, best, learned, (), table.absent, seed)


def _group_sample(group: Group, samples: Mapping[str, Sample]) -> Sample:
    methods = samples[group.rows[0]]
    if group.over == "rows":
        return {m: np.array([samples[row][m].mean() for row in group.rows]) for m in methods}
    return {m: np.mean([samples[row][m] for row in group.rows], axis=0) for m in methods}


def _entries(
    samples: Mapping[str, Sample], methods: tuple[str, ...], printed: Printed
) -> dict[tuple[str, str], Entry]:
    found = {}
    for where, sample in samples.items():
        rank = ranks(sample) if sample else {}
        for method in methods:
            paper, corrected = printed.get((where, method), (None, None))
            entry = Entry(where, method, paper=paper, paper_corrected=corrected)
            if method in sample:
                mean, se, n = Mean.of(sample[method])
                best = rank[method] == min(rank.values())
                entry = entry._replace(mean=mean, se=se, n=n, rank=rank[method], best=best)
            if method != BASELINE and {method, BASELINE} <= set(sample):
                mean, se, _ = Mean.of(sample[method] - sample[BASELINE])
                entry = entry._replace(against=BASELINE, difference=mean, difference_se=se)
            found[where, method] = entry
    return found


def _mean_entry(parts: list[Entry], printed: Printed) -> Entry:
    """Mean over the rows of the paper; its error is that of the draws, the rows being fixed."""
    method = parts[0].method
    errors = [part.se for part in parts if part.se is not None]
    corrected = [part.paper_corrected or part.paper for part in parts]
    is_corrected = any(part.paper_corrected is not None for part in parts)
    return Entry(
        "mean",
        method,
        float(np.mean([part.mean for part in parts if part.mean is not None])),
        float(np.sqrt(np.sum(np.square(errors))) / len(parts)) if len(errors) == len(parts) else None,
        sum(part.n for part in parts),
        printed.get(("mean", method), (None, None))[0],
        round(float(np.mean([c for c in corrected if c is not None])), 2) if is_corrected else None,
    )


def _two_best(sample: Sample) -> tuple[str, str]:
    ranked = sorted(sample, key=lambda m: -sample[m].mean())
    return ranked[0], ranked[min(1, len(ranked) - 1)]


def _compared(row: str, first: str, second: str, sample: Sample) -> Comparison:
    p = wilcoxon(sample[first], sample[second])
    return Comparison(row, first, second, p, p < LEVEL)
