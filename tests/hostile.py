"""Hostile files made from parts: archives and HDF5.

Every kind is a strategy of specifications and a function that writes one of them as a file.  The parts
are what such files are really made of, each right or wrong on its own: names, shapes, types, lengths,
links, filters, nesting; the bytes between them are as a writer of the format would put them.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

SECRET = 12345.678  # what other files of the same machine hold
LARGE = 10**8  # bytes of a part that is much larger than its file


class Hostile(NamedTuple):
    """What to draw, and how to write it."""

    drawn: st.SearchStrategy[Any]
    write: Callable[[Any, Path], None]


def usually(normal: Any, *others: Any) -> st.SearchStrategy[Any]:
    """Mostly what is right, so that the wrong parts meet right ones."""
    return st.sampled_from([normal] * (3 * len(others)) + list(others))


def rarely(value: Any, otherwise: Any) -> st.SearchStrategy[Any]:
    """For what takes long to write."""
    return st.sampled_from([otherwise] * 40 + [value])


# -- .npz ------------------------------------------------------------------------------

ARRAY_NAMES = ("X", "y", "groups", "covs", "labels", "X1", "y1", "r1")
SHAPES = st.one_of(
    usually((6, 3, 3), (6,), (3, 3, 6), (6, 3, 2), (0, 3, 3), (6, 0, 0), (), (3, 3)),
    st.lists(st.sampled_from([-1, 0, 1, 3, 6, 7, 2**31, 2**62, 10**30]), max_size=4).map(tuple),
)
DESCRIPTIONS = usually(
    *("<f8", ">f4", "<i8", "|b1", "<U5", "<U100000", "|S3", "|O", "|V0", "<U0", "<c16", "<M8[D]", "|u1"),
    *("[('a', '<f8')]", "[('a', '|O')]", "('<f8', (1000, 1000))", "<f9", "__import__('os')"),
)
MEMBERS = st.fixed_dictionaries(
    {
        "file": st.one_of(
            st.sampled_from([f"{name}.npy" for name in ARRAY_NAMES]),
            st.sampled_from(["X", "y", "X.npy.npy", "../X.npy", "metadata.npy", "\x1b[2J.npy", "\u202e.npy"]),
        ),
        "version": usually((1, 0), (2, 0), (3, 0), (9, 9)),
        "descr": DESCRIPTIONS,
        "shape": SHAPES,
        "fortran": st.booleans(),
        "header_length": usually(None, 0, 2**16 - 1, 2**31 - 1),
        "body": st.one_of(usually("exact", "short", "long", "pickle"), rarely("large", "exact")),
        "method": usually(zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA),
    }
)
# Of the table of contents: which entry, where in it, and the number that is put there.
PATCHES = st.tuples(
    st.integers(0, 3), st.sampled_from([8, 10, 20, 24, 28, 42]), st.sampled_from([0, 1, 80, 10**6, 2**31])
)
NPZ = st.fixed_dictionaries(
    {
        "members": st.lists(MEMBERS, max_size=5),
        "good": st.booleans(),  # whether a good X comes first
        "patches": st.one_of(st.just([]), st.lists(PATCHES, max_size=2)),
        "entries": rarely(30_000, 0),
    }
)


def npy(member: dict[str, Any]) -> bytes:
    descr = member["descr"] if member["descr"].startswith(("[", "(", "_")) else repr(member["descr"])
    text = f"{{'descr': {descr}, 'fortran_order': {member['fortran']}, 'shape': {member['shape']}, }}\n"
    form = "<H" if member["version"] == (1, 0) else "<I"
    length = len(text) if member["header_length"] is None else member["header_length"]
    length = min(length, 2**16 - 1) if form == "<H" else length
    head = b"\x93NUMPY" + bytes(member["version"]) + struct.pack(form, length) + text.encode()
    return head + body_of(member)


def body_of(member: dict[str, Any]) -> bytes:
    try:
        size = np.dtype(member["descr"]).itemsize
    except (TypeError, ValueError, SyntaxError):
        size = 8
    count = int(np.prod([float(n) for n in member["shape"]]))
    whole = max(0, min(count * size, 10**6))
    kinds = {"short": max(0, whole - 5), "long": whole + 5, "large": LARGE, "exact": whole, "pickle": whole}
    return b"\x80\x04N." if member["body"] == "pickle" else bytes(kinds[member["body"]])


def write_npz(spec: dict[str, Any], path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        if spec["good"]:
            buffer = io.BytesIO()
            np.save(buffer, good_matrices())
            archive.writestr("X.npy", buffer.getvalue())
        for member in spec["members"]:
            if spec["good"] and member["file"] in ("X.npy", "covs.npy"):
                continue
            content = npy(member)
            method = (
                member["method"] if len(content) < LARGE else zipfile.ZIP_DEFLATED
            )  # the others take long
            archive.writestr(zipfile.ZipInfo(member["file"]), content, method, compresslevel=1)
        for k in range(spec["entries"]):
            archive.writestr(zipfile.ZipInfo(f"e{k}"), b"")
    if not spec["patches"]:
        return
    content = bytearray(path.read_bytes())
    starts = [found.start() for found in re.finditer(b"PK\x01\x02", content)][:4]
    for entry, at, number in spec["patches"]:
        if entry < len(starts):
            width = 4 if at >= 20 and at != 28 else 2
            content[starts[entry] + at : starts[entry] + at + width] = (number % 256**width).to_bytes(
                width, "little"
            )
    path.write_bytes(content)


def good_matrices(n: int = 6, d: int = 3) -> np.ndarray:
    A = np.random.default_rng(0).standard_normal((n, d, 2 * d))
    return A @ A.transpose(0, 2, 1)


# -- .mat of version 5: the parts that `test_hostile_files.py` puts together -----------


def element(kind: int, data: bytes, order: str) -> bytes:
    return struct.pack(f"{order}II", kind, len(data)) + data + bytes(-len(data) % 8)


# -- .mat of version 7.3: HDF5 ---------------------------------------------------------

KINDS_OF_DATA = (
    *("numbers", "numbers", "numbers", "gzip", "char", "cells", "empty chunks", "large chunk", "lzf"),
    *("external", "external link", "soft link", "loop", "virtual", "group", "words", "compound", "type"),
    *("cells of large", "cells of external", "cells of nothing", "cells of groups", "cells of themselves"),
    *("null", "many cells of one", "huge", "checksum", "scaleoffset"),
)
HDF5 = st.fixed_dictionaries(
    {
        "variables": st.dictionaries(
            st.sampled_from(["X", "y", "covs", "labels", "groups"]),
            st.sampled_from(KINDS_OF_DATA),
            min_size=1,
        ),
        "class": usually("double", "char", "cell", "x" * 70, b"bytes", 3, "vlen"),
        "good": st.booleans(),
        "user_block": usually(512, 0, 1024),
    }
)


def write_hdf5(spec: dict[str, Any], path: Path) -> None:
    import h5py

    secret = path.with_name("secret.bin")
    if not secret.exists():
        secret.write_bytes(np.full(54, SECRET).tobytes())
        with h5py.File(path.with_name("secret.h5"), "w") as other:
            other["X"] = np.full((6, 3, 3), SECRET)
    with h5py.File(path, "w", userblock_size=spec["user_block"]) as file:
        for name, kind in spec["variables"].items():
            add_data(file, name, kind, path)
            link = file.get(name, getlink=True) if name in file.keys() else None  # noqa: SIM118 - links count
            if isinstance(link, h5py.HardLink) and not kind.startswith(("cells", "many", "group", "char")):
                value = spec["class"]
                file[name].attrs["MATLAB_class"] = (
                    value if value == "vlen" or value == 3 else np.bytes_(value)
                )
        if spec["good"] and "X" not in file.keys():  # noqa: SIM118
            file["X"] = good_matrices()


def add_data(file: Any, name: str, kind: str, path: Path) -> None:
    import h5py

    X, shape, secret = good_matrices(), (6, 3, 3), path.with_name("secret.bin")
    layout = h5py.VirtualLayout(shape, "f8")
    layout[:] = h5py.VirtualSource(str(path.with_name("secret.h5")), "X", shape)
    stored = {
        "external link": h5py.ExternalLink("secret.h5", "/X"),
        "soft link": h5py.SoftLink("/nowhere"),
        "loop": h5py.SoftLink(f"/{name}"),
        "compound": np.zeros(6, dtype=[("real", "f8"), ("imag", "f8")]),
        "null": h5py.Empty("f8"),
        "type": np.array([b"left"] * 6, dtype="S100000"),
        "char": np.full((5, 6), 97, dtype=np.uint16),
        "numbers": X if name in ("X", "covs") else np.arange(6.0)[None],
    }
    options: dict[str, dict[str, Any]] = {
        "external": dict(shape=shape, dtype="f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)]),
        "words": dict(data=["left"] * 6, dtype=h5py.string_dtype()),
        "empty chunks": dict(shape=(10**4, 300, 300), dtype="f8", chunks=(1, 300, 300)),
        "huge": dict(shape=(2**40, 2**20), dtype="f8", chunks=(1, 1024)),
        "large chunk": dict(shape=shape, dtype="f8", chunks=(2**18, 10, 10), maxshape=(None,) * 3),
        "gzip": dict(data=X, chunks=(2, 3, 3), compression="gzip", shuffle=True),
        "lzf": dict(data=X, chunks=(2, 3, 3), compression="lzf", shuffle=True),
        "checksum": dict(data=X, chunks=(2, 3, 3), compression="gzip", fletcher32=True),
        "scaleoffset": dict(data=X, chunks=(2, 3, 3), scaleoffset=4),
    }
    if "cells" in kind:
        add_cells(file, name, kind, secret)
    elif kind == "virtual":
        file.create_virtual_dataset(name, layout)
    elif kind == "group":
        file.create_group(name)
    elif kind in options:
        file.create_dataset(name, **options[kind])
    else:
        file[name] = stored[kind]
    if kind == "char":
        file[name].attrs["MATLAB_class"] = np.bytes_("char")


def add_cells(file: Any, name: str, kind: str, secret: Path) -> None:
    import h5py

    inner = file.require_group("#refs#")
    if kind == "cells of large":
        target = inner.create_dataset(f"{name}0", (10**9,), "u2", chunks=(1024,))
    elif kind == "cells of external":
        target = inner.create_dataset(
            f"{name}0", (54,), "f8", external=[(str(secret), 0, h5py.h5f.UNLIMITED)]
        )
    elif kind == "cells of groups":
        target = inner.create_group(f"{name}0")
    elif kind == "many cells of one":
        letters = np.full((4 * 10**6, 1), 97, dtype=np.uint16)
        target = inner.create_dataset(f"{name}0", data=letters, chunks=(10**6, 1), compression="gzip")
    else:
        target = inner.create_dataset(f"{name}0", data=np.full((5, 1), 97, dtype=np.uint16))
    dataset = file.create_dataset(name, (1, 6), dtype=h5py.ref_dtype)
    if kind != "cells of nothing":
        dataset[0] = [(dataset if kind == "cells of themselves" else target).ref] * 6
    dataset.attrs["MATLAB_class"] = np.bytes_("cell")


HOSTILE = {"hostile.npz": Hostile(NPZ, write_npz), "hostile73.mat": Hostile(HDF5, write_hdf5)}
