"""Figure "preproc" of [Yger2015]_: whitening of two sessions that have different means.

The congruence by ``M^-1/2``, M the Riemannian mean of a session, moves that session along
the geodesic from M to I: afterwards both sessions are spread around the identity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reproduction import style
from reproduction.figures.plane import at_normal_coordinates, normal_coordinates
from spdmetric.geometry import matrices_at, mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm

CENTERS = ((1.9, -0.6), (-1.8, -0.9))  # normal coordinates at I of the centers of the sessions
# Name, color, marker, size of the mean: the means coincide in the end, and both are to be seen.
_LOOKS = (("training session", style.BLUE, "o", 9.0), ("test session", style.ORANGE, "^", 5.5))


class Whitening(NamedTuple):
    """Two sessions of SPD matrices before and after whitening, each by its own mean."""

    before: np.ndarray  # (2, n, 2, 2)
    means_before: np.ndarray  # (2, 2, 2), Riemannian
    after: np.ndarray  # (2, n, 2, 2)
    means_after: np.ndarray  # (2, 2, 2), Riemannian


def compute(seed: int = 0, *, n: int = 60, spread: float = 0.45) -> Whitening:
    """Draw two sessions of n matrices around different centers and whiten them.

    Their tangent vectors at the center of a session have the standard deviation ``spread``.
    """
    rng = np.random.default_rng(seed)
    centers = at_normal_coordinates(np.array(CENTERS), np.eye(2))
    before = np.stack([matrices_at(spread * rng.standard_normal((n, 3)), center) for center in centers])
    means = _means(before)
    after = np.stack([congruence(invsqrtm(M), X) for M, X in zip(means, before, strict=True)])
    return Whitening(before, means, after, _means(after))


def _means(sessions: np.ndarray) -> np.ndarray:
    return np.stack([mean_riemann(X, tol=1e-12) for X in sessions])


def draw(data: Whitening, figure: style.Figure | None = None) -> style.Figure:
    """Draw both sessions in two coordinates of their logarithms, before and after."""
    with style.canvas(style.PAGE, 2.6, figure) as figure:
        left, right = figure.subplots(1, 2, sharex=True, sharey=True, subplot_kw={"aspect": "equal"})
        figure.subplots_adjust(left=0.07, right=0.99, bottom=0.27, top=0.92, wspace=0.06)
        _draw_sessions(left, data.before, data.means_before)
        _draw_transport(left, data.means_before)
        _draw_sessions(right, data.after, data.means_after)
        left.set(title="(a) before whitening", ylabel=r"$\sqrt{2}\,l_{12}$")
        right.set(title="(b) after whitening, each session by its own mean")
        for axes in (left, right):
            axes.locator_params(axis="y", nbins=4)
            axes.set_xlabel(r"$(l_{11} - l_{22})/\sqrt{2}$")
        left.plot([], [], "D", color=style.GRAY, ms=6, mec=style.BLACK, mew=0.6, label="Riemannian mean")
        handles, _ = left.get_legend_handles_labels()
        figure.legend(handles=handles, loc="lower center", ncols=4, columnspacing=2)
    return figure


def _draw_sessions(axes: style.Axes, sessions: np.ndarray, means: np.ndarray) -> None:
    for X, M, (name, color, marker, size) in zip(sessions, means, _LOOKS, strict=True):
        axes.plot(*normal_coordinates(X).T, marker, color=color, ms=3, mew=0, alpha=0.65, label=name)
        style.dot(axes, *normal_coordinates(M), color=color, marker="D", size=size, rim=style.BLACK)
    axes.plot(0, 0, "+", color=style.BLACK, ms=10, mew=1.5, zorder=11, label="identity")


def _draw_transport(axes: style.Axes, means: np.ndarray) -> None:
    """The geodesic from each mean to the identity: straight in these coordinates."""
    for M in means:
        arrow = {"arrowstyle": "-|>", "color": style.BLACK, "lw": 0.9, "shrinkA": 5, "shrinkB": 6}
        axes.annotate("", (0, 0), tuple(normal_coordinates(M)), arrowprops=arrow, zorder=9)
