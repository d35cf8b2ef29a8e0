"""What all pictures share: palette, a canvas that leaves matplotlib's settings alone, axes, and checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.estimators.cv import MetricPredictor
from spdmetric.extras import require_extra

if TYPE_CHECKING:  # the figures find these types here too
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure

Metric: TypeAlias = LogEuclideanMetric | LogEuclideanMetricCV

# Okabe and Ito (2008): told apart with every common kind of color blindness.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILLION, PURPLE, GRAY = "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"

# Of each class; color is never the only difference.
CLASS_LOOKS = list(zip((BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, GRAY), "os^Dv<>P", strict=True))

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same picture everywhere
    "mathtext.fontset": "dejavusans",
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 2.5),
    **dict.fromkeys(("legend.frameon", "axes.spines.top", "axes.spines.right"), False),
    "legend.handlelength": 1.8,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "pdf.fonttype": 42,  # text stays text
}


def need_matplotlib() -> Any:
    """Matplotlib, or say which extra is missing before anything is computed in vain."""
    with require_extra("Drawing needs matplotlib", "plots"):
        import matplotlib
    return matplotlib


def context(**others: Any) -> AbstractContextManager[None]:
    """Matplotlib settings of the figures, and others over them, in force inside a ``with`` only."""
    settings: AbstractContextManager[None] = need_matplotlib().rc_context(_SETTINGS | others)
    return settings


@contextmanager
def canvas(width: float, height: float, figure: Figure | None = None, **others: Any) -> Iterator[Figure]:
    """Give a figure of a size in inches to draw in: the given one, or a new one unknown to pyplot."""
    with context(**others):
        from matplotlib.figure import Figure

        figure = figure or Figure()
        figure.set_size_inches(width, height)
        yield figure
        # Ticks are made when first drawn: here, while the settings are in force.
        figure.draw_without_rendering()


class Display:
    """A picture, which keeps its axes in ``ax_`` and their figure in ``figure_``.

    ``estimator_name`` says which metric `from_estimator` took: of a classifier, or of a step of a pipeline.
    """

    ax_: Any  # Axes, or an array of them
    figure_: Figure
    estimator_name: str | None = None
    plot: Any  # draws, and returns the display

    def _draw(self, name: str, options: dict[str, Any]) -> Self:
        self.estimator_name = name
        drawn: Self = self.plot(**options)
        return drawn

    def _begin(
        self, ax: Axes | Sequence[Axes] | None, n: int | None = None, size: tuple[float, float] | None = None
    ) -> Any:
        """Keep the given axes, or those of a new figure of a size in inches: one, or a row of n."""
        need_matplotlib()
        import matplotlib.pyplot as plt

        row = np.array(ax, dtype=object).ravel()
        if ax is None:
            row = plt.subplots(1, n or 1, figsize=size, layout="constrained", squeeze=False)[1][0]
        if row.size != (n or 1):
            raise ValueError(f"ax holds {row.size} axes: expected {n or 1}, one for each map, or None.")
        for one in row:
            if not isinstance(one, plt.Axes):
                raise TypeError(f"ax={one!r}: expected matplotlib Axes to draw in, or None for a new figure.")
        self.ax_, self.figure_ = row[0] if n is None else row, row[0].figure
        return self.ax_


def find_metric(estimator: object, what: str, X: ArrayLike | None = None) -> tuple[Metric, str, Any]:
    """Find the fitted metric in an estimator; return it, its name, and X as it reaches the metric.

    It is the estimator itself, the ``metric_`` of a classifier or regressor, or that of the last such step of
    a pipeline.  An estimator without a metric has no ``what`` to draw.
    """
    need_matplotlib()
    step, name = estimator, type(estimator).__name__
    if isinstance(estimator, Pipeline):
        places = [k for k, (_, s) in enumerate(estimator.steps) if isinstance(s, Metric | MetricPredictor)]
        if places:
            name, step = estimator.steps[places[-1]]
            name = f"step {name!r} of a pipeline"
            if X is not None and places[-1]:
                check_is_fitted(step)
                X = estimator[: places[-1]].transform(X)
    if not isinstance(step, Metric | MetricPredictor):
        raise TypeError(
            f"{name} has no {what}: expected a LogEuclideanMetric, a LogEuclideanMetricCV, a classifier or "
            "regressor with one, or a pipeline that holds such a step."
        )
    check_is_fitted(step)
    return (step.metric_, f"metric_ of {name}", X) if isinstance(step, MetricPredictor) else (step, name, X)


def find_view(metric: Metric, view: str | int | None) -> tuple[Metric, int]:
    """One view of a fitted metric as a metric of its own, and its number; by default the first."""
    embedding = metric.embedding_
    if embedding.size is None:
        if view is not None:
            raise ValueError(f"view={view!r}: the metric was fitted to matrices without views.")
        return metric, 0
    names = list(metric.view_names_ or range(metric.n_views_ or 0))
    v = 0 if view is None else names.index(view) if view in names else view
    if not isinstance(v, int) or not 0 <= v < len(embedding.starts):
        used = names[: len(embedding.starts)]
        raise ValueError(f"view={view!r}: expected one of those that the metric uses, {used}.")
    one = copy(metric)
    one.embedding_, one.n_views_, one.view_names_ = embedding.of_view(v), None, None
    one.n_features_in_ = len(embedding.starts[v].basis)
    return one, v
