"""The tables: which rows there are, and how a row is split into training and test matrices.

A row gives ``split(repeat, seed) -> (X, y, X_test, y_test)``.  Rows whose data are absent
are kept, with the reason, so that a table always has the paper's rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Protocol

import numpy as np

from spdmetric.datasets import (
    TexturePair,
    bci_subjects,
    eegmmi_subjects,
    load_bci_iv_2a,
    load_eegmmi,
    load_images,
    make_toy,
    whiten,
)
from spdmetric.datasets.bci_iv_2a import BCI_CLASSES
from spdmetric.datasets.textures import Texture

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Row(Protocol):
    """Something to classify, again and again."""

    @property
    def most(self) -> int | None:
        """How many different repeats there are; None for as many as wanted."""
        ...

    def split(self, repeat: int, seed: int) -> Split: ...
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Group:
    """Rows that are summarized together."""

    name: str
    title: str
    rows: tuple[str, ...]
    over: str  # "rows", when each is another subject, or "repeats": what the standard error is over
    n_train: int  # training matrices of the smallest row


@dataclass(frozen=True)
class Table:
    """A table of the paper, or one beside it."""

    name: str
    title: str
    rows: dict[str, Row]
    repeats: int
    quick: int
    absent: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    left_out: dict[str, dict[str, str]] = field(default_factory=dict)  # row -> method -> reason
    not_quick: frozenset[str] = frozenset()  # rows that a quick run leaves out

    def digest(self) -> str:
        """Identify the data, so that results of other data are not mixed in."""
        text = "\n".join(f"{name} {row.digest()}" for name, row in self.rows.items())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def tasks(self, repeats: int, quick: bool = False) -> list[tuple[str, int]]:
        """All (row, repeat) to be run; where repeats are not drawn, all there are unless it is quick."""
        return [
            (name, k)
            for name, row in self.rows.items()
            if not (quick and name in self.not_quick)
            for k in range(_number_of_repeats(row, repeats, quick))
        ]


def _number_of_repeats(row: Row, repeats: int, quick: bool) -> int:
    if row.most is None:
        return repeats
    return min(repeats, row.most) if quick else row.most


def digest_of(*arrays: np.ndarray) -> str:
    """Short fingerprint of some arrays."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------------------
# Toy sets


@dataclass(frozen=True)
class ToyRow:
    """Draws of a toy set of one size."""

    d: int
    noise: float
    most: None = None

    def split(self, repeat: int, seed: int) -> Split:
        return make_toy(d=self.d, noise=self.noise, random_state=seed)

    def digest(self) -> str:
        return f"toy d={self.d} noise={self.noise}"


def toy_table(name: str, data: Path | None = None) -> Table:
    """The toy table of the paper, or the easier one of its appendix."""
    noise = {"toy": 6.0, "toy-easy": 3.0}[name]
    title = {"toy": "Toy set, noise in [1, 6]", "toy-easy": "Easier toy set, noise in [1, 3]"}[name]
    rows: dict[str, Row] = {f"{d}x{d}": ToyRow(d, noise) for d in (6, 8, 16, 20)}
    return Table(name, title, rows, repeats=10, quick=6)


# ---------------------------------------------------------------------------
# Textures


@dataclass(frozen=True)
class TextureRow:
    """Draws of patches of two textures."""

    pair: TexturePair
    images: str
    most: None = None

    def split(self, repeat: int, seed: int) -> Split:
        return self.pair.draw(random_state=seed)

    def digest(self) -> str:
        return self.images


PAPER_TEXTURES = ("D2", "D28", "D29", "D92")


def texture_table(data: Path | None = None) -> Table:
    """Pairs of the paper's four Brodatz images, or of the three inside scikit-image."""
    images = load_images(data, PAPER_TEXTURES if data else None)
    textures = {name: Texture(image, name=name) for name, image in images.items()}
    rows: dict[str, Row] = {
        f"{a} vs {b}": TextureRow(TexturePair(textures[a], textures[b]), digest_of(images[a], images[b]))
        for a, b in combinations(images, 2)
    }
    title = "Textures of the Brodatz album" if data else "Textures inside scikit-image"
    return Table("textures", title, rows, repeats=50, quick=5)


# ---------------------------------------------------------------------------
# EEG


@dataclass(frozen=True)
class SessionRow:
    """One training session, one test session: nothing is drawn, so it is run once."""

    X: np.ndarray
    y: np.ndarray
    test: np.ndarray  # boolean mask
    most: int = 1

    def split(self, repeat: int, seed: int) -> Split:
        return self.X[~self.test], self.y[~self.test], self.X[self.test], self.y[self.test]

    def digest(self) -> str:
        return digest_of(self.X, self.y, self.test)


