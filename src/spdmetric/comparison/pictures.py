"""The pictures of the page, each an SVG that is part of it: narrow, so that a phone can show them.

The learned metric that is drawn was fitted to all matrices: for use and pictures, not for a score.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import unescape
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison.describe import Description
from spdmetric.comparison.folds import Fold, Vectors, steps_of
from spdmetric.comparison.methods import METHODS, set_where_known
from spdmetric.comparison.plan import Plan
from spdmetric.comparison.run import make_fold, make_method
from spdmetric.comparison.verdict import Verdict
from spdmetric.estimators import CommonRange, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.linalg.symmetric import unvech
from spdmetric.plots import ChoiceDisplay, ReferenceSpectrumDisplay, style
from spdmetric.plots.patterns import Patterns, patterns_of
from spdmetric.plots.style import BLUE, CLASS_LOOKS, GRAY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axis import Axis

Box = tuple[float, float, float, float]
Metric = LogEuclideanMetric | LogEuclideanMetricCV

MOST_DRAWN = 500  # training matrices in the picture of the embedding

WIDTH = 4.4  # inches; 9 point letters stay 9 pixels high on a phone
INK, FAINT, LINE, PAPER = "#1f2933", "#52606d", "#d9dee4", "#ffffff"
FAMILY_LOOKS = {  # color, mark, and words of the legend
    "distance": (BLUE, "o", "fixed distance"),
    "learned": (VERMILLION, "D", "learned metric"),
    "baseline": (GRAY, "s", "baseline"),
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


class Panel(NamedTuple):
    """Two principal components, or one, of the vectors of a fold."""

    train: np.ndarray  # (n, 1 or 2)
    test: np.ndarray
    share: list[float]  # of the variance


class LearnedMetric(NamedTuple):
    """A learned metric as it is drawn."""

    method: str
    metric: Metric
    patterns: Patterns  # among the channels
    before: Panel  # of the first fold
    after: Panel

    @property
    def n_candidates(self) -> int:
        """Metrics that it was chosen from."""
        options = getattr(self.metric, "cv_results_", {"params": []})["params"]
        return len({(one["radius"], one["rank"], one["weighting"]) for one in options})

    @property
    def differs(self) -> bool:
        """Whether it differs from the metric where learning starts."""
        metric = self.metric
        return metric.embedding_.low_rank or metric.radius_ > 0 or metric.weighting_ is not None

    @property
    def differs_in_fold(self) -> bool:
        """The same in the fold of the panels."""
        before, after = self.before.test, self.after.test
        return before.shape != after.shape or not np.allclose(before, after)

    @property
    def start(self) -> str:
        """Where learning starts."""
        return "the identity" if self.metric.init == "identity" else "the mean"

    @property
    def entries(self) -> str:
        """What the rows of a logarithm stand for."""
        if self.metric.embedding_.low_rank:
            return "components"
        return "channels" if self.patterns.patterns.shape[1] == len(self.metric.components_) else "dimensions"

    @property
    def weights(self) -> np.ndarray | None:
        """How much each entry of a logarithm counts, (m, m); of one direction, with its sign."""
        if self.metric.weighting_ is None:
            return None
        parts = unvech(self.metric.weighting_.T)  # (q, m, m)
        parts = parts[0] if len(parts) == 1 else np.sqrt(np.sum(parts**2, axis=0))
        return parts / np.abs(parts).max()


def describe_metric(plan: Plan, method: str, fitted: BaseEstimator) -> LearnedMetric:
    """What is drawn of a method that was fitted to all matrices; the embedding is that of the first fold."""
    X, basis = plan.X[plan.trained], None
    for step in steps_of(fitted):
        if isinstance(step, CommonRange):
            X, basis = step.transform(X), step.basis_
    metric = next(m for s in steps_of(fitted) if isinstance(m := getattr(s, "metric_", s), Metric))
    patterns = patterns_of(metric, X, plan.classes[plan.codes[plan.trained]])
    if basis is not None:
        patterns = patterns._replace(patterns=patterns.patterns @ basis.T)
    fold = make_fold(plan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = _embed_at_start(plan, fold, metric), _embed(plan, fold, method)
    return LearnedMetric(method, metric, patterns, _project(before), _project(after))


def _embed_at_start(plan: Plan, fold: Fold, metric: Metric) -> Vectors:
    """Tangent vectors where learning starts; of singular matrices, which have none, the entries."""
    if not plan.sizes.inside.definite:
        return Vectors(fold.X.reshape(len(fold.X), -1), fold.X_test.reshape(len(fold.X_test), -1))
    start = make_method(plan, "logeuclid-mean")
    set_where_known(start, init=metric.init)
    return fold.vectors(steps_of(start)[:-1])


def _embed(plan: Plan, fold: Fold, method: str) -> Vectors:
    """Vectors of the metric, its weighting included, as learned on the training part of the fold."""
    *steps, _ = steps_of(make_method(plan, method))
    if not any(isinstance(step, Metric) for step in steps):
        classifier, test = fold.fitted(make_method(plan, method))
        return Vectors(*map(classifier.metric_.transform, (fold.vectors(steps).train, test)))
    return fold.vectors(steps)


def _project(vectors: Vectors) -> Panel:
    center = vectors.train.mean(axis=0)
    _, spread, axes = np.linalg.svd(vectors.train - center, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True) + 1e-300)  # a sign is not a result
    share = spread[:2] ** 2 / max(float(np.sum(spread**2)), 1e-300)
    train, test = ((v - center) @ axes.T for v in vectors)
    return Panel(train[:MOST_DRAWN], test, share.tolist())


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
    rules = "".join(f".{key}{{{_name_colors(style)}}}\n" for style, key in styles.items())
    return Picture(name, head.partition('viewBox="')[2].partition('"')[0], body, rules)


def _name_colors(rule: str) -> str:
    """A rule whose colors, and what is faint, are variables of the page; alone, the picture keeps its own."""
    for color, name in THEMED.items():
        rule = re.sub(rf"{color}\b", f"var(--{name}, {color.lower()})", rule, flags=re.IGNORECASE)
    return rule.replace("opacity: 0.3", "opacity: var(--faint, 0.3)")


@contextmanager
def _begin(
    height: float, box: Box, figure: style.Figure | None = None
) -> Iterator[tuple[style.Figure, style.Axes]]:
    """A figure of the page's width with the page's letters, and axes in a box given in shares of it."""
    with style.canvas(WIDTH, height, figure, **_TEXT) as figure:
        yield figure, figure.add_axes(box)


def _add_legend(figure: style.Figure, columns: int) -> None:
    figure.legend(loc="upper center", ncols=columns, handletextpad=0.1, columnspacing=1.0)


def _shorten(text: str, most: int = 24) -> str:
    """A label of the user's: never mathematics, never too long; the ends tell names apart."""
    text = text if len(text) <= most else f"{text[: (most - 1) // 2]}…{text[-(most // 2) :]}"
    return text.replace("$", r"\$")


