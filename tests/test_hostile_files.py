"""Small files that would make gigabytes, read other files, or fail later: each is refused, with a sentence.

What is drawn at random from the same parts is in ``test_fuzz.py``.
"""

from __future__ import annotations

import csv
import os
import struct
import zipfile
import zlib
from io import StringIO
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat

import hostile
import spdmetric
from formats import write_edf, write_gdf
from random_matrices import labeled, spd
from spdmetric.io.matrices import read_matrices
from spdmetric.io.signals import read_signals
from spdmetric.io.tables import LABEL_HEADS, guard_formula, read_column, remove_guard

MEGABYTE = 10**6


@pytest.fixture
def modest():
    """Call a function, and see that it does not take more than 100 MB."""
    if not os.access("/proc/self/clear_refs", os.W_OK):
        pytest.skip("the peak of memory is Linux's")

    def held(key: str) -> int:
        return int(Path("/proc/self/status").read_text().partition(f"{key}:")[2].split()[0]) * 1024

    def call(function, *arguments, **options):
        Path("/proc/self/clear_refs").write_text("5")
        before = held("VmRSS")
        try:
            return function(*arguments, **options)
        finally:
            assert held("VmHWM") - before < 100 * MEGABYTE

    return call


@pytest.fixture
def refused(modest):
    def check(path, sentence, **options):
        with pytest.raises(ValueError, match=sentence) as caught:
            modest(read_matrices, path, **options)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 3000

    return check


# -- .npz ------------------------------------------------------------------------------


def member(**changes):
    good = {"version": (1, 0), "descr": "<f8", "shape": (6, 3, 3), "fortran": False, "header_length": None}
    return hostile.npy({**good, "body": "exact", **changes})


def archive(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method, compresslevel=1) as target:
        for name, content in members:
            target.writestr(name, content)
    return path


def test_the_sum_of_all_arrays_is_compared_with_the_file(tmp_path, refused):
    """Each alone would pass, being small."""
    y = member(shape=(6,), descr="<U2500000") + bytes(59 * MEGABYTE)  # a label of ten megabytes, six times
    path = archive(tmp_path / "a.npz", [("X.npy", member()), ("y.npy", y), ("groups.npy", y)])
    refused(path, "declares|damaged")


def test_a_header_without_an_end_is_not_read(tmp_path, refused):
    """Version 2 gives its length in four bytes, and NumPy reads it before it looks at the length."""
    start = b"\x93NUMPY\x02\x00" + struct.pack("<I", 3 * 10**8)
    path = archive(tmp_path / "a.npz", [("X.npy", start + b" " * 3 * 10**8)])
    refused(path, "cannot be read")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method, tmp_path, refused):
    refused(archive(tmp_path / "a.npz", [("X.npy", member())], method), "is compressed by method")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shape": (-1, -6, 9)}, "declares"),
        ({"shape": (2**62, 2**62)}, "declares"),
        ({"shape": (10**9, 0)}, "expected matrices of numbers"),
        ({"descr": "|V0", "shape": (10**18,)}, "declares"),
        ({"descr": "[('a', '|O')]"}, "pickled"),
        ({"version": (9, 9)}, "version"),
        ({"body": "short"}, "damaged or truncated"),
    ],
)
def test_headers_that_lie(changes, sentence, tmp_path, refused):
    refused(archive(tmp_path / "a.npz", [("X.npy", member(**changes))]), sentence)


def test_columns_are_compared_before_the_matrices_are_read(tmp_path, refused):
    X = member(shape=(2 * 10**6, 2, 2)) + bytes(63 * MEGABYTE)
    path = archive(tmp_path / "a.npz", [("X.npy", X), ("y.npy", member(shape=(5,)))], zipfile.ZIP_STORED)
    refused(path, r"y has shape \(5,\) for 2000000 matrices")
    (tmp_path / "y.csv").write_text("1\n2\n")
    with pytest.raises(ValueError, match="2 entries for 2000000 matrices"):
        read_matrices(path, tmp_path / "y.csv")


def test_letters_that_are_none(tmp_path, refused):
    y = np.array(["abc"] * 6)
    for code in (0x110000, 0xD800):
        y.view(np.uint32)[0] = code
        np.savez(tmp_path / "a.npz", X=spd(np.random.default_rng(0), 6, 3), y=y)
        refused(tmp_path / "a.npz", "corrupt.*Unicode")


