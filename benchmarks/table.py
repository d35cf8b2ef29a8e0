"""The results as a table that a person can read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEADINGS = (
    "case",
    "kind",
    "against",
    "ours",
    "theirs",
    "ratio",
    "is",
    "evaluations",
    "bound",
    "holds",
    "note",
)
LEAST_SHARE = 0.8  # of the processor, below which times are doubtful
_HOLDS = {True: "yes", False: "NO", None: ""}


def rows(records: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Cells of the table, a row for each line of each case."""
    return [row for key, record in records.items() for row in _case_rows(key, record)]


def _case_rows(key: str, record: Mapping[str, Any]) -> list[tuple[str, ...]]:
    if record["status"] != "ok":
        return [(key, record["kind"], *[""] * 8, f"{record['status']}: {record['message']}")]
    return [_row(key, record["kind"], line) for line in record["lines"]]


def _row(key: str, kind: str, line: Mapping[str, Any]) -> tuple[str, ...]:
    bound = line["bound"]
    limit = "" if bound is None else f"{'≤' if bound['sense'] == '<=' else '≥'} {bound['limit']:g}"
    mark = "≈ " if extrapolated(line) else ""
    # A bound that the numbers cannot decide is not a bound that holds.
    holds = "?" if bound is not None and line["holds"] is None else _HOLDS[line["holds"]]
    return (
        key,
        kind,
        line["against"],
        seconds(line["ours"]),
        mark + seconds(line["theirs"]),
        mark + number(line["ratio"]),
        line["meaning"],
        _evaluations(line["evaluations"]),
        limit,
        holds,
        line["note"],
    )


def extrapolated(line: Mapping[str, Any]) -> bool:
    """Whether the peer's time was computed from a part of its work; its note then begins by saying so."""
    return bool(line["note"].startswith("extrapolated"))


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{value:.1g} s"


def number(value: float | None) -> str:
    """Three digits, without an exponent."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _evaluations(counts: Sequence[float | None]) -> str:
    ours, theirs = counts
    if ours is None and theirs is None:
        return ""
    return f"{number(ours) or '-'} / {number(theirs) or '-'}"


def text(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The table for a terminal."""
    cells = [HEADINGS, *rows(records)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(HEADINGS))]
    widths[-1] = 0  # notes may run on
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines.insert(1, "  ".join("-" * max(width, 4) for width in widths))
    return "\n".join(line.rstrip() for line in lines)


def markdown(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The whole table for a document."""
    return _markdown([HEADINGS, *rows(records)])


def _markdown(cells: Sequence[Sequence[str]]) -> str:
    lines: Iterable[Sequence[str]] = [cells[0], ["---"] * len(cells[0]), *cells[1:]]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def brief(records: Mapping[str, Mapping[str, Any]]) -> str:
    """The table for a page, in eight columns: without notes, then how many bounds hold."""
    cells = [
        (
            *row[:4],
            _theirs(row),
            f"{row[5]} {row[6]}".strip(),
            row[7],
            f"{row[8]}, {row[9]}" if row[8] else "",
        )
        for row in rows(records)
    ]
    return f"{_markdown([(*HEADINGS[:6], *HEADINGS[7:9]), *cells])}\n\n{verdict(records)}"


def _theirs(row: Sequence[str]) -> str:
    """The time of a peer; of one that was not installed a word, for its line would be empty."""
    return "not run" if row[-1].startswith("missing") else row[4]


# Documents have a pair of marks for each table that they show.
TABLES = {"all": brief}
BEGIN, END = "<!-- speed: {} (benchmarks/run.py --into) -->", "<!-- end of speed -->"


def with_tables(document: str, records: Mapping[str, Mapping[str, Any]]) -> str:
    """The document with each of `TABLES` between its marks."""
    begins = {BEGIN.format(name): table for name, table in TABLES.items() if BEGIN.format(name) in document}
    if not begins or document.count(END) != len(begins):
        marks = " or ".join(map(repr, map(BEGIN.format, TABLES)))
        raise ValueError(f"Expected one line {marks} and one line {END!r} for the table to go between.")
    for begin, table in begins.items():
        head, rest = document.split(begin, 1)
        document = f"{head}{begin}\n{table(records)}\n{END}{rest.split(END, 1)[1]}"
    return document


def verdict(records: Mapping[str, Mapping[str, Any]]) -> str:
    """One sentence: how many bounds hold."""
    lines = [line for record in records.values() for line in record["lines"] if line["bound"] is not None]
    count = {answer: sum(line["holds"] is answer for line in lines) for answer in (True, False, None)}
    sentence = f"{count[True]} of {len(lines)} bounds hold, {count[False]} do not"
    sentence += f", {count[None]} cannot be told" if count[None] else ""
    others = [key for key, record in records.items() if record["status"] != "ok"]
    return sentence + (f"; without numbers: {', '.join(others)}." if others else ".") + _doubts(records)


def _doubts(records: Mapping[str, Mapping[str, Any]]) -> str:
    """A sentence about cases that had to share the processor."""
    busy = [key for key, r in records.items() if r["status"] == "ok" and r["processor_share"] < LEAST_SHARE]
    return f"\nTimes are doubtful, the machine was busy with other work: {', '.join(busy)}." if busy else ""
