"""To 0.999 of the lowest final alignment of the constrained solvers, from G0 in the ball of radius 10."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from statistics import median
from typing import Any

from benchmarks.cases import Case
from benchmarks.clock import rounds
from benchmarks.data import Labeled, subject9, toy, whitened
from benchmarks.outcomes import Bound, Line, Outcome, Setting, lead, missing, quantity
from benchmarks.peers import Peer, load_peer, peers_of
from benchmarks.task import Budget, Trace, reach_pulled_back, run_peer

RADIUS = 10.0
SHARE = 0.999
MOST_EVALUATIONS = 40
# How many times less than each peer ours must take.
LEAST = {
    "slsqp": 5.0,
    "trust_constr": 5.0,
    "projected_gradient": 1.0,
    "pymanopt_cg": 5.0,
    "pymanopt_tr": 5.0,
    "literal": 500.0,
}
LITERAL_PAIRS = 10

Draw = Callable[[int], Labeled]


def cases() -> list[Case]:
    return [
        case("toy8", lambda seed: toy(8, 50, seed)),
        case("toy20", lambda seed: toy(20, 50, seed)),
        case("subject9", lambda seed: subject9(), one_draw=True, patience=4),
        # One evaluation takes some 40 times those of toy20.
        case("toy20-n2000", lambda seed: toy(20, 2000, seed), patience=4, quick_draws=1),
    ]


def case(
    name: str, draw: Draw, *, one_draw: bool = False, quick_draws: int | None = None, patience: float = 1
) -> Case:
    """A fit case; budgets are the setting's times ``patience``."""

    def run(setting: Setting) -> Outcome:
        draws = 1 if one_draw else setting.draws
        if setting.quick and quick_draws is not None:
            draws = min(draws, quick_draws)
        budget = Budget(setting.seconds * patience, setting.evaluations)
        found = [_one_draw(whitened(draw(setting.seed + k)), budget, setting) for k in range(draws)]
        return _outcome(found, draws, budget)

    return Case(f"fit/{name}", run)


# ---------------------------------------------------------------------------
# One draw


@dataclass(frozen=True)
class Arrival:
    """How one contestant did on one draw."""

    seconds: float  # to the target, best of the repeats; inf if it was not reached
    evaluations: float
    best: float  # alignment, in the ball
    spent: float  # seconds of the whole run
    ended: str
    strays: int
    repeats: int
    pulled_back: tuple[float, int] | None  # seconds and evaluations if points outside were brought back


@dataclass(frozen=True)
class Found:
    """What all contestants did on one draw."""

    target: float
    arrivals: dict[str, Arrival]
    literal_seconds: float


def _one_draw(data: Labeled, budget: Budget, setting: Setting) -> Found:
    peers = [peer for peer in peers_of("fit") if not peer.missing]
    _warm(peers, data)
    contestants = {p.name: partial(run_peer, p.module, data, RADIUS, budget) for p in peers}
    runs = {name: [trace for _, trace in of] for name, of in rounds(contestants, setting).items()}
    target = SHARE * lowest_final({p.name: runs[p.name][0] for p in peers if p.module.CONSTRAINED})
    arrivals = {p.name: arrival(p, runs[p.name], data, target) for p in peers}
    fewest = min(a.evaluations for a in arrivals.values())
    literal = load_peer("literal").module.seconds_per_gradient(data.X, LITERAL_PAIRS, setting.seed)
    return Found(target, arrivals, literal * fewest)


def _warm(peers: Sequence[Peer], data: Labeled) -> None:
    """Let every peer import what it needs and load compiled code, off the clock."""
    for peer in peers:
        run_peer(peer.module, data, RADIUS, Budget(inf, 3))


def lowest_final(constrained: dict[str, Trace]) -> float:
    """Lowest alignment at which a constrained solver ended; one cut short has no final value.

    If all were cut short, the best of them.
    """
    finals = [trace.best for trace in constrained.values() if not trace.ended]
    return min(finals) if finals else max(trace.best for trace in constrained.values())


def arrival(peer: Peer, traces: Sequence[Trace], data: Labeled, target: float) -> Arrival:
    reached = [found for trace in traces if (found := trace.reach(target)) is not None]
    first = traces[0]
    return Arrival(
        seconds=min((seconds for seconds, _ in reached), default=inf),
        evaluations=min((count for _, count in reached), default=inf),
        best=first.best,
        spent=first.spent,
        ended=first.ended,
        strays=len(first.outside),
        repeats=len(traces),
        pulled_back=reach_pulled_back(first, data, RADIUS, target) if peer.module.CONSTRAINED else None,
    )


# ---------------------------------------------------------------------------
# All draws


def _outcome(found: list[Found], draws: int, budget: Budget) -> Outcome:
    ours = [f.arrivals["ours"] for f in found]
    count = quantity(
        "evaluations to target",
        median(a.evaluations for a in ours),
        f"median of {draws}",
        Bound("<=", MOST_EVALUATIONS),
        evaluations=(_median(ours, "evaluations"), None),
        note="" if all(a.seconds < inf for a in ours) else "ours did not arrive on every draw",
    )
    lines = [count, *(_peer_line(peer, found) for peer in peers_of("fit") if peer.name != "ours")]
    details = {
        "draws": draws,
        "radius": RADIUS,
        "targets": [f.target for f in found],
        "budget_seconds": budget.seconds,
        "budget_evaluations": budget.evaluations,
    }
    return Outcome([*lines, _literal_line(found)], _records(found), details)


