"""Learn a metric from labeled matrices, and keep it with its nearest neighbors in a file.

Radius and rank are chosen by cross-validation, unless both are given.  With --regression the labels are
numbers to predict, and ridge regression follows the metric, unless --neighbors is given.  Matrices that are
singular in the same directions are brought to their common range first, unless --rank is given.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdmetric.cli.options import add_data, check_target, printable, read, whole

if TYPE_CHECKING:
    import numpy as np
    from sklearn.base import BaseEstimator

    from spdmetric import CommonRange, LogEuclideanMetric, LogEuclideanMetricCV

FEW_VALUES = 10  # whole numbers, no more than that, look like classes


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_data(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL.npz", help="file to write")
    parser.add_argument("--radius", type=float, metavar="R", help="largest distance of G from the mean")
    parser.add_argument("--rank", type=whole(1, "full"), metavar="M", help='directions to learn, or "full"')
    neighbors = "default: 1; with --regression none, but ridge regression"
    parser.add_argument("--neighbors", type=whole(1), metavar="K", help=neighbors)
    parser.add_argument("--regression", action="store_true", help="the labels are numbers to predict")
    parser.add_argument("--folds", type=whole(2), default=5, metavar="N", help="of the choice (default: 5)")


def run(arguments: Namespace) -> None:
    """Read, learn, write the model, and say what was learned."""
    from sklearn.pipeline import make_pipeline
    from tqdm import tqdm

    from spdmetric.io.models import save

    check_target(arguments.out, arguments.data, arguments.labels)
    data = read(arguments.data, arguments.labels, arguments.subject)
    if data.y is None:
        raise ValueError(f"{arguments.data} has no labels to learn from: give them with --labels CSV.")
    _check_target(data.y, arguments)
    metric = _metric_asked(arguments)
    model = make_pipeline(*_range_needed(data.X, arguments), metric, _head(arguments))
    # The bar is for terminals, and for what takes longer than two seconds.
    with tqdm(desc="learning", unit="step", delay=2, leave=False, disable=None) as bar:
        follow = getattr(metric, "set_callbacks", lambda *_: None)  # from scikit-learn 1.9 on
        follow(Bar(bar.update))
        model.fit(data.X, data.y)
        follow()
    save(model, arguments.out)
    n, d, _ = data.X.shape
    read_in = [f"{n} matrices {d} x {d}, {_told(data.y, arguments.regression)}"]
    if len(model) == 3:
        read_in.append(f"brought to their common range, {metric.n_features_in_} of {d} dimensions")
    print(*read_in, _learned(metric), f"written: {arguments.out}", sep="\n")


def _told(y: np.ndarray, regression: bool) -> str:
    if regression:
        return f"numbers from {y.min():.4g} to {y.max():.4g}"
    counts = [f"{printable(name)[:40]} ({count})" for name, count in sorted(Counter(y.tolist()).items())]
    listed = ", ".join(counts if len(counts) <= 8 else [*counts[:7], "..."])
    return f"{len(counts)} classes: {listed}"


def _check_target(y: np.ndarray, arguments: Namespace) -> None:
    """Refuse words as numbers and numbers as classes; warn of numbers that look like classes."""
    import numpy as np

    from spdmetric.caller import warn_at_caller
    from spdmetric.validation import is_regression

    if not arguments.regression and is_regression(y, "auto"):
        raise ValueError(
            f"{arguments.data} has numbers that are not all whole for labels, such as "
            f"{y[y != np.round(y)][0]:.4g}: give --regression to predict numbers; classes are words or whole "
            "numbers."
        )
    if arguments.regression and y.dtype.kind not in "fiu":
        raise ValueError(
            f"--regression needs numbers, and {arguments.data} has words for labels, such as {str(y[0])!r}: "
            "leave it out to learn classes."
        )
    found = np.unique(y)
    if arguments.regression and len(found) <= FEW_VALUES and (found == np.round(found)).all():
        warn_at_caller(
            f"{arguments.data} has {len(found)} different whole numbers for labels, which --regression takes "
            "for numbers to predict: leave it out if they name classes.",
            UserWarning,
        )


def _range_needed(X: np.ndarray, arguments: Namespace) -> list[CommonRange]:
    """The common range, for singular matrices; a metric of low rank does without."""
    from spdmetric import CommonRange
    from spdmetric.validation import check_psd, is_definite

    low = arguments.rank not in (None, "full")
    return [] if low or is_definite(check_psd(X, 1)) else [CommonRange()]


def _head(arguments: Namespace) -> BaseEstimator:
    """What predicts, after the metric."""
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    if not arguments.regression:
        return KNeighborsClassifier(arguments.neighbors or 1)
    return Ridge() if arguments.neighbors is None else KNeighborsRegressor(arguments.neighbors)


def _metric_asked(arguments: Namespace) -> LogEuclideanMetric | LogEuclideanMetricCV:
    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

    rank = None if arguments.rank == "full" else arguments.rank
    if arguments.radius is not None and arguments.rank is not None:
        shape, task = ("discriminant", "regression") if arguments.regression else (None, "classification")
        return LogEuclideanMetric(arguments.radius, rank=rank, shape=shape, task=task)
    neighbors = arguments.neighbors or (None if arguments.regression else 1)
    return LogEuclideanMetricCV(
        radii=None if arguments.radius is None else (arguments.radius,),
        ranks=None if arguments.rank is None else (rank,),
        cv=arguments.folds,
        head="ridge" if neighbors is None else "neighbors",
        n_neighbors=neighbors,
        task="regression" if arguments.regression else "classification",
    )


def _learned(metric: Any) -> str:
    if not hasattr(metric, "best_params_"):
        told = f"alignment {metric.alignment_:.3f}, distance from the mean {metric.radius_:.3g}"
        score = metric.shape_score_
        return told if score is None else f"{told}, R2 {score:.3f} each matrix left out in turn"
    radius, rank = metric.best_params_["radius"], metric.best_params_["rank"]
    told = f"chosen: radius {radius:g}, rank {'full' if rank is None else rank}"
    if metric.classes_ is None:
        return f"{told}; R2 in cross-validation {metric.best_score_:.3f}"
    return (
        f"{told}; accuracy in cross-validation "
        f"{100 * metric.best_score_:.1f} % (optimistic: the best of {len(metric.cv_results_['params'])})"
    )


class Bar:
    """A callback of scikit-learn (>= 1.9) that counts the tasks of a fit: folds, or iterations."""

    def __init__(self, count: Callable[[], object]):
        self.count = count

    def setup(self, estimator: object, context: object) -> None:
        """Do nothing: the bar is there already."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: object, context: object) -> None:
        """Count a task."""
        self.count()
