"""Reading the matrices that a person has: ``.npz``, ``.mat`` of any version, ``.npy``, labels in ``.csv``.

Nothing is allocated before the size that a file declares was compared with the size that it
has.  Whether the matrices are positive definite is for the estimator to say.
"""

from __future__ import annotations

import csv
import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from spdmetric.io.files import (
    _as_column,
    _as_stack,
    _existing,
    _layout_of,
    _pickled,
    _reading,
    load_covariances,
    mat_names,
    npz_names,
    read_mat,
    read_npz,
)

SUFFIXES = (".npz", ".mat", ".npy")
MATRICES, LABELS, GROUPS = ("X", "covs"), ("y", "labels"), ("groups",)
LABEL_HEADS = ("label", "labels", "y", "class", "target")
GROUP_HEADS = ("group", "groups", "session", "run", "subject")

# Matrices of measured numbers are never compressed to a hundredth: what declares more is damaged or hostile.
LARGEST_RATIO = 100
SMALL = 64 * 2**20  # bytes that may be declared by any file

HDF5 = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class Matrices:
    """Matrices of a file, with what the file or its companions say of each."""

    X: np.ndarray  # (n, d, d), in the stored dtype
    y: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,)
    name: str  # of the file, without folder and suffix
    notes: tuple[str, ...] = ()  # what was done to them on the way, in sentences

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
        optionally ``y`` or ``labels``, and ``groups``; or ``.npy`` with the matrices alone.
        The other layouts of `spdmetric.io.files.load_covariances` are read as well.
    labels : str or path-like, optional
        A ``.csv`` file with a label for each matrix, or the name of an array of the file.
    groups : str or path-like, optional
        The same for the groups: sessions, runs, subjects.
    subject : int, optional
        Which subject to read from a file with the arrays ``X1``, ``y1``, ``X2``, ...

    Returns
    -------
    matrices : Matrices
        ``y`` and ``groups`` are None where nothing tells them.

    Raises
    ------
    FileNotFoundError, ValueError, ImportError
        With a sentence that names the file.
    """
    path = _existing(Path(path))
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: unknown suffix {path.suffix!r}; expected one of {', '.join(SUFFIXES)}.")
    if subject is not None and suffix == ".npy":
        raise ValueError(f"{path} holds one array: a subject can be chosen in .npz and .mat files only.")
    found = _read_npy(path) if suffix == ".npy" else _read_archive(path, subject)
    found = _with_labels(path, found, labels)
    if groups is not None:
        found = replace(found, groups=_named_or_csv(path, groups, GROUP_HEADS, len(found.X)))
    if found.groups is not None and found.groups.dtype.kind in "fc":
        found = replace(found, groups=_whole(path, "groups", found.groups))
    return found


def _with_labels(path: Path, found: Matrices, labels: str | PathLike[str] | None) -> Matrices:
    if labels is not None:
        found = replace(found, y=_named_or_csv(path, labels, LABEL_HEADS, len(found.X)))
    if found.y is not None and found.y.dtype.kind in "fc":
        found = replace(found, y=_whole(path, "labels", found.y))
    return found


def _whole(path: Path, what: str, values: np.ndarray) -> np.ndarray:
    """Labels in floating point, as MATLAB stores them: integers where they are whole."""
    if values.dtype.kind == "c" or not np.isfinite(values).all():
        bad = int(np.argmin(np.isfinite(values)))
        raise ValueError(
            f"{path}: {what}[{bad}] is {values[bad]}; expected a number or a word for each matrix."
        )
    if np.all(values == np.round(values)) and np.all(np.abs(values) < 2**53):
        return values.astype(np.int64)
    return values


def _finished(path: Path, X: np.ndarray, y: Any, groups: Any, notes: Iterable[str] = ()) -> Matrices:
    if 0 in X.shape:
        raise ValueError(f"{path} holds no matrices: its array has shape {X.shape}.")
    return Matrices(X, y, groups, path.stem, tuple(notes))


def _check_size(path: Path, name: str, declared: int, stored: int) -> None:
    """Refuse an array that declares far more than the file can hold."""
    if declared > max(SMALL, LARGEST_RATIO * stored):
        raise ValueError(
            f"{path}: {name} declares {declared / 2**20:.0f} MB, more than {LARGEST_RATIO} times the "
            f"{stored / 2**20:.2g} MB that are stored: the file is damaged, or not made of measured matrices."
        )


# ---------------------------------------------------------------------------
# .npz and .mat


def _read_archive(path: Path, subject: int | None) -> Matrices:
    with _sentences(path):
        v73 = path.suffix.lower() == ".mat" and _is_hdf5(path)
        names = _hdf5_names(path) if v73 else _names(path)
        matrices, labels, groups = _layout_of(names) or _first_of(names)
        if subject is None and matrices is not None:
            wanted = [key for key in (matrices, labels, groups) if key in names]
            arrays = _read_hdf5(path, wanted) if v73 else _read(path, wanted)
            return _assembled(path, arrays, matrices, labels, groups)
        if v73:
            raise ValueError(f"{path}: expected the array X or covs; found {_listed(names)}.")
        _check_sizes(path, names)
        return _finished(path, *load_covariances(path, subject))


def _first_of(names: list[str]) -> tuple[str | None, ...]:
    """Names of the arrays, one of the matrices without its own kind of labels too."""
    return tuple(next((k for k in kind if k in names), None) for kind in (MATRICES, LABELS, GROUPS))


def _assembled(
    path: Path, arrays: dict[str, np.ndarray], matrices: str, labels: str | None, groups: str | None
) -> Matrices:
    stored = np.asarray(arrays[matrices])
    X = _as_stack(path, matrices, stored, np.size(arrays[labels]) if labels in arrays else 0)
    notes = []
    if X.shape != stored.shape or (X.strides != stored.strides):
        notes.append(
            f"{matrices} is stored as {stored.shape}, matrix after matrix along its last axis as MATLAB "
            f"does; it was read as {X.shape}."
        )
    y, g = (_as_column(path, key, arrays[key], len(X)) if key in arrays else None for key in (labels, groups))
    return _finished(path, np.ascontiguousarray(X), y, g, notes)


def _names(path: Path) -> list[str]:
    return mat_names(path) if path.suffix.lower() == ".mat" else npz_names(path)


def _read(path: Path, names: list[str]) -> dict[str, Any]:
    _check_sizes(path, names)
    return read_mat(path, names) if path.suffix.lower() == ".mat" else read_npz(path, names)


def _check_sizes(path: Path, names: list[str]) -> None:
    check = _check_mat_sizes if path.suffix.lower() == ".mat" else _check_npz_sizes
    check(path, names)


def _check_npz_sizes(path: Path, names: list[str]) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: info for info in archive.infolist()}
        for name in names:
            info = members.get(f"{name}.npy") or members[name]
            with archive.open(info) as file:
                declared = _npy_size(path, file)
            if declared != info.file_size:
                raise ValueError(
                    f"{path}: {name} declares {declared} bytes and the archive {info.file_size} for it: the "
                    "file is damaged."
                )
            _check_size(path, name, declared, min(info.compress_size, path.stat().st_size))


def _npy_size(path: Path, file: IO[bytes]) -> int:
    """Size in bytes that an array in NumPy's format has by its header, the header included."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(_pickled(path))
    return file.tell() + math.prod(shape) * dtype.itemsize


