"""Signals: arrays, MNE's epochs, EDF and GDF recordings come back as they were, or get a sentence."""

import sys
from pathlib import Path

import mne
import numpy as np
import pytest
from scipy.io import savemat

from formats import write_edf, write_gdf
from reproduction.datasets import load_eegmmi, sample_covariances
from spdmetric.io.signals import Recipe, estimate_covariances, event_labels, holds_signals, read_signals

N, CHANNELS, TIMES = 6, 3, 40
LABELS = np.array(["left", "right"])[np.arange(N) % 2]


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, CHANNELS, TIMES))


def refused(path, sentence, **options):
    with pytest.raises(ValueError, match=sentence) as caught:
        read_signals(path, **options)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


# -- Arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("suffix", [".npz", ".npy", ".mat"])
def test_arrays(suffix, dtype, X, tmp_path):
    stored, path, labels = (10 * X).astype(dtype), tmp_path / f"set{suffix}", None
    if suffix == ".npz":
        np.savez(path, X=stored, y=LABELS, groups=np.arange(N) // 2)
    elif suffix == ".mat":
        savemat(path, {"X": stored, "y": LABELS, "groups": np.arange(N) // 2})
    else:
        np.save(path, stored)
        labels = tmp_path / "labels.csv"
        labels.write_text("label\n" + "\n".join(LABELS))
    found = read_signals(path, labels)
    assert found.X.dtype == np.float64
    assert np.array_equal(found.X, stored)
    assert found.y.tolist() == LABELS.tolist()
    assert (found.name, found.recipe.channels, found.rate, found.notes) == ("set", None, None, ())
    assert found.recipe == Recipe("array")
    if suffix != ".npy":
        assert found.groups.tolist() == [0, 0, 1, 1, 2, 2]
    assert holds_signals(path)


def test_trials_along_the_last_axis_of_matlab(X, tmp_path):
    path = tmp_path / "set.mat"
    savemat(path, {"X": X.transpose(1, 2, 0), "y": np.arange(N)})
    found = read_signals(path)
    assert np.array_equal(found.X, X)
    assert found.notes == ("X is stored as (3, 40, 6), as MATLAB does, and was read as (6, 3, 40).",)


def test_arrays_of_several_subjects(X, tmp_path):
    np.savez(tmp_path / "set.npz", X3=X, y3=LABELS, r3=np.arange(N))
    assert read_signals(tmp_path / "set.npz", subject=3).groups.tolist() == list(range(N))
    refused(tmp_path / "set.npz", "pass subject=, one of 3")
    assert holds_signals(tmp_path / "set.npz", subject=3)


@pytest.mark.parametrize(
    ("content", "sentence", "options"),
    [
        ({"X": np.ones((6, 4))}, r"shape \(6, 4\); expected real numbers, \(n, channels, times\)", {}),
        ({"X": np.ones((0, 4, 5))}, r"shape \(0, 4, 5\)", {}),
        ({"X": np.ones((6, 4, 5), complex)}, "dtype complex128 .* expected real numbers", {}),
        ({"X": np.ones((6, 4, 5)), "y": np.arange(5)}, r"y has shape \(5,\) for 6 matrices", {}),
        (
            {"X": np.ones((6, 4, 5))},
            "leave out band=, window=, without meaning for signals of type array",
            {"band": (1, 2), "window": (0, 1)},
        ),
        ({"Z": np.ones((6, 4, 5))}, "expected the arrays X and y", {}),
    ],
)
def test_arrays_that_are_none(content, sentence, options, tmp_path):
    np.savez(tmp_path / "set.npz", **content)
    refused(tmp_path / "set.npz", sentence, **options)


def test_matrices_are_no_signals(tmp_path):
    np.savez(tmp_path / "set.npz", X=np.stack([np.eye(3)] * 6))
    assert not holds_signals(tmp_path / "set.npz")
    np.save(tmp_path / "set.npy", np.stack([np.eye(3)] * 6))
    assert not holds_signals(tmp_path / "set.npy")
    assert not holds_signals(tmp_path)
    with pytest.raises(FileNotFoundError):
        holds_signals(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="unknown suffix"):
        holds_signals(Path(__file__))


def test_a_recipe_is_for_files_of_its_kind(X, tmp_path):
    np.savez(tmp_path / "set.npz", X=X)
    assert np.array_equal(read_signals(tmp_path / "set.npz", recipe=Recipe("array")).X, X)
    refused(tmp_path / "set.npz", "got array; expected epochs", recipe=Recipe("epochs"))


# -- Recordings ------------------------------------------------------------------------

RATE = 100
ANNOTATIONS = [(1.0, "T1"), (3.0, "T2"), (5.0, "T0"), (7.0, "T1"), (9.5, "T2")]


@pytest.fixture
def signal(rng):
    return np.round(40 * rng.standard_normal((CHANNELS, 10 * RATE)))


@pytest.fixture
def edf(signal, tmp_path):
    write_edf(tmp_path / "run1.edf", signal, RATE, ANNOTATIONS)
    return tmp_path / "run1.edf"


CUT = {"events": "T1=left,T2", "window": (0.2, 0.9)}


def test_edf(edf, signal):
    found = read_signals(edf, **CUT)
    assert found.y.tolist() == ["left", "T2", "left"]
    assert found.notes == ("run1.edf: 1 trials were left out, whose window leaves the recording.",)
    expected = [signal[:, start + 20 : start + 91] for start in (100, 300, 700)]
    np.testing.assert_allclose(found.X, expected, atol=1e-6)
    assert (found.rate, found.recipe.channels, found.groups) == (100.0, ("E0", "E1", "E2"), None)
    assert found.recipe == Recipe("recording", "T1=left,T2", None, (0.2, 0.9), ("E0", "E1", "E2"))
    assert np.array_equal(read_signals(edf, recipe=found.recipe).X, found.X)
    assert holds_signals(edf)


def test_the_order_of_channels_is_that_of_the_recipe(edf, signal):
    wanted = Recipe("recording", "T1", None, (0.2, 0.9), ("E2", "E0"))
    np.testing.assert_allclose(read_signals(edf, recipe=wanted).X[0], signal[[2, 0], 120:191], atol=1e-6)
    other = Recipe("recording", "T1", None, (0.2, 0.9), ("E2", "Cz"))
    refused(edf, "has the channels E0, E1, E2 .*; expected Cz, as the model needs", recipe=other)


def test_a_folder_of_recordings(edf, signal):
    write_edf(edf.with_name("run10.edf"), signal, RATE, ANNOTATIONS[:1])
    write_edf(edf.with_name("run2.edf"), signal, RATE, ANNOTATIONS[:2])
    found = read_signals(edf.parent, **CUT)
    assert found.groups.tolist() == ["run1"] * 3 + ["run2"] * 2 + ["run10"]
    assert holds_signals(edf.parent)
    several = read_signals([edf, edf.with_name("run2.edf")], **CUT)
    assert np.array_equal(several.X, found.X[:5])
    labels = edf.with_name("labels.csv")
    labels.write_text("\n".join("abcdef"))
    assert read_signals(edf.parent, labels, **CUT).y.tolist() == list("abcdef")
    write_edf(edf.with_name("run3.edf"), signal[:2], RATE, ANNOTATIONS)
    with pytest.raises(ValueError, match=r"run3\.edf and .*run1\.edf differ in channels"):
        read_signals(edf.parent, **CUT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"window": (0, 1)}, r"pass events=.*; it has T0, T1, T2"),
        ({"events": "T1"}, r"pass .* window=\(0.5, 2.5\), seconds after them"),
        ({"events": "T1,T9", "window": (0, 1)}, r"no trial of T9; there are T0, T1, T2"),
        ({**CUT, "band": (8, 60)}, r"band=\(8.0, 60.0\) at fs=100 Hz: expected two rising frequencies"),
        ({**CUT, "window": (1, 0.5)}, r"window=\(1.0, 0.5\): expected two rising moments"),
        ({**CUT, "window": (float("nan"), 0.5)}, r"window=\(nan, 0.5\): expected two rising moments"),
        ({**CUT, "window": (0, float("inf"))}, r"window=\(0.0, inf\): expected two rising moments"),
        (
            {**CUT, "window": (5, 20)},
            r"window=\(5.0, 20.0\) is longer than the signal, 1000 samples at 100 Hz",
        ),
        ({**CUT, "window": (4, 12)}, "no trial of T1, T2;.* 4 trials were left out, whose window leaves"),
        ({**CUT, "subject": 3}, "leave out subject=, without meaning"),
        ({**CUT, "matrices": "X"}, "leave out matrices=, without"),
        (
            {**CUT, "groups": "day"},
            "groups='day': expected a .csv file, a column of metadata, or a part of the",
        ),
    ],
)
def test_what_a_recording_needs(options, sentence, edf):
    refused(edf, sentence, **options)


