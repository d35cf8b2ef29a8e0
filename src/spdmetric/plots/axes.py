"""What the displays share: colors, axes to draw in, and the checks of what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Metric: TypeAlias = LogEuclideanMetric | LogEuclideanMetricCV

# Okabe and Ito (2008): told apart with every common kind of color blindness.
BLACK = "#000000"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREEN = "#009E73"
YELLOW = "#F0E442"
BLUE = "#0072B2"
VERMILLION = "#D55E00"
PURPLE = "#CC79A7"
GRAY = "#8C8C8C"

CLASS_COLORS = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, GRAY)
CLASS_MARKERS = "os^Dv<>P"  # color is never the only difference


class Display:
    """A picture, which keeps its axes in ``ax_`` and their figure in ``figure_``."""

    ax_: Axes
    figure_: Figure


def need_matplotlib() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install 'spdmetric[plots]'.") from error


def check_metric(estimator: object, what: str) -> None:
    """Refuse what is not a fitted metric, and so lacks ``what``."""
    need_matplotlib()
    if not isinstance(estimator, Metric):
        raise TypeError(
            f"{type(estimator).__name__} has no {what}: expected a LogEuclideanMetric or a "
            "LogEuclideanMetricCV; of a pipeline, pass that step."
        )
    check_is_fitted(estimator)


def axes_for(ax: Axes | None) -> tuple[Axes, Figure]:
    """Return the axes to draw in and their figure: the given ones, or those of a new figure."""
    if ax is None:
        need_matplotlib()
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    row, figure = row_for(ax, 1)
    return row[0], figure


def row_for(ax: Axes | Sequence[Axes] | None, n: int) -> tuple[np.ndarray, Figure]:
    """Return n axes and their figure: the given ones, or a row of a new figure."""
    need_matplotlib()
    from matplotlib.axes import Axes

    row = np.array(ax, dtype=object).ravel()
    if ax is None:
        import matplotlib.pyplot as plt

        row = plt.subplots(1, n, figsize=(2.2 * n, 2.6), layout="constrained", squeeze=False)[1][0]
    if row.size != n:
        raise ValueError(f"ax holds {row.size} axes: expected {n}, one for each map, or None.")
    for one in row:
        if not isinstance(one, Axes):
            raise TypeError(f"ax={one!r}: expected matplotlib Axes to draw in, or None for a new figure.")
    return row, row[0].figure
