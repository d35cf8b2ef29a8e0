"""Quadratic models of the objective on a face of the ball: what the trust region minimizes instead of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg.lapack import dtrtrs as solve

from spdmetric.solvers.run import Counted, Face, norm


class Step(NamedTuple):
    """A step within the region of trust, and what its model says of it.

    For a share t of the step the model predicts a change of ``t slope + t^2 bend / 2``.
    """

    step: np.ndarray
    slope: float
    bend: float
    at_edge: bool


class Model(Protocol):
    """What learns from past steps and proposes the next."""

    def step(self, face: Face, delta: float) -> Step: ...
    def learn(self, before: Face, after: Face) -> None: ...


# ---------------------------------------------------------------------------
# Curvature from past steps


class SecantModel:
    """Limited-memory BFGS in compact form [Byrd1994]_: a step costs no evaluation.

    The pairs of steps and gradient changes are those of one face of the ball, projected
    onto the tangent space where they are used.  Where they tell nothing, curvature is that of
    the softened coordinates of the point, times a scale.  Where the model's minimizer lies
    beyond the edge, the straight way to it is followed as far as that.
    """

    def __init__(self, memory: int = 20):
        self._memory = memory
        self._count = 0

    def learn(self, before: Face, after: Face) -> None:
        if before.sphere != after.sphere:
            self._count = 0
            return
        step = after.tangent(after.here.point.S - before.here.point.S).ravel()
        change = (after.gradient - after.tangent(before.gradient)).ravel()
        if step @ change > 1e-8 * norm(step) * norm(change):
            self._remember(step, change)

    def _remember(self, step: np.ndarray, change: np.ndarray) -> None:
        if self._count == 0:
            self._pairs = np.empty((2, self._memory, step.size))  # steps, changes
            self._inner = np.empty((self._memory, self._memory))  # steps by changes
        if self._count == self._memory:  # forget the oldest
            self._pairs[:, :-1] = self._pairs[:, 1:]
            self._inner[:-1, :-1] = self._inner[1:, 1:]
            self._count -= 1
        k = self._count
        self._count = k + 1
        self._pairs[:, k] = step, change
        self._inner[: k + 1, k] = self._pairs[0, : k + 1] @ change
        self._inner[k, :k] = self._pairs[1, :k] @ step

    def step(self, face: Face, delta: float) -> Step:
        minimizer = self._minimizer(face)
        if minimizer is None:  # nothing known yet: a step exactly as long as it may be
            length = norm(face.gradient)
            return Step((-delta / length) * face.gradient, -delta * length, delta * length, True)
        slope = float(np.vdot(face.gradient, minimizer))
        share = min(delta / norm(minimizer), 1.0)
        return Step(share * minimizer, share * slope, -(share**2) * slope, share < 1)

    def _minimizer(self, face: Face) -> np.ndarray | None:
        """Where the model is lowest: minus the inverse BFGS matrix times the gradient."""
        if self._count == 0:
            return None
        steps, changes, inner = self._tangent_pairs(face)
        if len(inner) == 0:
            return None
        g, point = face.gradient.ravel(), face.here.point
        soft = point.soften(np.concatenate([changes, g[None]]))  # (m + 1, d*d)
        soft_inner = soft[:-1] @ soft.T  # (m, m + 1)
        # Too little curvature makes long steps, and of these the trust region takes care.
        diagonal = inner.diagonal()
        curvature = float((soft_inner.diagonal() / diagonal).min())
        upper = np.asfortranarray(inner)  # of which `solve` reads the upper triangle
        a = solve(upper, steps @ g)[0]
        rest = soft_inner[:, :-1] @ a - soft_inner[:, -1]
        b = solve(upper, diagonal * a + rest / curvature, trans=1)[0]
        unknown = point.soften_adjoint(a @ soft[:-1] - soft[-1])
        return face.tangent(unknown / curvature - (b @ steps).reshape(unknown.shape))

    def _tangent_pairs(self, face: Face) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, changes and their inner products; those along which the gradient still rises."""
        m = self._count
        (steps, changes), inner = self._pairs[:, :m], self._inner[:m, :m]
        if face.normal is not None:
            normal = face.normal.ravel()
            along, across = self._pairs[:, :m] @ normal
            # The steps need not be made tangent: their combination will be.
            changes, inner = changes - across[:, None] * normal, inner - along[:, None] * across
        upward = inner.diagonal() > 0
        if upward.all():
            return steps, changes, inner
        return steps[upward], changes[upward], inner[np.ix_(upward, upward)]


# ---------------------------------------------------------------------------
# Curvature from second derivatives


class ExactModel:
    """The objective's own Hessian-vector products, each counted as an evaluation."""

    def __init__(self, objective: Counted):
        self._objective = objective

    def learn(self, before: Face, after: Face) -> None:
        pass

    def step(self, face: Face, delta: float) -> Step:
        """Truncated conjugate gradients [Steihaug1983]_.

        They stop at the edge, along a direction of negative curvature, or when the residual
        has fallen enough for superlinear convergence.
        """
        g = face.gradient
        step, H_step = np.zeros_like(g), np.zeros_like(g)
        residual, direction = g, -g
        square = float(np.vdot(g, g))
        enough = np.sqrt(square) * min(0.5, square**0.25)
        at_edge = False
        for _ in range(g.size):
            H_direction = face.tangent(face.hvp(self._objective, direction))
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
        return Step(step, float(np.vdot(g, step)), float(np.vdot(step, H_step)), at_edge)


def _to_edge(step: np.ndarray, direction: np.ndarray, delta: float) -> float:
    """Return the positive t for which ``|step + t direction| = delta``."""
    a, b = float(np.vdot(direction, direction)), float(np.vdot(step, direction))
    c = float(np.vdot(step, step)) - delta**2
    return (-b + np.sqrt(max(b * b - a * c, 0.0))) / a
