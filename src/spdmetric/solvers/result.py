"""What a solver gives back: where it ended, how, and every iteration on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple


class Status(Enum):
    """How a run ended; the values are the sentences a user reads."""

    CONVERGED = "Converged: the KKT residual is below tol."
    STALLED = (
        "Stopped at the limit of rounding: no step improves the value any more although the KKT "
        "residual is still above tol. Raise tol."
    )
    MAX_ITER = "Stopped after max_iter iterations with the KKT residual above tol. Raise max_iter or tol."
    CALLBACK = "Stopped by the callback."
    NOISE = (
        "Stopped at the noise of the mini-batches: the last passes over the data improved the value by next "
        "to nothing. For a KKT point use another solver."
    )
    STREAM = "Learned from the batches seen so far, each seen once."


class Record(NamedTuple):
    """One line of the history of a run."""

    iteration: int
    value: float
    residual: float
    distance: float  # from the center
    evaluations: int  # so far
    seconds: float


@dataclass(frozen=True)
class Solution:
    """Where a solver ended, and how."""

    point: Any  # of the manifold
    value: float  # of the objective there
    status: Status  # ``status.value`` is a sentence
    residual: float  # of KKT: affine-invariant length of the gradient of the Lagrangian, over the gain
    multiplier: float  # of the ball constraint; 0 inside the ball
    history: tuple[Record, ...] = field(repr=False)  # after each iteration
    # of the objective there, so that the caller need not compute it again; it is not stored
    evaluation: Any = field(default=None, repr=False, compare=False)

    @property
    def converged(self) -> bool:
        return self.status in (Status.CONVERGED, Status.NOISE)

    @property
    def n_iter(self) -> int:
        return self.history[-1].iteration

    # Stored by skops and pickle as plain values: skops cannot make a member of an Enum.
    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "status": self.status.name, "evaluation": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, status=Status[state["status"]])


Callback = Callable[[Record], object]  # one that returns True stops the run
