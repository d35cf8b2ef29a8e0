"""The pictures of the page, each an SVG that is part of it: narrow, so that a phone can show them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from spdmetric.comparison.describe import Description
from spdmetric.comparison.html import escape
from spdmetric.comparison.learned import relative_spectrum
from spdmetric.comparison.methods import ENTRIES
from spdmetric.comparison.verdict import Verdict, title
from spdmetric.plots.style import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION, canvas

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 4.4  # inches; 9 point letters stay 9 pixels high on a phone
INK, FAINT = "#1f2933", "#6b7280"
FAMILY_COLORS = {"distance": BLUE, "learned": VERMILLION, "rival": "#5f6b7a"}
FAMILY_MARKS = {"distance": "o", "learned": "D", "rival": "s"}
CLASS_COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK, "#8c6d31")
CLASS_MARKS = ("o", "^", "s", "D", "v", "P", "X", "*")

_TEXT: Any = {
    "svg.fonttype": "none",  # text stays text: searched, copied, read aloud
    "svg.hashsalt": "spdmetric",  # the same picture is the same file
    "font.size": 9,
    "axes.labelsize": 9,
    "axes.titlesize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
}


def as_svg(figure: Figure, name: str, alt: str) -> str:
    """A figure as an ``<svg>`` element that names itself to those who cannot see it.

    Parameters
    ----------
    figure : Figure
        What to write.
    name : str
        Prefix of its ids: several pictures share a page.
    alt : str
        What it shows, in words.

    Returns
    -------
    svg : str
    """
    file = io.BytesIO()
    with _lettering():
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    head, body = re.match(r"<svg[^>]*>", text), text[text.index(">") + 1 :]
    assert head is not None
    box = re.search(r'viewBox="([^"]*)"', head[0])
    assert box is not None
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'viewBox="{box[1]}" aria-labelledby="{name}-title">'
        f'<title id="{name}-title">{escape(alt)}</title>{body}'
    )


@contextmanager
def _drawing(height: float) -> Iterator[Figure]:
    """A figure of the page's width, in the style of the figures and with the page's letters."""
    with canvas(WIDTH, height) as figure, _lettering():
        yield figure
        figure.draw_without_rendering()  # ticks are made when first drawn: here, with these letters


def _lettering() -> Any:
    import matplotlib

    return matplotlib.rc_context(_TEXT)


def _safe(text: str) -> str:
    """A label of the user's: never mathematics, never too long."""
    text = text if len(text) <= 24 else text[:23] + "…"
    return text.replace("$", r"\$")


# ---------------------------------------------------------------------------
# Accuracy


def accuracy(verdict: Verdict) -> str:
    """Dots with standard errors, the best on top."""
    lines = verdict.lines[::-1]
    with _drawing(0.9 + 0.235 * len(lines)) as figure:
        axes = figure.add_axes((0.45, 0.55 / figure.get_figheight(), 0.52, 1 - 0.95 / figure.get_figheight()))
        for i, line in enumerate(lines):
            family, number = ENTRIES[line.method].family, line.accuracy
            axes.errorbar(
                number.mean,
                i,
                xerr=None if np.isnan(number.se) else number.se,
                fmt=FAMILY_MARKS[family],
                color=FAMILY_COLORS[family],
                ms=5,
                lw=1.4,
            )
        axes.axvline(verdict.chance, color=FAINT, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(lines)), [title(line.method) for line in lines])
        axes.set_ylim(-0.7, len(lines) - 0.3)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e5e7eb", lw=0.7)
        axes.set_axisbelow(True)
        axes.set_xlabel("accuracy, per cent")
        _families(figure)
    best = verdict.best
    return as_svg(
        figure,
        "accuracy",
        f"Accuracy of {len(lines)} methods with standard errors, from {lines[0].accuracy.mean:.1f} to "
        f"{best.accuracy.mean:.1f} per cent, the highest {title(best.method)}; the dashed line is the "
        f"largest class, {verdict.chance:.1f} per cent.",
    )


def _families(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], ls="none", marker=FAMILY_MARKS[f], color=FAMILY_COLORS[f], ms=5) for f in FAMILY_MARKS
    ]
    names = ["fixed distance", "learned metric", "rival"]
    figure.legend(marks, names, loc="upper center", ncols=3, handletextpad=0.1, columnspacing=1.0)


# ---------------------------------------------------------------------------
# The data


def conditions(description: Description) -> str:
    """Histogram of the condition numbers, or of the ranks where some are singular."""
    with _drawing(2.3) as figure:
        axes = figure.add_axes((0.13, 0.21, 0.84, 0.74))
        if description.definite:
            values = np.log10(description.condition)
            edges = np.linspace(values.min(), values.max() + 1e-9, 21).tolist()
            axes.hist(values, edges, color=BLUE, rwidth=0.92)
            axes.set_xlabel("condition number, powers of ten")
            alt = (
                f"Histogram of the condition numbers of {description.n} matrices, from 10 to the "
                f"{values.min():.1f} to 10 to the {values.max():.1f}."
            )
        else:
            axes.hist(description.ranks, np.arange(0.5, description.d + 1).tolist(), color=BLUE, rwidth=0.92)
            axes.set_xlabel("numerical rank")
            alt = f"Histogram of the ranks of {description.n} matrices of size {description.d}."
        axes.set_ylabel("matrices")
    return as_svg(figure, "conditions", alt)


