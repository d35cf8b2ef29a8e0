"""Matrices in the formats that people have: ``.npz``, ``.mat`` of any version, ``.npy``, a folder of files.

Labels and groups are in the same file or in a ``.csv`` file.

Sizes are checked first.  Whether matrices are positive definite is for the estimator to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path

import numpy as np

from spdmetric.caller import spell
from spdmetric.io import tables
from spdmetric.io.arrays import npy_header, open_arrays
from spdmetric.io.files import FileError, Header, check_size, explain_unreadable, list_some, shorten

_MATRIX_SUFFIXES = (".npy", ".csv")  # of the files of a folder


@dataclass(frozen=True)
class Matrices:
    """Matrices of a file, with what the file or its companions say of each."""

    X: np.ndarray  # (n, d, d) or (n, views, d, d), in the stored dtype
    y: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,)
    name: str  # of the file, without folder and suffix
    notes: tuple[str, ...] = ()  # what was done to them when they were read, in sentences
    names: tuple[str, ...] | None = None  # of the files of a folder, one for each matrix
    channels: tuple[str, ...] | None = None  # names of the rows, one for each

    @property
    def labels(self) -> np.ndarray:
        """``y``, or a sentence that says that it is missing."""
        if self.y is None:
            raise ValueError(f"{self.name} has no labels: store them as y, or give {spell('labels')}.")
        return self.y


def read_matrices(
    path: str | PathLike[str],
    labels: str | PathLike[str] | None = None,
    groups: str | PathLike[str] | None = None,
    *,
    matrices: str | None = None,
    subject: int | None = None,
) -> Matrices:
    """Read matrices, and their labels and groups where there are any.

    Parameters
    ----------
    path : str or path-like
        ``.npz`` or ``.mat`` (of any version) with the array ``X`` or ``covs``, (n, d, d) or several matrices
        a sample, (n, views, d, d), and optionally
        ``y`` or ``labels``, and ``groups``; or with ``X3``, ``y3`` and optionally ``r3`` (the
        groups) for subject 3 of several; or ``.npy`` with the matrices alone.  A stack that
        ``.mat`` stores as (d, d, n) is transposed.  Or a folder of ``.npy`` and ``.csv`` files
        with one matrix each, these as pandas writes ``frame.corr()`` or as numbers alone; the
        subfolders, if there are any, are the labels.
    labels, groups : str or path-like, optional
        A ``.csv`` file with a value for each matrix, or the name of an array of the file.  Groups
        are sessions, runs or subjects.  For a folder, a ``.csv`` file with two columns: the names of
        the files, and their values.
    matrices : str, optional
        The name of the array of matrices, if it is another.
    subject : int, optional
        Which subject to read from a file that holds several.

    Returns
    -------
    matrices : Matrices
        ``y`` and ``groups`` are None where nothing tells them.
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, matrices or subject, labels, groups)
    with explain_unreadable(path):
        return read_labeled(path, labels, groups, matrices, subject, _check_matrices)


Source = str | PathLike[str] | None  # of labels or groups: a .csv file, or the name of an array
# Whether samples lie along the last axis, of an array with a name, for so many labels, in a .mat file or not.
Check = Callable[[str, Header, int, bool], bool]


