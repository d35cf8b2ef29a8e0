"""What solvers ask of an objective and of a manifold; all protocols of the solvers are here.

A manifold makes points, and takes them back; the objective is evaluated at them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np


class Point(Protocol):
    """A point by its coordinates S; gradients are given, and returned, in these coordinates."""

    @property
    def S(self) -> np.ndarray: ...
    def norm(self, gradient: np.ndarray) -> float: ...
    def riemannian_gradient(self, gradient: np.ndarray) -> np.ndarray: ...
    def orthonormal_gradient(self, gradient: np.ndarray) -> np.ndarray: ...
    def preconditioner(self, curvature: Any) -> Callable[[np.ndarray], np.ndarray]: ...


class Manifold(Protocol):
    """A ball in coordinates, with two ways to move in it; both end inside."""

    radius: float

    def retract(self, point: Any, step: np.ndarray) -> Any: ...
    def geodesic(self, point: Any, step: np.ndarray) -> Any: ...


class Evaluation(Protocol):
    """A function at a point, computed as far as it is asked for."""

    @property
    def point(self) -> Any: ...  # a `Point`
    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> np.ndarray: ...
    @property
    def curvature_estimate(self) -> Any: ...  # how much the function bends along each direction


class Objective(Protocol):
    """A function to minimize."""

    def at(self, point: Any) -> Evaluation: ...


class Sampled(Objective, Protocol):
    """A function that can be estimated from rows of its data.

    A sample is an `Evaluation` from some rows and what was remembered of others; it has a ``memory`` for the
    next one.
    """

    @property
    def n(self) -> int: ...
    def sample(self, rows: np.ndarray, point: Any, memory: Any = None) -> Any: ...
