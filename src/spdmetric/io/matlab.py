"""MATLAB's files: version 4 to 7 by SciPy, version 7.3, which is HDF5, by h5py.

Neither library bounds what a small file can make it allocate, so what a variable declares, and what cells and
structures inflate to, is compared with the size of the file first.  HDF5 can also name other files: that is
refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import lru_cache
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from spdmetric.extras import needing
from spdmetric.io.files import LARGEST_RATIO, SMALL, Header, Refused, check_size, reading

if TYPE_CHECKING:
    import h5py

_NUMBERS = {"double": "f8", "single": "f4", "logical": "u1"}
_NUMBERS |= {f"{sign}int{8 * n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (1, 2, 4, 8)}
_CELL = 250  # bytes that an object of Python takes, however little is in it
_COMPRESSED = 15  # type of an element
_PIECE = 2**20  # bytes that are inflated at a time


def mat_names(path: Path) -> list[str]:
    """Names of the variables of a ``.mat`` file of any version."""
    with reading(path):
        if not _is_hdf5(path):
            return list(_variables(path))
        with _hdf5_file(path) as file:
            return [name for name in file if _is_variable(name, file)]


def mat_headers(path: Path, names: Iterable[str]) -> dict[str, Header]:
    """Shape and dtype of some variables, those of cell arrays and structures object."""
    with reading(path):
        if not _is_hdf5(path):
            variables = _variables(path)
            return {name: variables[name] for name in names}
        with _hdf5_file(path) as file:
            return {name: _hdf5_header(name, file, path.stat().st_size) for name in names}


def read_mat(path: Path, name: str) -> np.ndarray:
    """Read a variable of a ``.mat`` file of any version; for structures see `structures`."""
    from scipy.io import loadmat

    size = path.stat().st_size
    with reading(path):
        if _is_hdf5(path):
            with _hdf5_file(path) as file:
                return _hdf5_array(name, file, size)
        header = _variables(path)[name]
        check_size(name, header.size * max(header.dtype.itemsize, _CELL * header.dtype.hasobject), size)
        try:
            return np.asarray(loadmat(path, struct_as_record=False, variable_names=[name])[name])
        except MemoryError as error:  # what is inside cells and structures declares any length
            raise Refused(f"{name} declares more memory than there is.") from error


def structures(value: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Fields of the structures of a MATLAB structure array, or of a cell array of structures."""
    from scipy.io.matlab import mat_struct

    found: list[dict[str, np.ndarray]] = []
    for item in value.ravel() if value.dtype == object else ():
        if isinstance(item, mat_struct):
            # MATLAB's names begin with a letter, SciPy's own attribute with an underscore.
            found.append({k: np.asarray(field) for k, field in vars(item).items() if not k.startswith("_")})
        elif isinstance(item, np.ndarray):
            found += structures(item)
    return found


# ---------------------------------------------------------------------------
# Versions 4 to 7


def _variables(path: Path) -> dict[str, Header]:
    """Variables by name; of what is neither number nor text the dtype is object."""
    stat = path.stat()
    return _variables_at(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)  # SciPy inflates a whole file to list what is in it
def _variables_at(path: Path, size: int, time: int) -> dict[str, Header]:
    from scipy.io import whosmat

    check_size("it", _inflated_size(path), size)
    try:
        listed_by_scipy = whosmat(path, chars_as_strings=False)
    except NotImplementedError as error:
        said = "it has no HDF5 in it, but says that it is a MATLAB 7.3 (HDF5) file"
        raise Refused(f"{said}; save it again with save(..., '-v7').") from error
    found: dict[str, Header] = {}
    for name, shape, kind in listed_by_scipy:
        if name in found:
            raise Refused(f"it has two variables with the name {name}; expected one.")
        if min(shape, default=0) < 0:
            raise Refused(f"{name} has the shape {shape}.")
        shape, dtype = tuple(map(int, shape)), np.dtype(_NUMBERS.get(kind, "O"))
        if kind == "char":  # the rows are words
            check_size(name, 4 * prod(shape), size)
            shape, dtype = shape[:-1], np.dtype(f"U{max(1, *shape[-1:])}")
        found[name] = Header(shape, dtype)
    return found


