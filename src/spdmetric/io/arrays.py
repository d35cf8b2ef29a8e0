"""Arrays of a file by their names: NumPy's ``.npz`` and ``.npy``, MATLAB's ``.mat`` of any version.

What an array declares is compared with the size of the file before memory is asked for: the libraries do
not bound what a small file can make them allocate.  HDF5 can also name other files: that is refused.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike

from spdmetric.extras import require_extra
from spdmetric.io.files import FileError, Header, check_size, list_some, size_limit

if TYPE_CHECKING:
    import h5py

SIGNAL_SUFFIXES = (".edf", ".bdf", ".gdf", ".vhdr", ".set", ".fif")
_ARRAY_SUFFIXES = (".npz", ".mat", ".npy")
_PICKLE = b"\x80"  # what pickles begin with
_LONGEST_HEADER = 2**16  # of a .npy file
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_NUMBERS = {"double": "f8", "single": "f4", "logical": "u1"}
_NUMBERS |= {f"{sign}int{8 * n}": f"{sign or 'i'}{n}" for sign in ("", "u") for n in (1, 2, 4, 8)}
# Of MATLAB files: types of elements, classes of matrices, and a flag of these.
_UINT32, _MATRIX, _COMPRESSED, _NUMERIC = 6, 14, 15, (1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18)
_SPARSE, _FULL, _IMAGINARY = 5, (4, *range(6, 16)), 0x800
_PIECE = 2**20  # bytes that are inflated at a time

# Names of the arrays of a file, how to look at one, and how to read one.
Arrays = tuple[list[str], Callable[[str], Header], Callable[[str], np.ndarray]]


@contextmanager
def open_arrays(path: Path) -> Iterator[Arrays]:
    """Open a file with arrays, by its suffix; the only array of a ``.npy`` file is called X."""
    suffix = path.suffix.lower()
    if suffix in SIGNAL_SUFFIXES:
        raise FileError("it holds signals, not matrices: spdmetric.io.signals.read_signals reads them.")
    if suffix not in _ARRAY_SUFFIXES:
        what = "it is a model" if suffix == ".skops" else f"unknown suffix {path.suffix!r}"
        raise FileError(f"{what}; expected a file with the arrays X and y, {list_some(_ARRAY_SUFFIXES)}.")
    if suffix == ".npy":
        yield ["X"], lambda _: npy_header(path), lambda _: np.load(path)
    elif suffix == ".npz":
        with open_archive(path) as archive, np.load(path, allow_pickle=False) as content:
            yield content.files, partial(member_header, archive), content.__getitem__
    elif is_hdf5(path):
        with require_extra("Reading MATLAB 7.3 files needs h5py", "hdf5"):
            import h5py
        with h5py.File(path, "r") as file:
            names = [name for name in file if not name.startswith("#")]  # those are MATLAB's own
            yield names, partial(_hdf5_header, file), partial(_read_hdf5, file)
    else:
        variables = _variables(path)
        yield list(variables), variables.__getitem__, partial(_read_mat, path)


def npy_header(path: Path) -> Header:
    """Shape and dtype of the array of a ``.npy`` file."""
    with path.open("rb") as file:
        return _header("the array", file, path.stat().st_size)


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive whose members have different names and zip's own compression, or none."""
    with path.open("rb") as file:
        _refuse_pickles(file.read(1) == _PICKLE)
    with zipfile.ZipFile(path) as archive:
        known = set[str]()
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FileError(f"{name} is compressed by method {info.compress_type}; expected zip's own.")
            archive.open(info).close()  # tells a name that was damaged in the table of contents
            if name in known:
                raise FileError(f"it has two arrays with the name {name}; expected one.")
            known.add(name)
        yield archive


def member_header(archive: zipfile.ZipFile, name: str) -> Header:
    """Shape and dtype of an array of an archive, whose name may end in ``.npy`` there."""
    info = archive.getinfo(name if name in archive.NameToInfo else f"{name}.npy")
    with archive.open(info) as file:
        return _header(name.removesuffix(".npy"), file, info.file_size)


