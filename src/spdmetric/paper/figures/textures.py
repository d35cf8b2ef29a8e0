"""Figure "BrodatzFig" of [Yger2015]_: the textures, with the halves that train and test.

Patches for training are cut from the left half of each image and those for testing from
the right half.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spdmetric.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Textures(NamedTuple):
    """Gray images with their names, and the column at which each is cut into halves."""

    names: tuple[str, ...]
    images: tuple[np.ndarray, ...]  # (height, width) each
    cuts: tuple[int, ...]


def compute(images: Mapping[str, np.ndarray]) -> Textures:
    """Check gray images (height, width), by name, and find their halves."""
    if not images:
        raise ValueError("images is empty: expected at least one gray image, by name.")
    arrays = {name: np.asarray(image) for name, image in images.items()}
    for name, image in arrays.items():
        if image.ndim != 2 or image.size == 0:
            raise ValueError(
                f"images[{name!r}] has shape {image.shape}: expected a gray image of shape "
                "(height, width). Convert colors to gray before."
            )
    cuts = tuple(image.shape[1] // 2 for image in arrays.values())
    return Textures(tuple(arrays), tuple(arrays.values()), cuts)


def draw(data: Textures, figure: Figure | None = None) -> Figure:
    """Draw the images in a grid, in the order given."""
    count = len(data.names)
    columns = count if count <= 3 else ceil(sqrt(count))
    rows = ceil(count / columns)
    side = (style.COLUMN - 0.1) / columns
    with style.canvas(style.COLUMN, rows * (side + 0.16), figure) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(
            left=0.01, right=0.99, top=0.995, bottom=0.16 / (rows * (side + 0.16)), wspace=0.06
        )
        figure.subplots_adjust(hspace=0.2 / side)
        for axes in grid.flat[count:]:
            axes.set_axis_off()
        for axes, name, image, cut in zip(grid.flat, data.names, data.images, data.cuts, strict=False):
            _draw_texture(axes, name, image, cut)
        _draw_key(grid[0, 0])
    return figure


def _draw_texture(axes: Axes, name: str, image: np.ndarray, cut: int) -> None:
    axes.imshow(image, cmap="gray")
    axes.axvline(cut - 0.5, color=style.YELLOW, lw=1.0, ls=(0, (4, 2)))
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(name, labelpad=3)
    axes.spines[:].set_visible(False)


def _draw_key(axes: Axes) -> None:
    """What the halves are for, told on the first image."""
    plate = {"boxstyle": "square,pad=0.25", "facecolor": style.BLACK, "edgecolor": "none", "alpha": 0.75}
    for x, text in ((0.25, "training"), (0.75, "test")):
        axes.text(x, 0.05, text, transform=axes.transAxes, ha="center", color="white", fontsize=7, bbox=plate)
