"""What the displays share: colors, axes to draw in, and what to say when there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def need_matplotlib() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: pip install 'spdmetric[plots]'.") from error


def axes_for(ax: Any) -> tuple[Axes, Figure]:
    """Return the axes to draw in and their figure: the given ones, or those of a new figure."""
    need_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(layout="constrained")[1]
    _check_axes(ax)
    return ax, ax.figure


def row_for(ax: Any, n: int) -> tuple[np.ndarray, Figure]:
    """Return n axes and their figure: the given ones, or a row of a new figure."""
    need_matplotlib()
    if ax is None:
        import matplotlib.pyplot as plt

        ax = plt.subplots(1, n, figsize=(2.2 * n, 2.6), layout="constrained", squeeze=False)[1]
    row = np.array(ax, dtype=object).ravel()
    if row.size != n:
        raise ValueError(f"ax holds {row.size} axes: expected {n}, one for each map, or None.")
    for one in row:
        _check_axes(one)
    return row, row[0].figure


def _check_axes(ax: Any) -> None:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(f"ax={ax!r}: expected matplotlib Axes to draw in, or None for a new figure.")


def check_values(name: str, value: Any, valid: Sequence[str]) -> None:
    """Refuse a name that is not one of the valid ones, listing them."""
    if value not in valid:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, valid))}.")
