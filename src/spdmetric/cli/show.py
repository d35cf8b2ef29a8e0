"""The command show: what a model file holds, in lines."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from spdmetric.cli.fit import describe_choice
from spdmetric.cli.terminal import printable, tell
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import expression
from spdmetric.io.files import explain_unreadable, list_some
from spdmetric.io.models import input_of, read_content


def run(arguments: Namespace) -> None:
    """Read the file and print what it holds."""
    path = arguments.model
    content = read_content(path)
    with explain_unreadable(path):  # parts of a forged one need not belong together
        tell(*_describe(path, content))


def _describe(path: Path, content: dict[str, Any]) -> list[str]:
    """What a file holds, in lines."""
    model, recipe = content["model"], content["recipe"]
    form, size = input_of(model)
    each = "matrices, {0} x {0}" if form == "matrices" else "signals of {0} channels"
    lines = [
        ("file", f"{path}, {path.stat().st_size / 1000:.0f} kB"),
        ("written by", ", ".join(f"{name} {number}" for name, number in content["versions"].items())),
        ("takes", form if size is None else each.format(size)),
    ]
    if recipe is not None:
        for name, value in asdict(recipe).items():
            if value is not None:
                lines.append((f"signals, {name}", value if isinstance(value, str) else list_some(value)))
    for step in steps_of(model):
        lines += [("step", expression(step)), *_fitted(step)]
    return [f"{name + ':':18} {printable(value)}" for name, value in lines]


def _fitted(step: BaseEstimator) -> list[tuple[str, str]]:
    """What a step has learned."""
    found = []
    if hasattr(step, "basis_"):
        found.append(("  common range", "{1} of {0} dimensions".format(*step.basis_.shape)))
    metric = getattr(step, "metric_", step)
    if getattr(step, "classes_", None) is not None:
        found.append(("  classes", list_some(step.classes_.tolist())))
    if hasattr(metric, "best_params_"):
        found.append(("  choice", describe_choice(metric).removeprefix("chosen: ")))
    if hasattr(metric, "alignment_"):
        found.append(("  alignment", f"{metric.alignment_:.4f}, {metric.radius_:.3g} from the mean"))
    if getattr(metric, "domains_", None) is not None:
        found.append(("  domains", list_some(metric.domains_.tolist())))
    return found
