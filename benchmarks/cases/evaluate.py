"""Value and gradient against one eigendecomposition of the same stack, one thread each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.cases import Case
from benchmarks.clock import race
from benchmarks.compiled import kernels_used, threaded
from benchmarks.data import covariances, whitened
from benchmarks.outcomes import Outcome, Setting, lead, share
from benchmarks.peers import load_peer
from spdmetric.linalg.symmetric import congruence
from spdmetric.manifolds import Ball, BallPoint, RankBall
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data

# (n, d), and the most that ours may take of the eigendecomposition
SIZES = (
    (50, 8, 0.5),
    (144, 22, 0.33),
    (1000, 22, 0.3),
    (5000, 8, 0.17),
    (20000, 3, 0.2),
    (500, 64, 0.7),
    (40, 400, 2.1),
)
# A step at rank 10 took this share of the decomposition of the same 45 matrices 400 x 400 at commit d56d627:
# the median of three measurements on a busy machine, 0.043, 0.048 and 0.054.
BEFORE = 0.048


def cases() -> list[Case]:
    return [*(case(n, d, most) for n, d, most in SIZES), two_threads(1000, 22), low_rank(45, 400, 10)]


def case(n: int, d: int, most: float | None = None) -> Case:
    return Case(f"evaluate/n{n}-d{d}", lambda setting: _evaluate(n, d, most, setting))


def two_threads(n: int, d: int) -> Case:
    return Case(f"evaluate/n{n}-d{d}-2threads", lambda setting: _two_threads(n, d, setting))


def _evaluate(n: int, d: int, most: float | None, setting: Setting) -> Outcome:
    X, target, point = _problem(n, d, setting.seed)
    peer = load_peer("numpy_eigh")
    stack = congruence(point.factor, X)
    contestants = {
        "ours": _evaluation(Misalignment(Data(X, target)), point),
        peer.name: lambda: peer.module.decompose(stack),
    }
    with threadpool_limits(1):
        seconds, records = race(contestants, setting)
    note = "" if kernels_used() else "NumPy path"
    line = share(peer.title, seconds["ours"], seconds[peer.name], most=most, note=note)
    return Outcome([line], records, {"threads": 1, "kernels": kernels_used()})


def _two_threads(n: int, d: int, setting: Setting) -> Outcome:
    X, target, point = _problem(n, d, setting.seed)
    contestants = {
        "ours": _evaluation(threaded(X, target, 2), point),
        "one": _evaluation(threaded(X, target, 1), point),
    }
    with threadpool_limits(1):  # of BLAS: the threads are those that share the chunks
        seconds, records = race(contestants, setting)
    line = lead("ours on one thread", seconds["ours"], seconds["one"], least=1.6)
    return Outcome([line], records, {"threads": 2, "kernels": kernels_used()})


def low_rank(n: int, d: int, rank: int) -> Case:
    """An iteration at low rank: retraction, value and gradient."""
    return Case(f"iterate/n{n}-d{d}-rank{rank}", lambda setting: _low_rank(n, d, rank, setting))


def _low_rank(n: int, d: int, rank: int, setting: Setting) -> Outcome:
    X, codes = covariances(n, d, setting.seed)
    objective, ball = Misalignment(Data(X, ClassTarget.from_codes(codes))), RankBall(d, rank, 4.0)
    gradient = objective.at(ball.center).gradient
    step = -gradient / np.linalg.norm(gradient)
    peer = load_peer("numpy_eigh")

    def iterate() -> tuple[float, np.ndarray]:
        here = objective.at(ball.retract(ball.center, step))
        return here.value, here.gradient

    contestants = {"ours": iterate, peer.name: lambda: peer.module.decompose(X)}
    with threadpool_limits(1):
        seconds, records = race(contestants, setting)
    note = f"extrapolated from {BEFORE} of the decomposition, measured at commit d56d627 on a busy machine"
    lines = [
        share("the same before", seconds["ours"], BEFORE * seconds[peer.name], most=0.25, note=note),
        share(peer.title, seconds["ours"], seconds[peer.name]),
    ]
    return Outcome(lines, records, {"threads": 1})


def _problem(n: int, d: int, seed: int) -> tuple[np.ndarray, ClassTarget, BallPoint]:
    """Whitened matrices, and a point half way out in the ball of radius 10."""
    X, codes = whitened(covariances(n, d, seed))
    S = np.random.default_rng(seed).standard_normal((d, d))
    S = S + S.T
    return X, ClassTarget.from_codes(codes), Ball(np.eye(d), 10.0).point(S * (5.0 / np.linalg.norm(S)))


def _evaluation(objective: Misalignment, point: BallPoint) -> Callable[[], tuple[float, np.ndarray]]:
    def evaluate() -> tuple[float, np.ndarray]:
        here = objective.at(point)
        return here.value, here.gradient

    return evaluate
