"""The pictures of the pages "Start" and "How it works", logo and icon: ``python docs/images/draw.py``.

Two of the pictures are figures of the paper (`reproduction.figures`); the third learns a reference point
for 2 x 2 matrices of determinant 1, which are points of a plane at every reference point.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np

IMAGES = Path(__file__).parent
ROOT = IMAGES.parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from reproduction import style  # noqa: E402
from reproduction.figures import cone, deformation  # noqa: E402
from reproduction.figures.plane import at_normal_coordinates, normal_coordinates  # noqa: E402
from spdmetric import LogEuclideanMetric  # noqa: E402

RADIUS = 3.0  # how far the reference point may move


def draw_learning() -> style.Figure:
    """Two classes in the tangent planes at their mean and at the learned point, and the alignment."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 60)
    # The classes differ along the first coordinate; the second is noise.
    places = rng.standard_normal((120, 2)) * [0.25, 1.0] + np.where(labels == 0, -0.45, 0.45)[:, None] * [
        1,
        0,
    ]
    X = at_normal_coordinates(places, np.eye(2))
    radii = np.linspace(0, RADIUS, 13)
    metrics = [LogEuclideanMetric(radius).fit(X, labels) for radius in radii]
    first, last = metrics[0].reference_, metrics[-1].reference_
    with style.canvas(style.PAGE, 2.6, None) as figure:
        before, after, path = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.06, right=0.99, bottom=0.17, top=0.87, wspace=0.3)
        for axes, point, title in (
            (before, first, "(a) flattened at the mean $G_0$"),
            (after, last, "(b) flattened at the learned $G$"),
        ):
            flat = normal_coordinates(X, point)
            flat = flat - flat.mean(axis=0)
            for k, (color, marker) in enumerate(((style.BLUE, "o"), (style.VERMILLION, "^"))):
                axes.plot(*flat[labels == k].T, marker, color=color, ms=3, alpha=0.7, label=f"class {k + 1}")
            axes.set(xlim=(-2.9, 2.9), ylim=(-3.3, 2.5), aspect="equal", title=title, xticks=[], yticks=[])
        before.legend(loc="lower center", ncols=2, columnspacing=0.8, handletextpad=0.1)
        path.plot(radii, [metric.alignment_ for metric in metrics], color=style.BLUE, marker="o", ms=3)
        path.set(ylim=(0, 1), title="(c) alignment of the best $G$")
        path.set(xlabel=r"how far $G$ may move from $G_0$", ylabel="alignment with the labels")
    return figure


def draw_start() -> Any:
    """What the code of the page draws."""
    import matplotlib

    matplotlib.use("agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "start.md").read_text(), re.S)
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks:
            exec(block, namespace)
    return namespace["figure"]


ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64">
  <path d="M32 60 L5 15 A27 9 0 0 0 59 15 Z" fill="{cone}" fill-opacity="0.55"/>
  <ellipse cx="32" cy="15" rx="27" ry="9" fill="{cone}" fill-opacity="0.9" stroke="{line}" stroke-width="2"/>
  <path d="M5 15 L32 60 L59 15" fill="none" stroke="{line}" stroke-width="2" stroke-linejoin="round"/>
  <path d="M14 22 Q32 52 50 22" fill="none" stroke="{curve}" stroke-width="4" stroke-linecap="round"/>
  <circle cx="14" cy="22" r="4.5" fill="{curve}"/>
  <circle cx="50" cy="22" r="4.5" fill="{curve}"/>
</svg>
"""


def main() -> None:
    """Write all files."""
    style.save(cone.draw(cone.compute()), IMAGES / "cone.png")
    style.save(deformation.draw(deformation.compute()), IMAGES / "flattening.png")
    style.save(draw_learning(), IMAGES / "moving.png")
    draw_start().savefig(IMAGES / "start.png", dpi=150, metadata={"Software": None})
    icon = ICON.format(cone=style.SKY, line=style.BLUE, curve=style.VERMILLION)
    for name in ("logo.svg", "favicon.svg"):
        (ROOT / "docs" / "_static" / name).write_text(icon)


if __name__ == "__main__":
    main()
