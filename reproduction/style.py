"""What the figures and tables of the paper share beside `spdmetric.plots.style`: sizes, solids, files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.io.atomic import atomic_file
from spdmetric.plots.style import (  # noqa: F401
    BLACK,
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,
    canvas,
    context,
)

if TYPE_CHECKING:  # the figures find these types here too
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.patheffects import AbstractPathEffect
    from mpl_toolkits.mplot3d import Axes3D as Axes3D

COLUMN = 3.4  # inches: one column of the paper
PAGE = 7.0  # inches: both columns

EUCLID, RIEMANN = VERMILLION, BLUE  # one color for each geometry in all figures


def solid_axes(figure: Figure, box: tuple[float, float, float, float], *, elev: float, azim: float) -> Axes3D:
    """Add unseen axes of three dimensions in which things hide each other by their ``zorder`` alone."""
    axes: Axes3D = figure.add_axes(box, projection="3d", computed_zorder=False, elev=elev, azim=azim)
    axes.patch.set_visible(False)
    axes.set_axis_off()
    return axes


def surface(axes: Axes3D, points: np.ndarray, **kwargs: object) -> None:
    """Draw a surface through a grid of points, (r, c, 3), below everything else."""
    rows, columns = points.shape[:2]
    # As pixels also in vector files, where the seams between facets would show.
    look = {"rcount": rows, "ccount": columns, "lw": 0, "rasterized": True, "zorder": 1}
    axes.plot_surface(*np.moveaxis(points, -1, 0), **{**look, **kwargs})


def title(figure: Figure, x: float, y: float, text: str) -> None:
    """Name a panel, at a place given in shares of the figure."""
    figure.text(x, y, text, ha="left", va="bottom", fontsize=8)


def dot(
    axes: Axes | Axes3D,
    *where: float,
    color: str = BLACK,
    marker: str = "o",
    size: float = 4.5,
    rim: str = "white",
) -> None:
    """Mark a point, with a rim that lifts it from what lies below."""
    points = [[value] for value in where]
    axes.plot(*points, color=color, marker=marker, ms=size, mec=rim, mew=0.6, ls="none", zorder=10)


def halo() -> list[AbstractPathEffect]:
    """Path effects that lift text from lines below it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=1.8, foreground="white")]


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as its suffix says, whole or not at all; the same figure is the same file."""
    kind = path.suffix[1:]
    metadata = {"Software": None} if kind == "png" else {"CreationDate": None, "Producer": None}
    with context(), atomic_file(path) as file:
        figure.savefig(file, format=kind, dpi=300, metadata=metadata)
    return path
