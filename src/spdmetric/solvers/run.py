"""What solvers ask for, what they give back, and the two faces of the ball they move on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

_EPS = float(np.finfo(np.float64).eps)


def norm(v: np.ndarray) -> float:
    """Euclidean norm of all entries; for small arrays in half the time of NumPy's."""
    return sqrt(np.vdot(v, v))


# ---------------------------------------------------------------------------
# What a solver asks for


class Evaluation(Protocol):
    """A function at a point, computed as far as it is asked for."""

    point: Any

    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> np.ndarray: ...
    def hvp(self, eta: np.ndarray) -> np.ndarray: ...


class Objective(Protocol):
    """A function to minimize."""

    def at(self, point: Any) -> Evaluation: ...


class Sample(Evaluation, Protocol):
    """A function estimated from some rows of its data, and from what was remembered of others."""

    @property
    def memory(self) -> Any: ...


class Sampled(Objective, Protocol):
    """A function that can be estimated from rows of its data."""

    @property
    def n(self) -> int: ...
    def sample(self, rows: np.ndarray, point: Any, memory: Any = None) -> Sample: ...


class ManifoldPoint(Protocol):
    """A point with its coordinates."""

    @property
    def S(self) -> np.ndarray: ...
    def norm(self, gradient: np.ndarray) -> float: ...
    def raise_(self, gradient: np.ndarray) -> np.ndarray: ...
    def even(self, gradient: np.ndarray) -> np.ndarray: ...
    def soften(self, rows: np.ndarray) -> np.ndarray: ...
    def soften_adjoint(self, row: np.ndarray) -> np.ndarray: ...


class Manifold(Protocol):
    """A ball in coordinates, with two ways to move in it; both end inside."""

    radius: float

    def retract(self, point: Any, step: np.ndarray) -> Any: ...
    def geodesic(self, point: Any, step: np.ndarray) -> Any: ...


# ---------------------------------------------------------------------------
# What it gives back


class Status(Enum):
    """How a run ended; the values are the sentences a user reads."""

    CONVERGED = "Converged: the KKT residual is below tol."
    STALLED = (
        "Stopped at the limit of rounding: no step improves the value any more although the KKT "
        "residual is still above tol. Raise tol."
    )
    MAX_ITER = "Stopped after max_iter iterations with the KKT residual above tol. Raise max_iter or tol."
    CALLBACK = "Stopped by the callback."
    NOISE = (
        "Stopped at the noise of the mini-batches: the last passes over the data improved the value by next "
        "to nothing. For a KKT point use another solver."
    )
    STREAM = "Learned from the batches seen so far, each seen once."


class Record(NamedTuple):
    """One line of the history of a run."""

    iteration: int
    value: float
    residual: float
    distance: float
    evaluations: int
    seconds: float


@dataclass(frozen=True)
class Solution:
    """Where a solver ended, and how.

    Attributes
    ----------
    point : object
        The point of the manifold.
    value : float
        The objective there.
    status : Status
        How the run ended; ``status.value`` is a sentence.
    residual : float
        KKT residual: affine-invariant length of the gradient of the Lagrangian.
    multiplier : float
        Of the ball constraint; 0 inside the ball.
    history : tuple of Record
        Value, residual, distance from the center, evaluations so far (a Hessian-vector
        product counts one) and seconds, after each iteration.
    """

    point: Any
    value: float
    status: Status
    residual: float
    multiplier: float
    history: tuple[Record, ...] = field(repr=False)

    @property
    def converged(self) -> bool:
        return self.status in (Status.CONVERGED, Status.NOISE)

    @property
    def n_iter(self) -> int:
        return self.history[-1].iteration

    # Stored by skops and pickle as plain values: skops cannot make a member of an Enum.
    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, status=Status[state["status"]])


Callback = Callable[[Record], Any]


class Counted:
    """An objective that counts its evaluations."""

    def __init__(self, objective: Objective):
        self._objective = objective
        self.count = 0

    def at(self, point: Any) -> Evaluation:
        self.count += 1
        return self._objective.at(point)

    def hvp(self, here: Evaluation, eta: np.ndarray) -> np.ndarray:
        self.count += 1
        return here.hvp(eta)


class Run:
    """The bookkeeping that all solvers share: counting, history, when to stop."""

    def __init__(self, objective: Objective, *, tol: float, max_iter: int, callback: Callback | None = None):
        self.objective = Counted(objective)
        self.tol, self.max_iter, self.callback = tol, max_iter, callback
        self.history: list[Record] = []
        self._began = time.perf_counter()

    def ends(self, face: Face) -> Status | None:
        """Record an iterate; return a status if the run is over."""
        record = Record(
            iteration=len(self.history),
            value=face.here.value,
            residual=face.residual,
            distance=face.distance,
            evaluations=self.objective.count,
            seconds=time.perf_counter() - self._began,
        )
        self.history.append(record)
        stop = self.callback is not None and self.callback(record) is True
        if face.residual <= self.tol:
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        return Status.MAX_ITER if record.iteration >= self.max_iter else None

    def solution(self, face: Face, status: Status) -> Solution:
        return Solution(
            face.here.point, face.here.value, status, face.residual, face.multiplier, tuple(self.history)
        )


# ---------------------------------------------------------------------------
# The two faces of the ball


class Face:
    """An evaluation seen from the face of the ball on which the next step is taken."""

    def __init__(self, here: Evaluation, radius: float):
        self.here = here
        S, g = here.point.S, here.gradient
        self.distance = norm(S)
        on_sphere = 0 < radius <= self.distance * (1 + 1e-9)  # as far as rounding can tell
        slope = -float(np.vdot(g, S)) / radius**2 if on_sphere else 0.0
        self.multiplier = max(slope, 0.0)
        self.residual = here.point.norm(g + self.multiplier * S)
        # With a negative multiplier the way down leads inward; it is taken once it is the
        # main way down, so that rounding cannot make a run hop between the faces.
        along = g + slope * S
        self.sphere = on_sphere and (slope >= 0 or norm(along) > -slope * radius)
        self._curvature = slope if self.sphere else 0.0
        self.normal = S / self.distance if self.sphere else None
        self.gradient = along if self.sphere else g

    def tangent(self, v: np.ndarray) -> np.ndarray:
        """Project onto the directions of the face."""
        return v if self.normal is None else v - np.vdot(self.normal, v) * self.normal

    def hvp(self, objective: Counted, eta: np.ndarray) -> np.ndarray:
        """Hessian of the Lagrangian."""
        return objective.hvp(self.here, eta) + self._curvature * eta

    def reach(self, step: np.ndarray, radius: float) -> float:
        """Share of a step that stays in the ball; steps along the sphere are brought back instead."""
        if self.sphere:
            return 1.0
        S = self.here.point.S
        a, b, c = np.vdot(step, step), np.vdot(S, step), np.vdot(S, S) - radius**2
        if a + 2 * b + c <= 0:
            return 1.0
        return float(max(0.0, (-b + sqrt(max(b * b - a * c, 0.0))) / a))
