"""Solvers for a smooth function on a ball, minimised to a KKT point.

They know nothing of matrices: an `Objective` is evaluated at points of a `Manifold`, and
the protocols below say all that is asked of either.  A solver never prints; a callback
sees each record of its history and may stop it.

The feasible set is a ball ``|S| <= radius`` in the coordinates S of the manifold, so it has
two faces, and each step is taken on one of them: the *interior*, where every direction is
free, or the *sphere*, where the step is tangent to it.  A point is optimal to first order
(Karush, Kuhn, Tucker) when ``gradient = -multiplier * S`` with ``multiplier >= 0`` on the
sphere, and ``gradient = 0`` inside.

Alignment has several local maxima in its ball, and the centre is nearly a saddle of it:
both solvers therefore begin with one long step, from the centre along the gradient to the
sphere, and shorten it only if the value does not improve there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np

_EPS = float(np.finfo(np.float64).eps)

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
    """A function to minimise."""

    def at(self, point: Any) -> Evaluation: ...


class ManifoldPoint(Protocol):
    """A point with its coordinates."""

    @property
    def S(self) -> np.ndarray: ...
    def norm(self, gradient: np.ndarray) -> float: ...
    def raise_(self, gradient: np.ndarray) -> np.ndarray: ...


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
        Value, residual, distance from the centre, evaluations so far (a Hessian-vector
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
        return self.status is Status.CONVERGED

    @property
    def n_iter(self) -> int:
        return self.history[-1].iteration


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
        self.distance = float(np.linalg.norm(S))
        on_sphere = 0 < radius <= self.distance * (1 + 1e-9)  # as far as rounding can tell
        slope = -float(np.vdot(g, S)) / radius**2 if on_sphere else 0.0
        self.multiplier = max(slope, 0.0)
        self.residual = here.point.norm(g + self.multiplier * S)
        # With a negative multiplier the way down leads inward; it is taken once it is the
        # main way down, so that rounding cannot make a run hop between the faces.
        along = g + slope * S
        self.sphere = on_sphere and (slope >= 0 or np.linalg.norm(along) > -slope * radius)
        self._curvature = slope if self.sphere else 0.0
        self._normal = S / self.distance if self.sphere else None
        self.gradient = along if self.sphere else g

    def tangent(self, v: np.ndarray) -> np.ndarray:
        """Project onto the directions of the face."""
        return v if self._normal is None else v - np.vdot(self._normal, v) * self._normal

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
        return float(max(0.0, (-b + np.sqrt(max(b * b - a * c, 0.0))) / a))


# ---------------------------------------------------------------------------
# Riemannian trust region with truncated conjugate gradients

Hessian = Callable[[np.ndarray], np.ndarray]


class Model(Protocol):
    """Where the trust region takes its curvature from."""

    def hessian(self, face: Face, delta: float) -> Hessian: ...
    def learn(self, before: Face, after: Face) -> None: ...


class SecantModel:
    """Curvature from the last few steps: limited-memory BFGS in compact form [Byrd1994]_.

    A product with it costs no evaluation.  The pairs of steps and gradient changes are
    those of one face of the ball, projected onto the tangent space where they are used.
    """

    def __init__(self, memory: int = 20):
        self._pairs: deque[tuple[np.ndarray, np.ndarray]] = deque(maxlen=memory)

    def learn(self, before: Face, after: Face) -> None:
        if before.sphere != after.sphere:
            self._pairs.clear()
            return
        step = after.tangent(after.here.point.S - before.here.point.S)
        change = after.gradient - after.tangent(before.gradient)
        if np.vdot(step, change) > 1e-8 * np.linalg.norm(step) * np.linalg.norm(change):
            self._pairs.append((step, change))

    def hessian(self, face: Face, delta: float) -> Hessian:
        pairs = [(face.tangent(s), face.tangent(y)) for s, y in self._pairs]
        pairs = [(s.ravel(), y.ravel()) for s, y in pairs if np.vdot(s, y) > 0]
        if not pairs:
            # Nothing known yet: make the first step exactly as long as it may be.
            scale = float(np.linalg.norm(face.gradient)) / delta
            return lambda eta: scale * eta
        steps, changes = (np.array(side) for side in zip(*pairs, strict=True))  # (m, d*d)
        scale = float(changes[-1] @ changes[-1] / (steps[-1] @ changes[-1]))
        products = steps @ changes.T
        lower = np.tril(products, -1)
        middle = np.block([[scale * steps @ steps.T, lower], [lower.T, -np.diag(np.diag(products))]])
        outer = np.vstack([scale * steps, changes])
        inner = np.linalg.solve(middle, outer)

        def product(eta: np.ndarray) -> np.ndarray:
            return scale * eta - (outer.T @ (inner @ eta.ravel())).reshape(eta.shape)

        return product


class ExactModel:
    """Curvature from the objective's own Hessian-vector products, each counted as an evaluation."""

    def __init__(self, objective: Counted):
        self._objective = objective

    def learn(self, before: Face, after: Face) -> None:
        pass

    def hessian(self, face: Face, delta: float) -> Hessian:
        return lambda eta: face.hvp(self._objective, eta)