def read_labeled(
    path: Path, labels: Source, groups: Source, matrices: str | None, subject: int | None, check: Check
) -> Matrices:
    """Compare the sizes of all arrays with the file, then read them, the one of the matrices last."""
    stored, matlab = path.stat().st_size, path.suffix.lower() == ".mat"
    with open_arrays(path) as (names, read_header, read_array):
        key, y_name, g_name = find_names(names, matrices, subject)
        y_name, g_name = str(labels or y_name), str(groups or g_name)
        headers = {name: read_header(name) for name in (key, y_name, g_name) if name in names}
        check_size(list_some(headers), sum(header.nbytes for header in headers.values()), stored)
        n_labels = prod(headers[y_name].shape) if y_name in headers else 0
        shape = headers[key].shape
        if matlab and len(shape) == 2 and n_labels == 1:  # MATLAB drops a last axis of one
            shape = (*shape, 1)
        last = check(key, Header(shape, headers[key].dtype), n_labels, matlab)
        n = shape[-1 if last else 0]

        def read(name: str, given: Source, heads: tuple[str, ...]) -> np.ndarray | None:
            if tables.is_table(name):
                return tables.read_column(name, n, heads)
            if name in headers:
                return tables.as_column(name, read_array(name), n, stored)
            if given is None:
                return None
            raise FileError(f"no array {shorten(name)}: give one of {list_some(names)}, or a .csv file.")

        y, g = read(y_name, labels, tables.LABEL_HEADS), read(g_name, groups, tables.GROUP_HEADS)
        X, notes = read_array(key).reshape(shape), list[str]()
    # With as many matrices as channels, only their symmetry tells the axes apart.
    if last and not (len(set(shape)) == 1 and all(np.allclose(A, A.T) for A in X)):
        X = X.transpose(2, 0, 1)
        notes.append(f"{key} is stored as {shape}, as MATLAB does, and was read as {X.shape}.")
    return Matrices(np.ascontiguousarray(X), y, g, path.stem, tuple(notes))


def find_names(names: list[str], matrices: str | None, subject: int | None) -> tuple[str, str, str]:
    """Names of matrices, labels and groups: those whose labels are there too, or of matrices alone."""
    subjects = sorted(int(name[1:]) for name in names if re.fullmatch("X[0-9]{1,18}", name))
    if matrices is not None and (matrices not in names or subject is not None):
        todo = f"it has {list_some(names)}" if subject is None else f"leave out {spell('subject')}"
        raise FileError(f"{spell('matrices', shorten(matrices))}: expected the name of an array; {todo}.")
    if subject is not None:
        X, y, groups = (f"{letter}{subject}" for letter in "Xyr")
        if X in names and y in names:
            return X, y, groups
        hint = f"subjects {list_some(subjects)}" if subjects else f"one subject: leave out {spell('subject')}"
        raise FileError(f"expected the arrays {X} and {y} of subject {subject}; it holds {hint}.")
    pairs = [("X", "y"), ("X", "labels"), ("covs", "labels"), ("covs", "y")]
    if matrices is not None:
        pairs = [(matrices, "y"), (matrices, "labels")]
    if there := [pair for pair in pairs if pair[0] in names]:
        return (*min(there, key=lambda pair: pair[1] not in names), "groups")
    if subjects:
        raise FileError(f"it holds several subjects: pass {spell('subject')}, one of {list_some(subjects)}.")
    todo = f"for others pass {spell('matrices')} and {spell('labels')} with their names"
    raise FileError(f"expected the arrays X and y, or covs and labels; found {list_some(names)}: {todo}.")


def _check_matrices(name: str, header: Header, n_labels: int, matlab: bool) -> bool:
    """Whether matrices lie along the last axis of an array, or why there are none in it."""
    shape = header.shape
    if header.dtype.kind not in "fiubc" or 0 in shape:
        raise FileError(f"{name} has dtype {header.dtype} and shape {shape}; expected matrices of numbers.")
    last = len(shape) == 3 and shape[0] == shape[1]
    if len(shape) not in (3, 4) or (shape[-1] != shape[-2] and not (last and matlab)):
        hint = " It looks like (d, d, n): save its transpose(2, 0, 1)." if last else ""
        if not last and looks_like_signals(shape):
            hint = " These look like signals, (n, channels, times): estimate a covariance matrix of each."
        expected = "(n, d, d), a stack of square matrices, or several a sample, (n, views, d, d)"
        raise FileError(f"{name} has shape {shape}; expected {expected}.{hint}")
    return last and matlab


def looks_like_signals(shape: tuple[int, ...]) -> bool:
    """Whether an array of this shape can be signals (n, channels, times), and cannot be matrices."""
    return len(shape) == 3 and 0 not in shape and shape[1] != shape[2]


