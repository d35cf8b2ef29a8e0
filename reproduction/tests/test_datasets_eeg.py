"""EEG: the protocol against a literal one, every file format against the others, every sentence."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from scipy.io import savemat
from scipy.signal import butter

from formats import MISSING, bnci_run, write_bnci_mat, write_edf, write_gdf, write_true_labels
from random_matrices import spd
from reproduction.datasets.bci_iv_2a import BCI_CLASSES, bci_subjects, load_bci_iv_2a
from reproduction.datasets.eeg import eegmmi_subjects, epoch_covariances, load_eegmmi

# MOABB 1.7 asks MNE 1.13 for a montage by the name that MNE is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:Montage name 'standard_1005' is deprecated:FutureWarning")


def needs(*modules):
    absent = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)}: pip install 'spdmetric[eeg]'")


def relative(A, B):
    return np.abs(A - B).max() / np.abs(B).max()


# -- The protocol ----------------------------------------------------------------


def literal_covariance(signal, onset, fs):
    """One covariance, number by number: each section of the filter as its difference equation."""
    n_channels, n_samples = signal.shape
    filtered = signal.copy()
    for b0, b1, b2, _, a1, a2 in butter(5, [8.0, 30.0], "band", fs=fs, output="sos"):
        x, filtered = filtered, np.zeros_like(filtered)
        for t in range(n_samples):
            filtered[:, t] = b0 * x[:, t]
            if t >= 1:
                filtered[:, t] += b1 * x[:, t - 1] - a1 * filtered[:, t - 1]
            if t >= 2:
                filtered[:, t] += b2 * x[:, t - 2] - a2 * filtered[:, t - 2]
    first, last = onset + round(0.5 * fs), onset + round(2.5 * fs)
    C = np.zeros((n_channels, n_channels))
    for i in range(n_channels):
        for j in range(n_channels):
            u = [filtered[i, t] for t in range(first, last + 1)]
            v = [filtered[j, t] for t in range(first, last + 1)]
            u_mean, v_mean = sum(u) / len(u), sum(v) / len(v)
            C[i, j] = sum((a - u_mean) * (b - v_mean) for a, b in zip(u, v, strict=True)) / (len(u) - 1)
    return C


@pytest.mark.parametrize("fs", [160, 250])
def test_literally(rng, fs):
    signal = 20 + 10 * rng.standard_normal((3, 6 * fs))
    onsets = [fs // 2, 3 * fs]
    X = epoch_covariances(signal, onsets, fs)
    assert X.shape == (2, 3, 3)
    for C, onset in zip(X, onsets, strict=True):
        assert relative(C, literal_covariance(signal, onset, fs)) < 1e-10
    assert np.array_equal(X, X.transpose(0, 2, 1))


# -- Data set 2a of the BCI Competition IV: one session, written in each format ----

FS, STEP = 250, 0.0625  # microvolts of a digital step: sums of powers of 2, exact in every format
LABELS = ["EEG-Fz", *(6 * ["EEG"]), "EEG-C3", *(14 * ["EEG"]), "EOG-left", "EOG-central", "EOG-right"]


class Session:
    """A calibration run and two runs of four trials, in digital steps."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        mixing = rng.standard_normal((25, 25)) + 5 * np.eye(25)
        self.runs = [
            np.rint(30 * mixing @ rng.standard_normal((25, n))).astype(int) for n in (700, 5700, 6000)
        ]
        self.trials = [[], [300, 1550, 2800, 4100], [251, 1500, 2777, 4444]]  # 0-based
        self.y = [[], *(rng.permutation(4) + 1 for _ in range(2))]

    def write_mat(self, path):
        runs = zip(self.runs, self.trials, self.y, strict=True)
        write_bnci_mat(path, [bnci_run(STEP * s, [t + 1 for t in trial], y, FS) for s, trial, y in runs])

    def write_gdf(self, path, *, told=True, leading=False):
        """String the runs together, with breaks after the runs or (leading) opening them."""
        parts, events, start = [], [], 0
        pause = np.full((25, 100), MISSING)
        for signal, trial, y in zip(self.runs, self.trials, self.y, strict=True):
            shift = start + (100 if leading else 0)
            events += [(start, 32766), (start, 276)] if not trial else [(start, 32766)]
            for t, label in zip(trial, y, strict=True):
                events += [
                    (shift + t, 768),
                    (shift + t, 1023),
                    (shift + t + 2 * FS, 768 + label if told else 783),
                ]
            parts += [pause, signal] if leading else [signal, pause]
            start += signal.shape[1] + 100
        write_gdf(path, np.hstack(parts), FS, STEP, LABELS, events)

    def literal(self, i, trial):
        return literal_covariance(STEP * self.runs[i][:22], self.trials[i][trial] + 2 * FS, FS)

    @property
    def labels(self):
        return np.concatenate(self.y).astype(int)

    @property
    def classes(self):
        return np.array(BCI_CLASSES)[self.labels - 1]


