"""The run of a plan: nested cross-validation of all methods, fold by fold, resumable.

A task is a fold and the methods that share work in it.  Nothing depends on the order of the tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from os import PathLike

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import find_method, set_where_known
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.scores import compute_losses
from spdmetric.comparison.store import Failure, Key, Result, Store, Task, digest, run_tasks

Part = tuple[int, int, bool, tuple[str, ...]]  # of a task: repeat, fold, whether recentered, methods


@dataclass(frozen=True)
class Outcome:
    """What one method gave for the test matrices."""

    labels: np.ndarray  # (n_repeats, n_tested) codes, or predicted numbers
    scores: np.ndarray | None = None  # (n_repeats, n_tested, 1 or n_classes), of those that have them
    losses: np.ndarray | None = None  # (n_repeats, n_tested), where there are probabilities
    seconds: float = 1.0  # mean of a fold


@dataclass(frozen=True)
class Comparison:
    """What came out of a plan."""

    plan: Plan
    outcomes: dict[Entry, Outcome]
    failed: dict[Entry, str]
    warned: dict[Entry, str]


def make_method(plan: Plan, name: str) -> BaseEstimator:
    """Make a method of these sizes, with the class weight of the plan where it takes one."""
    estimator = find_method(name).make(plan.sizes)
    if plan.class_weight is not None:
        set_where_known(estimator, class_weight=plan.class_weight)
    return estimator


def run_plan(
    plan: Plan, path: str | PathLike[str] | None = None, *, jobs: int = 1, progress: str | None = None
) -> Comparison:
    """Run what is left of a comparison; finished results are in the store at ``path``.

    For ``jobs`` and ``progress`` see `spdmetric.comparison.store.run_tasks`.
    """
    return _gather(plan, run_tasks(_list_tasks(plan), Store(path), jobs=jobs, progress=progress))


def _list_tasks(plan: Plan) -> dict[Part, Task]:
    """Every task, fold by fold: the time that one fold takes tells what the others will."""
    from spdmetric import __version__

    groups = () if plan.groups is None else (np.unique(plan.groups, return_inverse=True)[1],)
    data = {form: digest(plan.forms[form], plan.codes, *groups) for form in plan.forms}
    choosing = [(name,) for name in plan.methods if find_method(name).chooses]
    others = tuple(
        name for name in plan.methods if not find_method(name).chooses
    )  # quick, and share their means
    together = [names for names in (*choosing, others) if names]
    settings = {"sizes": plan.sizes, "class_weight": plan.class_weight}  # type of the codes: in the digest
    tasks: dict[Part, Task] = {}
    for repeat, folds in enumerate(plan.splits):
        for (k, fold), names, form in product(enumerate(folds), together, plan.forms):
            key: Key = {"version": __version__, "data": data[form], "fold": digest(*fold), **settings}
            part = (repeat, k, form, names)
            tasks[part] = {name: {**key, "method": name} for name in names}, partial(_start, plan, part)
    return tasks


def make_fold(plan: Plan, repeat: int = 0, k: int = 0, recentered: bool = False) -> Fold:
    """One fold of a form of the matrices."""
    train, test = plan.splits[repeat][k]
    X = plan.forms[recentered]
    return Fold(X[train], plan.codes[train], X[test], find_inner_groups(plan, train))


def find_inner_groups(plan: Plan, train: np.ndarray) -> np.ndarray | None:
    """Groups that folds inside a method keep together; None where leaving one out leaves one class."""
    if plan.groups is None:
        return None
    groups, codes = plan.groups[train], plan.codes[train]
    some = np.unique(groups)
    two = all(len(np.unique(codes[groups != group])) > 1 for group in some)
    return groups if len(some) > 1 and two else None


def _start(plan: Plan, part: Part) -> Callable[[str], Result]:
    repeat, k, recentered, _ = part
    fold, truth = make_fold(plan, repeat, k, recentered), plan.codes[plan.splits[repeat][k][1]]
    return lambda name: _test_method(fold, truth, make_method(plan, name), plan.classes)


def _test_method(
    fold: Fold, truth: np.ndarray, estimator: BaseEstimator, classes: np.ndarray | None
) -> Result:
    """Labels, scores and losses of one method, its seconds and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (classifier, test), fitting = fold.timed(lambda: fold.fitted(estimator))
        labels, predicting = fold.timed(lambda: classifier.predict(test))
        decision, proba = (
            np.asarray(getattr(classifier, name)(test), dtype=float)
            if classes is not None and hasattr(classifier, name)
            else None
            for name in ("decision_function", "predict_proba")
        )
    said = [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    known = np.asarray(getattr(classifier, "classes_", ()), dtype=int)
    return {
        "labels": np.asarray(labels).tolist(),
        "scores": _round(None if classes is None else _score_classes(decision, proba, known, len(classes))),
        "losses": _round(None if proba is None else compute_losses(proba, known, truth)),
        "seconds": round(fitting + predicting, 3),
        "warning": " ".join(said[0].split()) if said else None,
    }


def _round(values: np.ndarray | None) -> Result:
    """Nine digits of each, which is less to keep; None where some are not finite."""
    if values is None or not np.isfinite(values).all():
        return None
    return np.array([float(f"{value:.9g}") for value in values.flat]).reshape(values.shape).tolist()


def _score_classes(
    decision: np.ndarray | None, proba: np.ndarray | None, known: np.ndarray, n_classes: int
) -> np.ndarray | None:
    """Scores (n, 1) of the second of two classes, or (n, n_classes); None: the classifier has none."""
    # Probabilities of two classes are often rounded to 0 and 1; those of more are on one scale.
    first, second = (decision, proba) if n_classes == 2 else (proba, decision)
    found = second if first is None else first
    if found is None:
        return None
    found = found.reshape(len(found), -1)
    if n_classes == 2:
        return found[:, -1:]
    if found.shape[1] == len(known) < n_classes:  # a class that no training matrix has
        whole = np.full((len(found), n_classes), found.min() - 1)
        whole[:, known] = found
        return whole
    return found if found.shape[1] == n_classes else None


def _gather(plan: Plan, results: Mapping[Part, Mapping[str, Result | Failure]]) -> Comparison:
    """From results by task to arrays by method."""
    comparison = Comparison(plan, {}, {}, {})
    for form, name in product(plan.forms, plan.methods):
        entry = Entry(name, form)
        found: dict[tuple[int, int], Result] = {
            (repeat, k): by_name[name]
            for (repeat, k, recentered, names), by_name in results.items()
            if name in names and recentered == form
        }
        if failures := [result.reason for result in found.values() if isinstance(result, Failure)]:
            comparison.failed[entry] = failures[0]
            continue
        if said := [result["warning"] for result in found.values() if result["warning"]]:
            comparison.warned[entry] = said[0]
        labels, scores, losses = (_stack(plan, found, what) for what in ("labels", "scores", "losses"))
        assert labels is not None  # every method gives them
        seconds = float(np.mean([result["seconds"] for result in found.values()]))
        comparison.outcomes[entry] = Outcome(labels, scores, losses, seconds)
    return comparison


def _stack(plan: Plan, by_fold: Mapping[tuple[int, int], Result], what: str) -> np.ndarray | None:
    """Values (n_repeats, n_tested, ...) in the order of the test matrices; None where some have none."""
    if any(result[what] is None for result in by_fold.values()):
        return None
    some = np.asarray(by_fold[0, 0][what])
    values = np.empty((len(plan.splits), len(plan.tested), *some.shape[1:]), dtype=some.dtype)
    for (repeat, k), result in by_fold.items():
        values[repeat, np.searchsorted(plan.tested, plan.splits[repeat][k][1])] = result[what]
    return values
