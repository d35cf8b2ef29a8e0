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
from spdmetric.extras import needing
from spdmetric.io.columns import GROUP_HEADS, LABEL_HEADS, read_column
from spdmetric.io.files import FileError, Header, Refused, check_size, listed, reading
from spdmetric.io.matrices import (
    SIGNAL_SUFFIXES,
    Source,
    files_in,
    format_of,
    holds_toolbox,
    is_mat,
    layout_of,
    looks_like_signals,
    read_labeled,
)

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
        if not isinstance(recipe, Recipe):
            raise TypeError(f"recipe={recipe!r}: expected that of signals read before, signals.recipe.")
        events, band, window = recipe.events, recipe.band, recipe.window
    if events is not None:
        event_labels(events)
    paths = _listed_paths(path)
    kinds = {_KINDS.get(one.suffix.lower(), "array") for one in paths}
    if len(kinds) > 1 or (recipe is not None and kinds != {recipe.kind}):
        expected = f"{recipe.kind}s, as the model was trained on" if recipe else "files of one kind"
        raise FileError(f"{listed(paths)}: got {' and '.join(sorted(kinds))}; expected {expected}.")
    channels = recipe.channels if recipe else None
    wanted = Recipe(min(kinds), events, _pair("band", band), _pair("window", window), channels)
    if wanted.kind == "array":
        return _read_arrays(paths, labels, groups, subject, wanted)
    if subject is not None:
        raise FileError(
            f"{paths[0]} is read without {spell('subject')}, which is for arrays of several subjects."
        )
    read = _read_epochs if wanted.kind == "epochs" else _read_recording
    found = _joined([read(one, wanted) for one in paths], paths, wanted, strict=recipe is None)
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
    with reading(path):
        if holds_toolbox(path):
            return False
        key = layout_of(format_of(path).names(path), subject)[0]
        shape = format_of(path).headers(path, [key])[key].shape
        return looks_like_signals(shape) and shape[0] != shape[1]


def _listed_paths(path: Paths) -> list[Path]:
    """Files by their names, those of a folder, or of a list."""
    paths = [Path(path)] if isinstance(path, str | PathLike) else [Path(one) for one in path]
    if not paths:
        raise ValueError("path is an empty list; expected the names of files.")
    return files_in(paths[0], SIGNAL_SUFFIXES) if len(paths) == 1 and paths[0].is_dir() else paths


# ---------------------------------------------------------------------------
# Arrays


def _read_arrays(
    paths: list[Path], labels: Source, groups: Source, subject: int | None, wanted: Recipe
) -> Signals:
    """Trials of an array, of which MATLAB may have them along the last axis."""
    if len(paths) > 1:
        raise FileError(f"{listed(paths)}: several files of arrays are not read at once; join their arrays.")
    (path,) = paths
    if given := [name for name in ("events", "band", "window") if getattr(wanted, name) is not None]:
        only = "they are for recordings, whose trials are not cut yet"
        raise FileError(f"{path} holds arrays: leave out {', '.join(map(spell, given))}; {only}.")
    with reading(path):
        stored, y, g, key = read_labeled(path, subject, labels, groups, _count_trials)
        if stored.dtype.kind == "c":
            raise Refused(f"{key} holds complex numbers; expected signals of real numbers.")
    n_labels = 0 if y is None else len(y)
    last = is_mat(path) and n_labels == stored.shape[2] != stored.shape[0]
    X = np.ascontiguousarray(stored.transpose(2, 0, 1) if last else stored, dtype=np.float64)
    note = f"{key} is stored as {stored.shape}, trial after trial along its last axis; read as {X.shape}."
    return Signals(X, y, g, path.stem, Recipe("array"), (note,) if last else ())


def _count_trials(path: Path, name: str, header: Header, n_labels: int) -> int:
    """How many trials an array holds: of MATLAB's, as many labels as its last axis is long tell that."""
    shape = header.shape
    if header.dtype.kind not in "fiub":
        raise Refused(f"{name} has dtype {header.dtype}; expected signals of real numbers.")
    if len(shape) != 3 or 0 in shape:
        raise Refused(f"{name} has shape {shape}; expected (n, channels, times), a signal for each trial.")
    return shape[2] if is_mat(path) and n_labels == shape[2] else shape[0]


