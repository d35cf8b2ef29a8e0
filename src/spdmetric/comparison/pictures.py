"""The pictures of the page, each an SVG inside it: narrow, so that a phone can show them.

The learned metric that is drawn was fitted to all matrices: for use and pictures, not for a score.
"""

from __future__ import annotations

import io
import warnings
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import METHODS
from spdmetric.comparison.plan import Plan
from spdmetric.comparison.run import make_fold, make_method
from spdmetric.comparison.verdict import Verdict
from spdmetric.estimators import CommonRange
from spdmetric.plots import ChoiceDisplay, ReferenceSpectrumDisplay, style
from spdmetric.plots.patterns import patterns_of
from spdmetric.plots.style import BLUE, CLASS_LOOKS, GRAY, VERMILLION, Metric

Box = tuple[float, float, float, float]

FAMILY_LOOKS = {  # color, mark, and words of the legend
    "distance": (BLUE, "o", "fixed distance"),
    "learned": (VERMILLION, "D", "learned metric"),
    "baseline": (GRAY, "s", "baseline"),
}
_TEXT: Any = {
    "svg.fonttype": "none",  # text stays text: searched, copied, read aloud
    "svg.hashsalt": "spdmetric",  # the same picture is the same file
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 9),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 8.5),
}


def as_image(figure: style.Figure) -> str:
    """The address of a picture that is part of the page."""
    import matplotlib

    file = io.BytesIO()
    with matplotlib.rc_context(_TEXT):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return "data:image/svg+xml;base64," + b64encode(file.getvalue()).decode()


@contextmanager
def _begin(
    height: float, box: Box, figure: style.Figure | None = None
) -> Iterator[tuple[style.Figure, style.Axes]]:
    """A figure of the page's width and letters, which stay 9 pixels high on a phone, and axes in a box."""
    with style.canvas(4.4, height, figure, **_TEXT) as figure:
        yield figure, figure.add_axes(box)


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
            score, aside = verdict.score(line.entry), 0.2 * bool(verdict.recentering)
            at = methods.index(method) + (aside if recentered else -aside)
            look = {"color": color, "mfc": "white" if recentered else color, "ms": 5, "lw": 1.4}
            axes.errorbar(score.mean, at, xerr=score.se, fmt=mark, **look)
        axes.axvline(verdict.chance, color=GRAY, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(methods)), [METHODS[method].title for method in methods])
        words = f"{verdict.criterion.word}, {verdict.criterion.axis}"
        axes.set(xlabel=words, ylim=(-0.7, len(methods) - 0.3), axisbelow=True)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color="lightgray", lw=0.7)
        for family in sorted({METHODS[method].family for method in methods}):
            color, mark, words = FAMILY_LOOKS[family]
            axes.plot([], [], ls="none", marker=mark, color=color, ms=5, label=words)
        figure.legend(loc="upper center", ncols=3, handletextpad=0.1, columnspacing=1.0)
    return figure


def find_metric(fitted: BaseEstimator) -> Metric:
    """The metric of a fitted method."""
    return next(m for s in steps_of(fitted) if isinstance(m := getattr(s, "metric_", s), Metric))


def draw_learned(
    plan: Plan, method: str, fitted: BaseEstimator, channels: Sequence[str] | None
) -> dict[str, style.Figure]:
    """All that is drawn of a learned metric that was fitted to all matrices; the embedding is of a fold."""
    X, basis, metric = plan.X[plan.trained], np.eye(plan.X.shape[1]), find_metric(fitted)
    for step in steps_of(fitted):
        if isinstance(step, CommonRange):
            X, basis = step.transform(X), step.basis_
    patterns = patterns_of(metric, X, plan.codes[plan.trained]).patterns @ basis.T
    figures = {"patterns": draw_patterns(patterns, channels)}
    if hasattr(metric, "cv_results_"):
        figures["candidates"] = draw_candidates(metric)
    if not metric.embedding_.low_rank and metric.radius_ > 0:
        with _begin(2.6, (0.15, 0.19, 0.82, 0.78)) as (figure, axes):
            ReferenceSpectrumDisplay.from_estimator(metric, ax=axes)
            axes.set_title("")
        figures["spectrum"] = figure
    return figures | _draw_fold(plan, method)


