"""Matrices in the formats that people have: ``.npz``, ``.mat`` of any version, ``.npy``, a folder of files.

Labels and groups are in the same file or in a ``.csv`` file.

Sizes are checked first.  Whether matrices are positive definite is for the estimator to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spdmetric.caller import spell
from spdmetric.io.columns import (
    GROUP_HEADS,
    LABEL_HEADS,
    as_column,
    check_length,
    read_column,
    read_csv_matrix,
    read_named_column,
)
from spdmetric.io.files import FileError, Header, Refused, check_size, listed, numbers_in, reading, shortened
from spdmetric.io.matlab import mat_headers, mat_names, read_mat, structures
from spdmetric.io.npy import npy_header, npz_headers, npz_names, read_npy, read_npz

SIGNAL_SUFFIXES = (".edf", ".gdf", ".fif")
_TOOLBOX = ("data", "labels", "idxTraining", "idxTest")  # fields of the covariance toolbox


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
        if subject is None and holds_toolbox(path):
            found = _read_toolbox(path, labels, groups)
        else:
            stored, y, g, key = read_labeled(path, subject, labels, groups, _stack_length)
            X = _as_stack(stored) if is_mat(path) else stored
            how = f"is stored as {stored.shape}, matrix after matrix along its last axis as MATLAB does"
            moved = X.shape != stored.shape or X.strides != stored.strides
            notes = (f"{key} {how}; it was read as {X.shape}.",) if moved else ()
            found = Matrices(X, y, g, path.stem, notes)
    return replace(found, X=np.ascontiguousarray(found.X))


# ---------------------------------------------------------------------------
# Arrays by their names


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
Count = Callable[[Path, str, Header, int], int]  # how many matrices or trials an array with a name holds
Labeled = tuple[np.ndarray, np.ndarray | None, np.ndarray | None, str]  # array, labels, groups, its name


def format_of(path: Path) -> Format:
    """How a file is read, by its suffix."""
    if path.suffix.lower() in SIGNAL_SUFFIXES:
        todo = "read them with spdmetric.io.signals.read_signals, and estimate covariances of them"
        raise Refused(f"it holds signals, not matrices: {todo}.")
    if path.suffix.lower() == ".skops":
        raise Refused("it is a model; expected a file with the arrays X and y, or covs and labels.")
    if path.suffix.lower() not in _FORMATS:
        raise Refused(f"unknown suffix {path.suffix!r}; expected one of {listed(_FORMATS)}.")
    return _FORMATS[path.suffix.lower()]


def is_mat(path: Path) -> bool:
    """Whether a file is MATLAB's, by its name."""
    return path.suffix.lower() == ".mat"


def read_labeled(path: Path, subject: int | None, labels: Source, groups: Source, count: Count) -> Labeled:
    """Compare the sizes of all arrays with each other, then read them, the one of the matrices last."""
    names = format_of(path).names(path)
    key, *others = layout_of(names, subject)
    headers = format_of(path).headers(path, [name for name in (key, *others) if name in names])
    check_size(listed(headers), sum(header.nbytes for header in headers.values()), path.stat().st_size)
    n = count(path, key, headers[key], headers[others[0]].size if others[0] in headers else 0)
    y, g = (
        None if given is None and name not in names else _read_values(path, names, given or name, heads, n)
        for given, name, heads in zip((labels, groups), others, (LABEL_HEADS, GROUP_HEADS), strict=True)
    )
    return format_of(path).read(path, key), y, g, key


def _read_values(
    path: Path, names: list[str], source: str | PathLike[str], heads: tuple[str, ...], n: int
) -> np.ndarray:
    """A value for each matrix, from a ``.csv`` file or an array of the file itself."""
    if Path(source).suffix.lower() == ".csv":
        return read_column(source, n, heads)
    name = str(source)
    if name not in names:
        raise Refused(f"it has no array {shortened(name)}: give one of {listed(names)}, or a .csv file.")
    check_length(name, format_of(path).headers(path, [name])[name].shape, n)
    return as_column(name, format_of(path).read(path, name), n, path.stat().st_size, is_mat(path))


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
        raise Refused(f"expected the arrays X and y, or covs and labels; found {listed(names)}.")
    if subjects and subject not in subjects:
        raise Refused(f"it has no subject {subject}; it holds {listed(subjects)}.")
    X, y, groups = (f"{letter}{subject}" for letter in "Xyr")
    if X not in names or y not in names:
        hint = "" if subjects else f" A file of one subject is read without {spell('subject')}."
        raise Refused(f"expected the arrays {X} and {y} of subject {subject}; found {listed(names)}.{hint}")
    return X, y, groups


def holds_toolbox(path: Path) -> bool:
    """Whether a file holds the structure ``data`` of the covariance toolbox's MotorImagery.mat."""
    return is_mat(path) and "data" in (names := mat_names(path)) and not {"X", "covs"} & set(names)


