"""Signals in the formats that people have: arrays (n, channels, times), MNE's epochs, EDF and GDF recordings.

Arrays are read as those of matrices are, the rest by MNE, an extra.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.caller import spell
from spdmetric.extras import require_extra
from spdmetric.io.arrays import SIGNAL_SUFFIXES, is_mat
from spdmetric.io.columns import GROUP_HEADS, LABEL_HEADS, read_column
from spdmetric.io.files import FileError, Header, Refused, check_size, explain_unreadable, list_some
from spdmetric.io.matrices import Source, find_files, find_header, looks_like_signals, read_labeled

if TYPE_CHECKING:
    from mne import Info
    from mne.io import BaseRaw

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Pair = tuple[float, float]
_KINDS = {".fif": "epochs", ".edf": "recording", ".gdf": "recording"}  # of others: arrays
_NOT_BRAIN = ("EOG", "ECG", "EMG")  # how channels are called that some files list among the EEG


@dataclass(frozen=True)
class Recipe:
    """How signals were read, for reading others in the same way: plain values, kept in model files."""

    kind: str  # "array", "epochs" or "recording"
    events: str | None = None  # "T1=left,T2=right"
    band: Pair | None = None  # Hz
    window: Pair | None = None  # seconds after the event
    channels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Signals:
    """Trials of a file, with what the file or its companions say of each."""

    X: np.ndarray  # (n, channels, times), float64; EEG that MNE reads is in microvolt
    y: np.ndarray | None  # (n,)
    groups: np.ndarray | None  # (n,); of several files, the file of each
    name: str  # of the file, without folder and suffix
    recipe: Recipe  # with the names of the channels, where they are known
    notes: tuple[str, ...] = ()  # what was done to them when they were read, in sentences
    rate: float | None = None  # Hz


def read_signals(
    path: Paths,
    labels: Source = None,
    groups: Source = None,
    *,
    subject: int | None = None,
    events: str | None = None,
    band: Pair | None = None,
    window: Pair | None = None,
    recipe: Recipe | None = None,
) -> Signals:
    """Read signals, one for each trial, and their labels and groups where there are any.

    Parameters
    ----------
    path : str, path-like or a sequence of them
        ``.npz``, ``.mat`` or ``.npy`` with an array (n, channels, times), named as `read_matrices` has
        it; MNE's epochs, ``-epo.fif``; a recording with annotations, ``.edf`` or ``.gdf``; several of
        the last two, or a folder of them, whose groups are then the files.
    labels, groups : str or path-like, optional
        A ``.csv`` file with a value for each trial; of arrays also the name of one.
    subject : int, optional
        Which subject to read from arrays of several.
    events : str, optional
        Names of the annotations, or of the events of epochs, that are trials, with their labels if those
        differ: "T1,T2" or "T1=left,T2=right".  Recordings need it.
    band : (float, float), optional
        Edges in Hz of a causal Butterworth band-pass filter of order 5 over the whole recording, which
        epochs and arrays do not take: it belongs before the cut.
    window : (float, float), optional
        First and last moment of a trial, both included, in seconds after the event.  Recordings need it;
        it cuts epochs; arrays do not take it.
    recipe : Recipe, optional
        That of signals read before: the others are read in the same way, the same channels of them in the
        same order.  What it holds is not given again.

    Returns
    -------
    signals : Signals
    """
    if recipe is not None:
        events, band, window = recipe.events, recipe.band, recipe.window
    if events is not None:
        event_labels(events)  # or a sentence, before anything is read
    paths = [Path(path)] if isinstance(path, str | PathLike) else [Path(one) for one in path]
    if len(paths) == 1 and paths[0].is_dir():
        paths = find_files(paths[0], SIGNAL_SUFFIXES)
    kinds = {_KINDS.get(one.suffix.lower(), "array") for one in paths}
    if len(kinds) != 1 or (recipe is not None and kinds != {recipe.kind}):
        expected = "files of one type" if recipe is None else f"{recipe.kind}s, as the model was trained on"
        raise FileError(f"{list_some(paths)}: got {' and '.join(sorted(kinds))}; expected {expected}.")
    channels = recipe.channels if recipe else None
    band, window = (pair and (float(pair[0]), float(pair[1])) for pair in (band, window))
    wanted = Recipe(min(kinds), events, band, window, channels)
    if wanted.kind == "array":
        return _read_arrays(paths, labels, groups, subject, wanted)
    if subject is not None:
        raise FileError(f"{paths[0]} is read without {spell('subject')}, which is for arrays.")
    read = _read_epochs if wanted.kind == "epochs" else _read_recording
    found = _join([read(one, wanted) for one in paths], paths, wanted, strict=recipe is None)
    y = found.y if labels is None else read_column(labels, len(found.X), LABEL_HEADS)
    g = found.groups if groups is None else read_column(groups, len(found.X), GROUP_HEADS)
    return replace(found, y=y, groups=g)


def holds_signals(path: str | PathLike[str], subject: int | None = None) -> bool:
    """Whether what has this name holds signals rather than matrices, as far as its headers tell."""
    path = Path(path)
    if path.is_dir():
        return any(one.suffix.lower() in SIGNAL_SUFFIXES for one in path.iterdir())
    if path.suffix.lower() in SIGNAL_SUFFIXES:
        return True
    with explain_unreadable(path):
        shape = find_header(path, subject).shape
        return looks_like_signals(shape) and shape[0] != shape[1]


# ---------------------------------------------------------------------------
# Arrays


def _read_arrays(
    paths: list[Path], labels: Source, groups: Source, subject: int | None, wanted: Recipe
) -> Signals:
    """Trials of an array, of which MATLAB may have them along the last axis."""
    path = paths[0]
    options = [spell(name) for name in ("events", "band", "window") if getattr(wanted, name) is not None]
    if len(paths) > 1 or options:
        todo = "expected one file, whose trials are cut already"
        raise FileError(f"{list_some(paths)}: {todo}" + f": leave out {', '.join(options)}." * bool(options))
    with explain_unreadable(path):
        stored, y, g, key = read_labeled(path, subject, labels, groups, _count_trials)
    n_labels = 0 if y is None else len(y)
    last = is_mat(path) and n_labels == stored.shape[2] != stored.shape[0]
    X = np.ascontiguousarray(stored.transpose(2, 0, 1) if last else stored, dtype=np.float64)
    note = f"{key} is stored as {stored.shape}, trial after trial along its last axis; read as {X.shape}."
    return Signals(X, y, g, path.stem, Recipe("array"), (note,) if last else ())


def _count_trials(path: Path, name: str, header: Header, n_labels: int) -> int:
    """How many trials an array holds: of MATLAB's, as many labels as its last axis is long tell that."""
    shape = header.shape
    if header.dtype.kind not in "fiub" or len(shape) != 3 or 0 in shape:
        expected = "real numbers, (n, channels, times), a signal for each trial"
        raise Refused(f"{name} has dtype {header.dtype} and shape {shape}; expected {expected}.")
    return shape[2] if is_mat(path) and n_labels == shape[2] else shape[0]


