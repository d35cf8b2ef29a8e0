"""The pictures of the page, each an SVG inside it: narrow, so that a phone can show them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from io import StringIO
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA

from spdmetric.comparison.baselines import FirstView
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import find_method
from spdmetric.comparison.plan import Plan
from spdmetric.comparison.run import make_fold, make_method
from spdmetric.comparison.verdict import Verdict
from spdmetric.estimators import CommonRange
from spdmetric.plots import ChoiceDisplay, ReferenceSpectrumDisplay, style
from spdmetric.plots.patterns import Patterns, PatternsDisplay, patterns_of
from spdmetric.plots.style import BLUE, CLASS_LOOKS, GRAY, VERMILLION, Metric

if TYPE_CHECKING:
    from mne import Info

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


def as_svg(figure: style.Figure) -> str:
    """A picture as text, the same for the same numbers."""
    import matplotlib

    file = StringIO()
    with matplotlib.rc_context(_TEXT):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return file.getvalue()


@contextmanager
def _begin(
    height: float, figure: style.Figure | None = None, rows: int = 1, columns: int = 1
) -> Iterator[tuple[style.Figure, Any]]:
    """Axes in a figure of the page's width, whose letters stay 9 pixels high on a phone."""
    with style.canvas(4.4, height, figure, **_TEXT) as figure:
        figure.set_layout_engine("constrained")
        yield figure, figure.subplots(rows, columns)


def draw_ranking(verdict: Verdict, figure: style.Figure | None = None) -> style.Figure:
    """The score that decides with its 95 % interval, the best on top; hollow where recentered."""
    methods = list(dict.fromkeys(entry.method for entry in verdict.deciding))[::-1]
    with _begin(0.9 + 0.235 * len(methods), figure) as (figure, axes):
        for entry in verdict.deciding:
            color, mark, words = FAMILY_LOOKS[find_method(entry.method).family]
            score, aside = verdict.score(entry), 0.2 * bool(verdict.recentering)
            at = methods.index(entry.method) + (aside if entry.recentered else -aside)
            look: Any = {"color": color, "mfc": "white" if entry.recentered else color, "ms": 5, "lw": 1.4}
            sides = [[score.mean - score.low], [score.high - score.mean]]
            axes.errorbar(score.mean, at, xerr=np.maximum(sides, 0), fmt=mark, label=words, **look)
        axes.axvline(verdict.chance, color=GRAY, lw=1, ls=(0, (4, 3)))
        axes.set_yticks(range(len(methods)), [find_method(method).title for method in methods])
        axes.set(xlabel=f"{verdict.criterion.word}, {verdict.criterion.axis}".rstrip(", "), axisbelow=True)
        axes.margins(x=0.05)
        axes.set_ylim(-0.6, len(methods) - 0.4)  # no mark on the edge
        axes.grid(axis="x", color="lightgray", lw=0.7)
        one_each = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        figure.legend(one_each.values(), one_each.keys(), loc="outside upper center", ncols=3)
    return figure


def draw_learned(
    plan: Plan, method: str, fitted: BaseEstimator, channels: Sequence[str] | None, info: Info | None = None
) -> dict[str, style.Figure]:
    """All that is drawn of a learned metric that was fitted to all matrices; the embedding is of a fold."""
    metric, _, X = style.find_metric(fitted, "metric", plan.X[plan.trained])
    ranges = [step.basis_ for step in steps_of(fitted) if isinstance(step, CommonRange)]
    (basis,), (codes, names) = ranges or [np.eye(plan.X.shape[-1])], plan.parts
    if plan.sizes.several:
        metric, X = style.find_view(metric, None)[0], FirstView().fit_transform(X)
        basis = basis[:, : X.shape[-1]]
    found = patterns_of(metric, X, codes[plan.trained])
    found = found._replace(patterns=found.patterns @ basis.T, classes=np.array(names))
    info = info or _find_places(channels)
    drawn = _draw_patterns(found.shown, channels) if info is None else _draw_heads(found, info)
    figures = {"patterns": drawn}
    if hasattr(metric, "cv_results_"):
        with _begin(3.6) as (figures["candidates"], axes):
            ChoiceDisplay.from_estimator(metric, ax=axes)
            axes.set(xlabel=f"gain in {'R²' if plan.classes is None else 'log-likelihood'}, ± one s.e.")
            axes.margins(x=0.06)
            axes.locator_params(axis="x", nbins=5)  # so that their numbers stay apart
    if not metric.embedding_.low_rank and metric.radius_ > 0:
        with _begin(2.6) as (figures["spectrum"], axes):
            ReferenceSpectrumDisplay.from_estimator(metric, ax=axes)
    return figures | _draw_fold(plan, method)


