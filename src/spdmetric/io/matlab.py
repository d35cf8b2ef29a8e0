"""MATLAB's files: version 5 to 7 by SciPy, version 7.3, which is HDF5, by h5py.

Neither library bounds what a small file can make it allocate, so the sizes that a file declares are added
up here before it is given to them.  HDF5 can also name other files: that is refused.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from spdmetric.extras import needing
from spdmetric.io.files import LARGEST_RATIO, SMALL, Header, Refused, check_size, reading

if TYPE_CHECKING:
    import h5py


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
            return {name: variables[name].header for name in names}
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
        variable, budget = _variables(path)[name], _Budget(name, size)
        budget.add(variable.header.nbytes)
        if variable.at:
            _measure_variable(path, variable, budget)
        return np.asarray(loadmat(path, struct_as_record=False, variable_names=[name])[name])


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

# Bytes that follow after "MATLAB 5.0 MAT-file ...": they tell the order of bytes.
_ORDERS: dict[bytes, Literal["<", ">"]] = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}
_MATRIX, _COMPRESSED = 14, 15  # types of elements
_CELL, _STRUCT, _CHAR = 1, 2, 4  # classes of matrices; those from double to uint64 are numbers
_NUMBERS = dict(enumerate(("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"), start=6))
_ENDS = "the file ends within a variable, or inflates to far more than is stored"
_HEAD = 2**14  # bytes that hold class, shape and name of a variable
_DEEPEST = 16  # cells in cells: SciPy's reader calls itself for each, without a bound
_MOST_CELLS = 200_000  # each is an object of Python, and takes its time
# Bytes that an object of Python takes, however little is in it: a cell, and a structure or field.
_CELL_COST, _STRUCT_COST = 250, 600


class _Variable(NamedTuple):
    """A variable of a file of version 4 (at 0), or of one of version 5 and where its element begins."""

    header: Header
    at: int
    order: Literal["<", ">"] = "<"


class _Budget:
    """Bytes that variables may take, given the size of the file."""

    def __init__(self, name: str, stored: int):
        self.name, self.stored, self.taken, self.cells = name, stored, 0, 0

    def add(self, n: int) -> None:
        self.taken += n
        check_size(self.name, self.taken, self.stored)

    def add_cells(self, n: int) -> None:
        self.cells += n
        if self.cells > _MOST_CELLS:
            todo = "save labels as numbers or as a character matrix"
            raise Refused(f"{self.name} holds more than {_MOST_CELLS} cells or fields: {todo}.")


class _Elements:
    """A row of elements, each a type, a length and so many bytes."""

    def __init__(self, data: memoryview, order: Literal["<", ">"]):
        self.data, self.order, self.at = data, order, 0

    def tag(self) -> tuple[int, int, int]:
        """Type and length of the next element, and where its content begins: short ones in the tag itself."""
        start = self.data[self.at : self.at + 8]
        if len(start) < 8:
            raise EOFError(_ENDS)
        kind, length = np.frombuffer(start, f"{self.order}u4").tolist()
        if kind >> 16 > 4:
            raise Refused("an element of more than four bytes is said to be a small one.")
        return (kind & 0xFFFF, kind >> 16, self.at + 4) if kind >> 16 else (kind, length, self.at + 8)

    def next(self) -> tuple[int, memoryview]:
        """Type and content of the next element."""
        kind, length, start = self.tag()
        content = self.data[start : start + length]
        if len(content) < length:
            raise EOFError(_ENDS)
        self.at = start + length + -(start + length) % 8
        return kind, content

    def integers(self) -> list[int]:
        """The next element as numbers of 32 bits."""
        return np.frombuffer(self.next()[1], f"{self.order}i4").tolist()

    def begin(self) -> tuple[int, bool, tuple[int, ...], str]:
        """Class, whether it is complex, shape and name of a matrix."""
        flags = self.integers()[0]
        kind = flags & 0xFF
        known = kind in (_CELL, _STRUCT, _CHAR) or kind in _NUMBERS
        shape = tuple(self.integers()) if kind != 17 else ()
        if min(shape, default=0) < 0:
            raise Refused(f"a variable has the shape {shape}.")
        name = bytes(self.next()[1]).decode("latin1")
        return kind if known else 0, bool(flags >> 11 & 1), shape, name


def _matrix(path: Path, variable: _Variable, most: int = _HEAD) -> _Elements:
    """What a variable begins with, after its tag, inflated where it is compressed."""
    with path.open("rb") as file:
        file.seek(variable.at)
        kind, length, _ = _Elements(memoryview(file.read(8)), variable.order).tag()
        data = file.read(min(length, most + _HEAD))
    if kind == _COMPRESSED:
        data = zlib.decompressobj().decompress(data, most)
        kind, data = _Elements(memoryview(data), variable.order).tag()[0], data[8:]
    if kind != _MATRIX:
        raise Refused(f"it has an element of type {kind} where a variable should be.")
    return _Elements(memoryview(data), variable.order)


def _variables(path: Path) -> dict[str, _Variable]:
    """Variables by name; a truncated file is refused, of which SciPy would list those up to the cut."""
    size, found = path.stat().st_size, {}
    with path.open("rb") as file:
        order = _ORDERS.get(file.read(128)[124:])
        if order is None:
            return _variables_of_version_4(path)
        at = 128
        while at < size:
            file.seek(at)
            _, length, _ = _Elements(memoryview(file.read(8)), order).tag()
            if at + 8 + length > size:
                raise EOFError(_ENDS)
            variable = _Variable(Header((), np.dtype("O")), at, order)
            kind, is_complex, shape, name = _matrix(path, variable).begin()
            if name in found:
                raise Refused(f"it has two variables with the name {name}; expected one.")
            found[name] = variable._replace(header=_header(kind, is_complex, shape))
            at += 8 + length
    return found


def _header(kind: int, is_complex: bool, shape: tuple[int, ...]) -> Header:
    """Header of a matrix; of classes that are not read it has no shape."""
    if kind == _CHAR:  # the rows are words
        rows, letters = shape[:-1], max(1, shape[-1] if shape else 0)
        return Header(rows, np.dtype(f"U{letters}" if letters < 2**28 else "O"))
    if kind in _NUMBERS:
        return Header(shape, np.dtype("c16" if is_complex else _NUMBERS[kind]))
    return Header(shape if kind else (), np.dtype("O"))


def _measure_variable(path: Path, variable: _Variable, budget: _Budget) -> None:
    """Put down what SciPy will allocate for a variable."""
    head = _matrix(path, variable)
    kind, is_complex, _, _ = head.begin()
    if kind in _NUMBERS and not is_complex:  # nothing follows but the numbers
        return budget.add(head.tag()[1])
    most = max(SMALL // 2, LARGEST_RATIO * budget.stored)  # what it inflates to beyond is not looked at
    _measure(_matrix(path, variable, most), budget, depth=0)


def _measure(elements: _Elements, budget: _Budget, depth: int) -> None:
    """Put down what SciPy will allocate for a matrix."""
    kind, is_complex, shape, _ = elements.begin()
    count = prod(shape)
    if depth > _DEEPEST:
        raise Refused(f"{budget.name} has cells within cells, more than {_DEEPEST} deep.")
    if kind == 0:
        raise Refused(f"{budget.name} holds an object of MATLAB; expected numbers, words, cells, structures.")
    if kind == _CHAR:
        budget.add(4 * count + 4 * len(elements.next()[1]))
    elif kind in _NUMBERS:
        for _ in range(1 + is_complex):
            budget.add((8 if is_complex else 1) * len(elements.next()[1]))
    else:
        fields = 1
        if kind == _STRUCT:
            (length,) = elements.integers()
            fields = len(elements.next()[1]) // max(1, length)
        budget.add((_CELL_COST if kind == _CELL else _STRUCT_COST * (1 + fields)) * max(1, count))
        budget.add_cells(count * fields)
        for _ in range(count * fields):
            inner, content = elements.next()
            if inner != _MATRIX:
                raise Refused(f"{budget.name} has an element of type {inner} where a matrix should be.")
            if len(content):
                _measure(_Elements(content, elements.order), budget, depth + 1)


def _variables_of_version_4(path: Path) -> dict[str, _Variable]:
    """Those of SciPy's list; their sizes are not compressed, nor is anything inside another."""
    from scipy.io import whosmat

    kinds = {"double": "f8", "single": "f4", "char": "U1", "int32": "i4", "int16": "i2", "uint16": "u2"}
    kinds["uint8"] = "u1"
    try:
        listed_by_scipy = whosmat(path)
    except NotImplementedError as error:
        said = "it has no HDF5 in it, but says that it is a MATLAB 7.3 (HDF5) file"
        raise Refused(f"{said}; save it again with save(..., '-v7').") from error
    found = {}
    for name, shape, kind in listed_by_scipy:
        if min(shape, default=0) < 0:
            raise Refused(f"{name} has the shape {shape}.")
        if kind == "char":
            shape = shape[:1]
        found[name] = _Variable(Header(tuple(map(int, shape)), np.dtype(kinds.get(kind, "O"))), 0)
        if found[name].header.nbytes > path.stat().st_size * 8:
            raise Refused(f"{name} declares {found[name].header.nbytes} bytes: it is damaged or truncated.")
    return found


