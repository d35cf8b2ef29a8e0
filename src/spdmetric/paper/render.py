"""A finished table as text a person can read, and as a picture.  Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spdmetric.evaluation.methods import TITLES
from spdmetric.evaluation.statistics import LEVEL, Cell, Summary
from spdmetric.paper.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIAMOND: Any = {"marker": "D", "s": 18, "facecolors": "none"}


def as_markdown(summary: Summary) -> str:
    """Our numbers with standard errors, the paper's in brackets."""
    bold = summary.bold()
    head = ["", *(TITLES[m] for m in summary.methods)]
    lines = [f"# {summary.table.title}", "", _line(head), _line(["---"] * len(head))]
    for row in summary.rows:
        cells = [summary.cell(row, m) for m in summary.methods]
        if cells[0].mean is None:
            lines.append(_line([row, *(_paper(cell, absent=True) for cell in cells)]))
        else:
            lines.append(_line([row, *(_text(cell, (row, cell.method) in bold) for cell in cells)]))
    return "\n".join([*lines, "", *_legend(summary), ""])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(cell: Cell, bold: bool) -> str:
    number = f"{cell.mean:.2f}"
    error = "" if cell.se is None else f" ± {cell.se:.2f}"
    return f"{f'**{number}**' if bold else number}{error}{_paper(cell)}"


def _paper(cell: Cell, absent: bool = False) -> str:
    if cell.paper is None:
        return "no data" if absent else ""
    corrected = "" if cell.paper_corrected is None else f" → {cell.paper_corrected:.2f}"
    return f"{'no data' if absent else ''} ({cell.paper:.2f}{corrected})"


def _legend(summary: Summary) -> list[str]:
    repeats = sorted({cell.n for cell in summary.cells if cell.n and cell.row != "mean"})
    over = (
        "one run a row" if repeats == [1] else f"± standard error over {', '.join(map(str, repeats))} repeats"
    )
    lines = [f"1-NN accuracy in per cent, {over}; seed {summary.seed}."]
    if any(cell.paper is not None for cell in summary.cells):
        lines.append("In brackets the number printed in the paper.")
    if any(cell.paper_corrected is not None for cell in summary.cells):
        lines.append("After an arrow, from its commented source: the printed row is a copy of another.")
    if summary.best:
        lines.append(f"Bold: better than the second best, two-sided Wilcoxon signed-rank test at {LEVEL}.")
    reasons: dict[str, list[str]] = {}
    for row, reason in summary.table.absent.items():
        reasons.setdefault(reason, []).append(row)
    lines += [f"Row {', '.join(rows)}: {reason}." for reason, rows in reasons.items()]
    return [*lines, *summary.table.notes]


def as_plain(summary: Summary) -> str:
    """The same table in aligned columns, for a terminal."""
    bold = summary.bold()
    table = [["", *(TITLES[m] for m in summary.methods)]]
    for row in summary.rows:
        cells = [summary.cell(row, m) for m in summary.methods]
        table.append([row, *(_short(cell, (cell.row, cell.method) in bold) for cell in cells)])
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in table]
    return "\n".join([summary.table.title, "", *lines, "", *_legend(summary)]).replace("Bold:", "*:")


def _short(cell: Cell, bold: bool) -> str:
    if cell.mean is None:
        return _paper(cell, absent=True)
    error = "" if cell.se is None else f"±{cell.se:.2f}"
    return f"{cell.mean:.2f}{error}{'*' if bold else ''}{_paper(cell)}"


def picture(summary: Summary) -> Figure:
    """Accuracy of each method in each row, with standard errors, and the paper's numbers as diamonds."""
    rows = [row for row in summary.rows if summary.cell(row, summary.methods[0]).mean is not None]
    with style.canvas(style.PAGE, 1.1 + 0.6 * len(rows)) as figure:
        figure.set_layout_engine("constrained")
        axes = figure.subplots()
        for k, method in enumerate(summary.methods):
            shift = 0.8 * ((k + 0.5) / len(summary.methods) - 0.5)
            color = style.PALETTE[k % len(style.PALETTE)]
            marker = "o" if k < len(style.PALETTE) else "s"
            _draw_method(axes, [summary.cell(row, method) for row in rows], shift, color, marker)
        axes.set_yticks(range(len(rows)), rows)
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel="1-NN accuracy (%)", title=summary.table.title)
        for i in range(1, len(rows)):
            axes.axhline(i - 0.5, color="0.8", lw=0.6, zorder=0)
        axes.grid(axis="x", color="0.92", lw=0.6)
        axes.set_axisbelow(True)
        if any(cell.paper is not None for cell in summary.cells):
            axes.scatter(
                [], [], marker="D", s=18, facecolors="none", edgecolors="0.3", label="printed in the paper"
            )
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def _draw_method(axes: Any, cells: list[Cell], shift: float, color: str, marker: str) -> None:
    """One dot with its error bar a row; a hollow diamond where the paper prints a number."""
    place = [i + shift for i in range(len(cells))]
    means, errors = [cell.mean for cell in cells], [cell.se or 0.0 for cell in cells]
    title = TITLES[cells[0].method]
    axes.errorbar(means, place, xerr=errors, fmt=marker, color=color, ms=4, lw=1, label=title)
    printed = [(cell.paper, p) for cell, p in zip(cells, place, strict=True) if cell.paper is not None]
    if printed:
        axes.scatter(*zip(*printed, strict=True), **_DIAMOND, edgecolors=color)