def _inflated_size(path: Path) -> int:
    """Bytes that the compressed variables of a file inflate to, counted up to what is too much."""
    size, inflated, at = path.stat().st_size, 0, 128
    with path.open("rb") as file:
        order = {b"IM": "<u4", b"MI": ">u4"}.get(file.read(128)[126:])
        while order is not None and at < size and inflated <= max(SMALL, LARGEST_RATIO * size):
            file.seek(at)
            kind, length = np.frombuffer(file.read(8), order, 2).tolist()
            at += 8 + length
            if kind == _COMPRESSED:
                inflated += _inflated(file, max(SMALL, LARGEST_RATIO * size))
    return inflated


def _inflated(file: IO[bytes], most: int) -> int:
    """Bytes that what comes next in a file inflates to; no more than a piece is held at a time."""
    stream, inflated = zlib.decompressobj(), 0
    while inflated <= most and not stream.eof and (packed := stream.unconsumed_tail or file.read(_PIECE)):
        inflated += len(stream.decompress(packed, _PIECE))
    return inflated


# ---------------------------------------------------------------------------
# Version 7.3


def _is_hdf5(path: Path) -> bool:
    """Whether the signature is there: MATLAB puts 512 bytes of its own before it."""
    with path.open("rb") as file:
        start = file.read(2056)
    return any(start.startswith(b"\x89HDF\r\n\x1a\n", at) for at in (0, 512, 1024, 2048))


def _hdf5_file(path: Path) -> h5py.File:
    with needing("Reading MATLAB 7.3 files needs h5py", "hdf5"):
        import h5py
    return h5py.File(path, "r")


def _is_variable(name: str, file: h5py.File) -> bool:
    """Whether a name is that of a variable, as far as can be told without following links."""
    import h5py

    is_link = not isinstance(file.get(name, getlink=True), h5py.HardLink)
    return is_link or file.get(name, getclass=True) is h5py.Dataset


def _hdf5_dataset(name: str, file: h5py.File, key: str | h5py.Reference, size: int) -> h5py.Dataset:
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
        text = h5py.check_string_dtype(dataset.dtype) and "is text as HDF5 has it, not MATLAB"
        todo = "expected numbers or words; labels can also come from a .csv file"
        raise Refused(f"{name} {text or f'has the type {dataset.dtype}'}; {todo}.")
    declared = max(prod(dataset.shape), prod(dataset.chunks or ())) * dataset.dtype.itemsize
    check_size(name, declared, size)
    return dataset


def _hdf5_header(name: str, file: h5py.File, size: int) -> Header:
    """Header of a variable, its axes in MATLAB's order: HDF5 lists them from the slowest to the fastest."""
    dataset = _hdf5_dataset(name, file, name, size)
    shape = tuple(map(int, dataset.shape[::-1]))
    if _is_text(dataset) and len(shape) == 2:
        return Header(shape[:1], np.dtype(f"U{max(1, shape[1])}"))
    return Header(shape, np.dtype("O") if dataset.dtype.hasobject else dataset.dtype)


def _hdf5_array(name: str, file: h5py.File, size: int) -> np.ndarray:
    """One variable, its axes in MATLAB's order."""
    dataset = _hdf5_dataset(name, file, name, size)
    value = dataset[()].T
    if not dataset.dtype.hasobject:
        return np.array([_text(row) for row in value]) if _is_text(dataset) and value.ndim == 2 else value
    texts, taken = [], 0
    for k, reference in enumerate(np.ravel(value)):
        cell = _hdf5_dataset(f"cell {k} of {name}", file, reference, size) if reference else None
        if cell is None or cell.dtype.hasobject:
            raise Refused(f"cell {k} of {name} is empty or a cell itself; expected a word or a number.")
        taken += _CELL + 4 * cell.size
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
