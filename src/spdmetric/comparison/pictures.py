"""The pictures of the page, each an SVG that is part of it: narrow, so that a phone can show them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import unescape
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from spdmetric.comparison.describe import Description
from spdmetric.comparison.learned import RADII, Learned
from spdmetric.comparison.run import Panel
from spdmetric.comparison.verdict import Verdict, title
from spdmetric.evaluation.methods import METHODS
from spdmetric.plots import style
from spdmetric.plots.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION

Box = tuple[float, float, float, float]

WIDTH = 4.4  # inches; 9 point letters stay 9 pixels high on a phone
INK, FAINT = "#1f2933", "#6b7280"
FAMILY_LOOKS = {  # color, mark, and words of the legend
    "distance": (BLUE, "o", "fixed distance"),
    "learned": (VERMILLION, "D", "learned metric"),
    "rival": ("#5f6b7a", "s", "rival"),
}
CLASS_COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK, "#8c6d31")
CLASS_MARKS = ("o", "^", "s", "D", "v", "P", "X", "*")

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
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)  # the same in all: it is in page.css
    head, _, body = text.partition(">")
    styles: dict[str, str] = {}

    def by_class(tag: re.Match[str]) -> str:
        return re.sub(r'\bstyle="([^"]*)"', lambda m: f'class="{class_of(m[1])}"', tag[0])

    def class_of(style: str) -> str:
        return styles.setdefault(unescape(style), f"{name}-{len(styles)}")

    body = re.sub(r"<[^<>]*>", by_class, body)  # in tags alone: a label may hold anything
    rules = "".join(f".{key}{{{style}}}\n" for style, key in styles.items())
    return Picture(name, head.partition('viewBox="')[2].partition('"')[0], body, rules)


@contextmanager
def _drawing(height: float, box: Box) -> Iterator[tuple[style.Figure, style.Axes]]:
    """A figure of the page's width with the page's letters, and axes in a box given in shares of it."""
    with style.canvas(WIDTH, height, **_TEXT) as figure:
        yield figure, figure.add_axes(box)


def _legend(figure: style.Figure, columns: int, **look: Any) -> None:
    look = {"handletextpad": 0.1, "columnspacing": 1.0, **look}
    figure.legend(loc="upper center", ncols=columns, **look)


def _safe(text: str) -> str:
    """A label of the user's: never mathematics, never too long."""
    text = text if len(text) <= 24 else text[:23] + "…"
    return text.replace("$", r"\$")


def accuracy(verdict: Verdict) -> style.Figure:
    """Dots with standard errors, the best on top."""
    lines = verdict.lines[::-1]
    height = 0.9 + 0.235 * len(lines)
    with _drawing(height, (0.45, 0.55 / height, 0.52, 1 - 0.95 / height)) as (figure, axes):
        for i, line in enumerate(lines):
            color, mark, _ = FAMILY_LOOKS[METHODS[line.method].family]
            error = line.accuracy.se if line.accuracy.known else None
            axes.errorbar(line.accuracy.mean, i, xerr=error, fmt=mark, color=color, ms=5, lw=1.4)
        axes.axvline(verdict.chance, color=FAINT, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(lines)), [title(line.method) for line in lines])
        axes.set(xlabel="accuracy, per cent", ylim=(-0.7, len(lines) - 0.3), axisbelow=True)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e5e7eb", lw=0.7)
        for color, mark, words in FAMILY_LOOKS.values():
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
        across = "condition number, powers of ten" if description.definite else "numerical rank"
        axes.set(xlabel=across, ylabel="matrices")
    return figure


def outliers(description: Description, classes: np.ndarray) -> style.Figure:
    """Distance of every matrix from the mean, in the order of the file."""
    distance = description.distance
    with _drawing(2.3, (0.13, 0.21, 0.84, 0.66)) as (figure, axes):
        looks = zip(description.classes, CLASS_COLORS, CLASS_MARKS, strict=False)
        for c, ((name, _), color, mark) in enumerate(looks):
            at = np.flatnonzero(classes == c)
            axes.plot(at, distance[at], label=_safe(name), color=color, marker=mark, ms=3.2, ls="none")
        rest = np.flatnonzero(classes >= len(CLASS_COLORS))
        axes.plot(rest, distance[rest], ".", color=FAINT)
        axes.set(xlabel="matrix, in the order of the file", ylabel="distance from mean")
        axes.set_ylim(bottom=0)
        if len(description.classes) <= 4:
            _legend(figure, 4)
    return figure


def alignment(learned: Learned) -> style.Figure:
    """Alignment against the radius of the ball."""
    with _drawing(2.6, (0.13, 0.19, 0.84, 0.69)) as (figure, axes):
        for path, color, mark in zip(learned["paths"], (VERMILLION, BLUE), "os", strict=False):
            name = "full rank" if path["rank"] is None else f"rank {path['rank']}"
            axes.plot(RADII, path["alignment"], color=color, marker=mark, ms=3.5, label=name)
        axes.set(xlabel="radius of the ball around the mean", ylabel="alignment")
        axes.set_ylim(bottom=0)
        figure.legend(loc="upper center", ncols=2)
    return figure


