"""A folder of files with one matrix each, ``.npy`` or ``.csv``; its subfolders are the classes.

All sizes are compared before a matrix is read.  Links are refused: they can lead to any other file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from spdmetric.io.files import FileError, Header, Refused, listed, reading, shortened
from spdmetric.io.npy import npy_header, read_npy

SUFFIXES = (".npy", ".csv")
_LONGEST_ROW = 2**20  # letters
_IF_STACK = "A stack of matrices is read by itself, not in a folder."
_IF_LABELS = "If it holds the labels of the other files, pass it as the labels."


class Folder(NamedTuple):
    """What a folder holds."""

    X: np.ndarray  # (n, d, d)
    names: tuple[str, ...]  # of the files, from the folder on
    y: np.ndarray | None  # (n,), their subfolders
    others: tuple[str, ...]  # names of the files that hold no matrices


def natural(name: str) -> list[tuple[int, int | str]]:
    """Key of the order in which ``trial2`` comes before ``trial10``."""
    parts = re.split("([0-9]+)", name.casefold())
    return [(0, int(part)) if part.isascii() and part.isdigit() else (1, part) for part in parts]


def files_in(folder: Path, suffixes: Collection[str], left_out: Collection[Path] = ()) -> list[Path]:
    """Files with some suffixes in a folder or all in its subfolders, in natural order; or a sentence.

    ``left_out`` are resolved paths of files that hold something else.
    """
    found = sorted(_entries(folder, suffixes, left_out), key=lambda path: natural(str(path)))
    if not found:
        there = listed(sorted(path.name for path in folder.iterdir()))
        raise FileError(
            f"{folder} is a folder without a file that ends in {listed(suffixes)}: it has {there}."
        )
    depths = {len(path.relative_to(folder).parts): path for path in found}
    if len(depths) > 1 or max(depths) > 2:
        shown = " and ".join(shortened(path.relative_to(folder)) for _, path in sorted(depths.items()))
        expected = "all files in the folder itself, or each in a subfolder named after its class"
        raise FileError(f"{folder} holds {shown}, at different depths; expected {expected}.")
    return found


def _entries(
    folder: Path, suffixes: Collection[str], left_out: Collection[Path], depth: int = 1
) -> Iterator[Path]:
    """Files with some suffixes, three levels deep at most; hidden ones are passed over."""
    for path in folder.iterdir():
        if path.name.startswith(".") or (left_out and path.resolve() in left_out):
            continue
        if path.is_symlink():
            raise FileError(f"{path} is a link, which can lead to another file: put the file itself there.")
        if path.is_dir() and depth < 3:
            yield from _entries(path, suffixes, left_out, depth + 1)
        elif path.suffix.lower() in suffixes:
            yield path


def read_folder(folder: Path, left_out: Collection[Path] = ()) -> Folder:
    """Read the matrices of a folder; ``left_out`` are files of it that hold something else."""
    left_out = {Path(path).resolve() for path in left_out}
    paths = files_in(folder, SUFFIXES, left_out)
    found = [_looked_at(path) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if one.shape != found[0].shape:
            this, first = f"{path} has shape {one.shape}", f"{paths[0].name} has {found[0].shape}"
            raise FileError(f"{this}, but {first}: all matrices of a folder must have one size.")
    X = np.empty((len(paths), *found[0].shape), np.result_type(*{one.dtype for one in found}))
    for k, one in enumerate(found):
        X[k] = read_npy(paths[k]) if isinstance(one, Header) else one
    parts = [path.relative_to(folder).parts for path in paths]
    y = np.array([part[0] for part in parts]) if len(parts[0]) == 2 else None
    return Folder(X, tuple("/".join(part) for part in parts), y, _others(folder, paths, left_out))


def _others(folder: Path, paths: Collection[Path], left_out: Collection[Path]) -> tuple[str, ...]:
    """Names of files beside the matrices."""
    known = {*left_out, *(path.resolve() for path in paths)}
    beside = (path for path in folder.iterdir() if path.is_file() and path.resolve() not in known)
    return tuple(sorted(path.name for path in beside if not path.name.startswith(".")))


def _looked_at(path: Path) -> Header | np.ndarray:
    """Shape and dtype of the one matrix of a ``.npy`` file; that of a ``.csv`` file itself."""
    with reading(path):
        found = npy_header(path) if path.suffix.lower() == ".npy" else _read_csv(path)
        if found.dtype.kind not in "fiubc":
            raise Refused(f"it has dtype {found.dtype}; expected a matrix of numbers.")
        if len(found.shape) != 2 or found.shape[0] != found.shape[1] or 0 in found.shape:
            hint = _IF_LABELS if path.suffix.lower() == ".csv" else _IF_STACK
            raise Refused(f"it has shape {found.shape}; expected one square matrix. {hint}")
        return found


def _read_csv(path: Path) -> np.ndarray:
    """A matrix of numbers with commas, semicolons, tabs or blanks between, and at most a row too many."""
    with path.open(encoding="utf-8-sig") as file:
        lines = _lines(file)
        if not (first := next(lines, "")):
            return np.empty((0, 0))
        separator = next((mark for mark in ",;\t" if mark in first), None)
        rows, most = chain([first], lines), len(first.split(separator)) + 1
        try:
            return np.loadtxt(rows, comments=None, delimiter=separator, ndmin=2, max_rows=most)
        except ValueError as error:
            why = str(error).partition(";")[0].rstrip(".")  # what follows is about options of NumPy
            # Columns are counted from 1, and so is this row, but not where a column is told too.
            why = re.sub(r"row (\d+), column", lambda row: f"row {int(row[1]) + 1}, column", why)
            raise Refused(f"{why}; expected numbers, in each row as many. {_IF_LABELS}") from error


def _lines(file: TextIO) -> Iterator[str]:
    """Lines that are not empty."""
    while line := file.readline(_LONGEST_ROW):
        if len(line) >= _LONGEST_ROW:
            raise Refused(f"it has a row of more than {_LONGEST_ROW} letters.")
        if line.strip():
            yield line
