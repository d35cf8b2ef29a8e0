"""Covariance files: every layout comes back as written, every bad file gets its sentence."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.io import savemat

from random_matrices import spd
from spdmetric.io.matrices import read_matrices

LABELS = np.array(["left", "right_hand", "left", "right_hand", "left"])


@pytest.fixture
def X(rng):
    return spd(rng, 5, 3)


def toolbox(X, labels, training=(1, 2, 3), test=(4, 5)):
    data = {"data": X.transpose(1, 2, 0), "labels": np.reshape(labels, (-1, 1)), "user": "A09"}
    return {"data": data | {"idxTraining": np.array(training), "idxTest": np.array(test)}}


# ---------------------------------------------------------------------------
# Layouts


@pytest.mark.parametrize(("matrices", "labels"), [("X", "y"), ("covs", "labels")])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npz(tmp_path, X, matrices, labels, dtype):
    path = tmp_path / "set.npz"
    np.savez(path, **{matrices: X.astype(dtype), labels: LABELS})
    got = read_matrices(path)
    assert got.X.dtype == dtype
    assert np.array_equal(got.X, X.astype(dtype))
    assert np.array_equal(got.y, LABELS)
    assert got.groups is None
    np.savez_compressed(path, **{matrices: X.astype(dtype), labels: LABELS, "groups": [1, 1, 2, 2, 2]})
    assert read_matrices(str(path)).groups.tolist() == [1, 1, 2, 2, 2]


def test_npz_of_several_subjects(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X1=X, y1=np.arange(5), r1=[4, 4, 8, 8, 8], X12=2 * X, y12=np.arange(5) + 5)
    got = read_matrices(path, subject=1)
    assert np.array_equal(got.X, X)
    assert got.groups.tolist() == [4, 4, 8, 8, 8]
    got = read_matrices(path, subject=12)
    assert np.array_equal(got.X, 2 * X)
    assert got.y.tolist() == [5, 6, 7, 8, 9]
    assert got.groups is None


@pytest.mark.parametrize("axes", [(0, 1, 2), (1, 2, 0)], ids=["n, d, d", "d, d, n"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("compressed", [False, True])
def test_mat_with_either_order_of_axes(tmp_path, X, axes, n, compressed):
    path = tmp_path / "set.mat"
    content = {"X": X[:n].transpose(axes), "y": np.arange(n), "groups": np.arange(n) // 2}
    savemat(path, content, do_compression=compressed)
    got = read_matrices(path)
    assert np.array_equal(got.X, X[:n])
    assert np.array_equal(got.y, np.arange(n))
    assert np.array_equal(got.groups, np.arange(n) // 2)


@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(object)], ids=["char matrix", "cell array"])
def test_mat_with_strings(tmp_path, X, labels):
    path = tmp_path / "set.mat"
    savemat(path, {"covs": X, "labels": labels})
    got = read_matrices(path)
    assert np.array_equal(got.y, LABELS)
    assert got.groups is None


def test_mat_of_the_covariance_toolbox(tmp_path, X):
    path = tmp_path / "set.mat"
    savemat(path, toolbox(X, [4, 2, 2, 1, 4], training=(2, 4, 5), test=(1, 3)))
    got = read_matrices(path)
    assert np.array_equal(got.X, X)
    assert got.y.tolist() == [4, 2, 2, 1, 4]
    assert got.groups.tolist() == ["E", "T", "E", "T", "T"]


# ---------------------------------------------------------------------------
# Sentences


def refused(path, match, kind=ValueError, **kwargs):
    with pytest.raises(kind, match=match) as caught:
        read_matrices(path, **kwargs).labels  # noqa: B018
    assert path.stem in str(caught.value)


def test_missing_file(tmp_path):
    refused(tmp_path / "none.npz", "There is no file", FileNotFoundError)
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    refused(folder, r"is a folder without a file that ends in \.npy, \.csv: it has nothing")


def test_unknown_suffix(tmp_path):
    path = tmp_path / "set.csv"
    path.write_text("1,2")
    refused(path, r"unknown suffix '\.csv'; expected one of \.npz, \.mat")


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_missing_keys(tmp_path, X, suffix):
    path = tmp_path / f"set{suffix}"
    write = np.savez if suffix == ".npz" else lambda path, **arrays: savemat(path, arrays)
    write(path, A=X, labels=LABELS)
    refused(path, "expected the arrays X and y, or covs and labels; found A, labels")
    write(path, X=X)
    refused(path, "set has no labels: store them as y or labels")
    write(path, X=X, labels=LABELS)
    assert np.array_equal(read_matrices(path).y, LABELS)
    refused(path, "expected the arrays X3 and y3 of subject 3; found X, labels.*without subject=", subject=3)
    write(path, X1=X, y1=LABELS, X7=X)
    refused(path, "holds several subjects: pass subject=, one of 1, 7")
    refused(path, "has no subject 2; it holds 1, 7", subject=2)
    refused(path, "expected the arrays X7 and y7 of subject 7; found X1, y1, X7", subject=7)


def test_empty_archive(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path)
    refused(path, "found nothing")


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
def test_counts(tmp_path, X, suffix):
    path = tmp_path / f"set{suffix}"
    write = np.savez if suffix == ".npz" else lambda path, **arrays: savemat(path, arrays)
    write(path, X=X, y=np.arange(4))
    refused(path, r"y has shape \(.*4.*\) for 5 matrices; expected one entry for each")
    write(path, X=X, y=np.arange(5), groups=np.arange(6))
    refused(path, r"groups has shape \(.*6.*\) for 5 matrices")
    write(path, X=np.concatenate([X, X[:1]]), y=np.ones((2, 3)))
    refused(path, r"y has shape \(2, 3\) for 6 matrices")


def test_shapes(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X=X.transpose(1, 2, 0), y=LABELS)
    refused(path, r"X has shape \(3, 3, 5\); expected \(n, d, d\).*save its transpose\(2, 0, 1\)")
    np.savez(path, X=X[0], y=LABELS)
    refused(path, r"X has shape \(3, 3\); expected \(n, d, d\), a stack of square matrices\.$")
    np.savez(path, X=X.astype(str), y=LABELS)
    refused(path, "X has dtype <U.*expected matrices of numbers")
    path = tmp_path / "set.mat"
    savemat(path, {"X": X[:, :2], "y": LABELS})
    refused(path, r"X has shape \(5, 2, 3\)")
    savemat(path, {"X": X[0], "y": LABELS})
    refused(path, r"X has shape \(3, 3\)")


def test_toolbox_structure(tmp_path, X):
    path = tmp_path / "set.mat"
    savemat(path, toolbox(X, [4, 2, 2, 1]))
    refused(path, r"data\.labels has shape \(4, 1\) for 5 matrices")
    for training, test in [((0, 1, 2), (3, 4)), ((1, 2, 3), (3, 4)), ((1, 2), (3, 4)), ((1, 2, 3), (4, 6))]:
        savemat(path, toolbox(X, [4, 2, 2, 1, 4], training, test))
        refused(path, "idxTraining and idxTest should name each of the 5 matrices once, by numbers 1 to 5")
    savemat(path, {"data": toolbox(X, [4, 2, 2, 1, 4])["data"] | {"data": X}})
    refused(path, r"data\.data has shape \(5, 3, 3\); expected \(d, d, n\)")
    for other in (np.ones(4), {"data": X}):
        savemat(path, {"data": other})
        refused(path, "structure data with the fields data, labels, idxTraining, idxTest; found data without")


def test_pickled_objects(tmp_path, X):
    path = tmp_path / "set.npz"
    np.savez(path, X=X, y=LABELS.astype(object))
    refused(path, r"holds pickled Python objects, which are refused.*y\.astype\(str\)")
    path.write_bytes(pickle.dumps({"X": X}))
    refused(path, "holds pickled Python objects")
    # Nobody asked for the pickled one: it is not read.
    np.savez(path, X=X, y=LABELS, comment=np.array([{}], dtype=object))
    assert np.array_equal(read_matrices(path).X, X)


@pytest.mark.parametrize("suffix", [".npz", ".mat"])
@pytest.mark.parametrize("keep", [0.0, 0.02, 0.3, 0.7, 0.98])
def test_truncated(tmp_path, rng, suffix, keep):
    path = tmp_path / f"set{suffix}"
    arrays = {"X": spd(rng, 20, 6), "y": np.arange(20)}
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        savemat(path, arrays)
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content))])
    refused(path, "corrupt, truncated or of another format")


def test_corrupt(tmp_path, X, rng):
    path = tmp_path / "set.npz"
    np.savez_compressed(path, X=X, y=LABELS)
    content = bytearray(path.read_bytes())
    content[80:120] = bytes(40)
    path.write_bytes(content)
    refused(path, "corrupt, truncated or of another format")
    for suffix in (".npz", ".mat"):
        path = tmp_path / f"noise{suffix}"
        path.write_bytes(b"#" + rng.bytes(5000))
        refused(path, "corrupt, truncated or of another format")


def test_matlab_7_3(tmp_path):
    path = tmp_path / "set.mat"
    header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    path.write_bytes(header + bytes(400))
    refused(path, r"MATLAB 7\.3 \(HDF5\) file; save it again with save\(\.\.\., '-v7'\)")


# ---------------------------------------------------------------------------
# Real data


def test_motor_imagery(data_folder):
    got = read_matrices(data_folder / "bci2a-a09" / "MotorImagery.mat")
    assert got.X.shape == (576, 22, 22)
    assert got.groups.tolist() == 288 * ["T"] + 288 * ["E"]
    for session in "TE":
        assert np.bincount(got.y[got.groups == session]).tolist() == [0, 72, 72, 72, 72]
    assert np.abs(got.X - got.X.transpose(0, 2, 1)).max() < 1e-9 * np.abs(got.X).max()


def test_cho2017(data_folder):
    got = read_matrices(data_folder / "cho2017" / "subject01.npz")
    assert got.X.shape == (200, 16, 16)
    assert np.unique(got.y).tolist() == ["left_hand", "right_hand"]


def test_eegmmi_subjects(data_folder):
    path = data_folder / "eegmmi" / "covariances_S001-S020.npz"
    got = read_matrices(path, subject=20)
    assert got.X.shape == (45, 64, 64)
    assert got.X.dtype == np.float32
    assert np.unique(got.groups).tolist() == [4, 8, 12]
    refused(path, r"has no subject 29; it holds 1, 2, .*, 20\.", subject=29)
