"""What the commands share: options, the reading of DATA, checks of where to write, a progress bar."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from spdmetric.io.matrices import Matrices

T = TypeVar("T")

DATA = """
DATA is an .npz or .mat file (of any version) with the arrays X (n, d, d) and y, or covs and labels; or an
.npy file of matrices, with --labels a .csv file (or the name of an array) that has one label for each.
"""


def add_data(parser: ArgumentParser) -> None:
    """Add DATA, and the options that say how to read it."""
    parser.description = f"{parser.description}{DATA}"
    parser.add_argument("data", type=Path, metavar="DATA", help="see above")
    parser.add_argument("--labels", metavar="L", help="labels: a .csv file, or the name of an array of DATA")
    parser.add_argument("--subject", type=int, metavar="N", help="subject of a file that holds several")


def add_run(parser: ArgumentParser, repeats: str) -> None:
    """Add what decides how much is computed, and by how many processes."""
    parser.add_argument("--repeats", type=whole(1), metavar="N", help=repeats)
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="of all draws (default: 0)")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=whole(1), default=cores, metavar="N", help="processes (default: all)")
    names = "names of methods, separated by commas (default: all)"
    parser.add_argument("--methods", type=lambda text: tuple(dict.fromkeys(text.split(","))), help=names)


def whole(least: int, word: str | None = None) -> Callable[[str], int | str]:
    """Make the type of an option that takes a whole number, or one word instead."""

    def convert(text: str) -> int | str:
        if text == word or (text.isdigit() and int(text) >= least):
            return text if text == word else int(text)
        wanted = f"a whole number >= {least}" + f' or "{word}"' * (word is not None)
        raise ArgumentTypeError(f"expected {wanted}, got {text!r}")

    return convert


def read(path: Path, labels: str | None, subject: int | None, groups: str | None = None) -> Matrices:
    """Read matrices; errors speak of options, not of arguments of Python."""
    from spdmetric.io.matrices import read_matrices

    try:
        return read_matrices(path, labels, groups, subject=subject)
    except ValueError as error:
        raise ValueError(re.sub(r"\b(labels|groups|subject)=", r"--\1", str(error))) from error


def check_target(path: Path, *inputs: Path | str | None) -> None:
    """Fail before the work, not after, where a file cannot be written; its folder is made."""
    if path.is_dir():
        raise ValueError(f"--out {path} is a folder: expected the name of a file.")
    for source in inputs:
        if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
            raise ValueError(f"--out {path} would replace {source}, which is read: name another file.")
    if not path.exists() or path.is_file():  # what is neither is written through
        make_folder(Path(os.path.realpath(path)).parent)


def make_folder(folder: Path) -> None:
    """Make a folder; fail before the work, not after, where nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to --out {folder}: {error.strerror or error}") from error


def bar(name: str, finished: Iterable[T], done: int, total: int) -> Iterable[T]:
    """Show a bar around finished tasks, in a terminal only."""
    from tqdm import tqdm

    return tqdm(finished, desc=name, initial=done, total=total, disable=None, unit="task")


def printable(text: object) -> str:
    """A text for a terminal: in one line, and what would steer the terminal is spelled out."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def one_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return printable(text or type(error).__name__)
