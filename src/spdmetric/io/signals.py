"""Signals in the formats that people have: arrays (n, channels, times), and all recordings and epochs of MNE.

Arrays are read as those of matrices are, the rest by MNE, an extra.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from os.path import relpath
from pathlib import Path
from sys import maxsize
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.caller import spell
from spdmetric.extras import require_extra
from spdmetric.io.arrays import SIGNAL_SUFFIXES, check_inflated, is_hdf5, open_arrays
from spdmetric.io.files import FileError, Header, check_size, explain_unreadable, list_some
from spdmetric.io.matrices import Matrices, Source, find_files, find_names, looks_like_signals, read_labeled
from spdmetric.io.tables import GROUP_HEADS, LABEL_HEADS, as_column, is_table, read_column

if TYPE_CHECKING:
    from mne import BaseEpochs, Info
    from mne.io import BaseRaw

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]
Pair = tuple[float, float]
_NOT_BRAIN = ("EOG", "ECG", "EMG")  # how channels are called that some files list among the EEG
_NOT_TO_TELL = (
    r"Limited \d+ annotation|Channel names are not unique|This filename .* does not conform to MNE naming|"
    "No coordinate information found|.*channel positions|Not setting position"
)


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
    places: tuple[tuple[str, float], ...] | None = None  # file and second of the event, one for each trial


# What has no meaning for which signals: a filter belongs before the cut.
_NOT_FOR = {
    "array": ("events", "band", "window"),
    "epochs": ("matrices", "subject", "band"),
    "recording": ("matrices", "subject"),
}


def read_signals(
    source: Paths | BaseRaw | BaseEpochs,
    labels: Source = None,
    groups: Source = None,
    *,
    matrices: str | None = None,
    subject: int | None = None,
    events: str | None = None,
    band: Pair | None = None,
    window: Pair | None = None,
    recipe: Recipe | None = None,
) -> Signals:
    """Read signals, one for each trial, and their labels and groups where there are any.

    Parameters
    ----------
    source : str, path-like, a sequence of them, or Raw or Epochs of MNE
        ``.npz``, ``.mat`` or ``.npy`` with an array (n, channels, times), named as `read_matrices` has
        it; a recording with annotations or a stimulus channel, ``.edf``, ``.bdf``, ``.gdf``, ``.vhdr``
        (BrainVision), ``.set`` (EEGLAB) or ``.fif``; epochs, ``.fif`` or ``.set``; several of these, or
        a folder of them, whose groups are then the files.
    labels, groups : str or path-like, optional
        A ``.csv`` file with a value for each trial; of arrays also the name of one, of epochs a column of
        their metadata, of recordings what their names tell: "run" of ``S001R04.edf`` or ``run-04.edf``.
    matrices : str, optional
        The name of the array of signals, if it is another than X.
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
    band, window = (pair and (float(pair[0]), float(pair[1])) for pair in (band, window))
    wanted = recipe or Recipe("", events, band, window)
    if wanted.events is not None:
        event_labels(wanted.events)  # or a sentence, before anything is read
    given = {"matrices": matrices, "subject": subject} | vars(wanted)
    if isinstance(source, str | PathLike) or hasattr(source, "get_data"):
        source = [source]
    sources = list(map(_as_source, source))
    if len(sources) == 1 and sources[0][1] is None and sources[0][0].is_dir():
        sources = [(path, None) for path in find_files(sources[0][0], SIGNAL_SUFFIXES)]
    parts, there = list[Signals](), set[str]()
    for path, signals in sources:
        with explain_unreadable(path) if signals is None else nullcontext():
            if signals is None and path.suffix.lower() in SIGNAL_SUFFIXES:
                signals = _open(path)
            kind = "array" if signals is None else "epochs" if hasattr(signals, "event_id") else "recording"
            wanted = replace(wanted, kind=wanted.kind or kind)
            if kind != wanted.kind:
                expected = f"{wanted.kind}, as the model was trained on" if recipe else "files of one type"
                raise FileError(f"got {kind}; expected {expected}.")
            if useless := ", ".join(spell(name) for name in _NOT_FOR[kind] if given[name] is not None):
                raise FileError(f"leave out {useless}, without meaning for signals of type {kind}.")
            if signals is None:
                if len(sources) > 1:
                    raise FileError("it holds an array; expected one file of those.")
                found = read_labeled(path, labels, groups, matrices, subject, _check_trials)
                X = np.asarray(found.X, dtype=np.float64)
                return Signals(X, found.y, found.groups, found.name, Recipe(kind), found.notes)
            part, described = _read_trials(signals, path, wanted, labels, groups)
            parts.append(part)
            there |= described
    return _join(parts, [path for path, _ in sources], there, labels, groups, strict=recipe is None)


