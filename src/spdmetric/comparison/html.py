"""Pieces of HTML: plain strings, all text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape as _escape

import numpy as np

Cell = tuple[str, object]  # what is shown, and what is sorted by; None: what is shown

DARK, LIGHT, FULL = (0, 0, 0), (255, 255, 255), (10, 85, 140)


def escape(text: str) -> str:
    """Text for HTML, in elements and in attributes."""
    return _escape(text, quote=True)


def section(key: str, heading: str, body: str) -> str:
    """A section with its heading."""
    return f'\n<section aria-labelledby="{key}"><h2 id="{key}">{escape(heading)}</h2>{body}</section>'


def paragraphs(texts: Iterable[str]) -> str:
    """A paragraph for each text."""
    return "".join(f"<p>{unbroken(escape(text))}</p>" for text in texts)


def unbroken(text: str) -> str:
    """Keep numbers with their errors and units on one line."""
    text = text.replace(" ± ", "&nbsp;±&nbsp;").replace(" %", "&nbsp;%")
    return re.sub(r"(?<=[0-9]) points", "&nbsp;points", text)


def figure(svg: str, caption: str) -> str:
    """A picture with a caption."""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def definitions(rows: dict[str, str]) -> str:
    """A table of names and values."""
    lines = "".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in rows.items())
    return f'<table class="plain"><tbody>{lines}</tbody></table>'


def sortable_table(
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    caption: str,
    key: str,
    *,
    best: bool = False,
    falling: tuple[str, ...] = (),
) -> str:
    """A table that the page's script lets the reader sort.

    Parameters
    ----------
    head : sequence of str
        Headings.
    rows : sequence of sequences of (shown, sorted by)
        The first cell of a row is its heading; cells with a number to sort by stand right.
    caption : str
        What the table shows.
    key : str
        Its id.
    best : bool, default=False
        Whether to print the first row bold.
    falling : tuple of str
        Headings that sort from the largest first.

    Returns
    -------
    html : str
    """
    numeric = [cell[1] is not None for cell in rows[0]]
    descending = " data-first=descending"
    headings = "".join(
        f'<th scope="col"{" class=number" if right else ""}{descending if h in falling else ""}>'
        f"{escape(h)}</th>"
        for h, right in zip(head, numeric, strict=True)
    )
    body = "".join(_row(row, best and i == 0) for i, row in enumerate(rows))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption.split(".")[0])}">'
        f'<table class="sortable" id="{key}"><caption><span>{escape(caption)}</span></caption>'
        f"<thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Sequence[Cell], best: bool) -> str:
    cells = []
    for at, (shown, value) in enumerate(row):
        right = "" if value is None else f' class="number" data-value="{value}"'
        text = escape(shown)
        cells.append(f'<th scope="row"{right}>{text}</th>' if at == 0 else f"<td{right}>{text}</td>")
    return f"<tr{' class=best' if best else ''}>{''.join(cells)}</tr>"


# ---------------------------------------------------------------------------
# Confusion


def confusion_table(counts: np.ndarray, names: Sequence[str], label: str) -> str:
    """Counts of labels given (columns) to each class (rows), shaded by their share of the row."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(map(_shaded, counts[i], shares[i]))}</tr>'
        for i, name in enumerate(names)
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">'
        f'<table class="confusion">'
        f'<thead><tr><th scope="col">true, given</th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _shaded(count: float, share: float) -> str:
    ground = [round(light + share * (full - light)) for light, full in zip(LIGHT, FULL, strict=True)]
    ink = max((DARK, LIGHT), key=lambda color: contrast(color, ground))
    colors = f"background:{_hex(ground)};color:{_hex(ink)}"
    return f'<td style="{colors}">{count:.4g}<br>{100 * share:.0f}&nbsp;%</td>'


def _hex(color: Sequence[int]) -> str:
    return "#" + "".join(f"{part:02x}" for part in color)


def contrast(a: Sequence[int], b: Sequence[int]) -> float:
    """Contrast ratio of two colors after WCAG 2, between 1 and 21."""
    bright, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def _luminance(color: Sequence[int]) -> float:
    parts = [c / 255 for c in color]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))
