"""Nearest neighbors, pairwise distances and the Riemannian mean, against pyRiemann."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.clock import race, rounds
from benchmarks.data import Labeled, cho2017, covariances, eegmmi, subject9, textures, virus
from benchmarks.outcomes import Absent, Bound, Outcome, Setting, best, lead, missing, quantity, share
from benchmarks.peers import Peer, load_peer
from spdmetric.geometry import mean_riemann, pairwise_distance, tangent_vectors
from spdmetric.linalg.symmetric import invsqrtm
from spdmetric.means import average_riemann

MEAN_TOL = 1e-8
# n and d, the most that ours may take of pyRiemann's time, and how much more patience the case needs
MEANS = ((200, 22, 0.25, 1.0), (2000, 51, 0.5, 8.0), (40, 200, 0.75, 8.0), (40, 400, 0.75, 15.0))
MOST_PASSES = 8
REAL: dict[str, Callable[[], Labeled]] = {
    "subject9": subject9,
    "cho2017-01": lambda: cho2017(1),
    "cho2017-13": lambda: cho2017(13),
    "eegmmi-01-d21": lambda: eegmmi(1, 21),
    "eegmmi-01-d64": lambda: eegmmi(1, 64),
    "eegmmi-07-d64": lambda: eegmmi(7, 64),
    "textures-D2-D29": lambda: textures("D2", "D29", 50, 2015),
    "virus": lambda: virus(2015),
}

Grade = Callable[[np.ndarray, np.ndarray], str]  # of our answer and theirs, in words


def cases() -> list[Case]:
    means = [mean(*size) for size in MEANS]
    real = Case("mean/passes", passes_on_real_data, "result")
    return [knn(500, 22), pairwise(200, 22), *means, real]


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


def mean(n: int, d: int, most: float | None = None, patience: float = 1) -> Case:
    """The Riemannian mean to the same residual: the affine-invariant length of the mean tangent vector."""

    def run(setting: Setting) -> Outcome:
        X, _ = covariances(n, d, setting.seed)
        peer = load_peer("pyriemann")
        if peer.missing:
            return Outcome([missing(peer.title, peer.missing)], {peer.name: {"missing": peer.missing}})
        found: dict[str, np.ndarray] = {}
        contestants = {
            "ours": lambda: found.update(ours=mean_riemann(X, tol=MEAN_TOL)),
            peer.name: lambda: found.update(theirs=peer.module.mean(X, MEAN_TOL)),
        }
        best, records = race(contestants, replace(setting, patience=patience * setting.patience))
        reached = {name: _residual(X, G) for name, G in found.items()}
        note = "residuals " + " and ".join(f"{reached[name]:.1g}" for name in ("ours", "theirs"))
        line = share(peer.title, best["ours"], best[peer.name], most=most, note=note)
        if line.holds and reached["ours"] > MEAN_TOL:
            line = replace(line, holds=False)
        count = quantity("passes", passes(X), "count", Bound("<=", MOST_PASSES))
        return Outcome([line, count], records, {"tol": MEAN_TOL, "residuals": reached})

    return Case(f"mean/{n}-d{d}", run)


def _residual(X: np.ndarray, G: np.ndarray) -> float:
    return float(np.linalg.norm(tangent_vectors(X, factor=invsqrtm(G)).mean(axis=0)))


def passes(X: np.ndarray) -> int:
    """How often the mean decomposes every matrix.

    The arithmetic and the harmonic mean, which it starts from, average matrices and decompose none;
    the others average vectors.
    """
    count = 0

    def average(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        nonlocal count
        rows = function(X)
        count += rows.ndim == 2
        return rows.mean(axis=0)

    average_riemann(average, len(X), tol=MEAN_TOL)
    return count


def passes_on_real_data(setting: Setting) -> Outcome:
    """Passes on each set of real data; those that are absent are left out."""
    lines = []
    for name, draw in REAL.items():
        with suppress(Absent):
            lines.append(quantity(name, passes(draw().X), "count", Bound("<=", MOST_PASSES)))
    if not lines:
        raise Absent("real data absent: set SPDMETRIC_DATA, or give --data, to a folder of it")
    return Outcome(lines, {}, {"tol": MEAN_TOL})


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