def estimate_covariances(
    signals: Signals | BaseEpochs | ArrayLike, estimator: str = "oas", **options: Any
) -> Matrices:
    """Estimate a covariance matrix of each signal, with the names of its channels.

    Parameters
    ----------
    signals : Signals, Epochs of MNE, or array-like of shape (n, channels, times)
        What `read_signals` returns, or takes; labels of epochs are the names of their events.
    estimator : str, default="oas"
        In the words of ``pyriemann.estimation.Covariances``.
    **options
        Of `read_signals`, for epochs: ``groups="run"`` is a column of their metadata.

    Returns
    -------
    matrices : Matrices
        With labels and groups where the signals have them.
    """
    with require_extra("Covariances of signals need pyRiemann", "compare"):
        from pyriemann.estimation import Covariances
    if hasattr(signals, "get_data"):
        signals = read_signals(signals, **options)
    if not isinstance(signals, Signals):
        X = np.asarray(signals)
        if X.dtype.kind not in "fiub" or X.ndim != 3 or 0 in X.shape:
            got = f"an array of shape {X.shape} and dtype {X.dtype}"
            raise ValueError(f"Expected signals, real numbers (n, channels, times), or Epochs, got {got}.")
        signals = Signals(X.astype(np.float64), None, None, "signals", Recipe("array"))
    X, channels = Covariances(estimator).fit_transform(signals.X), signals.recipe.channels
    return Matrices(X, signals.y, signals.groups, signals.name, signals.notes, channels=channels)


def _as_source(source: Any) -> tuple[Path, Any]:
    """Where signals come from, and what MNE has in memory, which has a name too."""
    if isinstance(source, str | PathLike):
        return Path(source), None
    if not hasattr(source, "get_data"):
        raise TypeError(f"Expected names of files, or Raw or Epochs of MNE, got {type(source).__name__}.")
    known = [*(getattr(source, "filenames", None) or ()), getattr(source, "filename", None)]
    return Path(next(filter(None, known), type(source).__name__)), source


def holds_signals(path: str | PathLike[str], matrices: str | None = None, subject: int | None = None) -> bool:
    """Whether what has this name holds signals rather than matrices, as far as its headers tell."""
    path = Path(path)
    if path.is_dir():
        return any(one.suffix.lower() in SIGNAL_SUFFIXES for one in path.iterdir())
    if path.suffix.lower() in SIGNAL_SUFFIXES:
        return True
    with explain_unreadable(path), open_arrays(path) as (names, read_header, _):
        shape = read_header(find_names(names, matrices, subject)[0]).shape
        return looks_like_signals(shape) and shape[0] != shape[1]


def _check_trials(name: str, header: Header, n_labels: int, matlab: bool) -> bool:
    """Whether trials lie along the last axis: of MATLAB's, as many labels as that is long tell it."""
    shape = header.shape
    if header.dtype.kind not in "fiub" or len(shape) != 3 or 0 in shape:
        got = f"dtype {header.dtype} and shape {shape}"
        raise FileError(f"{name} has {got}; expected real numbers, (n, channels, times).")
    return matlab and shape[0] != n_labels == shape[2]


