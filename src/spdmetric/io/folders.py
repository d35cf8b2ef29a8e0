"""A folder of files with one matrix each, ``.npy`` or ``.csv``; its subfolders are the classes.

All sizes are compared before a matrix is read.  Links are refused: they can lead to any other file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spdmetric.io.files import FileError, Header, Refused, check_size, listed, reading, shortened
from spdmetric.io.npy import npy_header, read_npy

SUFFIXES = (".npy", ".csv")
_LONGEST_ROW = 2**20  # letters
_IF_LABELS = "If it holds the labels of the other files, pass it as labels=."


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
    headers = [_header(path) for path in paths]
    for path, header in zip(paths, headers, strict=True):
        if header.shape != headers[0].shape:
            this, first = f"{path} has shape {header.shape}", f"{paths[0].name} has {headers[0].shape}"
            raise FileError(f"{this}, but {first}: all matrices of a folder must have one size.")
    X = np.empty((len(paths), *headers[0].shape), np.result_type(*{header.dtype for header in headers}))
    for k, path in enumerate(paths):
        X[k] = _content(path, headers[k])
    parts = [path.relative_to(folder).parts for path in paths]
    y = np.array([part[0] for part in parts]) if len(parts[0]) == 2 else None
    return Folder(X, tuple("/".join(part) for part in parts), y, _others(folder, paths, left_out))


def _others(folder: Path, paths: Collection[Path], left_out: Collection[Path]) -> tuple[str, ...]:
    """Names of files beside the matrices."""
    known = {*left_out, *(path.resolve() for path in paths)}
    beside = (path for path in folder.iterdir() if path.is_file() and path.resolve() not in known)
    return tuple(sorted(path.name for path in beside if not path.name.startswith(".")))


def _header(path: Path) -> Header:
    """Shape and dtype of the one matrix of a file."""
    with reading(path):
        header = npy_header(path) if path.suffix.lower() == ".npy" else _csv_header(path)
        if header.dtype.kind not in "fiubc":
            raise Refused(f"it has dtype {header.dtype}; expected a matrix of numbers.")
        if len(header.shape) != 2 or header.shape[0] != header.shape[1] or 0 in header.shape:
            hint = (
                " A stack of matrices is read by itself, not in a folder." if len(header.shape) == 3 else ""
            )
            if path.suffix.lower() == ".csv":
                hint = f" {_IF_LABELS}"
            raise Refused(f"it has shape {header.shape}; expected one square matrix.{hint}")
        check_size("the matrix", header.nbytes, path.stat().st_size)
        return header


def _content(path: Path, header: Header) -> np.ndarray:
    if path.suffix.lower() == ".npy":
        return read_npy(path)
    matrix = np.empty(header.shape)
    with reading(path):
        for k, cells in enumerate(_rows(path)):
            for j, cell in enumerate(cells):
                try:
                    matrix[k, j] = float(cell)
                except ValueError as error:
                    at = f"row {k + 1}, column {j + 1} holds {shortened(repr(cell))}"
                    raise Refused(f"{at}; expected a number.") from error
    return matrix


def _csv_header(path: Path) -> Header:
    """Shape of a matrix of numbers with commas, semicolons, tabs or blanks between; nothing is kept."""
    rows = width = 0
    for cells in _rows(path):
        rows, width = rows + 1, width or len(cells)
        if len(cells) != width or rows > width:
            got = f"its first row has {width} entries, row {rows} has {len(cells)}"
            raise Refused(f"{got}; expected a square matrix. {_IF_LABELS}")
    return Header((rows, width), np.dtype(np.float64))


def _rows(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8-sig") as file:
        while line := file.readline(_LONGEST_ROW):
            if len(line) >= _LONGEST_ROW:
                raise Refused(f"it has a row of more than {_LONGEST_ROW} letters.")
            if line.strip():
                cells = re.split(r"[,;\t]", line) if re.search(r"[,;\t]", line) else line.split()
                yield [cell.strip() for cell in cells]
