"""A quadratic model of the objective from past steps: what the trust region minimizes instead of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs as solve

from spdmetric.solvers.constraint import Iterate, norm


# Where a step changes the slope by less than this, what the values add to it is lost in their rounding.
_VALUES_TELL = 1e-10


class Step(NamedTuple):
    """A step within the region of trust, and what its model says of it.

    For a share t of the step the model predicts a change of ``t slope + t^2 bend / 2``.
    """

    step: np.ndarray
    slope: float
    bend: float
    at_edge: bool


class SecantModel:
    """Limited-memory BFGS in compact form [Byrd1994]_: a step costs no evaluation.

    The pairs of steps and gradient changes are those of the interior, or those of the sphere,
    projected onto the tangent space where they are used.  Where they tell nothing, curvature is
    that of the evened coordinates of the point, times a scale.  Where the model's minimizer lies
    beyond the edge, the straight way to it is followed as far as that.
    """

    def __init__(self, memory: int = 50):
        self._most = memory
        self._count = 0

    def learn(self, before: Iterate, after: Iterate) -> None:
        if before.active != after.active:
            self._count = 0
            return
        step = after.tangent(after.here.point.S - before.here.point.S).ravel()
        g, before_g = after.gradient.ravel(), after.tangent(before.gradient).ravel()
        change = g - before_g
        if step @ change > _VALUES_TELL:
            # The values know the curvature at the end of the step, the gradients only its mean [Zhang1999]_.
            bent = 6 * (before.here.value - after.here.value) + 3 * float(step @ (g + before_g))
            change += (bent / float(step @ step)) * step
        if step @ change > 1e-8 * norm(step) * norm(change):
            self._remember(step, change)

    def _remember(self, step: np.ndarray, change: np.ndarray) -> None:
        if self._count == 0:
            self._memory = min(self._most, max(20, 1_000_000 // step.size))  # 16 MB, if that is 20 pairs
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

    def step(self, iterate: Iterate, delta: float) -> Step:
        minimizer = self._minimizer(iterate)
        if minimizer is None:  # nothing known yet: a step exactly as long as it may be
            length = norm(iterate.gradient)
            return Step((-delta / length) * iterate.gradient, -delta * length, delta * length, True)
        slope = float(np.vdot(iterate.gradient, minimizer))
        share = min(delta / norm(minimizer), 1.0)
        return Step(share * minimizer, share * slope, -(share**2) * slope, share < 1)

    def _minimizer(self, iterate: Iterate) -> np.ndarray | None:
        """Where the model is lowest: minus the inverse BFGS matrix times the gradient."""
        if self._count == 0:
            return None
        steps, changes, inner = self._tangent_pairs(iterate)
        if len(inner) == 0:
            return None
        g, even = iterate.gradient.ravel(), iterate.here.point.evened(iterate.here.bends)
        scaled = even.rows(np.concatenate([changes, g[None]]))  # (m + 1, d*d)
        scaled_inner = scaled[:-1] @ scaled.T  # (m, m + 1)
        # Too little curvature makes long steps, and of these the trust region takes care; the lower decile,
        # as the values may have left hardly any to one of the pairs.
        diagonal = inner.diagonal()
        curvature = sorted((scaled_inner.diagonal() / diagonal).tolist())[len(diagonal) // 10]
        upper = np.asfortranarray(inner)  # of which `solve` reads the upper triangle
        a = solve(upper, steps @ g)[0]
        rest = scaled_inner[:, :-1] @ a - scaled_inner[:, -1]
        b = solve(upper, diagonal * a + rest / curvature, trans=1)[0]
        unknown = even.back(a @ scaled[:-1] - scaled[-1])
        return iterate.tangent(unknown / curvature - (b @ steps).reshape(unknown.shape))

    def _tangent_pairs(self, iterate: Iterate) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Steps, changes and their inner products; those along which the gradient still rises."""
        m = self._count
        (steps, changes), inner = self._pairs[:, :m], self._inner[:m, :m]
        if iterate.normal is not None:
            normal = iterate.normal.ravel()
            along, across = self._pairs[:, :m] @ normal
            # The steps need not be made tangent: their combination will be.
            changes, inner = changes - across[:, None] * normal, inner - along[:, None] * across
        upward = inner.diagonal() > 0
        if upward.all():
            return steps, changes, inner
        return steps[upward], changes[upward], inner[np.ix_(upward, upward)]
