"""Several views against the first alone, and what they cost.

    python -m benchmarks.views --data DATA [--only NAME] [--out FILE.json]

cost
    CPU time, in one process, of a value and gradient of V views of n samples over that of V n matrices.
msr-action3d
    Skeletons, 20 actions, leave one subject out: covariances of the whole sequence, its first, second and
    middle half.
eegmmi within, eegmmi across
    Imagined fists, 21 channels, 8-30 Hz and five bands within it: leave one run out of a subject, 30 trials
    to learn from; leave one subject out, each recentered by its own mean.
ssvep
    8 channels at three frequencies: the whole 24 x 24 matrix, and its three diagonal blocks; the first
    recording is for testing.

Accuracies of `LogEuclideanClassifier` in percent.  Differences are paired, over subjects.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from reproduction.stamps import Stamp, code_stamp
from spdmetric import LogEuclideanClassifier, stack_views
from spdmetric.io.atomic import write_atomically
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.objectives.start import find_start

WINDOWS = ((0.0, 1.0), (0.0, 0.5), (0.5, 1.0), (0.25, 0.75))  # shares of a sequence
COSTS = ((200, 5, 16), (292, 4, 57))


def measure_cost(repeats: int = 30) -> list[dict[str, object]]:
    """Medians of the CPU time of a value and gradient, in turns."""
    rng, rows = np.random.default_rng(0), []
    for n, V, d in COSTS:
        samples = rng.standard_normal((n * V, d, 2 * d))
        X = samples @ samples.mT / (2 * d)
        runs = [_evaluation(X.reshape(n, V, d, d)), _evaluation(X)]
        times = np.array([[_clock(run) for run in runs] for _ in range(repeats)])
        views, one = np.median(times, axis=0).tolist()
        rows.append({"n": n, "views": V, "d": d, "seconds": views, "one_view": one, "ratio": views / one})
    return rows


def _evaluation(X: np.ndarray) -> Callable[[], object]:
    data = Data(X, ClassTarget.from_codes(np.arange(len(X)) % 2))
    start = find_start(data, "riemann", None)
    objective, ball = Misalignment(data.whitened(start.factor)), start.ball(None, 2.0)
    here = objective.at(ball.center)
    point = ball.retract(here.point, -here.gradient / np.linalg.norm(here.gradient))
    return lambda: objective.at(point).gradient


def _clock(run: Callable[[], object]) -> float:
    began = time.process_time()
    run()
    return time.process_time() - began


def score_msr(folder: Path) -> Iterator[tuple[float, float]]:
    """Whole sequences, and four windows of them."""
    data = np.load(folder / "msr-action3d" / "odd_subjects.npz")
    sequences = np.split(data["frames"].astype(float), np.cumsum(data["lengths"])[:-1])
    X = np.array([[_covariance(frames, *window) for window in WINDOWS] for frames in sequences])
    y, subjects = data["labels"], data["subjects"]
    for subject in np.unique(subjects):
        test = subjects == subject
        yield _score_both(X[~test], y[~test], X[test], y[test])


def _covariance(frames: np.ndarray, first: float, last: float) -> np.ndarray:
    n = len(frames)
    C = np.cov(frames[int(first * n) : int(np.ceil(last * n))], rowvar=False)
    return C + (1e-3 * np.trace(C) / len(C) + 1e-9) * np.eye(len(C))


def score_within(folder: Path) -> Iterator[tuple[float, float]]:
    """Runs of a subject, each left out in turn."""
    for X, y, runs in _read_bands(folder):
        folds = [(runs != run, runs == run) for run in np.unique(runs)]
        found = [_score_both(X[train], y[train], X[test], y[test]) for train, test in folds]
        yield tuple(np.mean(found, axis=0).tolist())


def score_across(folder: Path) -> Iterator[tuple[float, float]]:
    """Subjects, each left out in turn and recentered by its own mean."""
    found = list(_read_bands(folder))
    subjects = np.repeat(np.arange(len(found)), [len(y) for _, y, _ in found])
    X, y = (np.concatenate(column) for column in list(zip(*found, strict=True))[:2])
    for subject in np.unique(subjects):
        test = subjects == subject
        yield _score_both(X[~test], y[~test], X[test], y[test], sample_domain=subjects[~test])


def _read_bands(folder: Path) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    data = np.load(folder / "eegmmi" / "bands_S001-S020.npz")
    bands = data["bands"].tolist()
    narrow = [k for k, (low, high) in enumerate(bands) if k and low >= 8 and high <= 30]
    return [
        (data[f"X{s}"][:, [0, *narrow]].astype(float), data[f"y{s}"], data[f"r{s}"]) for s in range(1, 21)
    ]


def score_ssvep(folder: Path) -> Iterator[tuple[float, float]]:
    """The whole matrix, and its diagonal blocks as further views."""
    data = np.load(folder / "ssvep" / "covariances.npz")
    for s in range(1, 13):
        X, y, recording = data[f"X{s}"], data[f"y{s}"], data[f"r{s}"]
        blocks = {f"block {k}": X[:, 8 * k : 8 * k + 8, 8 * k : 8 * k + 8] for k in range(3)}
        views, test = stack_views({"whole": X, **blocks}), recording == recording.min()
        yield _score_both(views[~test], y[~test], views[test], y[test])


def _score_both(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, **params: np.ndarray
) -> tuple[float, float]:
    """Accuracy of the first view alone, and with all views to choose from."""
    scores = []
    for train, test in ((X[:, :1], X_test[:, :1]), (X, X_test)):
        model = LogEuclideanClassifier().fit(train, y, **params)
        model = model.adapt(test) if "sample_domain" in params else model
        scores.append(100 * model.score(test, y_test))
    return scores[0], scores[1]


DATA = {
    "msr-action3d": score_msr,
    "eegmmi within": score_within,
    "eegmmi across": score_across,
    "ssvep": score_ssvep,
}


def summarize(scores: list[tuple[float, float]]) -> dict[str, object]:
    """Means, and the mean paired difference with its standard error."""
    first, views = np.array(scores).T
    gain = views - first
    return {
        "first": first.mean(),
        "views": views.mean(),
        "gain": gain.mean(),
        "error": gain.std(ddof=1) / np.sqrt(len(gain)),
        "subjects": np.round(scores, 2).tolist(),
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=["cost", *DATA])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    args = parser.parse_args(argv)
    results = json.loads(args.out.read_text()) if args.out.exists() else {}
    results["stamp"] = Stamp(code_stamp())._asdict()
    if args.only in (None, "cost"):
        results["cost"] = measure_cost()
        for row in results["cost"]:
            print("{n} x {views} views of {d} x {d}: {ratio:.2f} of the time of one view".format(**row))
    for name, score in DATA.items():
        if args.only in (None, name):
            results[name] = summarize(list(score(args.data)))
            text = "first {first:.1f}  views {views:.1f}  gain {gain:+.1f} +- {error:.1f}"
            print(f"{name:16}", text.format(**results[name]))
        write_atomically(args.out, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
