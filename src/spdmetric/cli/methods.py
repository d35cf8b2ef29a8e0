"""The command methods: the table of all."""

from __future__ import annotations

from argparse import Namespace
from textwrap import fill

from spdmetric.cli.fit import AUTO
from spdmetric.cli.terminal import tell
from spdmetric.comparison.methods import METHODS


def run(arguments: Namespace) -> None:
    """Print the table."""
    lines = []
    for name, method in METHODS.items():
        needs = f"; needs the extra {method.extra}" if method.extra else ""
        sentence = fill(method.sentence, 100, initial_indent="    ", subsequent_indent="    ")
        lines += [name + " (auto)" * (name == AUTO), sentence, f"    matrices: {method.takes}{needs}"]
    tell(*lines)
