"""Matrices in the formats that people have: ``.npz``, ``.mat`` of any version, ``.npy``; labels in ``.csv``.

Nothing is allocated before the size that a file declares was compared with the size that it
has.  Whether the matrices are positive definite is for the estimator to say.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from spdmetric.io.files import Refused, listed, reading
from spdmetric.io.matlab import mat_names, read_mat, structures
from spdmetric.io.npy import npz_names, read_npy, read_npz

LABEL_HEADS = ("label", "labels", "y", "class", "target")
GROUP_HEADS = ("group", "groups", "session", "run", "subject")

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Matrices:
    """Matrices of a file, with what the file or its companions say of each."""

    X: np.ndarray  # (n, d, d), in the stored dtype
    y: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,)
    name: str  # of the file, without folder and suffix
    notes: tuple[str, ...] = ()  # what was done to them when they were read, in sentences

    @property
    def labels(self) -> np.ndarray:
        """``y``, or a sentence that says that it is missing."""
        if self.y is None:
            raise ValueError(
                f"{self.name} has no labels: store them as y or labels in the file, or give them as .csv."
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
        ``.npz`` or ``.mat`` (of any version, 7.3 too) with the array ``X`` or ``covs``, and
        optionally ``y`` or ``labels``, and ``groups``; or with the arrays ``X3``, ``y3`` and,
        optionally, ``r3`` (the groups) for subject 3 of several; ``.mat`` with the structure
        ``data`` of the covariance toolbox, whose groups are "T" (training session) and "E"
        (evaluation session); or ``.npy`` with the matrices alone.  A stack that a ``.mat`` file
        stores as (d, d, n) is transposed.  Pickled objects are refused.
    labels : str or path-like, optional
        A ``.csv`` file with a label for each matrix, or the name of an array of the file.
    groups : str or path-like, optional
        The same for the groups: sessions, runs, subjects.
    subject : int, optional
        Which subject to read from a file that holds several.

    Returns
    -------
    matrices : Matrices
        ``y`` and ``groups`` are None where nothing tells them.
    """
    path = Path(path)
    with reading(path):
        found = _read(path, subject)
        n = len(found.X)
        y = found.y if labels is None else _named_or_csv(path, labels, LABEL_HEADS, n)
        g = found.groups if groups is None else _named_or_csv(path, groups, GROUP_HEADS, n)
    return replace(found, X=np.ascontiguousarray(found.X), y=y, groups=g)


# How to list the names of the arrays of a file, and read some.  That of .npy is called X.
_FORMATS: dict[str, tuple[Callable[[Path], list[str]], Callable[[Path, list[str]], Arrays]]] = {
    ".npz": (npz_names, read_npz),
    ".mat": (mat_names, read_mat),
    ".npy": (lambda path: ["X"], lambda path, names: {"X": read_npy(path)}),
}


def array_names(path: Path) -> list[str]:
    """Names of the arrays of a file."""
    if path.suffix.lower() not in _FORMATS:
        raise Refused(f"unknown suffix {path.suffix!r}; expected one of {listed(_FORMATS)}.")
    return _FORMATS[path.suffix.lower()][0](path)


def _read_arrays(path: Path, names: list[str]) -> Arrays:
    return _FORMATS[path.suffix.lower()][1](path, names)


_LAYOUTS = [(X, y, "groups") for X, y in (("X", "y"), ("covs", "labels"), ("X", "labels"), ("covs", "y"))]


