"""Nearest neighbors, pairwise distances and the Riemannian mean, against pyRiemann."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.clock import rounds
from benchmarks.data import covariances
from benchmarks.outcomes import Outcome, Setting, best, lead, missing
from benchmarks.peers import Peer, load_peer
from spdmetric.geometry import mean_riemann, pairwise_distance, tangent_vectors
from spdmetric.linalg.symmetric import invsqrtm

MEAN_TOL = 1e-8

Grade = Callable[[np.ndarray, np.ndarray], str]  # of our answer and theirs, in words


def cases() -> list[Case]:
    return [knn(500, 22), pairwise(200, 22), mean(200, 22)]


def knn(n: int, d: int) -> Case:
    """Predict n matrices from n others, both sides from the matrices themselves."""

    def run(setting: Setting) -> Outcome:
        (X, y), (X_test, _) = covariances(n, d, setting.seed), covariances(n, d, setting.seed + 1)
        peer = load_peer("pyriemann")
        return _against(
            peer,
            lambda: nearest(X, y, X_test),
            lambda: peer.module.nearest(X, y, X_test),
            setting,
            lambda a, b: f"predictions agree on {np.mean(a == b):.1%}",
            least=150.0,
        )

    return Case(f"knn/{n}x{n}-d{d}", run)


def nearest(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """1-NN with the LogEuclidean distance: tangent vectors, then scikit-learn."""
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(1).fit(tangent_vectors(X), y).predict(tangent_vectors(X_test))


def pairwise(n: int, d: int) -> Case:
    def run(setting: Setting) -> Outcome:
        X, _ = covariances(n, d, setting.seed)
        peer = load_peer("pyriemann")
        return _against(
            peer,
            lambda: pairwise_distance(X, metric="riemann"),
            lambda: peer.module.pairwise(X),
            setting,
            lambda a, b: f"largest difference {np.abs(a - b).max():.1g}",
        )

    return Case(f"pairwise/{n}-d{d}", run)


def mean(n: int, d: int) -> Case:
    def run(setting: Setting) -> Outcome:
        X, _ = covariances(n, d, setting.seed)
        peer = load_peer("pyriemann")

        def slope(G: np.ndarray) -> float:
            """What the tolerance is about: the length of the gradient."""
            return float(np.linalg.norm(tangent_vectors(X, factor=invsqrtm(G)).mean(axis=0)))

        return _against(
            peer,
            lambda: mean_riemann(X, tol=MEAN_TOL),
            lambda: peer.module.mean(X, MEAN_TOL),
            setting,
            lambda a, b: f"tol {MEAN_TOL:.0e} for both, gradients reached {slope(a):.1g} and {slope(b):.1g}",
            least=1.0,
        )

    return Case(f"mean/{n}-d{d}", run)


def _against(
    peer: Peer,
    ours: Callable[[], np.ndarray],
    theirs: Callable[[], np.ndarray],
    setting: Setting,
    grade: Grade,
    *,
    least: float | None = None,
) -> Outcome:
    if peer.missing:
        return Outcome([missing(peer.title, peer.missing)], {peer.name: {"missing": peer.missing}})
    ours()  # compiled code is loaded off the clock
    runs = rounds({"ours": ours, peer.name: theirs}, setting)
    seconds = {name: best([s for s, _ in of_one]) for name, of_one in runs.items()}
    records: dict[str, dict[str, Any]] = {
        name: {"seconds": seconds[name], "repeats": len(of_one)} for name, of_one in runs.items()
    }
    note = grade(runs["ours"][0][1], runs[peer.name][0][1])
    return Outcome([lead(peer.title, seconds["ours"], seconds[peer.name], least=least, note=note)], records)