# ---------------------------------------------------------------------------
# MNE


def event_labels(events: str) -> dict[str, str]:
    """Labels by the names of events: "T1=left,T2=right", or the names themselves, "T1,T2"."""
    parts = [part.partition("=") for part in events.split(",") if part.strip()]
    found = {name.strip(): label.strip() or name.strip() for name, _, label in parts}
    if not found or len(found) < len(parts) or "" in found or any(e and not v.strip() for _, e, v in parts):
        expected = "different names, 'T1,T2' or 'T1=left,T2=right'"
        raise ValueError(f"{spell('events', events)}: expected {expected}.")
    return found


Part = tuple[Signals, Counter[str]]  # trials of one file, and how many events of each name it has


def _read_recording(path: Path, wanted: Recipe) -> Part:
    """Trials of an EDF or GDF file: the annotations of some names, after the filter."""
    raw = _read_raw(path)
    import mne

    there = Counter(map(str, raw.annotations.description))
    if wanted.events is None or wanted.window is None:
        events, window = spell("events", "T1,T2"), spell("window", (0.5, 2.5))
        todo = f"pass {events}, the names of those that are trials, and {window}, seconds after them"
        raise FileError(f"{path}: {todo}; it has {list_some(sorted(there))}.")
    labels = event_labels(wanted.events)
    with explain_unreadable(path):
        codes = {name: k for k, name in enumerate(labels) if name in there}
        # Onsets are stored in seconds: MNE rounds them to the nearest sample.
        found = (
            mne.events_from_annotations(raw, codes, verbose="ERROR")[0] if codes else np.empty((0, 3), int)
        )
        onsets = found[:, 0] - raw.first_samp
        (channels, unit), rate = _pick_channels(raw.info, wanted.channels), float(raw.info["sfreq"])
        signal = raw.get_data(picks=list(channels)) * unit
    try:
        samples = window_samples(rate, wanted.window)
        inside = (onsets + samples[0] >= 0) & (onsets + samples[-1] < signal.shape[1])
        X = cut_epochs(signal, onsets[inside], rate, band=wanted.band, window=wanted.window)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    left = f"{path.name}: {np.sum(~inside)} trials were left out, whose window leaves the recording."
    y, notes = np.array(list(labels.values()))[found[inside, 2]], () if inside.all() else (left,)
    return Signals(X, y, None, path.stem, replace(wanted, channels=channels), notes, rate), there