def draw_ranking(verdict: Verdict, figure: style.Figure | None = None) -> style.Figure:
    """The score that decides with standard errors, the best on top; hollow where recentered."""
    methods = list(dict.fromkeys(line.entry.method for line in verdict.ranked))[::-1]
    height = 0.9 + 0.235 * len(methods)
    with _begin(height, (0.45, 0.55 / height, 0.52, 1 - 0.95 / height), figure) as (figure, axes):
        for line in verdict.ranked:
            method, recentered = line.entry
            color, mark, _ = FAMILY_LOOKS[METHODS[method].family]
            score, aside = verdict.score(line), 0.2 * bool(verdict.recentering)
            at = methods.index(method) + (aside if recentered else -aside)
            error, inside = score.se if score.known else None, PAPER if recentered else color
            axes.errorbar(score.mean, at, xerr=error, fmt=mark, color=color, ms=5, lw=1.4, mfc=inside)
        axes.axvline(verdict.chance, color=FAINT, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(methods)), [METHODS[method].title for method in methods])
        words = f"{verdict.criterion.word}, {verdict.criterion.axis}"
        axes.set(xlabel=words, ylim=(-0.7, len(methods) - 0.3), axisbelow=True)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=LINE, lw=0.7)
        for family in sorted({METHODS[method].family for method in methods}):
            color, mark, words = FAMILY_LOOKS[family]
            axes.plot([], [], ls="none", marker=mark, color=color, ms=5, label=words)
        _add_legend(figure, 3)
    return figure


