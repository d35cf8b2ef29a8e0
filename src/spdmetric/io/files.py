"""Reading matrices and labels from files, ``.npz`` and ``.mat``.

Whether the matrices are positive definite is for the estimator to say.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from os import SEEK_CUR, PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spdmetric.io.archive import read_header


class Covariances(NamedTuple):
    """Matrices of a file, their labels, and the group (session, run) of each where it is told."""

    X: np.ndarray  # (n, d, d), in the stored dtype
    y: np.ndarray  # (n,)
    groups: np.ndarray | None  # (n,)


class _Keys(NamedTuple):
    matrices: str
    labels: str
    groups: str

    def present(self, names: Iterable[str]) -> list[str]:
        return [key for key in self if key in names]


_LAYOUTS = (_Keys("X", "y", "groups"), _Keys("covs", "labels", "groups"))

# Fields of the `data` structure in the covariance toolbox's MotorImagery.mat.
_TOOLBOX_FIELDS = ("data", "labels", "idxTraining", "idxTest")


def load_covariances(path: str | PathLike[str], subject: int | None = None) -> Covariances:
    """Read matrices, labels and groups from a ``.npz`` or ``.mat`` file.

    Three layouts are known: arrays ``X`` and ``y``, or ``covs`` and ``labels``, each with
    an optional ``groups``; the arrays ``X3``, ``y3`` and, optionally, ``r3`` (the groups)
    for subject 3 of several; and, in ``.mat`` files, the structure ``data`` of the
    covariance toolbox, whose groups are "T" (training session) and "E" (evaluation
    session).

    Parameters
    ----------
    path : str or path-like
        File to read.  Pickled objects are refused.
    subject : int, optional
        Which subject to read from a file that holds several.

    Returns
    -------
    covariances : Covariances
        ``X`` of shape (n, d, d) in the stored dtype, ``y`` and ``groups`` of shape (n,);
        ``groups`` is None where the file has none.  A stack stored as (d, d, n) in a
        ``.mat`` file is transposed.

    Raises
    ------
    FileNotFoundError, ValueError
        With a sentence that says what the file lacks.
    """
    path = _existing(Path(path))
    if path.suffix.lower() not in _READERS:
        raise ValueError(f"{path}: unknown suffix {path.suffix!r}; expected one of {', '.join(_READERS)}.")
    names_in, read = _READERS[path.suffix.lower()]
    names = names_in(path)
    if _is_mat(path) and subject is None and "data" in names and not _layout_of(names):
        return _from_toolbox(path)
    keys = _choose_keys(path, names, subject)
    arrays = read(path, keys.present(names))
    X = _as_stack(path, keys.matrices, arrays[keys.matrices], np.size(arrays[keys.labels]))
    y = _as_column(path, keys.labels, arrays[keys.labels], len(X))
    groups = arrays.get(keys.groups)
    return Covariances(X, y, None if groups is None else _as_column(path, keys.groups, groups, len(X)))


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    return path


# ---------------------------------------------------------------------------
# Which arrays of the file are meant


def _choose_keys(path: Path, names: list[str], subject: int | None) -> _Keys:
    subjects = sorted(int(m[1]) for m in (re.fullmatch(r"X([0-9]+)", name) for name in names) if m)
    found = f"found {', '.join(names) if names else 'nothing'}"
    if subject is not None:
        return _keys_of_subject(path, names, subject, subjects, found)
    keys = _layout_of(names)
    if keys is not None:
        return keys
    if subjects:
        raise ValueError(f"{path} holds several subjects: pass subject=, one of {_listed(subjects)}.")
    raise ValueError(f"{path}: expected the arrays X and y, or covs and labels; {found}.")


def _layout_of(names: list[str]) -> _Keys | None:
    return next((k for k in _LAYOUTS if k.matrices in names and k.labels in names), None)


def _is_mat(path: Path) -> bool:
    return path.suffix.lower() == ".mat"


def _keys_of_subject(path: Path, names: list[str], subject: int, subjects: list[int], found: str) -> _Keys:
    keys = _Keys(f"X{subject}", f"y{subject}", f"r{subject}")
    if not subjects:
        raise ValueError(
            f"{path}: expected the arrays {keys.matrices} and {keys.labels} of subject {subject}; {found}. "
            "A file of one subject is read without subject=."
        )
    if subject not in subjects:
        raise ValueError(f"{path} has no subject {subject}; it holds {_listed(subjects)}.")
    if keys.labels not in names:
        raise ValueError(f"{path} holds {keys.matrices} but not its labels {keys.labels}; {found}.")
    return keys


def _listed(subjects: list[int]) -> str:
    return ", ".join(map(str, subjects))


# ---------------------------------------------------------------------------
# Arrays in the shape the package uses


def _as_stack(path: Path, name: str, value: Any, n_labels: int) -> np.ndarray:
    X = np.asarray(value)
    if X.dtype.kind not in "fiubc":
        raise ValueError(f"{path}: {name} has dtype {X.dtype}; expected matrices of numbers.")
    if _is_mat(path):
        X = _matrices_first(X, n_labels)
    if X.ndim != 3 or X.shape[1] != X.shape[2]:
        hint = ""
        if X.ndim == 3 and X.shape[0] == X.shape[1]:
            hint = " It looks like (d, d, n): save its transpose(2, 0, 1)."
        raise ValueError(
            f"{path}: {name} has shape {X.shape}; expected (n, d, d), a stack of square matrices.{hint}"
        )
    return X


def _matrices_first(X: np.ndarray, n_labels: int) -> np.ndarray:
    """Turn a stack as MATLAB holds it, (d, d, n) or (d, d) for one matrix, into (n, d, d)."""
    if X.ndim == 2 and X.shape[0] == X.shape[1] and n_labels == 1:
        return X[None]
    if X.ndim != 3 or X.shape[0] != X.shape[1]:
        return X
    if X.shape[1] == X.shape[2] and np.allclose(X, X.transpose(0, 2, 1)):
        # As many matrices as channels: only their symmetry tells the axes apart.
        return X
    return X.transpose(2, 0, 1)


def _as_column(path: Path, name: str, value: Any, n: int) -> np.ndarray:
    values = np.asarray(value)
    if values.size != n or max(values.shape, default=0) != n:
        raise ValueError(
            f"{path}: {name} has shape {values.shape} for {n} matrices; expected one entry for each."
        )
    values = values.ravel()
    if values.dtype == object:  # a cell array of strings
        return np.array([str(np.squeeze(item)) for item in values])
    # MATLAB pads the rows of a character matrix to one length.
    return np.char.rstrip(values) if _is_mat(path) and values.dtype.kind == "U" else values


# ---------------------------------------------------------------------------
# .npz


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of a ``.npz`` file."""
    _check_archive(path)
    with _reading(path), zipfile.ZipFile(path) as members:
        for info in members.infolist():
            members.open(info).close()  # tells a name that was damaged in the table of contents
    with _reading(path), np.load(path, allow_pickle=False) as archive:
        return list(archive.files)