def event_labels(events: str) -> dict[str, str]:
    """Labels by the names of events: "T1=left,T2=right", or the names themselves, "T1,T2"."""
    parts = [part.partition("=") for part in events.split(",") if part.strip()]
    found = {name.strip(): label.strip() or name.strip() for name, _, label in parts}
    if not found or len(found) < len(parts) or "" in found or any(e and not v.strip() for _, e, v in parts):
        expected = "different names, 'T1,T2' or 'T1=left,T2=right'"
        raise ValueError(f"{spell('events', events)}: expected {expected}.")
    return found


def _open(path: Path) -> BaseRaw | BaseEpochs:
    """Open what MNE reads, by its suffix; whatever it raises on a damaged file becomes a sentence."""
    with require_extra(f"Reading {path.suffix} files needs MNE", "eeg"):
        import mne
    with warnings.catch_warnings():
        # MNE would go on with what is left of a truncated file.
        warnings.filterwarnings("error", message="Number of records from the header does not match")
        suffix = path.suffix.lower()
        if suffix == ".fif":  # of what is damaged
            warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("ignore", message=_NOT_TO_TELL)
        if suffix == ".set" and _count_trials_of_set(path) > 1:
            return mne.read_epochs_eeglab(path, verbose="WARNING")
        if suffix == ".vhdr":
            _check_names(re.findall(r"(?im)^\s*(?:Data|Marker)File\s*[=:](.*)$", path.read_text("latin-1")))
        try:
            raw = mne.io.read_raw(path, preload=False, verbose="WARNING")
        except ValueError:
            if suffix != ".fif":
                raise
            return mne.read_epochs(path, proj=False, preload=True, verbose="WARNING")
        files = [Path(name) for name in raw.filenames if name is not None]
        _check_names([relpath(one, path.parent) for one in files])
        # Channels of a low rate are given that of the highest.
        stored = sum(one.stat().st_size for one in files)
        check_size("the signal", 8 * len(raw.ch_names) * raw.n_times, stored)
        return raw.load_data(verbose="WARNING")


def _count_trials_of_set(path: Path) -> int:
    """Trials of an EEGLAB file, which can name a file with its data."""
    from scipy.io import loadmat

    if is_hdf5(path):
        raise FileError("it is of MATLAB 7.3, where data can be in any file; save it as version 7 in EEGLAB.")
    check_inflated(path)
    content = loadmat(path, variable_names=["EEG", "data", "trials"], simplify_cells=True)
    content = content.get("EEG", content)
    if isinstance(content.get("data"), str):
        _check_names([content["data"]])
    return int(content.get("trials", 1))


def _check_names(names: list[str]) -> None:
    """Refuse names of files that lead to another folder."""
    if elsewhere := [name.strip() for name in names if "/" in name or "\\" in name]:
        raise FileError(f"it names the file {list_some(elsewhere)}; expected a file in its own folder.")


