"""The tables: which rows there are, and how a row is split into training and test matrices.

Rows whose data are absent are kept, with the reason, so that a table always has the paper's rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction import datasets
from reproduction.datasets import BCI_CLASSES, Texture, TexturePair
from reproduction.methods import KNOWN
from reproduction.tasks import digest
from spdmetric.comparison.methods import Sizes, find_obstacle
from spdmetric.datasets import make_toy, recenter

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # X, y, X_test, y_test

# The paper's five columns, and the divergence it mentions.
PAPER_COLUMNS = ("logeuclid-identity", "logeuclid-mean", "logeuclid-kta", "riemann", "euclid", "stein")
COLUMNS = (*PAPER_COLUMNS, "logeuclid-kta-rank", "logeuclid-chosen")


class Result(NamedTuple):
    """A line of the tidy file."""

    table: str
    row: str
    method: str
    repeat: int
    accuracy: float  # per cent
    seconds: float
    seed: int


@dataclass(frozen=True)
class DrawnRow:
    """Data that are drawn anew for each repeat, as many as wanted."""

    draw: Callable[..., Split]  # called with random_state
    digest: str  # what identifies the data
    n_train: int = 50

    def split(self, repeat: int, seed: int) -> Split:
        """Training and test set of a repeat."""
        return self.draw(random_state=seed)


@dataclass(frozen=True)
class FixedRow:
    """Matrices that are split always the same: repeat k tests on the k-th part."""

    X: np.ndarray
    y: np.ndarray
    tests: np.ndarray  # (n_repeats, n), boolean
    whitening: str = "none"  # or "session": training and test matrices apart, by their own means

    @classmethod
    def of_parts(cls, X: np.ndarray, y: np.ndarray, parts: np.ndarray, whitening: str = "none") -> FixedRow:
        """Leave each part out in turn: runs, or folds."""
        return cls(X, y, np.array([parts == part for part in np.unique(parts)]), whitening)

    @property
    def n_train(self) -> int:
        """Training matrices of the smallest training set."""
        return int(np.sum(~self.tests, axis=1).min())

    @property
    def digest(self) -> str:
        """What identifies the data."""
        return f"{digest(self.X, self.y, self.tests)} {self.whitening}"

    def split(self, repeat: int, seed: int) -> Split:
        """Training and test set of a repeat."""
        test = self.tests[repeat]
        X = self.X if self.whitening == "none" else recenter(self.X, test, how=self.whitening)
        return X[~test], self.y[~test], X[test], self.y[test]


Row = DrawnRow | FixedRow


def folds_of(y: np.ndarray, n: int = 5) -> np.ndarray:
    """Fold of each matrix, stratified and shuffled, always the same."""
    from sklearn.model_selection import StratifiedKFold

    fold = np.empty(len(y), dtype=int)
    for k, (_, test) in enumerate(StratifiedKFold(n, shuffle=True, random_state=0).split(y, y)):
        fold[test] = k
    return fold


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
    methods: tuple[str, ...] = COLUMNS  # unless told otherwise

    def digest(self) -> str:
        """Identify the data, so that results of other data are not mixed in."""
        text = "\n".join(f"{name} {row.digest}" for name, row in self.rows.items())
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def tasks(self, repeats: int, quick: bool = False) -> list[tuple[str, int]]:
        """All (row, repeat) to be run; where repeats are not drawn, all there are unless it is quick."""
        found = []
        for name, row in self.rows.items():
            there = repeats if isinstance(row, DrawnRow) else len(row.tests)
            n = min(repeats, there) if quick else there
            found += [(name, k) for k in range(n) if not (quick and name in self.not_quick)]
        return found


# ---------------------------------------------------------------------------
# The tables of the paper


def toy_table(name: str) -> Table:
    """The toy table of the paper, or the easier one of its appendix."""
    title, noise = {
        "toy": ("Toy set, noise in [1, 6]", 6.0),
        "toy-easy": ("Easier toy set, noise in [1, 3]", 3.0),
    }[name]
    rows: dict[str, Row] = {
        f"{d}x{d}": DrawnRow(partial(make_toy, d=d, noise=noise), f"toy d={d} noise={noise}")
        for d in (6, 8, 16, 20)
    }
    return Table(name, title, rows, repeats=10, quick=6)


PAPER_TEXTURES = ("D2", "D28", "D29", "D92")


def texture_table(data: Path | None = None) -> Table:
    """Pairs of the paper's four Brodatz images, or of the three inside scikit-image."""
    images = datasets.load_images(data, PAPER_TEXTURES if data else None)
    textures = {name: Texture(image, name=name) for name, image in images.items()}
    rows: dict[str, Row] = {
        f"{a} vs {b}": DrawnRow(TexturePair(textures[a], textures[b]).draw, digest(images[a], images[b]))
        for a, b in combinations(images, 2)
    }
    title = "Textures of the Brodatz album" if data else "Textures inside scikit-image"
    return Table("textures", title, rows, repeats=50, quick=5)


