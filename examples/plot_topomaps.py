"""
Where on the head a metric of low rank looks
============================================

A metric of rank m reads m signals out of the channels.  Their *patterns* (Haufe et al., 2014) say
where on the head these signals come from.  Subject 7 of PhysioNet's EEG Motor Movement/Imagery
data set imagines moving the left or the right fist; the rhythm of the motor cortex then weakens on
the opposite side.

The recordings cannot be distributed with the package.  The environment variable ``SPDMETRIC_DATA``
names a folder with ``S007R04.edf``, ``S007R08.edf`` and ``S007R12.edf`` in its subfolder ``eegmmi``;
without them this example says so and draws nothing.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt
import mne

from spdmetric import LogEuclideanMetric, PatternsDisplay
from spdmetric.datasets import load_eegmmi

folder = Path(os.environ.get("SPDMETRIC_DATA", "")) / "eegmmi"
files = [folder / f"S007R{run:02d}.edf" for run in (4, 8, 12)]


# %%
# The header of a file has the order of its channels; MNE has their positions.


def channels(path):
    raw = mne.io.read_raw_edf(path, verbose="ERROR")
    mne.datasets.eegbci.standardize(raw)
    known = mne.channels.get_builtin_montages()  # MNE 1.13 gave the montage its new name
    raw.set_montage("colin27_1005" if "colin27_1005" in known else "standard_1005")
    return raw.pick("eeg").info


# %%
# Forty-five trials, a 64 x 64 covariance each, and a metric of rank 4.  The rows of its factor are
# turned so that the first one tells the classes apart most; the number above a map is the log-power
# of the component in the class where it is strongest, above the mean of the two classes.  The
# filters, the rows of the factor themselves, also cancel what else the channels hold, and should not
# be read as places.

if all(path.is_file() for path in files):
    X, y, runs = load_eegmmi(7, folder)
    info = channels(files[0])
    metric = LogEuclideanMetric(radius=3.0, rank=4, tol=1e-3).fit(X, y)
    print(f"alignment {metric.alignment_:.2f} at rank {len(metric.components_)}, {len(X)} trials")
    display = PatternsDisplay.from_estimator(metric, X, y, info)
    display.figure_.suptitle("EEGMMI, subject 7: patterns of a metric of rank 4")
    for k, contrast in enumerate(display.patterns.contrast, start=1):
        print(f"component {k}:", dict(zip(metric.classes_.tolist(), contrast.round(2).tolist(), strict=True)))
    filters = display.patterns._replace(patterns=display.patterns.filters)
    PatternsDisplay(filters, info).plot().figure_.suptitle("The filters of the same components")
    plt.show()
else:
    print(
        "No picture: set SPDMETRIC_DATA to a folder that holds eegmmi/S007R04.edf, S007R08.edf, S007R12.edf."
    )