def _peer_line(peer: Peer, found: list[Found]) -> Line:
    if peer.missing:
        return missing(peer.title, peer.missing)
    ours, theirs = [f.arrivals["ours"] for f in found], [f.arrivals[peer.name] for f in found]
    ratios = [_ratio(a, b) for a, b in zip(ours, theirs, strict=True)]
    arrives = median(ratios) < inf
    bound = Bound(">=", LEAST[peer.name]) if peer.name in LEAST else None
    return Line(
        peer.title,
        # The median of the ratios, draw by draw, which is not the ratio of the medians.
        ratio=_finite(median(ratios)),
        meaning="peer / ours" if arrives else "not reached",
        ours=_median(ours, "seconds"),
        theirs=_median(theirs, "seconds"),
        evaluations=(_median(ours, "evaluations"), _median(theirs, "evaluations")),
        bound=bound,
        holds=None if bound is None else _holds(bound, peer, ratios, ours, theirs),
        note="; ".join([*_notes(ratios, theirs, found), *_pulled_back_notes(theirs)]),
    )


def _ratio(ours: Arrival, theirs: Arrival) -> float:
    """How many times longer the peer took: nought where only ours did not arrive."""
    if theirs.seconds == inf:
        return inf
    return 0.0 if ours.seconds == inf else theirs.seconds / ours.seconds


def _holds(
    bound: Bound, peer: Peer, ours_ahead: list[float], ours: list[Arrival], theirs: list[Arrival]
) -> bool | None:
    """Whether ours is as far ahead as the bound asks; None where a peer that is late leaves it open."""
    if not peer.module.CONSTRAINED:  # compared wherever it arrives
        arrived = [ratio for ratio in ours_ahead if ratio < inf]
        return bound.holds(median(arrived)) if arrived else True
    if median(ours_ahead) < inf:
        return bound.holds(median(ours_ahead))
    spent = [
        _ratio(a, replace(b, seconds=min(b.seconds, b.spent))) for a, b in zip(ours, theirs, strict=True)
    ]
    return True if bound.holds(median(spent)) else None


def _median(arrivals: list[Arrival], name: str) -> float | None:
    return _finite(median(getattr(a, name) for a in arrivals))


def _notes(ratios: list[float], theirs: list[Arrival], found: list[Found]) -> list[str]:
    parts, late = [], [k for k, a in enumerate(theirs) if a.seconds == inf]
    if len(ratios) > 1 and min(ratios) < inf:
        parts.append(f"least ratio of a draw {min(ratios):.3g}")
    if late:
        shares = [theirs[k].best / found[k].target for k in late]
        best = " to ".join(dict.fromkeys(f"{share:.3f}" for share in (min(shares), max(shares))))
        times = f" in {len(late)} of {len(theirs)}" if len(theirs) > 1 else ""
        parts.append(f"not reached{times}, best in the ball {best} of the target")
        parts.extend(sorted({theirs[k].ended for k in late if theirs[k].ended}))
    return parts


def _pulled_back_notes(theirs: list[Arrival]) -> list[str]:
    """Where only points in the ball keep a peer from arriving earlier, say when it would."""
    counts = [inf if a.pulled_back is None else a.pulled_back[1] for a in theirs]
    if median(counts) >= median(a.evaluations for a in theirs):
        return []
    return [f"{median(counts):g} evaluations if its points were pulled back into the ball"]


def _literal_line(found: list[Found]) -> Line:
    ours, theirs = [f.arrivals["ours"] for f in found], median(f.literal_seconds for f in found)
    fewest = median(min(a.evaluations for a in f.arrivals.values()) for f in found)
    note = f"extrapolated from {LITERAL_PAIRS} pairs to all pairs and the fewest evaluations of any"
    line = lead(
        load_peer("literal").title,
        median(a.seconds for a in ours),
        theirs,
        least=LEAST["literal"],
        evaluations=(_median(ours, "evaluations"), fewest),
        note=note,
    )
    return replace(line, ours=_median(ours, "seconds"))


def _records(found: list[Found]) -> dict[str, dict[str, Any]]:
    records: dict[str, dict[str, Any]] = {}
    for peer in peers_of("fit"):
        if peer.missing:
            records[peer.name] = {"title": peer.title, "missing": peer.missing}
            continue
        arrivals = [f.arrivals[peer.name] for f in found]
        records[peer.name] = {
            "title": peer.title,
            "seconds": _finite(median(a.seconds for a in arrivals)),
            "evaluations": _finite(median(a.evaluations for a in arrivals)),
            "seconds_of_draws": [_finite(a.seconds) for a in arrivals],
            "evaluations_of_draws": [_finite(a.evaluations) for a in arrivals],
            "best_in_ball": [_finite(a.best) for a in arrivals],
            "spent_of_draws": [a.spent for a in arrivals],
            "ended": [a.ended for a in arrivals],
            "strays": [a.strays for a in arrivals],
            "pulled_back": [a.pulled_back for a in arrivals],
            "repeats": min(a.repeats for a in arrivals),
        }
    literal = {"seconds_of_draws": [f.literal_seconds for f in found], "extrapolated": True}
    records["literal"] = {"title": load_peer("literal").title, **literal}
    return records


def _finite(value: float) -> float | None:
    return value if abs(value) < inf else None
