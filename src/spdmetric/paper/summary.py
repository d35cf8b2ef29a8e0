"""A table of the paper: means, standard errors, tests, and the printed numbers beside them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spdmetric.evaluation.statistics import Mean, Section, number, wilcoxon
from spdmetric.paper.reproduce import KNOWN, Result
from spdmetric.paper.tables import Table
from spdmetric.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEVEL = 0.05
LEARNED = "logeuclid-kta"  # the method that is tested against each other one

Accuracies = dict[tuple[str, str], np.ndarray]  # row, method -> one value a repeat


class Printed(NamedTuple):
    """A number of the paper."""

    paper: float
    corrected: float | None  # where the printed one is a misprint
    note: str


def printed_numbers(table: str) -> dict[tuple[str, str], Printed]:
    """Numbers of one table of the paper by row and method, from ``paper.csv``."""
    text = files("spdmetric.paper").joinpath("paper.csv").read_text()
    return {
        (line["row"], line["method"]): Printed(
            float(line["paper"]),
            float(line["paper_corrected"]) if line["paper_corrected"] else None,
            line["note"],
        )
        for line in csv.DictReader(text.splitlines())
        if line["table"] == table
    }


class Cell(NamedTuple):
    """One number of the table."""

    row: str
    method: str
    mean: float | None  # per cent; None where the data are absent
    se: float | None
    n: int
    paper: float | None
    paper_corrected: float | None

    def text(self, bold: bool) -> str:
        """Our number with its standard error, the paper's in brackets."""
        ours = "no data" if self.mean is None else number(self.mean, self.se, bold=bold)
        if self.paper is None:
            return ours
        corrected = "" if self.paper_corrected is None else f" → {self.paper_corrected:.2f}"
        return f"{ours} ({self.paper:.2f}{corrected})"


class Comparison(NamedTuple):
    """Two columns of a row, and the two-sided Wilcoxon signed-rank test between them."""

    row: str
    first: str
    second: str
    p: float

    @property
    def significant(self) -> bool:
        return self.p < LEVEL


class Summary(NamedTuple):
    """A finished table."""

    table: Table
    methods: tuple[str, ...]
    cells: list[Cell]
    best: list[Comparison]  # the two best columns of each row, as the paper compares them
    learned: list[Comparison]  # the learned metric against each other column
    seed: int

    def cell(self, row: str, method: str) -> Cell:
        return next(cell for cell in self.cells if (cell.row, cell.method) == (row, method))

    @property
    def rows(self) -> list[str]:
        return list(dict.fromkeys(cell.row for cell in self.cells))

    def bold(self) -> set[tuple[str, str]]:
        """Cells that are significantly better than the second best of their row."""
        return {(c.row, c.first) for c in self.best if c.significant}

    def as_json(self) -> dict[str, object]:
        """Plain data for the JSON file."""
        corrected = any(cell.paper_corrected is not None for cell in self.cells)
        entries = []
        for cell in self.cells:
            entry = cell._asdict()
            both = entry.pop("paper_corrected")
            if corrected:
                entry["paper_corrected"] = cell.paper if both is None else both
            entries.append(entry)
        return {
            "table": self.table.name,
            "title": self.table.title,
            "seed": self.seed,
            "rows": entries,
            "absent": self.table.absent,
            "two_best": [{**c._asdict(), "significant": c.significant} for c in self.best],
            "learned_against": [{**c._asdict(), "significant": c.significant} for c in self.learned],
        }

    def sections(self) -> list[Section]:
        """The table as text."""
        bold = self.bold()
        lines = [["", *(KNOWN[m].short for m in self.methods)]]
        for row in self.rows:
            lines.append([row, *(self.cell(row, m).text((row, m) in bold) for m in self.methods)])
        return [Section(self.table.title, lines, self._notes())]

    def _notes(self) -> list[str]:
        repeats = sorted({cell.n for cell in self.cells if cell.n and cell.row != "mean"})
        over = f"± standard error over {', '.join(map(str, repeats))} repeats"
        notes = [
            f"1-NN accuracy in per cent, {'one run a row' if repeats == [1] else over}; seed {self.seed}."
        ]
        if any(cell.paper is not None for cell in self.cells):
            notes.append("In brackets the number printed in the paper.")
        if any(cell.paper_corrected is not None for cell in self.cells):
            notes.append("After an arrow, from its commented source: the printed row is a copy of another.")
        if self.best:
            notes.append(
                f"Bold: better than the second best, two-sided Wilcoxon signed-rank test at {LEVEL}."
            )
        reasons: dict[str, list[str]] = {}
        for row, reason in self.table.absent.items():
            reasons.setdefault(reason, []).append(row)
        notes += [f"Row {', '.join(rows)}: {reason}." for reason, rows in reasons.items()]
        return [*notes, *self.table.notes]

    def picture(self) -> Figure:
        """Accuracy of each method in each row, with standard errors, and the paper's numbers as diamonds."""
        rows = [row for row in self.rows if self.cell(row, self.methods[0]).mean is not None]
        with style.canvas(style.PAGE, 1.1 + 0.6 * len(rows)) as figure:
            figure.set_layout_engine("constrained")
            axes = figure.subplots()
            for k, method in enumerate(self.methods):
                shift = 0.8 * ((k + 0.5) / len(self.methods) - 0.5)
                color = style.PALETTE[k % len(style.PALETTE)]
                marker = "o" if k < len(style.PALETTE) else "s"
                _draw_method(axes, [self.cell(row, method) for row in rows], shift, color, marker)
            axes.set_yticks(range(len(rows)), rows)
            axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="1-NN accuracy (%)", title=self.table.title)
            for i in range(1, len(rows)):
                axes.axhline(i - 0.5, color="0.8", lw=0.6, zorder=0)
            axes.grid(axis="x", color="0.92", lw=0.6)
            axes.set_axisbelow(True)
            if any(cell.paper is not None for cell in self.cells):
                axes.scatter([], [], **_DIAMOND, edgecolors="0.3", label="printed in the paper")
            figure.legend(loc="outside lower center", ncols=4)
        return figure