def _find_places(channels: Sequence[str] | None) -> Info | None:
    """Channels with their places in the extended 10-20 system; None where one has none, or MNE is missing."""
    names = [str(one).strip(".") for one in (() if channels is None else channels)]  # EDF files pad with dots
    if len(set(names)) < max(4, len(names)) or find_spec("mne") is None:
        return None
    import mne

    there = mne.channels.get_builtin_montages()  # newer versions of MNE have another name for it
    montage = "colin27_1005" if "colin27_1005" in there else "standard_1005"
    try:
        info: Info = mne.create_info(names, 1.0, "eeg").set_montage(montage, match_case=False)
    except ValueError:  # a name without a place
        return None
    return info


def _draw_heads(patterns: Patterns, info: Info) -> style.Figure:
    """Up to six components as maps of the head."""
    n = min(6, len(patterns.patterns))
    rows = -(-n // 3)
    with _begin(1.9 * rows, None, rows, min(n, 3)) as (figure, axes):
        axes = np.ravel(axes)
        PatternsDisplay(patterns, info).plot(list(axes[:n]), n_components=n, topomap_kw={"sensors": "k,"})
        for one in axes:
            one.set_title(one.get_title("left") or one.get_title(), fontsize=7.5)
            one.set_axis_off()
    return figure


def _draw_patterns(patterns: np.ndarray, channels: Sequence[str] | None) -> style.Figure:
    """The six components (k, d) that tell the classes apart most, as columns of channels."""
    shown = patterns[:6].T  # (d, k)
    names = range(1, len(shown) + 1) if channels is None else channels
    every = -(-len(shown) // 70)  # as many names as there is room for
    with _begin(float(np.clip(0.9 + 0.16 * len(shown), 2.4, 10.5))) as (figure, axes):
        look: Any = {"vmin": -1, "vmax": 1, "aspect": "auto", "interpolation": "nearest"}
        axes.imshow(shown / np.abs(shown).max(axis=0), "RdBu_r", **look)
        axes.set(xlabel="component, the one that differs most first", ylabel="channel")
        axes.set_xticks(range(shown.shape[1]), range(1, shown.shape[1] + 1))
        axes.set_yticks(range(0, len(shown), every), [str(one)[:8] for one in names][::every])
    return figure


def draw_predictions(truth: np.ndarray, predicted: np.ndarray) -> style.Figure:
    """Predicted against true targets, means over the repeats, of matrices that were left out."""
    with _begin(4.0) as (figure, axes):
        axes.plot(truth, predicted, "o", color=BLUE, ms=3.5, alpha=0.6, mew=0)
        ends = [truth.min(), truth.max()]
        axes.plot(ends, ends, color=GRAY, lw=1, ls=(0, (4, 3)))
        axes.set(xlabel="true", ylabel="predicted")
        axes.margins(0.06)
    return figure


def _draw_fold(plan: Plan, method: str) -> dict[str, style.Figure]:
    """The vectors of the first fold before and after learning, its weighting included."""
    fold = make_fold(plan)
    *steps, _ = steps_of(estimator := make_method(plan, method))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = fold.X.reshape(len(fold.X), -1), fold.X_test.reshape(len(fold.X_test), -1)
        if plan.sizes.inside.definite:  # singular matrices have no tangent vectors
            plain = "logeuclid-mean-ridge" if plan.classes is None else "logeuclid-mean"
            before = fold.vectors(steps_of(make_method(plan, plain))[:-1])
        after = fold.vectors(steps)
        if not any(isinstance(step, Metric) for step in steps):
            metric = fold.fitted(estimator)[0].metric_
            after = metric.transform(after[0]), metric.transform(after[1])
    both = {"embedding-before": before, "embedding-after": after}
    return {name: _draw_embedding(plan, vectors) for name, vectors in both.items()}


def _draw_embedding(plan: Plan, vectors: Sequence[np.ndarray]) -> style.Figure:
    """Two principal components of training vectors, faint, and of held-out ones; one has a row a class."""
    parts, names = plan.parts
    codes = [parts[index] for index in plan.splits[0][0]]
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
        up = "a row for each color" if one else "second principal component"
        axes.set(xlabel="first principal component", ylabel=up)
        if one:  # classes have no order
            axes.set_yticks([])
        else:  # distances are what is learned
            axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.08)
        if len(names) <= 8:
            figure.legend(loc="outside upper center", ncols=min(4, len(names)))
    return figure
