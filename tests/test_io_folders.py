"""Folders of files with one matrix each: read as they are, or told what is wrong with which file."""

import os

import numpy as np
import pytest

from random_matrices import spd
from spdmetric.io.matrices import read_matrices


@pytest.fixture
def X(rng):
    return spd(rng, 12, 3)


def fill(folder, X, name="trial{}.npy"):
    folder.mkdir(parents=True, exist_ok=True)
    for k, A in enumerate(X):
        path = folder / name.format(k)
        if path.suffix == ".npy":
            np.save(path, A)
        else:
            np.savetxt(path, A, delimiter=",", fmt="%.17g")
    return folder


def refused(folder, sentence, *arguments, **options):
    with pytest.raises(ValueError, match=sentence) as caught:
        read_matrices(folder, *arguments, **options)
    assert str(folder.parent) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".NPY"])
def test_files_in_natural_order(suffix, X, tmp_path):
    if suffix == ".NPY":
        fill(tmp_path / "set", X)
        for path in list((tmp_path / "set").iterdir()):
            path.rename(path.with_suffix(suffix))
    else:
        fill(tmp_path / "set", X, f"trial{{}}{suffix}")
    found = read_matrices(tmp_path / "set")
    assert np.array_equal(found.X, X)
    assert found.names == tuple(f"trial{k}{suffix}" for k in range(12))
    assert (found.y, found.groups, found.name, found.notes) == (None, None, "set", ())


def test_subfolders_are_labels(X, tmp_path):
    fill(tmp_path / "set" / "right", X[:5])
    fill(tmp_path / "set" / "left", X[5:], "{}.csv")
    (tmp_path / "set" / ".hidden").write_text("x")
    (tmp_path / "set" / "README.md").write_text("x")
    found = read_matrices(tmp_path / "set")
    assert found.y.tolist() == ["left"] * 7 + ["right"] * 5
    assert found.names[0] == "left/0.csv"
    assert np.array_equal(found.X, X[[*range(5, 12), *range(5)]])
    assert found.notes == ("1 files without a matrix were passed over: README.md.",)


@pytest.mark.parametrize(
    "head", ["file,label\n", "label,other,file\n", "", "NAME,Y\n"], ids=["file", "order", "none", "name"]
)
@pytest.mark.parametrize("spelling", ["{}.npy", "{}", "./{}.npy"])
def test_a_table_of_labels(head, spelling, X, tmp_path):
    fill(tmp_path / "set", X, "{}.npy")
    rows = [(spelling.format(k), "odd" if k % 2 else "'-even") for k in range(12)][::-1]
    swapped = head.startswith("label")
    text = (
        head
        + "".join(f"{y},z,{f}\n" if swapped else f"{f},{y}\n" for f, y in rows)
        + "other,1\n" * (not swapped)
    )
    (tmp_path / "set" / "labels.csv").write_text(text)  # it may lie beside the matrices
    found = read_matrices(tmp_path / "set", tmp_path / "set" / "labels.csv")
    assert found.y.tolist() == ["odd" if k % 2 else "-even" for k in range(12)]
    assert len(found.X) == 12


def test_tables_of_labels_and_groups(X, tmp_path):
    fill(tmp_path / "set" / "a", X[:6])
    fill(tmp_path / "set" / "b", X[6:])
    rows = [f"{folder}/trial{k}.npy,{k},{folder}s" for folder in "ab" for k in range(6)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["file,label,session", *rows]))
    found = read_matrices(tmp_path / "set", table, table)
    assert found.y.tolist() == [*range(6)] * 2
    assert found.groups.tolist() == ["as"] * 6 + ["bs"] * 6
    table.write_text("\n".join(row.partition("/")[2] for row in rows))
    refused(tmp_path / "set", "it has 3 columns; expected 2, or a header with file and label", table)
    table.write_text("\n".join(row.partition("/")[2].rpartition(",")[0] for row in rows))
    refused(tmp_path / "set", "no value for 12 of 12 files: a/trial0.npy", table)  # two files have this name


def test_what_is_wrong_with_a_table(X, tmp_path):
    fill(tmp_path / "set", X, "{}.npy")
    table, folder = tmp_path / "table.csv", tmp_path / "set"
    table.write_text("0,a\n1,b\n0,b\n")
    refused(folder, "names 0.npy twice, with different values", table)
    table.write_text("0,a\n1,b\n2,\n")
    refused(folder, r"no value for 10 of 12 files: 2\.npy, 3\.npy", table)
    table.write_bytes(b"\xff\xfe")
    refused(folder, "not a text file", table)
    for options in ({"labels": "labels"}, {"subject": 3}):
        refused(folder, r"expected no matrices= or subject=, and a \.csv file", **options)
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_matrices(folder, tmp_path / "none.csv")


