"""From the tidy results to the table: means, standard errors, tests, the printed numbers beside them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from spdmetric.evaluation.journal import Result
from spdmetric.paper.tables import Table

LEVEL = 0.05


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


def summarize(table: Table, results: Iterable[Result], methods: tuple[str, ...], seed: int) -> Summary:
    """Reduce the results of a table."""
    accuracy: dict[tuple[str, str], np.ndarray] = {}
    for r in sorted(results, key=lambda r: r.repeat):
        key = r.row, r.method
        accuracy[key] = np.append(accuracy.get(key, np.empty(0)), r.accuracy)
    printed = printed_numbers(table.name)
    paper_rows = list(dict.fromkeys(row for row, _ in printed if row != "mean"))
    rows = list(dict.fromkeys([*_in_paper_order(paper_rows, table), *table.rows]))
    cells = [_cell(row, method, accuracy.get((row, method)), printed) for row in rows for method in methods]
    if paper_rows and all(row in table.rows for row in paper_rows):
        cells += [_mean_cell(method, paper_rows, accuracy, printed) for method in methods]
    repeated = [row for row in table.rows if len(accuracy[row, methods[0]]) > 1]
    best = [_two_best(row, methods, accuracy) for row in repeated]
    learned = [
        Comparison(
            row, "logeuclid-kta", other, _wilcoxon(accuracy[row, "logeuclid-kta"], accuracy[row, other])
        )
        for row in repeated
        for other in methods
        if "logeuclid-kta" in methods and other != "logeuclid-kta"
    ]
    return Summary(table, methods, cells, best, learned, seed)


def _in_paper_order(paper_rows: list[str], table: Table) -> list[str]:
    """Rows of the paper that were run or are absent; none where other data were given."""
    return [row for row in paper_rows if row in table.rows or row in table.absent]


def _cell(row: str, method: str, values: np.ndarray | None, printed: dict[Any, Printed]) -> Cell:
    number = printed.get((row, method))
    paper, corrected = (None, None) if number is None else (number.paper, number.corrected)
    if values is None:
        return Cell(row, method, None, None, 0, paper, corrected)
    se = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None
    return Cell(row, method, float(values.mean()), se, values.size, paper, corrected)


def _mean_cell(
    method: str, rows: list[str], accuracy: dict[Any, np.ndarray], printed: dict[Any, Printed]
) -> Cell:
    """Mean over the rows of the paper; its error is that of the draws, the rows being fixed."""
    parts = [_cell(row, method, accuracy[row, method], printed) for row in rows]
    mean = float(np.mean([part.mean for part in parts if part.mean is not None]))
    errors = [part.se for part in parts if part.se is not None]
    se = float(np.sqrt(np.sum(np.square(errors))) / len(parts)) if len(errors) == len(parts) else None
    number = printed.get(("mean", method))
    corrected = [part.paper if part.paper_corrected is None else part.paper_corrected for part in parts]
    is_corrected = any(part.paper_corrected is not None for part in parts)
    return Cell(
        "mean",
        method,
        mean,
        se,
        sum(part.n for part in parts),
        None if number is None else number.paper,
        round(float(np.mean([c for c in corrected if c is not None])), 2) if is_corrected else None,
    )


def _two_best(row: str, methods: tuple[str, ...], accuracy: dict[Any, np.ndarray]) -> Comparison:
    ranked = sorted(methods, key=lambda m: -accuracy[row, m].mean())
    first, second = ranked[0], ranked[1] if len(ranked) > 1 else ranked[0]
    return Comparison(row, first, second, _wilcoxon(accuracy[row, first], accuracy[row, second]))


def _wilcoxon(a: np.ndarray, b: np.ndarray) -> float:
    """Two-sided signed-rank test; 1 where nothing differs."""
    from scipy.stats import wilcoxon

    if np.array_equal(a, b):
        return 1.0
    return float(wilcoxon(a, b).pvalue)


def as_json(summary: Summary) -> dict[str, Any]:
    """Plain data for the JSON file."""
    corrected = any(cell.paper_corrected is not None for cell in summary.cells)

    def plain(cell: Cell) -> dict[str, Any]:
        entry = cell._asdict()
        if not corrected:
            del entry["paper_corrected"]
        elif entry["paper_corrected"] is None:
            entry["paper_corrected"] = cell.paper
        return entry

    return {
        "table": summary.table.name,
        "title": summary.table.title,
        "seed": summary.seed,
        "rows": [plain(cell) for cell in summary.cells],
        "absent": summary.table.absent,
        "two_best": [{**c._asdict(), "significant": c.significant} for c in summary.best],
        "learned_against": [{**c._asdict(), "significant": c.significant} for c in summary.learned],
    }
