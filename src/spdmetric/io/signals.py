"""Signals in the formats that people have: arrays (n, channels, times), MNE's epochs, EDF and GDF recordings.

Arrays are read as those of matrices are.  The rest is read by MNE, an extra, after the sizes that a file
declares are compared with its own.
"""

from __future__ import annotations

import struct
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.caller import spell
from spdmetric.extras import needing
from spdmetric.io.files import FileError, Header, Refused, check_size, listed, reading, shortened
from spdmetric.io.folders import files_in
from spdmetric.io.matrices import (
    GROUP_HEADS,
    LABEL_HEADS,
    SIGNAL_SUFFIXES,
    Source,
    column_of,
    format_of,
    layout_of,
    looks_like_signals,
    read_column,
)

if TYPE_CHECKING:
    from mne import Info
    from mne.io import BaseRaw

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Pair = tuple[float, float]
_NOT_BRAIN = ("EOG", "ECG", "EMG")  # how channels are called that some files list among the EEG


@dataclass(frozen=True)
class Recipe:
    """How signals were read, for reading others in the same way: plain values, kept in model files."""

    kind: str  # "array", "epochs" or "recording"
    events: str | None = None  # "T1=left,T2=right"
    band: Pair | None = None  # Hz
    window: Pair | None = None  # seconds after the event
    channels: tuple[str, ...] | None = None

    def plain(self) -> dict[str, object]:
        """The same as a dictionary for JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def of(cls, plain: Mapping[str, object]) -> Recipe:
        """The inverse of `plain`; what is no recipe is refused."""
        known = {"kind": "str", "events": "str", "band": "pair", "window": "pair", "channels": "names"}
        if not isinstance(plain, Mapping) or set(plain) != set(known):
            raise ValueError(f"a recipe has the fields {sorted(known)}; got {shortened(plain)}")
        for name, rule in known.items():
            if not _is_plain(plain[name], rule) or (name == "kind" and plain[name] not in _KINDS):
                raise ValueError(f"{name} of the recipe is {shortened(repr(plain[name]))}")
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items()}
        return cls(**values)


_KINDS = ("array", "epochs", "recording")


def _is_plain(value: object, rule: str) -> bool:
    if value is None or rule == "str":
        return value is None or isinstance(value, str)
    if not isinstance(value, list):
        return False
    if rule == "names":
        return all(isinstance(item, str) for item in value)
    return len(value) == 2 and all(type(item) in (int, float) and isfinite(item) for item in value)


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
    low_high, moments = _pair("band", band), _pair("window", window)
    wanted = Recipe("recording", events, low_high, moments, recipe.channels if recipe else None)
    paths = [Path(path)] if isinstance(path, str | PathLike) else [Path(one) for one in path]
    if len(paths) == 1 and paths[0].is_dir():
        paths = files_in(paths[0], SIGNAL_SUFFIXES)
    if not paths:
        raise ValueError("path is an empty list; expected the names of files.")
    kinds = {_kind_of(one) for one in paths}
    if len(kinds) > 1 or (recipe is not None and kinds != {recipe.kind}):
        expected = f"{recipe.kind}s, as the model was trained on" if recipe else "files of one kind"
        raise FileError(f"{listed(paths)}: got {' and '.join(sorted(kinds))}; expected {expected}.")
    if kinds == {"array"}:
        return _read_arrays(paths, labels, groups, subject, wanted)
    if subject is not None:
        raise FileError(
            f"{paths[0]} is read without {spell('subject')}, which is for arrays of several subjects."
        )
    wanted = replace(wanted, kind=min(kinds))
    read = _read_epochs if wanted.kind == "epochs" else _read_recording
    found = _joined([read(one, wanted) for one in paths], paths, wanted, strict=recipe is None)
    y, g = (
        old if table is None else read_column(table, len(found.X), heads)
        for old, table, heads in ((found.y, labels, LABEL_HEADS), (found.groups, groups, GROUP_HEADS))
    )
    return replace(found, y=y, groups=g)


def holds_signals(path: str | PathLike[str], subject: int | None = None) -> bool:
    """Whether what has this name holds signals rather than matrices, as far as its headers tell."""
    path = Path(path)
    if path.is_dir():
        return any(one.suffix.lower() in SIGNAL_SUFFIXES for one in path.iterdir())
    if path.suffix.lower() in SIGNAL_SUFFIXES:
        return True
    with reading(path):
        names = format_of(path).names(path)
        if path.suffix.lower() == ".mat" and "data" in names and not {"X", "covs"} & set(names):
            return False  # the structure of the covariance toolbox
        key = layout_of(names, subject)[0]
        shape = format_of(path).headers(path, [key])[key].shape
        return looks_like_signals(shape) and shape[0] != shape[1]


def _kind_of(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix == ".fif":
        return "epochs"
    return "recording" if suffix in SIGNAL_SUFFIXES else "array"


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
        names = format_of(path).names(path)
        keys = layout_of(names, subject)
        headers = format_of(path).headers(path, [key for key in keys if key in names])
        check_size(listed(headers), sum(header.nbytes for header in headers.values()), path.stat().st_size)
        header = headers[keys[0]]
        last = _trials_are_last(path, header, headers.get(keys[1]))
        _check_signals(keys[0], header)
        n = header.shape[2 if last else 0]
        y, g = (
            None if given is None and key not in names else column_of(path, names, given or key, heads, n)
            for given, key, heads in ((labels, keys[1], LABEL_HEADS), (groups, keys[2], GROUP_HEADS))
        )
        stored = format_of(path).read(path, keys[0])
    X = np.ascontiguousarray(stored.transpose(2, 0, 1) if last else stored, dtype=np.float64)
    note = f"{keys[0]} is stored as {stored.shape}, trial after trial along its last axis; read as {X.shape}."
    return Signals(X, y, g, path.stem, Recipe("array"), (note,) if last else ())


def _trials_are_last(path: Path, header: Header, labels: Header | None) -> bool:
    """Whether an array of MATLAB is (channels, times, n): as many labels as it is long tell."""
    n = labels.size if labels is not None else None
    return (
        path.suffix.lower() == ".mat" and len(header.shape) == 3 and n == header.shape[2] != header.shape[0]
    )


def _check_signals(name: str, header: Header) -> None:
    if header.dtype.kind not in "fiub":
        raise Refused(f"{name} has dtype {header.dtype}; expected signals of real numbers.")
    if len(header.shape) != 3 or 0 in header.shape:
        raise Refused(
            f"{name} has shape {header.shape}; expected (n, channels, times), a signal for each trial."
        )


# ---------------------------------------------------------------------------
# MNE


class _Part(NamedTuple):
    """Trials of one file."""

    X: np.ndarray
    y: np.ndarray
    channels: tuple[str, ...]
    rate: float
    there: dict[str, int]  # names of all events, and how many
    notes: list[str]


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


def _read_recording(path: Path, wanted: Recipe) -> _Part:
    """Trials of an EDF or GDF file: the annotations of some names, after the filter."""
    raw = read_raw(path)
    with reading(path):
        there = _counted(raw.annotations.description)
        if wanted.events is None:
            todo = (
                f"pass {spell('events')}, the names of those that are trials, 'T1,T2' or 'T1=left,T2=right'"
            )
            raise Refused(f"{todo}; it has {_told(there)}.")
        if wanted.window is None:
            raise Refused(
                f"pass {spell('window', (0.5, 2.5))}, say: first and last second after the event."
            )
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
    y = np.array(list(labels.values()))[codes[inside]]
    return _Part(X, y, channels, rate, there, [] if inside.all() else [left])


def _read_epochs(path: Path, wanted: Recipe) -> _Part:
    """Trials of a file of MNE's epochs."""
    if wanted.band is not None:
        raise FileError(f"{path} holds epochs: leave out {spell('band')}, which belongs before the cut.")
    with needing("Reading FIF files needs MNE", "eeg"):
        import mne
    with reading(path), warnings.catch_warnings():
        if not path.name.endswith(("-epo.fif", "_epo.fif")):
            raise Refused("expected epochs, saved by MNE under a name that ends in -epo.fif.")
        _check_fif(path)
        warnings.simplefilter("error", RuntimeWarning)  # MNE's, of what is damaged
        epochs = mne.read_epochs(path, preload=True, proj=False, verbose="ERROR")
        names = {code: name for name, code in epochs.event_id.items()}
        described = np.array([names.get(code, str(code)) for code in epochs.events[:, 2].tolist()], dtype=str)
        there = _counted(described)
        labels = event_labels(wanted.events) if wanted.events else {name: name for name in there}
        kept = np.flatnonzero(np.isin(described, list(labels)))
        channels, unit = _channels(epochs.info, wanted.channels)
        X = epochs.get_data(picks=list(channels), verbose="ERROR")[kept] * unit
        if wanted.window is not None:
            X = np.ascontiguousarray(X[:, :, _moments(epochs.times, wanted.window)])
        y = np.array([labels[name] for name in described[kept]], dtype=str)
        return _Part(X, y, channels, float(epochs.info["sfreq"]), there, [])