def _read_trials(
    signals: Any, source: Path, wanted: Recipe, labels: Source, groups: Source
) -> tuple[Signals, set[str]]:
    """Trials of a recording or of epochs: those of the events that are wanted; and all events by name."""
    notes, columns = list[str](), dict[str, np.ndarray]()
    rate, recording = float(signals.info["sfreq"]), wanted.kind == "recording"
    marks, codes = _find_marks(signals) if recording else (signals.events, signals.event_id)
    names = {code: name for name, code in codes.items()}
    described = np.array([names.get(code, str(code)) for code in marks[:, 2].tolist()], dtype=str)
    there = set(described.tolist())
    classes = event_labels(wanted.events) if wanted.events else {name: name for name in there}
    kept = np.flatnonzero(np.isin(described, list(classes)))
    channels, unit = _pick_channels(signals.info, wanted.channels)
    onsets = marks[:, 0]
    if recording:
        if wanted.events is None or wanted.window is None:
            events, window = spell("events", "T1,T2"), spell("window", (0.5, 2.5))
            todo = f"pass {events}, the names of those that are trials, and {window}, seconds after them"
            raise FileError(f"{todo}; it has {list_some(sorted(there))}.")
        onsets, moments = onsets - signals.first_samp, window_samples(rate, wanted.window)
        first, last = onsets[kept] + float(moments[0]), onsets[kept] + float(moments[-1])
        inside = (first >= 0) & (last < signals.n_times)
        if not inside.all():
            left = f"{np.sum(~inside)} trials were left out, whose window leaves the recording."
            notes.append(f"{source.name}: {left}")
        kept = kept[inside]
        taken = 8 * len(kept) * len(channels) * (moments[-1] - moments[0] + 1)
        check_size("the trials", taken, 8 * len(signals.ch_names) * signals.n_times)
        signal = signals.get_data(picks=list(channels)) * unit
        X = cut_epochs(signal, onsets[kept], rate, band=wanted.band, window=wanted.window)
    else:
        X = signals.get_data(picks=list(channels), verbose="ERROR")[kept] * unit
        if wanted.window is not None:
            moments, before = window_samples(rate, wanted.window), round(signals.times[0] * rate)
            start, end = moments[0] - before, moments[-1] - before + 1
            if start < 0 or end > X.shape[2]:
                between = f"its epochs go from {signals.times[0]:g} to {signals.times[-1]:g} seconds"
                raise FileError(f"{spell('window', wanted.window)}: {between}.")
            X = X[:, :, start:end].copy()
        if signals.metadata is not None:
            columns = {str(name): column.to_numpy()[kept] for name, column in signals.metadata.items()}
    y = np.array([classes[event] for event in described[kept]], dtype=str)
    y = _find_values("labels", labels, y, columns, source.stem)
    g = _find_values("groups", groups, np.full(len(X), source.stem), columns, source.stem)
    places = tuple((source.name, float(onset) / rate) for onset in onsets[kept])
    recipe = replace(wanted, channels=channels)
    return Signals(X, y, g, source.stem, recipe, tuple(notes), rate, places), there


def _find_marks(raw: BaseRaw) -> tuple[np.ndarray, dict[str, int]]:
    """Events as MNE has them, of annotations or else of a stimulus channel, and their codes by name."""
    import mne

    codes = {name: k for k, name in enumerate(dict.fromkeys(map(str, raw.annotations.description)))}
    marks = np.empty((0, 3), dtype=int)
    if codes:  # with onsets in seconds, which MNE rounds to the nearest sample
        marks = mne.events_from_annotations(raw, codes, regexp=None, verbose="ERROR")[0]
    elif len(mne.pick_types(raw.info, meg=False, stim=True)):
        marks = mne.find_events(raw, shortest_event=1, verbose="ERROR")
    return marks, codes


def _find_values(
    option: str, given: Source, usual: np.ndarray, columns: dict[str, np.ndarray], file: str
) -> np.ndarray:
    """A value for each trial: of metadata, or one for all that the name of the file tells, or the usual."""
    if given is None or is_table(given):  # tables are of all files
        return usual
    name, n = str(given), len(usual)
    word, letter = re.escape(name), re.escape(name[:1].upper())
    # As BIDS has it, "sub-01_run-2", or "run2", or "S001R04".
    pattern = rf"(?:^|[_-])(?i:{word}|{word[:3]})[_-]?([^_-]+)|{letter}([0-9]+)"
    if name in columns:
        return as_column(name, columns[name], n, maxsize)
    if name and (told := re.search(pattern, file)):
        return np.full(n, told[1] or told[2])
    there = f"its metadata have {list_some(columns)}" if columns else "it has no metadata"
    expected = "a .csv file, a column of metadata, or a part of the name of the file, as run of S001R04"
    raise FileError(f"{spell(option, name)}: expected {expected}; {there}.")


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
        raise FileError(f"it has the channels {list_some(names)} of EEG or MEG; expected {expected}.")
    return tuple(wanted or names), unit


