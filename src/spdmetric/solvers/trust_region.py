"""Riemannian trust region with truncated conjugate gradients."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from spdmetric.solvers.run import Callback, Counted, Face, Manifold, Objective, Run, Solution, Status

_EPS = float(np.finfo(np.float64).eps)

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
            self._pairs.append((step.ravel(), change.ravel()))

    def hessian(self, face: Face, delta: float) -> Hessian:
        if not self._pairs:
            return _first_guess(face, delta)
        steps, changes = (face.tangent_rows(np.array(side)) for side in zip(*self._pairs, strict=True))
        products = steps @ changes.T  # (m, m)
        upward = np.diag(products) > 0
        if not upward.any():
            return _first_guess(face, delta)
        if not upward.all():
            steps, changes, products = steps[upward], changes[upward], products[np.ix_(upward, upward)]
        scale = float(changes[-1] @ changes[-1] / products[-1, -1])
        lower = np.tril(products, -1)
        middle = np.block([[scale * steps @ steps.T, lower], [lower.T, -np.diag(np.diag(products))]])
        inverse, m = np.linalg.inv(middle), len(steps)

        def product(eta: np.ndarray) -> np.ndarray:
            flat = eta.ravel()
            weights = inverse @ np.concatenate([scale * (steps @ flat), changes @ flat])
            flat = scale * (flat - weights[:m] @ steps) - weights[m:] @ changes
            return flat.reshape(eta.shape)

        return product


def _first_guess(face: Face, delta: float) -> Hessian:
    """Nothing known yet: make the first step exactly as long as it may be."""
    scale = float(np.linalg.norm(face.gradient)) / delta
    return lambda eta: scale * eta


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
            after, delta = trusted_step(run.objective, model, manifold, face, delta)
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


def trusted_step(
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
    """Minimise the quadratic model of the face within ``|step| <= delta`` [Steihaug1983]_.

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
