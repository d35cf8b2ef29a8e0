"""A whole comparison in one call, and its report: text, table, picture, page, and the trained winner."""

from __future__ import annotations

import json
import platform
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from spdmetric import validation
from spdmetric.comparison.folds import fit_keywords
from spdmetric.comparison.methods import METHODS, REGRESSORS, check_names, find_method
from spdmetric.comparison.page import Origin, render
from spdmetric.comparison.pictures import draw_ranking
from spdmetric.comparison.plan import Plan, make_plan
from spdmetric.comparison.run import find_inner_groups, make_method, run_plan
from spdmetric.comparison.scores import SCORES
from spdmetric.comparison.store import digest
from spdmetric.comparison.verdict import Verdict, judge, remarks, sentences
from spdmetric.io.atomic import write_atomically
from spdmetric.io.frames import stack_frame
from spdmetric.io.matrices import Matrices
from spdmetric.io.signals import estimate_covariances
from spdmetric.io.tables import as_csv
from spdmetric.plots.style import need_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mne import Info
    from pandas import DataFrame

Row = dict[str, str | float | bool | None]  # of the table
SCHEMA = 1  # of the .csv and .json files; see docs/guide/compare.md
# Columns of the table, with their types in the table schema of the .json file.
COLUMNS = {
    "schema": "integer",
    **dict.fromkeys(("method", "title", "family"), "string"),
    **{"recentered": "boolean", "score": "string", "decides": "boolean"},
    **dict.fromkeys(("mean", "se", "low", "high", "behind", "behind_se"), "number"),
    **{"tied": "boolean", "seconds": "number"},
}


