"""A whole comparison in one call: describe the matrices, plan, run, judge."""

from __future__ import annotations

from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.comparison.describe import describe
from spdmetric.comparison.page import Report
from spdmetric.comparison.plan import make_plan
from spdmetric.comparison.run import run_plan
from spdmetric.comparison.verdict import judge
from spdmetric.evaluation.journal import Progress
from spdmetric.io.matrices import Matrices
from spdmetric.validation import is_regression


def compare(
    X: ArrayLike | Matrices,
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    X_test: ArrayLike | Matrices | None = None,
    y_test: ArrayLike | None = None,
    methods: tuple[str, ...] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    journal: str | PathLike[str] | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Which metric suits these matrices, and does learning help?

    Parameters
    ----------
    X : array-like of shape (n_matrices, d, d), or Matrices
        SPD matrices, or what `spdmetric.io.matrices.read_matrices` returns, labels and groups included.
    y : array-like of shape (n_matrices,), optional
        Labels.
    groups : array-like of shape (n_matrices,), optional
        Sessions or subjects: whole groups are left out.
    X_test, y_test : array-like, optional
        Test matrices and their labels; without them there is cross-validation.
    methods : tuple of str, optional
        Names of `spdmetric.evaluation.methods.METHODS`; most of them by default.
    repeats : int, optional
        How often the folds are drawn; by default once to five times, by the size of the data.
    seed : int, default=0
        Of the folds.
    journal : path-like, optional
        File in which finished folds are kept: given again, an interrupted comparison is continued.
    n_jobs : int, default=1
        Processes.
    progress : callable, optional
        Wraps the iterator of finished tasks: ``progress(iterator, done, total)``.

    Returns
    -------
    report : Report
        ``print(report)`` is the answer, ``report.save("report.html")`` the page.
    """
    data = _as_matrices(X, y, groups, "these matrices")
    test = None if X_test is None else _as_matrices(X_test, y_test, None, "the test matrices")
    _check_classes(data)
    described = [describe(m.X, m.labels, m.groups) for m in (data, test) if m is not None]
    rank = min(int(d.ranks.min()) for d in described)
    plan = make_plan(data, test, rank, methods=methods, repeats=repeats, seed=seed)
    with ExitStack() as stack:
        if journal is None:
            journal = Path(stack.enter_context(TemporaryDirectory())) / "journal"
        comparison = run_plan(plan, Path(journal), jobs=n_jobs, progress=progress)
    return Report(data, test, described, comparison, judge(comparison))


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
    labels, parts = (None if column is None else np.asarray(column) for column in (y, groups))
    return Matrices(np.asarray(X), labels, parts, name)
