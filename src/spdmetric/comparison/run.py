"""The run of a plan: nested cross-validation of all methods, fold by fold, resumable.

A task is a fold and the methods that share work in it.  Nothing depends on the order of the tasks.
"""

from __future__ import annotations

import timeit
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison import store as journal
from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import METHODS
from spdmetric.comparison.methods import given as given_to
from spdmetric.comparison.plan import Plan
from spdmetric.comparison.scores import losses
from spdmetric.comparison.store import Failure, Journal, Key, Pieces, Plain, Progress, Task, attempt_each

# Seconds of a sweep, and logarithms for each training matrix; of the others, for each pair.  As measured.
SWEEP, QUICK = (0.1, 200.0), (0.5, 1.0)


@dataclass(frozen=True)
class Comparison:
    """What came out, by the name of a method and of the form of the matrices, see `named`."""

    plan: Plan
    given: dict[str, np.ndarray]  # (n_repeats, n_tested) codes
    scores: dict[str, np.ndarray]  # (n_repeats, n_tested, 1 or n_classes), of those that have them
    seconds: dict[str, float]  # mean of a fold
    failed: dict[str, str]
    warned: dict[str, str]
    losses: dict[str, np.ndarray] = field(default_factory=dict)  # (n_repeats, n_tested), where probabilities


class Place(NamedTuple):
    """What a task belongs to."""

    variant: str
    names: tuple[str, ...]
    repeat: int
    fold: int

    @property
    def key(self) -> Key:
        """Its name in the journal, and for those who wait."""
        more = f" and {len(self.names) - 1} more" if len(self.names) > 1 else ""
        return f"fold {self.fold + 1}, {named(self.names[0], self.variant)}{more}", self.repeat


def named(method: str, variant: str) -> str:
    """Name of a method run on a form of the matrices."""
    return f"{method} {variant}".strip()


def made(plan: Plan, name: str) -> BaseEstimator:
    """Make a method of these sizes, with the class weight of the plan where it takes one."""
    estimator = METHODS[name.partition(" ")[0]].make(plan.sizes)
    given_to(estimator, **({} if plan.class_weight is None else {"class_weight": plan.class_weight}))
    return estimator


def run_plan(plan: Plan, path: Path, *, jobs: int = 1, progress: Progress | None = None) -> Comparison:
    """Run what is left of a comparison; finished tasks are in the journal at ``path``.

    For ``jobs`` and ``progress`` see `spdmetric.comparison.store.run`.
    """
    kept, at = Journal(path, _header(plan)), {place.key: place for place in places(plan)}
    tasks = {
        key: Task(place.names, partial(_fold, plan, place), partial(_accepts, plan, place))
        for key, place in at.items()
    }
    results = journal.run(tasks, kept, jobs=jobs, progress=progress)
    return _gathered(plan, {at[key]: pieces for key, pieces in results.items()})


def kept_parts(plan: Plan, path: Path) -> int:
    """How many tasks the journal has whole, so that they are not run again."""
    with Journal(path, _header(plan)).opened() as kept:
        return sum(all((place.key, name) in kept for name in place.names) for place in places(plan))


def _header(plan: Plan) -> dict[str, Plain]:
    from spdmetric import __version__

    indices = [index for folds in plan.splits for split in folds for index in split]
    return {
        "version": __version__,
        "data": journal.digest(plan.X, plan.codes, *indices),
        "classes": list(map(str, plan.classes)),
        "methods": list(plan.methods),
        "seed": plan.seed,
        "class_weight": plan.class_weight,
        "forms": list(plan.variants),
    }


def places(plan: Plan) -> list[Place]:
    """Every task, fold by fold: the time that one fold takes tells what the others will."""
    sweeps = [(name,) for name in plan.methods if METHODS[name].sweeps]
    others = tuple(name for name in plan.methods if not METHODS[name].sweeps)  # quick, and share their means
    return [
        Place(variant, names, repeat, k)
        for repeat, folds in enumerate(plan.splits)
        for k in range(len(folds))
        for names in (*sweeps, *([others] if others else []))
        for variant in ("", *plan.variants)
    ]


def rough_seconds(plan: Plan) -> float:
    """Guess what a run takes in one process, from the time of one logarithm of a training matrix.

    A sweep takes some hundred of them for each training matrix; what is no sweep is dominated by methods
    that compare all pairs.  Right to a factor of two or three.
    """
    some = plan.X[:50]
    one = min(timeit.repeat(lambda: np.linalg.eigh(some), number=1, repeat=10)) / len(some)
    total = 0.0
    for place in places(plan):
        train, test = map(len, plan.splits[place.repeat][place.fold])
        sweeps = METHODS[place.names[0]].sweeps
        fixed, each = SWEEP if sweeps else QUICK
        total += fixed + each * one * train * (1 if sweeps else test)
    return total


def _accepts(plan: Plan, place: Place, name: str, piece: Plain) -> bool:
    """Whether a kept piece can be that of a method: a class and scores for each test matrix, and so on."""
    if not isinstance(piece, dict) or set(piece) != {"labels", "scores", "losses", "seconds", "warnings"}:
        return False
    n, said = len(plan.splits[place.repeat][place.fold][1]), piece["warnings"]
    return (
        _is_array(piece["labels"], (n,), "i")
        and set(piece["labels"]) <= set(range(len(plan.classes)))
        and (piece["scores"] is None or _is_array(piece["scores"], (n, _width(plan))))
        and (piece["losses"] is None or _is_array(piece["losses"], (n,)))
        and _is_array(piece["seconds"], ())
        and isinstance(said, list)
        and all(isinstance(one, str) for one in said)
    )


