"""A whole comparison in one call: describe the matrices, plan, run, judge."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.comparison.describe import describe
from spdmetric.comparison.plan import Plan, make_plan
from spdmetric.comparison.report import Report
from spdmetric.comparison.run import run_plan
from spdmetric.comparison.scores import SCORES
from spdmetric.comparison.store import Progress, digest
from spdmetric.comparison.verdict import judge
from spdmetric.io.matrices import Matrices
from spdmetric.validation import (
    as_numbers,
    as_numpy,
    check_count,
    check_groups,
    check_label_kind,
    check_n_jobs,
    check_stack,
    is_regression,
    to_numpy,
)


def compare(
    X: ArrayLike | Matrices,
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    X_test: ArrayLike | Matrices | None = None,
    y_test: ArrayLike | None = None,
    methods: str | Sequence[str] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    scoring: str = "accuracy",
    class_weight: str | None = None,
    recenter: bool | None = None,
    channels: Sequence[str] | None = None,
    journal: str | PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
    planned: Callable[[Plan], object] | None = None,
) -> Report:
    """Which metric suits these matrices, and does learning help?

    Parameters
    ----------
    X : array-like of shape (n_matrices, d, d), or Matrices
        SPD matrices, or what `spdmetric.io.matrices.read_matrices` returns, labels and groups included.
    y : array-like of shape (n_matrices,), optional
        Labels.
    groups : array-like of shape (n_matrices,), optional
        Sessions or subjects: whole groups are left out, in the folds inside a method too.
    X_test, y_test : array-like, optional
        Test matrices and their labels; without them there is cross-validation.
    methods : str or sequence of str, optional
        Names of `spdmetric.comparison.methods.METHODS`; most of them by default, for many matrices without
        those that compare all pairs.
    repeats : int, optional
        How often the folds are drawn; by default once to five times, by the size of the data.
    seed : int, default=0
        Of the folds.
    scoring : {"accuracy", "balanced", "auc", "logloss"}, default="accuracy"
        Which score decides; all of them are computed.  Methods that choose do so by their own rule.
    class_weight : {None, "balanced"}, default=None
        Given to every method that takes it.
    recenter : bool, optional
        Whether to run every method also on matrices that are seen from the mean of their group, which is
        transductive; by default where there are groups.
    channels : sequence of str, optional
        Names of the d rows of a matrix, for the pictures.
    journal : path-like, optional
        File in which finished folds are kept: given again, an interrupted comparison is continued.
    n_jobs : int, default=1
        Processes.
    progress : callable, optional
        Wraps the iterator of finished tasks: ``progress(iterator, done, total)``.
    planned : callable, optional
        Called with the plan before it is run.

    Returns
    -------
    report : Report
        ``print(report)`` is the answer, ``report.table`` has the numbers, ``report.best_estimator()`` is the
        winner trained on all matrices, ``report.save("report.html")`` writes the page, which notebooks show.
    """
    began = time.perf_counter()
    check_count("repeats", repeats, optional=True)
    check_n_jobs(n_jobs)
    methods = (methods,) if isinstance(methods, str) else methods
    data = _as_matrices(X, y, groups, "these matrices")
    test = None if X_test is None else _as_matrices(X_test, y_test, None, "the test matrices")
    _check_classes(data)
    described = [describe(m.X, m.labels, m.groups) for m in (data, test) if m is not None]
    rank = min(int(d.ranks.min()) for d in described)
    if channels is not None and len(channels) != data.X.shape[1]:
        raise ValueError(f"channels has {len(channels)} names: expected {data.X.shape[1]}, one for each row.")
    plan = make_plan(
        data,
        test,
        rank,
        methods=None if methods is None else tuple(methods),
        repeats=repeats,
        seed=seed,
        scoring=scoring,
        class_weight=class_weight,
        recenter=recenter,
    )
    if planned is not None:
        planned(plan)
    with ExitStack() as stack:
        if journal is None:
            journal = Path(stack.enter_context(TemporaryDirectory())) / "journal"
        comparison = run_plan(plan, Path(journal), jobs=n_jobs, progress=progress)
    facts = _facts(plan, time.perf_counter() - began, n_jobs)
    return Report(data, test, described, comparison, judge(comparison), channels, facts)


def _facts(plan: Plan, seconds: float, n_jobs: int) -> dict[str, str]:
    """All that decides the numbers, and what it took, in words."""
    folds, n_groups = len(plan.splits[0]), 0 if plan.groups is None else len(np.unique(plan.groups))
    return {
        "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Versions": versions(),
        "Time": f"{seconds:.0f} s, parts kept from an earlier run not counted; processes: {n_jobs}",
        "Data digest": digest(plan.X, plan.codes),
        "Score that decides": SCORES[plan.scoring].word,
        "Folds": f"{folds}; repeats: {len(plan.splits)}; seed: {plan.seed}",
        "Methods": ", ".join(plan.methods),
        "Class weight": str(plan.class_weight or "none"),
        "Groups": f"{n_groups}, left out whole" if n_groups else "none",
        "Recentering": "with and without" if plan.variants else "none",
    }


def versions() -> str:
    """Versions of what computed the numbers."""
    names = {"spdmetric": "spdmetric", "NumPy": "numpy", "scikit-learn": "sklearn", "pyRiemann": "pyriemann"}
    there = [f"{name} {import_module(m).__version__}" for name, m in names.items() if find_spec(m)]
    return ", ".join([*there, f"Python {platform.python_version()}"])


def _check_classes(data: Matrices) -> None:
    """Refuse numbers to predict, before anything is computed."""
    y = data.labels
    if is_regression(y, "auto"):
        some = y[y != np.round(y)][0]
        raise ValueError(
            f"compare is for classes, and y holds numbers that are not all whole, such as {some:.4g}: cut "
            "them into classes, or predict them, with LogEuclideanMetric or 'spdmetric fit --regression'."
        )


def _as_matrices(
    X: ArrayLike | Matrices, y: ArrayLike | None, groups: ArrayLike | None, name: str
) -> Matrices:
    if isinstance(X, Matrices):
        return X
    if isinstance(X, (str, PathLike)):
        raise TypeError(
            f"compare takes matrices, and {str(X)!r} is the name of a file: pass read_matrices(...) of "
            "spdmetric.io.matrices, or use 'spdmetric compare'."
        )
    if y is None:
        raise ValueError(f"There are no labels of {name}: pass them as y (y_test).")
    stack, labels = as_numbers(to_numpy(X), "X"), as_numpy(to_numpy(y), "y")
    check_stack(stack, "X")
    if labels.shape != stack.shape[:1]:
        raise ValueError(f"y has shape {labels.shape}: expected one for each of {len(stack)} matrices.")
    return Matrices(stack, check_label_kind(labels, "y"), check_groups(groups, len(stack)), name)