@pytest.mark.parametrize("events", ["", " , ", "T1=", "=left", "T1,T1"])
def test_events_that_are_none(events):
    with pytest.raises(ValueError, match=r"expected different names, 'T1,T2' or 'T1=left,T2=right'"):
        event_labels(events)


def test_gdf(rng, tmp_path):
    digital = rng.integers(-1000, 1000, (3, 500))
    write_gdf(tmp_path / "a.gdf", digital, 100, 0.1, ["C3", "C4", "EOG-left"], [(100, 769), (300, 770)])
    found = read_signals(tmp_path / "a.gdf", events="769=left,770=right", window=(0, 1))
    assert found.recipe.channels == ("C3", "C4")  # what is called EOG is none of them
    assert found.y.tolist() == ["left", "right"]
    np.testing.assert_allclose(found.X[1], 0.1 * digital[:2, 300:401], atol=1e-6)


def test_real_recordings_give_the_covariances_of_the_protocol(data_folder):
    paths = [data_folder / "eegmmi" / f"S007R{run}.edf" for run in ("04", "08", "12")]
    events = "T1=left_hand,T2=right_hand"
    found = read_signals(paths, events=events, band=(8.0, 30.0), window=(0.5, 2.5))
    expected = load_eegmmi(7, data_folder / "eegmmi")
    assert np.array_equal(sample_covariances(found.X), expected.X)
    assert np.array_equal(found.y, expected.y)
    assert np.unique(found.groups).tolist() == ["S007R04", "S007R08", "S007R12"]


