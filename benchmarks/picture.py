"""The results as a picture: how many times faster, and how time and memory grow."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_COLORS = {True: "#1b7837", False: "#b2182b", None: "#555555"}


def draw(records: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Draw the picture; ImportError with a sentence where matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Drawing results.png needs matplotlib: pip install 'spdmetric[plots]'.") from error
    speeds = speed_ups(records)
    figure = Figure(figsize=(11, max(4.0, 1.5 + 0.24 * len(speeds))), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    _draw_speeds(figure.add_subplot(grid[:, 0]), speeds)
    for place, name in enumerate(("n", "d")):
        _draw_growth(figure.add_subplot(grid[place, 1]), records.get(f"growth/{name}"), name)
    figure.savefig(path, dpi=120)


def speed_ups(
    records: Mapping[str, Mapping[str, Any]],
) -> list[tuple[str, float, float | None, bool | None]]:
    """Label, times faster than the peer, the same of the bound, and whether it holds."""
    found = []
    for key, record in records.items():
        for line in record["lines"]:
            if line["meaning"] not in ("ours / peer", "peer / ours") or not line["ratio"]:
                continue
            inverse = line["meaning"] == "ours / peer"
            limit = None if line["bound"] is None else line["bound"]["limit"]
            ratio = 1 / line["ratio"] if inverse else line["ratio"]
            faster = None if limit is None else 1 / limit if inverse else limit
            found.append((f"{key}  |  {line['against']}", ratio, faster, line["holds"]))
    return found


def _draw_speeds(axes: Any, speeds: list[tuple[str, float, float | None, bool | None]]) -> None:
    axes.axvline(1, color="black", linewidth=0.8)
    for place, (_, ratio, bound, holds) in enumerate(speeds):
        axes.plot([1, ratio], [place, place], color=_COLORS[holds], linewidth=1.2)
        axes.plot(ratio, place, "o", color=_COLORS[holds], markersize=5)
        if bound is not None:
            axes.plot(bound, place, "|", color="black", markersize=9)
    axes.set_yticks(range(len(speeds)), [label for label, *_ in speeds], fontsize=7)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel("time of the peer / time of spdmetric;  | is the bound")


def _draw_growth(axes: Any, record: Mapping[str, Any] | None, name: str) -> None:
    axes.set_xlabel(name)
    if record is None or record["status"] != "ok":
        axes.set_axis_off()
        axes.text(0.5, 0.5, f"growth/{name} was not run", ha="center", transform=axes.transAxes)
        return
    for label, curve in record["contestants"].items():
        axes.loglog(curve["size"], curve["seconds"], "o-", label=f"seconds, {label}")
        axes.loglog(curve["size"], [b / 1e9 for b in curve["bytes"]], "s--", label=f"peak GB, {label}")
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