def draw_conditions(description: Description) -> style.Figure:
    """Histogram of the condition numbers, or of the ranks where some are singular."""
    values, edges = description.ranks, np.arange(0.5, description.d + 1)
    if description.definite:
        values = np.log10(description.condition)
        edges = np.linspace(values.min(), values.max() + 1e-9, 21)
    with _begin(2.3, (0.13, 0.21, 0.84, 0.74)) as (figure, axes):
        axes.hist(values, edges.tolist(), color=BLUE, rwidth=0.92)
        across = "log10 of the condition number" if description.definite else "numerical rank"
        axes.set(xlabel=across, ylabel="matrices")
        axes.locator_params(axis="y", integer=True)
    return figure


def draw_outliers(description: Description, classes: np.ndarray) -> style.Figure:
    """Distance of every matrix from the mean, in the order of the file."""
    distance, known = description.distance, description.classes
    known = known if len(known) <= 4 else ()  # there is no room to name more
    with _begin(2.3, (0.13, 0.21, 0.84, 0.66 if known else 0.74)) as (figure, axes):
        for c, ((name, _), (color, mark)) in enumerate(zip(known, CLASS_LOOKS, strict=False)):
            at = np.flatnonzero(classes == c)
            axes.plot(at, distance[at], label=_shorten(name), color=color, marker=mark, ms=3.2, ls="none")
        if not known:
            axes.plot(distance, color=BLUE, marker="o", ms=3.2, ls="none")
        axes.set(xlabel="matrix, in the order of the file", ylabel="distance from mean")
        axes.set_ylim(bottom=0)
        axes.ticklabel_format(axis="y", scilimits=(-2, 4))  # long numbers would push the words out
        if known:
            _add_legend(figure, 4)
    return figure


def draw_candidates(drawn: LearnedMetric) -> style.Figure:
    """What the candidates gained in the folds inside, over the usual one."""
    n = drawn.n_candidates
    height = 0.7 + 0.2 * n
    with _begin(height, (0.42, 0.5 / height, 0.55, 1 - 0.55 / height)) as (figure, axes):
        display = ChoiceDisplay.from_estimator(drawn.metric, ax=axes)
        # To be read on paper and in the dark.
        axes.get_yticklabels()[display.chosen].set(color=INK, weight="bold")
        axes.locator_params(axis="x", nbins=5, steps=[1, 2, 3, 5, 10])
        axes.set(xlabel="gain in log-likelihood, ± one s.e.", ylim=(n - 0.4, -0.6))
        axes.tick_params(axis="y", length=0)
    return figure


def draw_spectrum(drawn: LearnedMetric) -> style.Figure:
    """Eigenvalues of the reference point and of the mean where learning starts."""
    with _begin(2.6, (0.15, 0.19, 0.82, 0.78)) as (figure, axes):
        ReferenceSpectrumDisplay.from_estimator(drawn.metric, ax=axes)
        axes.set_title("")
    return figure


def draw_patterns(drawn: LearnedMetric, channels: Sequence[str] | None) -> style.Figure:
    """The components that tell the classes apart most, as columns of channels."""
    shown = drawn.patterns.patterns[:MOST_COMPONENTS].T  # (d, k)
    shown = shown / np.abs(shown).max(axis=0)
    height = float(np.clip(0.9 + 0.16 * len(shown), 2.4, 5.2))
    with _begin(height, (0.17, 0.5 / height, 0.8, 1 - 0.6 / height)) as (figure, axes):
        _draw_heat(axes, shown, "RdBu_r", -1)
        axes.set(xlabel="component, the one that differs most first", ylabel="channel")
        axes.set_xticks(range(shown.shape[1]), [str(k + 1) for k in range(shown.shape[1])])
        _name_channels(axes.yaxis, len(shown), channels, height / 0.16)
    return figure


