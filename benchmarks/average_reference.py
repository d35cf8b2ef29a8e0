"""What an average reference costs: every method on EEGMMI covariances X and on C X C, C = I - 11'/d.

    python -m benchmarks.average_reference --data DATA [--channels 21] [--subjects 20] [--out FILE.json]

Leave one run out, the matrices as they are.  C X C is singular in one direction, which all of them share, so
that `CommonRange` comes before every method.  The file is written anew after each subject.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
from tqdm import tqdm

from reproduction.methods import TABLE_METHODS
from reproduction.stamps import Stamp, code_stamp
from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import METHODS, Sizes, find_obstacle
from spdmetric.io.atomic import write_atomically
from spdmetric.io.matrices import read_matrices


def referenced(X: np.ndarray) -> np.ndarray:
    """Covariances of the same signals, from each of which the mean of the channels is subtracted."""
    d = X.shape[1]
    C = np.eye(d) - 1 / d
    return C @ X @ C


def accuracies(X: np.ndarray, y: np.ndarray, runs: np.ndarray) -> dict[str, float]:
    """Percentage of right labels of every method that can take the matrices, each run left out in turn."""
    right: dict[str, int] = {}
    for run in np.unique(runs):
        train = runs != run
        fold = Fold(X[train], y[train], X[~train])
        sizes = Sizes.from_data(fold.X, fold.y)
        for name, method in {**METHODS, **TABLE_METHODS}.items():
            if find_obstacle(method, sizes) is None:
                hits = int(np.sum(fold.labels(method.make(sizes)) == y[~train]))
                right[name] = right.get(name, 0) + hits
    return {name: 100 * number / len(y) for name, number in right.items()}


def summary(plain: list[dict[str, float]], centered: list[dict[str, float]]) -> dict[str, list[float]]:
    """For each method the mean accuracy on X, on C X C, of the difference, and its standard error."""
    found = {}
    for name in plain[0]:
        if any(name not in of for of in centered):
            found[name] = [round(float(np.mean([of[name] for of in plain])), 2)]
            continue
        pairs = np.array([[a[name], b[name]] for a, b in zip(plain, centered, strict=True)])
        gain = pairs[:, 1] - pairs[:, 0]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else 0.0
        found[name] = [round(float(v), 2) for v in (*pairs.mean(axis=0), gain.mean(), error)]
    return found


def main() -> None:
    """Measure, print and write."""
    style = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=style)
    parser.add_argument("--data", type=Path, required=True, help="folder with covariances_S001-S020.npz")
    parser.add_argument("--channels", type=int, default=21)
    parser.add_argument("--subjects", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("average_reference.json"))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    plain, centered = [], []
    for subject in tqdm(range(1, arguments.subjects + 1)):
        data = read_matrices(arguments.data / "covariances_S001-S020.npz", subject=subject)
        X = data.X[:, : arguments.channels, : arguments.channels].astype(np.float64)
        plain.append(accuracies(X, data.labels, data.groups))
        centered.append(accuracies(referenced(X), data.labels, data.groups))
        content = {"channels": arguments.channels, "subjects": subject, "methods": summary(plain, centered)}
        content["stamp"] = Stamp(code_stamp())._asdict()
        write_atomically(arguments.out, json.dumps(content, indent=1) + "\n")
    print(arguments.out.read_text())


if __name__ == "__main__":
    main()