def test_without_mne_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne", None)
    for name in ("a.edf", "a.gdf", "a-epo.fif"):
        (tmp_path / name).write_bytes(b"0")
        with pytest.raises(ImportError, match=r"needs MNE: pip install 'spdmetric\[eeg\]'"):
            read_signals(tmp_path / name, **CUT)


# -- Epochs ----------------------------------------------------------------------------


def write_epochs(path, X, names=("left", "right"), tmin=-0.1, **options):
    codes = np.arange(len(X)) % len(names)
    events = np.c_[1000 * np.arange(len(X)), 0 * codes, codes + 1]
    info = mne.create_info([f"E{k}" for k in range(X.shape[1])], RATE, options.pop("types", "eeg"))
    epochs = mne.EpochsArray(
        1e-6 * X, info, events, tmin, {name: k + 1 for k, name in enumerate(names)}, verbose="ERROR"
    )
    epochs.info["bads"] = options.pop("bads", [])
    epochs.save(path, fmt="double", verbose="ERROR", **options)
    return path


def test_epochs(X, tmp_path):
    path = write_epochs(tmp_path / "a-epo.fif", X)
    found = read_signals(path)
    np.testing.assert_allclose(found.X, X, rtol=1e-12)
    assert found.y.tolist() == LABELS.tolist()
    assert (found.rate, found.recipe.channels) == (100.0, ("E0", "E1", "E2"))
    assert np.array_equal(read_signals(path, recipe=found.recipe).X, found.X)
    cut = read_signals(path, events="right=r", window=(0.0, 0.2))
    np.testing.assert_allclose(cut.X, X[1::2, :, 10:31], rtol=1e-12)
    assert set(cut.y) == {"r"}
    assert holds_signals(path)


