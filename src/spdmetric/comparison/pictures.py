"""The pictures of the page, each an SVG that is part of it: narrow, so that a phone can show them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spdmetric.comparison.describe import Description
from spdmetric.comparison.learned import RADII, Learned
from spdmetric.comparison.run import Panel
from spdmetric.comparison.verdict import Verdict, title
from spdmetric.evaluation.methods import METHODS
from spdmetric.linalg.symmetric import congruence, invsqrtm
from spdmetric.plots.axes import BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILLION
from spdmetric.plots.style import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    """A drawing that becomes an ``<svg>`` element, which names itself to those who cannot see it."""

    name: str  # prefix of its ids: several pictures share a page
    alt: str  # what it shows, in words
    box: str  # its viewBox
    body: str  # what stands after the opening tag, the closing tag included


def as_picture(figure: Figure, name: str, alt: str) -> Picture:
    """Turn a figure into a picture of the page."""
    file = io.BytesIO()
    with _lettering():
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue().decode()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{name}-", text)
    head, _, body = text.partition(">")
    return Picture(name, alt, head.partition('viewBox="')[2].partition('"')[0], body)


@contextmanager
def _drawing(height: float, box: tuple[float, float, float, float]) -> Iterator[tuple[Figure, Axes]]:
    """A figure of the page's width with the page's letters, and axes in a box given in shares of it."""
    with canvas(WIDTH, height) as figure, _lettering():
        yield figure, figure.add_axes(box)
        figure.draw_without_rendering()  # ticks are made when first drawn: here, with these letters


def _lettering() -> AbstractContextManager[None]:
    import matplotlib

    return matplotlib.rc_context(_TEXT)


def _legend(figure: Figure, columns: int) -> None:
    figure.legend(loc="upper center", ncols=columns, handletextpad=0.1, columnspacing=1.0)


def _safe(text: str) -> str:
    """A label of the user's: never mathematics, never too long."""
    text = text if len(text) <= 24 else text[:23] + "…"
    return text.replace("$", r"\$")


def _rank(rank: int | None) -> str:
    return "full rank" if rank is None else f"rank {rank}"


# ---------------------------------------------------------------------------
# Accuracy


def accuracy(verdict: Verdict) -> Picture:
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
        axes.set_ylim(-0.7, len(lines) - 0.3)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="#e5e7eb", lw=0.7)
        axes.set_axisbelow(True)
        axes.set_xlabel("accuracy, per cent")
        for color, mark, words in FAMILY_LOOKS.values():
            axes.plot([], [], ls="none", marker=mark, color=color, ms=5, label=words)
        _legend(figure, 3)
    best = verdict.best
    alt = (
        f"Accuracy of {len(lines)} methods with standard errors, from {lines[0].accuracy.mean:.1f} to "
        f"{best.accuracy.mean:.1f} per cent, the highest {title(best.method)}; the dashed line is the "
        f"largest class, {verdict.chance:.1f} per cent."
    )
    return as_picture(figure, "accuracy", alt)


# ---------------------------------------------------------------------------
# The data


def conditions(description: Description) -> Picture:
    """Histogram of the condition numbers, or of the ranks where some are singular."""
    with _drawing(2.3, (0.13, 0.21, 0.84, 0.74)) as (figure, axes):
        if description.definite:
            values = np.log10(description.condition)
            edges = np.linspace(values.min(), values.max() + 1e-9, 21)
            axes.set_xlabel("condition number, powers of ten")
            alt = (
                f"Histogram of the condition numbers of {description.n} matrices, from 10 to the "
                f"{values.min():.1f} to 10 to the {values.max():.1f}."
            )
        else:
            values, edges = description.ranks, np.arange(0.5, description.d + 1)
            axes.set_xlabel("numerical rank")
            alt = f"Histogram of the ranks of {description.n} matrices of size {description.d}."
        axes.hist(values, edges.tolist(), color=BLUE, rwidth=0.92)
        axes.set_ylabel("matrices")
    return as_picture(figure, "conditions", alt)


def outliers(description: Description, classes: np.ndarray) -> Picture:
    """Distance of every matrix from the mean, in the order of the file."""
    distance = description.distance
    with _drawing(2.3, (0.13, 0.21, 0.84, 0.66)) as (figure, axes):
        looks = zip(description.classes, CLASS_COLORS, CLASS_MARKS, strict=False)
        for c, ((name, _), color, mark) in enumerate(looks):
            at = np.flatnonzero(classes == c)
            axes.plot(at, distance[at], label=_safe(name), color=color, marker=mark, ms=3.2, ls="none")
        rest = np.flatnonzero(classes >= len(CLASS_COLORS))
        axes.plot(rest, distance[rest], ".", color=FAINT)
        axes.set_xlabel("matrix, in the order of the file")
        axes.set_ylabel("distance from mean")
        axes.set_ylim(bottom=0)
        if len(description.classes) <= 4:
            _legend(figure, 4)
    alt = (
        f"Distance of each of the {description.n} matrices from the mean, between {distance.min():.3g} and "
        f"{distance.max():.3g}; {len(description.far)} far from the others."
    )
    return as_picture(figure, "outliers", alt)