# Bytes an element of MATLAB's classes; those of other classes are bounded by what is stored.
_MAT_ITEM = {"double": 8, "single": 4, "char": 4, "logical": 1}
_MAT_ITEM |= {f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)}


def _check_mat_sizes(path: Path, names: list[str]) -> None:
    from scipy.io import whosmat

    for name, shape, kind in whosmat(path):
        if name in names and kind in _MAT_ITEM:
            _check_size(path, name, math.prod(shape) * _MAT_ITEM[kind], path.stat().st_size)


# ---------------------------------------------------------------------------
# .mat, version 7.3: HDF5


def _is_hdf5(path: Path) -> bool:
    """Whether the signature is there: MATLAB puts 512 bytes of its own before it."""
    with path.open("rb") as file:
        start = file.read(2048 + len(HDF5))
    return any(start[at : at + len(HDF5)] == HDF5 for at in (0, 512, 1024, 2048))


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("Reading MATLAB 7.3 files needs h5py: pip install 'spdmetric[hdf5]'.") from error
    return h5py


def _hdf5_names(path: Path) -> list[str]:
    h5py = _h5py()
    with h5py.File(path, "r") as file:
        return [name for name in file if isinstance(file[name], h5py.Dataset)]


def _read_hdf5(path: Path, names: list[str]) -> dict[str, Any]:
    with _h5py().File(path, "r") as file:
        return {name: _hdf5_array(path, name, file, file[name]) for name in names}


