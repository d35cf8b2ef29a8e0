"""
Where on the head a metric of low rank looks
============================================

A metric of rank m reads m signals out of the channels.  Their *patterns* (Haufe et al., 2014) say
where on the head these signals come from.  Who imagines moving the left or the right fist has a weaker
rhythm of the motor cortex on the opposite side, near the electrodes C3 and C4.

The data are simulated: 64 channels, a rhythm on each side that the classes weaken, and sources all
over the head that have nothing to do with the task.  Where the environment variable ``SPDMETRIC_DATA``
names a folder with recordings of PhysioNet's EEG Motor Movement/Imagery data set (``eegmmi/S007R04.edf``,
``S007R08.edf``, ``S007R12.edf``), subject 7 is drawn below them.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import mne
import numpy as np

from spdmetric import LogEuclideanMetric, PatternsDisplay
from spdmetric.io.signals import read_signals

# %%
# Positions of 64 electrodes, from MNE.

montage = mne.channels.make_standard_montage("biosemi64")
NAMES = montage.ch_names
info = mne.create_info(NAMES, 160.0, "eeg").set_montage(montage)
places = np.array([channel["loc"][:3] for channel in info["chs"]])

# %%
# A source reaches the electrodes around it.  Sixty trials of two seconds: in class "left" the source
# below C4 is weaker, in class "right" that below C3.

rng = np.random.default_rng(0)


def reach(center, width=0.04):
    return np.exp(-np.sum((places - center) ** 2, axis=1) / (2 * width**2))


motor = np.array([reach(places[NAMES.index(name)]) for name in ("C3", "C4")])
others = np.array([reach(places[k]) for k in rng.choice(len(NAMES), 20, replace=False)])
y = np.repeat(["left", "right"], 30)
X = []
for label in y:
    amplitude = np.array([1.0, 0.5] if label == "left" else [0.5, 1.0]) * rng.lognormal(0, 0.2, 2)
    signal = motor.T @ (amplitude[:, None] * rng.standard_normal((2, 320)))
    signal += others.T @ (rng.lognormal(0, 0.4, 20)[:, None] * rng.standard_normal((20, 320)))
    signal += 0.2 * rng.standard_normal((64, 320))
    X.append(signal @ signal.T / 320)
X = np.array(X)

# %%
# A metric of rank 2.  The rows of its factor are turned so that the first one separates the classes
# most; the number above a map is the log-power of the component in the class where it is strongest,
# above the mean of the two classes.  The maps have their maximum where the sources were put.


def give_title(display, text):
    display.figure_.set_figheight(3.0)  # room for it above the titles of the maps
    display.figure_.suptitle(text)


def draw(X, y, info, rank, title):
    metric = LogEuclideanMetric(radius=3.0, rank=rank).fit(X, y)
    print(f"{title}: alignment {metric.alignment_:.2f} at rank {rank}, {len(X)} trials")
    display = PatternsDisplay.from_estimator(metric, X, y, info)
    give_title(display, f"{title}: patterns of a metric of rank {rank}")
    for k, contrast in enumerate(display.patterns.contrast, start=1):
        print(f"component {k}:", dict(zip(metric.classes_.tolist(), contrast.round(2).tolist(), strict=True)))
    return display


display = draw(X, y, info, 2, "Simulated")
for k, pattern in enumerate(display.patterns.patterns, start=1):
    print(f"component {k} is largest at {NAMES[np.argmax(np.abs(pattern))]}")

# %%
# The filters, the rows of the factor themselves, also cancel what else the channels hold, and should not
# be read as places.

filters = display.patterns._replace(patterns=display.patterns.filters)
give_title(PatternsDisplay(filters, info).plot(), "Simulated: the filters of the same components")
plt.show()

# %%
# Recordings, where they are at hand: forty-five trials of subject 7.  The header of a file has
# the order of its channels.

folder = Path(os.environ.get("SPDMETRIC_DATA", "")) / "eegmmi"
files = [folder / f"S007R{run:02d}.edf" for run in (4, 8, 12)]
if all(path.is_file() for path in files):
    raw = mne.io.read_raw_edf(files[0], verbose="ERROR")
    mne.datasets.eegbci.standardize(raw)
    known = mne.channels.get_builtin_montages()  # MNE 1.13 gave the montage its new name
    raw.set_montage("colin27_1005" if "colin27_1005" in known else "standard_1005")
    trials = read_signals(files, events="T1=left_hand,T2=right_hand", band=(8.0, 30.0), window=(0.5, 2.5))
    covariances = np.array([np.cov(signal) for signal in trials.X])
    recorded = draw(covariances, trials.y, raw.pick("eeg").info, 4, "EEGMMI, subject 7")
    plt.show()
else:
    print("No recordings: SPDMETRIC_DATA names no folder with eegmmi/S007R04.edf, S007R08.edf, S007R12.edf.")