def _read(path: Path, subject: int | None) -> Matrices:
    names, mat = array_names(path), path.suffix.lower() == ".mat"
    keys = _layout_of(names) if subject is None else _layout_of_subject(names, subject)
    if keys is None and mat and "data" in names:
        return _read_toolbox(path)
    if keys is None and (subjects := subjects_in(names)):
        raise Refused(f"it holds several subjects: pass subject=, one of {listed(subjects)}.")
    if keys is None:
        raise Refused(f"expected the arrays X and y, or covs and labels; found {listed(names)}.")
    arrays = _read_arrays(path, [key for key in keys if key in names])
    stored = arrays[keys[0]]
    X = _as_stack(keys[0], stored, arrays[keys[1]].size if keys[1] in arrays else 0, mat)
    notes: tuple[str, ...] = ()
    if X.shape != stored.shape or X.strides != stored.strides:
        notes = (
            f"{keys[0]} is stored as {stored.shape}, matrix after matrix along its last axis as MATLAB does; "
            f"it was read as {X.shape}.",
        )
    y, groups = (_as_column(k, arrays[k], len(X), mat) if k in arrays else None for k in keys[1:])
    return Matrices(X, y, groups, path.stem, notes)


def _layout_of(names: list[str]) -> tuple[str, str, str] | None:
    """The layout whose labels are there too, or else that of the matrices alone."""
    known = [keys for keys in _LAYOUTS if keys[0] in names]
    return next((keys for keys in known if keys[1] in names), known[0] if known else None)


def subjects_in(names: Iterable[str]) -> list[int]:
    """Subjects of a file with the arrays ``X1``, ``X2``, ..."""
    return sorted(int(m[1]) for m in (re.fullmatch(r"X([0-9]+)", name) for name in names) if m)


def _layout_of_subject(names: list[str], subject: int) -> tuple[str, str, str]:
    X, y, groups = f"X{subject}", f"y{subject}", f"r{subject}"
    subjects = subjects_in(names)
    if subjects and subject not in subjects:
        raise Refused(f"it has no subject {subject}; it holds {listed(subjects)}.")
    if X not in names or y not in names:
        hint = "" if subjects else " A file of one subject is read without subject=."
        raise Refused(f"expected the arrays {X} and {y} of subject {subject}; found {listed(names)}.{hint}")
    return X, y, groups


def _read_toolbox(path: Path) -> Matrices:
    """The structure ``data`` of the covariance toolbox's MotorImagery.mat."""
    fields = ("data", "labels", "idxTraining", "idxTest")
    found = structures(read_mat(path, ["data"])["data"])
    if len(found) != 1 or not all(field in found[0] for field in fields):
        raise Refused(
            "expected the arrays X and y, or covs and labels, or a structure data with the fields "
            f"{listed(fields)}; found data without them."
        )
    X, labels, training, test = (found[0][field] for field in fields)
    if X.ndim != 3 or X.shape[0] != X.shape[1]:
        raise Refused(f"data.data has shape {X.shape}; expected (d, d, n).")
    n, order = X.shape[2], np.append(training, test).astype(int) - 1
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise Refused(
            f"idxTraining and idxTest should name each of the {n} matrices once, by numbers 1 to {n}."
        )
    groups = np.repeat(["T", "E"], [training.size, test.size])[np.argsort(order)]
    return Matrices(X.transpose(2, 0, 1), _as_column("data.labels", labels, n, True), groups, path.stem)


def _as_stack(name: str, X: np.ndarray, n_labels: int, mat: bool) -> np.ndarray:
    if X.dtype.kind not in "fiubc":
        raise Refused(f"{name} has dtype {X.dtype}; expected matrices of numbers.")
    X = _matrices_first(X, n_labels) if mat else X
    if X.ndim != 3 or X.shape[1] != X.shape[2]:
        looks = X.ndim == 3 and X.shape[0] == X.shape[1]
        hint = " It looks like (d, d, n): save its transpose(2, 0, 1)." if looks else ""
        raise Refused(f"{name} has shape {X.shape}; expected (n, d, d), a stack of square matrices.{hint}")
    if 0 in X.shape:
        raise Refused(f"it holds no matrices: {name} has shape {X.shape}.")
    return X


def _matrices_first(X: np.ndarray, n_labels: int) -> np.ndarray:
    """Turn a stack as MATLAB holds it, (d, d, n) or (d, d) for one matrix, into (n, d, d)."""
    if X.ndim == 2 and X.shape[0] == X.shape[1] and n_labels == 1:
        return X[None]
    last = X.ndim == 3 and X.shape[0] == X.shape[1]
    # With as many matrices as channels, only their symmetry tells the axes apart.
    if last and (X.shape[1] != X.shape[2] or not np.allclose(X, X.transpose(0, 2, 1))):
        return X.transpose(2, 0, 1)
    return X


