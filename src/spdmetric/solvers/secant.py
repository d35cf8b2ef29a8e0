"""A quadratic model of the objective from past steps: what the trust region minimizes instead of it."""

from __future__ import annotations

from math import sqrt
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
    what the preconditioner of the point says, times a scale.  Where the model's minimizer lies
    beyond the edge, the straight way to it is followed as far as that.
    """

    def __init__(self, memory: int = 50):
        self._most = memory
        self._count = 0
        self._scales: list[float] = []  # of curvature, one of each pair
        self._at: Iterate | None = None  # where `_precondition` and `_lowest` belong
        self._lowest: np.ndarray | None = None

    def learn(self, before: Iterate, after: Iterate) -> None:
        if before.active != after.active:
            self._count = 0
            return
        step = after.tangent(after.here.point.S - before.here.point.S).ravel()
        g, before_g = after.gradient.ravel(), after.tangent(before.gradient).ravel()
        change = g - before_g
        square = float(step @ step)
        if step @ change > _VALUES_TELL:
            # The values know the curvature at the end of the step, the gradients only its mean [Zhang1999]_.
            bent = 6 * (before.here.value - after.here.value) + 3 * float(step @ (g + before_g))
            change += (bent / square) * step
        inner = float(step @ change)
        if inner > 1e-8 * sqrt(square) * norm(change):
            self._go_to(after)
            unknown = self._precondition(change.reshape(after.gradient.shape))
            self._remember(step, change, float(np.vdot(change, unknown)) / inner)

    def _remember(self, step: np.ndarray, change: np.ndarray, scale: float) -> None:
        if self._count == 0:
            self._memory = min(self._most, max(20, 1_000_000 // step.size))  # 16 MB, if that is 20 pairs
            self._pairs = np.empty((2, self._memory, step.size))  # steps, changes
            self._inner = np.empty((self._memory, self._memory))  # steps by changes
            self._scales = []
        if self._count == self._memory:  # forget the oldest
            self._pairs[:, :-1] = self._pairs[:, 1:]
            self._inner[:-1, :-1] = self._inner[1:, 1:]
            del self._scales[0]
            self._count -= 1
        k = self._count
        self._count = k + 1
        self._pairs[:, k] = step, change
        self._inner[: k + 1, k] = self._pairs[0, : k + 1] @ change
        self._inner[k, :k] = self._pairs[1, :k] @ step
        self._scales.append(scale)

    def step(self, iterate: Iterate, delta: float) -> Step:
        self._go_to(iterate)
        if self._lowest is None:
            self._lowest = self._minimizer(iterate)
        if self._lowest is None:  # nothing known yet: a step exactly as long as it may be
            length = norm(iterate.gradient)
            return Step((-delta / length) * iterate.gradient, -delta * length, delta * length, True)
        slope = float(np.vdot(iterate.gradient, self._lowest))
        share = min(delta / norm(self._lowest), 1.0)
        return Step(share * self._lowest, share * slope, -(share**2) * slope, share < 1)

    def _go_to(self, iterate: Iterate) -> None:
        """The preconditioner, and the minimizer once it is known, serve for all steps from an iterate."""
        if iterate is not self._at:
            self._at, self._lowest = iterate, None
            self._precondition = iterate.here.point.preconditioner(iterate.here.curvature_estimate)

    def _minimizer(self, iterate: Iterate) -> np.ndarray | None:
        """Where the model is lowest: minus the inverse BFGS matrix times the gradient.

        The pairs need not be made tangent, only what is made of them; their inner products must be.
        """
        m, shape = self._count, iterate.gradient.shape
        if m == 0:
            return None
        (steps, changes), inner = self._pairs[:, :m], self._inner[:m, :m]
        # Too little curvature makes long steps, and of these the trust region takes care; the lower decile,
        # as the values may have left hardly any to one of the pairs.
        curvature = sorted(self._scales)[m // 10]
        if iterate.normal is not None:
            along, across = self._pairs[:, :m] @ iterate.normal.ravel()
            inner = inner - along[:, None] * across
        diagonal = inner.diagonal()
        if diagonal.min() <= 0:  # the gradient does not rise any more along these
            upward = diagonal > 0
            if not upward.any():
                return None
            steps, changes, inner = steps[upward], changes[upward], inner[np.ix_(upward, upward)]
            diagonal = inner.diagonal()
        g, upper = iterate.gradient, np.asfortranarray(inner)  # of which `solve` reads the upper triangle
        a = solve(upper, steps @ g.ravel())[0]
        rest = iterate.tangent(g - (a @ changes).reshape(shape))
        unknown = iterate.tangent(self._precondition(rest)) / curvature
        b = solve(upper, diagonal * a - changes @ unknown.ravel(), trans=1)[0]
        return iterate.tangent(-unknown - (b @ steps).reshape(shape))
