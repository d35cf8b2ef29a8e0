"""Learning from mini-batches: the stochastic solver, and streams that are seen once."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from spdmetric.estimators._inputs import printing
from spdmetric.estimators._problem import Problem, make_start
from spdmetric.linalg import compiled
from spdmetric.linalg.symmetric import congruence
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.minibatch import RunningMisalignment
from spdmetric.solvers import Descent, Record, Solution, Status, mini_batches, stochastic_gradient

Batch = tuple[np.ndarray, np.ndarray, np.ndarray]  # matrices, class codes, weights

_RECORDS = 1000  # calls of partial_fit that the history goes back
_PATIENCE = 8  # times the matrices that G0 needs are kept, if they are all of one class


def draw_seed(random_state: Any) -> int:
    """One number of the random state: the order of all mini-batches follows from it."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def mini_batch_solver(
    objective: Misalignment, batch_size: int | None, random_state: Any
) -> tuple[Any, Callable[..., Solution]]:
    """Return the objective as the stochastic solver wants it, and the solver."""
    solve = partial(stochastic_gradient, batch_size=batch_size, seed=draw_seed(random_state))
    return RunningMisalignment.of(objective), solve


def matrices_before_start(d: int) -> int:
    """How many matrices a stream waits for: as many as each has entries that are free."""
    return d * (d + 1) // 2


