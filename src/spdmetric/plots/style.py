"""What all figures share: sizes, palette, and a canvas that leaves matplotlib's settings alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spdmetric.io.atomic import atomic_file
from spdmetric.plots.axes import (
    BLACK,
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    YELLOW,  # noqa: F401 (the figures find all colors here)
    need_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN = 3.4  # inches: one column of the paper
PAGE = 7.0  # inches: both columns

PALETTE = (SKY, GREEN, BLUE, ORANGE, VERMILLION, PURPLE, GRAY, BLACK)

EUCLID, RIEMANN = VERMILLION, BLUE  # one color for each geometry in all figures

_SETTINGS: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib: the same picture everywhere
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.3,
    "lines.solid_capstyle": "round",
    "pdf.fonttype": 42,  # text stays text
}


def context() -> AbstractContextManager[None]:
    """Matplotlib settings of the figures, in force inside a ``with`` only."""
    need_matplotlib()
    import matplotlib

    return matplotlib.rc_context(_SETTINGS)


@contextmanager
def canvas(width: float, height: float, figure: Figure | None = None) -> Iterator[Figure]:
    """Give a figure of a size in inches to draw in, in the style of the figures.

    Parameters
    ----------
    width, height : float
        Size in inches.
    figure : Figure, optional
        The figure to use, for instance ``plt.figure()``; a new one that pyplot does not
        know, and that need not be closed, by default.

    Yields
    ------
    Figure
    """
    with context():
        if figure is None:
            from matplotlib.figure import Figure

            figure = Figure()
        figure.set_size_inches(width, height)
        yield figure
        # Ticks are made when first drawn: here, while the settings are in force.
        figure.draw_without_rendering()


def solid_axes(figure: Figure, box: tuple[float, float, float, float], **kwargs: Any) -> Any:
    """Add axes of three dimensions in which things hide each other by their ``zorder`` alone."""
    axes: Any = figure.add_axes(box, projection="3d", computed_zorder=False, **kwargs)
    axes.patch.set_visible(False)
    return axes


def surface(axes: Any, points: np.ndarray, **kwargs: Any) -> None:
    """Draw a surface through a grid of points, (r, c, 3), below everything else."""
    rows, columns = points.shape[:2]
    # As pixels also in vector files, where the seams between facets would show.
    look = {"rcount": rows, "ccount": columns, "lw": 0, "rasterized": True, "zorder": 1}
    axes.plot_surface(*np.moveaxis(points, -1, 0), **{**look, **kwargs})


def title(figure: Figure, x: float, y: float, text: str) -> None:
    """Name a panel, at a place given in shares of the figure."""
    figure.text(x, y, text, ha="left", va="bottom", fontsize=8)


def dot(
    axes: Any, *where: float, color: str = BLACK, marker: str = "o", size: float = 4.5, **kwargs: Any
) -> None:
    """Mark a point, with a white rim that lifts it from what lies below."""
    look = {
        "color": color,
        "marker": marker,
        "ms": size,
        "mec": "white",
        "mew": 0.6,
        "ls": "none",
        "zorder": 10,
    }
    axes.plot(*([value] for value in where), **{**look, **kwargs})


def halo() -> list[Any]:
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
