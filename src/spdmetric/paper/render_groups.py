"""A finished comparison of methods over groups, as text and as a picture.  Nothing is computed here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spdmetric.evaluation.methods import BASELINES, TITLES
from spdmetric.paper.figures import style
from spdmetric.paper.groups import Entry, Mean, Summary
from spdmetric.paper.tables import Group

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def as_markdown(summary: Summary) -> str:
    """Accuracies, then paired differences, methods as lines and groups as columns."""
    lines = [f"# {summary.table.title}", ""]
    lines += [*_markdown_table(_accuracies(summary, mark="**")), "", *_legend(summary), ""]
    lines += ["## Paired differences", "", *_markdown_table(_differences(summary)), ""]
    lines += [_difference_legend(), ""]
    return "\n".join(lines)


def as_plain(summary: Summary) -> str:
    """The table of accuracies in aligned columns, for a terminal."""
    table = _accuracies(summary, mark="*")
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in table]
    legend = [line.replace("Bold:", "*:") for line in _legend(summary)]
    return "\n".join([summary.table.title, "", *lines, "", *legend])


def _markdown_table(table: list[list[str]]) -> list[str]:
    rule = ["---"] * len(table[0])
    return [f"| {' | '.join(line)} |" for line in (table[0], rule, *table[1:])]


# ---------------------------------------------------------------------------
# Cells


def _accuracies(summary: Summary, mark: str) -> list[list[str]]:
    best = summary.best()
    table = [["", *(g.name for g in summary.groups), "mean rank"]]
    for method in summary.methods:
        entries = [summary.entry(g.name, method) for g in summary.groups]
        cells = [_accuracy(e, mark if (e.where, method) in best else "") for e in entries]
        table.append([TITLES[method], *cells, _rank(summary, method)])
    return table


def _accuracy(entry: Entry, mark: str) -> str:
    if entry.accuracy is None:
        return "not run"
    number = f"{entry.accuracy.mean:.2f}"
    # Two asterisks surround in markdown; one follows in plain text.
    marked = f"{mark}{number}{mark}" if mark == "**" else f"{number}{mark}"
    return marked + _error(entry.accuracy)


def _error(mean: Mean) -> str:
    return "" if mean.se is None else f" ± {mean.se:.2f}"


def _rank(summary: Summary, method: str) -> str:
    rank, n = summary.mean_rank(method)
    if rank is None:
        return ""
    return f"{rank:.1f}" if n == len(summary.groups) else f"{rank:.1f} ({n} of {len(summary.groups)})"


def _differences(summary: Summary) -> list[list[str]]:
    table = [["", *(g.name for g in summary.groups)]]
    for method in summary.methods:
        entries = [summary.entry(g.name, method) for g in summary.groups]
        if any(e.difference is not None for e in entries):
            table.append([TITLES[method], *(_difference(e.difference) for e in entries)])
    return table


def _difference(difference: Mean | None) -> str:
    return "" if difference is None else f"{difference.mean:+.2f}{_error(difference)}"


# ---------------------------------------------------------------------------
# What is said below


def _legend(summary: Summary) -> list[str]:
    lines = [
        f"Accuracy in per cent ± standard error; 1-NN where nothing else is said; seed {summary.seed}.",
        "Bold: the best of a group. Mean rank: over the groups in which a method was run, 1 is the best.",
    ]
    lines += [f"{g.name}: {g.title}; {_over(summary, g)}." for g in summary.groups]
    lines += [f"{group}: absent, {reason}." for group, reason in summary.absent.items()]
    reasons: dict[str, dict[str, list[str]]] = {}
    for (group, method), reason in summary.not_run.items():
        reasons.setdefault(reason, {}).setdefault(TITLES[method], []).append(group)
    for reason, methods in reasons.items():
        what = "; ".join(f"{title} ({', '.join(groups)})" for title, groups in methods.items())
        lines.append(f"Not run: {what}: {reason}.")
    return [*lines, *summary.table.notes]


def _over(summary: Summary, group: Group) -> str:
    accuracy = next(
        e.accuracy for e in summary.group_entries if e.where == group.name and e.accuracy is not None
    )
    rows = f"mean of {len(group.rows)} rows" if len(group.rows) > 1 else "one row"
    times = max(e.accuracy.n for e in summary.row_entries if e.where in group.rows and e.accuracy)
    repeats = f"{times} repeats each" if times > 1 else "run once"
    if accuracy.se is None:
        return f"{rows}, {repeats}, no standard error"
    what = "subjects" if group.over == "rows" else "repeats"
    return f"{rows}, {repeats}, standard error over {accuracy.n} {what}"


def _difference_legend() -> str:
    heads = ", ".join(sorted({TITLES[baseline].split(", ")[1] for baseline in BASELINES.values()}))
    return (
        "Accuracy less that of tangent vectors at the Riemannian mean on the same data: with the same head "
        f"for methods that end in {heads}, with 1-NN for all others."
    )


# ---------------------------------------------------------------------------
# Picture


def picture(summary: Summary) -> Figure:
    """One panel for each group, one dot with its error bar for each method."""
    methods, groups = summary.methods, summary.groups
    with style.canvas(max(style.PAGE, 1.6 + 1.1 * len(groups)), 1.0 + 0.18 * len(methods)) as figure:
        figure.set_layout_engine("constrained")
        panels = figure.subplots(1, len(groups), sharey=True, squeeze=False)[0]
        for axes, group in zip(panels, groups, strict=True):
            _draw_group(axes, [summary.entry(group.name, m) for m in methods])
            axes.set_title(group.name)
        panels[0].set_yticks(range(len(methods)), [TITLES[m] for m in methods])
        panels[0].set_ylim(len(methods) - 0.5, -0.5)
        figure.supxlabel("accuracy (%)", fontsize=8)
    return figure


def _draw_group(axes: Any, entries: list[Entry]) -> None:
    for place, entry in enumerate(entries):
        if entry.accuracy is None:
            continue
        color = style.BLUE if entry.method.startswith("logeuclid-kta") else style.GRAY
        error = entry.accuracy.se or 0.0
        axes.errorbar(entry.accuracy.mean, place, xerr=error, fmt="o", color=color, ms=3.5, lw=1)
    axes.grid(color="0.92", lw=0.6)
    axes.set_axisbelow(True)
