"""Covariances of bands and windows: each view is what SciPy and pyRiemann give for it alone."""

from pathlib import Path
from shutil import copy

import mne
import numpy as np
import pytest
from pyriemann.estimation import Covariances
from scipy.signal import butter, sosfiltfilt
from sklearn.base import clone

import spdmetric
from spdmetric import FilterBankCovariances
from spdmetric.cli import main
from spdmetric.validation import check_spd

RATE = 160.0
BANDS, WINDOWS = [None, (8.0, 30.0), (8.0, 12.0)], [None, (0.5, 1.5)]


@pytest.fixture
def signals(rng):
    return rng.standard_normal((6, 4, 321)) * 1e-5


def test_each_view_is_that_of_its_band_and_window(signals):
    bank = FilterBankCovariances(BANDS, WINDOWS, sfreq=RATE)
    views = bank.fit_transform(signals)
    assert views.shape == (6, 6, 4, 4)
    assert bank.view_names_.tolist()[:3] == ["all", "0.5-1.5 s", "8-30 Hz"]
    filtered = sosfiltfilt(butter(5, (8, 30), "band", fs=RATE, output="sos"), signals, padlen=33)
    expected = [signals, signals[:, :, 80:241], filtered, filtered[:, :, 80:241]]
    for k, of_view in enumerate(expected):
        np.testing.assert_allclose(views[:, k], Covariances("oas").fit_transform(of_view), rtol=1e-12)
        check_spd(views[:, k])


def test_epochs_know_their_rate_and_their_event(signals):
    """Windows count from the event, which is half a second after the first sample."""
    info = mne.create_info(["C3", "Cz", "C4", "Pz"], RATE, "eeg", verbose="ERROR")
    epochs = mne.EpochsArray(signals, info, tmin=-0.5, verbose="ERROR")
    found = FilterBankCovariances([(8, 30)], [(0.0, 1.0)]).fit_transform(epochs)
    expected = FilterBankCovariances([(8, 30)], [(0.5, 1.5)], sfreq=RATE).fit_transform(signals)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"sfreq=250, but the epochs have 160 Hz"):
        FilterBankCovariances([(8, 30)], sfreq=250).fit(epochs)


def test_what_was_given_does_not_matter(signals):
    expected = FilterBankCovariances(BANDS, sfreq=RATE).fit_transform(signals)
    frozen = np.asfortranarray(signals)
    frozen.flags.writeable = False
    bank = clone(FilterBankCovariances(BANDS, sfreq=RATE)).fit(frozen)
    np.testing.assert_allclose(bank.transform(frozen), expected, rtol=1e-12)
    single = bank.transform(signals.astype(np.float32))
    np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"bands": [(8, 30)]}, "bands and windows need the sampling rate"),
        ({"bands": [(8, 80)], "sfreq": RATE}, r"bands has \(8, 80\): .* between 0 and 80"),
        ({"bands": [(30, 8)], "sfreq": RATE}, "two rising frequencies"),
        ({"bands": [8, 30], "sfreq": RATE}, "bands has 8: expected two rising freq"),
        ({"windows": [(1, 3)], "sfreq": RATE}, r"windows has \(1, 3\): .* not after 2"),
        ({"windows": [(1, float("nan"))], "sfreq": RATE}, "two rising moments"),
        ({"bands": [(8, 30)], "sfreq": -1}, "sfreq=-1: expected a positive number"),
    ],
)
def test_parameters_of_no_meaning(signals, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        FilterBankCovariances(**parameters).fit(signals)


def test_signals_that_are_none(signals):
    with pytest.raises(ValueError, match=r"got 2 dimensions and shape \(4, 321\)"):
        FilterBankCovariances().fit(signals[0])
    bank = FilterBankCovariances().fit(signals)
    with pytest.raises(ValueError, match="channels, but FilterBankCovariances was fitted on 4"):
        bank.transform(signals[:, :3])
    signals[2, 1, 5] = np.nan
    with pytest.raises(ValueError, match=r"X\[2\] contains NaN in 1 of 1284 entries"):
        bank.transform(signals)


def test_commands_make_views_of_recordings(data_folder, tmp_path, monkeypatch, capsys):
    """Bands and windows given several times become a step that the model file keeps."""
    folder = data_folder / "eegmmi"
    monkeypatch.chdir(tmp_path)
    Path("train").mkdir()
    for run in ("04", "08"):
        copy(folder / f"S007R{run}.edf", "train")
    words = ["--events", "T1=left,T2=right", "--band", "8", "30", "--band", "8", "12"]
    words += ["--window", "0.5", "2.5", "--window", "0.5", "1.5"]
    assert main(["fit", "train", *words, "--radius", "0", "--rank", "4", "-o", "model.skops"]) == 0
    bank = spdmetric.load("model.skops")[0]
    assert bank.bands == [(8.0, 30.0), (8.0, 12.0)]
    assert bank.windows == [(0.0, 2.0), (0.0, 1.0)]
    assert main(["predict", "model.skops", str(folder / "S007R12.edf"), "-o", "labels.csv"]) == 0
    assert "of 15" in capsys.readouterr().out