def _read_epochs(path: Path, wanted: Recipe) -> Part:
    """Trials of a file of MNE's epochs."""
    with require_extra("Reading FIF files needs MNE", "eeg"):
        import mne
    with explain_unreadable(path), warnings.catch_warnings():
        if wanted.band is not None or not path.name.endswith(("-epo.fif", "_epo.fif")):
            todo = f"without {spell('band')}, which belongs before the cut"
            raise Refused(f"expected epochs, saved by MNE under a name that ends in -epo.fif, {todo}.")
        warnings.simplefilter("error", RuntimeWarning)  # MNE's, of what is damaged
        epochs = mne.read_epochs(path, preload=True, proj=False, verbose="ERROR")
        names = {code: name for name, code in epochs.event_id.items()}
        described = np.array([names.get(code, str(code)) for code in epochs.events[:, 2].tolist()], dtype=str)
        there = Counter(described.tolist())
        labels = event_labels(wanted.events) if wanted.events else {name: name for name in there}
        kept = np.flatnonzero(np.isin(described, list(labels)))
        channels, unit = _pick_channels(epochs.info, wanted.channels)
        X = epochs.get_data(picks=list(channels), verbose="ERROR")[kept] * unit
        if wanted.window is not None:
            X = X[:, :, _find_moments(epochs.times, wanted.window)].copy()
        y, rate = np.array([labels[name] for name in described[kept]], dtype=str), float(epochs.info["sfreq"])
        return Signals(X, y, None, path.stem, replace(wanted, channels=channels), (), rate), there


def _find_moments(times: np.ndarray, window: Pair) -> slice:
    """The samples of epochs that lie in a window, its ends included."""
    half = 0.5 * (times[1] - times[0]) if len(times) > 1 else 0.0
    inside = np.flatnonzero((times >= window[0] - half) & (times <= window[1] + half))
    if window[0] < times[0] - half or window[1] > times[-1] + half or len(inside) < 2:
        raise Refused(f"{spell('window', window)}: its epochs go from {times[0]:g} to {times[-1]:g} seconds.")
    return slice(inside[0], inside[-1] + 1)


def _pick_channels(info: Info, wanted: tuple[str, ...] | None) -> tuple[tuple[str, ...], float]:
    """Names of the EEG channels, of the MEG channels where there are none, or those that are wanted.

    And what their signals are multiplied with: MNE has EEG in volt.
    """
    import mne

    picked, unit = mne.pick_types(info, eeg=True), 1e6
    if not len(picked):
        picked, unit = mne.pick_types(info, meg=True), 1.0
    names = [name for k in picked if not (name := info["ch_names"][k]).upper().startswith(_NOT_BRAIN)]
    missing = [name for name in wanted or () if name not in info["ch_names"]]
    if missing or len(wanted or names) < 2:
        expected = f"{list_some(missing)}, as the model needs" if missing else "two or more"
        raise Refused(f"it has the channels {list_some(names)} of EEG or MEG; expected {expected}.")
    return tuple(wanted or names), unit


