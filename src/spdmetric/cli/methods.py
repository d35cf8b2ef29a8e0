"""List the methods that fit and compare know: what each does, and what data it can take."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from textwrap import fill


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command: none."""


def run(arguments: Namespace) -> None:
    """Print the table."""
    from spdmetric.cli.fit import AUTO
    from spdmetric.comparison.methods import METHODS

    for name, method in METHODS.items():
        needs = f"; needs the extra {method.extra}" if method.extra else ""
        print(name + " (auto)" * (name == AUTO))
        print(fill(method.sentence, 100, initial_indent="    ", subsequent_indent="    "))
        print(f"    matrices: {method.takes}{needs}")