@pytest.fixture(scope="module")
def sessions():
    return {"T": Session(1), "E": Session(2)}


@pytest.fixture(scope="module")
def originals(tmp_path_factory, sessions):
    folder = tmp_path_factory.mktemp("bnci")
    for name, session in sessions.items():
        session.write_mat(folder / f"A03{name}.mat")
    return folder


@pytest.fixture
def bnci(tmp_path, originals):
    return Path(copytree(originals, tmp_path / "bnci"))


def test_bnci_mat(bnci, sessions):
    X, y, groups = load_bci_iv_2a(3, bnci, classes=BCI_CLASSES)
    assert X.shape == (16, 22, 22)
    assert groups.tolist() == 8 * ["T"] + 8 * ["E"]
    assert y.tolist() == [*sessions["T"].classes, *sessions["E"].classes]
    assert relative(X[5], sessions["T"].literal(2, 1)) < 1e-9
    X, y, groups = load_bci_iv_2a(3, str(bnci))
    assert len(X) == len(y) == len(groups) == 8
    assert set(y) == {"left_hand", "right_hand"}
    assert len(load_bci_iv_2a(3, bnci, classes=["tongue"]).X) == 4


@needs("mne")
@pytest.mark.parametrize("leading", [False, True], ids=["break after", "break before"])
@pytest.mark.parametrize("beside", ["", "true_labels"])
def test_gdf_equals_mat(tmp_path, bnci, sessions, leading, beside):
    folder = tmp_path / "gdf"
    (folder / beside).mkdir(parents=True)
    sessions["T"].write_gdf(folder / "A03T.gdf", leading=leading)
    sessions["E"].write_gdf(folder / "A03E.gdf", leading=leading, told=False)
    # The competition gives the labels of both sessions, the name being that of the BNCI files.
    for name, session in sessions.items():
        write_true_labels(folder / beside / f"A03{name}.mat", session.labels)
    expected = load_bci_iv_2a(3, bnci, classes=BCI_CLASSES)
    got = load_bci_iv_2a(3, folder, classes=BCI_CLASSES)
    assert relative(got.X, expected.X) < 1e-9
    assert got.y.tolist() == expected.y.tolist()
    assert got.groups.tolist() == expected.groups.tolist()


@needs("mne")
@pytest.mark.parametrize("leading", [False, True], ids=["break after", "break before"])
def test_breaks_leave_no_trace(tmp_path, sessions, leading):
    """A cue so early in its run that the filter would still ring with what came before."""
    first, second = (part[:, :700] for part in sessions["T"].runs[1:])
    pause = np.full((25, 100), MISSING)
    events = [(0, 32766), (800, 32766), (905 if leading else 805, 769)]
    digital = np.hstack([pause, first, pause, second] if leading else [first, pause, second, pause])
    for name in ("A01T.gdf", "A01E.gdf"):
        write_gdf(tmp_path / name, digital, FS, STEP, LABELS, events)
    expected = epoch_covariances(STEP * second[:22], [5], FS)[0]
    for C in load_bci_iv_2a(1, tmp_path).X:
        assert relative(C, expected) < 1e-9


def write_motor_imagery(path, X, labels=8):
    data = {"data": X.transpose(1, 2, 0), "labels": 1 + np.arange(labels).reshape(-1, 1) % 4}
    savemat(path, {"data": data | {"idxTraining": np.arange(1, 5), "idxTest": np.arange(5, 9)}})


def test_ready_made_covariances(tmp_path, rng):
    X = spd(rng, 8, 22)
    write_motor_imagery(tmp_path / "MotorImagery.mat", X)
    assert bci_subjects(tmp_path) == [9]
    got = load_bci_iv_2a(9, tmp_path)
    assert np.array_equal(got.X, X[[0, 1, 4, 5]])
    assert got.y.tolist() == ["left_hand", "right_hand", "left_hand", "right_hand"]
    assert got.groups.tolist() == ["T", "T", "E", "E"]
    with pytest.raises(FileNotFoundError, match="subject 8"):
        load_bci_iv_2a(8, tmp_path)
    savemat(tmp_path / "MotorImagery.mat", {"X": X, "y": np.ones(8)})
    with pytest.raises(ValueError, match=r"MotorImagery\.mat does not tell its sessions"):
        load_bci_iv_2a(9, tmp_path)
    write_motor_imagery(tmp_path / "MotorImagery.mat", X[:7], labels=7)
    with pytest.raises(ValueError, match="idxTraining and idxTest should name each of 7 matrices once"):
        load_bci_iv_2a(9, tmp_path)


