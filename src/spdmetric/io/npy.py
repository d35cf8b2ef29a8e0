"""NumPy's formats, ``.npy`` and ``.npz``: the one place where their headers and members are checked.

Sizes are compared before memory is asked for; pickled objects are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from spdmetric.io.atomic import atomic_file
from spdmetric.io.files import Refused, check_size, reading

_PICKLE = b"\x80"  # what pickles begin with


def read_npy(path: Path) -> np.ndarray:
    """Read the array of a ``.npy`` file."""
    size = path.stat().st_size
    with reading(path), path.open("rb") as file:
        _refuse_pickles(file.peek(1)[:1] == _PICKLE)
        return _read_array("the array", file, size, size)


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of a ``.npz`` file."""
    with _opened(path) as (_, members):
        return list(members)


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Read some arrays of a ``.npz`` file, by default all."""
    arrays = {}
    with _opened(path) as (archive, members):
        for name in members if names is None else names:
            with archive.open(info := members[name]) as file:
                stored = min(info.compress_size, path.stat().st_size)
                arrays[name] = _read_array(name, file, info.file_size, stored)
    return arrays


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays into an uncompressed ``.npz`` file, whole or not at all."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # Without a date: files of the same content are the same bytes.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), npy_bytes(array))


def npy_bytes(array: np.ndarray) -> bytes:
    """An array as a ``.npy`` file holds it."""
    buffer = BytesIO()
    npy.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _read_array(name: str, file: IO[bytes], size: int, stored: int) -> np.ndarray:
    """Read an array that has ``size`` bytes, header included, and takes ``stored`` in the file."""
    old = npy.read_magic(file) == (1, 0)
    shape, fortran, dtype = (npy.read_array_header_1_0 if old else npy.read_array_header_2_0)(file)
    _refuse_pickles(dtype.hasobject)
    declared = file.tell() + prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or declared != size:
        what = f"{name} declares {declared} bytes, by shape {shape} and dtype {dtype}"
        raise Refused(f"{what}, but has {size}: it is damaged or truncated.")
    check_size(name, declared, stored)
    return np.ndarray(shape, dtype, bytearray(file.read()), order="F" if fortran else "C")


@contextmanager
def _opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive; its members by the names of their arrays."""
    with reading(path), path.open("rb") as file:
        if not zipfile.is_zipfile(path):
            _refuse_pickles(file.read(1) == _PICKLE)
            raise Refused("it is not an .npz archive, but corrupt, truncated or of another format.")
        archive, members = zipfile.ZipFile(file), {}
        for info in archive.infolist():
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