_DIAMOND: Any = {"marker": "D", "s": 18, "facecolors": "none"}


def _draw_method(axes: Any, cells: list[Cell], shift: float, color: str, marker: str) -> None:
    """One dot with its error bar a row; a hollow diamond where the paper prints a number."""
    place = [i + shift for i in range(len(cells))]
    means, errors = [cell.mean for cell in cells], [cell.se or 0.0 for cell in cells]
    title = KNOWN[cells[0].method].short
    axes.errorbar(means, place, xerr=errors, fmt=marker, color=color, ms=4, lw=1, label=title)
    printed = [(cell.paper, p) for cell, p in zip(cells, place, strict=True) if cell.paper is not None]
    if printed:
        axes.scatter(*zip(*printed, strict=True), **_DIAMOND, edgecolors=color)


# ---------------------------------------------------------------------------
# From results to cells


def accuracies(results: Iterable[Result]) -> Accuracies:
    """Accuracies by row and method, in the order of the repeats."""
    found: dict[tuple[str, str], list[float]] = {}
    for r in sorted(results, key=lambda r: r.repeat):
        found.setdefault((r.row, r.method), []).append(r.accuracy)
    return {key: np.array(values) for key, values in found.items()}


def summarize(table: Table, results: Iterable[Result], methods: tuple[str, ...], seed: int) -> Summary:
    """Reduce the results of a table."""
    accuracy = accuracies(results)
    printed = printed_numbers(table.name)
    paper_rows = list(dict.fromkeys(row for row, _ in printed if row != "mean"))
    in_paper = [row for row in paper_rows if row in table.rows or row in table.absent]
    rows = list(dict.fromkeys([*in_paper, *table.rows]))
    cells = [_cell(row, method, accuracy, printed) for row in rows for method in methods]
    if paper_rows and all(row in table.rows for row in paper_rows):
        cells += [_mean_cell(method, paper_rows, accuracy, printed) for method in methods]
    repeated = [row for row in table.rows if len(accuracy[row, methods[0]]) > 1]
    best = [_compared(row, *_two_best(row, methods, accuracy), accuracy) for row in repeated]
    others = [m for m in methods if m != LEARNED] if LEARNED in methods else []
    learned = [_compared(row, LEARNED, other, accuracy) for row in repeated for other in others]
    return Summary(table, methods, cells, best, learned, seed)


def _cell(row: str, method: str, accuracy: Accuracies, printed: Mapping[tuple[str, str], Printed]) -> Cell:
    paper, corrected, _ = printed.get((row, method), (None, None, ""))
    values = accuracy.get((row, method))
    mean, se, n = (None, None, 0) if values is None else Mean.of(values)
    return Cell(row, method, mean, se, n, paper, corrected)


def _mean_cell(
    method: str, rows: list[str], accuracy: Accuracies, printed: Mapping[tuple[str, str], Printed]
) -> Cell:
    """Mean over the rows of the paper; its error is that of the draws, the rows being fixed."""
    parts = [_cell(row, method, accuracy, printed) for row in rows]
    mean = float(np.mean([part.mean for part in parts if part.mean is not None]))
    errors = [part.se for part in parts if part.se is not None]
    se = float(np.sqrt(np.sum(np.square(errors))) / len(parts)) if len(errors) == len(parts) else None
    corrected = [part.paper if part.paper_corrected is None else part.paper_corrected for part in parts]
    is_corrected = any(part.paper_corrected is not None for part in parts)
    return Cell(
        "mean",
        method,
        mean,
        se,
        sum(part.n for part in parts),
        printed["mean", method].paper if ("mean", method) in printed else None,
        round(float(np.mean([c for c in corrected if c is not None])), 2) if is_corrected else None,
    )


def _two_best(row: str, methods: tuple[str, ...], accuracy: Accuracies) -> tuple[str, str]:
    ranked = sorted(methods, key=lambda m: -accuracy[row, m].mean())
    return ranked[0], ranked[min(1, len(ranked) - 1)]


def _compared(row: str, first: str, second: str, accuracy: Accuracies) -> Comparison:
    return Comparison(row, first, second, wilcoxon(accuracy[row, first], accuracy[row, second]))
