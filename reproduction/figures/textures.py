"""Figure "BrodatzFig" of [Yger2015]_: the textures, with the halves that train and test.

Patches for training are cut from the left half of each image and those for testing from
the right half.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, sqrt

import numpy as np

from reproduction import style


def draw(data: Mapping[str, np.ndarray], figure: style.Figure | None = None) -> style.Figure:
    """Draw gray images in a grid, in the order given, with the line that cuts each into halves."""
    columns = len(data) if len(data) <= 3 else ceil(sqrt(len(data)))
    rows = ceil(len(data) / columns)
    side = (style.COLUMN - 0.1) / columns
    height = rows * (side + 0.16)
    with style.canvas(style.COLUMN, height, figure) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        figure.subplots_adjust(left=0.01, right=0.99, top=0.995, bottom=0.16 / height, wspace=0.06)
        figure.subplots_adjust(hspace=0.2 / side)
        for axes in grid.flat[len(data) :]:
            axes.set_axis_off()
        for axes, (name, image) in zip(grid.flat, data.items(), strict=False):
            _draw_texture(axes, name, image)
        _draw_key(grid[0, 0])
    return figure


def _draw_texture(axes: style.Axes, name: str, image: np.ndarray) -> None:
    axes.imshow(image, cmap="gray")
    axes.axvline(image.shape[1] // 2 - 0.5, color=style.YELLOW, lw=1.0, ls=(0, (4, 2)))
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel(name, labelpad=3)
    axes.spines[:].set_visible(False)


def _draw_key(axes: style.Axes) -> None:
    """What the halves are for, told on the first image."""
    plate = {"boxstyle": "square,pad=0.25", "facecolor": style.BLACK, "edgecolor": "none", "alpha": 0.75}
    for x, text in ((0.25, "training"), (0.75, "test")):
        axes.text(x, 0.05, text, transform=axes.transAxes, ha="center", color="white", fontsize=7, bbox=plate)
