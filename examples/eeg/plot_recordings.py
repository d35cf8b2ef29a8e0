"""
From recordings to a report
===========================

The whole way of an EEG study: recordings, epochs, a classifier, a run left out at a time, where on the head
the classes differ, a new run, and the comparison with other methods.

Where the environment variable ``SPDMETRIC_DATA`` names a folder with ``eegmmi/S007R04.edf``, ``S007R08.edf``
and ``S007R12.edf`` (PhysioNet's EEG Motor Movement/Imagery data set), these are read: subject 7 imagines
moving the left or the right fist.  Elsewhere three recordings of the same form are simulated.
"""

# %%
# Recordings
# ----------
# Annotations T1 and T2 mark the trials.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np
import pandas as pd
from pyriemann.estimation import Covariances
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.pipeline import make_pipeline

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, PatternsDisplay, compare

mne.set_log_level("ERROR")
folder, runs = Path(os.environ.get("SPDMETRIC_DATA", "")) / "eegmmi", (4, 8, 12)
files = [folder / f"S007R{run:02d}.edf" for run in runs]


def read(path):
    """A recording with the positions of its electrodes."""
    raw = mne.io.read_raw_edf(path, preload=True)
    mne.datasets.eegbci.standardize(raw)
    known = mne.channels.get_builtin_montages()  # MNE 1.13 gave the montage its new name
    return raw.set_montage("colin27_1005" if "colin27_1005" in known else "standard_1005")


def simulate(seed, n_trials=16, rate=160):
    """A recording in which the rhythm below C4 is weaker in trials T1, that below C3 in trials T2."""
    montage = mne.channels.make_standard_montage("biosemi64")
    info = mne.create_info(montage.ch_names, rate, "eeg").set_montage(montage)
    places = np.array([channel["loc"][:3] for channel in info["chs"]])
    others, rng = np.random.default_rng(0).choice(montage.ch_names, 10), np.random.default_rng(seed)
    centers = [montage.ch_names.index(name) for name in ("C3", "C4", *others)]
    reach = np.exp(-np.sum((places - places[centers, None]) ** 2, axis=2) / (2 * 0.04**2))
    times = np.arange(4 * rate * n_trials) / rate
    phases = np.cumsum(rng.normal(0, 0.2, (len(centers), times.size)), axis=1)
    rhythms = np.sin(2 * np.pi * 11 * times + phases)
    codes = rng.permutation(np.arange(n_trials) % 2)
    rhythms[:2] *= np.where(np.repeat(codes, 4 * rate) == np.array([[1], [0]]), 0.6, 1.0)
    signals = reach.T @ rhythms + 0.5 * rng.standard_normal((64, times.size))
    raw = mne.io.RawArray(5e-6 * signals, info)
    return raw.set_annotations(mne.Annotations(4.0 * np.arange(n_trials), 3.0, np.array(["T1", "T2"])[codes]))


recorded = all(path.is_file() for path in files)
recordings = [read(path) for path in files] if recorded else [simulate(run) for run in runs]
print("EEGMMI, subject 7" if recorded else "Simulated, as SPDMETRIC_DATA has no eegmmi/S007R04.edf, ...")

# %%
# Epochs
# ------
# Filtered to 8 to 30 Hz and cut from 0.5 to 2.5 s after the cue.  The run of each trial goes into the
# metadata.

parts = []
for run, raw in zip(runs, recordings, strict=True):
    raw.filter(8, 30)
    events, _ = mne.events_from_annotations(raw, {"T1": 1, "T2": 2})
    metadata = pd.DataFrame({"run": np.full(len(events), run)})
    names = {"left": 1, "right": 2}
    parts.append(mne.Epochs(raw, events, names, 0.5, 2.5, baseline=None, metadata=metadata, preload=True))
epochs = mne.concatenate_epochs(parts)
X, y, run = epochs.get_data(copy=False), epochs.events[:, 2], epochs.metadata["run"].to_numpy()
y = np.array(["left", "right"])[y - 1]
print(X.shape, dict(zip(*np.unique(run, return_counts=True), strict=True)))

# %%
# A classifier, one run left out at a time
# ----------------------------------------

model = make_pipeline(Covariances("oas"), LogEuclideanClassifier())
scores = cross_val_score(model, X, y, groups=run, cv=LeaveOneGroupOut())
print("accuracy in each run that was left out:", scores.round(2))

# %%
# Where on the head
# -----------------
# A metric of low rank reads a few signals out of the channels; their patterns say where these come from.

covariances = Covariances("oas").transform(X)
metric = LogEuclideanMetric(3.0, rank=2).fit(covariances, y)
PatternsDisplay.from_estimator(metric, covariances, y, epochs.info)
plt.show()

# %%
# A new run
# ---------
# Trained on two runs, the classifier is carried to the third by its unlabeled trials.

last = run == runs[-1]
classifier = LogEuclideanClassifier().fit(covariances[~last], y[~last])
adapted = classifier.adapt(covariances[last])
print(f"as it is {classifier.score(covariances[last], y[last]):.2f}")
print(f"adapted  {adapted.score(covariances[last], y[last]):.2f}")

# %%
# The report
# ----------
# Several methods on the same folds, which leave out whole runs, and once more with every run recentered by
# its own mean.  ``report.save("report.html")`` writes the page.

report = compare(epochs, groups=run, methods=["spdmetric", "mdm", "logeuclid-mean-logistic"])
print(report)
