"""A session in which one class is rare: by its mean, by estimated shares, by shares that are known.

    python -m benchmarks.label_shift --data DATA [--draws N] [--out FILE.json]

The situation of pyRiemann's issue 490: a model is carried to a new session by the mean of a buffer of
unlabeled matrices, and the buffer is 1:1, 1:3 or 1:9.  Balanced accuracy on other matrices of the session.

simulation
    Two classes of 4 x 4 matrices; every draw is a session that is mixed by a matrix of its own.
subject 9
    BCI IV 2a, six pairs of classes: learned on session T, the buffer is from one half of session E, the other
    half is for testing; either class is the rare one in turn.
eegmmi
    Imagined fists, 21 channels: learned on the other subjects, the buffer is from two runs, the third is for
    testing; either class is the rare one in turn.

Differences are paired: their standard error is over sessions in the simulation, over pairs of classes of
subject 9 and over subjects of EEGMMI, of each the mean over the draws.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from tqdm import tqdm

from reproduction.datasets import load_bci_iv_2a
from reproduction.stamps import Stamp, code_stamp
from reproduction.statistics import Mean
from reproduction.transfer import read_recordings
from spdmetric import LogEuclideanClassifier
from spdmetric.geometry import matrices_at
from spdmetric.io.atomic import write_atomically
from spdmetric.linalg.symmetric import congruence, expm, symmetrize

MOVEMENTS = ("left_hand", "right_hand", "feet", "tongue")
RATIOS = (1, 3, 9)  # of the frequent class to the rare one
WAYS = ("mean", "estimated", "known")


class Session(NamedTuple):
    """A model, and matrices of a session that it has not seen, to fill buffers from and to test on."""

    unit: str  # what differences are paired by
    model: LogEuclideanClassifier
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def buffered(y: np.ndarray, ratio: int, rare: object, rng: np.random.Generator) -> np.ndarray:
    """Rows of a buffer, as many of them at every ratio."""
    of_rare, others = (rng.permutation(np.flatnonzero((y == rare) == is_rare)) for is_rare in (True, False))
    size = min(len(of_rare), len(others))
    few = max(1, round(size / (1 + ratio)))
    return np.concatenate([of_rare[:few], others[: size - few]])


def scores(session: Session, rows: np.ndarray) -> list[float]:
    """Balanced accuracy in per cent of every way, and how far the estimated shares are from the true ones."""
    model, X, y = session.model, session.X[rows], session.y[rows]
    count = np.array([np.sum(y == label) for label in model.classes_])
    estimated = model.adapt(X, prior="estimate")
    known = model.adapt(X, sample_weight=1 / count[np.searchsorted(model.classes_, y)])
    found = [
        100 * balanced_accuracy_score(session.y_test, m.predict(session.X_test))
        for m in (model.adapt(X), estimated, known)
    ]
    return [*found, float(np.abs(estimated.prior_ - count / count.sum()).max())]


def simulated(draws: int) -> Iterator[Session]:
    """Sessions whose classes differ by one vector, each through a mixing of its own."""
    rng, side = np.random.default_rng(0), np.zeros(10)
    side[[0, 3, 7]] = 0.5, -0.4, 0.3

    def session(n: int, mixing: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        y = np.arange(n) % 2
        V = np.where(y == 0, -1, 1)[:, None] * side + 0.35 * rng.standard_normal((n, 10))
        return congruence(mixing, matrices_at(V, np.eye(4))), y

    model = LogEuclideanClassifier(head="centroid").fit(*session(160, np.eye(4)))
    for k in range(draws):
        mixing = expm(0.4 * symmetrize(rng.standard_normal((4, 4))))
        yield Session(f"session {k}", model, *session(200, mixing), *session(400, mixing))


def subject_9(data: Path, draws: int) -> Iterator[Session]:
    """Pairs of classes, learned on session T."""
    X, y, session = load_bci_iv_2a(9, data / "bci2a-a09", classes=MOVEMENTS)
    trained = session == np.unique(session)[-1]  # "T" comes after "E"
    for pair in combinations(np.unique(y), 2):
        old, new = (np.isin(y, pair) & of for of in (trained, ~trained))
        model = LogEuclideanClassifier(head="centroid").fit(X[old], y[old])
        for draw in range(draws):
            order = np.random.default_rng(draw).permutation(np.flatnonzero(new))
            half = [np.concatenate([order[y[order] == c][k::2] for c in pair]) for k in (0, 1)]
            yield Session(" ".join(pair), model, X[half[0]], y[half[0]], X[half[1]], y[half[1]])


def eegmmi(data: Path, draws: int) -> Iterator[Session]:
    """Subjects, learned on all others."""
    trials = read_recordings(data / "eegmmi")
    trials = trials._replace(X=trials.X[:, :21, :21])
    for subject in np.unique(trials.subject).tolist():
        others, own = trials.of(trials.subject != subject), trials.of(trials.subject == subject)
        model = LogEuclideanClassifier(head="centroid")
        model.fit(others.X, others.y, groups=others.subject, sample_domain=others.session)
        for draw in range(draws):
            test_run = np.unique(own.run)[draw % 3]
            buffer, test = own.of(own.run != test_run), own.of(own.run == test_run)
            yield Session(f"subject {subject}", model, buffer.X, buffer.y, test.X, test.y)


def measure(name: str, sessions: Iterator[Session]) -> list[dict[str, object]]:
    """A line for each ratio."""
    found: dict[int, dict[str, list[list[float]]]] = {ratio: {} for ratio in RATIOS}
    for k, session in enumerate(tqdm(sessions, desc=name, disable=None)):
        for ratio in RATIOS:
            rng = np.random.default_rng([k, ratio])
            rows = buffered(session.y, ratio, session.model.classes_[k % 2], rng)
            found[ratio].setdefault(session.unit, []).append(scores(session, rows))
    lines: list[dict[str, object]] = []
    for ratio, by_unit in found.items():
        units = np.array([np.mean(of, axis=0) for of in by_unit.values()])
        means = dict(zip((*WAYS, "shares_off"), units.mean(axis=0).tolist(), strict=True))
        gain = Mean.of(units[:, 1] - units[:, 0])
        draws = sum(map(len, by_unit.values()))
        lines.append({"data": name, "ratio": ratio, **means, "gain": gain._asdict(), "draws": draws})
        ways = "  ".join(f"{way} {means[way]:.1f}" for way in WAYS)
        off = f"shares off by {means['shares_off']:.2f}"
        print(f"{name:12s} 1:{ratio}  {ways}  gain {gain.mean:+.2f} ± {gain.se or 0:.2f}  {off}", flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, help="folder with bci2a-a09 and eegmmi; without, the simulation alone"
    )
    parser.add_argument("--draws", type=int, default=20, help="buffers of each session, pair or subject")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("label_shift.json"))
    arguments = parser.parse_args()
    parts: dict[str, Callable[[], Iterator[Session]]] = {"simulation": lambda: simulated(arguments.draws)}
    if arguments.data is not None:
        parts["subject 9"] = lambda: subject_9(arguments.data, arguments.draws)
        parts["eegmmi"] = lambda: eegmmi(arguments.data, arguments.draws)
    lines = [line for name, sessions in parts.items() for line in measure(name, sessions())]
    content = {"draws": arguments.draws, "lines": lines, "stamp": Stamp(code_stamp())._asdict()}
    write_atomically(arguments.out, json.dumps(content, indent=1) + "\n")
