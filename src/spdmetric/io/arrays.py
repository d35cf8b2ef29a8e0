"""Arrays of a file by their names: NumPy's ``.npz`` and ``.npy``, MATLAB's ``.mat`` of any version.

What an array declares is compared with the size of the file before memory is asked for: the libraries do
not bound what a small file can make them allocate.  HDF5 can also name other files: that is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from spdmetric.extras import require_extra
from spdmetric.io.files import Header, Refused, check_size, list_some, size_limit

if TYPE_CHECKING:
    import h5py

SIGNAL_SUFFIXES = (".edf", ".bdf", ".gdf", ".vhdr", ".set", ".fif")
_PICKLE = b"\x80"  # what pickles begin with
_LONGEST_HEADER = 2**16  # of a .npy file
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_NUMBERS = {"double": "f8", "single": "f4", "logical": "u1"}
_NUMBERS |= {f"{sign}int{8 * n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (1, 2, 4, 8)}
_COMPRESSED = 15  # type of an element
_PIECE = 2**20  # bytes that are inflated at a time


# ---------------------------------------------------------------------------
# NumPy


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


# ---------------------------------------------------------------------------
# MATLAB, versions 4 to 7 by SciPy, version 7.3, which is HDF5, by h5py


def mat_names(path: Path) -> list[str]:
    """Names of the variables of a ``.mat`` file of any version."""
    if not is_hdf5(path):
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
    if not is_hdf5(path):
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

    if is_hdf5(path):
        with _open_hdf5(path) as file:
            found = _hdf5_array(name, file, path.stat().st_size)
    else:
        try:
            found = np.asarray(loadmat(path, variable_names=[name])[name])
        except MemoryError as error:  # what is inside cells declares any length
            raise Refused(f"{name} declares more memory than there is.") from error
    return np.char.rstrip(found) if found.dtype.kind == "U" else found  # MATLAB pads rows to one length


def _variables(path: Path) -> dict[str, Header]:
    """Variables by name; of what is neither number nor text the dtype is object."""
    stat = path.stat()
    return _variables_at(path, stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=4)  # SciPy inflates a whole file to list what is in it
def _variables_at(path: Path, size: int, time: int) -> dict[str, Header]:
    from scipy.io import whosmat

    check_inflated(path)
    found: dict[str, Header] = {}
    for name, shape, kind in whosmat(path, chars_as_strings=False):
        if name in found or min(shape, default=0) < 0:
            raise Refused(f"{name} is there twice, or has a negative shape, {shape}.")
        shape, dtype = tuple(map(int, shape)), np.dtype(_NUMBERS.get(kind, "O"))
        if kind == "char":  # the rows are words
            shape, dtype = shape[:-1], np.dtype(f"U{max(1, *shape[-1:])}")
        found[name] = Header(shape, dtype)
    return found


def check_inflated(path: Path) -> None:
    """Refuse a file whose compressed variables inflate to far more than is stored."""
    inflated, at, size = 0, 128, path.stat().st_size
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
    check_size("it", inflated, size)


def is_hdf5(path: Path) -> bool:
    """Whether the signature is there: MATLAB puts 512 bytes of its own before it."""
    with path.open("rb") as file:
        start = file.read(2056)
    return any(start.startswith(b"\x89HDF\r\n\x1a\n", at) for at in (0, 512, 1024, 2048))


def _open_hdf5(path: Path) -> h5py.File:
    with require_extra("Reading MATLAB 7.3 files needs h5py", "hdf5"):
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
    texts, taken = np.empty(value.size, dtype=object), 0
    for k, reference in enumerate(np.ravel(value)):
        cell = _check_dataset(f"cell {k} of {name}", file, reference) if reference else None
        if (
            cell is None or cell.dtype.hasobject or cell.attrs.get("MATLAB_empty")
        ):  # of which the shape is stored
            raise Refused(f"cell {k} of {name} is empty or a cell itself; expected a word or a number.")
        taken += Header(cell.shape, np.dtype("U1")).nbytes
        check_size(name, taken, size)
        content = cell[()].T
        bare = "MATLAB_class" not in cell.attrs and cell.dtype == np.uint16
        texts[k] = _text(content) if bare or _is_text(cell) else content
    return texts


def _is_text(dataset: h5py.Dataset) -> bool:
    return bytes(np.bytes_(dataset.attrs.get("MATLAB_class", b""))) == b"char"


def _text(codes: np.ndarray) -> str:
    """A MATLAB string."""
    return np.ravel(codes).astype("<u2").tobytes().decode("utf-16-le")


# ---------------------------------------------------------------------------
# By suffix


# How to list the names of the arrays of a file, to look at one, and to read one.
Format = tuple[Callable[[Path], list[str]], Callable[[Path, str], Header], Callable[[Path, str], np.ndarray]]
_FORMATS: dict[str, Format] = {
    ".npz": (npz_names, npz_header, read_npz),
    ".mat": (mat_names, mat_header, read_mat),
    # Its only array is called X.
    ".npy": (lambda _: ["X"], lambda path, _: npy_header(path), lambda path, _: np.load(path)),
}


def is_mat(path: Path) -> bool:
    """Whether a file is MATLAB's, by its name."""
    return path.suffix.lower() == ".mat"


def find_format(path: Path) -> Format:
    """How a file is read, by its suffix."""
    suffix = path.suffix.lower()
    if suffix in SIGNAL_SUFFIXES:
        raise Refused("it holds signals, not matrices: spdmetric.io.signals.read_signals reads them.")
    if suffix not in _FORMATS:
        what = "it is a model" if suffix == ".skops" else f"unknown suffix {path.suffix!r}"
        raise Refused(f"{what}; expected a file with the arrays X and y, one of {list_some(_FORMATS)}.")
    return _FORMATS[suffix]