def _is_array(value: Plain, shape: tuple[int, ...], kinds: str = "if") -> bool:
    try:
        found = np.asarray(value)
    except ValueError:  # rows of different lengths
        return False
    return found.dtype.kind in kinds and found.shape == shape and bool(np.isfinite(found).all())


def _width(plan: Plan) -> int:
    """Scores of a matrix: that of the second of two classes, or one of each class."""
    return 1 if len(plan.classes) == 2 else len(plan.classes)


def fold_of(plan: Plan, variant: str, repeat: int, k: int) -> Fold:
    """One fold of a form of the matrices."""
    train, test = plan.splits[repeat][k]
    X = plan.matrices(variant)
    return Fold(X[train], plan.codes[train], X[test], inner_groups(plan, train))


def inner_groups(plan: Plan, train: np.ndarray) -> np.ndarray | None:
    """Groups that folds inside a method keep together; None where leaving one out leaves one class."""
    if plan.groups is None:
        return None
    groups, codes = plan.groups[train], plan.codes[train]
    some = np.unique(groups)
    two = all(len(np.unique(codes[groups != group])) > 1 for group in some)
    return groups if len(some) > 1 and two else None


def _fold(plan: Plan, place: Place, names: tuple[str, ...]) -> Pieces:
    fold = fold_of(plan, place.variant, place.repeat, place.fold)
    truth = plan.codes[plan.splits[place.repeat][place.fold][1]]
    return attempt_each(names, lambda name: _outcome(fold, truth, made(plan, name), _width(plan)))


def _outcome(fold: Fold, truth: np.ndarray, estimator: BaseEstimator, width: int) -> Plain:
    """Labels, scores and losses of one method, its seconds and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (classifier, test), fitting = fold.timed(lambda: fold.fitted(estimator))
        labels, predicting = fold.timed(lambda: classifier.predict(test))
        told = {
            name: np.asarray(getattr(classifier, name)(test), dtype=float)
            for name in ("decision_function", "predict_proba")
            if hasattr(classifier, name)
        }
    said = dict.fromkeys(
        " ".join(str(w.message).split()) for w in caught if not issubclass(w.category, DeprecationWarning)
    )
    sure = told.get("predict_proba")
    return {
        "labels": np.asarray(labels).tolist(),
        "scores": _rounded(_scores(told, getattr(classifier, "classes_", ()), width)),
        "losses": _rounded(None if sure is None else losses(sure, classifier.classes_, truth)),
        "seconds": round(fitting + predicting, 3),
        "warnings": list(said),
    }


def _rounded(values: np.ndarray | None) -> Plain:
    """Nine digits of each, which is less to keep; None where some are not finite."""
    if values is None or not np.isfinite(values).all():
        return None
    return np.array([float(f"{value:.9g}") for value in values.flat]).reshape(values.shape).tolist()


def _scores(told: dict[str, np.ndarray], known: Sequence[int], width: int) -> np.ndarray | None:
    """How sure a classifier is, (n, 1) of the second of two classes, or (n, n_classes); None: no scores."""
    if not told:
        return None
    # Probabilities of two classes are often rounded to 0 and 1; those of more are on one scale.
    found = list(told.values())[0 if width == 1 else -1]
    found = found[:, None] if found.ndim == 1 else found
    if width == 1:
        return found[:, -1:]
    if found.shape[1] == len(known) < width:  # a class that no training matrix has
        whole = np.full((len(found), width), found.min() - 1)
        whole[:, known] = found
        return whole
    return found if found.shape[1] == width else None


def _gathered(plan: Plan, results: dict[Place, Pieces]) -> Comparison:
    """From the journal to arrays."""
    keys = [named(name, variant) for variant in ("", *plan.variants) for name in plan.methods]
    weightings = {"labels": (), "scores": (_width(plan),), "losses": ()}
    size = len(plan.splits), len(plan.codes)
    found = {what: {key: np.full((*size, *of), np.nan) for key in keys} for what, of in weightings.items()}
    seconds: dict[str, list[float]] = {key: [] for key in keys}
    failed: dict[str, str] = {}
    warned: dict[str, str] = {}
    for place, pieces in results.items():
        test = plan.splits[place.repeat][place.fold][1]
        for name, piece in pieces.items():
            key = named(name, place.variant)
            if isinstance(piece, Failure):
                failed.setdefault(key, piece.reason)
                continue
            for what in weightings:
                if piece[what] is not None:
                    found[what][key][place.repeat, test] = piece[what]
            seconds[key].append(piece["seconds"])
            for said in piece["warnings"]:
                warned.setdefault(key, said)

    def whole(what: str) -> dict[str, np.ndarray]:
        tested = {key: found[what][key][:, plan.tested] for key in keys if key not in failed}
        return {key: values for key, values in tested.items() if np.isfinite(values).all()}

    given = {key: labels.astype(int) for key, labels in whole("labels").items()}
    times = {key: float(np.mean(seconds[key])) for key in given}
    return Comparison(plan, given, whole("scores"), times, failed, warned, whole("losses"))
