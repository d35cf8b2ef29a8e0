"""The command predict: read model and data, write the labels."""

from __future__ import annotations

import sys
from argparse import Namespace
from io import TextIOWrapper

import numpy as np
from sklearn.base import BaseEstimator, is_regressor
from sklearn.metrics import mean_absolute_error, r2_score

from spdmetric.cli.fit import count_values
from spdmetric.cli.inputs import Input, describe_input, read_input
from spdmetric.cli.terminal import show_progress, tell
from spdmetric.comparison.folds import steps_of
from spdmetric.io.atomic import write_atomically
from spdmetric.io.files import describe_error, list_some
from spdmetric.io.models import input_of, read_content
from spdmetric.io.tables import as_csv

NEW = "new"  # name of the domain of matrices that come without one


def run(arguments: Namespace) -> None:
    """Read model and matrices, and write the labels."""
    stdout = arguments.out is None
    if stdout and sys.__stdout__ is None:
        raise ValueError("there is no terminal or pipe to write to: name a file with --out LABELS.csv.")
    content = read_content(arguments.model)
    model = content["model"]
    numbers = is_regressor(model)
    if not hasattr(model, "predict"):
        raise ValueError(f"{arguments.model} holds a metric without a classifier: use 'spdmetric fit'.")
    if arguments.proba and not hasattr(model, "predict_proba"):
        raise ValueError(f"{arguments.model} holds a model without probabilities: leave out --proba.")
    with show_progress("labeling") as count:
        data = read_input(arguments.data, arguments.labels, arguments, content)
        count()
        try:
            predicted, proba, lines = _answer(model, data, arguments)
        except (AttributeError, KeyError, IndexError) as error:  # of a forged model
            why = f"its parts do not belong together ({describe_error(error)})"
            raise ValueError(f"{arguments.model} cannot be used: {why}.") from error
    text = table_of(data, predicted, proba, getattr(model, "classes_", None), "value" if numbers else "label")
    true, stream = data.matrices.y, sys.stderr if stdout else sys.stdout
    lines = [*describe_input(data), *lines]
    if true is not None:
        lines.append(r_squared(predicted, true) if numbers else accuracy(model.classes_, predicted, true))
    if stdout:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as in a file, whatever the terminal has
        tell(text.removesuffix("\n"))
    else:
        write_atomically(arguments.out, text)
        lines.append(f"written: {arguments.out}, {len(predicted)} {'numbers' if numbers else 'labels'}")
    tell(*lines, stream=stream)


def _answer(
    model: BaseEstimator, data: Input, arguments: Namespace
) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Labels or numbers, probabilities if they are wanted, and lines about how they came about."""
    d, known = data.X.shape[1 if data.recipe else -1], input_of(model)[1]
    if known not in (None, d):
        form = "{0} channels" if data.recipe else "matrices {0} x {0}"
        got, trained = form.format(d), form.format(known)
        raise ValueError(f"{arguments.data} has {got}; the model was trained on {trained}.")
    domains, lines = _find_domains(model, data, arguments)
    columns = {} if domains is None else {"sample_domain": domains}
    proba = model.predict_proba(data.X, **columns) if arguments.proba else None
    return model.predict(data.X, **columns), proba, lines


def _find_domains(
    model: BaseEstimator, data: Input, arguments: Namespace
) -> tuple[np.ndarray | None, list[str]]:
    """Domains for a model that was learned on some, and a line about those that are new."""
    domains = data.domains
    known = getattr(getattr(steps_of(model)[-1], "metric_", None), "domains_", None)
    if known is None:
        if domains is not None:
            raise ValueError(f"{arguments.model} was learned without domains: leave out --domains.")
        return None, []
    if domains is None:
        domains = np.full(len(data.X), NEW if known.dtype.kind == "U" else int(known.max()) + 1)
    elif known.dtype.kind == "U":
        domains = domains.astype(str)
    unseen = domains[~np.isin(domains, known)]
    which = f"all {len(domains)} matrices" if data.domains is None else count_values(unseen)
    line = f"new domain, recentered by its own mean (transductive: labels depend on each other): {which}"
    return domains, [line] if len(unseen) else []


def table_of(
    data: Input, predicted: np.ndarray, proba: np.ndarray | None, classes: np.ndarray | None, name: str
) -> str:
    """The table that is written; what was left out has empty cells."""
    columns = {name: predicted.tolist()}
    if data.matrices.y is not None:
        columns["true"] = data.matrices.y.tolist()
    if proba is not None and classes is not None:
        names = [f"p({label})" for label in classes.tolist()]
        columns |= zip(names, ([f"{p:.6g}" for p in column] for column in proba.T.tolist()), strict=True)
    cells = dict(zip(data.kept.tolist(), zip(*columns.values(), strict=True), strict=True))
    rows = enumerate(zip(*data.rows.values(), strict=True))
    body = [(*place, *cells.get(k, [""] * len(columns))) for k, place in rows]
    return as_csv([[*data.rows, *columns], *body])


def r_squared(predicted: np.ndarray, true: np.ndarray) -> str:
    """Say how much of the variance is predicted."""
    if true.dtype.kind not in "fiu":
        return "R2: the labels of the data are words, and the model predicts numbers"
    error = mean_absolute_error(true, predicted)
    return f"R2: {r2_score(true, predicted):.3f}, mean absolute error {error:.4g}"


def accuracy(classes: np.ndarray, predicted: np.ndarray, true: np.ndarray) -> str:
    """Say how many labels are right; where some are words, a number and its text are one label."""
    if any(labels.dtype.kind not in "biuf" for labels in (predicted, true)):
        classes, predicted, true = (labels.astype(str) for labels in (classes, predicted, true))
    if not set(true.tolist()) & set(classes.tolist()):
        known = list_some(classes.tolist())
        return f"accuracy: none of the labels of the data is one of the model's ({known})"
    right = int((predicted == true).sum())
    text = f"accuracy: {100 * right / len(true):.2f} % ({right} of {len(true)})"
    names, counts = np.unique(true, return_counts=True)
    if counts.max() <= 2 * counts.min():
        return text
    balanced = np.mean([np.mean(predicted[true == name] == name) for name in names])
    return f"{text}, balanced {100 * balanced:.2f} %"
