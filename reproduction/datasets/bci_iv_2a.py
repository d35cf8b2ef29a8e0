"""Data set 2a of the BCI Competition IV, from its files in either format or through MOABB."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from reproduction.datasets.eeg import Recording, Run, check_classes, check_subject, gather
from reproduction.datasets.files import (
    Folder,
    events_of,
    existing_folder,
    has_variable,
    read_mat,
    read_raw,
)
from spdmetric.extras import require_extra

if TYPE_CHECKING:
    from mne.io import BaseRaw
    from moabb.datasets.base import BaseDataset

BCI_CLASSES = ("left_hand", "right_hand", "feet", "tongue")

_BCI_CHANNELS = 22
_TRIAL_TO_CUE = 2.0  # seconds
_CUES = {"769": 1, "770": 2, "771": 3, "772": 4, "783": 0}  # 0: not told in the file
_RUN_START = {"32766": -1}


def load_bci_iv_2a(
    subject: int, folder: Folder | None = None, *, classes: Sequence[str] = ("left_hand", "right_hand")
) -> Recording:
    """Covariances of one subject of data set 2a of the BCI Competition IV [Tangermann2012]_.

    Parameters
    ----------
    subject : int
        1 to 9.
    folder : str or path-like, optional
        Folder with the original files; without it MOABB downloads them once.  Searched for are,
        in this order, ``A09T.mat`` and ``A09E.mat`` of BNCI Horizon 2020; ``A09T.gdf`` and
        ``A09E.gdf`` of the competition, the latter with ``A09E.mat`` of its true labels beside
        it or in ``true_labels``; and, for subject 9, ``MotorImagery.mat``, whose covariances
        were estimated by a similar protocol.
    classes : sequence of str, default=("left_hand", "right_hand")
        Some of "left_hand", "right_hand", "feet", "tongue".

    Returns
    -------
    recording : Recording
        22 x 22 matrices in squared microvolt, 72 for each class and session; the groups
        are "T", the training session, and "E", the evaluation session of another day.

    References
    ----------
    .. [Tangermann2012] M. Tangermann et al., "Review of the BCI Competition IV", Frontiers in Neuroscience 6,
       2012.
    """
    check_subject(subject, 9, "Data set 2a")
    check_classes(classes, BCI_CLASSES)
    if folder is None:
        with require_extra("Downloading data set 2a needs MOABB", "eeg", ", or pass the files' folder"):
            from moabb.datasets import BNCI2014_001
        recording = _moabb_recording(BNCI2014_001(), subject, classes)
        sessions = np.where(np.char.endswith(recording.groups, "train"), "T", "E")
        return recording._replace(groups=sessions)
    folder = existing_folder(folder)
    sources = _bci_sources(subject, folder)
    if len(sources) == 2:
        readers = {".mat": _mat_runs, ".gdf": _gdf_runs}
        runs = chain.from_iterable(readers[path.suffix](path, session) for session, path in sources.items())
        return gather(runs, classes, f"Subject {subject} in {folder}")
    if subject == 9 and (folder / "MotorImagery.mat").is_file():
        return _ready_made(folder / "MotorImagery.mat", classes)
    raise FileNotFoundError(_nothing_of(subject, folder, sources))


def bci_subjects(folder: Folder) -> list[int]:
    """Subjects of data set 2a with both sessions in a folder, as `load_bci_iv_2a` finds them."""
    folder = existing_folder(folder)
    ready = {9} if (folder / "MotorImagery.mat").is_file() else set()
    return [s for s in range(1, 10) if s in ready or len(_bci_sources(s, folder)) == 2]


def _bci_sources(subject: int, folder: Path) -> dict[str, Path]:
    """File of each session.  Only a variable ``data`` tells signals from the competition's true labels."""
    found = {}
    for session in ("T", "E"):
        mat, gdf = (folder / f"A{subject:02d}{session}{suffix}" for suffix in (".mat", ".gdf"))
        if mat.is_file() and has_variable(mat, "data"):
            found[session] = mat
        elif gdf.is_file():
            found[session] = gdf
    return found


def _nothing_of(subject: int, folder: Path, sources: dict[str, Path]) -> str:
    stem = f"A{subject:02d}"
    ready = ", and MotorImagery.mat" if subject == 9 else ""
    found = " and ".join(path.name for path in sources.values())
    return (
        f"No data of both sessions of subject {subject} in {folder}: looked for {stem}T.mat and {stem}E.mat "
        f"(BNCI Horizon 2020, data set 001-2014), {stem}T.gdf and {stem}E.gdf (BCI Competition IV, "
        f"data set 2a){ready}; found {f'only {found}' if found else 'none'}. "
        "Without a folder MOABB downloads the data."
    )


def _mat_runs(path: Path, session: str) -> Iterator[Run]:
    """Runs of a file of BNCI Horizon 2020; those for calibration have no trials."""
    for i, run in enumerate(np.atleast_1d(read_mat(path, "data")), start=1):
        name = f"{path}, run {i}"
        if missing := ", ".join(field for field in ("X", "trial", "y", "fs") if field not in run):
            raise ValueError(f"{name} has no {missing}: expected a run as BNCI Horizon 2020 stores it.")
        X = run["X"]
        if X.ndim != 2 or X.shape[1] < _BCI_CHANNELS:
            expected = "(n_samples, 25), the first 22 columns EEG"
            raise ValueError(f"{name}: X has shape {X.shape}; expected {expected}.")
        trial, fs = np.ravel(run["trial"]).astype(np.int64), float(run["fs"])
        y = _class_names(run["y"], name, expected=len(trial))
        onsets = trial - 1 + round(_TRIAL_TO_CUE * fs)  # trials start at 1-based samples
        yield Run(name, X.T[:_BCI_CHANNELS], onsets, y, fs, session)


