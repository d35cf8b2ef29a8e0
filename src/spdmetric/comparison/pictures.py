"""The pictures of the page, each an SVG that is part of it: narrow, so that a phone can show them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spdmetric.comparison.chosen import Drawn, Panel
from spdmetric.comparison.describe import Description
from spdmetric.comparison.methods import METHODS
from spdmetric.comparison.verdict import Verdict
from spdmetric.plots import ChoiceDisplay, ReferenceSpectrumDisplay, style
from spdmetric.plots.style import BLUE, CLASS_LOOKS, GRAY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axis import Axis

Box = tuple[float, float, float, float]

WIDTH = 4.4  # inches; 9 point letters stay 9 pixels high on a phone
INK, FAINT, LINE, PAPER = "#1f2933", "#52606d", "#d9dee4", "#ffffff"
FAMILY_LOOKS = {  # color, mark, and words of the legend
    "distance": (BLUE, "o", "fixed distance"),
    "learned": (VERMILLION, "D", "learned metric"),
    "rival": (GRAY, "s", "rival"),
}
MOST_COMPONENTS = 6
# Colors that page.css gives another value in the dark.
_COLORS = ("BLUE", "VERMILLION", "GREEN", "PURPLE", "ORANGE", "SKY", "GRAY")
THEMED = {getattr(style, name): name.lower() for name in _COLORS}
THEMED |= {INK: "ink", style.BLACK: "ink", "black": "ink", FAINT: "soft", LINE: "line", PAPER: "paper"}

_TEXT: Any = {
    "svg.fonttype": "none",  # text stays text: searched, copied, read aloud
    "svg.hashsalt": "spdmetric",  # the same picture is the same file
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    "axes.edgecolor": FAINT,
}


class Picture(NamedTuple):
    """A drawing that becomes an ``<svg>`` element; what it shows in words is in ``page.html``."""

    name: str  # prefix of its ids: several pictures share a page
    box: str  # its viewBox
    body: str  # what stands after the opening tag, the closing tag included
    rules: str  # the style of its elements, by their classes: a policy by hashes allows no attributes


def as_picture(figure: style.Figure, name: str) -> Picture:
    """Turn a figure into a picture of the page."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context(_TEXT):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    # The style is the same in all: it is in page.css.
    text = re.sub(r"<(metadata|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    head, _, body = text.partition(">")
    styles: dict[str, str] = {}

    def by_class(found: re.Match[str]) -> str:
        return f'{found[1]}class="{styles.setdefault(unescape(found[2]), f"{name}-{len(styles)}")}"'

    body = re.sub(r'(<[^<>]*?\b)style="([^"]*)"', by_class, body)  # in tags alone: a label may hold anything
    rules = "".join(f".{key}{{{_themed(style)}}}\n" for style, key in styles.items())
    return Picture(name, head.partition('viewBox="')[2].partition('"')[0], body, rules)


def _themed(rule: str) -> str:
    """A rule whose colors, and what is faint, are variables of the page; alone, the picture keeps its own."""
    for color, name in THEMED.items():
        rule = re.sub(rf"{color}\b", f"var(--{name}, {color.lower()})", rule, flags=re.IGNORECASE)
    return rule.replace("opacity: 0.3", "opacity: var(--faint, 0.3)")


@contextmanager
def _drawing(
    height: float, box: Box, figure: style.Figure | None = None
) -> Iterator[tuple[style.Figure, style.Axes]]:
    """A figure of the page's width with the page's letters, and axes in a box given in shares of it."""
    with style.canvas(WIDTH, height, figure, **_TEXT) as figure:
        yield figure, figure.add_axes(box)


def _legend(figure: style.Figure, columns: int) -> None:
    figure.legend(loc="upper center", ncols=columns, handletextpad=0.1, columnspacing=1.0)


def _safe(text: str, most: int = 24) -> str:
    """A label of the user's: never mathematics, never too long; the ends tell names apart."""
    text = text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[-(most // 2) :]}"
    return text.replace("$", r"\$")


def ranking(verdict: Verdict, figure: style.Figure | None = None) -> style.Figure:
    """The score that decides with standard errors, the best on top; hollow where recentered."""
    methods = list(dict.fromkeys(line.method.partition(" ")[0] for line in verdict.ranked))[::-1]
    height = 0.9 + 0.235 * len(methods)
    with _drawing(height, (0.45, 0.55 / height, 0.52, 1 - 0.95 / height), figure) as (figure, axes):
        for line in verdict.ranked:
            method, _, form = line.method.partition(" ")
            color, mark, _ = FAMILY_LOOKS[METHODS[method].family]
            score, aside = verdict.score(line), 0.2 * bool(verdict.recentering)
            at = methods.index(method) + (aside if form else -aside)
            error, inside = score.se if score.known else None, PAPER if form else color
            axes.errorbar(score.mean, at, xerr=error, fmt=mark, color=color, ms=5, lw=1.4, mfc=inside)
        axes.axvline(verdict.chance, color=FAINT, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(methods)), [METHODS[method].title for method in methods])
        axes.set(
            xlabel=f"{verdict.word}, {verdict.scored.axis}", ylim=(-0.7, len(methods) - 0.3), axisbelow=True
        )
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=LINE, lw=0.7)
        for family in sorted({METHODS[method].family for method in methods}):
            color, mark, words = FAMILY_LOOKS[family]
            axes.plot([], [], ls="none", marker=mark, color=color, ms=5, label=words)
        _legend(figure, 3)
    return figure


def conditions(description: Description) -> style.Figure:
    """Histogram of the condition numbers, or of the ranks where some are singular."""
    values, edges = description.ranks, np.arange(0.5, description.d + 1)
    if description.definite:
        values = np.log10(description.condition)
        edges = np.linspace(values.min(), values.max() + 1e-9, 21)
    with _drawing(2.3, (0.13, 0.21, 0.84, 0.74)) as (figure, axes):
        axes.hist(values, edges.tolist(), color=BLUE, rwidth=0.92)
        across = "log10 of the condition number" if description.definite else "numerical rank"
        axes.set(xlabel=across, ylabel="matrices")
        axes.locator_params(axis="y", integer=True)
    return figure


def outliers(description: Description, classes: np.ndarray) -> style.Figure:
    """Distance of every matrix from the mean, in the order of the file."""
    distance, known = description.distance, description.classes
    known = known if len(known) <= 4 else ()  # there is no room to name more
    with _drawing(2.3, (0.13, 0.21, 0.84, 0.66 if known else 0.74)) as (figure, axes):
        for c, ((name, _), (color, mark)) in enumerate(zip(known, CLASS_LOOKS, strict=False)):
            at = np.flatnonzero(classes == c)
            axes.plot(at, distance[at], label=_safe(name), color=color, marker=mark, ms=3.2, ls="none")
        if not known:
            axes.plot(distance, color=BLUE, marker="o", ms=3.2, ls="none")
        axes.set(xlabel="matrix, in the order of the file", ylabel="distance from mean")
        axes.set_ylim(bottom=0)
        axes.ticklabel_format(axis="y", scilimits=(-2, 4))  # long numbers would push the words out
        if known:
            _legend(figure, 4)
    return figure


def candidates(drawn: Drawn) -> style.Figure:
    """What the candidates gained in the folds inside, over the usual one."""
    n = drawn.n_candidates
    height = 0.7 + 0.2 * n
    with _drawing(height, (0.42, 0.5 / height, 0.55, 1 - 0.55 / height)) as (figure, axes):
        display = ChoiceDisplay.from_estimator(drawn.metric, ax=axes)
        # To be read on paper and in the dark.
        axes.get_yticklabels()[display.chosen].set(color=INK, weight="bold")
        axes.locator_params(axis="x", nbins=5, steps=[1, 2, 3, 5, 10])
        axes.set(xlabel="gain in log-likelihood, ± one s.e.", ylim=(n - 0.4, -0.6))
        axes.tick_params(axis="y", length=0)
    return figure


def spectrum(drawn: Drawn) -> style.Figure:
    """Eigenvalues of the reference point and of the mean where learning starts."""
    with _drawing(2.6, (0.15, 0.19, 0.82, 0.78)) as (figure, axes):
        ReferenceSpectrumDisplay.from_estimator(drawn.metric, ax=axes)
        axes.set_title("")
    return figure


def patterns(drawn: Drawn, channels: Sequence[str] | None) -> style.Figure:
    """The components that tell the classes apart most, as columns of channels."""
    shown = drawn.patterns.patterns[:MOST_COMPONENTS].T  # (d, k)
    shown = shown / np.abs(shown).max(axis=0)
    height = float(np.clip(0.9 + 0.16 * len(shown), 2.4, 5.2))
    with _drawing(height, (0.17, 0.5 / height, 0.8, 1 - 0.6 / height)) as (figure, axes):
        _heat(axes, shown, "RdBu_r", -1)
        axes.set(xlabel="component, the one that differs most first", ylabel="channel")
        axes.set_xticks(range(shown.shape[1]), [str(k + 1) for k in range(shown.shape[1])])
        _channel_ticks(axes.yaxis, len(shown), channels, height / 0.16)
    return figure


def weighting(drawn: Drawn, channels: Sequence[str] | None) -> style.Figure:
    """How much each entry of the logarithms counts; entries are pairs of channels, or of components."""
    weights = drawn.weights
    assert weights is not None  # only asked for where there is a weighting
    signed = bool((weights < 0).any())
    names = channels if drawn.entries == "channels" else None
    with _drawing(3.6, (0.17, 0.17, 0.8, 0.8)) as (figure, axes):
        _heat(axes, weights, "RdBu_r" if signed else "Blues", -1 if signed else 0)
        axes.set(xlabel=drawn.entries[:-1], ylabel=drawn.entries[:-1])
        most = 24 if len(weights) <= 24 else 10
        _channel_ticks(axes.yaxis, len(weights), names, most)
        # Numbers lie beside each other, names stand.
        _channel_ticks(axes.xaxis, len(weights), names, most if names else min(most, 12), rotation=90)
    return figure


def _heat(axes: style.Axes, table: np.ndarray, colors: str, low: float) -> None:
    axes.imshow(table, cmap=colors, vmin=low, vmax=1, aspect="auto", interpolation="nearest")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)


