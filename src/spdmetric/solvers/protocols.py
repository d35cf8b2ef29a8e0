"""What solvers ask of an objective and of a manifold.

A manifold makes points, and takes them back; the objective is evaluated at them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Manifold(Protocol):
    """A ball in coordinates, with two ways to move in it; both end inside.

    A point has its coordinates ``S``.  Gradients are given to it, and returned, in these: ``norm``,
    ``riemannian_gradient``, ``orthonormal_gradient``, and ``precondition``, which takes an estimate of the
    curvature too.
    """

    radius: float

    def retract(self, point: Any, step: np.ndarray) -> Any: ...
    def geodesic(self, point: Any, step: np.ndarray) -> Any: ...


class Evaluation(Protocol):
    """A function at a point, computed as far as it is asked for."""

    @property
    def point(self) -> Any: ...
    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> np.ndarray: ...
    @property
    def curvature_estimate(self) -> Any: ...  # how much the function bends along each direction


class Objective(Protocol):
    """A function to minimize.

    One that can be estimated has a number ``n`` of rows, and ``sample(rows, point, memory)``: an evaluation
    from some rows and what was remembered of others, with a ``memory`` for the next.
    """

    def at(self, point: Any) -> Evaluation: ...
