"""Label matrices, or predict their numbers, with a model that 'spdmetric fit' wrote.

What is written is a .csv file with the columns index and label (value, after fit --regression), and true
where DATA tells the labels.  A label that a spreadsheet would run (it begins with = + - or @) has an
apostrophe before it, which spdmetric takes off again when it reads labels.
"""

from __future__ import annotations

import csv
import io
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spdmetric.cli.options import add_data, check_target, read

if TYPE_CHECKING:
    import numpy as np


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("model", type=Path, metavar="MODEL.npz", help="written by spdmetric fit")
    add_data(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="LABELS.csv", help="file to write")


def run(arguments: Namespace) -> None:
    """Read model and matrices, and write the labels."""
    from sklearn.base import is_regressor

    from spdmetric.io.atomic import write_atomically
    from spdmetric.io.models import load

    check_target(arguments.out, arguments.model, arguments.data, arguments.labels)
    model = load(arguments.model)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{arguments.model} holds a metric without a classifier, which cannot label: use "
            "'spdmetric fit', or save a LogEuclideanClassifier."
        )
    data = read(arguments.data, arguments.labels, arguments.subject)
    d, known = data.X.shape[1], model.n_features_in_
    if d != known:
        sizes = f"{d} x {d}; the model was trained on {known} x {known}"
        raise ValueError(f"{arguments.data} has matrices {sizes}.")
    predicted = model.predict(data.X)
    numbers = is_regressor(model)
    write_atomically(arguments.out, _as_csv(predicted, data.y, "value" if numbers else "label"))
    if data.y is not None:
        print(r_squared(predicted, data.y) if numbers else accuracy(model.classes_, predicted, data.y))
    print(f"written: {arguments.out}, {len(predicted)} {'numbers' if numbers else 'labels'}")


def r_squared(predicted: np.ndarray, true: np.ndarray) -> str:
    """Say how much of the variance is predicted."""
    from sklearn.metrics import mean_absolute_error, r2_score

    if true.dtype.kind not in "fiu":
        return "R2: the labels of the data are words, and the model predicts numbers"
    error = mean_absolute_error(true, predicted)
    return f"R2: {r2_score(true, predicted):.3f}, mean absolute error {error:.4g}"


def _as_csv(predicted: np.ndarray, true: np.ndarray | None, name: str) -> str:
    from spdmetric.io.matrices import guarded

    columns: list[Sequence[object]] = [range(len(predicted))]
    for labels in (predicted, true):
        if labels is not None:
            columns.append([guarded(v) if isinstance(v, str) else v for v in labels.tolist()])
    text = io.StringIO()
    rows = [("index", name, "true")[: len(columns)], *zip(*columns, strict=True)]
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def accuracy(classes: np.ndarray, predicted: np.ndarray, true: np.ndarray) -> str:
    """Say how many labels are right; where some are words, a number and its text are one label."""
    if any(labels.dtype.kind not in "biuf" for labels in (predicted, true)):
        classes, predicted, true = (labels.astype(str) for labels in (classes, predicted, true))
    if not set(true.tolist()) & set(classes.tolist()):
        known = ", ".join(map(str, classes[:8]))
        return f"accuracy: none of the labels of the data is one of the model's ({known})"
    right = int((predicted == true).sum())
    return f"accuracy: {100 * right / len(true):.2f} % ({right} of {len(true)})"