def _read_toolbox(path: Path, labels: Source, groups: Source) -> Matrices:
    """The structure of the covariance toolbox, unless labels or groups are given."""
    found = structures(read_mat(path, "data"))
    if len(found) != 1 or not set(_TOOLBOX) <= set(found[0]):
        expected = "the arrays X and y, or covs and labels, or a structure data with the fields"
        raise Refused(f"expected {expected} {listed(_TOOLBOX)}; found data without them.")
    X, y, training, test = (found[0][field] for field in _TOOLBOX)
    if X.ndim != 3 or X.shape[0] != X.shape[1]:
        raise Refused(f"data.data has shape {X.shape}; expected (d, d, n).")
    n = _stack_length(path, "data.data", Header(X.shape, X.dtype), 0)
    named = np.append(training, test)
    if named.dtype.kind not in "fiu" or not np.array_equal(np.sort(named), np.arange(1, n + 1)):
        raise Refused(
            f"idxTraining and idxTest should name each of the {n} matrices once, by numbers 1 to {n}."
        )
    y = as_column("data.labels", y, n, path.stat().st_size, mat=True)
    g = np.repeat(["T", "E"], [training.size, test.size])[np.argsort(named)]
    names = mat_names(path)
    if labels is not None:
        y = _read_values(path, names, labels, LABEL_HEADS, n)
    if groups is not None:
        g = _read_values(path, names, groups, GROUP_HEADS, n)
    return Matrices(X.transpose(2, 0, 1), y, g, path.stem)


def _stack_length(path: Path, name: str, header: Header, n_labels: int) -> int:
    """How many matrices an array holds, or why it holds none."""
    shape = header.shape
    if header.dtype.kind not in "fiubc":
        raise Refused(f"{name} has dtype {header.dtype}; expected matrices of numbers.")
    if 0 in shape:
        raise Refused(f"it holds no matrices: {name} has shape {shape}.")
    last = len(shape) == 3 and shape[0] == shape[1]
    if is_mat(path) and (last or (len(shape) == 2 and shape[0] == shape[1] and n_labels == 1)):
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


# ---------------------------------------------------------------------------
# Folders


def _read_folder(folder: Path, subject: int | None, labels: Source, groups: Source) -> Matrices:
    """One matrix of each file; all sizes are compared before a matrix of a ``.npy`` file is read."""
    if subject is not None:
        raise FileError(f"{folder} is a folder: it is read without {spell('subject')}.")
    tables = [Path(table) for table in (labels, groups) if table is not None]
    for table in tables:
        if table.suffix.lower() != ".csv":
            expected = "a .csv file with the names of the files and their values"
            raise FileError(f"{shortened(table)} is no table for the folder {folder}: expected {expected}.")
    left_out = {table.resolve() for table in tables}
    paths = files_in(folder, (".npy", ".csv"), left_out)
    found = [_header_or_matrix(path) for path in paths]
    for path, one in zip(paths, found, strict=True):
        if one.shape != found[0].shape:
            this, first = f"{path} has shape {one.shape}", f"{paths[0].name} has {found[0].shape}"
            raise FileError(f"{this}, but {first}: all matrices of a folder must have one size.")
    X = np.empty((len(paths), *found[0].shape), np.result_type(*{one.dtype for one in found}))
    for k, one in enumerate(found):
        X[k] = read_npy(paths[k]) if isinstance(one, Header) else one
    parts = [path.relative_to(folder).parts for path in paths]
    names = tuple("/".join(part) for part in parts)
    y = np.array([part[0] for part in parts]) if len(parts[0]) == 2 else None
    y = y if labels is None else read_named_column(labels, names, LABEL_HEADS)
    g = None if groups is None else read_named_column(groups, names, GROUP_HEADS)
    others = _others(folder, left_out | {path.resolve() for path in paths})
    notes = (f"{len(others)} files without a matrix were passed over: {listed(others)}.",) if others else ()
    return Matrices(X, y, g, folder.name or folder.resolve().name, notes, names)


def files_in(folder: Path, suffixes: Collection[str], left_out: Collection[Path] = ()) -> list[Path]:
    """Files with some suffixes in a folder or all in its subfolders, in natural order; or a sentence.

    ``left_out`` are resolved paths of files that hold something else.
    """
    found = sorted(_entries(folder, suffixes, left_out), key=lambda path: _natural(str(path)))
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


def _natural(name: str) -> list[tuple[int, int | str]]:
    """Key of the order in which ``trial2`` comes before ``trial10``."""
    parts = re.split("([0-9]+)", name.casefold())
    return [(0, int(part)) if part.isascii() and part.isdigit() else (1, part) for part in parts]


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


def _others(folder: Path, known: Collection[Path]) -> list[str]:
    """Names of files beside the matrices."""
    beside = (path for path in folder.iterdir() if path.is_file() and path.resolve() not in known)
    return sorted(path.name for path in beside if not path.name.startswith("."))


def _header_or_matrix(path: Path) -> Header | np.ndarray:
    """Shape and dtype of the one matrix of a ``.npy`` file; that of a ``.csv`` file itself."""
    with reading(path):
        if path.suffix.lower() == ".csv":
            return read_csv_matrix(path)
        found = npy_header(path)
        if found.dtype.kind not in "fiubc":
            raise Refused(f"it has dtype {found.dtype}; expected a matrix of numbers.")
        if len(found.shape) != 2 or found.shape[0] != found.shape[1] or 0 in found.shape:
            hint = "A stack of matrices is read by itself, not in a folder."
            raise Refused(f"it has shape {found.shape}; expected one square matrix. {hint}")
        return found
