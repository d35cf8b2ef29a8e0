"""Figure "EMI" of [Yger2015]_: the manifold and its tangent plane at G.

The manifold is the surface of one determinant in P_2, which is two-dimensional and
totally geodesic.  It is drawn after congruence by ``G^-1/2``, an isometry of delta_r that
puts G at the identity: lengths in the tangent plane are then drawn to scale.  They are
never longer than those on the surface: the exponential metric increasing property.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reproduction import style
from reproduction.figures.plane import at_normal_coordinates, circle, dome, geodesic, normal_coordinates
from spdmetric.geometry import distance_logeuclid, distance_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm

REFERENCE = np.array([[1.25, 0.5], [0.5, 1.0]])
COORDINATES = ((-0.3, -1.85), (1.85, -0.25))  # of A and B, at the reference point


class Tangent(NamedTuple):
    """Two points of the surface, their images in the tangent plane, and lengths in both."""

    reference: np.ndarray  # G, (2, 2)
    points: np.ndarray  # A and B, (2, 2, 2)
    geodesic: np.ndarray  # from A to B, (n, 2, 2)
    rays: np.ndarray  # geodesics from G to A and to B, (2, n, 2, 2)
    plane: np.ndarray  # normal coordinates at G of A and B, (2, 2)
    distance_riemann: float  # delta_r(A, B)
    distance_logeuclid: float  # delta_l^G(A, B)


def compute(reference: np.ndarray = REFERENCE, coordinates: ArrayLike = COORDINATES) -> Tangent:
    """Compute a geodesic and its counterpart in the tangent plane.

    A and B are given by their normal coordinates at the reference point G.
    """
    t = np.linspace(0, 1, 101)
    A, B = points = at_normal_coordinates(np.array(coordinates), reference)
    return Tangent(
        reference=reference,
        points=points,
        geodesic=geodesic(A, B, t),
        rays=np.stack([geodesic(reference, point, t) for point in points]),
        plane=normal_coordinates(points, reference),
        distance_riemann=float(distance_riemann(A, B)),
        distance_logeuclid=float(distance_logeuclid(A, B, reference)),
    )


def draw(data: Tangent, figure: style.Figure | None = None) -> style.Figure:
    """Draw the surface, the plane, and the shortest path from A to B in each."""
    with style.canvas(style.COLUMN, 2.7, figure) as figure:
        axes = style.solid_axes(figure, (-0.15, -0.17, 1.3, 1.4), elev=36, azim=-55)
        _draw_surface(axes)
        _draw_plane(axes)
        _draw_maps(axes, data)
        _draw_paths(axes, data)
        _draw_key(axes)
        axes.set(xlim=(-2.8, 2.8), ylim=(-2.8, 2.8), zlim=(-2.2, 0.4))
        axes.set_box_aspect((5.6, 5.6, 2.6), zoom=0.96)
    return figure


def _on_surface(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    return dome(congruence(invsqrtm(reference), X))


def _on_plane(xy: np.ndarray) -> np.ndarray:
    return np.concatenate([xy, np.zeros((*xy.shape[:-1], 1))], axis=-1)


def _draw_surface(axes: style.Axes3D) -> None:
    radii, rim = np.linspace(0, 2.1, 26), circle(121)
    surface = dome(at_normal_coordinates(radii[:, None, None] * rim, np.eye(2)))
    style.surface(axes, surface, color=style.SKY, alpha=0.35)
    for k in range(5, 26, 5):
        axes.plot(*surface[k].T, color="white", lw=0.4, zorder=2)
    for k in range(0, 120, 10):
        axes.plot(*surface[:, k].T, color="white", lw=0.4, zorder=2)


def _draw_plane(axes: style.Axes3D) -> None:
    square = 2.4 * np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0], [-1, -1, 0]])
    style.surface(axes, square[[[0, 1], [3, 2]]], color=style.YELLOW, alpha=0.22, shade=False, zorder=3)
    axes.plot(*square.T, color=style.GRAY, lw=0.6, zorder=3)


def _draw_maps(axes: style.Axes3D, data: Tangent) -> None:
    """The logarithmic map: rays of the surface, rays of the plane, and what goes where."""
    for ray, end in zip(data.rays, data.plane, strict=True):
        below, above = _on_surface(ray, data.reference), _on_plane(np.stack([0 * end, end]))
        axes.plot(*below.T, color=style.GRAY, lw=0.8, zorder=4)
        axes.plot(*above.T, color=style.GRAY, lw=0.8, zorder=4)
        axes.plot(*np.stack([below[-1], above[-1]]).T, color=style.BLACK, lw=0.7, ls=(0, (1, 1.5)), zorder=4)


def _draw_paths(axes: style.Axes3D, data: Tangent) -> None:
    below = _on_surface(data.geodesic, data.reference)
    above = _on_plane(data.plane)
    lengths = data.distance_riemann, data.distance_logeuclid
    labels = rf"$\delta_r(A, B) = {lengths[0]:.2f}$", rf"$\delta_l^G(A, B) = {lengths[1]:.2f}$"
    axes.plot(*below.T, color=style.RIEMANN, lw=1.8, zorder=5, label=labels[0])
    axes.plot(*above.T, color=style.EUCLID, lw=1.8, zorder=5, label=labels[1])
    style.dot(axes, 0, 0, 0)
    axes.text(0, 0, 0.22, "$G$", ha="center", zorder=11)
    for name, low, high, side in zip("AB", below[[0, -1]], above, ("right", "left"), strict=True):
        style.dot(axes, *low, color=style.RIEMANN)
        style.dot(axes, *high, color=style.EUCLID)
        axes.text(*low, f"  ${name}$  ", ha=side, va="center", zorder=11)
        axes.text(*(high + [0, 0, 0.1]), rf"$\log_G({name})$", ha=side, va="bottom", zorder=11)


def _draw_key(axes: style.Axes3D) -> None:
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.105), ncols=2, fontsize=8, columnspacing=1.5)
    axes.text(-2.25, 2.25, 0, r"$T_G\,\mathcal{P}_2$", zdir="x", ha="left", va="top", zorder=11)
    foot = dome(at_normal_coordinates(np.array([0.9, -1.7]), np.eye(2)))
    axes.text(*foot, r"$\det X = \det G$", ha="center", va="center", fontsize=7, zorder=11)