# ---------------------------------------------------------------------------
# Version 7.3

_DEFLATE, _SHUFFLE, _CHECKSUM = 1, 2, 3  # filters that HDF5 brings itself, and MATLAB uses
_MOST_CHUNKS = 100_000


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
    declared = prod(dataset.shape) * dataset.dtype.itemsize
    check_size(name, declared, size)
    if prod(dataset.chunks or ()) * dataset.dtype.itemsize > max(SMALL, declared):
        raise Refused(
            f"{name} is stored in pieces of {dataset.chunks}, larger than the whole of {dataset.shape}."
        )
    _check_chunks(name, dataset)
    return dataset


def _check_chunks(name: str, dataset: h5py.Dataset) -> None:
    """Refuse a chunk that inflates to more than it should: HDF5 follows it to its end."""
    settings = dataset.id.get_create_plist()
    filters = [settings.get_filter(i)[0] for i in range(settings.get_nfilters())]
    if not set(filters) <= {_DEFLATE, _SHUFFLE, _CHECKSUM} or filters.count(_DEFLATE) > 1:
        raise Refused(f"{name} is stored through the filters {filters}; save it again without, or with gzip.")
    if _DEFLATE not in filters:
        return
    if dataset.id.get_num_chunks() > _MOST_CHUNKS:
        raise Refused(f"{name} is stored in more than {_MOST_CHUNKS} pieces; save it again in larger ones.")
    chunks: list[h5py.h5d.StoreInfo] = []
    dataset.id.chunk_iter(chunks.append)
    # Behind the numbers of a chunk stands its checksum, if there is one before the compression.
    whole = prod(dataset.chunks) * dataset.dtype.itemsize + 4
    for chunk in chunks:
        if not chunk.filter_mask >> filters.index(_DEFLATE) & 1:
            raw = dataset.id.read_direct_chunk(chunk.chunk_offset)[1]
            if len(zlib.decompressobj().decompress(raw, whole + 1)) > whole:
                raise Refused(f"{name} has a piece of {whole} bytes that inflates to more: it is damaged.")


