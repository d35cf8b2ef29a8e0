"""Arrays and a JSON text in one plain ``.npz`` file, written whole and read without trust.

Nothing of a file is believed before it is checked: sizes against the size of the file
before memory is asked for, then the SHA-256 digest over everything, then the content.
Pickles are neither written nor read.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

METADATA = "metadata"  # the member that holds the JSON text
KINDS = "biufSU"  # of dtype: booleans, numbers, strings

# All files of the same content are the same bytes: the date of each member is the first that zip knows.
_DATE = (1980, 1, 1, 0, 0, 0)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


# ---------------------------------------------------------------------------
# Writing


def write_archive(path: Path, metadata: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write metadata and arrays into one file, with the digest over both.

    Parameters
    ----------
    path : Path
        File to write; it appears whole or not at all.
    metadata : dict
        What JSON can hold; the key "sha256" is added.
    arrays : dict of str to ndarray
        Booleans, numbers or strings.
    """
    members = {name: _npy_bytes(array) for name, array in arrays.items()}
    signed = {**metadata, "sha256": _digest(metadata, members)}
    text = json.dumps(signed, indent=1, allow_nan=False).encode("ascii")
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {METADATA: _npy_bytes(np.array(text)), **members}.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _DATE), content)
    write_atomically(path, buffer.getvalue())


def _npy_bytes(array: np.ndarray) -> bytes:
    buffer = BytesIO()
    npy.write_array(buffer, array, version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _digest(metadata: Mapping[str, Any], members: Mapping[str, bytes]) -> str:
    """SHA-256 over the metadata, less the digest, and the name, length and bytes of every array."""
    digest = hashlib.sha256()
    unsigned = {key: value for key, value in metadata.items() if key != "sha256"}
    digest.update(json.dumps(unsigned, sort_keys=True, allow_nan=False).encode("ascii"))
    for name in sorted(members):
        digest.update(f"\n{name} {len(members[name])}\n".encode())
        digest.update(members[name])
    return digest.hexdigest()


# ---------------------------------------------------------------------------
# Reading


def read_archive(path: Path, kind: str, newest: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write_archive` wrote, or say why not.

    Parameters
    ----------
    path : Path
        File to read.
    kind : str
        What ``metadata["format"]`` must be.
    newest : int
        The largest ``metadata["version"]`` that the caller understands.

    Returns
    -------
    metadata : dict
    arrays : dict of str to ndarray

    Raises
    ------
    FileNotFoundError, ValueError
        The file is missing, truncated, altered, newer or of another kind.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    members = _read_members(path, kind)
    with _content_of(path, kind):
        metadata = json.loads(_array(members.pop(METADATA)).item())
    _check_kind(path, kind, newest, metadata)
    if metadata.get("sha256") != _digest(metadata, members):
        raise ValueError(
            f"{path} was altered after it was saved (its SHA-256 digest does not match): fetch it again, or "
            f"save the {kind} anew."
        )
    with _content_of(path, kind):
        return metadata, {name: _array(content) for name, content in members.items()}


def _read_members(path: Path, kind: str) -> dict[str, bytes]:
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            begun = file.read(4) == b"PK\x03\x04"
        raise ValueError(
            f"{path} is truncated or corrupt." if begun else f"{path} is not a {kind}: it is no .npz file."
        )
    with _content_of(path, kind), zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
        if f"{METADATA}.npy" not in archive.namelist():
            raise _Foreign
        _check_members(infos, path.stat().st_size)
        return {info.filename.removesuffix(".npy"): archive.read(info) for info in infos}


def _check_members(infos: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse what would need more memory than the file has bytes, before any of it is read."""
    if any(info.compress_type != zipfile.ZIP_STORED for info in infos):
        raise ValueError("its members are compressed")
    if any(info.compress_size != info.file_size for info in infos) or sum(i.file_size for i in infos) > size:
        raise ValueError("its members claim to be larger than the file")
    if len({info.filename for info in infos}) < len(infos):
        raise ValueError("two members have one name")


def _array(content: bytes) -> np.ndarray:
    """Array of the bytes of an ``.npy`` file; its size is known to be that of the bytes first."""
    header = read_header(BytesIO(content))
    if header.dtype.kind not in KINDS or header.total != len(content):
        raise ValueError(f"an array of dtype {header.dtype} and shape {header.shape} does not fit its bytes")
    order: Any = "F" if header.fortran else "C"
    return np.ndarray(header.shape, header.dtype, content, header.length, order=order).copy(order="K")


class Header(NamedTuple):
    """What an ``.npy`` file says of its array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    length: int  # of the header itself, in bytes

    @property
    def total(self) -> int:
        """Bytes of the whole ``.npy`` file."""
        return self.length + prod(self.shape) * self.dtype.itemsize


def read_header(file: IO[bytes]) -> Header:
    """Read the header of an ``.npy`` file, and no more."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if any(side < 0 for side in shape):
        raise ValueError(f"an array has the shape {shape}")
    return Header(shape, fortran, dtype, file.tell())


# ---------------------------------------------------------------------------
# Sentences


class _Foreign(Exception):
    """An ``.npz`` file, but of other arrays."""


@contextmanager
def _content_of(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a parser raises on a damaged file into one sentence that names the file."""
    try:
        yield
    except _Foreign:
        raise ValueError(
            f"{path} is an .npz file but not a {kind}: expected one that spdmetric.save or 'spdmetric fit' "
            "wrote."
        ) from None
    except Exception as error:
        raise ValueError(
            f"{path} is truncated or corrupt ({type(error).__name__}: {' '.join(str(error).split())})."
        ) from error


def _check_kind(path: Path, kind: str, newest: int, metadata: Any) -> None:
    if not isinstance(metadata, dict) or metadata.get("format") != kind:
        found = metadata.get("format") if isinstance(metadata, dict) else metadata
        raise ValueError(f"{path} is not a {kind}: its metadata say {str(found)[:80]!r}.")
    version = metadata.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"{path} is corrupt: its format has version {str(version)[:80]!r}.")
    if version > newest:
        raise ValueError(
            f"{path} is a {kind} of format {version}, written by spdmetric "
            f"{str(metadata.get('spdmetric'))[:80]}; this spdmetric reads formats up to {newest}: upgrade it."
        )