def _header(name: str, file: IO[bytes], size: int) -> Header:
    """Shape and dtype of an array that has ``size`` bytes, header included."""
    start = BytesIO(file.read(_LONGEST_HEADER))  # whatever length it declares
    _refuse_pickles(start.getvalue()[:1] == _PICKLE)
    version = npy.read_magic(start)
    if version not in _READERS:
        raise FileError(f"{name} is of version {version} of NumPy's format; save it again with numpy.save.")
    shape, _, dtype = _READERS[version](start)
    _refuse_pickles(dtype.hasobject)
    declared = start.tell() + prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or dtype.itemsize == 0 or declared != size:
        raise FileError(f"{name} declares {declared} bytes, but has {size}: it is damaged or truncated.")
    return Header(shape, dtype)


def _refuse_pickles(pickled: bool) -> None:
    if pickled:
        raise FileError("it holds pickled Python objects, which are refused: save numbers, or y.astype(str).")


# ---------------------------------------------------------------------------
# MATLAB, versions 4 to 7 by SciPy, version 7.3, which is HDF5, by h5py


def _variables(path: Path) -> dict[str, Header]:
    """Variables by name; rows of text are words, and what is neither number nor text has the dtype object."""
    from scipy.io import whosmat

    check_inflated(path)
    found: dict[str, Header] = {}
    for name, shape, kind in whosmat(path, chars_as_strings=False):
        if name in found or min(shape, default=0) < 0:
            raise FileError(f"{name} is there twice, or has a negative shape, {shape}.")
        shape, dtype = tuple(map(int, shape)), np.dtype(_NUMBERS.get(kind, "O"))
        if kind == "char":
            shape, dtype = shape[:-1], np.dtype(f"U{max(1, *shape[-1:])}")
        found[name] = Header(shape, dtype)
    return found


def _read_mat(path: Path, name: str) -> np.ndarray:
    from scipy.io import loadmat

    try:
        found = np.asarray(loadmat(path, variable_names=[name])[name])
    except MemoryError as error:  # what is inside cells declares any length
        raise FileError(f"{name} declares more memory than there is.") from error
    return _strip(found) if found.dtype.kind == "U" else found


def _strip(words: ArrayLike) -> np.ndarray:
    """Words without the blanks with which MATLAB pads them to one length."""
    return np.char.rstrip(np.asarray(words, dtype=np.str_))


def check_inflated(path: Path) -> None:
    """Refuse what inflates to far more than is stored, and arrays without all their parts."""
    inflated, at, size = 0, 128, path.stat().st_size
    with path.open("rb") as file:
        order = {b"IM": "<u4", b"MI": ">u4"}.get(file.read(128)[126:])
        while order is not None and at < size and inflated <= size_limit(size):
            file.seek(at)
            kind, length = np.frombuffer(file.read(8), order, 2).tolist()
            at += 8 + length
            if kind == _MATRIX:
                _check_elements(file, at, order)
            stream = zlib.decompressobj()
            while kind == _COMPRESSED and inflated <= size_limit(size) and not stream.eof:
                if not (packed := stream.unconsumed_tail or file.read(_PIECE)):
                    break
                inflated += len(stream.decompress(packed, _PIECE))
    check_size("it", inflated, size)


def _check_elements(file: IO[bytes], end: int, order: str) -> None:
    """Refuse a matrix without the elements that it announces: SciPy's reader would end the process."""
    found: list[int] = []  # types of the elements
    flags = 0
    while file.tell() < end:
        kind, length = np.frombuffer(file.read(8), order, 2).tolist()
        short = kind >> 16 > 0  # the data are in the same eight bytes
        found.append(kind & 0xFFFF if short else kind)
        if found == [_UINT32]:
            flags = np.frombuffer(file.read(4), order, 1).item()
            file.seek(-4, 1)
        if found[-1] == _MATRIX:
            _check_elements(file, min(file.tell() + length, end), order)
        elif not short:
            file.seek(length + -length % 8, 1)
    # Flags, size and name, then numbers; of sparse matrices rows and columns before them, and of some Im.
    needed = {_SPARSE: 6, **dict.fromkeys(_FULL, 4)}.get(flags & 0xFF, 0)
    needed += bool(needed and flags & _IMAGINARY)
    if not {_MATRIX, *_NUMERIC}.issuperset(found) or len(found) < needed or (needed and _MATRIX in found):
        raise FileError("an array in it has not the parts that it should have: it is damaged.")