def _hdf5_array(path: Path, name: str, file: Any, dataset: Any) -> np.ndarray:
    """One variable, its axes in MATLAB's order: HDF5 lists them from the slowest to the fastest."""
    if dataset.dtype.kind == "V" or dataset.shape is None:
        raise ValueError(f"{path}: {name} has the type {dataset.dtype}; expected numbers or words.")
    _check_size(path, name, dataset.size * dataset.dtype.itemsize, path.stat().st_size)
    kind = dataset.attrs.get("MATLAB_class", b"")
    if dataset.dtype.hasobject and kind == b"cell":
        cells = np.ravel(dataset[()].T)
        return np.array([_text(file[cell][()].T) for cell in cells], dtype=object)
    if dataset.dtype.hasobject:
        return np.array([_word(item) for item in np.ravel(dataset[()].T)])
    value = dataset[()].T
    return np.array([_text(row) for row in value]) if kind == b"char" else value


def _text(codes: np.ndarray) -> str:
    """A MATLAB string, stored as the numbers of its characters; a number as it is."""
    return "".join(map(chr, np.ravel(codes))) if codes.dtype.kind == "u" else str(np.squeeze(codes))


def _word(item: Any) -> str:
    return item.decode() if isinstance(item, bytes) else str(item)


# ---------------------------------------------------------------------------
# .npy and .csv


def _read_npy(path: Path) -> Matrices:
    size = path.stat().st_size
    with _sentences(path):
        with path.open("rb") as file:
            if file.read(1) == b"\x80":
                raise ValueError(_pickled(path))
            file.seek(0)
            declared = _npy_size(path, file)
        if declared != size:
            raise ValueError(
                f"{path} declares {declared} bytes and has {size}: it is truncated, or not one .npy array."
            )
        return _finished(path, _as_stack(path, "the array", np.load(path, allow_pickle=False), 0), None, None)


def _named_or_csv(path: Path, source: str | PathLike[str], heads: tuple[str, ...], n: int) -> np.ndarray:
    """A value for each matrix, from a ``.csv`` file or an array of the file itself."""
    if Path(source).suffix.lower() == ".csv":
        return read_column(source, n, heads)
    name = str(source)
    suffix = path.suffix.lower()
    with _sentences(path):
        v73 = suffix == ".mat" and _is_hdf5(path)
        names = [] if suffix == ".npy" else _hdf5_names(path) if v73 else _names(path)
        if name not in names:
            raise ValueError(f"{path} has no array {name}: give one of {_listed(names)}, or a .csv file.")
        arrays = _read_hdf5(path, [name]) if v73 else _read(path, [name])
        return _as_column(path, name, arrays[name], n)


def read_column(path: str | PathLike[str], n: int, heads: tuple[str, ...] = LABEL_HEADS) -> np.ndarray:
    """Read one value for each of ``n`` matrices from a ``.csv`` file.

    Parameters
    ----------
    path : str or path-like
        One column, with or without a header; or several columns under a header, of which
        one has a name of ``heads``.
    n : int
        Number of matrices.
    heads : tuple of str
        Names that the column may have.

    Returns
    -------
    values : ndarray of shape (n,)
        Integers or floats where all values are, strings otherwise.
    """
    path = _existing(Path(path))
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not a text file of comma-separated values ({error}).") from error
    at, body = _column(path, rows, n, heads)
    values = [row[at].strip() if at < len(row) else "" for row in body]
    if "" in values:
        raise ValueError(f"{path}: entry {values.index('')} is empty; expected one value for each matrix.")
    return _typed(path, values)


def _column(path: Path, rows: list[list[str]], n: int, heads: tuple[str, ...]) -> tuple[int, list[list[str]]]:
    """Index of the column that is meant, and the rows below the header."""
    head = [cell.strip().lower() for cell in rows[0]] if rows else []
    named = next((head.index(name) for name in heads if name in head), None)
    if len(rows) not in (n, n + 1) or (len(rows) == n and named is not None):
        entries = len(rows) - (named is not None)
        raise ValueError(f"{path} has {entries} entries for {n} matrices; expected one for each.")
    body = rows[len(rows) - n :]
    if named is None and any(len(row) > 1 for row in rows):
        raise ValueError(
            f"{path} has several columns; expected one, or a header with one of the names {', '.join(heads)}."
        )
    return named or 0, body


def _typed(path: Path, values: list[str]) -> np.ndarray:
    for kind in (int, float):
        try:
            numbers = [kind(value) for value in values]
        except ValueError:
            continue
        if kind is int and max(map(abs, numbers)) >= 2**63:
            break
        return _whole(path, "the column", np.array(numbers)) if kind is float else np.array(numbers)
    return np.array(values)


# ---------------------------------------------------------------------------
# Sentences


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """Turn what a parser raises into a sentence; what is one already, and names the file, passes."""
    try:
        yield
    except ImportError:
        raise
    except Exception as error:
        if isinstance(error, (ValueError, OSError)) and str(path) in str(error):
            raise
        with _reading(path):
            raise


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "nothing"