def outliers(description: Description, classes: np.ndarray) -> str:
    """Distance of every matrix from the mean, in the order of the file."""
    with _drawing(2.3) as figure:
        axes = figure.add_axes((0.13, 0.21, 0.84, 0.66))
        for c, name in enumerate(description.classes[: len(CLASS_COLORS)]):
            at = np.flatnonzero(classes == c)
            look: Any = {"color": CLASS_COLORS[c], "marker": CLASS_MARKS[c], "ms": 3.2, "ls": "none"}
            axes.plot(at, description.distance[at], label=_safe(name), **look)
        rest = np.flatnonzero(classes >= len(CLASS_COLORS))
        axes.plot(rest, description.distance[rest], ".", color=FAINT)
        axes.set_xlabel("matrix, in the order of the file")
        axes.set_ylabel("distance from mean")
        axes.set_ylim(bottom=0)
        if len(description.classes) <= 4:
            figure.legend(loc="upper center", ncols=4, handletextpad=0.1, columnspacing=1.0)
    alt = (
        f"Distance of each of the {description.n} matrices from the mean, between "
        f"{description.distance.min():.3g} and {description.distance.max():.3g}; {len(description.far)} far "
        "from the others."
    )
    return as_svg(figure, "outliers", alt)


# ---------------------------------------------------------------------------
# The learned metric


def alignment(learned: dict[str, Any]) -> str:
    """Alignment against the radius of the ball."""
    with _drawing(2.6) as figure:
        axes = figure.add_axes((0.13, 0.19, 0.84, 0.69))
        words = []
        for path, color, mark in zip(learned["paths"], (VERMILLION, BLUE), ("o", "s"), strict=False):
            name = "full rank" if path["rank"] is None else f"rank {path['rank']}"
            axes.plot(path["radius"], path["alignment"], color=color, marker=mark, ms=3.5, label=name)
            words.append(f"{name} from {path['alignment'][0]:.3f} to {path['alignment'][-1]:.3f}")
        axes.set_xlabel("radius of the ball around the mean")
        axes.set_ylabel("alignment")
        axes.set_ylim(bottom=0)
        figure.legend(loc="upper center", ncols=2)
    alt = f"Alignment of the training matrices against the radius, 0 to 16: {', '.join(words)}."
    return as_svg(figure, "alignment", alt)


def candidates(learned: dict[str, Any]) -> str:
    """Cross-validated accuracy of every radius and rank that was tried."""
    ranks = list(dict.fromkeys(c["rank"] for c in learned["candidates"]))
    ranks.sort(key=lambda m: 10**9 if m is None else m)
    radii = sorted({c["radius"] for c in learned["candidates"]})
    table = np.full((len(ranks), len(radii)), np.nan)
    for c in learned["candidates"]:
        table[ranks.index(c["rank"]), radii.index(c["radius"])] = 100 * c["mean"]
    chosen = learned["chosen"]
    names = ["full" if m is None else str(m) for m in ranks]
    with _drawing(1.0 + 0.32 * len(ranks)) as figure:
        low = 0.52 / figure.get_figheight()
        axes = figure.add_axes((0.13, low, 0.84, 0.95 - low))
        span = np.nanmax(table) - np.nanmin(table) or 1.0
        axes.imshow(table, cmap="Blues", aspect="auto", vmax=np.nanmax(table) + 0.6 * span)
        for i, j in np.argwhere(np.isfinite(table)):
            is_chosen = ranks[i] == chosen["rank"] and radii[j] == chosen["radius"]
            weight = "bold" if is_chosen else "normal"
            axes.text(j, i, f"{table[i, j]:.1f}", ha="center", va="center", fontsize=8.5, weight=weight)
            if is_chosen:
                axes.add_patch(_frame(j, i))
        axes.set_xticks(range(len(radii)), [f"{r:g}" for r in radii])
        axes.set_yticks(range(len(ranks)), names)
        axes.tick_params(length=0)
        axes.set_xlabel("radius")
        axes.set_ylabel("rank")
        axes.spines[:].set_visible(False)
    name = "full rank" if chosen["rank"] is None else f"rank {chosen['rank']}"
    alt = (
        f"Cross-validated one-nearest-neighbor accuracy, per cent, of {len(ranks)} ranks and "
        f"{len(radii)} radii, between {np.nanmin(table):.1f} and {np.nanmax(table):.1f}; chosen: {name}, "
        f"radius {chosen['radius']:g}."
    )
    return as_svg(figure, "candidates", alt)