def _join(
    parts: list[Signals], paths: list[Path], there: set[str], labels: Source, groups: Source, *, strict: bool
) -> Signals:
    """One set of trials, if the files agree; ``strict``: every event that was asked for must be there."""
    first, notes = parts[0], tuple(note for part in parts for note in part.notes)
    for part, path in zip(parts, paths, strict=True):
        if (part.recipe, part.rate, part.X.shape[2]) != (first.recipe, first.rate, first.X.shape[2]):
            raise FileError(f"{path} and {paths[0]} differ in channels, rate or length of trials.")
    y, g = (np.concatenate([vars(part)[name] for part in parts]) for name in ("y", "groups"))
    asked = event_labels(first.recipe.events) if first.recipe.events else there
    missing = [name for name in asked if name not in there]
    if not len(y) or (strict and missing):
        no_trial = f"no trial of {list_some(missing or asked)}; there are {list_some(sorted(there))}."
        raise FileError(f"{list_some(paths)}: {' '.join([no_trial, *notes])}")
    if labels is not None and is_table(labels):
        y = read_column(labels, len(y), LABEL_HEADS)
    if groups is not None and is_table(groups):
        g = read_column(groups, len(g), GROUP_HEADS)
    if len(parts) == 1:
        return replace(first, y=y, groups=None if groups is None else g)
    X, name = np.concatenate([part.X for part in parts]), paths[0].resolve().parent.name
    places = tuple(place for part in parts for place in part.places or ())
    return Signals(X, y, g, name, first.recipe, notes, first.rate, places)


def cut_epochs(
    signal: ArrayLike, onsets: ArrayLike, fs: float, *, band: Pair | None, window: Pair
) -> np.ndarray:
    """Windows after the events of a recording, band-passed as a whole, (n, n_channels, n_times).

    The Butterworth filter of order 5 is causal, and starts from rest at the first sample.
    """
    from scipy.signal import butter, sosfilt

    signal, onsets = np.asarray(signal, dtype=np.float64), np.asarray(onsets)
    if signal.ndim != 2:
        raise FileError(f"Expected a signal of shape (n_channels, n_samples), got shape {signal.shape}.")
    if onsets.ndim != 1 or not np.array_equal(onsets, np.floor(onsets)):
        raise FileError("Expected onsets as a list of whole numbers, samples of the signal.")
    if band is not None and not 0 < band[0] < band[1] < fs / 2:
        expected = f"two rising frequencies above 0 and below {fs / 2:g} Hz"
        raise FileError(f"{spell('band', band)} at fs={fs:g} Hz: expected {expected}.")
    moments, onsets = window_samples(fs, window), onsets.astype(np.int64)
    if moments[-1] - moments[0] >= signal.shape[1]:  # before anything of that size is made
        long = f"{signal.shape[1]} samples at {fs:g} Hz"
        raise FileError(f"{spell('window', window)} is longer than the signal, {long}.")
    samples = onsets[:, None] + np.arange(moments[0], moments[-1] + 1)
    outside = np.flatnonzero((samples[:, 0] < 0) | (samples[:, -1] >= signal.shape[1]))
    if len(outside):
        k = outside[0]
        got = f"The window of onsets[{k}] is samples {samples[k, 0]} to {samples[k, -1]}"
        raise FileError(f"{got}, but the signal has {signal.shape[1]} samples; leave that trial out.")
    filtered = signal if band is None else sosfilt(butter(5, band, "band", fs=fs, output="sos"), signal)
    epochs = filtered[:, samples].transpose(1, 0, 2)  # (n_trials, n_channels, n_times)
    missing = np.flatnonzero(~np.isfinite(epochs).all(axis=(1, 2)))
    if len(missing):
        which = f"The window of onsets[{missing[0]}] holds NaN or infinity after the filter"
        raise FileError(f"{which}, which spreads missing samples: cut the signal after them.")
    return epochs


def window_samples(fs: float, window: Pair) -> range:
    """Samples of a window, its ends included, counted from the event."""
    first, last = np.floor(np.asarray(window) * fs + 0.5)
    if not np.isfinite(window).all() or last <= first:
        raise FileError(f"{spell('window', window)}: expected two rising moments, in seconds.")
    return range(int(first), int(last) + 1)