def test_names_do_not_steer_the_terminal_nor_fill_it(tmp_path, refused):
    path = archive(
        tmp_path / "a.npz", [(f"\x1b[2J{i}.npy", member()) for i in range(2000)], zipfile.ZIP_STORED
    )
    refused(path, r"found \\x1b\[2J0, .*\.\.\.")


def test_folders_pipes_and_links(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    os.mkfifo(tmp_path / "pipe.npz")
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.npz").symlink_to(tmp_path / "pipe.npz")
    (tmp_path / "loop.npz").symlink_to(tmp_path / "loop.npz")
    np.savez(tmp_path / "real.npz", X=spd(np.random.default_rng(0), 6, 3))
    (tmp_path / "good.npz").symlink_to(tmp_path / "real.npz")
    with pytest.raises(
        ValueError, match=r"folder\.npz has no file that ends in \.npy, \.csv: it has nothing"
    ):
        read_matrices(tmp_path / "folder.npz")
    for name in ("folder", "pipe", "link", "loop"):
        for read in (read_matrices, spdmetric.load)[name == "folder" :]:
            with pytest.raises(FileNotFoundError, match=rf"There is no file .*{name}\.npz"):
                read(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_column(tmp_path / "pipe.csv", 6)
    assert read_matrices(tmp_path / "good.npz").X.shape == (6, 3, 3)


# -- .mat, version 5 -------------------------------------------------------------------


def number(dims=(1, 1), data=bytes(8), name=b"", kind=6):
    return cells(dims, [hostile.element(9, data, "<")], name, kind)


def cells(dims, children, name=b"", kind=1):
    flags = hostile.element(6, struct.pack("<II", kind, 0), "<")
    shape = hostile.element(5, struct.pack(f"<{len(dims)}i", *dims), "<")
    return hostile.element(14, b"".join([flags, shape, hostile.element(1, name, "<"), *children]), "<")


def mat(path, *variables, compressed=True):
    packed = [zlib.compress(one, 9) if compressed else one for one in variables]
    tags = [struct.pack("<II", 15, len(one)) if compressed else b"" for one in packed]
    path.write_bytes(
        b"MATLAB 5.0 MAT-file".ljust(124)
        + b"\x00\x01IM"
        + b"".join(t + one for t, one in zip(tags, packed, strict=True))
    )
    return path


GOOD = number((3, 3, 2), np.stack([np.eye(3)] * 2, axis=2).tobytes(order="F"), b"X")


@pytest.mark.parametrize("name", [b"X", b"y"])
def test_millions_of_cells(name, tmp_path, refused):
    many = cells((10**6, 1), [number()] * 10**6, name)
    path = mat(tmp_path / "a.mat", *([GOOD] if name == b"y" else []), many)
    assert path.stat().st_size < MEGABYTE
    refused(path, "expected matrices of numbers|for 2 matrices|declares")


def test_a_structure_of_millions(tmp_path, refused):
    names = hostile.element(5, struct.pack("<i", 8), "<") + hostile.element(1, b"data".ljust(8, b"\0"), "<")
    path = mat(tmp_path / "a.mat", cells((10**6, 1), [names, number() * 10**6], b"X", kind=2))
    refused(path, "declares")


@pytest.mark.parametrize(
    ("dims", "size"), [((-3, -3, 2), 144), ((2**31 - 1, 2**31 - 1, 2), 144), ((3, 3, 2), 10**8)]
)
def test_shapes_that_cannot_be(dims, size, tmp_path, refused):
    refused(mat(tmp_path / "a.mat", number(dims, bytes(size), b"X")), "shape|declares")


def test_words_of_blanks_and_two_variables_of_one_name(tmp_path, refused):
    """No letters are stored, and SciPy fills the shape with blanks."""
    refused(mat(tmp_path / "a.mat", GOOD, number((2, 2**28), b"", b"y", kind=4)), "declares")
    refused(mat(tmp_path / "a.mat", GOOD, GOOD), "X is there twice")


def test_a_long_label_is_not_repeated_for_all(tmp_path, refused):
    y = np.array(["a"] * 20_000, dtype=object)
    y[0] = "a" * 10**5
    savemat(tmp_path / "a.mat", {"X": np.ones((20_000, 2, 2)), "y": y}, do_compression=True)
    refused(tmp_path / "a.mat", "y declares")


# -- .mat, version 7.3 -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["X", "y"])
@pytest.mark.parametrize(
    "kind", ["external", "external link", "virtual", "cells of external", "soft link", "loop"]
)
def test_hdf5_reads_no_other_file(kind, name, tmp_path, refused):
    spec = {"variables": {name: kind}, "class": "double", "good": name == "y", "user_block": 512}
    path = tmp_path / "a.mat"
    hostile.write_hdf5(spec, path)
    refused(path, "stored in another file|can lead to another file|dtype object")


@pytest.mark.parametrize(("place", "byte"), [(145, 8), (185, 16)])  # complex; another type of its numbers
def test_matlab_arrays_without_their_parts_do_not_end_the_process(place, byte, tmp_path, refused):
    path = tmp_path / "a.mat"
    savemat(path, {"X": np.stack([np.eye(3)] * 6, axis=2), "y": np.arange(6.0) % 2})
    content = bytearray(path.read_bytes())
    content[place] |= byte
    path.write_bytes(content)
    refused(path, "has not the parts that it should have: it is damaged")


def test_a_group_is_no_array_and_other_links_do_not_matter(tmp_path, refused):
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["X"] = np.stack([np.eye(3)] * 6)
        file["other"] = h5py.ExternalLink("/nowhere.h5", "/X")
    assert read_matrices(tmp_path / "a.mat").y is None
    with h5py.File(tmp_path / "a.mat", "a") as file:
        file.create_group("y")  # as MATLAB has a structure
    refused(tmp_path / "a.mat", "y is no array; expected numbers or words")


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("cells of large", "cell 0 of y declares"),
        ("many cells of one", "y declares"),
        ("cells of nothing", "cell 0 of y is empty"),
        ("cells of groups", "cell 0 of y is no array"),
        ("cells of themselves", "a cell itself"),
        ("empty chunks", "y declares"),
        ("huge", "declares|shape"),
        ("words", "has the type object; expected numbers, or words"),
        ("null", "is no array"),
    ],
)
def test_small_hdf5_files_that_make_gigabytes(kind, sentence, tmp_path, refused):
    spec = {"variables": {"y": kind}, "class": "double", "good": True, "user_block": 512}
    hostile.write_hdf5(spec, tmp_path / "a.mat")
    refused(tmp_path / "a.mat", sentence)