def _read_folder(folder: Path, array: str | int | None, labels: Source, groups: Source) -> Matrices:
    """One matrix of each file; all sizes are compared before a matrix of a ``.npy`` file is read."""
    given = [Path(source) for source in (labels, groups) if source is not None]
    if array is not None or not all(map(tables.is_table, given)):
        expected = f"no {spell('matrices')} or {spell('subject')}, and a .csv file that names the files"
        raise FileError(f"{folder} is a folder: expected {expected}.")
    paths = find_files(folder, _MATRIX_SUFFIXES, {table.resolve() for table in given})
    found, channels = zip(*map(_header_or_matrix, paths), strict=True)
    for path, one, rows in zip(paths, found, channels, strict=True):
        if one.shape != found[0].shape:
            first = f"{paths[0].name} has {found[0].shape}"
            raise FileError(f"{path} has shape {one.shape}, but {first}: expected the same.")
        if rows != channels[0]:
            raise FileError(f"{path} and {paths[0].name} have different names of rows; expected the same.")
    X = np.empty((len(paths), *found[0].shape), np.result_type(*{one.dtype for one in found}))
    for k, (path, one) in enumerate(zip(paths, found, strict=True)):
        with explain_unreadable(path):
            X[k] = np.load(path) if isinstance(one, Header) else one
    names = tuple(path.relative_to(folder).as_posix() for path in paths)
    y = np.array([name.partition("/")[0] for name in names]) if "/" in names[0] else None
    y = y if labels is None else tables.read_named_column(labels, names, tables.LABEL_HEADS)
    g = None if groups is None else tables.read_named_column(groups, names, tables.GROUP_HEADS)
    others = [path.name for path in _visible(folder) if path.suffix.lower() not in ("", *_MATRIX_SUFFIXES)]
    note = f"{len(others)} files without a matrix were passed over: {list_some(others)}."
    name = folder.name or folder.resolve().name
    return Matrices(X, y, g, name, (note,) if others else (), names, channels[0])


def find_files(folder: Path, suffixes: Collection[str], left_out: Collection[Path] = ()) -> list[Path]:
    """Files with some suffixes in a folder, or all in its subfolders, in natural order, or a sentence."""
    there = [path for path in _walk(folder) if path.suffix.lower() in suffixes]
    found = sorted((path for path in there if path.resolve() not in left_out), key=_natural)
    if not found:
        has = list_some(path.name for path in _visible(folder))
        raise FileError(f"{folder} has no file that ends in {list_some(suffixes)}: it has {has}.")
    depths = {len(path.relative_to(folder).parts): path for path in found}
    if len(depths) > 1 or max(depths) > 2:
        shown = " and ".join(shorten(path.relative_to(folder)) for _, path in sorted(depths.items()))
        expected = "all files in the folder itself, or each in a subfolder named after its class"
        raise FileError(f"{folder} holds {shown}, at different depths; expected {expected}.")
    return found


def _natural(path: Path) -> list[tuple[int, int | str]]:
    """Key of the order in which ``trial2`` comes before ``trial10``."""
    parts = re.split("([0-9]+)", str(path).casefold())
    return [(0, int(part)) if part.isascii() and part.isdigit() else (1, part) for part in parts]


def _visible(folder: Path) -> list[Path]:
    """What is in a folder, without what is hidden."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _walk(folder: Path, depth: int = 1) -> Iterator[Path]:
    """Files of a folder, three levels deep at most."""
    for path in _visible(folder):
        if path.is_symlink():
            raise FileError(f"{path} is a link, which can lead to another file: put the file itself there.")
        if path.is_dir() and depth < 3:
            yield from _walk(path, depth + 1)
        else:
            yield path


def _header_or_matrix(path: Path) -> tuple[Header | np.ndarray, tuple[str, ...] | None]:
    """Shape and dtype of the one matrix of a ``.npy`` file; that of a ``.csv`` file itself, and its names."""
    with explain_unreadable(path):
        if tables.is_table(path):
            return tables.read_csv_matrix(path)
        found = npy_header(path)
        if found.dtype.kind not in "fiubc" or len(found.shape) != 2 or len({*found.shape, 0}) != 2:
            got = f"it has dtype {found.dtype} and shape {found.shape}"
            raise FileError(f"{got}; expected one square matrix of numbers, not a stack of them.")
        return found, None
