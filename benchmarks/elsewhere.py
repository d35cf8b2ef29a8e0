"""Accuracy on data that come with other packages: time series of aeon, digits of scikit-learn.

    pip install --no-deps aeon        # its folder of data is read, its code is not run
    python -m benchmarks.elsewhere [--draws N] [--out FILE.json]

None of them is of the fields that the package was made for, and none is in the tables of the paper or beyond
it.  Covariances are shrunk (OAS); series of one channel, and short ones, are taken with some of their pasts
(lags).  Training sets are drawn from all series of a set, at most 400 others are for testing.  These sets
were looked at when the multiples of the penalty and the rule for neighbors were found (``docs/math.md``).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.covariance import oas
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedShuffleSplit
from tqdm import tqdm

from reproduction.stamps import Stamp, code_stamp
from reproduction.statistics import Mean
from spdmetric.comparison.methods import METHODS, Sizes
from spdmetric.io.atomic import write_atomically

COMPARED = (
    *("spdmetric", "spdmetric-neighbors", "logeuclid-mean", "logeuclid-mean-lda"),
    *("logeuclid-mean-logistic", "fgmdm"),
)


class Series(NamedTuple):
    """A set of aeon: how many points of a series go into a vector, how far apart, and what is drawn."""

    name: str
    lags: int
    step: int
    sizes: tuple[int, ...]  # of training sets


SERIES = (
    Series("JapaneseVowels", 1, 1, (90, 180)),
    Series("BasicMotions", 2, 1, (24, 40)),
    Series("ACSF1", 10, 2, (100,)),
    Series("OSULeaf", 16, 2, (100, 200)),
    Series("GunPoint", 12, 1, (50, 100)),
    Series("ArrowHead", 12, 1, (60, 120)),
    Series("ItalyPowerDemand", 5, 1, (60, 200)),
)
DIGITS = (100, 300)


class Labeled(NamedTuple):
    """A set of matrices."""

    name: str
    X: np.ndarray
    y: np.ndarray
    sizes: tuple[int, ...]


def read_series(folder: Path, name: str) -> tuple[list[np.ndarray], np.ndarray]:
    """All series of a set, (channels, times), and their labels, from its files."""
    series, labels = [], []
    for part in ("TRAIN", "TEST"):
        text = (folder / name / f"{name}_{part}.ts").read_text(encoding="utf-8")
        for line in text.lower().partition("@data")[2].split():
            *channels, label = line.split(":")
            series.append(np.array([channel.split(",") for channel in channels], dtype=float))
            labels.append(label)
    return series, np.array(labels)


def with_lags(series: np.ndarray, lags: int, step: int) -> np.ndarray:
    """Channels, and the same channels some points later, (lags x channels, times)."""
    n = series.shape[1] - (lags - 1) * step
    return np.concatenate([series[:, k * step : k * step + n] for k in range(lags)])


def covariances_of(folder: Path, kind: Series) -> Labeled:
    """Matrices of a set of series."""
    series, labels = read_series(folder, kind.name)
    rng = np.random.default_rng(0)
    noise = 1e-3 if kind.name == "ACSF1" else 0.0  # long constant pieces have no covariance
    X = [
        oas(with_lags(one + noise * rng.standard_normal(one.shape), kind.lags, kind.step).T)[0]
        for one in series
    ]
    return Labeled(kind.name, np.array(X), labels, kind.sizes)


def digits() -> Labeled:
    """Covariances of place, gray value and derivatives over the pixels of an image."""
    images, labels = load_digits().images, load_digits().target
    place = np.mgrid[:8, :8]
    X = []
    for image in images:
        down, right = np.gradient(image)
        second = np.gradient(down)[0], np.gradient(right)[1]
        kinds = [*place, image, *map(np.abs, (down, right, *second)), down, right]
        C = np.cov(np.stack(kinds).reshape(9, -1))
        X.append(C + 1e-3 * np.trace(C) / 9 * np.eye(9))
    return Labeled("digits", np.array(X), labels, DIGITS)


def data_sets() -> Iterator[Labeled]:
    """All sets that can be had here."""
    found = find_spec("aeon")
    if found is None or found.origin is None:
        print("aeon is missing, the digits alone are run: pip install --no-deps aeon")
    else:
        folder = Path(found.origin).parent / "datasets" / "data"
        yield from (covariances_of(folder, kind) for kind in SERIES)
    yield digits()


def accuracies(data: Labeled, size: int, draws: int) -> dict[str, np.ndarray]:
    """Per cent of right labels of each method, one for each draw."""
    rest = min(400, len(data.y) - size)
    splits = StratifiedShuffleSplit(draws, train_size=size, test_size=rest, random_state=0)
    found: dict[str, list[float]] = {name: [] for name in COMPARED}
    for train, test in splits.split(data.X, data.y):
        sizes = Sizes.from_data(data.X[train], data.y[train])
        for name, scores in found.items():
            model = METHODS[name].make(sizes).fit(data.X[train], data.y[train])
            scores.append(100 * float(np.mean(model.predict(data.X[test]) == data.y[test])))
    return {name: np.array(scores) for name, scores in found.items()}


def measure(draws: int) -> list[dict[str, object]]:
    """A line for each set and size."""
    lines: list[dict[str, object]] = []
    tasks = [(data, size) for data in data_sets() for size in data.sizes]
    for data, size in tqdm(tasks, disable=None):
        found = accuracies(data, size, draws)
        line = {
            **{"data": data.name, "n": size, "d": data.X.shape[1], "classes": len(np.unique(data.y))},
            "accuracy": {name: Mean.of(scores)._asdict() for name, scores in found.items()},
            "less LDA": Mean.of(found["spdmetric"] - found["logeuclid-mean-lda"])._asdict(),
        }
        lines.append(line)
        told = "  ".join(f"{METHODS[name].short} {scores.mean():.1f}" for name, scores in found.items())
        print(f"{data.name:16s} n = {size:3d}  {told}", flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=10, help="training sets of each size")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("elsewhere.json"))
    arguments = parser.parse_args()
    content = {"draws": arguments.draws, "lines": measure(arguments.draws)}
    content["stamp"] = Stamp(code_stamp())._asdict()
    write_atomically(arguments.out, json.dumps(content, indent=1) + "\n")
