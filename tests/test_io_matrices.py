"""The reader of people's files: every layout comes back as written, every bad file gets its sentence."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from random_matrices import spd
from spdmetric.io.columns import read_column
from spdmetric.io.matrices import read_matrices

LABELS = np.array(["left", "right_hand", "left", "right_hand", "left"])
GROUPS = [1, 1, 2, 2, 2]


@pytest.fixture
def X(rng):
    return spd(rng, 5, 3)


def write_hdf5(path, arrays):
    """Write as MATLAB 7.3 does: 512 bytes of its own, axes slowest first, text as numbers."""
    h5py = pytest.importorskip("h5py", reason="MATLAB 7.3 files need h5py")
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, value in arrays.items():
            value = np.asarray(value)
            if value.dtype.kind in "UO":
                texts = [np.array([[ord(c)] for c in str(v)], dtype=np.uint16) for v in value]
                cells = [file.create_dataset(f"#refs#/{name}{i}", data=t) for i, t in enumerate(texts)]
                dataset = file.create_dataset(name, data=[[cell.ref for cell in cells]], dtype=h5py.ref_dtype)
                dataset.attrs["MATLAB_class"] = np.bytes_("cell")
            else:
                dataset = file.create_dataset(name, data=value.T, chunks=True, compression="gzip")
                dataset.attrs["MATLAB_class"] = np.bytes_("double")


# ---------------------------------------------------------------------------
# Layouts


@pytest.mark.parametrize(("matrices", "labels"), [("X", "y"), ("covs", "labels")])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, X, matrices, labels, save):
    path = tmp_path / "set.npz"
    save(path, **{matrices: X.astype(np.float32), labels: LABELS, "groups": GROUPS})
    got = read_matrices(path)
    assert got.X.dtype == np.float32
    assert np.array_equal(got.X, X.astype(np.float32))
    assert np.array_equal(got.y, LABELS)
    assert got.groups.tolist() == GROUPS
    assert got.name == "set"
    assert got.notes == ()


def test_labels_and_groups_may_be_absent(tmp_path, X):
    np.savez(tmp_path / "set.npz", covs=X)
    got = read_matrices(tmp_path / "set.npz")
    assert got.y is None
    assert got.groups is None


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0)], ids=["n, d, d", "d, d, n"])
@pytest.mark.parametrize("write", [savemat, write_hdf5], ids=["v5", "v7.3"])
@pytest.mark.parametrize("n", [3, 5])
def test_mat_with_either_order_of_axes(tmp_path, X, axes, write, n):
    path = tmp_path / "set.mat"
    write(path, {"X": X[:n].transpose(axes), "y": np.arange(n, dtype=float)[:, None] + 1})
    got = read_matrices(path)
    assert np.array_equal(got.X, X[:n])
    assert got.y.tolist() == list(range(1, n + 1))
    assert got.y.dtype.kind == "i"  # MATLAB's doubles, but whole
    if axes == (1, 2, 0):
        assert "MATLAB" in got.notes[0]
        assert str((n, 3, 3)) in got.notes[0]
    else:
        assert got.notes == ()


@pytest.mark.parametrize("write", [savemat, write_hdf5], ids=["v5", "v7.3"])
def test_mat_with_words(tmp_path, X, write):
    path = tmp_path / "set.mat"
    write(path, {"covs": X, "labels": LABELS.astype(object), "groups": np.array(GROUPS)[:, None]})
    got = read_matrices(path)
    assert np.array_equal(got.y, LABELS)
    assert got.groups.tolist() == GROUPS


@pytest.mark.parametrize("labels", [LABELS.astype("S"), LABELS.tolist()], ids=["fixed", "variable"])
def test_text_of_hdf5_says_where_labels_can_be(tmp_path, X, labels):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "set.mat", "w") as file:
        file["X"], file["y"] = X, labels
    refused(tmp_path / "set.mat", r"y is text as HDF5 has it, not MATLAB; .* \.csv file, labels=FILE")


def test_npy_with_csv(tmp_path, X):
    np.save(tmp_path / "set.npy", X)
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join(LABELS) + "\n")
    (tmp_path / "groups.csv").write_text("\n".join(map(str, GROUPS)) + "\n")
    assert read_matrices(tmp_path / "set.npy").y is None
    got = read_matrices(tmp_path / "set.npy", tmp_path / "labels.csv", tmp_path / "groups.csv")
    assert np.array_equal(got.X, X)
    assert np.array_equal(got.y, LABELS)
    assert got.groups.tolist() == GROUPS


def test_groups_in_csv_stay_as_many_as_they_are(tmp_path, X):
    np.savez(tmp_path / "set.npz", X=X, y=LABELS)
    (tmp_path / "groups.csv").write_text("1_11\n11_1\n01\n1\n001\n")
    got = read_matrices(tmp_path / "set.npz", groups=tmp_path / "groups.csv").groups
    assert got.tolist() == ["1_11", "11_1", "01", "1", "001"]


def test_two_arrays_of_one_name_are_refused(tmp_path, X):
    np.savez(tmp_path / "set.npz", X=X)
    with zipfile.ZipFile(tmp_path / "set.npz", "a") as archive:
        archive.writestr("X", npy_header((1, 1, 1)) + bytes(8))
    refused(tmp_path / "set.npz", "two arrays with the name X")


def test_other_arrays_of_the_file_may_be_named(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X=X, y=LABELS, session=GROUPS, hand=np.arange(5))
    got = read_matrices(path, "hand", "session")
    assert got.y.tolist() == [0, 1, 2, 3, 4]
    assert got.groups.tolist() == GROUPS
    with pytest.raises(ValueError, match=r"no array feet: give one of X, y, session, hand, or a \.csv"):
        read_matrices(path, "feet")


def test_subjects(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X1=X, y1=LABELS, r1=GROUPS, X2=2 * X, y2=LABELS)
    assert read_matrices(path, subject=1).groups.tolist() == GROUPS
    assert np.array_equal(read_matrices(path, subject=2).X, 2 * X)
    with pytest.raises(ValueError, match="several subjects"):
        read_matrices(path)


def test_toolbox_file(data_folder):
    path = data_folder / "bci2a-a09" / "MotorImagery.mat"
    if not path.is_file():
        pytest.skip("bci2a-a09/MotorImagery.mat is not in SPDMETRIC_DATA")
    got = read_matrices(path)
    assert got.X.shape == (576, 22, 22)
    assert set(got.groups) == {"T", "E"}


# ---------------------------------------------------------------------------
# Columns


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
        (b"1,2\n3,4\n5,6\n", "several columns"),
        (b"index,label\n0,a\n1,\n2,a\n", "entry 1 is empty"),
        (b"\xff\xfe\n1\n2\n", "not a text file"),
        (b"1\nnan\n2\n", r"the column\[1\] is nan"),
        (b"1\nNaN\n2\n", r"the column\[1\] is nan"),
    ],
)
def test_bad_column_gets_a_sentence(tmp_path, content, message):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_column(path, 3)
    assert str(path) in str(error.value)


# ---------------------------------------------------------------------------
# Bad files


def test_missing_and_unknown(tmp_path):
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_matrices(tmp_path / "set.npz")
    (tmp_path / "set.txt").touch()
    with pytest.raises(ValueError, match=r"unknown suffix '.txt'; expected one of \.npz, \.mat, \.npy"):
        read_matrices(tmp_path / "set.txt")


def test_a_missing_companion_is_the_one_that_is_named(tmp_path, X):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(FileNotFoundError) as error:
        read_matrices(tmp_path / "X.npy", labels=tmp_path / "y.csv")
    assert str(error.value) == f"There is no file {tmp_path / 'y.csv'}: nothing has this name."


def test_bytes_are_the_words_that_they_spell(tmp_path, X):
    np.savez(tmp_path / "set.npz", X=X, y=np.char.encode(LABELS, "utf-8"))
    y = read_matrices(tmp_path / "set.npz").y
    assert y.dtype.kind == "U"
    assert y.tolist() == LABELS.tolist()


def refused(path, message):
    with pytest.raises(ValueError, match=message) as error:
        read_matrices(path)
    assert str(path) in str(error.value)


def test_pickles_are_refused(tmp_path, X):
    np.savez(tmp_path / "a.npz", X=X, y=np.array([None] * 5))
    np.save(tmp_path / "b.npy", np.array([None] * 5))
    (tmp_path / "c.npy").write_bytes(pickle.dumps(X))
    for name in ("a.npz", "b.npy", "c.npy"):
        refused(tmp_path / name, "pickled")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"A": np.eye(3)}, "expected the arrays X and y"),
        ({"X": np.eye(3), "y": np.zeros(3)}, r"shape \(3, 3\); expected \(n, d, d\)"),
        ({"X": np.ones((2, 2, 5)), "y": np.zeros(5)}, "transpose"),
        ({"X": np.ones((4, 2, 2)), "y": np.zeros(5)}, r"shape \(5,\) for 4 matrices"),
        ({"X": np.ones((0, 2, 2)), "y": np.zeros(0)}, "holds no matrices"),
        ({"X": np.ones((2, 2, 2)), "y": np.array([1, np.nan])}, r"y\[1\] is nan"),
        ({"X": np.array([[["a"]]]), "y": [1]}, "expected matrices of numbers"),
        (
            {"X": np.ones((2, 2, 2)), "y": np.array(["a", " "])},
            r"y\[1\] is empty; expected a number or a word",
        ),
        (
            {"X": np.ones((2, 2, 2)), "y": np.array([b"\xff", b"b"])},
            "y holds bytes that are no text in UTF-8",
        ),
        (
            {"X": np.ones((2, 2, 2)), "y": np.array([1, 2], "M8[D]")},
            r"datetime64\[D\]; expected words or numb",
        ),
    ],
)
def test_bad_arrays_get_a_sentence(tmp_path, arrays, message):
    np.savez(tmp_path / "set.npz", **arrays)
    refused(tmp_path / "set.npz", message)


def npy_header(shape) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


def test_a_header_that_promises_too_much_allocates_nothing(tmp_path):
    """A terabyte declared: read whole it would be a MemoryError at best."""
    header = npy_header((10**6, 400, 400))
    (tmp_path / "a.npy").write_bytes(header + bytes(1000))
    refused(tmp_path / "a.npy", "declares 1280000000")
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as archive:
        archive.writestr("X.npy", header + bytes(1000))
    refused(tmp_path / "b.npz", "damaged")


def test_a_bomb_is_refused(tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("X.npy", "w", force_zip64=True) as member,
    ):
        member.write(npy_header((10, 1000, 1000)))
        for _ in range(80):
            member.write(bytes(10**6))
    refused(tmp_path / "a.npz", "more than 100 times")


KINDS = ("npz", "npy", "v5.mat", "v5z.mat")


def written(kind, path):
    X = spd(np.random.default_rng(0), 6, 3)
    y = np.arange(6) % 2
    if kind == "npz":
        np.savez_compressed(path, X=X, y=y)
    elif kind == "npy":
        np.save(path, X)
    else:
        savemat(path, {"X": X, "y": y}, do_compression=kind == "v5z.mat")
    return path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_damaged_files_are_read_or_refused_with_a_sentence(tmp_path_factory, kind, data):
    path = tmp_path_factory.mktemp("damaged") / f"set.{kind.split('.')[-1]}"
    content = bytearray(written(kind, path))
    cut = data.draw(st.integers(0, len(content)), label="cut")
    flips = data.draw(st.lists(st.integers(0, len(content) * 8 - 1), max_size=8), label="flips")
    for flip in flips:
        content[flip // 8] ^= 1 << flip % 8
    path.write_bytes(content[:cut])
    try:
        got = read_matrices(path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017 - the file may as well be read
    else:
        assert got.X.ndim == 3
