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
from sklearn.decomposition import PCA

from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import METHODS
from spdmetric.comparison.plan import Plan
from spdmetric.comparison.run import make_fold, make_method
from spdmetric.comparison.verdict import Verdict
from spdmetric.estimators import CommonRange
from spdmetric.plots import ChoiceDisplay, ReferenceSpectrumDisplay, style
from spdmetric.plots.patterns import patterns_of
from spdmetric.plots.style import BLUE, CLASS_LOOKS, GRAY, VERMILLION, Metric

FAMILY_LOOKS = {  # color, mark, and words of the legend
    "distance": (BLUE, "o", "fixed distance"),
    "learned": (VERMILLION, "D", "learned metric"),
    "baseline": (GRAY, "s", "baseline"),
}
_TEXT: Any = {
    "svg.fonttype": "none",  # text stays text, which is shorter
    "svg.hashsalt": "spdmetric",  # the same picture is the same file
    "text.parse_math": False,  # labels are the user's
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
def _begin(height: float, figure: style.Figure | None = None) -> Iterator[tuple[style.Figure, style.Axes]]:
    """Axes in a figure of the page's width, whose letters stay 9 pixels high on a phone."""
    with style.canvas(4.4, height, figure, **_TEXT) as figure:
        figure.set_layout_engine("constrained")
        yield figure, figure.subplots()


def draw_ranking(verdict: Verdict, figure: style.Figure | None = None) -> style.Figure:
    """The score that decides with standard errors, the best on top; hollow where recentered."""
    methods = list(dict.fromkeys(line.entry.method for line in verdict.ranked))[::-1]
    with _begin(0.9 + 0.235 * len(methods), figure) as (figure, axes):
        for line in verdict.ranked:
            method, recentered = line.entry
            color, mark, words = FAMILY_LOOKS[METHODS[method].family]
            score, aside = verdict.score(line.entry), 0.2 * bool(verdict.recentering)
            at = methods.index(method) + (aside if recentered else -aside)
            look: Any = {"color": color, "mfc": "white" if recentered else color, "ms": 5, "lw": 1.4}
            axes.errorbar(score.mean, at, xerr=score.se, fmt=mark, label=words, **look)
        axes.axvline(verdict.chance, color=GRAY, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(methods)), [METHODS[method].title for method in methods])
        axes.set(xlabel=f"{verdict.criterion.word}, {verdict.criterion.axis}", axisbelow=True)
        axes.grid(axis="x", color="lightgray", lw=0.7)
        one_each = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        figure.legend(one_each.values(), one_each.keys(), loc="outside upper center", ncols=3)
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
        with _begin(3.6) as (figure, axes):
            ChoiceDisplay.from_estimator(metric, ax=axes)
            axes.set(xlabel="gain in log-likelihood, ± one s.e.")
        figures["candidates"] = figure
    if not metric.embedding_.low_rank and metric.radius_ > 0:
        with _begin(2.6) as (figure, axes):
            ReferenceSpectrumDisplay.from_estimator(metric, ax=axes)
        figures["spectrum"] = figure
    return figures | _draw_fold(plan, method)


def draw_patterns(patterns: np.ndarray, channels: Sequence[str] | None) -> style.Figure:
    """The six components (k, d) that tell the classes apart most, as columns of channels."""
    shown = patterns[:6].T  # (d, k)
    names = (
        [str(i + 1) for i in range(len(shown))] if channels is None else [str(one)[:8] for one in channels]
    )
    with _begin(float(np.clip(0.9 + 0.16 * len(shown), 2.4, 5.2))) as (figure, axes):
        axes.imshow(shown / np.abs(shown).max(axis=0), "RdBu_r", vmin=-1, vmax=1, aspect="auto")
        axes.set(xlabel="component, the one that differs most first", ylabel="channel")
        axes.set_xticks(range(shown.shape[1]), [str(k + 1) for k in range(shown.shape[1])])
        every = -(-len(shown) // 30)  # as many as there is room for
        axes.set_yticks(range(0, len(shown), every), names[::every])
    return figure


def _draw_fold(plan: Plan, method: str) -> dict[str, style.Figure]:
    """The vectors of the first fold before and after learning, its weighting included."""
    fold = make_fold(plan)
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
    codes, names = (
        [plan.codes[index] for index in plan.splits[0][0]],
        [str(name)[:24] for name in plan.classes],
    )
    both = {"embedding-before": before, "embedding-after": after}
    return {name: draw_embedding(vectors, codes, names) for name, vectors in both.items()}


def draw_embedding(
    vectors: Sequence[np.ndarray], codes: Sequence[np.ndarray], names: Sequence[str]
) -> style.Figure:
    """Two principal components of training vectors, faint, and of held-out ones, full.

    One component, as a weighting for two classes has, is drawn with a row for each class.
    """
    pca = PCA(min(2, *vectors[0].shape), svd_solver="full").fit(vectors[0])
    points = [pca.transform(own) for own in vectors]
    one = points[0].shape[1] == 1
    if one:  # spread a little, so that points do not hide each other
        spread = [c + 0.5 * ((np.arange(len(c)) * 0.6180339887) % 1 - 0.5) for c in codes]
        points = [np.column_stack(pair) for pair in zip(points, spread, strict=True)]
    with _begin(3.5) as (figure, axes):
        for c, (name, (color, mark)) in enumerate(zip(names, cycle(CLASS_LOOKS), strict=False)):
            faint, full = (own[of == c].T for own, of in zip(points, codes, strict=True))
            axes.plot(*faint[:, :500], mark, color=color, ms=3.5, alpha=0.3, mew=0, zorder=1)
            axes.plot(*full, mark, color=color, ms=5.5, mec="white", mew=0.5, label=name)
        axes.set(xlabel="first principal component", ylabel="class" if one else "second principal component")
        # Distances are what is learned; classes have no order.
        if one:
            axes.set_yticks([])
        else:
            axes.set_aspect("equal", adjustable="datalim")
        if len(names) <= 8:
            figure.legend(loc="outside upper center", ncols=min(4, len(names)))
    return figure