def compare(
    X: ArrayLike | Matrices,
    y: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    test: tuple[ArrayLike, ArrayLike] | Matrices | None = None,
    methods: str | Sequence[str] | None = None,
    repeats: int | None = None,
    seed: int = 0,
    scoring: str | None = None,
    class_weight: str | None = None,
    recenter: bool | None = None,
    channels: Sequence[str] | None = None,
    store: str | PathLike[str] | None = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> Report:
    """Which metric suits these matrices, and does learning help?

    Parameters
    ----------
    X : array-like of shape (n_matrices, d, d), Matrices, DataFrame, mne.Epochs or signals
        SPD matrices, or what `spdmetric.io.matrices.read_matrices` returns, labels and groups included.  Or a
        frame that `spdmetric.stack_frame` takes.  Or MNE Epochs, or signals of shape (n, channels, times):
        their covariances are estimated by "oas"; for other estimators, pass the covariances.  Of several
        matrices a sample, (n_samples, views, d, d), metrics of this package take all, others the first.
    y : array-like of shape (n_matrices,), optional
        Labels, or regression targets; of Epochs by default the names of the events.
    groups : array-like of shape (n_matrices,), optional
        Sessions or subjects: whole groups are left out, in the folds inside a method too.
    test : tuple (X_test, y_test), or Matrices, optional
        Test matrices and their labels; without them there is cross-validation.
    methods : str or sequence of str, optional
        Names of `spdmetric.comparison.methods.METHODS`, or of ``REGRESSORS`` there; most of them by
        default, for many matrices without those that compare all pairs.
    repeats : int, optional
        How often the folds are drawn; by default once to five times, by the size of the data.
    seed : int, default=0
        Of the folds.
    scoring : {"accuracy", "balanced", "auc", "logloss", "r2", "mae"}, optional
        Which score decides; all of them are computed.  "r2" and "mae" are for regression; by default
        accuracy, or R² where y has numbers that are not all whole.  Methods that choose do so by their own
        rule.
    class_weight : {None, "balanced"}, default=None
        Given to every method that takes it.
    recenter : bool, optional
        Whether to run every method also on matrices that are recentered by the mean of their group, which is
        transductive; by default where there are groups.
    channels : sequence of str, optional
        Names of the d rows of a matrix, for the pictures; Epochs and frames have them.
    store : path-like, optional
        File in which finished results are kept: with the same file, an interrupted comparison resumes.
    n_jobs : int, default=1
        Processes.
    verbose : bool, default=False
        Whether to show a progress bar in a terminal.

    Returns
    -------
    report : Report
        ``print(report)`` is the answer, ``report.table`` has the numbers, ``report.best_estimator()`` is the
        winner trained on all matrices, ``report.save("report.html")`` writes the page, which notebooks show.
    """
    began = time.perf_counter()
    validation.check_value("repeats", repeats, validation.optional(validation.COUNT))
    validation.check_value("n_jobs", n_jobs, validation.N_JOBS)
    data = _check_matrices(X, y, groups, "these matrices")
    channels = data.channels if channels is None else channels
    if test is not None and not isinstance(test, Matrices):
        test = _check_matrices(*test, None, "the test matrices")
    if channels is not None and len(channels) != data.X.shape[-1]:
        raise ValueError(f"channels has {len(channels)} names: expected {data.X.shape[-1]}, one a row.")
    wanted = None if methods is None else (methods,) if isinstance(methods, str) else tuple(methods)
    plan = make_plan(data, test, wanted, repeats, seed, scoring, class_weight, recenter)
    found = run_plan(plan, store, jobs=n_jobs, progress="compare" if verbose else None)
    facts = _list_facts(plan, time.perf_counter() - began, n_jobs)
    epochs: Any = X if hasattr(X, "get_data") else None
    info = None if epochs is None else epochs.copy().pick("data").info
    places = None if info is None or info.get_montage() is None else info
    return Report(data, test, judge(plan, *found), channels, facts, places)


def _check_matrices(X: Any, y: ArrayLike | None, groups: ArrayLike | None, name: str) -> Matrices:
    """Matrices with labels; names of channels where X has them."""
    if isinstance(X, Matrices):
        return X
    if isinstance(X, (str, PathLike)):
        todo = "pass read_matrices(...) of spdmetric.io.matrices, or use 'spdmetric compare'"
        raise TypeError(f"compare takes matrices, and {str(X)!r} is the name of a file: {todo}.")
    channels: Sequence[str] | None = None
    notes: tuple[str, ...] = ()
    if hasattr(X, "columns"):
        X, _, channels = stack_frame(X)
    elif hasattr(X, "get_data") or (np.ndim(X) == 3 and np.shape(X)[1] != np.shape(X)[2]):
        found = estimate_covariances(X)
        X, channels, y = found.X, found.channels, found.y if y is None else y
        notes = (*found.notes, "The matrices are covariances of the signals, estimated by OAS.")
    if y is None:
        raise ValueError(f"There are no labels of {name}: pass them as y, or in test=(X_test, y_test).")
    stack, labels = validation.as_numbers(X, "X"), validation.as_numpy(y, "y")
    validation.check_stack(stack, "X", views=True)
    if labels.shape != stack.shape[:1]:
        raise ValueError(f"y has shape {labels.shape}: expected one for each of {len(stack)} matrices.")
    kept = validation.check_label_kind(labels, "y"), validation.check_groups(groups, len(stack))
    return Matrices(stack, *kept, name, notes, channels=None if channels is None else tuple(channels))


def _list_facts(plan: Plan, seconds: float, n_jobs: int) -> dict[str, str]:
    """All that decides the numbers, and what it took, in words."""
    modules = ("spdmetric", "numpy", "sklearn", "pyriemann")
    versions = [f"{name} {import_module(name).__version__}" for name in modules if find_spec(name)]
    return {
        "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Versions": ", ".join([*versions, f"Python {platform.python_version()}"]),
        "Time": f"{seconds:.0f} s, parts kept from an earlier run not counted; processes: {n_jobs}",
        "Data digest": digest(plan.X, plan.codes),
        "Score that decides": SCORES[plan.scoring].word,
        "Errors": plan.design.rule,
        "Folds": f"{len(plan.splits[0])}; repeats: {len(plan.splits)}; seed: {plan.seed}",
        "Methods": ", ".join(plan.methods),
        "Class weight": str(plan.class_weight or "none"),
    }


@dataclass(frozen=True)
class Report:
    """A finished comparison; as text, its answer."""

    data: Matrices
    test: Matrices | None
    verdict: Verdict
    channels: Sequence[str] | None = None
    facts: dict[str, str] = field(default_factory=dict)  # date, version, settings: in words
    places: Info | None = None  # of the channels, where the recording has its own
    _fitted: dict[str, BaseEstimator] = field(default_factory=dict, init=False, repr=False)

    def __str__(self) -> str:
        return "\n".join([*sentences(self.verdict), *filter(None, remarks(self.verdict).values())])

    def __repr__(self) -> str:
        return f"<Report on {self.data.name}: {len(self.verdict.scores)} results; print() it for the answer>"

    @property
    def rows(self) -> list[Row]:
        """The numbers, tidy: a row for each method and score; None where there is none."""
        verdict, rows, none = self.verdict, list[Row](), (None,) * 4
        for entry, scores in verdict.scores.items():
            family, seconds = find_method(entry.method).family, verdict.outcomes[entry]["seconds"]
            tied = entry in (verdict.best, *verdict.tied)
            for key in verdict.plan.scores:
                decides = key == verdict.plan.scoring
                behind = verdict.behind.get(entry, none) if decides else none
                facts = (SCHEMA, entry.method, entry.title, family, entry.recentered, key, decides)
                numbers = (*scores.get(key, none)[:4], *behind[:2])
                rows.append(dict(zip(COLUMNS, (*facts, *numbers, tied, seconds), strict=True)))
        return rows

    @property
    def table(self) -> DataFrame | list[Row]:
        """`rows` as a DataFrame, or as they are where pandas is not installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            return self.rows
        return DataFrame(self.rows, columns=list(COLUMNS))

    def best_estimator(self, method: str | None = None) -> BaseEstimator:
        """Train the winner on all the training matrices.

        Parameters
        ----------
        method : str, optional
            Another method of `spdmetric.comparison.methods.METHODS`; by default the one with the highest
            score of those that need no recentering.

        Returns
        -------
        estimator : classifier
            Fitted, the same at each call.
        """
        method = method or self.verdict.unaided[0]
        plan = self.verdict.plan
        check_names([method], REGRESSORS if plan.classes is None else METHODS)
        if method in self._fitted:
            return self._fitted[method]
        estimator = make_method(plan, method)
        X, y = plan.X[plan.trained], plan.codes[plan.trained]
        y = y if plan.classes is None else plan.classes[y]
        groups = fit_keywords(estimator, groups=find_inner_groups(plan, plan.trained))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the folds report theirs
            try:
                self._fitted[method] = estimator.fit(X, y, **groups)
            except validation.UninformativeDataError as error:  # in folds, chance differs
                title, n = find_method(method).title, len(X)
                raise ValueError(
                    f"{title} was trained in every fold, and cannot be trained on all {n} matrices: together "
                    "they do not tell the classes apart. See whether the labels belong to the matrices."
                ) from error
        return self._fitted[method]

    def plot(self) -> Axes:
        """Draw the score that decides, of every method, with its 95 % interval, in a figure of pyplot."""
        need_matplotlib()
        import matplotlib.pyplot as plt

        return draw_ranking(self.verdict, plt.figure()).axes[0]

    def save(self, path: str | PathLike[str], origin: Origin | None = None) -> None:
        """Write the page.

        Parameters
        ----------
        path : path-like
            An HTML file, which needs no other and no network.
        origin : Origin, optional
            Where the matrices were read from, for the code to copy.
        """
        write_atomically(path, render(self, origin or Origin()).encode(errors="replace"))

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        frame = '<iframe title="spdmetric.compare" srcdoc="{}" style="width:100%;height:40rem"></iframe>'
        return frame.format(escape(render(self, Origin())))

    def as_csv(self) -> str:
        """`rows` as CSV; missing numbers are empty."""
        return as_csv([COLUMNS, *(row.values() for row in self.rows)])

    def as_json(self) -> str:
        """`rows` as JSON with a table schema, and beside them the answer and the facts."""
        fields = [{"name": name, "type": kind} for name, kind in COLUMNS.items()]
        schema = {"fields": fields, "pandas_version": "1.4.0"}
        answer = {"format": f"spdmetric.compare {SCHEMA}", "answer": sentences(self.verdict)}
        numbers = {"facts": self.facts, "schema": schema, "data": self.rows}
        return json.dumps({**answer, **numbers}, indent=1) + "\n"