def draw_candidates(metric: Metric) -> style.Figure:
    """What the candidates gained in the folds inside, over the usual one."""
    n = len({(one["radius"], one["rank"], one["weighting"]) for one in metric.cv_results_["params"]})
    height = 0.7 + 0.2 * n
    with _begin(height, (0.42, 0.5 / height, 0.55, 1 - 0.55 / height)) as (figure, axes):
        ChoiceDisplay.from_estimator(metric, ax=axes)
        axes.locator_params(axis="x", nbins=5)
        axes.set(xlabel="gain in log-likelihood, ± one s.e.")
    return figure


def draw_patterns(patterns: np.ndarray, channels: Sequence[str] | None) -> style.Figure:
    """The six components (k, d) that tell the classes apart most, as columns of channels."""
    shown = patterns[:6].T  # (d, k)
    height = float(np.clip(0.9 + 0.16 * len(shown), 2.4, 5.2))
    with _begin(height, (0.17, 0.5 / height, 0.8, 1 - 0.6 / height)) as (figure, axes):
        look: Any = {"cmap": "RdBu_r", "aspect": "auto", "interpolation": "nearest"}
        axes.imshow(shown / np.abs(shown).max(axis=0), vmin=-1, vmax=1, **look)
        axes.spines[:].set_visible(False)
        axes.set(xlabel="component, the one that differs most first", ylabel="channel")
        axes.set_xticks(range(shown.shape[1]), [str(k + 1) for k in range(shown.shape[1])])
        ticks = range(0, len(shown), -(-len(shown) // int(height / 0.16)))  # as many as there is room for
        axes.set_yticks(
            ticks, [str(i + 1) if channels is None else _shorten(str(channels[i]), 8) for i in ticks]
        )
    return figure


def _draw_fold(plan: Plan, method: str) -> dict[str, style.Figure]:
    """The vectors of the first fold before and after learning, its weighting included."""
    fold, figures = make_fold(plan), {}
    *steps, _ = steps_of(estimator := make_method(plan, method))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = fold.X.reshape(len(fold.X), -1), fold.X_test.reshape(len(fold.X_test), -1)
        if plan.sizes.inside.definite:  # singular matrices have no tangent vectors
            before = fold.vectors(steps_of(make_method(plan, "logeuclid-mean"))[:-1])
        after = fold.vectors(steps)
        if not any(isinstance(step, Metric) for step in steps):
            metric = fold.fitted(estimator)[0].metric_
            after = metric.transform(after[0]), metric.transform(after[1])
    codes = [plan.codes[index] for index in plan.splits[0][0]]
    for name, vectors in (("before", before), ("after", after)):
        figures[f"embedding-{name}"] = draw_embedding(vectors, codes, list(map(str, plan.classes)))
    return figures


def draw_embedding(
    vectors: Sequence[np.ndarray], codes: Sequence[np.ndarray], names: Sequence[str]
) -> style.Figure:
    """Two principal components of training vectors, faint, and of held-out ones, full.

    One component, as a weighting for two classes has, is drawn with a row for each class.
    """
    center = vectors[0].mean(axis=0)
    axes_ = np.linalg.svd(vectors[0] - center, full_matrices=False)[2][:2]
    axes_ *= np.sign(axes_.sum(axis=1, keepdims=True) + 1e-300)  # a sign is not a result
    points = [(v - center) @ axes_.T for v in vectors]
    if len(axes_) == 1:  # spread a little, so that points do not hide each other
        spread = [c + 0.5 * ((np.arange(len(c)) * 0.6180339887) % 1 - 0.5) for c in codes]
        points = [np.column_stack(pair) for pair in zip(points, spread, strict=True)]
    listed = len(names) <= 8
    with _begin(3.5, (0.17, 0.14, 0.8, 0.75 if listed else 0.84)) as (figure, axes):
        for c, (name, (color, mark)) in enumerate(zip(names, cycle(CLASS_LOOKS), strict=False)):
            faint, full = (own[of == c].T for own, of in zip(points, codes, strict=True))
            axes.plot(*faint[:, :500], mark, color=color, ms=3.5, alpha=0.3, mew=0, zorder=1)
            axes.plot(*full, mark, color=color, ms=5.5, mec="white", mew=0.5, label=_shorten(name))
        axes.set(xlabel="first principal component", ylabel="second principal component")
        axes.set_aspect("equal", adjustable="datalim")  # distances are what is learned
        if len(axes_) == 1:
            axes.set_aspect("auto")
            axes.set(ylabel="class", yticks=[])
        if listed:
            figure.legend(loc="upper center", ncols=4, handletextpad=0.1, columnspacing=1.0)
    return figure