def _gdf_runs(path: Path, session: str) -> Iterator[Run]:
    """Runs of a file of the competition, which strings them together with breaks between."""
    raw = read_raw(path)
    signal = raw.get_data(picks=[name for name in raw.ch_names if not name.startswith("EOG")]) * 1e6
    if len(signal) != _BCI_CHANNELS:
        raise ValueError(f"{path} has {len(signal)} channels that are not EOG; expected {_BCI_CHANNELS}.")
    samples, codes = events_of(raw, _CUES | _RUN_START)
    starts, cues, codes = samples[codes == -1], samples[codes >= 0], codes[codes >= 0]
    if not len(cues):
        raise ValueError(f"{path} has no cue (events {', '.join(_CUES)}): is it truncated?")
    if (codes == 0).any():
        codes[codes == 0] = _true_labels(path, np.sum(codes == 0))
    y = _class_names(codes, str(path), expected=len(cues))
    edges = np.unique([0, *starts, signal.shape[1]])
    for i, (start, stop) in enumerate(pairwise(edges), start=1):
        here = (start <= cues) & (cues < stop)
        start += _length_of_break(signal[:, start:stop])
        name = f"{path}, run {i}"
        yield Run(name, signal[:, start:stop], cues[here] - start, y[here], raw.info["sfreq"], session)


def _length_of_break(run: np.ndarray) -> int:
    """Count the missing samples that open a run: MNE gives them as a constant, in every channel."""
    first = int(np.argmax((run != run[:, :1]).any(axis=0)))
    return first if first > 1 else 0


def _true_labels(path: Path, n_cues: int) -> np.ndarray:
    """Read the labels of an evaluation session, which the competition published apart."""
    for labels in (path.with_suffix(".mat"), path.parent / "true_labels" / path.with_suffix(".mat").name):
        if labels.is_file() and has_variable(labels, "classlabel"):
            values = np.ravel(read_mat(labels, "classlabel"))
            if len(values) != n_cues:
                got = f"{labels} has {len(values)} labels"
                raise ValueError(f"{got} for the {n_cues} unknown cues of {path.name}.")
            return values
    raise FileNotFoundError(
        f"{path} does not tell the class of its {n_cues} cues (event 783): put {path.stem}.mat of the "
        f"competition's true labels, with the variable classlabel, into {path.parent}."
    )


def _class_names(numbers: np.ndarray, name: str, expected: int) -> np.ndarray:
    numbers = np.ravel(numbers)
    if len(numbers) != expected:
        raise ValueError(f"{name} has {len(numbers)} labels for {expected} trials; expected one for each.")
    if not np.isin(numbers, [1, 2, 3, 4]).all():
        raise ValueError(f"{name} has labels {np.unique(numbers).tolist()}; expected numbers 1 to 4.")
    return np.array(BCI_CLASSES)[numbers.astype(np.int64) - 1]


def _ready_made(path: Path, classes: Collection[str]) -> Recording:
    """The structure of the covariance toolbox: matrices (d, d, n), and the numbers of those of a session."""
    data = read_mat(path, "data")
    if not isinstance(data, dict) or not {"data", "labels", "idxTraining", "idxTest"} <= set(data):
        expected = "the structure data with data, labels, idxTraining and idxTest"
        raise ValueError(f"{path} does not tell its sessions; expected {expected}.")
    X = np.ascontiguousarray(data["data"].transpose(2, 0, 1))
    named = np.append(data["idxTraining"], data["idxTest"])
    if not np.array_equal(np.sort(named), np.arange(1, len(X) + 1)):
        raise ValueError(f"{path}: idxTraining and idxTest should name each of {len(X)} matrices once.")
    sessions = np.repeat(["T", "E"], [np.size(data["idxTraining"]), np.size(data["idxTest"])])
    y = _class_names(data["labels"], str(path), expected=len(X))
    wanted = np.isin(y, list(classes))
    return Recording(X[wanted], y[wanted], sessions[np.argsort(named)][wanted])


# ---------------------------------------------------------------------------
# MOABB


def _moabb_recording(dataset: BaseDataset, subject: int, classes: Collection[str]) -> Recording:
    """Covariances of one subject of a motor imagery set of MOABB; the groups are its sessions.

    Its annotations lie at the beginning of the imagery: for data set 2a at the cue, two seconds
    after the beginning of the trial that the files tell.
    """
    check_classes(classes, tuple(dataset.event_id))
    try:
        sessions = dataset.get_data(subjects=[subject])[subject]
    except OSError as error:
        failed = f"MOABB could not get subject {subject} of {dataset.code} ({error})"
        raise OSError(f"{failed}; with the files at hand, pass their folder.") from error
    return gather(_moabb_runs(sessions, dataset), classes, f"Subject {subject} of {dataset.code}")


def _moabb_runs(sessions: dict[str, dict[str, BaseRaw]], dataset: BaseDataset) -> Iterator[Run]:
    names = np.array(list(dataset.event_id))
    for session, runs in sessions.items():
        for run, raw in runs.items():
            onsets, codes = events_of(raw, {name: i for i, name in enumerate(names)})
            signal = raw.get_data(picks="eeg") * 1e6
            name = f"{dataset.code}, session {session}, run {run}"
            yield Run(name, signal, onsets, names[codes], raw.info["sfreq"], session)
