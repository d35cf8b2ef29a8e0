"""The task of the fit cases: maximize the alignment in a ball around the identity.

A peer gets `Task.evaluate`, value and gradient in normal coordinates, or brings its own
objective and tells where it is with `Task.visit`.  Either way every point is logged with its
time, and graded after the run, off the clock, with our objective.  Only points inside the
ball count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data import Labeled
from spdmetric.linalg.symmetric import logm, symmetrize
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data


class OutOfBudget(Exception):
    """The seconds or evaluations of a run are used up."""


class LeftTheBall(Exception):
    """A peer without the constraint has run away."""


# A line search may look outside for a while; who stays there so long does not come back.
_LONGEST_ABSENCE = 50


class Visit(NamedTuple):
    """A point that a peer came to: S with our value, or a G of its own that is still to be graded."""

    seconds: float
    evaluations: int
    S: np.ndarray | None
    G: np.ndarray | None
    alignment: float | None


class Trace(NamedTuple):
    """The graded points of a run that lie in the ball, in the order of time."""

    seconds: np.ndarray
    evaluations: np.ndarray
    alignment: np.ndarray
    ended: str  # "", or why the run was cut short
    outside: tuple[Visit, ...]  # points that do not count

    @property
    def best(self) -> float:
        return float(self.alignment.max(initial=-np.inf))

    @property
    def spent(self) -> float:
        """Seconds until the last point."""
        last = [float(self.seconds[-1])] if self.seconds.size else []
        return max([*last, *(visit.seconds for visit in self.outside[-1:])], default=0.0)

    def reach(self, target: float) -> tuple[float, int] | None:
        """Seconds and evaluations until the target, or None."""
        hits = np.flatnonzero(self.alignment >= target)
        return (float(self.seconds[hits[0]]), int(self.evaluations[hits[0]])) if hits.size else None


@dataclass(frozen=True)
class Budget:
    """What one run may use: seconds of the processor, evaluations."""

    seconds: float
    evaluations: int


class Task:
    """One run of one peer on whitened matrices.

    Parameters
    ----------
    data : Labeled
        Matrices whose Riemannian mean is the identity, the start and center of the ball.
    radius : float
        Of the ball.
    budget : Budget
        `OutOfBudget` is raised when it is used up.
    """

    def __init__(self, data: Labeled, radius: float, budget: Budget):
        self.X, self.codes = data
        self.d, self.radius, self.budget = self.X.shape[1], radius, budget
        self.ball = Ball(np.eye(self.d), radius)
        self.objective = Misalignment(Data(self.X, ClassTarget.from_codes(self.codes)))
        self.count = 0
        self.visits: list[Visit] = []
        self._absence = 0
        self._began, self._processor_began = time.perf_counter(), time.process_time()

    def spend(self) -> None:
        """Count one evaluation: a value with its gradient, or a Hessian-vector product of a peer."""
        # Of the processor: a busy machine makes a run slow, but must not cut it short.
        used = time.process_time() - self._processor_began
        if self.count >= self.budget.evaluations or used > self.budget.seconds:
            raise OutOfBudget
        self.count += 1

    def evaluate(self, S: np.ndarray) -> tuple[float, np.ndarray]:
        """Misalignment, and its gradient in the normal coordinates S."""
        self.spend()
        here = self.objective.at(self.ball.point(S))
        value, gradient = here.value, here.gradient
        self.reached(S, value)
        return value, gradient

    def reached(self, S: np.ndarray, value: float) -> None:
        """Log a point whose misalignment our objective gave."""
        self.visits.append(Visit(self._elapsed(), self.count, np.array(S), None, 1.0 - value))

    def visit(self, G: np.ndarray) -> None:
        """Log a point of a peer that has its own objective; `LeftTheBall` ends a run that stays outside."""
        self.visits.append(Visit(self._elapsed(), self.count, None, np.array(G), None))
        S = _coordinates(G)
        outside = S is None or np.linalg.norm(S) > self.radius
        self._absence = self._absence + 1 if outside else 0
        if self._absence > _LONGEST_ABSENCE:
            raise LeftTheBall

    def _elapsed(self) -> float:
        return time.perf_counter() - self._began


def run_peer(peer: Any, data: Labeled, radius: float, budget: Budget) -> Trace:
    """Let a peer solve a task, and grade it; what goes wrong in a peer ends its run, not the case."""
    task, ended = Task(data, radius, budget), ""
    try:
        peer.solve(task)
    except OutOfBudget:
        ended = "out of budget"
    except LeftTheBall:
        ended = "left the ball"
    except Exception as error:
        ended = shorten(f"{type(error).__name__}: {error}", 80, placeholder=" ...")
    return grade(task, ended)


def grade(task: Task, ended: str = "") -> Trace:
    """Alignments of the points of a run that are in the ball."""
    alignments = [_alignment(task, visit) for visit in task.visits]
    pairs = list(zip(task.visits, alignments, strict=True))
    inside = [(v.seconds, v.evaluations, a) for v, a in pairs if a is not None]
    seconds, evaluations, alignment = zip(*inside, strict=True) if inside else ((), (), ())
    outside = tuple(visit for visit, a in pairs if a is None)
    return Trace(np.array(seconds), np.array(evaluations), np.array(alignment), ended, outside)


def reach_pulled_back(trace: Trace, data: Labeled, radius: float, target: float) -> tuple[float, int] | None:
    """The same as `Trace.reach` if points outside counted as the nearest points of the ball.

    SLSQP lives on tangent planes, so nearly all its points are a little outside: this says
    what it would gain if it were told to bring them back.
    """
    task, strict = Task(data, radius, Budget(0.0, 0)), trace.reach(target)
    for visit in trace.outside:
        if visit.S is None or (strict is not None and visit.seconds >= strict[0]):
            break
        S = visit.S * (radius / np.linalg.norm(visit.S))
        if task.objective.at(task.ball.point(S)).alignment >= target:
            return visit.seconds, visit.evaluations
    return strict


def _alignment(task: Task, visit: Visit) -> float | None:
    """Alignment at a point by our objective; None outside the ball."""
    S = visit.S if visit.G is None else _coordinates(visit.G)
    # Rounding may leave a point of the sphere just outside.
    if S is None or not np.linalg.norm(S) <= task.radius * (1 + 1e-9):
        return None
    alignment = visit.alignment
    if alignment is None:
        alignment = task.objective.at(task.ball.point(S)).alignment
    return alignment if np.isfinite(alignment) else None


def _coordinates(G: np.ndarray) -> np.ndarray | None:
    """Normal coordinates at the identity; None for what is no SPD matrix."""
    if not np.isfinite(G).all() or np.linalg.eigvalsh(symmetrize(G))[0] <= 0:
        return None
    return logm(symmetrize(G))
