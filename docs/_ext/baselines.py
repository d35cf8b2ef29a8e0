"""What README and beyond.md say of the choice and its baselines, from ``docs/results/beyond.*``."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from reproduction.methods import KNOWN
from reproduction.statistics import number

CHOICES = ("spdmetric", "spdmetric-neighbors")
# What the default is compared with in the README.
BASELINES = {
    "logeuclid-mean": "1-NN without learning",
    "mdm": "MDM",
    "fgmdm": "FgMDM",
    "logeuclid-mean-logistic": "logistic regression",
    "logeuclid-mean-lda": "LDA",
}
LDA, LOGISTIC = "logeuclid-mean-lda", "logeuclid-mean-logistic"
AT_MEAN = {LDA: "LDA", LOGISTIC: "logistic"}
HELD_OUT = range(11, 21)  # subjects of EEGMMI that played no part in the rule


def standings(results: Path, names: tuple[str, ...]) -> list[str]:
    """On how many lines of the README's table the default is ahead of a baseline, level, or behind."""
    groups = json.loads((results / "beyond.json").read_text())["groups"]
    groups, accuracy = [group for group in groups if group["group"] in names], accuracies(results)
    told = []
    for baseline, title in BASELINES.items():
        count = dict.fromkeys(("ahead", "level", "behind"), 0)
        for group in groups:
            count[standing(*_mean_and_error(accuracy, group, CHOICES[0], baseline))] += 1
        of = f" of {len(groups)}"
        told.append(f"{title}: {', '.join(f'{word} on {n}{of}' for word, n in count.items() if n)}")
    return told


def standing(gain: float, error: float | None) -> str:
    """Ahead or behind by more than two points and two standard errors, else level."""
    if abs(gain) <= max(2.0, 2.0 * (error or 0.0)):
        return "level"
    return "ahead" if gain > 0 else "behind"


def ahead(results: Path, groups: tuple[str, ...]) -> str:
    """The same as a list."""
    return "\n".join(f"- {told}" for told in standings(results, groups))


def ranks(results: Path) -> str:
    """Mean ranks of all methods, and how far the choices are behind the best of the others."""
    content = json.loads((results / "beyond.json").read_text())
    listed = sorted((line["mean_rank"], line["method"]) for line in content["mean_rank"])
    means = _means(content)
    groups = dict.fromkeys(group for group, _ in means)
    others = {g: max(m for (h, name), m in means.items() if h == g and name not in CHOICES) for g in groups}
    behind = max(others[group] - means[group, name] for group in groups for name in CHOICES)
    told = "; ".join(f"{KNOWN[name].short} {rank:.1f}" for rank, name in listed)
    return (
        f"Mean ranks among the {len(listed)} methods: {told}.\n\n"
        f"In no group is either choice behind the best of the others by more than {behind:.1f} points."
    )


def differences(results: Path) -> list[list[str]]:
    """Paired differences of the choices to linear classifiers at the mean, a line for each group."""
    groups = json.loads((results / "beyond.json").read_text())["groups"]
    groups += [
        {
            "group": f"{name}, subjects {HELD_OUT[0]} to {HELD_OUT[-1]}",
            "rows": [f"{name} {k}" for k in HELD_OUT],
            "error_over": "rows",
        }
        for name in ("eegmmi-21", "eegmmi-64")
    ]
    accuracy = accuracies(results)
    pairs = [(first, second) for first in CHOICES for second in AT_MEAN]
    head = ["", *(f"{KNOWN[first].short} less {AT_MEAN[second]}" for first, second in pairs)]
    return [head, *([of["group"], *(difference(accuracy, of, *pair) for pair in pairs)] for of in groups)]


def accuracies(results: Path) -> dict[tuple[str, str, str], float]:
    """Every accuracy, by method, row and repeat."""
    with (results / "beyond.csv").open(newline="") as file:
        return {(x["method"], x["row"], x["repeat"]): float(x["accuracy"]) for x in csv.DictReader(file)}


def difference(accuracy: dict[Any, float], group: dict[str, Any], first: str, second: str) -> str:
    """Mean paired difference in a group, with its error over the rows or over the repeats."""
    gain, error = _mean_and_error(accuracy, group, first, second)
    return number(round(gain, 2) + 0.0, error, sign="+")  # no minus before zero


def _mean_and_error(
    accuracy: dict[Any, float], group: dict[str, Any], first: str, second: str
) -> tuple[float, float | None]:
    parts = defaultdict(list)  # one mean for each row, or for each repeat
    for method, row, repeat in accuracy:
        if method == first and row in group["rows"]:
            part = row if group["error_over"] == "rows" else repeat
            parts[part].append(accuracy[first, row, repeat] - accuracy[second, row, repeat])
    values = [mean(part) for part in parts.values()]
    return mean(values), stdev(values) / len(values) ** 0.5 if len(values) > 1 else None


def _means(content: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(e["group"], e["method"]): e["mean"] for e in content["by_group"] if e["mean"] is not None}
