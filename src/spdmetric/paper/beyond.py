"""The table beyond the paper: all data at hand, all methods, summarized by groups of rows.

Every group comes from one folder inside the data folder.  A group whose files are absent is
kept, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np

from spdmetric.datasets import (
    cho2017_subjects,
    eegmmi_covariance_subjects,
    load_cho2017,
    load_eegmmi_covariances,
    whiten,
)
from spdmetric.datasets.bci_iv_2a import BCI_CLASSES
from spdmetric.evaluation.baselines import CSP_FILTERS, NCA_INPUTS, NCA_OUTPUTS, NCA_STEPS, RIDGE
from spdmetric.evaluation.methods import METHODS, too_few
from spdmetric.paper.tables import FixedRow, Group, Row, Table, bci_row, folds_of, texture_table, toy_table

BEYOND = tuple(name for name in METHODS if name not in ("wasserstein", "svm"))

# "none", or "session": training and test matrices apart, each by its own Riemannian mean.
EEGMMI_WHITENING = "session"
CHO_WHITENING = "none"

MOTOR_STRIP = 21  # the first channels of EEGMMI: FC, C and CP
TRAINED_ON, TESTED_ON = range(1, 11), range(11, 21)  # subjects, of the group across subjects
QUICK_SUBJECTS = 5

NOTES = (
    "LE by CV chooses its radius and rank by cross-validation inside the training set. All other methods "
    "have fixed settings: LE low rank radius 5 and half the size as rank; GMML and RCA a ridge of "
    f"{RIDGE} and principal components up to half the training matrices; NCA {NCA_INPUTS} principal "
    f"components to {NCA_OUTPUTS}, {NCA_STEPS} steps; CSP {CSP_FILTERS} filters; logistic regression C = 1.",
    "Folds and runs of one subject share training matrices: the standard errors of single rows in the JSON "
    "file are no more than a hint there.",
)


Rows = tuple[Group, dict[str, Row]]  # a group with its rows


def _grouped(name: str, title: str, rows: dict[str, Row], over: str = "repeats") -> Rows:
    return Group(name, title, tuple(rows), over, min(row.n_train for row in rows.values())), rows


def _toy(_: Path) -> Rows:
    rows = {f"toy {name}": row for name, row in toy_table("toy").rows.items()}
    return _grouped("toy", "the toy set of the paper, sizes 6, 8, 16, 20", rows)


def _textures(folder: Path) -> Rows:
    return _grouped("textures", "six pairs of Brodatz textures", texture_table(folder).rows)


def _pairs(folder: Path) -> Rows:
    rows: dict[str, Row] = {
        f"subject 9, {a} vs {b}": bci_row(9, folder, (a, b), "session")
        for a, b in combinations(BCI_CLASSES, 2)
    }
    title = "BCI IV 2a, subject 9, T to E, six pairs of classes, sessions whitened apart"
    return _grouped("subject 9, pairs", title, rows)


def _four_classes(folder: Path) -> Rows:
    rows: dict[str, Row] = {"subject 9, four classes": bci_row(9, folder, BCI_CLASSES, "session")}
    title = "BCI IV 2a, subject 9, T to E, four classes, sessions whitened apart"
    return _grouped("subject 9, four", title, rows)


def _cho(folder: Path) -> Rows:
    recordings = {f"cho {s}": load_cho2017(s, folder) for s in cho2017_subjects(folder)}
    if not recordings:
        raise FileNotFoundError(f"{folder} holds no file such as subject01.npz")
    rows: dict[str, Row] = {
        name: FixedRow.of_parts(r.X, r.y, folds_of(r.y), CHO_WHITENING) for name, r in recordings.items()
    }
    return _grouped("cho", "Cho 2017, left and right hand, five stratified folds", rows, "rows")


def _eegmmi(name: str, channels: int, folder: Path) -> Rows:
    rows: dict[str, Row] = {}
    for subject in eegmmi_covariance_subjects(folder):
        X, y, runs = load_eegmmi_covariances(subject, folder)
        rows[f"{name} {subject}"] = FixedRow.of_parts(X[:, :channels, :channels], y, runs, EEGMMI_WHITENING)
    title = f"EEGMMI, imagined fists, {channels} channels, leave one run out, both sides whitened"
    return _grouped(name, title, rows, "rows")


def _across(folder: Path) -> Rows:
    present = eegmmi_covariance_subjects(folder)
    if not set(TRAINED_ON) | set(TESTED_ON) <= set(present):
        raise FileNotFoundError(f"{folder} does not hold all of subjects 1 to 20")
    recordings = {s: load_eegmmi_covariances(s, folder) for s in (*TRAINED_ON, *TESTED_ON)}
    X = np.concatenate([r.X for r in recordings.values()])
    y = np.concatenate([r.y for r in recordings.values()])
    subjects = np.concatenate([np.full(len(r.y), s) for s, r in recordings.items()])
    row = FixedRow(whiten(X, subjects, how="session"), y, np.isin(subjects, TESTED_ON)[None])
    title = "EEGMMI, 64 channels, subjects 1-10 to subjects 11-20, each whitened by its own mean"
    return _grouped("eegmmi-across", title, {"eegmmi-across": row})


# Folders to look for, the first that exists, and what makes the group; in the order in which they are shown.
GROUPS: dict[str, tuple[tuple[str, ...], Callable[[Path], Rows]]] = {
    "toy": ((), _toy),
    "subject 9, pairs": (("bci2a", "bci2a-a09"), _pairs),
    "subject 9, four": (("bci2a", "bci2a-a09"), _four_classes),
    "cho": (("cho2017",), _cho),
    "eegmmi-21": (("eegmmi",), partial(_eegmmi, "eegmmi-21", MOTOR_STRIP)),
    "eegmmi-64": (("eegmmi",), partial(_eegmmi, "eegmmi-64", 64)),
    "eegmmi-across": (("eegmmi",), _across),
    "textures": (("brodatz",), _textures),
}


def beyond_table(data: Path | None = None) -> Table:
    """All groups that the folders in ``data`` allow; without it, the toy set alone."""
    if data is not None and not data.is_dir():
        raise FileNotFoundError(f"--data {data} is not a folder.")
    found: dict[str, Rows] = {}
    absent: dict[str, str] = {}
    for name, (folders, load) in GROUPS.items():
        try:
            found[name] = load(_folder(folders, data))
        except (FileNotFoundError, ImportError) as error:
            absent[name] = str(error).rstrip(".")
    # A heavy task that begins last would keep one process busy while the others wait.
    heavy = [name for name in ("eegmmi-across", "eegmmi-64") if name in found]
    rows = {key: row for name in dict.fromkeys([*heavy, *found]) for key, row in found[name][1].items()}
    groups = tuple(group for group, _ in found.values())
    left_out = {row: reasons for group in groups if (reasons := _hopeless(group)) for row in group.rows}
    title, not_quick = "Beyond the paper: all data, all methods", _not_quick(groups)
    return Table("beyond", title, rows, 10, 2, absent, NOTES, groups, left_out, not_quick, BEYOND)


def _folder(names: tuple[str, ...], data: Path | None) -> Path:
    if names and data is None:
        raise FileNotFoundError("needs --data")
    folder = Path() if data is None else data
    found = next((folder / name for name in names if (folder / name).is_dir()), None)
    if names and found is None:
        raise FileNotFoundError(f"no folder {' or '.join(names)} in {data}")
    return found or folder


def _hopeless(group: Group) -> dict[str, str]:
    """Methods that cannot tell anything there."""
    return {name: reason for name in BEYOND if (reason := too_few(METHODS[name], group.n_train))}


def _not_quick(groups: tuple[Group, ...]) -> frozenset[str]:
    """The slow row, and the EEGMMI subjects after the first five."""
    later = {row for g in groups if g.name in ("eegmmi-21", "eegmmi-64") for row in g.rows[QUICK_SUBJECTS:]}
    return frozenset(later | {"eegmmi-across"})