@dataclass(frozen=True)
class RunsRow:
    """Leave one run out: repeat k tests on the k-th run."""

    X: np.ndarray
    y: np.ndarray
    runs: np.ndarray
    whitening: str = "none"  # or "session": training and test runs apart, by their own means

    @property
    def most(self) -> int:
        return len(np.unique(self.runs))

    def split(self, repeat: int, seed: int) -> Split:
        test = self.runs == np.unique(self.runs)[repeat]
        X = whiten(self.X, test, how=self.whitening)
        return X[~test], self.y[~test], X[test], self.y[test]

    def digest(self) -> str:
        return f"{digest_of(self.X, self.y, self.runs)} {self.whitening}"


@dataclass(frozen=True)
class AcrossRow:
    """Some subjects to others, each whitened by its own mean: nothing is drawn, so it is run once."""

    X: np.ndarray
    y: np.ndarray
    subjects: np.ndarray
    test: np.ndarray  # boolean mask
    most: int = 1

    def split(self, repeat: int, seed: int) -> Split:
        X = whiten(self.X, self.subjects, how="session")
        return X[~self.test], self.y[~self.test], X[self.test], self.y[self.test]

    def digest(self) -> str:
        return digest_of(self.X, self.y, self.subjects, self.test)


@dataclass(frozen=True)
class FoldsRow:
    """Stratified folds of shuffled matrices, always the same: repeat k tests on the k-th."""

    X: np.ndarray
    y: np.ndarray
    most: int = 5
    whitening: str = "none"  # or "session": training and test matrices apart, by their own means

    def split(self, repeat: int, seed: int) -> Split:
        from sklearn.model_selection import StratifiedKFold

        folds = StratifiedKFold(self.most, shuffle=True, random_state=0).split(self.X, self.y)
        test = np.zeros(len(self.y), dtype=bool)
        test[list(folds)[repeat][1]] = True
        X = whiten(self.X, test, how=self.whitening)
        return X[~test], self.y[~test], X[test], self.y[test]

    def digest(self) -> str:
        return f"{digest_of(self.X, self.y)} {self.most} folds {self.whitening}"


# Whitenings beside the paper's, and what their rows are called.
VARIANTS = {
    "train": "whitened by the training mean (inductive)",
    "calibration": "test session whitened by its first fifth",
    "none": "not whitened",
}


def bci_table(data: Path | None = None) -> Table:
    """Left and right hand of BCI IV 2a, session T to session E, for the subjects at hand."""
    present = list(range(1, 10)) if data is None else bci_subjects(data)
    if not present:
        load_bci_iv_2a(9, data)  # says what was looked for
    rows: dict[str, Row] = {}
    for subject in present:
        rows[str(subject)] = bci_row(subject, data, BCI_CLASSES[:2], "session")
    for subject in present:
        rows[f"{subject}, four classes"] = bci_row(subject, data, BCI_CLASSES, "session")
        for how, words in VARIANTS.items():
            rows[f"{subject}, {words}"] = bci_row(subject, data, BCI_CLASSES[:2], how)
    absent = {str(s): f"no data of this subject in {data}" for s in range(1, 10) if s not in present}
    return Table(
        "bci",
        "BCI Competition IV 2a, training to evaluation session",
        rows,
        repeats=1,
        quick=1,
        absent=absent,
        notes=(
            "Rows of the paper: each session whitened by its own Riemannian mean, which is transductive: "
            "it uses the unlabeled matrices of the test session.",
        ),
    )


def bci_row(subject: int, data: Path | None, classes: tuple[str, ...], how: str) -> SessionRow:
    """Session T to session E of one subject."""
    X, y, groups = load_bci_iv_2a(subject, data, classes=classes)
    return SessionRow(whiten(X, groups, train="T", how=how), y, groups == "E")


def eegmmi_table(data: Path | None = None) -> Table:
    """Left and right fist of PhysioNet EEGMMI, leave one run out, from raw EDF files."""
    if data is None:
        raise FileNotFoundError(
            "The EEGMMI table needs --data: a folder with files such as S001R04.edf, S001R08.edf and "
            "S001R12.edf of PhysioNet's EEG Motor Movement/Imagery Dataset."
        )
    present = eegmmi_subjects(data)
    if not present:
        load_eegmmi(1, data)  # says what was looked for
    recordings = {subject: load_eegmmi(subject, data) for subject in present}
    rows: dict[str, Row] = {str(subject): RunsRow(*r) for subject, r in recordings.items()}
    for subject, recording in recordings.items():
        rows[f"{subject}, training and test whitened apart"] = RunsRow(*recording, "session")
    title = "PhysioNet EEGMMI, imagined fists, leave one run out"
    return Table("eegmmi", title, rows, repeats=3, quick=3)


TABLES: dict[str, Callable[[Path | None], Table]] = {
    "toy": lambda data: toy_table("toy"),
    "toy-easy": lambda data: toy_table("toy-easy"),
    "textures": texture_table,
    "bci": bci_table,
    "eegmmi": eegmmi_table,
}
