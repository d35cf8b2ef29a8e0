"""The commands that train on a file and label another: ``toy``, ``fit``, ``predict``."""

from __future__ import annotations

import argparse
import csv
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

DATA = """\
DATA is an .npz or .mat file with the arrays X (n, d, d) and y, or covs and labels; or an .npy file of
matrices, with --labels a .csv file (or the name of an array) that has one label for each.
"""


def add_commands(commands: Any) -> None:
    """Add the commands of this module to the command line."""
    _add_toy(commands)
    _add_fit(commands)
    _add_predict(commands)


def _command(commands: Any, name: str, run: Callable[..., None], help: str, text: str) -> Any:
    parser = commands.add_parser(
        name, help=help, description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.set_defaults(run=run, resumes=False)
    return parser


def _data_options(parser: Any) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help="see above")
    parser.add_argument("--labels", metavar="CSV", help="a .csv file with the labels, or an array of DATA")
    parser.add_argument("--subject", type=int, metavar="S", help="subject of a file that holds several")


# ---------------------------------------------------------------------------
# toy


def _add_toy(commands: Any) -> None:
    text = "Write the toy set of the paper: toy-train.npz, 50 matrices 8 x 8, and toy-new.npz, 500 more."
    parser = _command(commands, "toy", _toy, "write a small data set to try the commands on", text)
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="default: here")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")


def _toy(arguments: argparse.Namespace) -> None:
    from spdmetric.datasets import make_toy
    from spdmetric.io.atomic import write_atomically

    arguments.out.mkdir(parents=True, exist_ok=True)
    X, y, X_new, y_new = make_toy(random_state=arguments.seed)
    for name, content in (("toy-train", (X, y)), ("toy-new", (X_new, y_new))):
        buffer = io.BytesIO()
        np.savez(buffer, X=content[0], y=np.where(content[1] == 1, "plus", "minus"))
        write_atomically(arguments.out / f"{name}.npz", buffer.getvalue())
        print(f"written: {arguments.out / name}.npz, {len(content[0])} matrices")


# ---------------------------------------------------------------------------
# fit


