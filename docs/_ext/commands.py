"""The page of the command line: what each command says about itself."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from api import write_if_changed

from spdmetric import cli


def helps() -> Iterator[tuple[str, str]]:
    """Each command and its help, the program itself first."""
    os.environ["COLUMNS"] = "100"  # argparse folds lines to the terminal; a page has one width
    parser = cli.make_parser()
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield f"{parser.prog} {name}", command.format_help()


def write_commands(path: Path) -> None:
    """Write the page."""
    blocks = [f"## {name}\n\n```text\n{text.rstrip()}\n```\n" for name, text in helps()]
    write_if_changed(path, "# The command line\n\n" + "\n".join(blocks))
