"""What the commands share: their record, options, the reading of DATA, checks, a progress bar."""

from __future__ import annotations

import argparse
import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from spdmetric.io.matrices import Matrices

T = TypeVar("T")

DATA = """\
DATA is an .npz or .mat file with the arrays X (n, d, d) and y, or covs and labels; or an .npy file of
matrices, with --labels a .csv file (or the name of an array) that has one label for each.
"""


class Command(NamedTuple):
    """A command of the command line."""

    name: str
    help: str
    description: str
    add_options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], None]
    resumes: bool = False  # whether an interrupted run can be continued


def add_data(parser: ArgumentParser) -> None:
    """Add DATA and the options that say how to read it."""
    parser.add_argument("data", type=Path, metavar="DATA", help="see above")
    parser.add_argument("--labels", metavar="L", help="labels: a .csv file, or the name of an array of DATA")
    parser.add_argument("--subject", type=int, metavar="N", help="subject of a file that holds several")


def add_run(parser: ArgumentParser, repeats: str) -> None:
    """Add what decides how much is computed, and by how many processes."""
    parser.add_argument("--repeats", type=whole(1), metavar="N", help=repeats)
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="of all draws (default: 0)")
    parser.add_argument("--jobs", type=whole(1), metavar="N", help="processes (default: one a core)")
    methods = "these methods only (default: all of the table)"
    parser.add_argument("--methods", type=method_names, metavar="A,B,...", help=methods)


def whole(least: int) -> Callable[[str], int]:
    """Make the type of an option that takes a whole number."""

    def read(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got {text!r}")
        return int(text)

    return read


def method_names(text: str) -> tuple[str, ...]:
    """Read the names of methods, separated by commas."""
    from spdmetric.evaluation.methods import known_methods

    try:
        return known_methods(text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def jobs_asked(arguments: Namespace) -> int:
    """Return the number of processes."""
    return arguments.jobs or os.cpu_count() or 1


def read(path: Path, labels: str | None, subject: int | None, groups: str | None = None) -> Matrices:
    """Read matrices; errors speak of options, not of arguments of Python."""
    from spdmetric.io.matrices import read_matrices

    try:
        return read_matrices(path, labels, groups, subject=subject)
    except ValueError as error:
        raise ValueError(re.sub(r"\b(labels|groups|subject)=", r"--\1", str(error))) from error


def check_target(path: Path) -> None:
    """Fail before the work, not after, where a file cannot be written."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        why = "it is a folder" if path.is_dir() else f"{folder} is not a folder that can be written to"
        raise ValueError(f"-o {path}: {why}.")


def make_folder(folder: Path) -> None:
    """Make the folder of --out; fail before the work, not after, where nothing can be written to it."""
    probe = folder / f".probe.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"cannot write to --out {folder}: {error.strerror or error}") from error


def progress(name: str) -> Callable[[Iterable[T], int, int], Iterable[T]]:
    """Make a bar around finished tasks, in a terminal only."""

    def wrap(finished: Iterable[T], done: int, total: int) -> Iterable[T]:
        from tqdm import tqdm

        return tqdm(finished, desc=name, initial=done, total=total, disable=None, unit="task")

    return wrap


def one_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(text.split())
