"""Riemannian stochastic gradient descent on mini-batches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from spdmetric.solvers.protocols import Manifold
from spdmetric.solvers.result import Callback, Solution, Status
from spdmetric.solvers.run import Iterate, Run

_WARM_UP = 4  # mini-batches whose gradients at the center give the direction of the first step
_LENGTH = 0.4  # of steps, as a share of the radius, were it not for the root of their number
_WORTH = 5e-3  # relative improvement below which the last passes did not help
_SPAN = 256  # mini-batches whose mean value is known well enough to tell


class Descent:
    """Stochastic gradient descent after [Bonnabel2013]_, one mini-batch at a time.

    The objective is a function of averages, and these run along with the point [Wang2017]_.  Step t is of the
    length ``0.4 radius t^-1/2``, times the gradient over the root mean square of all so far.  The first step
    is a long one from the center to the sphere; steps on the sphere are tangent to it.  Value and gradient,
    as they are reported, are averaged over some ``t^1/2`` mini-batches.
    """

    curvature_estimate = None  # which nobody asks for

    def __init__(self, manifold: Manifold, start: Any):
        self.manifold, self.point, self.value = manifold, start, 1.0
        self.gradient = np.zeros_like(start.S)  # mean of the last ones
        self.batches = self.steps = 0
        self._memory: object = None
        self._squares = 0.0
        self._waiting = _WARM_UP if np.linalg.norm(start.S) == 0 else 0

    @property
    def iterate(self) -> Iterate:
        """What the last mini-batches say together, under the constraint of the ball."""
        return Iterate(self, self.manifold.radius)

    def learn(self, objective: Any, rows: np.ndarray) -> float:
        """Take a step by a mini-batch, and return the value that was estimated before it."""
        self.batches += 1
        share = self.batches**-0.5
        here = objective.sample(rows, self.point, self._memory)
        self._memory = here.memory
        self.value = (1 - share) * self.value + share * here.value
        self.gradient = (1 - share) * self.gradient + share * here.gradient
        if self._waiting:
            self._wait()
        elif here.gradient.any():
            self._step(here.gradient)
        return here.value

    def _wait(self) -> None:
        """Stay at the center until a direction is known; then go to the sphere."""
        length = float(np.linalg.norm(self.gradient))
        if length == 0:
            return  # a stream may begin with a single class
        self._waiting -= 1
        if self._waiting == 0:
            self.point = self.manifold.retract(self.point, (-self.manifold.radius / length) * self.gradient)
            self._memory = None  # moments at the center are of no use so far out

    def _step(self, gradient: np.ndarray) -> None:
        self.steps += 1
        # The averaged gradient tells whether the sphere is active.  By that of one batch, noise
        # would draw the point inwards, where nothing holds it as the sphere does outwards.
        g = self.iterate.tangent(self.point.orthonormal_gradient(gradient))
        self._squares += float(np.vdot(g, g))
        rms = np.sqrt(self._squares / self.steps)
        if rms > 0:
            length = _LENGTH * self.manifold.radius * (self.steps + _WARM_UP) ** -0.5
            self.point = self.manifold.retract(self.point, (-length / rms) * g)


def default_batch_size(n: int, d: int) -> int:
    """Four matrices for each row, at least 32; of few matrices an eighth, at least 8."""
    return min(n, max(32, 4 * d), max(8, n // 8))


def stochastic_gradient(
    objective: Any,
    manifold: Manifold,
    start: Any,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    here: object = None,
    seed: int = 0,
) -> Solution:
    """Minimize on a ball by stochastic gradient descent: see `Descent`.

    One iteration is one pass over the data, in an order that is drawn anew for each.  The run ends when the
    last passes have improved ``1 - value`` by less than 1/200 of it.  The history holds estimates, and its
    ``evaluations`` are passes; value, residual and multiplier of the solution are exact.

    Parameters and return value are those of `trust_region`, but that ``tol`` makes no run longer and ``here``
    is not used.  A mini-batch has `default_batch_size` matrices; ``seed`` gives the order of the data.
    """
    # The estimate of a residual is no reason to stop: with one class in its batches it is zero.
    run = Run(objective, manifold, -np.inf, max_iter, callback)
    size = default_batch_size(objective.n, start.S.shape[0])
    rng = np.random.default_rng(seed)
    first = list(islice(mini_batches(objective.n, size, np.random.default_rng(seed)), 2))
    sample = objective.sample(first[-1], start, objective.sample(first[0], start).memory)
    iterate = Iterate(sample, manifold.radius)
    descent, values = Descent(manifold, start), []
    status = run.ends(iterate)
    while status is None:
        seen = [descent.learn(objective, rows) for rows in mini_batches(objective.n, size, rng)]
        values.append(float(np.mean(seen)))
        run.evaluations += 1
        iterate = descent.iterate
        status = run.ends(iterate) or (Status.NOISE if _idle(values, len(seen)) else None)
    iterate = Iterate(objective.at(iterate.here.point), manifold.radius)
    return run.solution(iterate, Status.CONVERGED if iterate.residual <= tol else status)


def _idle(values: list[float], batches: int) -> bool:
    """Whether the last third of all passes, or as many as noise asks for, improved on as many before."""
    span = max(-(-_SPAN // batches), len(values) // 3)
    if len(values) < 2 * span:
        return False
    before, now = np.mean(values[-2 * span : -span]), np.mean(values[-span:])
    return bool(before - now < _WORTH * (1 - before))


def mini_batches(n: int, size: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Rows 0 to n - 1 in random order, in ascending parts of nearly the same size."""
    order = rng.permutation(n)
    for part in np.array_split(order, max(1, n // size)):
        yield np.sort(part)  # ascending: files are read forwards, and h5py asks for it
