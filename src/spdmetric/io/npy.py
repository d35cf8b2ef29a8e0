"""NumPy's formats, ``.npy`` and ``.npz``: the one place where their headers and members are checked.

All headers are read and all sizes compared before memory is asked for; pickled objects are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader, BytesIO, FileIO
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from spdmetric.io.atomic import atomic_file
from spdmetric.io.files import Header, Refused, check_size, listed, reading

_PICKLE = b"\x80"  # what pickles begin with
_PIECE = 2**20  # bytes that are read at a time
_LONGEST_HEADER = 2**16  # of a .npy file
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def npy_header(path: Path) -> Header:
    """Shape and dtype of the array of a ``.npy`` file."""
    with reading(path), path.open("rb") as file:
        return _header("the array", file, path.stat().st_size)


def read_npy(path: Path) -> np.ndarray:
    """Read the array of a ``.npy`` file."""
    with reading(path), path.open("rb") as file:
        return _content("the array", file, path.stat().st_size)


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of a ``.npz`` file."""
    with _opened(path) as (_, members):
        return list(members)


def npz_headers(path: Path, names: Iterable[str] | None = None) -> dict[str, Header]:
    """Shape and dtype of some arrays of a ``.npz`` file, by default of all."""
    with _opened(path) as (archive, members):
        return {name: _header_of(name, archive, members[name]) for name in names or members}


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Read some arrays of a ``.npz`` file, by default all; nothing is read before all sizes are compared."""
    with _opened(path) as (archive, members):
        wanted = list(members if names is None else names)
        declared = sum(_header_of(name, archive, members[name]).nbytes for name in wanted)
        check_size(listed(wanted), declared, path.stat().st_size)
        arrays = {}
        for name in wanted:
            with archive.open(info := members[name]) as file:
                arrays[name] = _content(name, file, info.file_size)
    return arrays


def write_npz(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays into an uncompressed ``.npz`` file, whole or not at all."""
    with atomic_file(path) as file:
        np.savez(file, **arrays)  # without dates: files of the same content are the same bytes


def npy_parts(array: np.ndarray) -> tuple[bytes, memoryview]:
    """An array as a ``.npy`` file holds it: the header, and the content, of which no copy is made."""
    buffer, header = BytesIO(), npy.header_data_from_array_1_0(array)
    npy.write_array_header_1_0(buffer, header)
    ordered = np.ascontiguousarray(array.T if header["fortran_order"] else array)
    return buffer.getvalue(), ordered.reshape(-1).view(np.uint8).data


def _header(name: str, file: IO[bytes], size: int) -> Header:
    """Shape and dtype of an array that has ``size`` bytes, header included."""
    start = BytesIO(file.read(_LONGEST_HEADER))  # whatever length it declares
    _refuse_pickles(start.getvalue()[:1] == _PICKLE)
    version = npy.read_magic(start)
    if version not in _READERS:
        raise Refused(f"{name} is of version {version} of NumPy's format; save it again with numpy.save.")
    shape, _, dtype = _READERS[version](start)
    _refuse_pickles(dtype.hasobject)
    declared = start.tell() + prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or dtype.itemsize == 0 or declared != size:
        what = f"{name} declares {declared} bytes, by shape {shape} and dtype {dtype}"
        raise Refused(f"{what}, but has {size}: it is damaged or truncated.")
    return Header(shape, dtype)


def _header_of(name: str, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    with archive.open(info) as file:
        return _header(name, file, info.file_size)


def _content(name: str, file: IO[bytes], size: int) -> np.ndarray:
    """Read an array after its header was checked."""
    _header(name, file, size)
    file.seek(0)
    array = npy.read_array(file, allow_pickle=False)
    file.read(1)  # at its end an archive compares the checksum
    return array


class _Pieces(BufferedReader):
    """A file of which no more than a piece is read at once: so long may a table of contents be."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > _PIECE:
            raise Refused(f"its table of contents declares {size} bytes; expected at most {_PIECE}.")
        return super().read(size)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive; its members by the names of their arrays."""
    with reading(path), _Pieces(FileIO(path)) as file:
        if not zipfile.is_zipfile(path):
            _refuse_pickles(file.read(1) == _PICKLE)
            raise Refused("it is not an .npz archive, but corrupt, truncated or of another format.")
        archive, members = zipfile.ZipFile(file), {}
        for info in archive.infolist():
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Refused(
                    f"{info.filename} is compressed by method {info.compress_type}; expected zip's own."
                )
            archive.open(info).close()  # tells a name that was damaged in the table of contents
            name = info.filename.removesuffix(".npy")
            if name in members:
                raise Refused(f"it has two arrays with the name {name}; expected one.")
            members[name] = info
        yield archive, members


def _refuse_pickles(pickled: bool) -> None:
    if pickled:
        why = "it holds pickled Python objects, which are refused because reading them can run code"
        raise Refused(f"{why}; save numbers or strings instead, for instance y.astype(str).")
