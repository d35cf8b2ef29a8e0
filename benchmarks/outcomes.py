"""What a case gives back: numbers of each contestant, and lines that compare them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any


class Absent(Exception):
    """A case cannot run here, data or a kernel being absent; the message says what is missing."""


@dataclass(frozen=True)
class Setting:
    """How much work a run may take.

    Attributes
    ----------
    quick : bool
        Whether cases choose their smaller form.
    rounds : int
        Most repeats of a contestant; the best counts.
    patience : float
        Seconds after which a contestant is not repeated any more (see `benchmarks.clock`).
    draws : int
        Draws of the toy sets.
    seconds, evaluations : float, int
        Budget of one run of a peer; the seconds are the processor's.
    seed : int
        Of all random data.
    """

    quick: bool
    rounds: int
    patience: float
    draws: int
    seconds: float
    evaluations: int
    seed: int = 2015


QUICK = Setting(quick=True, rounds=50, patience=1.0, draws=5, seconds=5.0, evaluations=1000)
FULL = Setting(quick=False, rounds=200, patience=5.0, draws=5, seconds=15.0, evaluations=5000)


@dataclass(frozen=True)
class Bound:
    """What a number must show: ``sense`` is "<=" or ">="."""

    sense: str
    limit: float

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.sense == "<=" else value >= self.limit

    def __str__(self) -> str:
        return f"{'≤' if self.sense == '<=' else '≥'} {self.limit:g}"


@dataclass(frozen=True)
class Line:
    """One line of the table.

    Attributes
    ----------
    against : str
        The peer, or the quantity that is measured.
    ratio : float or None
        What the bound is about; None where there is nothing to divide.
    meaning : str
        How the ratio is made: "ours / peer", "peer / ours" or the name of a quantity.
    ours, theirs : float or None
        Seconds.
    evaluations : tuple
        Ours and theirs, None where they are not counted.
    bound : Bound or None
        From the issue.
    holds : bool or None
        None without a bound, or where the numbers cannot tell.
    note : str
        What a reader has to know about the line.
    """

    against: str
    ratio: float | None = None
    meaning: str = ""
    ours: float | None = None
    theirs: float | None = None
    evaluations: tuple[float | None, float | None] = (None, None)
    bound: Bound | None = None
    holds: bool | None = None
    note: str = ""


def share(against: str, ours: float, theirs: float, *, most: float | None = None, **more: Any) -> Line:
    """Compare by ours / peer; the bound, if any, is the most that it may be."""
    bound = None if most is None else Bound("<=", most)
    return _compared(against, ours / theirs, "ours / peer", bound, ours=ours, theirs=theirs, **more)


def lead(against: str, ours: float, theirs: float, *, least: float | None = None, **more: Any) -> Line:
    """Compare by peer / ours; the bound, if any, is the least that it may be."""
    bound = None if least is None else Bound(">=", least)
    return _compared(against, theirs / ours, "peer / ours", bound, ours=ours, theirs=theirs, **more)


def quantity(name: str, value: float, meaning: str, bound: Bound | None = None, **more: Any) -> Line:
    """A number that is no comparison, an exponent for instance."""
    return _compared(name, value, meaning, bound, **more)


def missing(title: str, message: str) -> Line:
    """A peer that is not installed: named, with what to install."""
    return Line(title, note=message)


def _compared(against: str, ratio: float, meaning: str, bound: Bound | None, **more: Any) -> Line:
    holds = None if bound is None else bound.holds(ratio)
    return Line(against, ratio if isfinite(ratio) else None, meaning, bound=bound, holds=holds, **more)


@dataclass(frozen=True)
class Outcome:
    """What a case found.

    Attributes
    ----------
    lines : list of Line
        For the table.
    contestants : dict
        By name: plain data, the seconds, evaluations and repeats of each.
    details : dict
        Whatever else belongs to the record of the case, plain data.
    """

    lines: list[Line]
    contestants: dict[str, dict[str, Any]] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def best(seconds: list[float]) -> float:
    """The smallest of several times: what the machine can do when nothing else runs."""
    return min(seconds, default=inf)
