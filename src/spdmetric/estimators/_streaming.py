"""Learning from mini-batches: the stochastic solver, and streams that are seen once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from copy import copy, deepcopy
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, column_or_1d

from spdmetric import solvers, validation
from spdmetric.caller import warn_at_caller
from spdmetric.linalg import compiled
from spdmetric.linalg.symmetric import Array
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data, whiten
from spdmetric.objectives.minibatch import Past, RunningMisalignment
from spdmetric.objectives.start import Start, ViewStarts, find_start
from spdmetric.objectives.weighting import Weighting
from spdmetric.solvers import Descent, Record, Solution, Status
from spdmetric.validation import weight_range, weight_unit

_RECORDS = 1000  # calls of partial_fit that the history goes back
_PATIENCE = 8  # times the matrices that G0 needs are kept, if they are all of one class

RandomState = int | np.random.RandomState | None


def draw_seed(random_state: RandomState) -> int:
    """One number of the random state: the order of all mini-batches follows from it."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def stochastic_solver(
    objective: Misalignment, *args: Any, random_state: RandomState, **options: Any
) -> Solution:
    """The stochastic solver, which takes the objective apart into mini-batches."""
    batches = RunningMisalignment(objective.data)
    return solvers.stochastic_gradient(batches, *args, seed=draw_seed(random_state), **options)


class Stream:
    """What is remembered of a stream: moments, and matrices that wait for G0, then for a mini-batch."""

    start: Start | ViewStarts
    descent: Descent
    weighting: Weighting | None = None  # renewed with the point of the descent
    _past: Past | None = None  # what it takes of matrices that do not wait any more
    _waiting: tuple[np.ndarray, ...] | None = None  # matrices, codes and weights
    _weights = (0.0, 0.0)  # smallest and largest positive weight
    _unit = 1.0  # what weights are multiplied with: only ratios matter
    _fixed = False  # G0
    _centered = 0  # matrices that G0 is the mean of
    _seconds = 0.0

    def __init__(self, classes: np.ndarray, rank: int | None, random_state: RandomState):
        self.history: deque[Record] = deque(maxlen=_RECORDS)
        self.rank, self._classes = rank, classes
        self.counts = np.zeros(classes.size, dtype=int)  # matrices of each class so far
        self._rng = np.random.default_rng(draw_seed(random_state))

    def copy(self) -> Stream:
        """Another stream with the same past."""
        other = copy(self)
        other.history, other.counts, other._rng = self.history.copy(), self.counts.copy(), deepcopy(self._rng)
        other.descent = copy(self.descent)
        return other

    def learn(self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray, metric: Any) -> None:
        """Learn from a batch what a metric asks for, or keep it until there are enough matrices."""
        began = time.perf_counter()
        if self._weights[1] == 0:  # the first batch
            self._unit = weight_unit(float(weight.max()))
        self._weights = weight_range(np.append(weight, self._weights))
        has = weight > 0
        columns: tuple[np.ndarray, ...] = X[has], codes[has], weight[has] * self._unit
        self.counts += np.bincount(columns[1], minlength=self._classes.size)
        if self._waiting is not None:
            columns = tuple(map(np.concatenate, zip(self._waiting, columns, strict=True)))
        X, codes, weight = columns
        target = ClassTarget.from_codes(codes, weight, self._classes.size)
        n, d, begins = X.shape[0], X.shape[-1], False
        if not self._fixed:
            wanted = d * (d + 1) // 2  # as many as each has entries that are free
            several = np.count_nonzero(self.counts) > 1
            self._fixed = bool(n >= wanted and (several or n >= _PATIENCE * wanted))
            begins = self._fixed or n >= 2 * self._centered  # not each time: computing a mean is expensive
        if begins:
            self.start = find_start(Data(X, target.present), metric.init, self.rank)
            ball = self.start.ball(self.rank, float(metric.radius))
            self.descent, self._centered = Descent(ball, ball.center), n
            if self._fixed and not self.counts.all():
                absent = self._classes[self.counts == 0].tolist()
                warn_at_caller(
                    f"Among the first {self.counts.sum()} matrices of the stream, whose mean G0 is, there is "
                    f"none of {absent}: what is learned takes no account of these classes until they come. "
                    "Mix the stream, or leave out of classes= what will never come.",
                    UserWarning,
                )
        size = batch_size(d)
        ready = self._fixed and n >= size
        if begins or ready:
            # Kernels are loaded once NumPy has taken as long as that would have.
            work = max(1, int(self.counts.sum()) // compiled.EVALUATIONS)
            objective = RunningMisalignment(Data(whiten(self.start.factor, X), target), work=work)
            if begins:
                self.descent.value = objective.sample(np.arange(n), self.descent.point).value
            for rows in solvers.mini_batches(n, size, self._rng) if ready else ():
                self.descent.learn(objective, rows)
            if metric.weighting is not None:
                past = Past.from_batch(objective, self.descent.point)
                past = past if self._past is None else self._past.then(past)
                self.weighting, self._past = past.weighting(), past if ready else None
        if metric.weighting is None:
            self.weighting = self._past = None
        self._waiting = None if ready else columns
        self._seconds += time.perf_counter() - began
        at, steps = self.descent.iterate, self.descent.batches
        self.history.append(Record(steps, at.here.value, at.residual, at.distance, steps, self._seconds))

    @property
    def solution(self) -> Solution:
        """Where the stream has led so far."""
        at, history = self.descent.iterate, tuple(self.history)
        return Solution(at.here.point, at.here.value, Status.STREAM, at.residual, at.multiplier, history)


def batch_size(d: int) -> int:
    """Matrices of size d in a mini-batch of a stream."""
    return max(32, 4 * d)


def check_stream_classes(classes: Any, known: np.ndarray | None) -> np.ndarray:
    """Return all classes of a stream, sorted."""
    if classes is None:
        if known is None:
            raise ValueError(
                "The first call of partial_fit needs classes=, all labels that the stream may bring."
            )
        return known
    found = np.unique(
        validation.check_label_kind(column_or_1d(validation.as_numpy(classes, "classes")), "classes")
    )
    if found.size < 2:
        raise ValueError(f"classes={found.tolist()}: expected at least two, there is nothing to tell apart.")
    if known is not None and not np.array_equal(found, known):
        raise ValueError(
            f"classes={found.tolist()} are not those of the first call, {known.tolist()}: leave them out, or "
            "begin a new stream with a clone of the estimator."
        )
    return found


def check_batch(
    X: Array, y: Any, sample_weight: Any, classes: np.ndarray, class_weight: validation.ClassWeight
) -> tuple[np.ndarray, np.ndarray]:
    """Return codes and weights of the matrices of a batch, in which classes may be absent."""
    y = validation.check_labels(X, y, method="partial_fit")
    known = f"which is not one of the classes of the stream, {classes.tolist()}"
    codes = validation.codes_among(classes, y, f"{known}: name all labels in the first call of partial_fit.")
    weight = validation.check_weights(sample_weight, X)
    if isinstance(class_weight, Mapping):
        weight = weight * validation.weights_by_label(classes, class_weight)[codes]
    return codes, weight
