"""The plan of a comparison: folds, repeats and methods; all that decides the numbers.

What is run follows from the sizes.  Folds are drawn once to five times, as often as ``n d^3`` fits into
8e5.  Methods that are slow for the sizes are left out, unless they are named.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, StratifiedKFold

from spdmetric.comparison.errors import Design
from spdmetric.comparison.methods import (
    COMPARED,
    METHODS,
    REGRESSORS,
    Sizes,
    check_names,
    find_method,
    find_obstacle,
)
from spdmetric.comparison.scores import SCORES, Score
from spdmetric.datasets import recenter
from spdmetric.estimators import CommonRange
from spdmetric.io.matrices import Matrices
from spdmetric.validation import check_psd, check_value, is_regression, one_of

# Of each repeat the folds, of each fold training and test indices.
Splits = tuple[tuple[tuple[np.ndarray, np.ndarray], ...], ...]


class Entry(NamedTuple):
    """A method on the matrices as they are, or recentered."""

    method: str
    recentered: bool = False

    @property
    def title(self) -> str:
        """Its name for readers."""
        return find_method(self.method).title + " (recentered)" * self.recentered


@dataclass(frozen=True)
class Plan:
    """All that decides the numbers."""

    X: np.ndarray  # (n, d, d) or (n, views, d, d), those of a test file behind the others
    codes: np.ndarray  # (n,), classes as 0, 1, ...; or regression targets
    classes: np.ndarray | None  # None: regression
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
    def scores(self) -> dict[str, Score]:
        """Those of classes, or of regression."""
        return {key: score for key, score in SCORES.items() if score.regression == (self.classes is None)}

    @property
    def parts(self) -> tuple[np.ndarray, list[str]]:
        """Classes (n,) to tell apart in pictures, and their names; of regression targets two halves."""
        if self.classes is not None:
            return self.codes, [str(name)[:24] for name in self.classes]
        middle = np.median(self.codes)
        return (self.codes > middle).astype(int), [f"up to {middle:.3g}", f"above {middle:.3g}"]

    @cached_property
    def design(self) -> Design:
        """What the errors are over."""
        folds, n = self.splits[0], len(self.tested)
        alone = "Wilson's interval, differences as in McNemar's test"
        if len(folds) == 1:  # test matrices
            return Design(f"one test set: {alone}", f"{n} matrices")
        if self.groups is None:
            codes = np.empty((len(self.splits), n), dtype=int)
            for repeat, k in np.ndindex(len(self.splits), len(folds)):
                codes[repeat, self.places[repeat][k]] = repeat * len(folds) + k
            rule = "folds: corrected resampled t (Nadeau and Bengio), never less than the binomial error"
            return Design(rule, f"{n} matrices", codes, 1 / (len(folds) - 1))
        names, codes = np.unique(self.groups, return_inverse=True)
        units = f"{n} matrices in {len(names)} groups"
        if len(names) == 2:  # they tell nothing about their spread
            return Design(f"two groups: {alone}; what a third would give is not known", units)
        rule = "groups left out: paired t over groups, never less than the binomial error"
        return Design(rule, units, codes[None])

    @cached_property
    def tested(self) -> np.ndarray:
        """Indices of the matrices that are labeled in every repeat."""
        return np.sort(np.concatenate([test for _, test in self.splits[0]]))

    @cached_property
    def places(self) -> list[list[np.ndarray]]:
        """Of each repeat and fold, where its test matrices are among those tested."""
        return [[test - self.tested[0] for _, test in folds] for folds in self.splits]

    @property
    def trained(self) -> np.ndarray:
        """Indices of the matrices that the final metric may learn from."""
        return np.unique(np.concatenate([train for train, _ in self.splits[0]]))


def make_plan(
    data: Matrices,
    test: Matrices | None = None,
    methods: tuple[str, ...] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    scoring: str | None = None,
    class_weight: str | None = None,
    recenter: bool | None = None,
) -> Plan:
    """Decide on folds, repeats and methods; see `spdmetric.compare`.

    Both are labeled; with test matrices there is one fold, with groups whole groups are left out.
    """
    check_value("scoring", scoring, one_of(None, *SCORES))
    check_value("class_weight", class_weight, one_of(None, "balanced"))
    numbers = is_regression(data.labels, "auto")
    scoring = scoring or ("r2" if numbers else "accuracy")
    regression = SCORES[scoring].regression
    if numbers and not regression:
        raise ValueError(
            f"scoring={scoring!r} is for classes, and y holds numbers, not all whole: choose r2 or mae."
        )
    registry = REGRESSORS if regression else METHODS
    names = methods or (tuple(REGRESSORS) if regression else COMPARED)
    check_names(names, registry)
    # Matrices of float32 are symmetric up to rounding of float32: they are averaged before they are cast.
    X, y, n = check_psd(data.X, 1), data.labels, len(data.X)
    if test is not None:
        _check_test(data, test)
        X, y = np.concatenate([X, check_psd(test.X, 1)]), np.concatenate([y, test.labels])
    classes, codes = (None, _check_numbers(y)) if regression else np.unique(y, return_inverse=True)
    if test is not None:
        splits: Splits = (((np.arange(n), np.arange(n, len(X))),),)
        how = f"Every method was trained on the {n} matrices and tested on the {len(X) - n} of {test.name}."
    elif data.groups is not None:
        splits, how = _split_by_groups(data.groups)
    else:
        splits, how = _split_by_folds(X, codes, repeats, seed, regression)
    trained = [codes[train] for folds in splits for train, _ in folds]
    counts = [] if regression else [np.unique(own, return_counts=True)[1] for own in trained]
    if any(len(own) < 2 or np.sort(own)[-2] < 2 for own in counts):
        raise ValueError(
            "A training set would hold one class only, or only one with more than one matrix: expected two "
            "classes with at least two matrices each outside each group or fold. Use other groups."
        )
    n_train = min(map(len, trained))
    smallest = min((int(own.min()) for own in counts), default=n_train)
    sizes = Sizes.from_data(X, codes)._replace(n=n_train, smallest_class=smallest)
    left_out = {name: why for name in names if (why := find_obstacle(registry[name], sizes))}
    if methods is None:  # what is named is run at any size
        why = f"would take long with {len(X)} matrices of size {sizes.d}; name it in the methods to run it"
        n_classes = 0 if classes is None else len(classes)
        slow = [name for name in names if registry[name].is_slow(len(X), sizes.d, n_classes)]
        left_out = dict.fromkeys(slow, why) | left_out
    run = tuple(name for name in names if name not in left_out)
    if not run:
        reasons = "; ".join(f"{name} {why}" for name, why in left_out.items())
        raise ValueError(f"No method can be run on these matrices: {reasons}.")
    recentered = _recenter(X, data, recenter, sizes)
    settings = (seed, data.groups, scoring, class_weight, recentered)
    return Plan(X, codes, classes, splits, how, sizes, run, left_out, *settings)


def _check_test(data: Matrices, test: Matrices) -> None:
    """Refuse test matrices of another size, or with other labels, and a single one."""
    if len(test.X) < 2:
        raise ValueError(f"{test.name} has one matrix: expected at least two, to have a standard error.")
    if data.X.shape[1:] != test.X.shape[1:]:
        got, expected = (" x ".join(map(str, X.shape[1:])) for X in (test.X, data.X))
        raise ValueError(f"{test.name} has matrices {got} and {data.name} {expected}: expected the same.")
    unknown = sorted(set(map(str, test.labels)) - set(map(str, data.labels)))
    if unknown and not is_regression(data.labels, "auto"):
        raise ValueError(
            f"{test.name} has the label {unknown[0]!r}, which {data.name} has not; expected the same labels."
        )


def _recenter(X: np.ndarray, data: Matrices, wanted: bool | None, sizes: Sizes) -> np.ndarray | None:
    """Recenter each group by its Riemannian mean, in the range that all share; None where not wanted."""
    if wanted is False or (wanted is None and data.groups is None):
        return None
    if data.groups is None and len(X) == len(data.X):
        raise ValueError("recenter: expected groups, sessions or subjects for instance, or test matrices.")
    domains = np.full(len(X), -1)  # of the test matrices
    domains[: len(data.X)] = 0 if data.groups is None else np.unique(data.groups, return_inverse=True)[1]
    why = None if sizes.inside.definite else "the matrices have no common range"
    if np.unique(domains, return_counts=True)[1].min() < 2:
        why = "a group has one matrix, its own mean"
    if why is not None:
        if wanted:
            raise ValueError(f"recenter: {why}. Leave it out.")
        return None
    if not sizes.shared:
        return recenter(X, domains)
    inside = CommonRange().fit(X)
    return inside.inverse_transform(recenter(inside.transform(X), domains))


def _check_numbers(y: np.ndarray) -> np.ndarray:
    """Regression targets as float64."""
    if y.dtype.kind not in "biuf":
        raise ValueError(f"y holds {y[0]!r}: expected numbers, for R² or mean absolute error.")
    if not np.isfinite(y).all() or np.ptp(y) == 0:
        raise ValueError("y holds one number, or some are not finite: expected finite numbers that differ.")
    return y.astype(np.float64)


def _split_by_groups(groups: np.ndarray) -> tuple[Splits, str]:
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(f"All matrices are in the group {groups[0]}: expected at least two groups.")
    splitter, folds = (LeaveOneGroupOut(), "alone") if n_groups <= 10 else (GroupKFold(10), "in ten folds")
    how = f"Each of the {n_groups} groups was left out in turn, {folds}: trained on the rest, tested on it."
    return (tuple(splitter.split(groups, groups=groups)),), how


def _split_by_folds(
    X: np.ndarray, codes: np.ndarray, repeats: int | None, seed: int, regression: bool
) -> tuple[Splits, str]:
    repeats = repeats or int(np.clip(8e5 // (X[..., 0, 0].size * X.shape[-1] ** 3), 1, 5))
    if regression:
        if len(X) < 10:
            raise ValueError(f"There are {len(X)} matrices: expected at least 10 to cut folds of.")
        kind, folds = KFold, 5
        how = "5-fold cross-validation: each target was predicted by methods that never saw the matrix."
    else:
        counts = np.sort(np.bincount(codes))
        if len(counts) < 2:
            raise ValueError("All matrices have one label: expected at least two classes.")
        if counts[0] < 2 or counts[-2] < 4:
            raise ValueError(
                f"The classes have {', '.join(map(str, counts[:8]))} matrices: expected at least 2 of every "
                "class, and at least 4 of the two largest ones, to train, to choose and to test on."
            )
        # A class of two or three is in some folds only, and then has another matrix in training.
        kind, folds = StratifiedKFold, min(5, int(counts[0] if counts[0] >= 4 else counts[-1]))
        how = (
            f"Stratified {folds}-fold cross-validation: each matrix was labeled by methods that never saw it."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)  # as said above
        kinds = (kind(folds, shuffle=True, random_state=(1000 * seed + k) % 2**32) for k in range(repeats))
        splits = tuple(tuple(one.split(X, codes)) for one in kinds)
    return splits, how if repeats == 1 else f"{how} The folds were drawn {repeats} times."