def test_what_is_wrong_with_a_folder(X, tmp_path):
    folder = tmp_path / "set"
    (folder / "empty").mkdir(parents=True)
    refused(folder, r"has no file that ends in \.npy, \.csv: it has empty")
    fill(folder, X)
    fill(folder / "left", X[:2])
    refused(folder, r"holds trial.*\.npy and left/trial.*\.npy, at different depths")
    deep = fill(tmp_path / "deep" / "a" / "b", X)
    refused(tmp_path / "deep", "at different depths; expected all files in the folder itself")
    assert len(read_matrices(deep).X) == 12


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("b.npy", np.eye(4), r"b\.npy has shape \(4, 4\), but a\.npy has \(3, 3\): expected the same"),
        ("b.npy", np.ones((3, 2)), r"shape \(3, 2\); expected one square matrix"),
        ("b.npy", np.ones((2, 3, 3)), "expected one square matrix of numbers, not a stack"),
        ("b.npy", np.array([["a"]]), "expected one square matrix of numbers"),
        ("b.npy", np.array([[None]], dtype=object), "pickled"),
        ("b.npy", b"\x93NUMPY", "corrupt, truncated"),
        ("b.csv", "file,label\na,left\n", "expected numbers, got 'a'"),
        ("b.csv", "a,1\nb,2\nc,3\n", "got 'b' in row 1, column 1.*pass it as labels="),
        ("b.csv", "1,2,3\n1,2\n1,2,3\n", "expected 3 numbers in row 2, got 2"),
        ("b.csv", "1 2 3\n4 x 6\n7 8 9\n", "got 'x' in row 2, column 2"),
        ("b.csv", "", r"it has shape \(1, 0\); expected one square matrix.*pass it as labels="),
        ("b.csv", b"\xff\xfe\x00", "not a text file"),
        ("b.csv", "1," * 10**6, "a row of more than"),
    ],
)
def test_the_file_that_differs_is_named(name, content, sentence, tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    if "got 'a'" not in sentence:
        np.save(folder / "a.npy", np.eye(3))
    if isinstance(content, np.ndarray):
        np.save(folder / name, content, allow_pickle=True)
    else:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    refused(folder, sentence)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        read_matrices(folder)


def test_links_and_pipes_are_not_read(X, tmp_path):
    """A folder that was unpacked can hold links to any file of the machine."""
    folder = fill(tmp_path / "set", X)
    np.save(tmp_path / "secret.npy", np.eye(3))
    (folder / "b.npy").symlink_to(tmp_path / "secret.npy")
    refused(folder, "b.npy is a link, which can lead to another file")
    (folder / "b.npy").unlink()
    (folder / "around").symlink_to(folder)
    refused(folder, "is a link")
    (folder / "around").unlink()
    os.mkfifo(folder / "pipe.npy")
    with pytest.raises(FileNotFoundError, match=r"pipe\.npy"):
        read_matrices(folder)


def test_other_separators_and_types(rng, tmp_path):
    A, folder = spd(rng, 3), tmp_path / "set"
    folder.mkdir()
    for name, separator in (("a", ";"), ("b", "\t"), ("c", " "), ("d", ", ")):
        np.savetxt(folder / f"{name}.csv", A, delimiter=separator, fmt="%.17g")
    np.save(folder / "e.npy", A.astype(np.float32))
    np.save(folder / "f.npy", np.asfortranarray(A))
    X = read_matrices(folder).X
    assert X.dtype == np.float64
    assert np.array_equal(X[[0, 1, 2, 3, 5]], np.stack([A] * 5))
    assert np.array_equal(X[4], A.astype(np.float32))


@pytest.mark.parametrize("options", [{}, {"index": False}, {"index_label": "name", "sep": ";"}], ids=str)
def test_matrices_as_pandas_writes_them(options, rng, tmp_path):
    import pandas as pd

    frames = [pd.DataFrame(rng.standard_normal((20, 3)), columns=["left", "up, right", "3"]) for _ in "ab"]
    for name, frame in zip("ab", frames, strict=True):
        frame.corr().to_csv(tmp_path / f"{name}.csv", **options)
    found = read_matrices(tmp_path)
    np.testing.assert_allclose(found.X, [frame.corr() for frame in frames], rtol=1e-15)
    assert found.channels == ("left", "up, right", "3")
    frames[0].cov().rename(columns={"3": "4"}).to_csv(tmp_path / "a.csv")
    refused(tmp_path, "its rows have other names than its columns, left")
    frames[0].cov().rename(columns=str.upper, index=str.upper).to_csv(tmp_path / "a.csv", **options)
    refused(tmp_path, r"b\.csv and a\.csv have different names of rows")


def test_entries_that_are_not_finite_are_read(tmp_path):
    """Whether matrices can be used is for others to say: see `bad_matrices`."""
    (tmp_path / "a.csv").write_text("nan,1\n1,inf\n")
    assert np.isnan(read_matrices(tmp_path).X[0, 0, 0])


def test_signals_are_no_matrices(rng, tmp_path):
    (tmp_path / "run.edf").write_bytes(b"0")
    refused(tmp_path / "run.edf", "holds signals, not matrices: .*read_signals")
    np.savez(tmp_path / "set.npz", X=rng.standard_normal((20, 8, 100)), y=np.arange(20))
    refused(tmp_path / "set.npz", r"These look like signals, \(n, channels, times\)")
    np.savez(tmp_path / "set.npz", X=rng.standard_normal((8, 8, 100)), y=np.arange(100))
    refused(tmp_path / "set.npz", r"It looks like \(d, d, n\)")