def read_npz(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Read some arrays of a ``.npz`` file, never a pickled one."""
    names = list(names)
    with _reading(path), np.load(path, allow_pickle=False) as archive:
        for name in names:
            _check_npy_size(archive.zip, name)
        return {name: archive[name] for name in names}


def _check_npy_size(archive: zipfile.ZipFile, name: str) -> None:
    """Compare what an array says of its size with what the archive does, before memory is asked for."""
    stored = {info.filename: info for info in archive.infolist()}
    info = stored.get(f"{name}.npy") or stored[name]
    with archive.open(info) as file:
        header = read_header(file)
    if not header.dtype.hasobject and header.total != info.file_size:
        raise ValueError(f"{name} says that it has {header.total} bytes and has {info.file_size}")


def _check_archive(path: Path) -> None:
    """Tell a pickle and other foreign files, which NumPy all takes for pickles, from a ``.npz``."""
    if zipfile.is_zipfile(path):
        return
    with path.open("rb") as file:
        if file.read(1) == b"\x80":
            raise ValueError(_pickled(path))
    raise ValueError(f"{path} is not an .npz archive: it is corrupt, truncated or of another format.")


def _pickled(path: Path) -> str:
    return (
        f"{path} holds pickled Python objects, which are refused because reading them can run code; "
        "save numbers or strings instead, for instance y.astype(str)."
    )


# ---------------------------------------------------------------------------
# .mat


def mat_names(path: Path) -> list[str]:
    """Names of the variables of a ``.mat`` file."""
    from scipy.io import whosmat

    with _reading(path):
        _check_whole(path)
        return [name for name, _, _ in whosmat(path)]


def _check_whole(path: Path) -> None:
    """Follow the lengths of the variables to the end of the file.

    SciPy lists the variables of a truncated file up to the cut, without a word.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(128)
        order: Any = {b"\x00\x01IM": "little", b"\x01\x00MI": "big"}.get(header[124:])
        while order and file.tell() < size:  # MATLAB 5 to 7; SciPy tells the others
            tag = file.read(8)
            length = int.from_bytes(tag[4:], order)
            if len(tag) < 8 or file.tell() + length > size:
                raise EOFError("the file ends within a variable")
            file.seek(length, SEEK_CUR)


def read_mat(path: Path, names: Iterable[str]) -> dict[str, Any]:
    """Read some variables of a ``.mat`` file; its structures become objects with attributes."""
    from scipy.io import loadmat

    names = list(names)
    with _reading(path):
        content = loadmat(path, struct_as_record=False, variable_names=names)
        return {name: content[name] for name in names}


def structures(value: Any) -> list[Any]:
    """List the structures of a MATLAB structure array, or of a cell array of structures."""
    found: list[Any] = []
    if isinstance(value, np.ndarray) and value.dtype == object:
        for item in value.ravel():
            found += structures(item) if isinstance(item, np.ndarray) else [item]
    return found


def _from_toolbox(path: Path) -> Covariances:
    data = structures(read_mat(path, ["data"])["data"])
    if len(data) != 1 or not all(hasattr(data[0], field) for field in _TOOLBOX_FIELDS):
        raise ValueError(
            f"{path}: expected the arrays X and y, or covs and labels, or a structure data with the "
            f"fields {', '.join(_TOOLBOX_FIELDS)}; found data without them."
        )
    X = np.asarray(data[0].data)
    if X.ndim != 3 or X.shape[0] != X.shape[1]:
        raise ValueError(f"{path}: data.data has shape {X.shape}; expected (d, d, n).")
    X = X.transpose(2, 0, 1)
    sessions = {"T": data[0].idxTraining, "E": data[0].idxTest}
    return Covariances(
        X, _as_column(path, "data.labels", data[0].labels, len(X)), _sessions(path, sessions, len(X))
    )


def _sessions(path: Path, indices: dict[str, Any], n: int) -> np.ndarray:
    """Name the session of each matrix, from the 1-based indices of each session."""
    every = np.concatenate([np.ravel(index) for index in indices.values()]).astype(int)
    if not np.array_equal(np.sort(every), np.arange(1, n + 1)):
        raise ValueError(
            f"{path}: idxTraining and idxTest should name each of the {n} matrices once, by numbers 1 to {n}."
        )
    groups = np.empty(n, dtype="<U1")
    for session, index in indices.items():
        groups[np.ravel(index).astype(int) - 1] = session
    return groups


# ---------------------------------------------------------------------------
# What the libraries raise, as sentences


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into one sentence that names the file."""
    try:
        yield
    except NotImplementedError as error:
        raise ValueError(
            f"{path} is a MATLAB 7.3 (HDF5) file; save it again with save(..., '-v7')."
        ) from error
    except Exception as error:
        if "allow_pickle" in str(error):
            raise ValueError(_pickled(path)) from error
        raise ValueError(
            f"{path} cannot be read: it is corrupt, truncated or of another format "
            f"({type(error).__name__}: {error})."
        ) from error


_READERS: dict[str, tuple[Callable[..., list[str]], Callable[..., dict[str, Any]]]] = {
    ".npz": (npz_names, read_npz),
    ".mat": (mat_names, read_mat),
}
