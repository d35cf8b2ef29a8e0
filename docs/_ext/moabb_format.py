"""Our EEG accuracies in the columns of MOABB's results, to be put beside them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
COLUMNS = ("score", "time", "samples", "subject", "session", "channels", "n_sessions", "dataset", "pipeline")
# How a row begins: MOABB's name of the data set, session, training trials, channels, sessions.
ROWS = {
    r"cho (\d+)$": ("Cho2017", "0", 160, 16, 1),
    r"eegmmi-21 (\d+)$": ("PhysionetMotorImagery", "0", 30, 21, 1),
    r"eegmmi-64 (\d+)$": ("PhysionetMotorImagery", "0", 30, 64, 1),
    r"subject (9), left_hand vs right_hand$": ("BNCI2014-001 left/right", "1test", 144, 22, 2),
    r"subject (9), four classes$": ("BNCI2014-001 four classes", "1test", 288, 22, 2),
}


def lines(table: Path) -> Iterator[dict[str, object]]:
    """A line for each subject, session and method: the mean over its folds, a score between 0 and 1."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    with table.open(newline="") as file:
        for line in csv.DictReader(file):
            place = found.setdefault((line["row"], line["method"]), [])
            place.append((float(line["accuracy"]) / 100, float(line["seconds"])))
    for (row, method), folds in found.items():
        for pattern, (dataset, session, samples, channels, sessions) in ROWS.items():
            if match := re.match(pattern, row):
                score, seconds = (sum(column) / len(folds) for column in zip(*folds, strict=True))
                values = (round(score, 6), round(seconds, 4), samples, match[1], session, channels, sessions)
                yield dict(zip(COLUMNS, (*values, dataset, method), strict=True))


def write_moabb(table: Path = RESULTS / "beyond.csv", out: Path = RESULTS / "moabb.csv") -> None:
    """Write the file."""
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines(table))
