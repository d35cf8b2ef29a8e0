"""NumPy's formats, ``.npy`` and ``.npz``: the one place where their headers and members are checked.

What the header of an array declares is compared with the bytes that there are before memory is
asked for.  Pickled objects are refused.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Literal, NoReturn

import numpy as np
from numpy.lib import format as npy

from spdmetric.io.atomic import atomic_file
from spdmetric.io.files import Refused, check_size, reading

# All files of the same content are the same bytes: the date of each member is the first that zip knows.
_DATE = (1980, 1, 1, 0, 0, 0)


def read_npy(path: Path) -> np.ndarray:
    """Read the array of a ``.npy`` file."""
    size = path.stat().st_size
    with reading(path), path.open("rb") as file:
        _check_no_pickle(path)
        return _read_array("the array", file, size, size)


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of a ``.npz`` file."""
    with reading(path), _opened(path) as archive:
        return list(_members(archive))


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Read some arrays of a ``.npz`` file, by default all."""
    arrays = {}
    with reading(path), _opened(path) as archive:
        members = _members(archive)
        for name in members if names is None else names:
            with archive.open(info := members[name]) as file:
                stored = min(info.compress_size, path.stat().st_size)
                arrays[name] = _read_array(name, file, info.file_size, stored)
    return arrays


def write_npz(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays into an uncompressed ``.npz`` file, whole or not at all."""
    with atomic_file(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _DATE), npy_bytes(array))


def npy_bytes(array: np.ndarray) -> bytes:
    """An array as a ``.npy`` file holds it."""
    buffer = BytesIO()
    npy.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _read_array(name: str, file: IO[bytes], size: int, stored: int) -> np.ndarray:
    """Read an array that has ``size`` bytes, header included, and takes ``stored`` in the file."""
    version = npy.read_magic(file)
    read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read_header(file)
    if dtype.hasobject:
        _refuse_pickles()
    declared = file.tell() + prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or declared != size:
        raise Refused(
            f"{name} declares {declared} bytes, by shape {shape} and dtype {dtype}, but has {size}: it is "
            "damaged or truncated."
        )
    check_size(name, declared, stored)
    order: Literal["C", "F"] = "F" if fortran else "C"
    return np.ndarray(shape, dtype, bytearray(file.read()), order=order)


def _opened(path: Path) -> zipfile.ZipFile:
    if not zipfile.is_zipfile(path):
        _check_no_pickle(path)
        raise Refused("it is not an .npz archive, but corrupt, truncated or of another format.")
    return zipfile.ZipFile(path)


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """Members of an archive by the names of their arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        archive.open(info).close()  # tells a name that was damaged in the table of contents
        name = info.filename.removesuffix(".npy")
        if name in members:
            raise Refused(f"it has two arrays with the name {name}; expected one.")
        members[name] = info
    return members


def _check_no_pickle(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(1) == b"\x80":
            _refuse_pickles()


def _refuse_pickles() -> NoReturn:
    raise Refused(
        "it holds pickled Python objects, which are refused because reading them can run code; save numbers "
        "or strings instead, for instance y.astype(str)."
    )
