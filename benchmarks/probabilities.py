"""How good the probabilities are: log loss and calibration on the groups of the table ``beyond``.

    python -m benchmarks.probabilities --data DATA [--repeats N] [--out FILE.json]

`LogEuclideanClassifier` against logistic regression of tangent vectors at the mean, on the same splits.  The
log loss of a matrix is at most ``-log 1e-6``.  The expected calibration error has ten bins of equal width of
the highest probability.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tqdm import tqdm

from reproduction.beyond import beyond_table
from reproduction.stamps import Stamp, code_stamp
from reproduction.tables import FixedRow, Row
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric
from spdmetric.io.atomic import write_atomically

MODELS = {
    "LogEuclideanClassifier": LogEuclideanClassifier,
    "tangent space + logistic": lambda: make_pipeline(
        LogEuclideanMetric(radius=0.0), LogisticRegression(max_iter=5000)
    ),
}
BINS = 10


def log_loss(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Mean negative log probability of the labels."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(codes)), codes], 1e-6)).mean())


def calibration_error(probabilities: np.ndarray, codes: np.ndarray) -> float:
    """Mean distance of the highest probability from the share of right labels, over bins."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return sum(abs(np.sum(sure[place == k]) - np.sum(right[place == k])) for k in range(BINS)) / len(codes)


def splits(row: Row, repeats: int) -> range:
    """Which splits of a row to run."""
    return range(len(row.tests) if isinstance(row, FixedRow) else repeats)


def measure(data: Path | None, repeats: int) -> list[dict[str, object]]:
    """A line for each group and model."""
    table = beyond_table(data)
    lines: list[dict[str, object]] = []
    for group in tqdm(table.groups, disable=None):
        told: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in MODELS}
        for row in (table.rows[name] for name in group.rows):
            for k in splits(row, repeats):
                X, y, X_test, y_test = row.split(k, k)
                codes = np.searchsorted(np.unique(y), y_test)
                for name, make in MODELS.items():
                    told[name].append((make().fit(X, y).predict_proba(X_test), codes))
        for name, pairs in told.items():
            losses = [log_loss(*pair) for pair in pairs]
            probabilities, codes = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
            lines.append(
                {
                    "group": group.name,
                    "model": name,
                    "log_loss": float(np.mean(losses)),
                    "calibration_error": float(calibration_error(probabilities, codes)),
                    "splits": len(losses),
                }
            )
            print(
                f"{group.name:18s} {name:26s} log loss {np.mean(losses):.3f}  calibration error "
                f"{lines[-1]['calibration_error']:.3f}  ({len(losses)} splits)",
                flush=True,
            )
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data; without, the toy set alone")
    parser.add_argument("--repeats", type=int, default=3, help="draws of a row that is drawn")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("probabilities.json"))
    arguments = parser.parse_args()
    found = measure(arguments.data, arguments.repeats)
    means = {name: np.mean([row["log_loss"] for row in found if row["model"] == name]) for name in MODELS}
    for name, mean in means.items():
        print(f"{'mean of groups':18s} {name:26s} log loss {mean:.3f}")
    content = {"repeats": arguments.repeats, "lines": found, "stamp": Stamp(code_stamp())._asdict()}
    write_atomically(arguments.out, json.dumps(content, indent=1) + "\n")
