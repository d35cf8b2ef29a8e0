"""The plan of a comparison: folds, repeats and methods; all that decides the numbers.

What is run follows from the sizes.  Folds are drawn once to five times, as often as ``n d^3`` fits into
`MOST_WORK`.  Methods that decompose something for every pair of matrices are left out where ``n^2 d^2``
exceeds `MOST_PAIRS`; NCA, which compares reduced vectors many times, where ``n^2`` does; what needs the
covariance of the vectors, where the cube of their length exceeds `MOST_SCATTER`; CSP, which diagonalizes more
than two class means jointly, where d exceeds `MOST_JOINT`.  What is named in ``methods`` is run at any size.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np

from spdmetric.comparison.methods import COMPARED, METHODS, Sizes, obstacle
from spdmetric.comparison.scores import SCORES
from spdmetric.datasets import recenter
from spdmetric.io.matrices import Matrices
from spdmetric.linalg.symmetric import congruence
from spdmetric.objectives.start import common_range
from spdmetric.validation import check_choice

FOLDS = 5
MOST_LEFT_OUT = 10  # groups that are left out one at a time; more are gathered
MOST_WORK = 8e5
MOST_PAIRS = {**dict.fromkeys(("wasserstein", "stein", "riemann"), 1e9), "nca": 4e6}
MOST_SCATTER = 5e10
MOST_JOINT = 64
RECENTERED = "recentered"  # matrices seen from the mean of their group

Split = tuple[np.ndarray, np.ndarray]  # training and test indices
Splits = tuple[tuple[Split, ...], ...]  # folds of each repeat


@dataclass(frozen=True)
class Plan:
    """All that decides the numbers."""

    X: np.ndarray  # (n, d, d), those of a test file behind the others
    codes: np.ndarray  # (n,), classes as 0, 1, ...
    classes: np.ndarray
    splits: Splits
    how: str  # the same in a sentence
    sizes: Sizes  # of the smallest training set
    methods: tuple[str, ...]
    left_out: dict[str, str]
    seed: int
    groups: np.ndarray | None = None  # (n,), which folds inside a method keep together too
    scoring: str = "accuracy"  # a key of SCORES, that decides
    class_weight: str | None = None
    variants: dict[str, np.ndarray] = field(default_factory=dict)  # the same matrices in another form

    def matrices(self, variant: str) -> np.ndarray:
        """The matrices as they are (``""``), or in a form of ``variants``."""
        return self.variants.get(variant, self.X)

    @property
    def clusters(self) -> np.ndarray | None:
        """Groups (n,) that count as one observation each; None: each matrix."""
        if self.groups is None or len(self.groups) < len(self.X):  # test matrices have none
            return None
        names, codes = np.unique(self.groups, return_inverse=True)
        return codes if len(names) > 2 else None  # two tell nothing about their spread

    @property
    def tested(self) -> np.ndarray:
        """Indices of the matrices that are labeled in every repeat."""
        return np.sort(np.concatenate([test for _, test in self.splits[0]]))

    @property
    def trained(self) -> np.ndarray:
        """Indices of the matrices that the final metric may learn from."""
        return np.unique(np.concatenate([train for train, _ in self.splits[0]]))


def make_plan(
    data: Matrices,
    test: Matrices | None,
    smallest_rank: int,
    *,
    methods: tuple[str, ...] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    scoring: str = "accuracy",
    class_weight: str | None = None,
    recenter: bool | None = None,
) -> Plan:
    """Decide on folds, repeats and methods; see `spdmetric.compare`.

    Both are labeled; with test matrices there is one fold, with groups whole groups are left out.
    """
    check_choice("scoring", scoring, tuple(SCORES))
    check_choice("class_weight", class_weight, (None, "balanced"))
    unknown = [name for name in methods or () if name not in METHODS]
    if unknown:
        raise ValueError(f"No method {', '.join(unknown)}; there are {', '.join(METHODS)}.")
    X, y, n = _together(data, test)
    classes, codes = np.unique(y, return_inverse=True)
    if test is not None:
        splits: Splits = (((np.arange(n), np.arange(n, len(X))),),)
        how = f"Every method was trained on the {n} matrices and tested on the {len(X) - n} of {test.name}."
    elif data.groups is not None:
        splits, how = _by_groups(codes, data.groups)
    else:
        splits, how = _by_folds(X, codes, repeats, seed)
    smallest = min(_smallest_class(codes[train]) for folds in splits for train, _ in folds)
    n_train = min(len(train) for train, _ in splits[0])
    # Where the matrices span together no more than each of them, they have one range.
    d, basis = X.shape[1], common_range(lambda f: f(X).mean(axis=0))
    shared = smallest_rank == basis.shape[1] < d
    sizes = Sizes(n_train, d, smallest, smallest_rank, shared=shared)
    reasons = {name: obstacle(METHODS[name], sizes) for name in methods or COMPARED}
    if methods is None:  # what is asked for is run
        reasons = {name: why or too_long(name, len(X), d, len(classes)) for name, why in reasons.items()}
    chosen = tuple(name for name, why in reasons.items() if why is None)
    left_out = {name: why for name, why in reasons.items() if why is not None}
    domains = _domains(data, test, recenter, sizes.inside.definite)
    variants = {} if domains is None else {RECENTERED: _recentered(X, domains, basis)}
    return Plan(
        X,
        codes,
        classes,
        splits,
        how,
        sizes,
        chosen,
        left_out,
        seed,
        groups=data.groups,
        scoring=scoring,
        class_weight=class_weight,
        variants=variants,
    )


def too_long(name: str, n: int, d: int, n_classes: int) -> str | None:
    """Why a method would take too long; each of n matrices is compared with most others."""
    all_the_same = "name it in the methods to run it all the same"
    if n**2 * (1 if name == "nca" else d**2) > MOST_PAIRS.get(name, np.inf):
        return f"would compare {n**2 / 1e6:.0f} million pairs of {d} x {d} matrices; {all_the_same}"
    many = (d * (d + 1) // 2) ** 3 > MOST_SCATTER and METHODS[name].scatters
    diagonalizes = name == "csp-lda" and n_classes > 2 and d > MOST_JOINT
    if many or diagonalizes:
        return f"would take long with {n} matrices of size {d}; {all_the_same}"
    return None


def _domains(
    data: Matrices, test: Matrices | None, recenter: bool | None, definite: bool
) -> np.ndarray | None:
    """The group of each matrix that it is to be seen from; None where recentering is not asked for."""
    if recenter is False or (recenter is None and data.groups is None):
        return None
    if data.groups is None and test is None:
        raise ValueError("recenter: expected groups, sessions or subjects for instance, or test matrices.")
    groups = np.zeros(len(data.X)) if data.groups is None else data.groups
    others = np.full(0 if test is None else len(test.X), -1)
    domains = np.concatenate([np.unique(groups, return_inverse=True)[1], others])
    why = None if definite else "the matrices have no common range"
    if np.unique(domains, return_counts=True)[1].min() < 2:
        why = "a group has one matrix, its own mean"
    if why is not None and recenter:
        raise ValueError(f"recenter: {why}. Leave it out.")
    return domains if why is None else None


def _recentered(X: np.ndarray, domains: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """Each matrix seen from the Riemannian mean of its domain, in the range that all share."""
    if basis.shape[1] == X.shape[1]:
        return recenter(X, domains)
    return congruence(basis, recenter(congruence(basis.T, X), domains))


def _together(data: Matrices, test: Matrices | None) -> tuple[np.ndarray, np.ndarray, int]:
    if test is None:
        return np.asarray(data.X, float), data.labels, len(data.X)
    if data.X.shape[1:] != test.X.shape[1:]:
        raise ValueError(
            f"{test.name} has matrices of size {test.X.shape[1]} and {data.name} of size {data.X.shape[1]}: "
            "expected one size."
        )
    unknown = sorted(set(map(str, test.labels)) - set(map(str, data.labels)))
    if unknown:
        raise ValueError(
            f"{test.name} has the label {unknown[0]!r}, which {data.name} has not; expected the same labels."
        )
    X = np.concatenate([data.X, test.X]).astype(float)
    return X, np.concatenate([data.labels, test.labels]), len(data.X)


def _by_groups(codes: np.ndarray, groups: np.ndarray) -> tuple[Splits, str]:
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(f"All matrices are in the group {groups[0]}: expected at least two groups.")
    if n_groups <= MOST_LEFT_OUT:
        how = f"Each of the {n_groups} groups was left out in turn: trained on the rest, tested on it."
        return (tuple(LeaveOneGroupOut().split(codes, codes, groups)),), how
    how = (
        f"The {n_groups} groups were divided into {MOST_LEFT_OUT} folds, each left out in turn, no group in "
        "training and test at once."
    )
    return (tuple(GroupKFold(MOST_LEFT_OUT).split(codes, codes, groups)),), how


def _by_folds(X: np.ndarray, codes: np.ndarray, repeats: int | None, seed: int) -> tuple[Splits, str]:
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(codes)
    if len(counts) < 2:
        raise ValueError("All matrices have one label: expected at least two classes.")
    if counts.min() < 2 or np.sort(counts)[-2] < 4:
        listed = ", ".join(map(str, np.sort(counts)[:8])) + ", ..." * (len(counts) > 8)
        raise ValueError(
            f"The classes have {listed} matrices: expected at least 2 of every class, and at least 4 of the "
            "two largest ones, to train, to choose and to test on."
        )
    # A class of two or three is in some folds only, and then has another matrix in training.
    folds = min(FOLDS, int(counts.min() if counts.min() >= 4 else counts.max()))
    if repeats is None:
        repeats = int(np.clip(MOST_WORK // (len(X) * X.shape[1] ** 3), 1, 5))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # as said above
        splits = tuple(
            tuple(StratifiedKFold(folds, shuffle=True, random_state=1000 * seed + r).split(X, codes))
            for r in range(repeats)
        )
    drawn = "" if repeats == 1 else f" The folds were drawn {repeats} times."
    how = f"Stratified {folds}-fold cross-validation: each matrix was labeled by methods that never saw it."
    return splits, how + drawn


def _smallest_class(codes: np.ndarray) -> int:
    """Size of the smallest class of a training set."""
    counts = np.unique(codes, return_counts=True)[1]
    if len(counts) < 2 or np.sort(counts)[-2] < 2:
        raise ValueError(
            "A training set would hold one class only, or only one with more than one matrix: expected two "
            "classes with at least two matrices each outside each group or fold. Use other groups."
        )
    return int(counts.min())