# ---------------------------------------------------------------------------
# MNE


def _pair(name: str, pair: Pair | None) -> Pair | None:
    """Two numbers, or None."""
    if pair is None:
        return None
    try:
        first, last = pair
        return float(first), float(last)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}={pair!r}: expected two numbers, as (0.5, 2.5).") from error


def event_labels(events: str) -> dict[str, str]:
    """Labels by the names of events: "T1=left,T2=right", or the names themselves, "T1,T2"."""
    if not isinstance(events, str):
        raise TypeError(f"{spell('events', events)}: expected one text, 'T1,T2' or 'T1=left,T2=right'.")
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in events.split(","))):
        name, equals, label = (piece.strip() for piece in part.partition("="))
        if not name or (equals and not label) or name in found:
            raise ValueError(
                f"{spell('events', events)}: expected different names, 'T1,T2' or 'T1=left,T2=right'."
            )
        found[name] = label or name
    if not found:
        raise ValueError(f"{spell('events', events)}: expected names, 'T1,T2' or 'T1=left,T2=right'.")
    return found


Part = tuple[Signals, Counter[str]]  # trials of one file, and how many events of each name it has


def _read_recording(path: Path, wanted: Recipe) -> Part:
    """Trials of an EDF or GDF file: the annotations of some names, after the filter."""
    raw = read_raw(path)
    with reading(path):
        there = Counter(map(str, raw.annotations.description))
        if wanted.events is None:
            todo = (
                f"pass {spell('events')}, the names of those that are trials, 'T1,T2' or 'T1=left,T2=right'"
            )
            raise Refused(f"{todo}; it has {_with_counts(there)}.")
        if wanted.window is None:
            raise Refused(f"pass {spell('window', (0.5, 2.5))}, say: first and last second after the event.")
        labels = event_labels(wanted.events)
        onsets, codes = events_of(raw, {name: k for k, name in enumerate(labels)})
        (channels, unit), rate = _channels(raw.info, wanted.channels), float(raw.info["sfreq"])
        signal = raw.get_data(picks=list(channels)) * unit
    try:
        samples = window_samples(rate, wanted.window)
        inside = (onsets + samples[0] >= 0) & (onsets + samples[-1] < signal.shape[1])
        X = cut_epochs(signal, onsets[inside], rate, band=wanted.band, window=wanted.window)
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    left = f"{path.name}: {np.sum(~inside)} trials were left out, whose window leaves the recording."
    y, notes = np.array(list(labels.values()))[codes[inside]], () if inside.all() else (left,)
    return Signals(X, y, None, path.stem, replace(wanted, channels=channels), notes, rate), there


def _read_epochs(path: Path, wanted: Recipe) -> Part:
    """Trials of a file of MNE's epochs."""
    if wanted.band is not None:
        raise FileError(f"{path} holds epochs: leave out {spell('band')}, which belongs before the cut.")
    with needing("Reading FIF files needs MNE", "eeg"):
        import mne
    with reading(path), warnings.catch_warnings():
        if not path.name.endswith(("-epo.fif", "_epo.fif")):
            raise Refused("expected epochs, saved by MNE under a name that ends in -epo.fif.")
        warnings.simplefilter("error", RuntimeWarning)  # MNE's, of what is damaged
        epochs = mne.read_epochs(path, preload=True, proj=False, verbose="ERROR")
        names = {code: name for name, code in epochs.event_id.items()}
        described = np.array([names.get(code, str(code)) for code in epochs.events[:, 2].tolist()], dtype=str)
        there = Counter(described.tolist())
        labels = event_labels(wanted.events) if wanted.events else {name: name for name in there}
        kept = np.flatnonzero(np.isin(described, list(labels)))
        channels, unit = _channels(epochs.info, wanted.channels)
        X = epochs.get_data(picks=list(channels), verbose="ERROR")[kept] * unit
        if wanted.window is not None:
            X = np.ascontiguousarray(X[:, :, _moments(epochs.times, wanted.window)])
        y, rate = np.array([labels[name] for name in described[kept]], dtype=str), float(epochs.info["sfreq"])
        return Signals(X, y, None, path.stem, replace(wanted, channels=channels), (), rate), there


