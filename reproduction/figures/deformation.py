"""Figure "mappingIllust" of [Yger2015]_: what the logarithmic map does to shapes.

Discs of one radius for delta_r and geodesic triangles, on the surface ``det X = 1`` of P_2
and in the tangent planes at I and at G.  Each map keeps the distances from its own center
and shortens the others, the more the farther out: the same shapes are deformed differently.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reproduction import style
from reproduction.figures.plane import at_normal_coordinates, circle, dome, geodesic, normal_coordinates

_COLORS = (style.BLACK, style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.VERMILLION)


class Deformation(NamedTuple):
    """Shapes on the surface, as matrices, and in the tangent planes at I and at G."""

    references: np.ndarray  # I and G, (2, 2, 2)
    radius: float
    centers: np.ndarray  # (7, 2, 2): I, and G with five more at its distance from I
    discs: np.ndarray  # (7, n, 2, 2), the points at one delta_r from each center
    edges: np.ndarray  # (12, n, 2, 2), geodesics: the sides of six triangles around I
    planes: tuple[np.ndarray, ...]  # the discs in the planes at I and at G, (7, n, 2) each
    edge_planes: tuple[np.ndarray, ...]  # the edges there, (12, n, 2) each


def compute(*, distance: float = 2.0, angle: float = 25.0, radius: float = 0.5, n: int = 101) -> Deformation:
    """Compute discs (radius for delta_r) and triangles on the surface, and map them by two logarithms.

    G lies at ``distance`` (delta_r) from I, in the direction ``angle`` (degrees).
    """
    turns = np.deg2rad(angle + 60 * np.arange(6))
    ring = distance * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    centers = at_normal_coordinates(np.vstack([np.zeros(2), ring]), np.eye(2))
    discs = np.stack([at_normal_coordinates(radius * circle(n), center) for center in centers])
    pairs = [(0, k) for k in range(1, 7)] + [(k, k % 6 + 1) for k in range(1, 7)]
    edges = np.stack([geodesic(centers[i], centers[j], np.linspace(0, 1, n)) for i, j in pairs])
    references = centers[:2]
    return Deformation(
        references=references,
        radius=radius,
        centers=centers,
        discs=discs,
        edges=edges,
        planes=tuple(normal_coordinates(discs, point) for point in references),
        edge_planes=tuple(normal_coordinates(edges, point) for point in references),
    )


def draw(data: Deformation, figure: style.Figure | None = None) -> style.Figure:
    """Draw the surface with the shapes on it, and the two tangent planes."""
    with style.canvas(style.PAGE, 2.35, figure) as figure:
        axes = style.solid_axes(figure, (-0.02, -0.1, 0.4, 1.2), elev=55, azim=-90)
        _draw_surface(axes, data)
        style.title(figure, 0.01, 0.92, r"(a) $\det X = 1$")
        for k, name in enumerate("IG"):
            axes = figure.add_axes((0.43 + 0.315 * k, 0.17, 0.25, 0.73))
            _draw_plane(axes, data, k)
            style.title(figure, 0.43 + 0.315 * k, 0.92, f"({'bc'[k]}) tangent plane at ${name}$")
    return figure


def _draw_surface(axes: style.Axes3D, data: Deformation) -> None:
    radii = np.linspace(0, 2.75, 30)[:, None, None]
    points = dome(at_normal_coordinates(radii * circle(121), np.eye(2)))
    style.surface(axes, points, color=style.SKY, alpha=0.25)
    for line in data.edges:
        axes.plot(*dome(line).T, color=style.GRAY, lw=0.8, zorder=3)
    for disc, color in zip(data.discs, _COLORS, strict=True):
        axes.plot(*dome(disc).T, color=color, lw=1.3, zorder=4)
    for name, point in zip("IG", data.references, strict=True):
        style.dot(axes, *dome(point), size=3.5)
        axes.text(*dome(point), f" ${name}$", va="bottom", zorder=11, path_effects=style.halo())
    axes.set_box_aspect(np.ptp(points, axis=(0, 1)), zoom=1.16)


def _draw_plane(axes: style.Axes, data: Deformation, k: int) -> None:
    for line in data.edge_planes[k]:
        axes.plot(*line.T, color=style.GRAY, lw=0.8)
    for disc, color in zip(data.planes[k], _COLORS, strict=True):
        axes.fill(*disc.T, facecolor=color, alpha=0.25, lw=0)
        axes.plot(*disc.T, color=color, lw=1.3)
    for name, point in zip("IG", data.references, strict=True):
        where = tuple(normal_coordinates(point, data.references[k]))
        style.dot(axes, *where, size=3.5)
        axes.annotate(f"${name}$", where, (3, 3), textcoords="offset points", path_effects=style.halo())
    _same_scale(axes, data.planes[k])
    axes.set(xlabel=r"$(l_{11} - l_{22})/\sqrt{2}$", ylabel=r"$\sqrt{2}\,l_{12}$")


def _same_scale(axes: style.Axes, shapes: np.ndarray, side: float = 5.6) -> None:
    """Show a square of one size, whatever the plane, with the shapes in its middle."""
    low, high = shapes.min(axis=(0, 1)), shapes.max(axis=(0, 1))
    (left, bottom), (right, top) = (low + high - side) / 2, (low + high + side) / 2
    axes.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    axes.set_xticks(np.arange(2 * np.ceil(left / 2), right, 2))
    axes.set_yticks(np.arange(2 * np.ceil(bottom / 2), top, 2))