def is_hdf5(path: Path) -> bool:
    """Whether the signature is there: MATLAB puts 512 bytes of its own before it."""
    with path.open("rb") as file:
        start = file.read(2056)
    return any(start.startswith(b"\x89HDF\r\n\x1a\n", at) for at in (0, 512, 1024, 2048))


def _hdf5_header(file: h5py.File, name: str) -> Header:
    """Shape and dtype of a variable, in MATLAB's order of axes: HDF5 lists the slowest first."""
    dataset = _check_dataset(name, file, name)
    shape = tuple(map(int, dataset.shape[::-1]))
    if _is_text(dataset) and len(shape) == 2:
        return Header(shape[:1], np.dtype(f"U{max(1, shape[1])}"))
    return Header(shape, np.dtype("O") if dataset.dtype.hasobject else dataset.dtype)


def _check_dataset(name: str, file: h5py.File, key: str | h5py.Reference) -> h5py.Dataset:
    """A data set that is in the file itself, and no larger than the file allows."""
    import h5py

    if isinstance(key, str) and not isinstance(file.get(key, getlink=True), h5py.HardLink):
        raise FileError(f"{name} is a link, which can lead to another file; expected the data themselves.")
    dataset = file[key]
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise FileError(f"{name} is no array; expected numbers or words.")
    if dataset.is_virtual or dataset.external:
        raise FileError(f"{name} is stored in another file, which is refused; expected the data themselves.")
    if dataset.dtype.kind not in "fiub" and h5py.check_ref_dtype(dataset.dtype) is not h5py.Reference:
        expected = "numbers, or words as MATLAB stores them; labels can also come from a .csv file"
        raise FileError(f"{name} has the type {dataset.dtype}; expected {expected}.")
    declared = max(prod(dataset.shape), prod(dataset.chunks or ())) * dataset.dtype.itemsize
    check_size(name, declared, Path(file.filename).stat().st_size)
    return dataset


def _read_hdf5(file: h5py.File, name: str) -> np.ndarray:
    """One variable, after its header, its axes in MATLAB's order."""
    dataset = file[name]
    value = dataset[()].T
    if not dataset.dtype.hasobject:
        return _strip([_text(row) for row in value]) if _is_text(dataset) and value.ndim == 2 else value
    texts, taken = np.empty(value.size, dtype=object), 0
    for k, reference in enumerate(np.ravel(value)):
        cell = _check_dataset(f"cell {k} of {name}", file, reference) if reference else None
        # Of one that is empty the shape is stored.
        if cell is None or cell.dtype.hasobject or cell.attrs.get("MATLAB_empty"):
            raise FileError(f"cell {k} of {name} is empty or a cell itself; expected a word or a number.")
        taken += Header(cell.shape, np.dtype("U1")).nbytes
        check_size(name, taken, Path(file.filename).stat().st_size)
        content = cell[()].T
        bare = "MATLAB_class" not in cell.attrs and cell.dtype == np.uint16
        texts[k] = _text(content) if bare or _is_text(cell) else content
    return texts.reshape(value.shape)


def _is_text(dataset: h5py.Dataset) -> bool:
    return bytes(np.bytes_(dataset.attrs.get("MATLAB_class", b""))) == b"char"


def _text(codes: np.ndarray) -> str:
    """A MATLAB string."""
    return np.ravel(codes).astype("<u2").tobytes().decode("utf-16-le")
