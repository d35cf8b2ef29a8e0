"""The reader of people's files: every layout comes back as written, every bad file gets its sentence."""

from __future__ import annotations

import io
import pickle
import zipfile

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from random_matrices import spd
from spdmetric.io.matrices import read_matrices
from spdmetric.io.tables import read_column

LABELS = np.array(["left", "right_hand", "left", "right_hand", "left"])
GROUPS = [1, 1, 2, 2, 2]


@pytest.fixture
def X(rng):
    return spd(rng, 5, 3)


def write_hdf5(path, arrays):
    """Write as MATLAB 7.3 does: 512 bytes of its own, axes slowest first, text as numbers."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            value = np.asarray(value)
            if value.dtype.kind in "UO":
                codes = [np.array([[ord(c)] for c in str(v)], dtype=np.uint16) for v in value]
                texts = [v if isinstance(v, np.ndarray) else t for v, t in zip(value, codes, strict=True)]
                cells = [file.create_dataset(f"#refs#/{name}{i}", data=t) for i, t in enumerate(texts)]
                dataset = file.create_dataset(name, data=[[cell.ref for cell in cells]], dtype=h5py.ref_dtype)
                dataset.attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                dataset = file.create_dataset(name, data=value.T, chunks=True, compression="gzip")
                dataset.attrs["MATLAB_class"] = np.bytes_("double")


def write(path, **arrays):
    savemat(path, arrays) if path.suffix == ".mat" else np.savez(path, **arrays)


def refused(path, message, kind=ValueError, **options):
    with pytest.raises(kind, match=message) as error:
        read_matrices(path, **options)
    assert str(path) in str(error.value)


# -- Layouts ---------------------------------------------------------------------------


@pytest.mark.parametrize(("matrices", "labels"), [("X", "y"), ("covs", "labels")])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npz(tmp_path, X, matrices, labels, save, dtype):
    path = tmp_path / "set.npz"
    save(path, **{matrices: X.astype(dtype), labels: LABELS, "groups": GROUPS})
    got = read_matrices(str(path))
    assert got.X.dtype == dtype
    assert np.array_equal(got.X, X.astype(dtype))
    assert np.array_equal(got.labels, LABELS)
    assert got.groups.tolist() == GROUPS
    assert (got.name, got.notes) == ("set", ())
    save(path, **{matrices: X})
    got = read_matrices(path)
    assert (got.y, got.groups) == (None, None)
    with pytest.raises(ValueError, match="set has no labels: store them as y, or give labels="):
        got.labels  # noqa: B018


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0)], ids=["n, d, d", "d, d, n"])
@pytest.mark.parametrize(
    "save",
    [savemat, lambda path, arrays: savemat(path, arrays, do_compression=True), write_hdf5],
    ids=["v5", "v7", "v7.3"],
)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_mat_with_either_order_of_axes(tmp_path, X, axes, save, n):
    path = tmp_path / "set.mat"
    save(path, {"X": X[:n].transpose(axes), "y": np.arange(n, dtype=float)[:, None] + 1})
    got = read_matrices(path)
    assert np.array_equal(got.X, X[:n])
    assert got.y.tolist() == list(range(1, n + 1))
    assert got.y.dtype.kind == "i"  # MATLAB's doubles, but whole
    if axes == (1, 2, 0) and n > 1:
        assert "MATLAB" in got.notes[0]
        assert str((n, 3, 3)) in got.notes[0]
    elif n > 1:
        assert got.notes == ()


@pytest.mark.parametrize("save", [savemat, write_hdf5], ids=["v5", "v7.3"])
@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(object)], ids=["char matrix", "cell array"])
def test_mat_with_words(tmp_path, X, save, labels):
    path = tmp_path / "set.mat"
    save(path, {"covs": X, "labels": labels, "groups": np.array(GROUPS)[:, None]})
    got = read_matrices(path)
    assert np.array_equal(got.y, LABELS)
    assert got.groups.tolist() == GROUPS


@pytest.mark.parametrize("save", [savemat, write_hdf5], ids=["v5", "v7.3"])
@pytest.mark.parametrize(
    ("cell", "sentence"),
    [("", r"y\[1\] is empty|cell 1 of y is empty"), (np.eye(2), r"y\[1\] is an array of shape \(2, 2\)")],
)
def test_cells_without_a_word(tmp_path, X, save, cell, sentence):
    """They became the class "[]", or the text of a matrix."""
    labels = np.array([*"abcde"], dtype=object)
    labels[1] = cell
    save(tmp_path / "set.mat", {"X": X, "y": labels})
    refused(tmp_path / "set.mat", sentence)


@pytest.mark.parametrize("y", [LABELS.astype(">U10"), np.arange(5, dtype=np.float16)], ids=str)
def test_labels_of_any_type(tmp_path, X, y):
    np.savez(tmp_path / "set.npz", X=X, y=y)
    assert read_matrices(tmp_path / "set.npz").y.tolist() == y.tolist()


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_matrices_by_their_name(tmp_path, X, suffix):
    path = tmp_path / f"set{suffix}"
    write(path, C=X, hand=LABELS, X=X[:2])
    got = read_matrices(path, "hand", matrices="C")
    assert np.array_equal(got.X, X)
    assert np.array_equal(got.y, LABELS)
    refused(path, "matrices='D': expected the name of an array; it has C, hand, X", matrices="D")


@pytest.mark.parametrize("labels", [LABELS.astype("S"), LABELS.tolist()], ids=["fixed", "variable"])
def test_text_of_hdf5_says_where_labels_can_be(tmp_path, X, labels):
    with h5py.File(tmp_path / "set.mat", "w") as file:
        file["X"], file["y"] = X, labels
    refused(tmp_path / "set.mat", r"y has the type .*words as MATLAB stores them; .* \.csv file")


def test_npy_with_csv(tmp_path, X):
    np.save(tmp_path / "set.npy", X)
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join(LABELS) + "\n")
    (tmp_path / "groups.csv").write_text("1_11\n11_1\n01\n1\n001\n")
    assert read_matrices(tmp_path / "set.npy").y is None
    got = read_matrices(tmp_path / "set.npy", tmp_path / "labels.csv", tmp_path / "groups.csv")
    assert np.array_equal(got.X, X)
    assert np.array_equal(got.y, LABELS)
    assert got.groups.tolist() == ["1_11", "11_1", "01", "1", "001"]
    with pytest.raises(FileNotFoundError) as error:
        read_matrices(tmp_path / "set.npy", labels=tmp_path / "y.csv")
    assert str(error.value) == f"There is no file {tmp_path / 'y.csv'}: nothing has this name."


def test_other_arrays_of_the_file_may_be_named(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X=X, y=LABELS, session=GROUPS, hand=np.char.encode(LABELS, "utf-8"))
    got = read_matrices(path, "hand", "session")
    assert got.y.dtype.kind == "U"  # bytes are the words that they spell
    assert np.array_equal(got.y, LABELS)
    assert got.groups.tolist() == GROUPS
    refused(path, r"no array feet: give one of X, y, session, hand, or a \.csv", labels="feet")


def test_subjects(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X1=X, y1=LABELS, r1=GROUPS, X12=2 * X, y12=LABELS, X7=X)
    assert read_matrices(path, subject=1).groups.tolist() == GROUPS
    got = read_matrices(path, subject=12)
    assert np.array_equal(got.X, 2 * X)
    assert got.groups is None
    refused(path, "holds several subjects: pass subject=, one of 1, 7, 12")
    for subject in (2, 7):
        refused(path, f"arrays X{subject} and y{subject} .* it holds subjects 1, 7, 12", subject=subject)
    np.savez(path, X=X, labels=LABELS)
    refused(path, "expected the arrays X3 and y3 of subject 3; .*leave out subject=", subject=3)


# -- Columns ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n2\n3\n", [1, 2, 3]),
        ("y\r\n1.0\r\n2.0\r\n3.0\r\n", [1, 2, 3]),
        ("\ufeffname\na\nb\nc\n", ["a", "b", "c"]),
        ("index,label\n0,a\n1,b\n2,a\n", ["a", "b", "a"]),
        ("0.5\n1\n2\n", [0.5, 1.0, 2.0]),
        ('"left, up"\nb\nc\n', ["left, up", "b", "c"]),
        # Numbers only where each is what Python prints: these became 111, 111, 2 and 1, 1, 1.
        ("1_11\n11_1\n2\n", ["1_11", "11_1", "2"]),
        ("01\n1\n001\n", ["01", "1", "001"]),
        ("1\n1.0\n2\n", ["1", "1.0", "2"]),
        ("+1\n2\n3\n", ["+1", "2", "3"]),
        ("-1\n1\n0\n", [-1, 1, 0]),
        ("1e-05\n2.5\n1e+22\n", [1e-5, 2.5, 1e22]),
        (f"{2**63}\n1\n2\n", [f"{2**63}", "1", "2"]),
        ("Nan\nAnn\nUma\n", ["Nan", "Ann", "Uma"]),
        (f"{2**53}\n{2**53 + 1}\n1.0\n", [f"{2**53}", f"{2**53 + 1}", "1.0"]),  # in float64 two are one
        ("9" * 400 + "\n1\n2.5\n", ["9" * 400, "1", "2.5"]),
        ("file;label\n1,5;a\n2,5;b\n3,5;a\n", ["a", "b", "a"]),
        ("file\tlabel\n1\ta\n2\tb;c\n3\ta\n", ["a", "b;c", "a"]),
        ("file|label\n1|a\n2|b;c\n3|a\n", ["a", "b;c", "a"]),
        ('label\n"a;b"\nc\nc \n', ["a;b", "c", "c "]),
    ],
)
def test_column(tmp_path, text, expected):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_column(path, 3).tolist() == expected


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\n2\n", "2 entries for 3 matrices"),
        (b"label\n1\n2\n", "2 entries for 3 matrices"),
        (b"", "0 entries"),
        # What stands in the first row is a label, not a header to be passed over.
        (b"a\na\nb\nb\n", "4 entries for 3 matrices"),
        (b"1\n2\n3\n4\n", "4 entries for 3 matrices"),
        (b"1,2\n3,4\n5,6\n", "it has 2 columns; expected 1, or a header with label"),
        (b"index,label\n0,a\n1,\n2,a\n", r"the column\[1\] is empty"),
        (b"\xff\xfe\n1\n2\n", "not a text file"),
        (b"1\nNaN\n2\n", r"the column\[1\] is nan"),
        (b"s1;minus\ns1;plus\ns2;plus\n", "it has 2 columns; expected 1, or a header"),
        (b"s1|minus\ns1|plus\ns2|plus\n", "it has 2 columns; expected 1, or a header"),
        (b'left\nright\n"both",feet\n', "several columns, with ',' between, but its first row has one"),
        (b"label\ns1;minus\ns1;plus\ns2;plus\n", "several columns, with ';' between, but its first row has"),
    ],
)
def test_bad_column_gets_a_sentence(tmp_path, content, message):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_column(path, 3)
    assert str(path) in str(error.value)


# -- Bad files -------------------------------------------------------------------------


def test_missing_and_unknown(tmp_path):
    refused(tmp_path / "none.npz", "There is no file", FileNotFoundError)
    (tmp_path / "set.txt").touch()
    refused(tmp_path / "set.txt", r"unknown suffix '.txt'; .* X and y, \.npz, \.mat, \.npy")


def test_pickles_are_refused(tmp_path, X):
    np.savez(tmp_path / "a.npz", X=X, y=np.array([None] * 5))
    np.save(tmp_path / "b.npy", np.array([None] * 5))
    for name in ("c.npy", "d.npz"):
        (tmp_path / name).write_bytes(pickle.dumps(X))
    for name in ("a.npz", "b.npy", "c.npy", "d.npz"):
        refused(tmp_path / name, r"holds pickled Python objects, which are refused.*y\.astype\(str\)")
    # Nobody asked for the pickled one: it is not read.
    np.savez(tmp_path / "a.npz", X=X, y=LABELS, comment=np.array([{}], dtype=object))
    assert np.array_equal(read_matrices(tmp_path / "a.npz").X, X)


TWO = np.ones((2, 2, 2))
BAD_ARRAYS = [
    ({}, "found nothing"),
    ({"A": np.eye(3), "labels": [1]}, "expected the arrays X and y, or covs and labels; found A, labels"),
    ({"X": np.eye(3), "y": np.zeros(3)}, r"shape \(3, 3\); expected \(n, d, d\), a stack of"),
    ({"X": np.ones((2, 2, 5)), "y": np.zeros(5)}, r"save its transpose\(2, 0, 1\)"),
    ({"X": np.ones((4, 2, 2)), "y": np.zeros(5)}, r"shape \(5,\) for 4 matrices; expected one entry"),
    ({"X": np.ones((6, 2, 2)), "y": np.ones((2, 3))}, r"y has shape \(2, 3\) for 6 matrices"),
    ({"X": TWO, "y": [1, 2], "groups": [1, 2, 3]}, r"groups has shape \(3,\) for 2 matrices"),
    ({"X": np.ones((0, 2, 2)), "y": np.zeros(0)}, r"shape \(0, 2, 2\); expected matrices"),
    ({"X": TWO, "y": np.array([1, np.nan])}, r"y\[1\] is nan"),
    ({"X": np.array([[["a"]]]), "y": [1]}, "expected matrices of numbers"),
    ({"X": TWO, "y": np.array(["a", " "])}, r"y\[1\] is empty; expected a number or a word"),
    ({"X": TWO, "y": np.array([b"\xff", b"b"])}, "UnicodeDecodeError"),
    ({"X": TWO, "y": np.array([1, 2], "M8[D]")}, r"datetime64\[D\]; expected words or numbers"),
]


@pytest.mark.parametrize(("arrays", "message"), BAD_ARRAYS)
def test_bad_arrays_get_a_sentence(tmp_path, arrays, message):
    np.savez(tmp_path / "set.npz", **arrays)
    refused(tmp_path / "set.npz", message)


def test_two_arrays_of_one_name_are_refused(tmp_path, X):
    np.savez(tmp_path / "set.npz", X=X)
    with zipfile.ZipFile(tmp_path / "set.npz", "a") as archive:
        archive.writestr("X", npy_header((1, 1, 1)) + bytes(8))
    refused(tmp_path / "set.npz", "two arrays with the name X")


def npy_header(shape) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_truncated_and_other_files(tmp_path, rng, suffix):
    path = tmp_path / f"set{suffix}"
    write(path, X=spd(rng, 20, 6), y=np.arange(20))
    content = path.read_bytes()
    for keep in (0.0, 0.02, 0.3, 0.7, 0.98):
        path.write_bytes(content[: int(keep * len(content))])
        refused(path, "corrupt, truncated or of another format")
    path.write_bytes(b"#" + rng.bytes(5000))
    refused(path, "corrupt, truncated or of another format")
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(400))
    refused(path, "corrupt, truncated or of another format")


# -- Real data -------------------------------------------------------------------------


def test_real_files(data_folder):
    got = read_matrices(data_folder / "cho2017" / "subject01.npz")
    assert got.X.shape == (200, 16, 16)
    assert np.unique(got.y).tolist() == ["left_hand", "right_hand"]
    path = data_folder / "eegmmi" / "covariances_S001-S020.npz"
    got = read_matrices(path, subject=20)
    assert (got.X.shape, got.X.dtype) == ((45, 64, 64), np.float32)
    assert np.unique(got.groups).tolist() == [4, 8, 12]
    refused(path, "it holds subjects 1, 2, .*, 20", subject=29)
