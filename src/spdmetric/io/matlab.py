"""MATLAB's files: version 5 to 7 by SciPy, version 7.3, which is HDF5, by h5py."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from os import SEEK_CUR
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from spdmetric.io.files import Refused, check_size, reading

if TYPE_CHECKING:
    import h5py

_HDF5 = b"\x89HDF\r\n\x1a\n"

# Bytes an element of MATLAB's classes; those of other classes are bounded by what is stored.
_ITEM_SIZE = {"double": 8, "single": 4, "char": 4, "logical": 1}
_ITEM_SIZE |= {f"{sign}int{8 * size}": size for sign in ("", "u") for size in (1, 2, 4, 8)}


def mat_names(path: Path) -> list[str]:
    """Names of the variables of a ``.mat`` file of any version."""
    with reading(path):
        if not _is_hdf5(path):
            return [name for name, _, _ in _variables(path)]
        with _hdf5_file(path) as file:
            return [name for name in file if hasattr(file[name], "dtype")]


def read_mat(path: Path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Read some variables of a ``.mat`` file of any version; for structures see `structures`."""
    from scipy.io import loadmat

    names = list(names)
    with reading(path):
        if _is_hdf5(path):
            with _hdf5_file(path) as file:
                return {name: _hdf5_array(name, file, path.stat().st_size) for name in names}
        for name, shape, kind in _variables(path):
            if name in names and kind in _ITEM_SIZE:
                check_size(name, prod(shape) * _ITEM_SIZE[kind], path.stat().st_size)
        content = loadmat(path, struct_as_record=False, variable_names=names)
        return {name: np.asarray(content[name]) for name in names}


def structures(value: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Fields of the structures of a MATLAB structure array, or of a cell array of structures."""
    from scipy.io.matlab import mat_struct

    found: list[dict[str, np.ndarray]] = []
    for item in value.ravel() if value.dtype == object else ():
        if isinstance(item, mat_struct):
            # MATLAB's names begin with a letter, SciPy's own attribute with an underscore.
            fields = vars(item).items()
            found.append({name: np.asarray(field) for name, field in fields if not name.startswith("_")})
        elif isinstance(item, np.ndarray):
            found += structures(item)
    return found


def _variables(path: Path) -> list[tuple[str, tuple[int, ...], str]]:
    """Name, shape and class of the variables."""
    from scipy.io import whosmat

    _check_whole(path)
    try:
        return whosmat(path)
    except NotImplementedError as error:
        raise Refused(
            "it says that it is a MATLAB 7.3 (HDF5) file; save it again with save(..., '-v7'), for there is "
            "no HDF5 in it."
        ) from error


def _check_whole(path: Path) -> None:
    """Follow the lengths of the variables to the end of the file.

    SciPy lists the variables of a truncated file up to the cut, without a word.
    """
    size = path.stat().st_size
    orders: dict[bytes, Literal["little", "big"]] = {b"\x00\x01IM": "little", b"\x01\x00MI": "big"}
    with path.open("rb") as file:
        order = orders.get(file.read(128)[124:])
        while order and file.tell() < size:  # SciPy tells other versions
            tag = file.read(8)
            length = int.from_bytes(tag[4:], order)
            if len(tag) < 8 or file.tell() + length > size:
                raise EOFError("the file ends within a variable")
            file.seek(length, SEEK_CUR)


def _is_hdf5(path: Path) -> bool:
    """Whether the signature is there: MATLAB puts 512 bytes of its own before it."""
    with path.open("rb") as file:
        start = file.read(2048 + len(_HDF5))
    return any(start.startswith(_HDF5, at) for at in (0, 512, 1024, 2048))


def _hdf5_file(path: Path) -> h5py.File:
    try:
        import h5py
    except ImportError as error:
        raise ImportError("Reading MATLAB 7.3 files needs h5py: pip install 'spdmetric[hdf5]'.") from error
    return h5py.File(path, "r")


def _hdf5_array(name: str, file: h5py.File, size: int) -> np.ndarray:
    """One variable, its axes in MATLAB's order: HDF5 lists them from the slowest to the fastest."""
    dataset = file[name]
    if dataset.dtype.kind == "V" or dataset.shape is None:
        raise Refused(f"{name} has the type {dataset.dtype}; expected numbers or words.")
    check_size(name, dataset.size * dataset.dtype.itemsize, size)
    kind, value = dataset.attrs.get("MATLAB_class", b""), dataset[()].T
    if dataset.dtype.hasobject and kind == b"cell":
        return np.array([_text(file[cell][()].T) for cell in np.ravel(value)], dtype=object)
    if dataset.dtype.hasobject:
        words = (item.decode() if isinstance(item, bytes) else str(item) for item in np.ravel(value))
        return np.array(list(words))
    return np.array([_text(row) for row in value]) if kind == b"char" else value


def _text(codes: np.ndarray) -> str:
    """A MATLAB string, stored as the numbers of its characters; a number as it is."""
    return "".join(map(chr, np.ravel(codes))) if codes.dtype.kind == "u" else str(np.squeeze(codes))
