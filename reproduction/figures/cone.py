"""Figure "psd2d" of [Yger2015]_: straight lines and geodesics in the cone P_2.

The Euclidean average of two matrices can have a larger determinant than both (swelling),
and the straight line through them leaves the cone (the space is not complete); along the
geodesic the logarithm of the determinant is linear, and it never leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reproduction import style
from reproduction.figures.plane import circle, embedding, geodesic, segment

POINTS = np.array([[[3.2, -0.5], [-0.5, 0.4]], [[0.8, -0.5], [-0.5, 3.0]], [[2.5, 2.1], [2.1, 2.5]]])
PAIRS = ((0, 1), (1, 2), (2, 0))
_DASHED, _DOTTED = (0, (4, 2)), (0, (1, 1.4))


class Cone(NamedTuple):
    """Paths between three points A, B, C of P_2; the first pair, A and B, is also extrapolated."""

    points: np.ndarray  # (3, 2, 2)
    t: np.ndarray  # (n,), from 0 to 1
    segments: np.ndarray  # (3, n, 2, 2), for the pairs AB, BC, CA
    geodesics: np.ndarray  # (3, n, 2, 2)
    t_beyond: np.ndarray  # (m,), from before 0 to after 1
    segment_beyond: np.ndarray  # (m, 2, 2)
    geodesic_beyond: np.ndarray  # (m, 2, 2)
    t_exits: np.ndarray  # (k,), where the straight line through A and B crosses the boundary


def compute(points: np.ndarray = POINTS, *, reach: float = 0.38, n: int = 101) -> Cone:
    """Compute straight and geodesic paths between SPD matrices A, B, C.

    The lines through A and B go beyond them by ``reach``, a share of their distance.
    """
    t, t_beyond = np.linspace(0, 1, n), np.linspace(-reach, 1 + reach, 2 * n - 1)
    A, B = points[0], points[1]
    exits = _exits(A, B)
    return Cone(
        points=points,
        t=t,
        segments=np.stack([segment(points[i], points[j], t) for i, j in PAIRS]),
        geodesics=np.stack([geodesic(points[i], points[j], t) for i, j in PAIRS]),
        t_beyond=t_beyond,
        segment_beyond=segment(A, B, t_beyond),
        geodesic_beyond=geodesic(A, B, t_beyond),
        t_exits=exits[(-reach <= exits) & (exits <= 1 + reach)],
    )


def _exits(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Where the determinant vanishes along the straight line: it is a polynomial of degree two."""
    start, end, change = np.linalg.det(np.stack([A, B, B - A]))
    roots = np.roots([change, end - start - change, start])
    return np.sort(roots[np.isreal(roots)].real)


def draw(data: Cone, figure: style.Figure | None = None) -> style.Figure:
    """Draw the cone with the paths, determinants along them, and eigenvalues beyond their ends."""
    with style.canvas(style.COLUMN, 3.9, figure) as figure:
        _draw_cone(style.solid_axes(figure, (-0.15, 0.215, 1.3, 0.9), elev=18, azim=-88), data)
        style.title(figure, 0.02, 0.94, r"(a) $\mathcal{P}_2$")
        _draw_determinants(figure.add_axes((0.13, 0.075, 0.34, 0.22)), data)
        _draw_eigenvalues(figure.add_axes((0.63, 0.075, 0.34, 0.22)), data)
    return figure


def _draw_cone(axes: style.Axes3D, data: Cone) -> None:
    _draw_boundary(axes, height=4.4)
    _draw_frame(axes)
    straight = [axes.plot(*embedding(X).T, color=style.EUCLID, ls=_DASHED, zorder=4) for X in data.segments]
    straight[0][0].set_label(r"Euclidean, $\delta_e$")
    curved = [axes.plot(*embedding(X).T, color=style.RIEMANN, zorder=5) for X in data.geodesics]
    curved[0][0].set_label(r"Riemannian, $\delta_r$")
    _draw_beyond(axes, data)
    for name, point in zip("ABC", data.points, strict=True):
        style.dot(axes, *embedding(point))
        axes.text(*(embedding(point) + [0, 0, 0.3]), f"${name}$", ha="center", zorder=11)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 0.125), ncols=2, columnspacing=1.2)
    axes.set(xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), zlim=(0, 4.8))
    axes.set_box_aspect((6.8, 6.8, 4.8), zoom=1.0)


def _draw_boundary(axes: style.Axes3D, height: float) -> None:
    rim = np.column_stack([circle(181), np.ones(181)]) * height
    style.surface(axes, np.stack([0 * rim, rim]), color=style.SKY, alpha=0.18, shade=False)
    axes.plot(*rim.T, color=style.GRAY, lw=0.6, zorder=2)


def _draw_frame(axes: style.Axes3D) -> None:
    """The axes of the entries a, b, c; those of a and c lie on the boundary."""
    for name, end in (("a", [[5.4, 0], [0, 0]]), ("b", [[0, 1.8], [1.8, 0]]), ("c", [[0, 0], [0, 5.4]])):
        tip = embedding(np.array(end, dtype=float))
        length = np.linalg.norm(tip)
        axes.quiver(0, 0, 0, *tip, color=style.GRAY, lw=0.7, arrow_length_ratio=0.2 / length, zorder=3)
        axes.text(*(tip + 0.5 * tip / length), f"${name}$", ha="center", va="center", zorder=3)


def _draw_beyond(axes: style.Axes3D, data: Cone) -> None:
    """Both lines through A and B past their ends, and where the straight one leaves the cone."""
    for side in (data.t_beyond <= 0, data.t_beyond >= 1):
        for path, color in ((data.segment_beyond, style.EUCLID), (data.geodesic_beyond, style.RIEMANN)):
            axes.plot(*embedding(path[side]).T, color=color, lw=1.1, ls=_DOTTED, zorder=4)
    axes.plot([], [], [], color=style.GRAY, ls=_DOTTED, label="extrapolated")
    exits = embedding(segment(data.points[0], data.points[1], data.t_exits))
    axes.plot(*exits.T, "x", color=style.EUCLID, ms=5, mew=1.3, zorder=6, label="leaves the cone")


def _draw_along(axes: style.Axes, t: np.ndarray, straight: np.ndarray, curved: np.ndarray) -> None:
    """A number along both lines through A and B."""
    axes.plot(t, straight, color=style.EUCLID, ls=_DASHED)
    axes.plot(t, curved, color=style.RIEMANN)
    axes.set(xticks=[0, 1], xticklabels=["$A$", "$B$"])


def _draw_determinants(axes: style.Axes, data: Cone) -> None:
    _draw_along(axes, data.t, np.linalg.det(data.segments[0]), np.linalg.det(data.geodesics[0]))
    axes.set(yscale="log", ylabel="determinant", title="(b) swelling")
    axes.set_yticks([1, 2, 4], ["1", "2", "4"])
    axes.minorticks_off()


def _draw_eigenvalues(axes: style.Axes, data: Cone) -> None:
    lines = data.segment_beyond, data.geodesic_beyond
    straight, curved = (np.linalg.eigvalsh(line)[:, 0] for line in lines)
    axes.axhspan(-1, 0, color="0.9", lw=0)
    axes.text(0.5, -0.5, "not SPD", ha="center", va="center", fontsize=7, color="0.3")
    _draw_along(axes, data.t_beyond, straight, curved)
    axes.plot(data.t_exits, 0 * data.t_exits, "x", color=style.EUCLID, ms=5, mew=1.3)
    axes.set(ylabel=r"$\lambda_{\min}$", xlim=data.t_beyond[[0, -1]], ylim=(-1, 2))
    axes.set_title("(c) extrapolation")