class Stream:
    """What is remembered of a stream: moments, and matrices that wait to be learned from.

    The first wait until there are enough of them to fix G0, later ones for a mini-batch.
    """

    def __init__(self, n_classes: int, seed: int):
        self.n_classes = n_classes
        self.problem: Problem | None = None
        self.descent: Descent | None = None
        self.history: deque[Record] = deque(maxlen=_RECORDS)
        self.fixed = False  # G0
        self.seen = np.zeros(n_classes, dtype=int)  # matrices of each class
        self._waiting: list[Batch] = []
        self._centered = 0  # matrices that G0 is the mean of
        self._rng = np.random.default_rng(seed)
        self._seconds = 0.0

    def see(self, batch: Batch, *, radius: float, batch_size: int | None, **start: Any) -> None:
        """Learn from a batch, or keep it until there are enough matrices."""
        began = time.perf_counter()
        self.seen += np.bincount(batch[1], minlength=self.n_classes)
        together = _joined([*self._waiting, batch])
        n, d = together[0].shape[:2]
        if not self.fixed:
            self.fixed = _enough(n, d, self.seen)
            if self.fixed or n >= 2 * self._centered:  # not each time: a mean is dear
                self._begin(together, radius, start)
        if self.fixed and n >= (batch_size or max(32, 4 * d)):
            self._learn(together, batch_size or max(32, 4 * d))
            self._waiting = []
        else:
            self._waiting = [together]
        self._seconds += time.perf_counter() - began
        self._record()

    def _begin(self, batch: Batch, radius: float, start: dict[str, Any]) -> None:
        """Start at the mean of the matrices so far."""
        problem = Problem(make_start(*batch, **start), None, start["rank"])  # type: ignore[arg-type]
        ball = problem.ball(radius)
        descent = Descent(ball, ball.point(np.zeros_like(problem.start.center)))
        objective = self._objective(batch, problem)
        descent.value = objective.sample(np.arange(objective.n), descent.point).value
        self.problem, self.descent, self._centered = problem, descent, objective.n

    def _learn(self, batch: Batch, size: int) -> None:
        assert self.problem is not None
        assert self.descent is not None
        objective = self._objective(batch, self.problem)
        for rows in mini_batches(objective.n, size, self._rng):
            self.descent.learn(objective, rows)

    def _objective(self, batch: Batch, problem: Problem) -> RunningMisalignment:
        X, codes, weight = batch
        whitened = congruence(problem.start.factor, X)
        # Kernels are loaded once NumPy has taken as long as that would have.
        work = max(1, int(self.seen.sum()) // compiled.EVALUATIONS)
        return RunningMisalignment(whitened, np.eye(self.n_classes)[codes], weight[:, None], work=work)

    def _record(self) -> None:
        assert self.descent is not None
        face, n = self.descent.iterate, self.descent.batches
        self.history.append(Record(n, face.here.value, face.residual, face.distance, n, self._seconds))

    @property
    def solution(self) -> Solution:
        assert self.descent is not None
        face, history = self.descent.iterate, tuple(self.history)
        return Solution(
            face.here.point, face.here.value, Status.STREAM, face.residual, face.multiplier, history
        )


def _joined(batches: list[Batch]) -> Batch:
    X, codes, weight = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return X, codes, weight


def _enough(n: int, d: int, seen: np.ndarray) -> bool:
    """Whether G0 can be fixed: with two classes, or without if the second is too long in coming."""
    wanted = matrices_before_start(d)
    return n >= wanted and bool(np.count_nonzero(seen) > 1 or n >= _PATIENCE * wanted)


def _streams(estimator: Any) -> bool:
    """Whether an estimator can learn from a stream: not if it must see the data several times."""
    return "batch_size" in estimator.get_params(deep=False)


class StreamMixin:
    """`partial_fit`, for estimators with the parameters of `LogEuclideanMetric`."""

    _stream: Stream | None = None

    @available_if(_streams)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Learn from one more batch of a stream; no matrix is kept for long.

        G0, the start and center of the ball, is that of the first batches: they are kept until
        they hold d(d+1)/2 matrices and two classes (or 4d(d+1) of one class), and G0 is fixed
        then.  Until then the metric is that at the mean of what was seen.  Afterwards matrices
        are kept until there are ``batch_size`` of them (None: 4d, at least 32); they are cut
        into mini-batches of about that size, a step is taken by each, and they are forgotten.
        The stream should be mixed: what came first counts less and less.  ``solver``, ``tol``,
        ``max_iter`` and ``n_jobs`` are not used.

        Attributes are those of `fit`: ``alignment_`` is an estimate from the last
        mini-batches, ``n_iter_`` counts mini-batches, and the history has a record for each
        of the last thousand calls.  `fit` forgets the stream.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            SPD matrices.
        y : array-like of shape (n_matrices,)
            Labels, all of them in ``classes``.
        classes : array-like of shape (n_classes,)
            All labels that the stream may bring; needed in the first call.  One may come late,
            and one that never comes changes nothing; a warning names those that were not there
            when G0 was fixed.
        sample_weight : array-like of shape (n_matrices,), optional
            Non-negative weights.

        Returns
        -------
        self : LogEuclideanMetric
        """
        this: Any = self
        this._check_parameters()
        _check_streamable(this)
        begins = self._stream is None
        classes = _check_classes(classes, None if begins else this.classes_)
        X = this._check_matrices(X, reset=begins)
        batch = _check_batch(X, y, classes, sample_weight)
        stream = self._stream or Stream(classes.size, draw_seed(this.random_state))
        start = {name: getattr(this, name) for name in ("rank", "init", "chunk_size")}
        fixed = stream.fixed
        stream.see(batch, radius=float(this.radius), batch_size=this.batch_size, **start)
        self._stream, this.classes_ = stream, classes
        this._keep(stream.problem, stream.solution)
        if stream.fixed and not fixed:
            _warn_of_absent(classes[stream.seen == 0], int(stream.seen.sum()))
        report = printing(this.callback) if this.verbose else this.callback
        if report is not None:
            report(stream.history[-1])
        return self


def _warn_of_absent(absent: np.ndarray, n: int) -> None:
    if absent.size:
        warnings.warn(
            f"Among the first {n} matrices of the stream, whose mean G0 is, there is none of "
            f"{absent.tolist()}: what is learned takes no account of these classes until they come. Mix the "
            "stream, or leave out of classes= what will never come.",
            UserWarning,
            stacklevel=3,
        )


def _check_streamable(estimator: Any) -> None:
    if estimator.kernel != "linear":
        raise ValueError(
            f"kernel={estimator.kernel!r} compares all pairs of matrices, and a stream forgets them: "
            "partial_fit needs kernel='linear'."
        )
    if estimator.class_weight is not None:
        raise ValueError(
            f"class_weight={estimator.class_weight!r} needs the sizes of all classes, which a stream does "
            "not know in advance: pass sample_weight to partial_fit instead."
        )


def _check_classes(classes: Any, known: np.ndarray | None) -> np.ndarray:
    """Return all classes of the stream, sorted."""
    if classes is None:
        if known is None:
            raise ValueError(
                "The first call of partial_fit needs classes=, all labels that the stream may bring."
            )
        return known
    found = np.unique(column_or_1d(classes))
    if found.size < 2:
        raise ValueError(f"classes={found.tolist()}: expected at least two, there is nothing to tell apart.")
    if known is not None and not np.array_equal(found, known):
        raise ValueError(
            f"classes={found.tolist()} are not those of the first call, {known.tolist()}: leave them out, or "
            "begin a new stream with a clone of the estimator."
        )
    return found


def _check_batch(X: np.ndarray, y: Any, classes: np.ndarray, sample_weight: Any) -> Batch:
    """Return the matrices that count, their classes as codes, and their weights."""
    if y is None:
        raise ValueError("partial_fit requires y to be passed, but the target y is None.")
    y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    unknown = np.flatnonzero(~np.isin(y, classes))
    if unknown.size:
        raise ValueError(
            f"y[{unknown[0]}] is {y[unknown].tolist()[0]!r}, which is not one of the classes of the stream, "
            f"{classes.tolist()}: name all labels in the first call of partial_fit."
        )
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    counts = weight > 0
    return X[counts], np.searchsorted(classes, y)[counts], weight[counts]
