"""NumPy's formats, ``.npy`` and ``.npz``: headers are compared with the file before memory is asked for."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from spdmetric.io.files import Header, Refused

_PICKLE = b"\x80"  # what pickles begin with
_LONGEST_HEADER = 2**16  # of a .npy file
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def npy_header(path: Path) -> Header:
    """Shape and dtype of the array of a ``.npy`` file."""
    with path.open("rb") as file:
        return _header("the array", file, path.stat().st_size)


def npz_names(path: Path) -> list[str]:
    """Names of the arrays of a ``.npz`` file."""
    with open_archive(path) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def npz_header(path: Path, name: str) -> Header:
    """Shape and dtype of an array of a ``.npz`` file."""
    with open_archive(path) as archive:
        return member_header(archive, name if name in archive.namelist() else f"{name}.npy")


def read_npz(path: Path, name: str) -> np.ndarray:
    """Read an array of a ``.npz`` file."""
    with np.load(path, allow_pickle=False) as content:
        return content[name]


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose members have different names and zip's own compression, or none."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            _refuse_pickles(file.read(1) == _PICKLE)
        raise Refused("it is not a zip archive, but corrupt, truncated or of another format.")
    with zipfile.ZipFile(path) as archive:
        known = set[str]()
        for info in archive.infolist():
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                method = f"is compressed by method {info.compress_type}"
                raise Refused(f"{info.filename} {method}; expected zip's own.")
            archive.open(info).close()  # tells a name that was damaged in the table of contents
            if (name := info.filename.removesuffix(".npy")) in known:
                raise Refused(f"it has two arrays with the name {name}; expected one.")
            known.add(name)
        yield archive


def member_header(archive: zipfile.ZipFile, name: str) -> Header:
    """Shape and dtype of an array of an archive."""
    with archive.open(name) as file:
        return _header(name.removesuffix(".npy"), file, archive.getinfo(name).file_size)


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
