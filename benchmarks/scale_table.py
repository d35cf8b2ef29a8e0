"""The results of scale.py as tables, on the screen and in docs/scale.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = tuple[str, str, str, bool]  # what, measured, bound, whether it holds


def table(results: dict[str, Any]) -> str:
    """Markdown table of what was measured against what is promised."""
    lines = ["| what | measured | promised | |", "|---|---|---|---|"]
    for what, measured, bound, holds in rows(results):
        lines.append(f"| {what} | {measured} | {bound} | {'yes' if holds else '**no**'} |")
    return "\n".join(lines)


def rows(results: dict[str, Any]) -> Iterator[Row]:
    """A row for each promise that was measured."""
    for name, of_section in (
        ("memory", _memory),
        ("growth", _growth),
        ("agree", _agree),
        ("faults", _faults),
        ("workers", _workers),
    ):
        if name in results:
            yield from of_section(results[name])


def _memory(found: dict[str, Any]) -> Iterator[Row]:
    above = found["peak_above_MB"]
    what = (
        f"fit on a memory map of {found['n']:,} matrices 8 x 8 ({found['evaluations']} evaluations, "
        f"{found['seconds']:.0f} s, two threads): anonymous memory above the interpreter's"
    )
    yield what, f"{above:.0f} MB", "≤ 400 MB", above <= 400 and found["converged"]


def _growth(found: dict[str, Any]) -> Iterator[Row]:
    times = ", ".join(f"{seconds:.3g} s" for seconds in found["seconds"])
    sizes = ", ".join(f"{n:,}" for n in found["n"])
    exponent = found["exponent"]
    yield f"evaluation of {sizes} of them ({times}): exponent", f"{exponent:.3f}", "≤ 1.05", exponent <= 1.05


def _agree(found: dict[str, Any]) -> Iterator[Row]:
    for name, case in found["cases"].items():
        yield _agreement(f"{found['n']:,} matrices, {name}, against memory", case)


def _agreement(what: str, case: dict[str, Any]) -> Row:
    measured = f"Δf {case['alignment']:.0e}, δ_r {case['distance']:.0e}"
    holds = case["alignment"] <= 1e-8 and case["distance"] <= case["allowed"]
    bound = f"Δf ≤ 1e-8, δ_r ≤ {case['allowed']:.0e}"
    return what, "the same bits" if case["same_bits"] else measured, bound, holds


def _faults(found: dict[str, Any]) -> Iterator[Row]:
    yield _agreement(f"{found['n']:,} matrices, a worker killed in mid-fit, against memory", found["worker"])
    seconds, holds = found["scheduler_s"], found["scheduler_s"] <= 60 and "scheduler" in found["said"]
    yield "a scheduler killed in mid-fit: the error comes after", f"{seconds:.1f} s", "≤ 60 s", holds


def _workers(found: dict[str, Any]) -> Iterator[Row]:
    what = f"evaluation of {found['n']:,} matrices {found['d']} x {found['d']}"
    times = f"({found['workers_s']:.2f} s against {found['threads_s']:.2f} s)"
    ratio, predicted = found["ratio"], found["predicted_by_measured"]
    yield f"{what}, two workers by two threads {times}", f"{ratio:.2f}", "≤ 1.2", ratio <= 1.2
    what = f"{what}, predicted ({found['predicted_s']:.2f} s) by measured"
    yield what, f"{predicted:.2f}", "0.75 to 1.25", 0.75 <= predicted <= 1.25


def put_into(path: Path, results: dict[str, Any]) -> None:
    """Replace the tables of a document, each between two comments that name it."""
    text = path.read_text()
    tables = {"measured": table(results), "simulation": results.get("simulation", {}).get("text", "")}
    for name, content in tables.items():
        if content:
            between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
            text = between.sub(lambda m, content=content: f"{m[1]}\n{content}\n\n{m[2]}", text)
    path.write_text(text)