def trust_region(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimise on a ball with a Riemannian trust region [Absil2007]_ and a secant model.

    Parameters
    ----------
    objective, manifold : Objective, Manifold
        What to minimise, and where.
    start : point
        A point of the ball; at the centre, the first step is a long one (see the module).
    tol : float
        Bound on the KKT residual.
    max_iter : int
        Bound on the number of iterations.
    callback : callable, optional
        Called with each `Record`; returning True stops the run.

    Returns
    -------
    Solution
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    return _trust_region(run, SecantModel(), manifold, start)


def newton(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimise on a ball with a Riemannian trust region and exact second derivatives.

    Takes fewer, dearer iterations than `trust_region`, and its last ones converge
    quadratically.  Beyond a radius of 20 its Hessian in normal coordinates loses digits
    by cancellation.  Parameters and return value are those of `trust_region`.
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    return _trust_region(run, ExactModel(run.objective), manifold, start)


def _trust_region(run: Run, model: Model, manifold: Manifold, start: Any) -> Solution:
    face = Face(run.objective.at(start), manifold.radius)
    delta = 0.5 * manifold.radius
    while (status := run.ends(face)) is None:
        if face.distance == 0:
            after = _first_step(run.objective, manifold, face)
        else:
            after, delta = _trusted_step(run.objective, model, manifold, face, delta)
        if after is None or delta < 1e-12 * manifold.radius:
            return run.solution(face, Status.STALLED)
        if after is not face:
            model.learn(face, after)
        face = after
    return run.solution(face, status)


def _first_step(objective: Counted, manifold: Manifold, face: Face) -> Face | None:
    """From the centre along the gradient to the sphere, or as far as the value improves."""
    here, g = face.here, face.gradient
    length = float(np.linalg.norm(g))
    reach = manifold.radius
    while reach > 1e-8 * manifold.radius:
        there = objective.at(manifold.retract(here.point, (-reach / length) * g))
        if there.value < here.value:
            return Face(there, manifold.radius)
        reach /= 2
    return None


def _trusted_step(
    objective: Counted, model: Model, manifold: Manifold, face: Face, delta: float
) -> tuple[Face, float]:
    """One step of the trust region: the face to go on from, and the radius to trust there."""
    step, decrease, at_edge = _truncated_cg(face, model.hessian(face, delta), delta)
    share = face.reach(step, manifold.radius)
    if share == 0:
        return face, delta / 4
    length, predicted = float(np.linalg.norm(step)), decrease(share)
    there = objective.at(manifold.retract(face.here.point, share * step))
    if predicted <= 10 * _EPS:
        # Values cannot tell such steps apart; go by the residual as long as it falls.
        after = Face(there, manifold.radius)
        return (after, delta) if after.residual < face.residual else (face, length / 4)
    # A little is added to both decreases so that rounding counts as agreement.
    noise = 1e3 * _EPS
    ratio = (face.here.value - there.value + noise) / (predicted + noise)
    if not ratio > 0.1:
        return face, length / 2
    if ratio > 0.75 and at_edge:
        delta = min(2 * delta, manifold.radius)
    return Face(there, manifold.radius), delta


def _truncated_cg(
    face: Face, hessian: Hessian, delta: float
) -> tuple[np.ndarray, Callable[[float], float], bool]:
    """Minimise the quadratic model of the face within ``|step| <= delta`` (Steihaug, Toint).

    Stops at the edge, along a direction of negative curvature, or when the residual has
    fallen enough for superlinear convergence.  Returns the step, the decrease that the
    model predicts for a share of it, and whether it ends at the edge.
    """
    g = face.gradient
    step, H_step = np.zeros_like(g), np.zeros_like(g)
    residual, direction = g, -g
    square = float(np.vdot(g, g))
    enough = np.sqrt(square) * min(0.5, square**0.25)
    at_edge = False
    for _ in range(g.size):
        H_direction = face.tangent(hessian(direction))
        curvature = float(np.vdot(direction, H_direction))
        alpha = square / curvature if curvature > 0 else np.inf
        to_edge = _to_edge(step, direction, delta)
        at_edge = alpha >= to_edge
        alpha = min(alpha, to_edge)
        step, H_step = step + alpha * direction, H_step + alpha * H_direction
        residual = residual + alpha * H_direction
        new_square = float(np.vdot(residual, residual))
        if at_edge or np.sqrt(new_square) <= enough:
            break
        direction = face.tangent(-residual + (new_square / square) * direction)
        square = new_square
    slope, bend = float(np.vdot(g, step)), float(np.vdot(step, H_step))
    return step, lambda share: -share * slope - 0.5 * share**2 * bend, at_edge


def _to_edge(step: np.ndarray, direction: np.ndarray, delta: float) -> float:
    """Return the positive t for which ``|step + t direction| = delta``."""
    a, b = float(np.vdot(direction, direction)), float(np.vdot(step, direction))
    c = float(np.vdot(step, step)) - delta**2
    return (-b + np.sqrt(max(b * b - a * c, 0.0))) / a


# ---------------------------------------------------------------------------
# Geodesic gradient


def geodesic_gradient(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Solution:
    """Minimise on a ball by steepest descent along geodesics, Eq. (6) of [Yger2015]_.

    Inside the ball each step follows the geodesic of the affine-invariant gradient.  On
    the sphere, geodesics of P_d leave the ball at an exponential rate and what is left
    after bringing them back is a poor step, so the descent follows the sphere's own
    great circles in normal coordinates.  Steps are those of Barzilai and Borwein,
    shortened until the value falls, so rounding of the value limits the residual that can
    be reached to about 1e-8.

    Parameters and return value are those of `trust_region`.
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    face = Face(run.objective.at(start), manifold.radius)
    length = None
    while (status := run.ends(face)) is None:
        there, length = _descend(face, run.objective, manifold, length)
        if there is None:
            return run.solution(face, Status.STALLED)
        face, length = _follow(face, Face(there, manifold.radius), length)
    return run.solution(face, status)


def _descend(
    face: Face, objective: Counted, manifold: Manifold, length: float | None
) -> tuple[Evaluation | None, float]:
    """Shorten a first guess of the step until the value falls enough (Armijo)."""
    here = face.here
    direction = -face.gradient if face.sphere else -here.point.raise_(face.gradient)
    move = manifold.retract if face.sphere else manifold.geodesic
    slope = float(np.vdot(face.gradient, direction))
    size = float(np.linalg.norm(direction))
    longest = manifold.radius / size
    t = longest if length is None else min(length, longest)
    while t > 1e-14 * longest:
        there = objective.at(move(here.point, t * direction))
        if there.value <= here.value + 1e-4 * t * slope:
            return there, t
        t /= 3
    return None, t


def _follow(before: Face, after: Face, length: float) -> tuple[Face, float | None]:
    """Step length of Barzilai and Borwein from the last two points of a face."""
    if before.sphere != after.sphere:
        return after, None
    change = after.here.point.S - before.here.point.S
    turn = after.gradient - before.gradient
    curvature = float(np.vdot(change, turn))
    return after, float(np.vdot(change, change)) / curvature if curvature > 0 else 2 * length


SOLVERS: dict[str, Callable[..., Solution]] = {
    "trust-region": trust_region,
    "newton": newton,
    "gradient": geodesic_gradient,
}
