"""Figure "optiInOneFig" of [Yger2015]_: geodesic gradient ascent of the alignment.

Alignment does not change when G is multiplied by a number, so with 2 x 2 matrices the
search takes place on the surface ``det G = det G0``, a hyperbolic plane.  It is drawn in
normal coordinates at G0, in which the ball ``delta_r(G0, G) <= radius`` is a disc.  Level
sets are those of the alignment of a toy set (the easier one, of the paper's appendix), and
the iterates are those of the solver.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reproduction import style
from reproduction.figures.plane import circle, traceless
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.manifolds import Ball, BallPoint, FactorPoint
from spdmetric.objectives.alignment import Evaluation, Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.solvers import Record, Solution, geodesic_gradient

STARTS = ((0.0, 0.0), (1.5, 2.6))  # normal coordinates of the center and of another point
DRAW = 17  # the draw of seed 0: one with two basins that can be told apart by eye


class Climb(NamedTuple):
    """A run of the solver."""

    points: np.ndarray  # (k, 2), normal coordinates of the iterates
    alignment: np.ndarray  # (k,)
    arcs: np.ndarray  # (k - 1, n, 2), the curves followed from each iterate to the next
    solution: Solution


class Ascent(NamedTuple):
    """Level sets of the alignment over a ball, and runs of the solver in it."""

    radius: float
    center: np.ndarray  # G0, (2, 2)
    grid: np.ndarray  # (r, a, 2), normal coordinates of a polar grid
    alignment: np.ndarray  # (r, a)
    paths: tuple[Climb, ...]  # from the center and from elsewhere


def compute(seed: int = 0, *, radius: float = 4.0, n_grid: int = 36) -> Ascent:
    """Evaluate the alignment of a toy set over a ball on a polar grid, and climb it from two points."""
    X, y, _, _ = make_toy(n_train=50, n_test=2, d=2, noise=3.0, random_state=DRAW + seed)
    center = mean_riemann(X)
    objective = _Watched(Data(X, ClassTarget.from_codes((y > 0).astype(int))))
    ball = _WatchedBall(center, radius)
    grid = np.linspace(0, radius, n_grid)[:, None, None] * circle(2 * n_grid + 1)
    values = [objective.at(ball.point(S)).alignment for S in traceless(grid.reshape(-1, 2))]
    paths = tuple(_climb(objective, ball, start) for start in STARTS)
    return Ascent(radius, center, grid, np.reshape(values, grid.shape[:-1]), paths)


class _Watched(Misalignment):
    """An objective that remembers where it was evaluated."""

    def at(self, point: FactorPoint) -> Evaluation:
        self.seen = [*getattr(self, "seen", ()), super().at(point)]
        return self.seen[-1]


class _WatchedBall(Ball):
    """A ball that remembers how its points were reached, by their identity."""

    moves: dict[int, tuple[Callable[..., BallPoint], BallPoint, np.ndarray]]

    def retract(self, point: BallPoint, step: np.ndarray) -> BallPoint:
        return self._moved(super().retract, point, step)

    def geodesic(self, point: BallPoint, step: np.ndarray) -> BallPoint:
        return self._moved(super().geodesic, point, step)

    def _moved(self, move: Callable[..., BallPoint], point: BallPoint, step: np.ndarray) -> BallPoint:
        there = move(point, step)
        self.moves = {**getattr(self, "moves", {}), id(there): (move, point, step)}
        return there


def _climb(objective: _Watched, ball: _WatchedBall, start: tuple[float, float], n: int = 41) -> Climb:
    """Run the solver; the evaluation with the value of a record is the one that was accepted."""
    reached: list[Evaluation] = []
    arcs: list[np.ndarray] = []

    def look(record: Record) -> None:
        here = next(there for there in reversed(objective.seen) if there.value == record.value)
        if reached:
            move, origin, step = ball.moves[id(here.point)]
            arcs.append(np.stack([_coordinates(move(origin, t * step)) for t in np.linspace(0, 1, n)]))
        reached.append(here)

    begin = ball.point(traceless(np.array(start)))
    solution = geodesic_gradient(objective, ball, begin, tol=1e-8, max_iter=200, callback=look)
    points = np.stack([_coordinates(here.point) for here in reached])
    alignment = np.array([here.alignment for here in reached])
    return Climb(points, alignment, np.reshape(arcs, (-1, n, 2)), solution)


def _coordinates(point: FactorPoint) -> np.ndarray:
    """The x and y of `plane.normal_coordinates`; what rounding leaves of the trace is dropped."""
    S = point.S
    return np.array([S[0, 0] - S[1, 1], 2 * S[0, 1]]) / np.sqrt(2)


def draw(data: Ascent, figure: style.Figure | None = None) -> style.Figure:
    """Draw the level sets over the disc and the runs on them."""
    with style.canvas(style.COLUMN, 3.05, figure) as figure:
        axes = figure.add_axes((0.15, 0.21, 0.63, 0.77))
        _draw_levels(axes, figure.add_axes((0.8, 0.27, 0.03, 0.65)), data)
        _draw_path(axes, data.paths[0], style.VERMILLION, "from $G_0$")
        _draw_path(axes, data.paths[1], style.BLACK, "from elsewhere")
        _draw_gradient(axes, data.paths[1])
        axes.plot([], [], "*", color=style.GRAY, ms=9, mec="white", mew=0.6, label="KKT point")
        axes.text(0, 0, "$G_0$  ", ha="right", va="center")
        corner = (-0.97 * data.radius, 0.94 * data.radius)  # above the circle, clear of it and of the ticks
        axes.text(*corner, rf"$\delta_r(G_0, G) = {data.radius:g}$", va="bottom", fontsize=7)
        axes.set(xlabel=r"$(s_{11} - s_{22})/\sqrt{2}$", ylabel=r"$\sqrt{2}\,s_{12}$", aspect="equal")
        axes.locator_params(nbins=5)
        axes.spines[:].set_visible(False)
        figure.legend(loc="lower center", bbox_to_anchor=(0.5, -0.01), ncols=3, columnspacing=1.2)
    return figure


def _draw_levels(axes: style.Axes, bar: style.Axes, data: Ascent) -> None:
    x, y = np.moveaxis(data.grid, -1, 0)
    filled = axes.contourf(x, y, data.alignment, 22, cmap="cividis")
    filled.set_rasterized(True)  # see style.surface
    axes.contour(x, y, data.alignment, levels=filled.levels, colors="white", linewidths=0.25, alpha=0.6)
    low, *_, high = filled.levels
    key = axes.figure.colorbar(filled, cax=bar, ticks=np.linspace(low, high, 4), format="%.3f")
    key.set_label("alignment $f(G)$", labelpad=3)
    key.outline.set_linewidth(0.4)
    axes.plot(*(data.radius * circle(181)).T, color=style.BLACK, lw=1.0)


def _draw_path(axes: style.Axes, path: Climb, color: str, name: str) -> None:
    """A run: the curves it follows, its iterates, and where it ends."""
    for width, ink in ((2.4, "white"), (1.3, color)):
        for arc in path.arcs:
            axes.plot(*arc.T, color=ink, lw=width)
    axes.plot(*path.points.T, "o", color=color, ms=3.6, mec="white", mew=0.6, zorder=4)
    if path.solution.converged:
        axes.plot(*path.points[-1], "*", color=color, ms=9, mec="white", mew=0.6, zorder=5)
    axes.plot([], [], "o-", color=color, ms=3.6, mec="white", mew=0.6, label=name)


def _draw_gradient(axes: style.Axes, path: Climb) -> None:
    """The gradient at the start of a run: the velocity with which its first curve leaves."""
    if not len(path.arcs):
        return
    start, velocity = path.points[0], path.arcs[0, 1] - path.arcs[0, 0]
    tip = start + 1.9 * velocity / np.linalg.norm(velocity)
    arrow = {"arrowstyle": "-|>", "color": "white", "lw": 1.2, "shrinkA": 0}
    axes.annotate("", tip, start, arrowprops=arrow, zorder=3)
    axes.text(tip[0], tip[1], r"grad$\,f$", ha="center", va="top" if velocity[1] < 0 else "bottom")