def _as_column(name: str, values: np.ndarray, n: int, mat: bool = False) -> np.ndarray:
    """One value for each matrix; those in floating point, as MATLAB has them, become integers if whole."""
    if values.size != n or max(values.shape, default=0) != n:
        raise Refused(f"{name} has shape {values.shape} for {n} matrices; expected one entry for each.")
    values = values.ravel()
    if values.dtype == object:  # a cell array of strings
        return np.array([str(np.squeeze(item)) for item in values])
    if values.dtype.kind not in "fc":
        # MATLAB pads the rows of a character matrix to one length.
        return np.char.rstrip(values) if mat and values.dtype.kind == "U" else values
    bad = ~np.isfinite(values) | (values.dtype.kind == "c")
    if bad.any():
        first = int(np.argmax(bad))
        raise Refused(f"{name}[{first}] is {values[first]}; expected a number or a word for each matrix.")
    whole = np.all((values == np.round(values)) & (np.abs(values) < 2**53))
    return values.astype(np.int64) if whole else values


def _named_or_csv(path: Path, source: str | PathLike[str], heads: tuple[str, ...], n: int) -> np.ndarray:
    """A value for each matrix, from a ``.csv`` file or an array of the file itself."""
    if Path(source).suffix.lower() == ".csv":
        return read_column(source, n, heads)
    name, names = str(source), array_names(path)
    if name not in names:
        raise Refused(f"it has no array {name}: give one of {listed(names)}, or a .csv file.")
    return _as_column(name, _read_arrays(path, [name])[name], n, path.suffix.lower() == ".mat")


def read_column(path: str | PathLike[str], n: int, heads: tuple[str, ...] = LABEL_HEADS) -> np.ndarray:
    """Read one value for each of ``n`` matrices from a ``.csv`` file.

    The file has one column, with or without a header; or several columns under a header, of
    which one has a name of ``heads``.  Values are integers or floats where each is what Python
    prints for its number; strings otherwise, so that ``01`` and ``1`` stay two labels.
    """
    with reading(path):
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = [row for row in csv.reader(file) if row]
        except (UnicodeDecodeError, csv.Error) as error:
            raise Refused(f"it is not a text file of comma-separated values ({error}).") from error
        at, body = _column(rows, n, heads)
        values = [row[at].strip() if at < len(row) else "" for row in body]
        if "" in values:
            raise Refused(f"entry {values.index('')} is empty; expected one value for each matrix.")
        return _as_column("the column", _typed(values), n)


def _column(rows: list[list[str]], n: int, heads: tuple[str, ...]) -> tuple[int, list[list[str]]]:
    """Index of the column that is meant, and the rows below the header."""
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    named = next((head.index(name) for name in heads if name in head), None)
    if len(rows) not in (n, n + 1) or (len(rows) == n and named is not None):
        entries = len(rows) - (named is not None)
        raise Refused(f"it has {entries} entries for {n} matrices; expected one for each.")
    body = rows[len(rows) - n :]
    if named is None and any(len(row) > 1 for row in rows):
        raise Refused(f"it has several columns; expected one, or a header with one of {listed(heads)}.")
    return named or 0, body


def _typed(values: list[str]) -> np.ndarray:
    """Numbers if all are, and different ones where the texts are different."""
    numbers = [number for number in map(_number, values) if number is not None]
    fits = all(isinstance(number, float) or abs(number) < 2**63 for number in numbers)
    if fits and len(numbers) == len(values) and len(set(numbers)) == len(set(values)):
        return np.array(numbers)
    return np.array(values)


def _number(text: str) -> int | float | None:
    """The number that Python prints as this text; NaN, the mark of a missing number, in any case."""
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if repr(number) == text or number != number:
            return number
    return None
