"""Riemannian trust region, and the quadratic model of past steps that it minimizes."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs as solve

from spdmetric.solvers.protocols import Evaluation, Manifold, Objective
from spdmetric.solvers.result import Callback, Solution
from spdmetric.solvers.run import Iterate, Run, norm

_EPS = float(np.finfo(np.float64).eps)
# Where a step changes the slope by less than this, what the values add to it is lost in their rounding.
_VALUES_TELL = 1e-10


def trust_region(
    objective: Objective,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    here: Evaluation | None = None,
) -> Solution:
    """Minimize on a ball with a Riemannian trust region [Absil2007]_ and a secant model.

    Parameters
    ----------
    objective, manifold : Objective, Manifold
        What to minimize, and where.
    start : point
        A point of the ball; at the center, the first step is a long one (see `spdmetric.solvers`).
    tol : float
        Bound on the KKT residual, relative to the gain (see `spdmetric.solvers.run.Iterate`).
    max_iter : int
        Bound on the number of iterations.
    callback : callable, optional
        Called with each `Record`; returning True stops the run.
    here : Evaluation, optional
        The objective at the start, where it is known already.

    Returns
    -------
    Solution
    """
    run = Run(objective, manifold, tol, max_iter, callback)
    return run.minimize(start, here, lambda: TrustRegion(0.5 * manifold.radius))


@dataclass(eq=False)
class TrustRegion:
    """A quadratic model of the objective, and how far it is trusted.

    Limited-memory BFGS in compact form [Byrd1994]_: a step costs no evaluation. Pairs of steps and gradient
    changes are those of the interior, or of the sphere.  Where they tell nothing, curvature is what the
    ``precondition`` of the point says, times a scale.
    """

    delta: float  # the length of a step up to which the model is trusted
    memory: int = 50
    _scales: list[float] = field(default_factory=list)  # of curvature, one of each pair
    _lowest: np.ndarray | None = None  # the step to where the model is lowest, once it is known

    def advance(self, run: Run, iterate: Iterate) -> Iterate | None:
        """Where to go on from after a step, the same iterate if it was not good; None if none can be."""
        manifold, here = run.manifold, iterate.here
        step, slope, bend, at_edge = self.step(iterate)
        share, S, radius = 1.0, here.point.S, manifold.radius
        a, b, c = np.vdot(step, step), np.vdot(S, step), np.vdot(S, S) - radius**2
        if not iterate.active and a + 2 * b + c > 0:  # as far as the sphere; along it, steps are brought back
            share = float(max(0.0, (-b + sqrt(max(b * b - a * c, 0.0))) / a))
        length, predicted, noise = norm(step), -share * slope - 0.5 * share**2 * bend, 1e3 * _EPS
        there = run.at(manifold.retract(here.point, share * step)) if share > 0 else None
        if there is None:
            self.delta /= 4
        elif predicted <= 10 * _EPS:
            # Values cannot tell such steps apart; go by the residual as long as it falls.
            after = Iterate(there, radius)
            if after.residual < iterate.residual:
                return after
            self.delta = length / 4
        else:
            # A little is added to both decreases so that rounding counts as agreement.
            ratio = (here.value - there.value + noise) / (predicted + noise)
            if ratio > 0.1:
                self.delta = min(2 * self.delta, radius) if ratio > 0.75 and at_edge else self.delta
                return Iterate(there, radius)
            self.delta = length / 2
        return iterate if self.delta >= 1e-12 * radius else None

    def learn(self, before: Iterate, after: Iterate) -> None:
        """Remember a step and the change of the gradient along it, if they tell of a curvature."""
        self._lowest = None
        if before.active != after.active:
            self._scales = []
            return
        point, curvature = after.here.point, after.here.curvature_estimate
        step = after.tangent(point.S - before.here.point.S).ravel()
        g, before_g = after.gradient.ravel(), after.tangent(before.gradient).ravel()
        change = g - before_g
        square = float(step @ step)
        if step @ change > _VALUES_TELL:
            # The values know the curvature at the end of the step, the gradients only its mean [Zhang1999]_.
            bent = 6 * (before.here.value - after.here.value) + 3 * float(step @ (g + before_g))
            change += (bent / square) * step
        inner = float(step @ change)
        if not inner > 1e-8 * sqrt(square) * norm(change):  # nor is it where it is no number
            return
        unknown = point.precondition(change.reshape(after.gradient.shape), curvature)
        most = min(self.memory, max(20, 1_000_000 // step.size))  # 16 MB, if that is 20 pairs
        if not self._scales:
            self._pairs = np.empty((2, most, step.size))  # steps, changes
            self._inner = np.empty((most, most))  # steps by changes
        elif len(self._scales) == most:  # forget the oldest
            self._pairs[:, :-1] = self._pairs[:, 1:]
            self._inner[:-1, :-1] = self._inner[1:, 1:]
            del self._scales[0]
        k = len(self._scales)
        self._pairs[:, k] = step, change
        self._inner[: k + 1, k] = self._pairs[0, : k + 1] @ change
        self._inner[k, :k] = self._pairs[1, :k] @ step
        self._scales.append(float(np.vdot(change, unknown)) / inner)

    def step(self, iterate: Iterate) -> tuple[np.ndarray, float, float, bool]:
        """A step within the region of trust, its slope and bend, and whether it ends at the edge.

        For a share t of the step the model predicts a change of ``t slope + t^2 bend / 2``.
        """
        if self._lowest is None:
            self._lowest = self._minimizer(iterate)
        if self._lowest is None:  # nothing known yet: a step exactly as long as it may be
            length = norm(iterate.gradient)
            return (-self.delta / length) * iterate.gradient, -self.delta * length, self.delta * length, True
        slope = float(np.vdot(iterate.gradient, self._lowest))
        share = min(self.delta / norm(self._lowest), 1.0)
        return share * self._lowest, share * slope, -(share**2) * slope, share < 1

    def _minimizer(self, iterate: Iterate) -> np.ndarray | None:
        """Where the model is lowest: minus the inverse BFGS matrix times the gradient; None if unknown."""
        m, shape = len(self._scales), iterate.gradient.shape
        if m == 0:
            return None
        (steps, changes), inner = self._pairs[:, :m], self._inner[:m, :m]
        # Too little curvature makes long steps, and of these the trust region takes care; the lower decile,
        # as the values may have left hardly any to one of the pairs.
        curvature = sorted(self._scales)[m // 10]
        if iterate.normal is not None:  # inner products of pairs must be made tangent, the pairs need not
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
        here = iterate.here
        unknown = iterate.tangent(here.point.precondition(rest, here.curvature_estimate)) / curvature
        b = solve(upper, diagonal * a - changes @ unknown.ravel(), trans=1)[0]
        return iterate.tangent(-unknown - (b @ steps).reshape(shape))
