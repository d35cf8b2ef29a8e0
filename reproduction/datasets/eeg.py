"""Motor imagery EEG with the protocol of the paper.

[Yger2015]_ follows [Lotte2011]_: the EEG channels alone, a Butterworth band-pass
filter of order 5 between 8 and 30 Hz, the two seconds from 0.5 s to 2.5 s after the cue,
one sample covariance for each trial, and no artifact rejection.  The filter is causal and
starts from rest at the beginning of each run.  Signals are in microvolt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reproduction.datasets.files import Folder, events_of, existing_folder, numbers_in, read_raw
from spdmetric.io.signals import cut_epochs
from spdmetric.linalg.symmetric import symmetrize


class Recording(NamedTuple):
    """Covariances of the trials of one subject."""

    X: np.ndarray  # (n, d, d)
    y: np.ndarray  # (n,), the imagined movement of each trial
    groups: np.ndarray  # (n,), its session or run


class Run(NamedTuple):
    """One run as recorded: the stretch of signal that is filtered as a whole."""

    name: str  # for sentences
    signal: np.ndarray  # (n_channels, n_samples), microvolt
    onsets: np.ndarray  # (n_trials,), samples of the cues
    y: np.ndarray  # (n_trials,)
    fs: float
    group: int | str


# ---------------------------------------------------------------------------
# The protocol


def epoch_covariances(
    signal: ArrayLike,
    onsets: ArrayLike,
    fs: float,
    *,
    band: tuple[float, float] = (8.0, 30.0),
    window: tuple[float, float] = (0.5, 2.5),
) -> np.ndarray:
    """Sample covariances of band-passed windows after the cues of one run.

    Parameters
    ----------
    signal : array-like of shape (n_channels, n_samples)
        One run, from its first sample: the filter starts there, from rest.
    onsets : array-like of int, shape (n_trials,)
        Samples of the cues, 0-based.
    fs : float
        Sampling frequency, in Hz.
    band : (float, float), default=(8.0, 30.0)
        Edges of the causal Butterworth band-pass filter of order 5, in Hz.
    window : (float, float), default=(0.5, 2.5)
        First and last moment of the window, both included, in seconds after the cue.

    Returns
    -------
    X : ndarray of shape (n_trials, n_channels, n_channels)
        Covariances, means removed, divided by the number of samples less 1.
    """
    return sample_covariances(cut_epochs(signal, onsets, fs, band=band, window=window))


def sample_covariances(V: np.ndarray) -> np.ndarray:
    """Covariances of variables, (n, n_variables, n_samples), their means removed."""
    V = V - V.mean(axis=-1, keepdims=True)
    return symmetrize(V @ V.mT) / (V.shape[-1] - 1)


def gather(runs: Iterable[Run], classes: Collection[str], source: str) -> Recording:
    """Covariances of the trials of the wanted classes, run after run."""
    parts: list[Recording] = []
    for run in runs:
        wanted = np.isin(run.y, list(classes))
        if not wanted.any():
            continue
        try:
            X = epoch_covariances(run.signal, run.onsets[wanted], run.fs)
        except ValueError as error:
            raise ValueError(f"{run.name}: {error}") from error
        parts.append(Recording(X, run.y[wanted], np.repeat(run.group, len(X))))
    if not parts:
        raise ValueError(f"{source} has no trial of {', '.join(classes)}.")
    return Recording(*(np.concatenate(part) for part in zip(*parts, strict=True)))


# ---------------------------------------------------------------------------
# PhysioNet EEG Motor Movement/Imagery

_EEGMMI_CHANNELS = 64
_EEGMMI_RUNS = (3, 4, 7, 8, 11, 12)
_FISTS = ("left_hand", "right_hand")


def load_eegmmi(subject: int, folder: Folder, *, runs: Sequence[int] = (4, 8, 12)) -> Recording:
    """Covariances of one subject of PhysioNet's EEG Motor Movement/Imagery data set [Schalk2004]_.

    Parameters
    ----------
    subject : int
        1 to 109.
    folder : str or path-like
        Folder with the files ``S001R04.edf``, or with PhysioNet's folders ``S001`` of them.
    runs : sequence of int, default=(4, 8, 12)
        Runs in which the fists are imagined (4, 8, 12) or moved (3, 7, 11) one at a time.

    Returns
    -------
    recording : Recording
        64 x 64 matrices in squared microvolt, labels "left_hand" and "right_hand"; the
        groups are the numbers of the runs.

    References
    ----------
    .. [Schalk2004] G. Schalk, D. J. McFarland, T. Hinterberger, N. Birbaumer and J. R. Wolpaw, "BCI2000: a
       general-purpose brain-computer interface (BCI) system", IEEE Transactions on Biomedical Engineering
       51(6), 2004.
    """
    check_subject(subject, 109, "The EEG Motor Movement/Imagery data set")
    _check_eegmmi_runs(runs)
    folder = existing_folder(folder)
    paths = {run: _eegmmi_file(folder, subject, run) for run in runs}
    if missing := ", ".join(path.name for path in paths.values() if not path.is_file()):
        raise FileNotFoundError(
            f"No {missing} in {folder} or its folder S{subject:03d}; PhysioNet's EEG Motor Movement/Imagery "
            "Dataset has these files."
        )
    found = (_edf_run(path, run) for run, path in paths.items())
    return gather(found, _FISTS, f"Subject {subject} in {folder}")


def eegmmi_subjects(folder: Folder, *, runs: Sequence[int] = (4, 8, 12)) -> list[int]:
    """Subjects of the EEG Motor Movement/Imagery data set with all of some runs in a folder."""
    _check_eegmmi_runs(runs)
    folder = existing_folder(folder)
    files = [*folder.glob("S*R*.edf"), *folder.glob("S*/S*R*.edf")]
    subjects = set(numbers_in(r"S([0-9]{3})R[0-9]{2}\.edf", (file.name for file in files)))
    return sorted(s for s in subjects if all(_eegmmi_file(folder, s, run).is_file() for run in runs))


def _eegmmi_file(folder: Path, subject: int, run: int) -> Path:
    path = folder / f"S{subject:03d}R{run:02d}.edf"
    return path if path.is_file() else folder / path.name[:4] / path.name


def _edf_run(path: Path, run: int) -> Run:
    raw = read_raw(path)
    signal = raw.get_data(picks="eeg") * 1e6
    if len(signal) != _EEGMMI_CHANNELS:
        raise ValueError(f"{path} has {len(signal)} EEG channels; expected {_EEGMMI_CHANNELS}.")
    onsets, codes = events_of(raw, {"T1": 0, "T2": 1})
    return Run(str(path), signal, onsets, np.array(_FISTS)[codes], raw.info["sfreq"], run)


def check_subject(subject: object, last: int, what: str) -> None:
    """Refuse a subject that the data set does not have."""
    if not isinstance(subject, Integral) or int(subject) not in range(1, last + 1):
        raise ValueError(f"subject={subject!r}: {what} has subjects 1 to {last}.")


def check_classes(classes: Collection[str], known: Collection[str]) -> None:
    """Refuse classes that the data set does not have."""
    if isinstance(classes, str) or not len(classes) or not set(classes) <= set(known):
        raise ValueError(f"classes={classes!r}: expected some of {', '.join(known)}.")


def _check_eegmmi_runs(runs: Sequence[int]) -> None:
    if not len(runs) or len(set(runs)) != len(runs) or not set(runs) <= set(_EEGMMI_RUNS):
        known = f"{', '.join(map(str, _EEGMMI_RUNS))}, where T1 and T2 are the left and the right fist"
        raise ValueError(f"runs={runs!r}: expected different ones of {known}.")