def _frame(x: float, y: float) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((x - 0.47, y - 0.45), 0.94, 0.9, fill=False, ec=VERMILLION, lw=1.6)


def spectra(learned: dict[str, Any]) -> str | None:
    """Eigenvalues of the reference point, of the mean, and of one seen from the other."""
    if "reference" not in learned:
        return None
    G, mean = np.array(learned["reference"]), np.array(learned["mean"])
    relative = relative_spectrum(G, mean)
    order = np.arange(1, len(G) + 1)
    with _drawing(2.8) as figure:
        axes = figure.add_axes((0.15, 0.18, 0.82, 0.62))
        axes.plot(order, np.linalg.eigvalsh(G)[::-1], "D-", color=VERMILLION, ms=4, label="learned G")
        axes.plot(order, np.linalg.eigvalsh(mean)[::-1], "o-", color=BLUE, ms=4, label="mean")
        axes.plot(order, relative, "s--", color=INK, ms=3.5, lw=1, label="G seen from the mean")
        axes.axhline(1, color=FAINT, lw=0.6)
        axes.set_yscale("log")
        axes.set_xlabel("eigenvalue, largest first")
        axes.set_ylabel("value")
        figure.legend(loc="upper center", ncols=3, handletextpad=0.4, columnspacing=0.9, handlelength=1.4)
    alt = (
        f"Eigenvalues of the learned reference point G, of the mean, and of G seen from the mean; the last "
        f"run from {relative[0]:.3g} to {relative[-1]:.3g}, where 1 is no change."
    )
    return as_svg(figure, "spectra", alt)


def eigenvectors(learned: dict[str, Any]) -> str:
    """Eigenvectors of log G as columns; for singular matrices, the rows of the factor W."""
    if "reference" in learned:
        matrix = np.linalg.eigh(np.array(learned["reference"]))[1][:, ::-1]
        across, what = "eigenvector of log G, largest eigenvalue first", "Eigenvectors of log G as columns"
    else:
        W = np.array(learned["factor"])
        matrix = (W / np.linalg.norm(W, axis=1, keepdims=True)).T
        across, what = "row of W, scaled to length 1", "Rows of the low-rank factor W as columns"
    matrix = matrix * np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])])
    with _drawing(3.6) as figure:
        axes = figure.add_axes((0.13, 0.14, 0.68, 0.83))
        picture = axes.imshow(matrix, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        axes.set_xlabel(across)
        axes.set_ylabel("channel")
        for axis, n in ((axes.xaxis, matrix.shape[1]), (axes.yaxis, matrix.shape[0])):
            ticks = np.unique(np.linspace(0, n - 1, min(n, 8)).round().astype(int))
            axis.set_ticks(ticks, [str(i + 1) for i in ticks])
        bar = figure.colorbar(picture, cax=figure.add_axes((0.84, 0.14, 0.03, 0.83)))
        bar.outline.set_visible(False)
        axes.spines[:].set_visible(False)
    channel = int(np.abs(matrix[:, 0]).argmax()) + 1
    alt = f"{what}, {matrix.shape[0]} channels; the first has its largest entry at channel {channel}."
    return as_svg(figure, "eigenvectors", alt)


def embedding(panel: dict[str, Any], train: np.ndarray, test: np.ndarray, names: Any, which: str) -> str:
    """Two principal components of one fold: training matrices faint, held-out ones full."""
    with _drawing(3.5) as figure:
        axes = figure.add_axes((0.17, 0.14, 0.8, 0.75))
        points = {kind: np.array(panel[kind]).reshape(-1, len(panel["share"])) for kind in ("train", "test")}
        points = {kind: np.pad(p, ((0, 0), (0, 2 - p.shape[1]))) for kind, p in points.items()}
        train = train[: len(points["train"])]
        for c, name in enumerate(names):
            color, mark = CLASS_COLORS[c % len(CLASS_COLORS)], CLASS_MARKS[c % len(CLASS_MARKS)]
            look: Any = {"color": color, "marker": mark, "ls": "none"}
            axes.plot(*points["train"][train == c].T, **look, ms=3.5, alpha=0.3, mew=0)
            axes.plot(*points["test"][test == c].T, **look, ms=5.5, mec="white", mew=0.5, label=_safe(name))
        share = [*panel["share"], 0.0]
        axes.set_xlabel(f"first component, {100 * share[0]:.0f} % of the variance")
        axes.set_ylabel(f"second component, {100 * share[1]:.0f} %")
        if len(names) <= 8:
            figure.legend(loc="upper center", ncols=min(4, len(names)), handletextpad=0.1, columnspacing=1.0)
    alt = (
        f"First two principal components of the matrices of one fold {which} learning: {len(test)} held-out "
        f"matrices of {len(names)} classes among {len(points['train'])} training matrices."
    )
    return as_svg(figure, f"embedding-{which}", alt)