def draw_weighting(drawn: LearnedMetric, channels: Sequence[str] | None) -> style.Figure:
    """How much each entry of the logarithms counts; entries are pairs of channels, or of components."""
    weights = drawn.weights
    assert weights is not None  # only asked for where there is a weighting
    signed = bool((weights < 0).any())
    names = channels if drawn.entries == "channels" else None
    with _begin(3.6, (0.17, 0.17, 0.8, 0.8)) as (figure, axes):
        _draw_heat(axes, weights, "RdBu_r" if signed else "Blues", -1 if signed else 0)
        axes.set(xlabel=drawn.entries[:-1], ylabel=drawn.entries[:-1])
        most = 24 if len(weights) <= 24 else 10
        _name_channels(axes.yaxis, len(weights), names, most)
        # Numbers lie beside each other, names stand.
        _name_channels(axes.xaxis, len(weights), names, most if names else min(most, 12), rotation=90)
    return figure


def _draw_heat(axes: style.Axes, table: np.ndarray, colors: str, low: float) -> None:
    axes.imshow(table, cmap=colors, vmin=low, vmax=1, aspect="auto", interpolation="nearest")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=2)


def _name_channels(
    axis: Axis, n: int, channels: Sequence[str] | None, most: float, rotation: float = 0
) -> None:
    """Name as many channels as there is room for, by number where they have no names."""
    ticks = range(0, n, -(-n // int(most)))
    names = [str(i + 1) if channels is None else _shorten(str(channels[i]), 8) for i in ticks]
    axis.set_ticks(ticks, names, rotation=rotation if channels else 0)


def draw_confusion(counts: np.ndarray, names: Sequence[str]) -> style.Figure:
    """Shares of the labels given to many classes; some of the classes are named."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
    ticks = range(0, len(names), -(-len(names) // 16))
    labels = [_shorten(names[i], 14) for i in ticks]
    longest = max(map(len, labels))
    room = 0.2 + 0.08 * longest  # inches
    with _begin(4.0, (room / WIDTH, 0.02, 0.98 - room / WIDTH, 0.98 - room / 4.0)) as (figure, axes):
        _draw_heat(axes, shares, "Blues", 0)
        axes.set_xticks(ticks, labels, rotation=90 if longest > 2 else 0)
        axes.set_yticks(ticks, labels)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False)
    return figure


def draw_embedding(panel: Panel, train: np.ndarray, test: np.ndarray, names: Sequence[str]) -> style.Figure:
    """Two principal components of one fold: training matrices faint, held-out ones full.

    One component, as a weighting for two classes has, is drawn with a row for each class.
    """
    one = len(panel.share) == 1
    known, new = (
        np.column_stack([points, _spread(codes)]) if one else points
        for points, codes in ((panel.train, train[: len(panel.train)]), (panel.test, test))
    )
    listed = len(names) <= 8
    with _begin(3.5, (0.17, 0.14, 0.8, 0.75 if listed else 0.84)) as (figure, axes):
        for c, (name, (color, mark)) in enumerate(zip(names, cycle(CLASS_LOOKS), strict=False)):
            faint, full = known[train[: len(known)] == c].T, new[test == c].T
            axes.plot(*faint, mark, color=color, ms=3.5, alpha=0.3, mew=0, zorder=1)  # behind all full ones
            axes.plot(*full, mark, color=color, ms=5.5, mec=PAPER, mew=0.5, label=_shorten(name))
        axes.set_xlabel(f"first component, {100 * panel.share[0]:.0f} % of the variance")
        if one:
            axes.set_yticks(range(len(names)), [_shorten(name) for name in names], rotation=90, va="center")
            axes.set_ylabel("class")
            axes.tick_params(axis="y", length=0)
        else:
            axes.set_ylabel(f"second component, {100 * panel.share[1]:.0f} %")
            axes.set_aspect("equal", adjustable="datalim")  # distances are what is learned
        if listed:
            _add_legend(figure, min(4, len(names)))
    return figure


def _spread(codes: np.ndarray) -> np.ndarray:
    """Heights at which points of a class are spread, so that they do not hide each other."""
    return codes + 0.5 * ((np.arange(len(codes)) * 0.6180339887) % 1 - 0.5)
