"""MATLAB's files: version 4 to 7 by SciPy, version 7.3, which is HDF5, by h5py.

Neither library bounds what a small file can make it allocate, so what a variable declares, and what cells and
structures inflate to, is compared with the size of the file first.  HDF5 can also name other files: that is
refused.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.extras import needing
from spdmetric.io.files import Header, Refused, check_size, size_limit

if TYPE_CHECKING:
    import h5py

_NUMBERS = {"double": "f8", "single": "f4", "logical": "u1"}
_NUMBERS |= {f"{sign}int{8 * n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (1, 2, 4, 8)}
_COMPRESSED = 15  # type of an element
_PIECE = 2**20  # bytes that are inflated at a time


def mat_names(path: Path) -> list[str]:
    """Names of the variables of a ``.mat`` file of any version."""
    if not _is_hdf5(path):
        return list(_variables(path))
    with _open_hdf5(path) as file:
        import h5py

        # A link is listed, and refused when it is asked for; a group is no variable.
        return [
            name
            for name in file
            if file.get(name, getclass=True, getlink=True) is not h5py.HardLink
            or file.get(name, getclass=True) is h5py.Dataset
        ]


def mat_header(path: Path, name: str) -> Header:
    """Shape and dtype of a variable, in MATLAB's order of axes; rows of text are words, cells are objects."""
    if not _is_hdf5(path):
        return _variables(path)[name]
    with _open_hdf5(path) as file:
        dataset = _check_dataset(name, file, name)
        shape = tuple(map(int, dataset.shape[::-1]))  # HDF5 lists the slowest first
        if _is_text(dataset) and len(shape) == 2:
            return Header(shape[:1], np.dtype(f"U{max(1, shape[1])}"))
        return Header(shape, np.dtype("O") if dataset.dtype.hasobject else dataset.dtype)


def read_mat(path: Path, name: str) -> np.ndarray:
    """Read a variable of a ``.mat`` file of any version."""
    from scipy.io import loadmat

    if _is_hdf5(path):
        with _open_hdf5(path) as file:
            found = _hdf5_array(name, file, path.stat().st_size)
    else:
        try:
            found = np.asarray(loadmat(path, variable_names=[name])[name])
        except MemoryError as error:  # what is inside cells declares any length
            raise Refused(f"{name} declares more memory than there is.") from error
    return np.char.rstrip(found) if found.dtype.kind == "U" else found  # MATLAB pads rows to one length


# ---------------------------------------------------------------------------
# Versions 4 to 7


def _variables(path: Path) -> dict[str, Header]:
    """Variables by name; of what is neither number nor text the dtype is object."""
    stat = path.stat()
    return _variables_at(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)  # SciPy inflates a whole file to list what is in it
def _variables_at(path: Path, size: int, time: int) -> dict[str, Header]:
    from scipy.io import whosmat

    check_size("it", _inflated_size(path, size), size)
    found: dict[str, Header] = {}
    for name, shape, kind in whosmat(path, chars_as_strings=False):
        if name in found or min(shape, default=0) < 0:
            raise Refused(f"{name} is there twice, or has a negative shape, {shape}.")
        shape, dtype = tuple(map(int, shape)), np.dtype(_NUMBERS.get(kind, "O"))
        if kind == "char":  # the rows are words
            shape, dtype = shape[:-1], np.dtype(f"U{max(1, *shape[-1:])}")
        found[name] = Header(shape, dtype)
    return found


def _inflated_size(path: Path, size: int) -> int:
    """Bytes that the compressed variables of a file inflate to, counted up to what is too much."""
    inflated, at = 0, 128
    with path.open("rb") as file:
        order = {b"IM": "<u4", b"MI": ">u4"}.get(file.read(128)[126:])
        while order is not None and at < size and inflated <= size_limit(size):
            file.seek(at)
            kind, length = np.frombuffer(file.read(8), order, 2).tolist()
            at += 8 + length
            stream = zlib.decompressobj()
            while kind == _COMPRESSED and inflated <= size_limit(size) and not stream.eof:
                if not (packed := stream.unconsumed_tail or file.read(_PIECE)):
                    break
                inflated += len(stream.decompress(packed, _PIECE))
    return inflated


# ---------------------------------------------------------------------------
# Version 7.3


def _is_hdf5(path: Path) -> bool:
    """Whether the signature is there: MATLAB puts 512 bytes of its own before it."""
    with path.open("rb") as file:
        start = file.read(2056)
    return any(start.startswith(b"\x89HDF\r\n\x1a\n", at) for at in (0, 512, 1024, 2048))


def _open_hdf5(path: Path) -> h5py.File:
    with needing("Reading MATLAB 7.3 files needs h5py", "hdf5"):
        import h5py
    return h5py.File(path, "r")


def _check_dataset(name: str, file: h5py.File, key: str | h5py.Reference) -> h5py.Dataset:
    """A data set that is in the file itself, and no larger than the file allows."""
    import h5py

    if isinstance(key, str) and not isinstance(file.get(key, getlink=True), h5py.HardLink):
        raise Refused(f"{name} is a link, which can lead to another file; expected the data themselves.")
    dataset = file[key]
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise Refused(f"{name} is no array; expected numbers or words.")
    if dataset.is_virtual or dataset.external:
        raise Refused(f"{name} is stored in another file, which is refused; expected the data themselves.")
    if dataset.dtype.kind not in "fiub" and h5py.check_ref_dtype(dataset.dtype) is not h5py.Reference:
        expected = "numbers, or words as MATLAB stores them; labels can also come from a .csv file"
        raise Refused(f"{name} has the type {dataset.dtype}; expected {expected}.")
    declared = max(prod(dataset.shape), prod(dataset.chunks or ())) * dataset.dtype.itemsize
    check_size(name, declared, Path(file.filename).stat().st_size)
    return dataset


def _hdf5_array(name: str, file: h5py.File, size: int) -> np.ndarray:
    """One variable, its axes in MATLAB's order."""
    dataset = _check_dataset(name, file, name)
    value = dataset[()].T
    if not dataset.dtype.hasobject:
        return np.array([_text(row) for row in value]) if _is_text(dataset) and value.ndim == 2 else value
    texts, taken = [], 0
    for k, reference in enumerate(np.ravel(value)):
        cell = _check_dataset(f"cell {k} of {name}", file, reference) if reference else None
        if cell is None or cell.dtype.hasobject:
            raise Refused(f"cell {k} of {name} is empty or a cell itself; expected a word or a number.")
        taken += Header(cell.shape, np.dtype("U1")).nbytes
        check_size(name, taken, size)
        texts.append(_text(cell[()].T))
    return np.array(texts, dtype=object)


def _is_text(dataset: h5py.Dataset) -> bool:
    return bytes(np.bytes_(dataset.attrs.get("MATLAB_class", b""))) == b"char"


def _text(codes: np.ndarray) -> str:
    """A MATLAB string, stored as the numbers of its characters; a number as it is."""
    if codes.dtype == np.uint16:
        return np.ravel(codes).astype("<u2").tobytes().decode("utf-16-le")
    return "".join(map(chr, np.ravel(codes))) if codes.dtype.kind == "u" else str(np.squeeze(codes))
