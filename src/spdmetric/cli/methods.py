"""List the methods that fit and compare know: what each does, and what data it can take."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from textwrap import fill

from spdmetric.cli.options import tell


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command: none."""


def run(arguments: Namespace) -> None:
    """Print the table."""
    from spdmetric.cli.fit import AUTO
    from spdmetric.comparison.methods import METHODS

    lines = []
    for name, method in METHODS.items():
        needs = f"; needs the extra {method.extra}" if method.extra else ""
        sentence = fill(method.sentence, 100, initial_indent="    ", subsequent_indent="    ")
        lines += [name + " (auto)" * (name == AUTO), sentence, f"    matrices: {method.takes}{needs}"]
    tell(*lines)