def _join(parts: list[Part], paths: list[Path], wanted: Recipe, *, strict: bool) -> Signals:
    """One set of trials, if the files agree; ``strict``: every event that was asked for must be there."""
    found = [signals for signals, _ in parts]
    first, there = found[0], sum((counts for _, counts in parts), Counter())
    for part, path in zip(found, paths, strict=True):
        pairs = ((of.recipe.channels, of.rate, of.X.shape[2]) for of in (part, first))
        if next(pairs) != next(pairs):
            other = "other channels, another rate or trials of another length"
            raise FileError(f"{path} has {other} than {paths[0]}; files must agree.")
    asked = event_labels(wanted.events) if wanted.events else there
    missing = [name for name in asked if name not in there]
    y = np.concatenate([part.y for part in found])
    notes = tuple(note for part in found for note in part.notes)
    if not len(y) or (strict and missing):
        why = " ".join(
            [f"no trial of {list_some(missing or asked)}; there are {list_some(sorted(there))}.", *notes]
        )
        raise FileError(f"{list_some(paths)}: {why}")
    if len(found) == 1:
        return first
    groups = np.repeat([path.stem for path in paths], [len(part.X) for part in found])
    X, name = np.concatenate([part.X for part in found]), paths[0].resolve().parent.name
    return replace(first, X=X, y=y, groups=groups, name=name, notes=notes)


def _read_raw(path: Path) -> BaseRaw:
    """Read an EDF or GDF file; whatever MNE raises on a damaged one becomes a sentence."""
    with require_extra("Reading EDF and GDF files needs MNE", "eeg"):
        import mne
    reader = {".edf": mne.io.read_raw_edf, ".gdf": mne.io.read_raw_gdf}[path.suffix.lower()]
    with warnings.catch_warnings(), explain_unreadable(path):
        # MNE would go on with what is left of a truncated file.
        warnings.filterwarnings("error", message="Number of records from the header does not match")
        # The trial that a recording stops in; whether its window is whole is asked later.
        warnings.filterwarnings("ignore", message=r"Limited \d+ annotation")
        # Most channels of the competition's files are called "EEG".
        warnings.filterwarnings("ignore", message="Channel names are not unique")
        raw = reader(path, preload=False, verbose="WARNING")
        # Channels of a low rate are given that of the highest.
        check_size("the signal", 8 * len(raw.ch_names) * raw.n_times, path.stat().st_size)
        return raw.load_data(verbose="WARNING")


def cut_epochs(
    signal: ArrayLike, onsets: ArrayLike, fs: float, *, band: Pair | None, window: Pair
) -> np.ndarray:
    """Windows after the events of a recording, band-passed as a whole, (n, n_channels, n_times).

    The Butterworth filter of order 5 is causal, and starts from rest at the first sample.
    """
    from scipy.signal import butter, sosfilt

    signal, onsets = np.asarray(signal, dtype=np.float64), np.asarray(onsets)
    if signal.ndim != 2:
        raise ValueError(f"Expected a signal of shape (n_channels, n_samples), got shape {signal.shape}.")
    if onsets.ndim != 1 or not np.array_equal(onsets, np.floor(onsets)):
        raise ValueError("Expected onsets as a list of whole numbers, samples of the signal.")
    if band is not None and not 0 < band[0] < band[1] < fs / 2:
        expected = f"two rising frequencies above 0 and below {fs / 2:g} Hz"
        raise ValueError(f"{spell('band', band)} at fs={fs:g} Hz: expected {expected}.")
    samples = onsets.astype(np.int64)[:, None] + window_samples(fs, window)
    outside = np.flatnonzero((samples[:, 0] < 0) | (samples[:, -1] >= signal.shape[1]))
    if len(outside):
        k = outside[0]
        got = f"The window of onsets[{k}] is samples {samples[k, 0]} to {samples[k, -1]}"
        raise ValueError(f"{got}, but the signal has {signal.shape[1]} samples; leave that trial out.")
    filtered = signal if band is None else sosfilt(butter(5, band, "band", fs=fs, output="sos"), signal)
    epochs = filtered[:, samples].transpose(1, 0, 2)  # (n_trials, n_channels, n_times)
    missing = np.flatnonzero(~np.isfinite(epochs).all(axis=(1, 2)))
    if len(missing):
        raise ValueError(
            f"The window of onsets[{missing[0]}] holds NaN or infinity after the filter, which spreads a "
            "missing sample over all that follow; cut the signal after the missing samples."
        )
    return epochs


def window_samples(fs: float, window: Pair) -> np.ndarray:
    """Samples of a window, its ends included, counted from the event."""
    first, last = np.floor(np.asarray(window) * fs + 0.5)
    if not np.isfinite(window).all() or last <= first:
        raise ValueError(f"{spell('window', window)}: expected two rising moments, in seconds.")
    return np.arange(int(first), int(last) + 1)
