"""The plan of a comparison: folds, repeats and methods; all that decides the numbers.

What is run follows from the sizes.  Folds are drawn once to five times, as often as ``n d^3`` fits into
8e5.  Methods that are slow for the sizes are left out, unless they are named.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spdmetric.comparison.methods import COMPARED, METHODS, Sizes, check_names, find_obstacle
from spdmetric.comparison.scores import SCORES
from spdmetric.datasets import recenter
from spdmetric.io.matrices import Matrices
from spdmetric.linalg.symmetric import congruence
from spdmetric.objectives.start import common_range
from spdmetric.validation import check_choice, check_symmetric

# Of each repeat the folds, of each fold training and test indices.
Splits = tuple[tuple[tuple[np.ndarray, np.ndarray], ...], ...]


class Entry(NamedTuple):
    """A method on the matrices as they are, or recentered."""

    method: str
    recentered: bool = False

    @property
    def title(self) -> str:
        """Its name for readers."""
        return METHODS[self.method].title + " (recentered)" * self.recentered


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
    recentered: np.ndarray | None = None  # X with every group recentered; None: not to be run

    @property
    def forms(self) -> dict[bool, np.ndarray]:
        """The matrices as they are, and recentered."""
        return {False: self.X} | ({} if self.recentered is None else {True: self.recentered})

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
    check_names(methods or ())
    # Matrices of float32 are symmetric up to rounding of float32: they are averaged before they are cast.
    X, y, n = check_symmetric(data.X), data.labels, len(data.X)
    if test is not None:
        _check_test(data, test)
        X, y = np.concatenate([X, check_symmetric(test.X)]), np.concatenate([y, test.labels])
    classes, codes = np.unique(y, return_inverse=True)
    if test is not None:
        splits: Splits = (((np.arange(n), np.arange(n, len(X))),),)
        how = f"Every method was trained on the {n} matrices and tested on the {len(X) - n} of {test.name}."
    elif data.groups is not None:
        splits, how = _split_by_groups(codes, data.groups)
    else:
        splits, how = _split_by_folds(X, codes, repeats, seed)
    counts = [np.unique(codes[train], return_counts=True)[1] for folds in splits for train, _ in folds]
    if any(len(some) < 2 or np.sort(some)[-2] < 2 for some in counts):
        raise ValueError(
            "A training set would hold one class only, or only one with more than one matrix: expected two "
            "classes with at least two matrices each outside each group or fold. Use other groups."
        )
    # Where the matrices span together no more than each of them, they have one range.
    d, basis = X.shape[1], common_range(lambda f: f(X).mean(axis=0))
    n_train, shared = min(len(train) for train, _ in splits[0]), smallest_rank == basis.shape[1] < d
    sizes = Sizes(n_train, d, min(int(some.min()) for some in counts), smallest_rank, shared=shared)
    left_out = {name: why for name in methods or COMPARED if (why := find_obstacle(METHODS[name], sizes))}
    if methods is None:  # what is named is run at any size
        why = f"would take long with {len(X)} matrices of size {d}; name it in the methods to run it"
        slow = [name for name in COMPARED if METHODS[name].is_slow(len(X), d, len(classes))]
        left_out = dict.fromkeys(slow, why) | left_out
    recentered = _recenter(X, basis if sizes.inside.definite else None, data, recenter)
    run = tuple(name for name in methods or COMPARED if name not in left_out)
    settings = (seed, data.groups, scoring, class_weight, recentered)
    return Plan(X, codes, classes, splits, how, sizes, run, left_out, *settings)


def _check_test(data: Matrices, test: Matrices) -> None:
    """Refuse test matrices of another size, or with other labels, and a single one."""
    if len(test.X) < 2:
        raise ValueError(f"{test.name} has one matrix: expected at least two, to have a standard error.")
    if data.X.shape[1:] != test.X.shape[1:]:
        raise ValueError(
            f"{test.name} has matrices of size {test.X.shape[1]} and {data.name} of size {data.X.shape[1]}: "
            "expected one size."
        )
    if unknown := sorted(set(map(str, test.labels)) - set(map(str, data.labels))):
        raise ValueError(
            f"{test.name} has the label {unknown[0]!r}, which {data.name} has not; expected the same labels."
        )


def _recenter(
    X: np.ndarray, basis: np.ndarray | None, data: Matrices, wanted: bool | None
) -> np.ndarray | None:
    """Recenter each group by its Riemannian mean, in the basis that all share; None where not wanted."""
    if wanted is False or (wanted is None and data.groups is None):
        return None
    if data.groups is None and len(X) == len(data.X):
        raise ValueError("recenter: expected groups, sessions or subjects for instance, or test matrices.")
    groups = np.zeros(len(data.X)) if data.groups is None else data.groups
    domains = np.full(len(X), -1)  # of the test matrices
    domains[: len(groups)] = np.unique(groups, return_inverse=True)[1]
    why = "the matrices have no common range" if basis is None else None
    if np.unique(domains, return_counts=True)[1].min() < 2:
        why = "a group has one matrix, its own mean"
    if wanted and why is not None:
        raise ValueError(f"recenter: {why}. Leave it out.")
    if basis is None or why is not None:
        return None
    if basis.shape[1] == X.shape[1]:
        return recenter(X, domains)
    return congruence(basis, recenter(congruence(basis.T, X), domains))


def _split_by_groups(codes: np.ndarray, groups: np.ndarray) -> tuple[Splits, str]:
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(f"All matrices are in the group {groups[0]}: expected at least two groups.")
    splitter, folds = (LeaveOneGroupOut(), "alone") if n_groups <= 10 else (GroupKFold(10), "in ten folds")
    how = f"Each of the {n_groups} groups was left out in turn, {folds}: trained on the rest, tested on it."
    return (tuple(splitter.split(codes, codes, groups)),), how


def _split_by_folds(X: np.ndarray, codes: np.ndarray, repeats: int | None, seed: int) -> tuple[Splits, str]:
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(codes)
    if len(counts) < 2:
        raise ValueError("All matrices have one label: expected at least two classes.")
    if counts.min() < 2 or np.sort(counts)[-2] < 4:
        listed = ", ".join(map(str, np.sort(counts)[:8]))
        raise ValueError(
            f"The classes have {listed} matrices: expected at least 2 of every class, and at least 4 of the "
            "two largest ones, to train, to choose and to test on."
        )
    # A class of two or three is in some folds only, and then has another matrix in training.
    folds = min(5, int(counts.min() if counts.min() >= 4 else counts.max()))
    if repeats is None:
        repeats = int(np.clip(8e5 // (len(X) * X.shape[1] ** 3), 1, 5))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # as said above
        splits = tuple(
            tuple(StratifiedKFold(folds, shuffle=True, random_state=draw % 2**32).split(X, codes))
            for draw in range(1000 * seed, 1000 * seed + repeats)
        )
    drawn = "" if repeats == 1 else f" The folds were drawn {repeats} times."
    how = f"Stratified {folds}-fold cross-validation: each matrix was labeled by methods that never saw it."
    return splits, how + drawn
