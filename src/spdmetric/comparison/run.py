"""The run of a plan: nested cross-validation of all methods, fold by fold, resumable.

A task is a fold and the methods that share work in it.  Nothing depends on the order of the tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from os import PathLike

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import find_method, set_where_known
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.scores import compute_losses
from spdmetric.comparison.store import Result, Task, digest, run_tasks

Part = tuple[int, int, bool, tuple[str, ...]]  # of a task: repeat, fold, whether recentered, methods


def make_method(plan: Plan, name: str) -> BaseEstimator:
    """Make a method of these sizes, with the class weight of the plan where it takes one."""
    estimator = find_method(name).make(plan.sizes)
    if plan.class_weight is not None:
        set_where_known(estimator, class_weight=plan.class_weight)
    return estimator


def run_plan(
    plan: Plan, path: str | PathLike[str] | None = None, *, jobs: int = 1, progress: str | None = None
) -> tuple[dict[Entry, Result], dict[Entry, str]]:
    """Run what is left of a comparison: results of the methods, and why the others failed.

    A result has ``labels`` (n_repeats, n_tested), codes or numbers; ``scores`` (n_repeats, n_tested, 1 or
    n_classes) and ``losses`` (n_repeats, n_tested) or None; the mean ``seconds`` of a fold; the first
    ``warning`` or None.  Finished parts are in the store at ``path``; for the others see `run_tasks`.
    """
    results = run_tasks(_list_tasks(plan), path, jobs=jobs, progress=progress)
    found, failed = {}, {}
    for entry in (Entry(name, form) for form in plan.forms for name in plan.methods):
        parts = [at for at in results if entry.method in at[3] and entry.recentered == at[2]]
        by_fold = {at[:2]: results[at][entry.method] for at in parts}
        if reasons := [result for result in by_fold.values() if isinstance(result, str)]:
            failed[entry] = reasons[0]
        else:
            found[entry] = _gather(plan, by_fold)
    return found, failed


def _list_tasks(plan: Plan) -> dict[Part, Task]:
    """Every task, fold by fold: the time that one fold takes tells what the others will."""
    from spdmetric import __version__

    groups = () if plan.groups is None else (np.unique(plan.groups, return_inverse=True)[1],)
    data = {form: digest(plan.forms[form], plan.codes, *groups) for form in plan.forms}
    choosing = [(name,) for name in plan.methods if find_method(name).chooses]
    others = tuple(name for name in plan.methods if (name,) not in choosing)  # quick, and share their means
    together = [*choosing, others] if others else choosing
    settings = {"version": __version__, "sizes": plan.sizes, "class_weight": plan.class_weight}
    tasks: dict[Part, Task] = {}
    for repeat, folds in enumerate(plan.splits):
        for (k, fold), names, form in product(enumerate(folds), together, plan.forms):
            key, part = {**settings, "data": data[form], "fold": digest(*fold)}, (repeat, k, form, names)
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
        given = [name for name in ("decision_function", "predict_proba") if hasattr(classifier, name)]
        told = {name: np.asarray(getattr(classifier, name)(test), float) for name in given if n_classes}
    said = [str(w.message) for w in caught if not issubclass(w.category, DeprecationWarning)]
    known = np.asarray(getattr(classifier, "classes_", ()), dtype=int)
    proba = told.get("predict_proba")
    return {
        "labels": np.asarray(labels).tolist(),
        "scores": _round(_score_classes(told.get("decision_function"), proba, known, n_classes)),
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


def _gather(plan: Plan, by_fold: Mapping[tuple[int, int], Result]) -> Result:
    """From results of folds to one: arrays in the order of the test matrices, None where some have none."""
    gathered: Result = {"warning": next((own["warning"] for own in by_fold.values() if own["warning"]), None)}
    gathered["seconds"] = float(np.mean([own["seconds"] for own in by_fold.values()]))
    for what in ("labels", "scores", "losses"):
        gathered[what] = None
        if all(own[what] is not None for own in by_fold.values()):
            some = np.asarray(by_fold[0, 0][what])
            shape = (len(plan.splits), len(plan.tested), *some.shape[1:])
            gathered[what] = np.empty(shape, dtype=some.dtype)
            for (repeat, k), own in by_fold.items():
                gathered[what][repeat, plan.places[repeat][k]] = own[what]
    return gathered
