"""Matrices in the formats that people have: ``.npz``, ``.mat`` of any version, ``.npy``, a folder of files.

Labels and groups are in the same file or in a ``.csv`` file.

Sizes are checked first.  Whether matrices are positive definite is for the estimator to say.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from os import PathLike
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from spdmetric.caller import spell
from spdmetric.io.files import FileError, Header, Refused, check_size, listed, numbers_in, reading, shortened
from spdmetric.io.folders import read_folder
from spdmetric.io.matlab import mat_headers, mat_names, read_mat, structures
from spdmetric.io.npy import npy_header, npz_headers, npz_names, read_npy, read_npz

LABEL_HEADS = ("label", "labels", "y", "class", "target")
GROUP_HEADS = ("group", "groups", "session", "run", "subject")
FILE_HEADS = ("file", "filename", "file_name", "name", "path")
SIGNAL_SUFFIXES = (".edf", ".gdf", ".fif")
_LONGEST_ROW = 2**20  # letters of a row of a .csv file


@dataclass(frozen=True)
class Matrices:
    """Matrices of a file, with what the file or its companions say of each."""

    X: np.ndarray  # (n, d, d), in the stored dtype
    y: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,)
    name: str  # of the file, without folder and suffix
    notes: tuple[str, ...] = ()  # what was done to them when they were read, in sentences
    names: tuple[str, ...] | None = None  # of the files of a folder, one for each matrix

    @property
    def labels(self) -> np.ndarray:
        """``y``, or a sentence that says that it is missing."""
        if self.y is None:
            raise ValueError(
                f"{self.name} has no labels: store them as y or labels in it, or in a .csv file."
            )
        return self.y


def read_matrices(
    path: str | PathLike[str],
    labels: str | PathLike[str] | None = None,
    groups: str | PathLike[str] | None = None,
    *,
    subject: int | None = None,
) -> Matrices:
    """Read matrices, and their labels and groups where there are any.

    Parameters
    ----------
    path : str or path-like
        ``.npz`` or ``.mat`` (of any version) with the array ``X`` or ``covs``, and optionally
        ``y`` or ``labels``, and ``groups``; or with ``X3``, ``y3`` and optionally ``r3`` (the
        groups) for subject 3 of several; ``.mat`` with the structure ``data`` of the covariance
        toolbox, whose groups are the sessions "T" (training) and "E" (evaluation); or ``.npy``
        with the matrices alone.  A stack that ``.mat`` stores as (d, d, n) is transposed.  Or a
        folder of ``.npy`` and ``.csv`` files with one matrix each; the subfolders, if there are
        any, are the labels.
    labels, groups : str or path-like, optional
        A ``.csv`` file with a value for each matrix, or the name of an array of the file.  Groups
        are sessions, runs or subjects.  For a folder, a ``.csv`` file with two columns: the names of
        the files, and their values.
    subject : int, optional
        Which subject to read from a file that holds several.

    Returns
    -------
    matrices : Matrices
        ``y`` and ``groups`` are None where nothing tells them.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, subject, labels, groups)
    with reading(path):
        found = _read(path, subject, labels, groups)
    return replace(found, X=np.ascontiguousarray(found.X))


class Format(NamedTuple):
    """How to list the names of the arrays of a file, to look at some, and to read one."""

    names: Callable[[Path], list[str]]
    headers: Callable[[Path, list[str]], dict[str, Header]]
    read: Callable[[Path, str], np.ndarray]


_FORMATS = {
    ".npz": Format(npz_names, npz_headers, lambda path, name: read_npz(path, [name])[name]),
    ".mat": Format(mat_names, mat_headers, read_mat),
    # Its only array is called X.
    ".npy": Format(
        lambda path: ["X"],
        lambda path, names: {name: npy_header(path) for name in names},
        lambda path, name: read_npy(path),
    ),
}
Source = str | PathLike[str] | None  # of labels or groups: a .csv file, or the name of an array


