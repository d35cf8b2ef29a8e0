"""What the loaders share: folders, numbers in names, recordings by MNE, MATLAB files by SciPy."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spdmetric.extras import require_extra

if TYPE_CHECKING:
    from mne.io import BaseRaw

Folder = str | PathLike[str]
Seed = int | np.random.RandomState | None


def existing_folder(folder: Folder) -> Path:
    """Return the folder as a path, or say that there is none."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}.")
    return folder


def numbers_in(pattern: str, names: Iterable[str]) -> list[int]:
    """The numbers, ascending, that names hold where a pattern has its group."""
    return sorted(int(match[1]) for match in (re.fullmatch(pattern, name) for name in names) if match)


@contextmanager
def explain_unreadable(path: Path) -> Iterator[None]:
    """Turn whatever a library raises on a damaged file into one sentence that names the file."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        yield
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        sentence = f"{path} cannot be read: it is corrupt, truncated or of another format ({why})."
        raise ValueError(sentence) from error


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` file by name."""
    with explain_unreadable(path), np.load(path) as archive:
        return dict(archive)


def read_mat(path: Path, name: str) -> Any:
    """A variable of a MATLAB file, structures as dictionaries; None where the file has no such variable."""
    from scipy.io import loadmat

    with explain_unreadable(path):
        return loadmat(path, variable_names=[name], simplify_cells=True).get(name)


def has_variable(path: Path, name: str) -> bool:
    """Whether a MATLAB file has a variable."""
    from scipy.io import whosmat

    with explain_unreadable(path):
        return any(known == name for known, *_ in whosmat(path))


def read_raw(path: Path) -> BaseRaw:
    """Read an EDF or GDF file."""
    kind = path.suffix[1:].lower()
    with require_extra(f"Reading {kind.upper()} files needs MNE", "eeg"):
        import mne
    reader = {"edf": mne.io.read_raw_edf, "gdf": mne.io.read_raw_gdf}[kind]
    with warnings.catch_warnings(), explain_unreadable(path):
        # MNE would go on with what is left of a truncated file.
        warnings.filterwarnings("error", message="Number of records from the header does not match")
        # The trial that a recording stops in; whether its window is whole is asked later.
        warnings.filterwarnings("ignore", message=r"Limited \d+ annotation")
        # Most channels of the competition's files are called "EEG".
        warnings.filterwarnings("ignore", message="Channel names are not unique")
        return reader(path, preload=True, verbose="WARNING")


def events_of(raw: BaseRaw, codes: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Samples, counted from the first one of the signal, and codes of the annotations named in ``codes``."""
    import mne

    if not set(codes) & set(raw.annotations.description):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    # Onsets are stored in seconds: MNE rounds them to the nearest sample.
    found, _ = mne.events_from_annotations(raw, codes, verbose="ERROR")
    return found[:, 0] - raw.first_samp, found[:, 2]