def _moments(times: np.ndarray, window: Pair) -> slice:
    """The samples of epochs that lie in a window, its ends included."""
    half = 0.5 * (times[1] - times[0]) if len(times) > 1 else 0.0
    inside = np.flatnonzero((times >= window[0] - half) & (times <= window[1] + half))
    if window[0] < times[0] - half or window[1] > times[-1] + half or len(inside) < 2:
        raise Refused(f"{spell('window', window)}: its epochs go from {times[0]:g} to {times[-1]:g} seconds.")
    return slice(inside[0], inside[-1] + 1)


def _with_counts(there: Counter[str]) -> str:
    return listed(f"{name} ({count})" for name, count in sorted(there.items()))


def _channels(info: Info, wanted: tuple[str, ...] | None) -> tuple[tuple[str, ...], float]:
    """Names of the EEG channels, of the MEG channels where there are none, or those that are wanted.

    And what their signals are multiplied with: MNE has EEG in volt.
    """
    import mne

    picked, unit = mne.pick_types(info, eeg=True), 1e6
    if not len(picked):
        picked, unit = mne.pick_types(info, meg=True), 1.0
    names = [name for k in picked if not (name := info["ch_names"][k]).upper().startswith(_NOT_BRAIN)]
    if wanted is not None:
        if missing := [name for name in wanted if name not in info["ch_names"]]:
            raise Refused(f"it has no channel {listed(missing)}, as the model needs; it has {listed(names)}.")
        return wanted, unit
    if len(names) < 2:
        raise Refused(f"it has {len(names)} channels of EEG or MEG; expected two or more.")
    return tuple(names), unit


def _joined(parts: list[Part], paths: list[Path], wanted: Recipe, *, strict: bool) -> Signals:
    """One set of trials, if the files agree; ``strict``: every event that was asked for must be there."""
    found = [signals for signals, _ in parts]
    first, there = found[0], sum((counts for _, counts in parts), Counter())
    for part, path in zip(found, paths, strict=True):
        if (part.recipe.channels, part.rate) != (first.recipe.channels, first.rate):
            raise FileError(f"{path} has other channels than {paths[0]}, or another rate; files must agree.")
        if part.X.shape[2] != first.X.shape[2]:
            raise FileError(f"{path} has trials of another length than {paths[0]}; pass {spell('window')}.")
    asked = event_labels(wanted.events) if wanted.events else there
    missing = [name for name in asked if name not in there]
    y = np.concatenate([part.y for part in found])
    notes = tuple(note for part in found for note in part.notes)
    if not len(y) or (strict and missing):
        why = " ".join([f"no trial of {listed(missing or asked)}; there are {_with_counts(there)}.", *notes])
        raise FileError(f"{listed(paths)}: {why}")
    if len(found) == 1:
        return first
    groups = np.repeat([path.stem for path in paths], [len(part.X) for part in found])
    X, name = np.concatenate([part.X for part in found]), paths[0].resolve().parent.name
    return replace(first, X=X, y=y, groups=groups, name=name, notes=notes)


def read_raw(path: Path) -> BaseRaw:
    """Read an EDF or GDF file; whatever MNE raises on a damaged one becomes a sentence."""
    kind = path.suffix[1:].lower()
    with needing(f"Reading {kind.upper()} files needs MNE", "eeg"):
        import mne
    reader = {"edf": mne.io.read_raw_edf, "gdf": mne.io.read_raw_gdf}[kind]
    with warnings.catch_warnings(), reading(path):
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


def events_of(raw: BaseRaw, codes: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Samples, counted from the first one of the signal, and codes of the annotations named in ``codes``."""
    import mne

    if not set(codes) & set(raw.annotations.description):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    # Onsets are stored in seconds: MNE rounds them to the nearest sample.
    found, _ = mne.events_from_annotations(raw, codes, verbose="ERROR")
    return found[:, 0] - raw.first_samp, found[:, 2]


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
    if not np.isfinite(window).all():
        raise ValueError(f"{spell('window', window)}: expected two finite moments, in seconds.")
    first, last = (int(np.floor(moment * fs + 0.5)) for moment in window)
    if last <= first:
        raise ValueError(f"{spell('window', window)}: expected two rising moments, at least a sample apart.")
    return np.arange(first, last + 1)