def test_bad_channels_and_other_types_are_left_out(rng, tmp_path):
    X = rng.standard_normal((4, 5, 30))
    path = write_epochs(
        tmp_path / "a_epo.fif",
        X,
        types=["eeg", "eeg", "eog", "eeg", "stim"],
        bads=["E1"],
        names=("a=b", "c,d"),
    )
    found = read_signals(path)
    assert found.recipe.channels == ("E0", "E3")
    assert found.y.tolist() == ["a=b", "c,d"] * 2
    np.testing.assert_allclose(found.X, X[:, [0, 3]], rtol=1e-12)


def test_epochs_of_several_files(X, tmp_path):
    write_epochs(tmp_path / "a-epo.fif", X)
    write_epochs(tmp_path / "b-epo.fif", X[:2])
    assert read_signals(tmp_path).groups.tolist() == ["a-epo"] * 6 + ["b-epo"] * 2
    write_epochs(tmp_path / "c-epo.fif", X[:, :, :20])
    with pytest.raises(ValueError, match="length of trials"):
        read_signals(tmp_path)
    write_edf(tmp_path / "b.edf", np.ones((3, RATE)), RATE, [])
    with pytest.raises(ValueError, match=r"b\.edf: got recording; expected files of one type"):
        read_signals(tmp_path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"events": "up"}, r"no trial of up; there are left, right"),
        ({"band": (8, 30)}, "leave out band=, without meaning for signals of type epochs"),
        ({"window": (0, 5)}, r"window=\(0.0, 5.0\): its epochs go from -0.1 to 0.29 seconds"),
    ],
)
def test_what_epochs_do_not_have(options, sentence, X, tmp_path):
    refused(write_epochs(tmp_path / "a-epo.fif", X), sentence, **options)


def test_other_and_damaged_fif_files(X, tmp_path):
    path = write_epochs(tmp_path / "b-epo.fif", X)
    for content in (path.read_bytes()[:-500], b""):
        path.write_bytes(content)
        refused(path, "cannot be read: it is corrupt")


def test_epochs_in_memory_and_their_metadata(X, tmp_path):
    """A column of the metadata is a group; names of channels come along to the matrices."""
    import pandas as pd
    from pyriemann.estimation import Covariances

    epochs = mne.read_epochs(write_epochs(tmp_path / "a-epo.fif", X), verbose="ERROR")
    epochs.metadata = pd.DataFrame({"run": [1, 1, 1, 2, 2, 2], "hand": list("lrlrlr")})
    found = read_signals(epochs, labels="hand", groups="run")
    np.testing.assert_allclose(found.X, X, rtol=1e-12)
    assert (found.y.tolist(), found.groups.tolist()) == (list("lrlrlr"), [1, 1, 1, 2, 2, 2])
    assert found.places[1] == ("a-epo.fif", 10.0)
    with pytest.raises(ValueError, match=r"groups='day': .*; its metadata have run, hand"):
        read_signals(epochs, groups="day")
    matrices = estimate_covariances(epochs, groups="run")
    assert np.array_equal(matrices.X, Covariances("oas").transform(found.X))
    assert (matrices.channels, matrices.groups.tolist()) == (("E0", "E1", "E2"), [1, 1, 1, 2, 2, 2])
    assert matrices.y.tolist() == LABELS.tolist()
    assert np.array_equal(estimate_covariances(X, "scm").X, Covariances("scm").transform(X))


@pytest.mark.parametrize("wrong", [np.eye(3), np.ones((2, 3, 4), complex), [["a"]]])
def test_what_are_no_signals(wrong):
    with pytest.raises(ValueError, match=r"Expected signals, real numbers \(n, channels, times\), or Epochs"):
        estimate_covariances(wrong)
    with pytest.raises(TypeError, match=r"Expected names of files, or Raw or Epochs of MNE"):
        read_signals([wrong])