def test_no_files(tmp_path, sessions):
    assert bci_subjects(tmp_path) == []
    with pytest.raises(FileNotFoundError, match=r"A09T\.mat.*A09E\.gdf.*MotorImagery\.mat.*found none"):
        load_bci_iv_2a(9, tmp_path)
    sessions["T"].write_mat(tmp_path / "A02T.mat")
    with pytest.raises(FileNotFoundError, match=r"found only A02T\.mat\."):
        load_bci_iv_2a(2, tmp_path)
    for ask in (bci_subjects, eegmmi_subjects, lambda folder: load_bci_iv_2a(1, folder)):
        with pytest.raises(FileNotFoundError, match=r"There is no folder .*nowhere"):
            ask(tmp_path / "nowhere")


@needs("mne")
def test_bad_gdf_files(tmp_path, sessions):
    train, test = tmp_path / "A03T.gdf", tmp_path / "A03E.gdf"
    sessions["T"].write_gdf(train)
    sessions["E"].write_gdf(test, told=False)
    with pytest.raises(
        FileNotFoundError, match=r"class of its 8 cues \(event 783\): put A03E\.mat .*classlabel"
    ):
        load_bci_iv_2a(3, tmp_path)
    write_true_labels(tmp_path / "A03E.mat", [1, 2])
    with pytest.raises(ValueError, match=r"A03E\.mat has 2 labels for the 8 unknown cues of A03E\.gdf"):
        load_bci_iv_2a(3, tmp_path)


# -- MOABB -----------------------------------------------------------------------


@needs("moabb")
def test_moabb_reads_the_same_trials(bnci, sessions, monkeypatch):
    """MOABB's own reader of data set 2a, on our files where it would look for its download."""
    from moabb.datasets import download

    monkeypatch.setenv("MOABB_DOWNLOAD_PROVIDER", "upstream")
    monkeypatch.setattr(download, "data_dl", lambda url, *args, **kwargs: str(bnci / Path(url).name))
    expected = load_bci_iv_2a(3, bnci, classes=BCI_CLASSES)
    got = load_bci_iv_2a(3, classes=BCI_CLASSES)
    assert relative(got.X, expected.X) < 1e-9
    assert got.y.tolist() == expected.y.tolist()
    assert got.groups.tolist() == expected.groups.tolist()


# -- PhysioNet EEG Motor Movement/Imagery ----------------------------------------


def write_eegmmi(folder, subject, runs=(4, 8, 12), n_channels=64):
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(subject)
    signals = {}
    for run in runs:
        signals[run] = np.rint(40 * rng.standard_normal((n_channels, 160 * 16)))
        # 4.1 * 160 is 655.9999999999999 in binary
        marks = [(0.0, "T0"), (4.1, "T1"), (8.2, "T2"), (12.3, "T1" if run == 4 else "T2")]
        write_edf(folder / f"S{subject:03d}R{run:02d}.edf", signals[run], 160, marks)
    return signals


@needs("mne", "edfio")
def test_edf(tmp_path):
    signals = write_eegmmi(tmp_path, 5)
    X, y, groups = load_eegmmi(5, tmp_path)
    assert X.shape == (9, 64, 64)
    assert y.tolist() == [
        "left_hand",
        "right_hand",
        "left_hand",
        *(2 * ["left_hand", "right_hand", "right_hand"]),
    ]
    assert groups.tolist() == [4, 4, 4, 8, 8, 8, 12, 12, 12]
    assert relative(X[3][:2, :2], literal_covariance(signals[8][:2], 656, 160)) < 1e-9
    X, _, groups = load_eegmmi(5, str(tmp_path), runs=[12, 4])
    assert groups.tolist() == [12, 12, 12, 4, 4, 4]


@needs("mne", "edfio")
def test_eegmmi_folders(tmp_path):
    write_eegmmi(tmp_path / "S007", 7)
    write_eegmmi(tmp_path, 2, runs=(4, 8))
    write_eegmmi(tmp_path, 1, runs=(4, 12))
    (tmp_path / "S003R04.edf.event").touch()
    assert eegmmi_subjects(tmp_path) == [7]
    assert eegmmi_subjects(tmp_path, runs=[4]) == [1, 2, 7]
    assert len(load_eegmmi(7, tmp_path).X) == 9
    with pytest.raises(FileNotFoundError, match=r"No S001R08\.edf in .* or its folder S001; PhysioNet"):
        load_eegmmi(1, tmp_path)


# -- Real data -------------------------------------------------------------------


@needs("mne")
@pytest.mark.parametrize("subject", [1, 7])
def test_eegmmi_equals_the_published_protocol(data_folder, subject):
    folder = data_folder / "eegmmi"
    stored = np.load(folder / "covariances_S001-S020.npz")
    X, y, groups = load_eegmmi(subject, folder)
    for C, expected in zip(X, stored[f"X{subject}"], strict=True):
        assert relative(C, expected) <= 1e-6
    assert np.array_equal(y == "right_hand", stored[f"y{subject}"] == 1)
    assert np.array_equal(groups, stored[f"r{subject}"])