# ---------------------------------------------------------------------------
# The learned metric


def alignment(learned: Learned) -> Picture:
    """Alignment against the radius of the ball."""
    words = []
    with _drawing(2.6, (0.13, 0.19, 0.84, 0.69)) as (figure, axes):
        for path, color, mark in zip(learned["paths"], (VERMILLION, BLUE), "os", strict=False):
            name, values = _rank(path["rank"]), path["alignment"]
            axes.plot(RADII, values, color=color, marker=mark, ms=3.5, label=name)
            words.append(f"{name} from {values[0]:.3f} to {values[-1]:.3f}")
        axes.set_xlabel("radius of the ball around the mean")
        axes.set_ylabel("alignment")
        axes.set_ylim(bottom=0)
        figure.legend(loc="upper center", ncols=2)
    alt = f"Alignment of the training matrices against the radius, 0 to 16: {', '.join(words)}."
    return as_picture(figure, "alignment", alt)


def candidates(learned: Learned) -> Picture:
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
        axes.set_xlabel("radius")
        axes.set_ylabel("rank")
        axes.spines[:].set_visible(False)
    alt = (
        f"Cross-validated 1-NN accuracy of {len(ranks)} ranks and {len(radii)} radii, {low:.1f} to "
        f"{high:.1f} per cent; chosen: {_rank(chosen['rank'])}, radius {chosen['radius']:g}."
    )
    return as_picture(figure, "candidates", alt)


def spectra(learned: Learned) -> Picture:
    """Eigenvalues of the reference point, of the mean, and of one seen from the other."""
    G, mean = np.array(learned["reference"]), np.array(learned["mean"])
    relative = np.linalg.eigvalsh(congruence(invsqrtm(mean), G))[::-1]
    order = np.arange(1, len(G) + 1)
    with _drawing(2.8, (0.15, 0.18, 0.82, 0.62)) as (figure, axes):
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
    return as_picture(figure, "spectra", alt)


def eigenvectors(learned: Learned) -> Picture:
    """Eigenvectors of log G as columns; for singular matrices, the rows of the factor W."""
    if learned["reference"] is not None:
        matrix = np.linalg.eigh(np.array(learned["reference"]))[1][:, ::-1]
        across, what = "eigenvector of log G, largest eigenvalue first", "Eigenvectors of log G as columns"
    else:
        W = np.array(learned["factor"])
        matrix = (W / np.linalg.norm(W, axis=1, keepdims=True)).T
        across, what = "row of W, scaled to length 1", "Rows of the low-rank factor W as columns"
    matrix = matrix * np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])])
    with _drawing(3.6, (0.13, 0.14, 0.68, 0.83)) as (figure, axes):
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
    return as_picture(figure, "eigenvectors", alt)


def embedding(panel: Panel, train: np.ndarray, test: np.ndarray, names: Sequence[str], which: str) -> Picture:
    """Two principal components of one fold: training matrices faint, held-out ones full."""
    known, new = (
        np.array(points).reshape(-1, len(panel["share"])) for points in (panel["train"], panel["test"])
    )
    known, new = (np.pad(points, ((0, 0), (0, 2 - points.shape[1]))) for points in (known, new))
    share = [*panel["share"], 0.0]
    with _drawing(3.5, (0.17, 0.14, 0.8, 0.75)) as (figure, axes):
        for c, name in enumerate(names):
            look: Any = {
                "color": CLASS_COLORS[c % len(CLASS_COLORS)],
                "marker": CLASS_MARKS[c % len(CLASS_MARKS)],
                "ls": "none",
            }
            axes.plot(*known[train[: len(known)] == c].T, **look, ms=3.5, alpha=0.3, mew=0)
            axes.plot(*new[test == c].T, **look, ms=5.5, mec="white", mew=0.5, label=_safe(name))
        axes.set_xlabel(f"first component, {100 * share[0]:.0f} % of the variance")
        axes.set_ylabel(f"second component, {100 * share[1]:.0f} %")
        if len(names) <= 8:
            _legend(figure, min(4, len(names)))
    alt = (
        f"First two principal components of the matrices of one fold {which} learning: {len(test)} held-out "
        f"matrices of {len(names)} classes among {len(known)} training matrices."
    )
    return as_picture(figure, f"embedding-{which}", alt)