def candidates(learned: Learned) -> style.Figure:
    """Cross-validated accuracy of every radius and rank that was tried."""
    from matplotlib.patches import Rectangle

    ranks = sorted({c["rank"] for c in learned["candidates"]}, key=lambda m: 10**9 if m is None else m)
    radii = sorted({c["radius"] for c in learned["candidates"]})
    table = np.full((len(ranks), len(radii)), np.nan)
    for c in learned["candidates"]:
        table[ranks.index(c["rank"]), radii.index(c["radius"])] = 100 * c["mean"]
    low, high, chosen = np.nanmin(table), np.nanmax(table), learned["chosen"]
    where = ranks.index(chosen["rank"]), radii.index(chosen["radius"])
    height = 1.0 + 0.32 * len(ranks)
    with _drawing(height, (0.13, 0.52 / height, 0.84, 0.95 - 0.52 / height)) as (figure, axes):
        axes.imshow(table, cmap="Blues", aspect="auto", vmax=high + 0.6 * (high - low or 1.0))
        for i, j in np.argwhere(np.isfinite(table)):
            weight = "bold" if (i, j) == where else "normal"
            axes.text(j, i, f"{table[i, j]:.1f}", ha="center", va="center", fontsize=8.5, weight=weight)
        corner = where[1] - 0.47, where[0] - 0.45
        axes.add_patch(Rectangle(corner, 0.94, 0.9, fill=False, ec=VERMILLION, lw=1.6))
        axes.set_xticks(range(len(radii)), [f"{r:g}" for r in radii])
        axes.set_yticks(range(len(ranks)), ["full" if m is None else str(m) for m in ranks])
        axes.tick_params(length=0)
        axes.set(xlabel="radius", ylabel="rank")
        axes.spines[:].set_visible(False)
    return figure


def spectra(curves: Mapping[str, np.ndarray]) -> style.Figure:
    """Eigenvalues of the reference point, of the mean, and of one seen from the other."""
    looks = (("D-", VERMILLION, 4, 1.3), ("o-", BLUE, 4, 1.3), ("s--", INK, 3.5, 1))
    with _drawing(2.8, (0.15, 0.18, 0.82, 0.62)) as (figure, axes):
        for (name, values), (form, color, size, width) in zip(curves.items(), looks, strict=True):
            axes.plot(np.arange(1, len(values) + 1), values, form, color=color, ms=size, lw=width, label=name)
        axes.axhline(1, color=FAINT, lw=0.6)
        axes.set(yscale="log", xlabel="eigenvalue, largest first", ylabel="value")
        _legend(figure, 3, handletextpad=0.4, columnspacing=0.9, handlelength=1.4)
    return figure


def directions(matrix: np.ndarray, across: str) -> style.Figure:
    """Directions among the channels as columns."""
    with _drawing(3.6, (0.13, 0.14, 0.68, 0.83)) as (figure, axes):
        picture = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        axes.set(xlabel=across, ylabel="channel")
        for axis, n in ((axes.xaxis, matrix.shape[1]), (axes.yaxis, matrix.shape[0])):
            ticks = np.unique(np.linspace(0, n - 1, min(n, 8)).round().astype(int))
            axis.set_ticks(ticks, [str(i + 1) for i in ticks])
        bar = figure.colorbar(picture, cax=figure.add_axes((0.84, 0.14, 0.03, 0.83)))
        bar.outline.set_visible(False)
        axes.spines[:].set_visible(False)
    return figure


def confusion(counts: np.ndarray, names: Sequence[str]) -> style.Figure:
    """Shares of the labels given to many classes; some of the classes are named."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    with _drawing(4.0, (0.24, 0.04, 0.74, 0.8)) as (figure, axes):
        axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        ticks = np.unique(np.linspace(0, len(names) - 1, 12).round().astype(int))
        labels = [_safe(names[i])[:14] for i in ticks]
        axes.set_xticks(ticks, labels, rotation=90)
        axes.set_yticks(ticks, labels)
        axes.tick_params(length=2, top=True, labeltop=True, bottom=False, labelbottom=False)
        axes.spines[:].set_visible(False)
    return figure


def embedding(panel: Panel, train: np.ndarray, test: np.ndarray, names: Sequence[str]) -> style.Figure:
    """Two principal components of one fold: training matrices faint, held-out ones full."""
    k = len(panel["share"])  # one or two
    known, new = (
        np.pad(np.array(points).reshape(-1, k), ((0, 0), (0, 2 - k)))
        for points in (panel["train"], panel["test"])
    )
    share = [*panel["share"], 0.0]
    with _drawing(3.5, (0.17, 0.14, 0.8, 0.75)) as (figure, axes):
        looks = zip(cycle(CLASS_COLORS), cycle(CLASS_MARKS), strict=True)
        for c, (name, (color, mark)) in enumerate(zip(names, looks, strict=False)):
            look: Any = {"color": color, "marker": mark, "ls": "none"}
            axes.plot(*known[train[: len(known)] == c].T, **look, ms=3.5, alpha=0.3, mew=0)
            axes.plot(*new[test == c].T, **look, ms=5.5, mec="white", mew=0.5, label=_safe(name))
        axes.set_xlabel(f"first component, {100 * share[0]:.0f} % of the variance")
        axes.set_ylabel(f"second component, {100 * share[1]:.0f} %")
        if len(names) <= 8:
            _legend(figure, min(4, len(names)))
    return figure