def format_of(path: Path) -> Format:
    """How a file is read, by its suffix."""
    if path.suffix.lower() in SIGNAL_SUFFIXES:
        todo = "read them with spdmetric.io.signals.read_signals, and estimate covariances of them"
        raise Refused(f"it holds signals, not matrices: {todo}.")
    if path.suffix.lower() not in _FORMATS:
        raise Refused(f"unknown suffix {path.suffix!r}; expected one of {listed(_FORMATS)}.")
    return _FORMATS[path.suffix.lower()]


def _read(path: Path, subject: int | None, labels: Source, groups: Source) -> Matrices:
    """Compare the sizes of all arrays with each other, then read them, the matrices last."""
    names, mat = format_of(path).names(path), path.suffix.lower() == ".mat"
    if mat and subject is None and "data" in names and not {"X", "covs"} & set(names):
        found = _read_toolbox(path)
        y, g = (
            old if given is None else column_of(path, names, given, heads, len(found.X))
            for old, given, heads in ((found.y, labels, LABEL_HEADS), (found.groups, groups, GROUP_HEADS))
        )
        return replace(found, y=y, groups=g)
    keys = layout_of(names, subject)
    headers = format_of(path).headers(path, [key for key in keys if key in names])
    check_size(listed(headers), sum(header.nbytes for header in headers.values()), path.stat().st_size)
    n = _stack_length(keys[0], headers[keys[0]], headers[keys[1]].size if keys[1] in headers else 0, mat)
    y, g = (
        None if given is None and key not in names else column_of(path, names, given or key, heads, n)
        for given, key, heads in ((labels, keys[1], LABEL_HEADS), (groups, keys[2], GROUP_HEADS))
    )
    stored = format_of(path).read(path, keys[0])
    X = _as_stack(stored) if mat else stored
    note = f"{keys[0]} is stored as {stored.shape}, matrix after matrix along its last axis as MATLAB does"
    moved = X.shape != stored.shape or X.strides != stored.strides
    return Matrices(X, y, g, path.stem, (f"{note}; it was read as {X.shape}.",) if moved else ())


def column_of(
    path: Path, names: list[str], source: str | PathLike[str], heads: tuple[str, ...], n: int
) -> np.ndarray:
    """A value for each matrix, from a ``.csv`` file or an array of the file itself."""
    if Path(source).suffix.lower() == ".csv":
        return read_column(source, n, heads)
    name = str(source)
    if name not in names:
        raise Refused(f"it has no array {shortened(name)}: give one of {listed(names)}, or a .csv file.")
    _check_length(name, format_of(path).headers(path, [name])[name].shape, n)
    mat = path.suffix.lower() == ".mat"
    return _as_column(name, format_of(path).read(path, name), n, path.stat().st_size, mat)


def subjects_in(names: Iterable[str]) -> list[int]:
    """Subjects of a file with the arrays ``X1``, ``X2``, ..."""
    return numbers_in(r"X([0-9]+)", names)


def layout_of(names: list[str], subject: int | None) -> tuple[str, str, str]:
    """Names of matrices, labels and groups: those whose labels are there too, or of matrices alone."""
    subjects = subjects_in(names)
    if subject is None:
        pairs = (("X", "y"), ("covs", "labels"), ("X", "labels"), ("covs", "y"))
        known = sorted((pair for pair in pairs if pair[0] in names), key=lambda pair: pair[1] not in names)
        if known:
            return (*known[0], "groups")
        if subjects:
            raise Refused(f"it holds several subjects: pass {spell('subject')}, one of {listed(subjects)}.")
        if "metadata" in names:  # as in every file of io.models
            raise Refused("it looks like a model; expected the arrays X and y, or covs and labels.")
        raise Refused(f"expected the arrays X and y, or covs and labels; found {listed(names)}.")
    if subjects and subject not in subjects:
        raise Refused(f"it has no subject {subject}; it holds {listed(subjects)}.")
    X, y, groups = (f"{letter}{subject}" for letter in "Xyr")
    if X not in names or y not in names:
        hint = "" if subjects else f" A file of one subject is read without {spell('subject')}."
        raise Refused(f"expected the arrays {X} and {y} of subject {subject}; found {listed(names)}.{hint}")
    return X, y, groups