def _matlab_class(name: str, dataset: h5py.Dataset) -> bytes:
    """MATLAB's word for what a data set holds."""
    if "MATLAB_class" not in dataset.attrs:
        return b""
    stored = dataset.attrs.get_id("MATLAB_class")
    if stored.shape != () or stored.dtype.kind != "S" or stored.dtype.itemsize > 64:
        raise Refused(f"{name} has the class {stored.dtype} {stored.shape}; expected a word.")
    return bytes(dataset.attrs["MATLAB_class"])


def _hdf5_header(name: str, file: h5py.File, size: int) -> Header:
    """Header of a variable, its axes in MATLAB's order: HDF5 lists them from the slowest to the fastest."""
    dataset = _hdf5_dataset(name, file, name, size)
    shape = tuple(map(int, dataset.shape[::-1]))
    if _matlab_class(name, dataset) == b"char" and len(shape) == 2:
        return Header(shape[:1], np.dtype(f"U{max(1, shape[1])}"))
    return Header(shape, np.dtype("O") if dataset.dtype.hasobject else dataset.dtype)


def _hdf5_array(name: str, file: h5py.File, size: int) -> np.ndarray:
    """One variable, its axes in MATLAB's order."""
    dataset = _hdf5_dataset(name, file, name, size)
    kind, value = _matlab_class(name, dataset), dataset[()].T
    if dataset.dtype.hasobject:
        budget, texts = _Budget(name, size), []
        budget.add_cells(value.size)
        for k, reference in enumerate(np.ravel(value)):
            cell = _hdf5_dataset(f"cell {k} of {name}", file, reference, size) if reference else None
            if cell is None or cell.dtype.hasobject:
                raise Refused(f"cell {k} of {name} is empty or a cell itself; expected a word or a number.")
            budget.add(_CELL_COST + 4 * cell.size)
            texts.append(_text(cell[()].T))
        return np.array(texts, dtype=object)
    return np.array([_text(row) for row in value]) if kind == b"char" and value.ndim == 2 else value


def _text(codes: np.ndarray) -> str:
    """A MATLAB string, stored as the numbers of its characters; a number as it is."""
    if codes.dtype == np.uint16:
        return np.ravel(codes).astype("<u2").tobytes().decode("utf-16-le")
    return "".join(map(chr, np.ravel(codes))) if codes.dtype.kind == "u" else str(np.squeeze(codes))
