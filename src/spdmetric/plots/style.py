"""What all figures share: sizes, palette, and a canvas that leaves matplotlib's settings alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spdmetric.extras import needing
from spdmetric.io.atomic import atomic_file

if TYPE_CHECKING:  # the figures find these types here too
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.patheffects import AbstractPathEffect
    from mpl_toolkits.mplot3d import Axes3D as Axes3D

COLUMN = 3.4  # inches: one column of the paper
PAGE = 7.0  # inches: both columns

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

# Of each class; color is never the only difference.
CLASS_LOOKS = list(zip((BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, GRAY), "os^Dv<>P", strict=True))
EUCLID, RIEMANN = VERMILLION, BLUE  # one color for each geometry in all figures

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


def need_matplotlib() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    with needing("Drawing needs matplotlib", "plots"):
        import matplotlib  # noqa: F401


def context(**others: Any) -> AbstractContextManager[None]:
    """Matplotlib settings of the figures, and others over them, in force inside a ``with`` only."""
    need_matplotlib()
    import matplotlib

    return matplotlib.rc_context(_SETTINGS | others)


@contextmanager
def canvas(width: float, height: float, figure: Figure | None = None, **others: Any) -> Iterator[Figure]:
    """Give a figure of a size in inches to draw in: the given one, or a new one unknown to pyplot."""
    with context(**others):
        if figure is None:
            from matplotlib.figure import Figure

            figure = Figure()
        figure.set_size_inches(width, height)
        yield figure
        # Ticks are made when first drawn: here, while the settings are in force.
        figure.draw_without_rendering()


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