def _read_folder(folder: Path, subject: int | None, labels: Source, groups: Source) -> Matrices:
    """Matrices of the files of a folder, with the values that a table, or their subfolders, give them."""
    if subject is not None:
        raise FileError(f"{folder} is a folder: it is read without {spell('subject')}.")
    tables = [Path(table) for table in (labels, groups) if table is not None]
    for table in tables:
        if table.suffix.lower() != ".csv":
            expected = "a .csv file with the names of the files and their values"
            raise FileError(f"{shortened(table)} is no table for the folder {folder}: expected {expected}.")
    found, notes = read_folder(folder, tables), []
    if found.others:
        notes.append(f"{len(found.others)} files without a matrix were passed over: {listed(found.others)}.")
    y = found.y if labels is None else _column_by_name(labels, found.names, LABEL_HEADS)
    g = None if groups is None else _column_by_name(groups, found.names, GROUP_HEADS)
    return Matrices(found.X, y, g, folder.name or folder.resolve().name, tuple(notes), found.names)


def _read_toolbox(path: Path) -> Matrices:
    """The structure ``data`` of the covariance toolbox's MotorImagery.mat."""
    fields = ("data", "labels", "idxTraining", "idxTest")
    found = structures(read_mat(path, "data"))
    if len(found) != 1 or not set(fields) <= set(found[0]):
        expected = "the arrays X and y, or covs and labels, or a structure data with the fields"
        raise Refused(f"expected {expected} {listed(fields)}; found data without them.")
    X, labels, training, test = (found[0][field] for field in fields)
    if X.ndim != 3 or X.shape[0] != X.shape[1]:
        raise Refused(f"data.data has shape {X.shape}; expected (d, d, n).")
    n = _stack_length("data.data", Header(X.shape, X.dtype), 0, mat=True)
    named = np.append(training, test)
    if named.dtype.kind not in "fiu" or not np.array_equal(np.sort(named), np.arange(1, n + 1)):
        raise Refused(
            f"idxTraining and idxTest should name each of the {n} matrices once, by numbers 1 to {n}."
        )
    groups = np.repeat(["T", "E"], [training.size, test.size])[np.argsort(named)]
    y = _as_column("data.labels", labels, n, path.stat().st_size, mat=True)
    return Matrices(X.transpose(2, 0, 1), y, groups, path.stem)


def _stack_length(name: str, header: Header, n_labels: int, mat: bool) -> int:
    """How many matrices an array holds, or why it holds none."""
    shape = header.shape
    if header.dtype.kind not in "fiubc":
        raise Refused(f"{name} has dtype {header.dtype}; expected matrices of numbers.")
    if 0 in shape:
        raise Refused(f"it holds no matrices: {name} has shape {shape}.")
    last = len(shape) == 3 and shape[0] == shape[1]
    if mat and (last or (len(shape) == 2 and shape[0] == shape[1] and n_labels == 1)):
        return shape[2] if last else 1
    if len(shape) != 3 or shape[1] != shape[2]:
        hint = " It looks like (d, d, n): save its transpose(2, 0, 1)." if last else ""
        if not last and looks_like_signals(shape):
            hint = " These look like signals, (n, channels, times): estimate a covariance matrix of each."
        raise Refused(f"{name} has shape {shape}; expected (n, d, d), a stack of square matrices.{hint}")
    return shape[0]


