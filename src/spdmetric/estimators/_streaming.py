"""Learning from mini-batches: the stochastic solver, and streams that are seen once."""

from __future__ import annotations

import time
from collections import deque
from copy import copy, deepcopy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spdmetric import solvers
from spdmetric.estimators._problem import Solver, ball_around
from spdmetric.estimators._settings import Settings
from spdmetric.linalg import compiled
from spdmetric.linalg.symmetric import congruence
from spdmetric.objectives.local import Labeled, in_memory
from spdmetric.objectives.minibatch import Past, RunningMisalignment
from spdmetric.objectives.start import Start, start_of
from spdmetric.objectives.weighting import Weighting
from spdmetric.solvers import Descent, Record, Solution, Status
from spdmetric.validation import check_count, check_weight_range, weight_range, weight_unit

_RECORDS = 1000  # calls of partial_fit that the history goes back
_PATIENCE = 8  # times the matrices that G0 needs are kept, if they are all of one class

RandomState = int | np.random.RandomState | None


def draw_seed(random_state: RandomState) -> int:
    """One number of the random state: the order of all mini-batches follows from it."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def solver_named(name: str, batch_size: int | None, random_state: RandomState) -> Solver:
    """The solver of a name; the stochastic one takes the objective apart into mini-batches."""
    check_count("batch_size", batch_size, optional=True)
    if name != "stochastic":
        return solvers.SOLVERS[name]

    def solve(objective: Any, *args: Any, **options: Any) -> Solution:
        options |= {"batch_size": batch_size, "seed": draw_seed(random_state)}
        return solvers.stochastic_gradient(RunningMisalignment.of(objective), *args, **options)

    return solve


class Stream:
    """What is remembered of a stream: moments, and matrices that wait to be learned from.

    The first wait until there are enough of them to fix G0, later ones for a mini-batch.
    """

    start: Start
    descent: Descent
    weighting: Weighting | None = None  # renewed with the point of the descent
    _past: Past | None = None  # what it takes of matrices that do not wait any more

    def __init__(self, classes: np.ndarray, rank: int | None, random_state: RandomState):
        self.history: deque[Record] = deque(maxlen=_RECORDS)
        self.rank, self._classes = rank, classes
        self._fixed = False  # G0
        self.seen = np.zeros(classes.size, dtype=int)  # matrices of each class
        self._waiting: Labeled | None = None
        self._weights = (np.inf, 0.0)  # smallest and largest positive weight
        self._unit = 1.0  # what weights are multiplied with: only ratios matter
        self._centered = 0  # matrices that G0 is the mean of
        self._rng = np.random.default_rng(draw_seed(random_state))
        self._seconds = 0.0

    def copy(self) -> Stream:
        """Another stream with the same past: what one learns the other does not."""
        other = copy(self)
        other.history, other.seen, other._rng = self.history.copy(), self.seen.copy(), deepcopy(self._rng)
        if hasattr(self, "descent"):
            other.descent = copy(self.descent)
        return other

    def see(
        self,
        batch: Labeled,
        *,
        radius: float,
        batch_size: int | None,
        with_weighting: bool,
        settings: Settings,
    ) -> np.ndarray:
        """Learn from a batch, or keep it until there are enough matrices; the weighting too if it is asked for.

        Returns the classes that are absent if G0 was fixed by this batch, otherwise none.
        """
        check_count("batch_size", batch_size, optional=True)
        began = time.perf_counter()
        batch = batch._replace(weight=self._scaled(batch.weight))
        self.seen += np.bincount(batch.codes, minlength=self._classes.size)
        together = batch if self._waiting is None else _joined(self._waiting, batch)
        n, d = together.X.shape[:2]
        absent, begins = self._classes[:0], False
        if not self._fixed:
            self._fixed = _enough(n, d, self.seen)
            begins = self._fixed or n >= 2 * self._centered  # not each time: computing a mean is expensive
            if begins:
                self._begin(together, radius, settings)
            absent = self._classes[(self.seen == 0) & self._fixed]
        size = batch_size or max(32, 4 * d)
        ready = self._fixed and n >= size
        if begins or ready:
            objective = self._objective(together)
            for rows in solvers.mini_batches(objective.n, size, self._rng) if ready else ():
                self.descent.learn(objective, rows)
            if with_weighting:
                past = Past.of(objective, self.descent.point)
                past = past if self._past is None else self._past.then(past)
                self.weighting, self._past = past.weighting(), past if ready else None
        if not with_weighting:
            self.weighting = self._past = None
        self._waiting = None if ready else together
        self._seconds += time.perf_counter() - began
        constraint, steps = self.descent.iterate, self.descent.batches
        self.history.append(
            Record(
                steps, constraint.here.value, constraint.residual, constraint.distance, steps, self._seconds
            )
        )
        return absent

    def _scaled(self, weight: np.ndarray) -> np.ndarray:
        """Weights in the unit of the first batch."""
        if self._weights[1] == 0:
            self._unit = weight_unit(float(weight.max()))
        smallest, largest = weight_range(weight)
        self._weights = min(smallest, self._weights[0]), max(largest, self._weights[1])
        check_weight_range(*self._weights)
        return weight * self._unit

    def _begin(self, batch: Labeled, radius: float, settings: Settings) -> None:
        """Start at the mean of the matrices so far."""
        codes = np.unique(batch.codes, return_inverse=True)[1]  # classes may be absent
        data = in_memory(batch._replace(codes=codes), settings.chunk_size)
        self.start = start_of(data, self.rank, settings.init)
        ball = ball_around(self.start, self.rank, radius)
        self.descent = Descent(ball, ball.center)
        objective = self._objective(batch)
        self.descent.value = objective.sample(np.arange(objective.n), self.descent.point).value
        self._centered = objective.n

    def _objective(self, batch: Labeled) -> RunningMisalignment:
        whitened = congruence(self.start.factor, batch.X)
        targets = np.eye(self._classes.size)[batch.codes]
        # Kernels are loaded once NumPy has taken as long as that would have.
        work = max(1, int(self.seen.sum()) // compiled.EVALUATIONS)
        return RunningMisalignment(whitened, targets, batch.weight[:, None], work=work)

    @property
    def solution(self) -> Solution:
        """Where the stream has led so far."""
        at, history = self.descent.iterate, tuple(self.history)
        return Solution(at.here.point, at.here.value, Status.STREAM, at.residual, at.multiplier, history)


def _joined(one: Labeled, other: Labeled) -> Labeled:
    return Labeled(*(np.concatenate(parts) for parts in zip(one, other, strict=True)))


def _enough(n: int, d: int, seen: np.ndarray) -> bool:
    """Whether G0 can be fixed: with two classes, or without if the second is too long in coming."""
    wanted = d * (d + 1) // 2  # as many as each has entries that are free
    return n >= wanted and bool(np.count_nonzero(seen) > 1 or n >= _PATIENCE * wanted)