def _add_fit(commands: Any) -> None:
    text = (
        f"Learn a metric from labeled matrices, and keep it with its nearest neighbors in a file.\n\n{DATA}"
        "Radius and rank are chosen by cross-validation, unless both are given."
    )
    parser = _command(commands, "fit", _fit, "train on a file of matrices", text)
    _data_options(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL.npz", help="file to write")
    parser.add_argument("--radius", type=float, metavar="R", help="largest distance of G from the mean")
    parser.add_argument("--rank", type=_rank, metavar="M", help='directions to learn, or "full"')
    parser.add_argument("--neighbors", type=int, default=1, metavar="K", help="default: 1")
    parser.add_argument("--folds", type=int, default=5, metavar="N", help="of cross-validation, default: 5")


def _rank(text: str) -> int | str:
    if text != "full" and not (text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f'expected a whole number >= 1, or "full", got {text!r}')
    return text if text == "full" else int(text)


def _fit(arguments: argparse.Namespace) -> None:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    from spdmetric.io.matrices import read_matrices
    from spdmetric.io.models import save

    _check_target(arguments.out)
    data = read_matrices(arguments.data, arguments.labels, subject=arguments.subject)
    if data.y is None:
        raise ValueError(f"{arguments.data} has no labels to learn from: give them with --labels CSV.")
    metric = _metric_asked(arguments)
    model = make_pipeline(metric, KNeighborsClassifier(arguments.neighbors))
    with _progress(metric, data.X.shape[1]):
        model.fit(data.X, data.y)
    save(model, arguments.out)
    n, d, _ = data.X.shape
    print(f"{n} matrices {d} x {d}, {len(metric.classes_)} classes: {_counts(data.y)}")
    print(_learned(metric))
    print(f"written: {arguments.out}")


def _metric_asked(arguments: argparse.Namespace) -> Any:
    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

    rank = None if arguments.rank == "full" else arguments.rank
    if arguments.radius is not None and arguments.rank is not None:
        return LogEuclideanMetric(arguments.radius, rank=rank)
    candidates: dict[str, Any] = {}
    if arguments.radius is not None:
        candidates["radii"] = (arguments.radius,)
    if arguments.rank is not None:
        candidates["ranks"] = (rank,)
    return LogEuclideanMetricCV(cv=arguments.folds, n_neighbors=arguments.neighbors, **candidates)


def _counts(y: np.ndarray) -> str:
    names, counts = np.unique(y, return_counts=True)
    text = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return ", ".join(text if len(text) <= 8 else [*text[:7], "..."])


def _learned(metric: Any) -> str:
    if not hasattr(metric, "best_params_"):
        return f"alignment {metric.alignment_:.3f}, distance from the mean {metric.radius_:.3g}"
    radius, rank = metric.best_params_["radius"], metric.best_params_["rank"]
    return (
        f"chosen: radius {radius:g}, rank {'full' if rank is None else rank}; accuracy in "
        f"cross-validation {100 * metric.best_score_:.1f} % (the best of {len(metric.cv_results_['params'])} "
        "candidates: a little kind)"
    )


@contextmanager
def _progress(metric: Any, d: int) -> Iterator[None]:
    """Show a bar when learning takes longer than two seconds, in a terminal only."""
    from tqdm import tqdm

    folds = hasattr(metric, "radii")
    total = metric.cv * len(metric._grid(d)) + 1 if folds else None
    unit = "sweep" if folds else "step"
    with tqdm(total=total, desc="learning", unit=unit, delay=2, leave=False, disable=None) as bar:
        name = "_path" if folds else "callback"
        learn = metric._path if folds else lambda record: None

        def counted(*arguments: Any) -> Any:
            bar.update()
            return learn(*arguments)

        vars(metric)[name] = counted
        try:
            yield
        finally:
            if folds:
                del vars(metric)["_path"]  # the method is seen again
            else:
                metric.callback = None


# ---------------------------------------------------------------------------
# predict


def _add_predict(commands: Any) -> None:
    text = (
        "Label matrices with a model that 'spdmetric fit' wrote: a .csv file with the columns index and\n"
        f"label, and true where DATA tells the labels.\n\n{DATA}"
    )
    parser = _command(commands, "predict", _predict, "label matrices with a model", text)
    parser.add_argument("model", type=Path, metavar="MODEL.npz", help="written by spdmetric fit")
    _data_options(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="LABELS.csv", help="file to write")


def _predict(arguments: argparse.Namespace) -> None:
    from spdmetric.io.atomic import write_atomically
    from spdmetric.io.matrices import read_matrices
    from spdmetric.io.models import load

    _check_target(arguments.out)
    model = load(arguments.model)
    if not hasattr(model, "predict"):
        raise ValueError(
            f"{arguments.model} holds a metric without a classifier, which cannot label: use "
            "'spdmetric fit', or save a pipeline of the metric and a KNeighborsClassifier."
        )
    data = read_matrices(arguments.data, arguments.labels, subject=arguments.subject)
    predicted = _labels_of(model, data.X, str(arguments.data))
    write_atomically(arguments.out, _as_csv(predicted, data.y))
    if data.y is not None:
        print(_accuracy(model.classes_, predicted, data.y))
    print(f"written: {arguments.out}, {len(predicted)} labels")


def _labels_of(model: Any, X: np.ndarray, name: str) -> np.ndarray:
    d = model[0].n_features_in_
    if X.shape[1] != d:
        raise ValueError(
            f"{name} has matrices {X.shape[1]} x {X.shape[1]}; the model was trained on {d} x {d}."
        )
    return model.predict(X)


def _as_csv(predicted: np.ndarray, true: np.ndarray | None) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["index", "label"] if true is None else ["index", "label", "true"])
    columns = [predicted] if true is None else [predicted, true]
    writer.writerows([i, *row] for i, row in enumerate(zip(*columns, strict=True)))
    return text.getvalue()


def _accuracy(classes: np.ndarray, predicted: np.ndarray, true: np.ndarray) -> str:
    numbers = all(labels.dtype.kind in "biuf" for labels in (predicted, true))
    if not numbers:  # a number and its text are one label
        classes, predicted, true = (labels.astype(str) for labels in (classes, predicted, true))
    if not np.isin(true, classes).any():
        known = ", ".join(map(str, classes[:8]))
        return f"accuracy: none of the labels of the data is one of the model's ({known})"
    right = int(np.sum(predicted == true))
    return f"accuracy: {100 * right / len(true):.2f} % ({right} of {len(true)})"


def _check_target(path: Path) -> None:
    """Fail before the work, not after."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        why = "it is a folder" if path.is_dir() else f"{folder} is not a folder that can be written to"
        raise ValueError(f"-o {path}: {why}.")