def looks_like_signals(shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape can be signals (n, channels, times), and cannot be matrices."""
    return len(shape) == 3 and 0 not in shape and shape[1] != shape[2]


def _as_stack(X: np.ndarray) -> np.ndarray:
    """Matrices of MATLAB as (n, d, d): it holds them as (d, d, n), or as (d, d) where there is one."""
    if X.ndim == 2:
        return X[None]
    # With as many matrices as channels, only their symmetry tells the axes apart.
    cube = X.shape[0] == X.shape[1] == X.shape[2]
    if X.shape[0] != X.shape[1] or (cube and all(np.allclose(A, A.T) for A in X)):
        return X
    return X.transpose(2, 0, 1)


def _check_length(name: str, shape: tuple[int, ...], n: int) -> None:
    if prod(shape) != n or max(shape, default=0) != n:
        raise Refused(f"{shortened(name)} has shape {shape} for {n} matrices; expected one entry for each.")


def _as_column(name: str, values: np.ndarray, n: int, stored: int, mat: bool = False) -> np.ndarray:
    """One value for each matrix; those in floating point, as MATLAB has them, become integers if whole."""
    _check_length(name, values.shape, n)
    values = values.ravel()
    if values.dtype == object:  # a cell array of strings
        return _as_words(name, [str(np.squeeze(item)) for item in values], stored)
    if values.dtype.kind == "U":
        letters = np.ascontiguousarray(values).view(np.uint32)
        if letters.size and (letters.max() > 0x10FFFF or (letters >> 11 == 0xD800 >> 11).any()):
            raise Refused(f"{name} holds letters that are none, and cannot be written; expected Unicode.")
        empty = np.flatnonzero(np.char.str_len(np.char.strip(values)) == 0)
        if len(empty):
            raise Refused(f"{name}[{empty[0]}] is empty; expected a number or a word for each matrix.")
    if values.dtype.kind == "S":
        return _decoded(name, values, stored)
    if values.dtype.kind not in "fciubU":
        raise Refused(f"{name} has dtype {values.dtype}; expected words or numbers, as {name}.astype(str).")
    if values.dtype.kind not in "fc":
        # MATLAB pads the rows of a character matrix to one length.
        return np.char.rstrip(values) if mat and values.dtype.kind == "U" else values
    bad = ~np.isfinite(values) | (values.dtype.kind == "c")
    if bad.any():
        first = int(np.argmax(bad))
        raise Refused(f"{name}[{first}] is {values[first]}; expected a number or a word for each matrix.")
    whole = np.all((values == np.round(values)) & (np.abs(values) < 2**53))
    return values.astype(np.int64) if whole else values


def _decoded(name: str, values: np.ndarray, stored: int) -> np.ndarray:
    """Bytes as the words that they spell."""
    check_size(name, 4 * values.nbytes, stored)
    try:
        return np.char.decode(values, "utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{name} holds bytes that are no text in UTF-8; expected words or numbers.") from error


def _as_words(name: str, words: list[str], stored: int) -> np.ndarray:
    """Words as an array, in which each takes as much as the longest."""
    check_size(name, 4 * len(words) * max(map(len, words), default=0), stored)
    return np.array(words)


def read_column(path: str | PathLike[str], n: int, heads: tuple[str, ...] = LABEL_HEADS) -> np.ndarray:
    """Read one value for each of ``n`` matrices from a ``.csv`` file.

    It has one column, with or without a header, or several, one of them under a name of ``heads``.
    Values are numbers where each is what Python prints for it, otherwise strings, ``01`` for instance.
    """
    with reading(path):
        with _table(path) as rows:
            values = _column(rows, n, heads)
        stored = Path(path).stat().st_size
        return _as_column("the column", _typed(values, stored), n, stored)


def _column_by_name(path: str | PathLike[str], names: Sequence[str], heads: tuple[str, ...]) -> np.ndarray:
    """One value for each of some files, from a table that names them; other names in it do not matter."""
    spelled = [{name, name.rpartition("/")[2], name.rpartition(".")[0], Path(name).stem} for name in names]
    often = Counter(key for keys in spelled for key in keys)
    index = {key: k for k, keys in enumerate(spelled) for key in keys if often[key] == 1}
    values: list[str | None] = [None] * len(names)
    with reading(path), _table(path) as rows:
        first = next(rows, [])
        head = [cell.strip().lower() for cell in first]
        file, value = (
            next((head.index(name) for name in some if name in head), None) for some in (FILE_HEADS, heads)
        )
        if file is None or value is None:
            if len(first) != 2:
                columns = f"file and {heads[0]}"
                raise Refused(f"expected the columns {columns}, or two without a header; got {len(first)}.")
            file, value, rows = 0, 1, chain([first], rows)
        seen = dict[str, str]()
        for row in rows:
            cells = [unguarded(row[at].strip()) if len(row) > at else "" for at in (file, value)]
            k = index.get(cells[0].replace("\\", "/").removeprefix("./"))
            if k is None:
                continue
            if values[k] not in (None, cells[1]):
                raise Refused(f"it names {shortened(names[k])} twice, with different values.")
            values[k] = seen.setdefault(cells[1], cells[1])
        missing = [name for name, found in zip(names, values, strict=True) if not found]
        if missing:
            raise Refused(f"it has no value for {len(missing)} of {len(names)} files: {listed(missing)}.")
        stored = Path(path).stat().st_size
        return _as_column("the column", _typed([str(v) for v in values], stored), len(names), stored)


@contextmanager
def _table(path: str | PathLike[str]) -> Iterator[Iterator[list[str]]]:
    """Rows of a ``.csv`` file."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            yield _rows(file)
    except (UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"it is not a text file of comma-separated values ({error}).") from error


def _rows(file: TextIO) -> Iterator[list[str]]:
    """Rows that are not empty; one without an end would fill the memory."""
    length = 0

    def lines() -> Iterator[str]:
        nonlocal length
        while line := file.readline(_LONGEST_ROW):
            length += len(line)
            if length >= _LONGEST_ROW:
                raise Refused(f"it has a row of more than {_LONGEST_ROW} letters.")
            yield line

    for row in csv.reader(lines()):
        length = 0
        if row:
            yield row


def _column(rows: Iterator[list[str]], n: int, heads: tuple[str, ...]) -> list[str]:
    """The entries, below a header if there is one; nothing else is kept, and equal ones but once."""
    first = next(rows, [])
    head = [cell.strip().lower() for cell in first]
    named = next((head.index(name) for name in heads if name in head), None)
    if named is None and len(first) > 1:
        raise Refused(f"it has several columns; expected one, or a header with one of {listed(heads)}.")
    at, seen = named or 0, dict[str, str]()
    values = [first[0].strip()] if first and named is None else []
    entries = len(values)
    for row in rows:
        entries += 1
        if named is None and len(row) > 1:
            raise Refused(f"it has several columns; expected one, or a header with one of {listed(heads)}.")
        value = row[at].strip() if len(row) > at else ""
        if entries <= n + 1:  # what is beyond is counted only
            values.append(seen.setdefault(value, value))
    header = named is None and entries == n + 1 and not _is_entry(values[0], values[1:])
    if entries != n and not header:
        raise Refused(f"it has {entries} entries for {n} matrices; expected one for each.")
    values = values[len(values) - n :]
    if "" in values:
        raise Refused(f"entry {values.index('')} is empty; expected one value for each matrix.")
    return [unguarded(value) for value in values]


def _is_entry(first: str, others: list[str]) -> bool:
    """Whether the first row of a column is a value like the others, and no header."""
    return first in others or all(_number(text) is not None for text in {first, *others})


def _typed(values: list[str], stored: int) -> np.ndarray:
    """Numbers if all are, and different ones where the texts are different."""
    texts = dict.fromkeys(values)
    numbers = {text: number for text in texts if (number := _number(text)) is not None}
    if len(numbers) == len(texts) == len(set(numbers.values())):
        return np.array([numbers[value] for value in values])
    return _as_words("the column", values, stored)


# What a spreadsheet takes for a formula, or passes over before one.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]")


def guarded(text: str) -> str:
    """A word for a .csv file that no spreadsheet takes for a formula: an apostrophe before it."""
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(text: str) -> str:
    """The inverse of `guarded`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def _number(text: str) -> int | float | None:
    """The number of 64 bits that Python prints as this text; NaN, where it is missing, in any case."""
    try:
        number = int(text) if re.fullmatch("-?[0-9]+", text) else float(text)
    except ValueError:
        return None
    fits = isinstance(number, float) or abs(number) < 2**63
    return number if fits and (repr(number) == text or number != number) else None