@pytest.mark.parametrize("kind", ["gzip", "lzf", "checksum", "numbers"])
def test_good_hdf5_files_are_read(kind, tmp_path):
    spec = {"variables": {"X": kind}, "class": "double", "good": False, "user_block": 512}
    hostile.write_hdf5(spec, tmp_path / "a.mat")
    assert sorted(read_matrices(tmp_path / "a.mat").X.shape) == [3, 3, 6]


# -- Folders and signals ---------------------------------------------------------------


def test_a_table_for_a_matrix(tmp_path, modest):
    """Twenty million rows of one number: refused at the third."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a.csv").write_text("1\n" * 2 * 10**7)
    with pytest.raises(ValueError, match=r"it has shape \(3, 1\); expected one square matrix"):
        modest(read_matrices, tmp_path / "set")


def test_sizes_of_a_folder_are_compared_before_a_matrix_is_read(tmp_path, modest):
    (tmp_path / "set").mkdir()
    for k in range(9):
        np.save(tmp_path / "set" / f"{k}.npy", np.zeros((1500, 1500)))
    np.save(tmp_path / "set" / "9.npy", np.eye(2))
    with pytest.raises(ValueError, match=r"9\.npy has shape \(2, 2\), but 0\.npy has \(1500, 1500\)"):
        modest(read_matrices, tmp_path / "set")


def test_signals_that_lie_about_their_size(tmp_path, modest):
    many = member(shape=(6, 30, 10**7)) + bytes(10**7)
    path = archive(tmp_path / "a.npz", [("X.npy", many)])
    with pytest.raises(ValueError, match="declares") as caught:
        modest(read_signals, path)
    assert str(path) in str(caught.value)


# -- Tables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1," * 10**7, "row of more than"),
        ("label\n" + '"\n",' * 10**6, "row of more than"),
        ("a" * 2 * 10**5 + "\n1\n2\n", "field larger than"),
        ("1\n" * 10**6, "1000000 entries for 3 matrices"),
    ],
    ids=["columns", "lines", "field", "rows"],
)
def test_tables_without_an_end(text, sentence, tmp_path, modest):
    (tmp_path / "y.csv").write_text(text)
    with pytest.raises(ValueError, match=sentence):
        modest(read_column, tmp_path / "y.csv", 3)


def test_one_long_label_is_not_repeated_for_all(tmp_path, modest):
    (tmp_path / "y.csv").write_text("a" * 10**5 + "\n" + "b\n" * 9999)
    with pytest.raises(ValueError, match="the column declares"):
        modest(read_column, tmp_path / "y.csv", 10_000)


@pytest.mark.parametrize(("rate", "window"), [(10**8, (0.0, 2.0)), (100, (0.0, 1e7)), (100, (0.0, 1e300))])
def test_a_rate_or_a_window_does_not_decide_how_much_is_allocated(rate, window, tmp_path, modest):
    write_gdf(tmp_path / "a.gdf", np.ones((3, 500), int), rate, 0.1, ["C3", "C4", "Cz"], [(100, 769)])
    read_signals(tmp_path / "a.gdf", events="769", window=(0.0, 3 / rate))  # imports take memory too
    with pytest.raises(ValueError, match=r"a\.gdf: window=.* is longer than the signal, 500 samples"):
        modest(read_signals, tmp_path / "a.gdf", events="769", window=window)


def test_a_short_record_does_not_either(tmp_path, modest):
    write_edf(tmp_path / "a.edf", np.ones((3, 1000)), 100, [(1.0, "T1")])
    content = bytearray((tmp_path / "a.edf").read_bytes())
    content[244:252] = b"0.000001"  # seconds of a record
    (tmp_path / "a.edf").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.edf"):
        modest(read_signals, tmp_path / "a.edf", events="T1", window=(0.5, 2.5))


def test_overlapping_trials_are_compared_with_the_recording(tmp_path, modest):
    events = [(k % 100, 769) for k in range(4000)]
    write_gdf(tmp_path / "a.gdf", np.ones((4, 10_000), int), 100, 0.1, [*"abcd"], events)
    with pytest.raises(ValueError, match="the trials declares"):
        modest(read_signals, tmp_path / "a.gdf", events="769", window=(0, 95))


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''-x", "\uff1d1", "'", "'a", "a"]


def test_no_spreadsheet_runs_a_label_and_our_reader_gets_it_back(tmp_path):
    for text in FORMULAS:
        assert remove_guard(guard_formula(text)) == text
        assert guard_formula(text)[0] not in "=+-@\t\r\uff1d"
    assert guard_formula("plain") == "plain"
    assert guard_formula("'a") == "'a"


WORDS = ["=cmd|' /C calc'!A0", "-left", '@x, "y"', "left\r=cmd", "left", " left", "left ", "a;b"]


def test_predictions_come_back_as_they_were(rng, tmp_path, capsys):
    from spdmetric.cli import main

    X, codes = labeled(rng, 8 * len(WORDS), 3, classes=len(WORDS))
    y = np.array(WORDS)[codes]
    np.savez(tmp_path / "train.npz", X=X, y=y)
    files = [str(tmp_path / name) for name in ("train.npz", "model.skops", "labels.csv")]
    assert main(["fit", files[0], "-o", files[1], "--radius", "0", "--rank", "full", "--neighbors", "1"]) == 0
    assert main(["predict", files[1], files[0], "-o", files[2]]) == 0
    text = (tmp_path / "labels.csv").read_text()
    rows = list(csv.reader(StringIO(text, newline="")))
    assert not any(cell[:1] in {*"=+-@\r\n"} for row in rows for cell in row)
    assert [row[0] for row in rows] == ["index", *map(str, range(len(y)))]
    assert np.array_equal(read_column(files[2], len(y)), y)
    assert np.array_equal(read_column(files[2], len(y), heads=("true",)), y)
    assert LABEL_HEADS[0] in text