def _channel_ticks(
    axis: Axis, n: int, channels: Sequence[str] | None, most: float, rotation: float = 0
) -> None:
    """Name as many channels as there is room for, by number where they have no names."""
    ticks = range(0, n, -(-n // int(most)))
    names = [str(i + 1) if channels is None else _safe(str(channels[i]), 8) for i in ticks]
    axis.set_ticks(ticks, names, rotation=rotation if channels else 0)


def confusion(counts: np.ndarray, names: Sequence[str]) -> style.Figure:
    """Shares of the labels given to many classes; some of the classes are named."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    ticks = range(0, len(names), -(-len(names) // 16))
    labels = [_safe(names[i], 14) for i in ticks]
    longest = max(map(len, labels))
    room = 0.2 + 0.08 * longest  # inches
    with _drawing(4.0, (room / WIDTH, 0.02, 0.98 - room / WIDTH, 0.98 - room / 4.0)) as (figure, axes):
        _heat(axes, shares, "Blues", 0)
        axes.set_xticks(ticks, labels, rotation=90 if longest > 2 else 0)
        axes.set_yticks(ticks, labels)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
    return figure


def embedding(panel: Panel, train: np.ndarray, test: np.ndarray, names: Sequence[str]) -> style.Figure:
    """Two principal components of one fold: training matrices faint, held-out ones full.

    One component, as a weighting for two classes has, is drawn with a row for each class.
    """
    one = len(panel.share) == 1
    known, new = (
        np.column_stack([points, _rows(codes)]) if one else points
        for points, codes in ((panel.train, train[: len(panel.train)]), (panel.test, test))
    )
    listed = len(names) <= 8
    with _drawing(3.5, (0.17, 0.14, 0.8, 0.75 if listed else 0.84)) as (figure, axes):
        for c, (name, (color, mark)) in enumerate(zip(names, cycle(CLASS_LOOKS), strict=False)):
            faint, full = known[train[: len(known)] == c].T, new[test == c].T
            axes.plot(*faint, mark, color=color, ms=3.5, alpha=0.3, mew=0, zorder=1)  # behind all full ones
            axes.plot(*full, mark, color=color, ms=5.5, mec=PAPER, mew=0.5, label=_safe(name))
        axes.set_xlabel(f"first component, {100 * panel.share[0]:.0f} % of the variance")
        if one:
            axes.set_yticks(range(len(names)), [_safe(name) for name in names], rotation=90, va="center")
            axes.set_ylabel("class")
            axes.tick_params(axis="y", length=0)
        else:
            axes.set_ylabel(f"second component, {100 * panel.share[1]:.0f} %")
            axes.set_aspect("equal", adjustable="datalim")  # distances are what is learned
        if listed:
            _legend(figure, min(4, len(names)))
    return figure


def _rows(codes: np.ndarray) -> np.ndarray:
    """Heights at which points of a class are spread, so that they do not hide each other."""
    return codes + 0.5 * ((np.arange(len(codes)) * 0.6180339887) % 1 - 0.5)
