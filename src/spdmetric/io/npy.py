"""NumPy's formats, ``.npy`` and ``.npz``: headers are compared with the file before memory is asked for."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from spdmetric.io.files import Header, Refused, check_size, listed, reading

_PICKLE = b"\x80"  # what pickles begin with
_LONGEST_HEADER = 2**16  # of a .npy file
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def npy_header(path: Path) -> Header:
    """Shape and dtype of the array of a ``.npy`` file."""
    with reading(path), path.open("rb") as file:
        return _header("the array", file, path.stat().st_size)


def read_npy(path: Path) -> np.ndarray:
    """Read the array of a ``.npy`` file."""
    npy_header(path)
    with reading(path), path.open("rb") as file:
        return npy.read_array(file, allow_pickle=False)


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of a ``.npz`` file."""
    with opened_archive(path) as archive:
        return [info.filename.removesuffix(".npy") for info in archive.infolist()]


def npz_headers(path: Path, names: Iterable[str] | None = None) -> dict[str, Header]:
    """Shape and dtype of some arrays of a ``.npz`` file, by default of all."""
    with opened_archive(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        return {name: member_header(archive, members[name]) for name in names or members}


def read_npz(path: Path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Read some arrays of a ``.npz`` file, by default all; nothing is read before all sizes are compared."""
    headers = npz_headers(path, names)
    with reading(path), np.load(path, allow_pickle=False) as content:
        check_size(listed(headers), sum(header.nbytes for header in headers.values()), path.stat().st_size)
        return {name: content[name] for name in headers}


@contextmanager
def opened_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose members have different names and zip's own compression, or none."""
    with reading(path):
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                _refuse_pickles(file.read(1) == _PICKLE)
            raise Refused("it is not a zip archive, but corrupt, truncated or of another format.")
        with zipfile.ZipFile(path) as archive:
            seen = set[str]()
            for info in archive.infolist():
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    method = f"is compressed by method {info.compress_type}"
                    raise Refused(f"{info.filename} {method}; expected zip's own.")
                archive.open(info).close()  # tells a name that was damaged in the table of contents
                if (name := info.filename.removesuffix(".npy")) in seen:
                    raise Refused(f"it has two arrays with the name {name}; expected one.")
                seen.add(name)
            yield archive


def member_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    """Shape and dtype of an array of an archive."""
    with archive.open(info) as file:
        return _header(info.filename.removesuffix(".npy"), file, info.file_size)


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


def _refuse_pickles(pickled: bool) -> None:
    if pickled:
        why = "it holds pickled Python objects, which are refused because reading them can run code"
        raise Refused(f"{why}; save numbers or strings instead, for instance y.astype(str).")
