"""Means with standard errors, tests and ranks, and tables of them as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Mean(NamedTuple):
    """A mean, its standard error where there is more than one value, and their number."""

    mean: float
    se: float | None
    n: int

    @classmethod
    def of(cls, values: np.ndarray) -> Mean:
        """Mean of values that are independent of each other."""
        se = float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None
        return cls(float(values.mean()), se, values.size)


def wilcoxon(a: np.ndarray, b: np.ndarray) -> float:
    """P-value of the two-sided signed-rank test of paired values; 1 where nothing differs."""
    from scipy.stats import wilcoxon as signed_rank

    return 1.0 if np.array_equal(a, b) else float(signed_rank(a, b).pvalue)


def ranks(sample: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Ranks of the means, 1 the highest; equal ones share the mean of their ranks."""
    from scipy.stats import rankdata

    means = [round(float(values.mean()), 9) for values in sample.values()]
    return dict(zip(sample, map(float, rankdata(np.negative(means))), strict=True))


class Section(NamedTuple):
    """A table of text, its first line the head, with a title and what is to be said below."""

    title: str
    table: list[list[str]]  # in markdown: ``**bold**``
    notes: list[str]


def number(mean: float, se: float | None, *, bold: bool = False, sign: str = "") -> str:
    """``81.50 ± 2.70``; with sign="+", signed."""
    text = f"{mean:{sign}.2f}"
    return (f"**{text}**" if bold else text) + ("" if se is None else f" ± {se:.2f}")


def as_markdown(*sections: Section) -> str:
    """Sections as markdown, the first under the title of the page."""
    lines = []
    for k, (title, table, notes) in enumerate(sections):
        rule = ["---"] * len(table[0])
        rows = [f"| {' | '.join(line)} |" for line in (table[0], rule, *table[1:])]
        lines += [f"{'##' if k else '#'} {title}", "", *rows, "", *notes, ""]
    return "\n".join(lines)


def as_plain(section: Section) -> str:
    """A section in aligned columns, for a terminal; a star follows what is bold."""
    table = [[re.sub(r"\*\*(.+?)\*\*", r"\1*", cell) for cell in line] for line in section.table]
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in table]
    notes = [note.replace("Bold:", "*:") for note in section.notes]
    return "\n".join([section.title, "", *lines, "", *notes])