def _moments(times: np.ndarray, window: Pair) -> slice:
    """The samples of epochs that lie in a window, its ends included."""
    half = 0.5 * (times[1] - times[0]) if len(times) > 1 else 0.0
    inside = np.flatnonzero((times >= window[0] - half) & (times <= window[1] + half))
    if window[0] < times[0] - half or window[1] > times[-1] + half or len(inside) < 2:
        raise Refused(f"{spell('window', window)}: its epochs go from {times[0]:g} to {times[-1]:g} seconds.")
    return slice(inside[0], inside[-1] + 1)


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(map(str, names)).items()))


def _told(there: Mapping[str, int]) -> str:
    return listed(f"{name} ({count})" for name, count in there.items())


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


def _joined(parts: list[_Part], paths: list[Path], wanted: Recipe, *, strict: bool) -> Signals:
    """One set of trials, if the files agree; ``strict``: every event that was asked for must be there."""
    first = parts[0]
    for part, path in zip(parts, paths, strict=True):
        for what in ("channels", "rate"):
            if getattr(part, what) != getattr(first, what):
                raise FileError(f"{path} has other {what} than {paths[0]}; files must agree to be joined.")
        if part.X.shape[2] != first.X.shape[2]:
            raise FileError(f"{path} has trials of another length than {paths[0]}; pass {spell('window')}.")
    there: Counter[str] = sum((Counter(part.there) for part in parts), Counter())
    asked = event_labels(wanted.events) if wanted.events else there
    missing = [name for name in asked if name not in there]
    y = np.concatenate([part.y for part in parts])
    notes = tuple(note for part in parts for note in part.notes)
    if not len(y) or (strict and missing):
        why = " ".join([f"no trial of {listed(missing or asked)}; there are {_told(there)}.", *notes])
        raise FileError(f"{listed(paths)}: {why}")
    groups = np.repeat([path.stem for path in paths], [len(part.X) for part in parts])
    X = first.X if len(parts) == 1 else np.concatenate([part.X for part in parts])
    name = paths[0].stem if len(parts) == 1 else paths[0].resolve().parent.name
    recipe = replace(wanted, channels=first.channels)
    return Signals(X, y, groups if len(parts) > 1 else None, name, recipe, notes, first.rate)


