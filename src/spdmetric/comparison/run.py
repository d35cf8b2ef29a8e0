"""The run of a plan: nested cross-validation of all methods, fold by fold, resumable.

A task is a fold and the methods that share work in it.  Nothing depends on the order of the tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import find_method, set_where_known
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.scores import compute_losses
from spdmetric.comparison.store import Key, Result, Store, Task, digest, run_tasks

Part = tuple[int, int, bool, tuple[str, ...]]  # of a task: repeat, fold, whether recentered, methods


class Outcome(NamedTuple):
    """What one method gave for the test matrices."""

    labels: np.ndarray  # (n_repeats, n_tested) codes, or predicted numbers
    scores: np.ndarray | None = None  # (n_repeats, n_tested, 1 or n_classes), of those that have them
    losses: np.ndarray | None = None  # (n_repeats, n_tested), where there are probabilities
    seconds: float = 1.0  # mean of a fold
    warning: str | None = None  # the first


def make_method(plan: Plan, name: str) -> BaseEstimator:
    """Make a method of these sizes, with the class weight of the plan where it takes one."""
    estimator = find_method(name).make(plan.sizes)
    if plan.class_weight is not None:
        set_where_known(estimator, class_weight=plan.class_weight)
    return estimator


def run_plan(
    plan: Plan, path: str | PathLike[str] | None = None, *, jobs: int = 1, progress: str | None = None
) -> tuple[dict[Entry, Outcome], dict[Entry, str]]:
    """Run what is left of a comparison: outcomes of the methods, and why the others failed.

    Finished results are in the store at ``path``.  For ``jobs`` and ``progress`` see `run_tasks`.
    """
    results = run_tasks(_list_tasks(plan), Store(path), jobs=jobs, progress=progress)
    outcomes, failed = {}, {}
    for entry in (Entry(name, form) for form in plan.forms for name in plan.methods):
        parts = [at for at in results if entry.method in at[3] and entry.recentered == at[2]]
        by_fold = {at[:2]: results[at][entry.method] for at in parts}
        if reasons := [result for result in by_fold.values() if isinstance(result, str)]:
            failed[entry] = reasons[0]
        else:
            outcomes[entry] = _gather(plan, by_fold)
    return outcomes, failed


def _list_tasks(plan: Plan) -> dict[Part, Task]:
    """Every task, fold by fold: the time that one fold takes tells what the others will."""
    from spdmetric import __version__

    groups = () if plan.groups is None else (np.unique(plan.groups, return_inverse=True)[1],)
    data = {form: digest(plan.forms[form], plan.codes, *groups) for form in plan.forms}
    choosing = [(name,) for name in plan.methods if find_method(name).chooses]
    others = tuple(name for name in plan.methods if (name,) not in choosing)  # quick, and share their means
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
    left = [np.unique(codes[groups != group]) for group in np.unique(groups)]
    return groups if min(map(len, left)) > 1 else None


def _start(plan: Plan, part: Part) -> Callable[[str], Result]:
    repeat, k, recentered, _ = part
    truth = plan.codes[plan.splits[repeat][k][1]]
    return partial(_test_method, plan, make_fold(plan, repeat, k, recentered), truth)


def _test_method(plan: Plan, fold: Fold, truth: np.ndarray, name: str) -> Result:
    """Labels, scores and losses of one method, its seconds and its first warning."""
    estimator, n_classes = make_method(plan, name), 0 if plan.classes is None else len(plan.classes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (classifier, test), fitting = fold.timed(lambda: fold.fitted(estimator))
        labels, predicting = fold.timed(lambda: classifier.predict(test))
        decision, proba = (
            np.asarray(getattr(classifier, name)(test), dtype=float)
            if n_classes and hasattr(classifier, name)
            else None
            for name in ("decision_function", "predict_proba")
        )
    said = [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    known = np.asarray(getattr(classifier, "classes_", ()), dtype=int)
    return {
        "labels": np.asarray(labels).tolist(),
        "scores": _round(_score_classes(decision, proba, known, n_classes)),
        "losses": _round(None if proba is None else compute_losses(proba, known, truth)),
        "seconds": round(fitting + predicting, 3),
        "warning": " ".join(said[0].split()) if said else None,
    }


def _round(values: np.ndarray | None) -> Result:
    """Nine digits of each, which is less to keep; None where some are not finite."""
    if values is None or not np.isfinite(values).all():
        return None
    return np.vectorize(lambda value: float(f"{value:.9g}"))(values).tolist()


def _score_classes(
    decision: np.ndarray | None, proba: np.ndarray | None, known: np.ndarray, n_classes: int
) -> np.ndarray | None:
    """Scores (n, 1) of the second of two classes, or (n, n_classes); None: the classifier has none."""
    # Probabilities of two classes are often rounded to 0 and 1; those of more are on one scale.
    both = (decision, proba) if n_classes == 2 else (proba, decision)
    found = next((one for one in both if one is not None), None)
    if n_classes == 2 and found is not None:
        return found.reshape(len(found), -1)[:, -1:]
    if found is None or found.shape != (len(found), len(known)):
        return None
    whole = np.full((len(found), n_classes), found.min() - 1)  # of classes that no training matrix has
    whole[:, known] = found
    return whole


def _gather(plan: Plan, by_fold: Mapping[tuple[int, int], Result]) -> Outcome:
    """From results of folds to arrays in the order of the test matrices."""

    def stack(what: str) -> Any:
        """Values (n_repeats, n_tested, ...); None where some folds have none."""
        if any(result[what] is None for result in by_fold.values()):
            return None
        some = np.asarray(by_fold[0, 0][what])
        values = np.empty((len(plan.splits), len(plan.tested), *some.shape[1:]), dtype=some.dtype)
        for (repeat, k), result in by_fold.items():
            values[repeat, plan.places[repeat][k]] = result[what]
        return values

    seconds = float(np.mean([result["seconds"] for result in by_fold.values()]))
    warning = next((result["warning"] for result in by_fold.values() if result["warning"]), None)
    return Outcome(stack("labels"), stack("scores"), stack("losses"), seconds, warning)
