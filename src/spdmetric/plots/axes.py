"""What the displays share: axes to draw in, and the checks of what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.plots.style import need_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Metric: TypeAlias = LogEuclideanMetric | LogEuclideanMetricCV


class Display:
    """A picture, which keeps its axes in ``ax_`` and their figure in ``figure_``."""

    ax_: Axes
    figure_: Figure


def check_metric(estimator: object, what: str) -> None:
    """Refuse what is not a fitted metric, and so lacks ``what``."""
    need_matplotlib()
    if not isinstance(estimator, Metric):
        expected = "expected a LogEuclideanMetric or a LogEuclideanMetricCV; of a pipeline, pass that step"
        raise TypeError(f"{type(estimator).__name__} has no {what}: {expected}.")
    check_is_fitted(estimator)


def axes_for(ax: Axes | None) -> tuple[Axes, Figure]:
    """Return the axes to draw in and their figure: the given ones, or those of a new figure."""
    row, figure = row_for(ax)
    return row[0], figure


def row_for(
    ax: Axes | Sequence[Axes] | None, n: int = 1, size: tuple[float, float] | None = None
) -> tuple[np.ndarray, Figure]:
    """Return n axes and their figure: the given ones, or a row of a new figure of a size in inches."""
    need_matplotlib()
    from matplotlib.axes import Axes

    row = np.array(ax, dtype=object).ravel()
    if ax is None:
        import matplotlib.pyplot as plt

        row = plt.subplots(1, n, figsize=size, layout="constrained", squeeze=False)[1][0]
    if row.size != n:
        raise ValueError(f"ax holds {row.size} axes: expected {n}, one for each map, or None.")
    for one in row:
        if not isinstance(one, Axes):
            raise TypeError(f"ax={one!r}: expected matplotlib Axes to draw in, or None for a new figure.")
    return row, row[0].figure