_FIF_DIRECTORY, _FIF_DIRECTORY_POINTER = 102, 101  # kinds of tags
_FIF_REFERENCES = range(115, 119)  # those that name another file
_MOST_TAGS = 100_000


def _check_fif(path: Path) -> None:
    """Follow the tags of a file as MNE will: each lies within it, and none names another file."""
    size, tags, at, pointer = path.stat().st_size, set[tuple[int, ...]](), 0, -1
    with path.open("rb") as file:
        while 0 <= at < size:
            file.seek(at)
            kind, form, length, following = struct.unpack(">iiii", file.read(16))
            if length < 0 or at + 16 + length > size or len(tags) >= _MOST_TAGS:
                raise Refused(f"its tag {len(tags)} is damaged, or ends after the end of the file.")
            if kind in _FIF_REFERENCES:
                raise Refused("it goes on in another file, which is not read: save the epochs in one file.")
            if kind == _FIF_DIRECTORY_POINTER:
                pointer = int.from_bytes(file.read(4), "big", signed=True)
            tags.add((kind, form, length, at))
            if following > 0 and following <= at:
                raise Refused("its tags lead back, and would be read without an end.")
            at = following if following else at + 16 + length
        if pointer > 0:
            file.seek(pointer)
            kind, form, length, _ = struct.unpack(">iiii", file.read(16))
            entries = np.frombuffer(file.read(min(length, 16 * _MOST_TAGS)) if length > 0 else b"", ">i4")
            found = {tuple(entry) for entry in entries[: len(entries) // 4 * 4].reshape(-1, 4).tolist()}
            if kind != _FIF_DIRECTORY or not found <= {*tags, (-1, -1, -1, -1)}:
                raise Refused("its directory lists other tags than the file holds: it is damaged.")


# ---------------------------------------------------------------------------
# Recordings


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