# Whitenings beside the paper's, and what their rows are called.
VARIANTS = {
    "train": "whitened by the training mean (inductive)",
    "calibration": "test session whitened by its first fifth",
    "none": "not whitened",
}


def bci_table(data: Path | None = None) -> Table:
    """Left and right hand of BCI IV 2a, session T to session E, for the subjects at hand."""
    present = list(range(1, 10)) if data is None else datasets.bci_subjects(data)
    if not present:
        datasets.load_bci_iv_2a(9, data)  # says what was looked for
    rows: dict[str, Row] = {}
    for subject in present:
        rows[str(subject)] = bci_row(subject, data, BCI_CLASSES[:2], "session")
    for subject in present:
        rows[f"{subject}, four classes"] = bci_row(subject, data, BCI_CLASSES, "session")
        for how, words in VARIANTS.items():
            rows[f"{subject}, {words}"] = bci_row(subject, data, BCI_CLASSES[:2], how)
    absent = {str(s): f"no data of this subject in {data}" for s in range(1, 10) if s not in present}
    title = "BCI Competition IV 2a, training to evaluation session"
    note = (
        "Rows of the paper: each session whitened by its own Riemannian mean, which is transductive: "
        "it uses the unlabeled matrices of the test session."
    )
    return Table("bci", title, rows, repeats=1, quick=1, absent=absent, notes=(note,))


def bci_row(subject: int, data: Path | None, classes: tuple[str, ...], how: str) -> FixedRow:
    """Session T to session E of one subject."""
    X, y, groups = datasets.load_bci_iv_2a(subject, data, classes=classes)
    return FixedRow(recenter(X, groups, train="T", how=how), y, (groups == "E")[None])


def eegmmi_table(data: Path | None = None) -> Table:
    """Left and right fist of PhysioNet EEGMMI, leave one run out, from raw EDF files."""
    if data is None:
        raise FileNotFoundError(
            "The EEGMMI table needs --data: a folder with files such as S001R04.edf, S001R08.edf and "
            "S001R12.edf of PhysioNet's EEG Motor Movement/Imagery Dataset."
        )
    present = datasets.eegmmi_subjects(data)
    if not present:
        datasets.load_eegmmi(1, data)  # says what was looked for
    recordings = {subject: datasets.load_eegmmi(subject, data) for subject in present}
    rows: dict[str, Row] = {str(subject): FixedRow.of_parts(*r) for subject, r in recordings.items()}
    for subject, recording in recordings.items():
        rows[f"{subject}, training and test whitened apart"] = FixedRow.of_parts(*recording, "session")
    title = "PhysioNet EEGMMI, imagined fists, leave one run out"
    return Table("eegmmi", title, rows, repeats=3, quick=3)


# Accuracies in the literature, on other splits by the same protocol, by the name of the data folder.
PUBLISHED = {"virus": "LogEuclidean 26.0, LEML 33.0, SPDML 49.4, SPDNet 59.7, COV-PLS 62.8"}
IMAGE_SET_METHODS = (
    *("euclid", "logeuclid-identity", "logeuclid-identity-weighting", "logeuclid-identity-cv"),
    *("logeuclid-identity-ridge", "logeuclid-identity-logistic", "logeuclid-mean-lda", "fgmdm"),
)


def image_set_table(data: Path | None = None) -> Table:
    """Image sets of a folder, three fifths of each class to train, over many random splits."""
    if data is None:
        raise FileNotFoundError(
            "The table of image sets needs --data: a folder with folders CLASS/SET of images of one size, or "
            "with a file image_sets.npz that holds the arrays images and y."
        )
    X, y, _ = datasets.load_image_sets(data)
    name = data.resolve().name
    train = datasets.draw_sets(X, y, random_state=0)
    sizes = Sizes.from_data(*train[:2])
    row = DrawnRow(partial(datasets.draw_sets, X, y), digest(X, y), sizes.n)
    classes, d = len(np.unique(y)), X.shape[1]
    title = f"{classes} classes, {len(X)} sets of images, matrices {d} x {d}; {sizes.n} sets to train"
    reasons = {method: find_obstacle(KNOWN[method], sizes) for method in IMAGE_SET_METHODS}
    return Table(
        "image-sets",
        f"Image sets: {name}",
        {name: row},
        repeats=100,
        quick=5,
        notes=(f"Published: {PUBLISHED[name]}.",) if name in PUBLISHED else (),
        groups=(Group(name, title, (name,), "repeats", sizes.n),),
        left_out={name: {method: why for method, why in reasons.items() if why is not None}},
        methods=IMAGE_SET_METHODS,
    )


TABLES: dict[str, Callable[[Path | None], Table]] = {
    "toy": lambda data: toy_table("toy"),
    "toy-easy": lambda data: toy_table("toy-easy"),
    "textures": texture_table,
    "bci": bci_table,
    "eegmmi": eegmmi_table,
    "image-sets": image_set_table,
}
