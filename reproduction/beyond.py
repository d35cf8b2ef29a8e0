"""The table beyond the paper: all data at hand, all methods, summarized by groups of rows.

Every group comes from one folder inside the data folder.  A group whose files are absent is
kept, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction import datasets
from reproduction.baselines import RIDGE
from reproduction.datasets import BCI_CLASSES
from reproduction.methods import KNOWN
from reproduction.tables import FixedRow, Group, Row, Table, bci_row, folds_of, texture_table, toy_table
from reproduction.transfer import read_recordings
from spdmetric.comparison.methods import CSP_FILTERS, NCA_INPUTS, NCA_OUTPUTS, NCA_STEPS, too_few
from spdmetric.datasets import recenter

BEYOND = (
    *("spdmetric", "spdmetric-neighbors", "logeuclid-identity", "logeuclid-mean", "logeuclid-kta"),
    *("riemann", "euclid", "stein", "logeuclid-kta-rank", "logeuclid-mean-11nn", "logeuclid-mean-centroid"),
    *("logeuclid-mean-lda", "logeuclid-mean-weighting", "class-directions", "logeuclid-mean-logistic"),
    *("mdm", "fgmdm", "csp-lda", "nca", "gmml", "rca"),
)

# "none", or "session": training and test matrices apart, each by its own Riemannian mean.
EEGMMI_WHITENING = "session"
CHO_WHITENING = "none"

MOTOR_STRIP = 21  # the first channels of EEGMMI: FC, C and CP
TRAINED_ON, TESTED_ON = range(1, 11), range(11, 21)  # subjects, of the group across subjects
QUICK_SUBJECTS = 5

NOTES = (
    "What is chosen is chosen by cross-validation inside the training set. All other methods have fixed "
    "settings: LE low rank radius 5 and half the size as rank; GMML and RCA a ridge of "
    f"{RIDGE} and principal components up to half the training matrices; NCA {NCA_INPUTS} principal "
    f"components to {NCA_OUTPUTS}, {NCA_STEPS} steps; CSP {CSP_FILTERS} filters; logistic regression C = 1.",
    "Folds and runs of one subject share training matrices: the standard errors of single rows in the JSON "
    "file are no more than a hint there.",
)


def _toy(_: Path) -> dict[str, Row]:
    return {f"toy {name}": row for name, row in toy_table("toy").rows.items()}


def _subject_9(choices: Mapping[str, tuple[str, ...]], folder: Path) -> dict[str, Row]:
    return {f"subject 9, {name}": bci_row(9, folder, classes, "session") for name, classes in choices.items()}


def _cho(folder: Path) -> dict[str, Row]:
    recordings = {s: datasets.load_cho2017(s, folder) for s in datasets.cho2017_subjects(folder)}
    if not recordings:
        raise FileNotFoundError(f"{folder} holds no file such as subject01.npz")
    return {
        f"cho {s}": FixedRow.of_parts(r.X, r.y, folds_of(r.y), CHO_WHITENING) for s, r in recordings.items()
    }


def _eegmmi(channels: int, folder: Path) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for subject in datasets.eegmmi_covariance_subjects(folder):
        X, y, runs = datasets.load_eegmmi_covariances(subject, folder)
        X = X[:, :channels, :channels]
        rows[f"eegmmi-{channels} {subject}"] = FixedRow.of_parts(X, y, runs, EEGMMI_WHITENING)
    return rows


def _across(folder: Path) -> dict[str, Row]:
    trials = read_recordings(folder)
    if not {*TRAINED_ON, *TESTED_ON} <= set(trials.subject.tolist()):
        raise FileNotFoundError(f"{folder} does not hold all of subjects 1 to 20")
    trials = trials.of(np.isin(trials.subject, (*TRAINED_ON, *TESTED_ON)))
    whitened = recenter(trials.X, trials.subject, how="session")
    return {"eegmmi-across": FixedRow(whitened, trials.y, np.isin(trials.subject, TESTED_ON)[None])}


def _ssvep(folder: Path) -> dict[str, Row]:
    """The first recording of each subject is tested, the others are learned from; nothing is whitened."""
    recordings = {s: datasets.load_ssvep(s, folder) for s in datasets.ssvep_subjects(folder)}
    return {
        f"ssvep {s}": FixedRow(r.X, r.y, (r.groups == r.groups.min())[None]) for s, r in recordings.items()
    }


class Source(NamedTuple):
    """Where the rows of a group come from."""

    title: str
    folders: tuple[str, ...]  # to look for, the first that exists
    load: Callable[[Path], dict[str, Row]]
    over: str = "repeats"  # see `Group`


_PAIRS = {f"{a} vs {b}": (a, b) for a, b in combinations(BCI_CLASSES, 2)}
_BCI, _BCI_FOLDERS = "BCI IV 2a, subject 9, T to E, {}, sessions whitened apart", ("bci2a", "bci2a-a09")
_EEGMMI = "EEGMMI, imagined fists, {} channels, leave one run out, both sides whitened"
_ACROSS = "EEGMMI, 64 channels, subjects 1-10 to subjects 11-20, each whitened by its own mean"
_SSVEP = "SSVEP, three frequencies and rest, the first recording tested, the others to learn from"

# In the order in which they are shown.
GROUPS = {
    "toy": Source("the toy set of the paper, sizes 6, 8, 16, 20", (), _toy),
    "subject 9, pairs": Source(
        _BCI.format("six pairs of classes"), _BCI_FOLDERS, partial(_subject_9, _PAIRS)
    ),
    "subject 9, four": Source(
        _BCI.format("four classes"), _BCI_FOLDERS, partial(_subject_9, {"four classes": BCI_CLASSES})
    ),
    "cho": Source("Cho 2017, left and right hand, five stratified folds", ("cho2017",), _cho, "rows"),
    "eegmmi-21": Source(_EEGMMI.format(21), ("eegmmi",), partial(_eegmmi, MOTOR_STRIP), "rows"),
    "eegmmi-64": Source(_EEGMMI.format(64), ("eegmmi",), partial(_eegmmi, 64), "rows"),
    "eegmmi-across": Source(_ACROSS, ("eegmmi",), _across),
    "ssvep": Source(_SSVEP, ("ssvep",), _ssvep, "rows"),
    "textures": Source("six pairs of Brodatz textures", ("brodatz",), lambda f: texture_table(f).rows),
}


def beyond_table(data: Path | None = None) -> Table:
    """All groups that the folders in ``data`` allow; without it, the toy set alone."""
    found: dict[str, dict[str, Row]] = {}
    absent: dict[str, str] = {}
    for name, source in GROUPS.items():
        try:
            found[name] = source.load(_folder(source.folders, data))
        except (FileNotFoundError, ImportError) as error:
            absent[name] = str(error).rstrip(".")
    # A heavy task that begins last would keep one process busy while the others wait.
    heavy = [name for name in ("eegmmi-across", "eegmmi-64") if name in found]
    ordered = {key: row for name in dict.fromkeys([*heavy, *found]) for key, row in found[name].items()}
    groups = tuple(
        Group(name, GROUPS[name].title, tuple(rows), GROUPS[name].over, min(r.n_train for r in rows.values()))
        for name, rows in found.items()
    )
    few = {g.name: {m: why for m in BEYOND if (why := too_few(KNOWN[m], g.n_train))} for g in groups}
    left_out = {row: few[g.name] for g in groups if few[g.name] for row in g.rows}
    later = [row for name in ("eegmmi-21", "eegmmi-64") for row in list(found.get(name, ()))[QUICK_SUBJECTS:]]
    not_quick = frozenset([*later, "eegmmi-across"])
    title = "Beyond the paper: all data, all methods"
    return Table("beyond", title, ordered, 10, 2, absent, NOTES, groups, left_out, not_quick, BEYOND)


def _folder(names: tuple[str, ...], data: Path | None) -> Path:
    if names and data is None:
        raise FileNotFoundError("needs --data")
    folder = Path() if data is None else data
    found = next((folder / name for name in names if (folder / name).is_dir()), None)
    if names and found is None:
        raise FileNotFoundError(f"no folder {' or '.join(names)} in {data}")
    return found or folder
