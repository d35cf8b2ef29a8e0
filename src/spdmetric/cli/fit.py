"""Learn a metric and a classifier from labeled matrices, and keep both in a file.

Radius, rank and shape of the metric, and what labels its vectors, are chosen by cross-validation as far as
they are not given.  With --regression the labels are numbers to predict, and ridge regression follows the
metric, unless --neighbors is given.  Matrices that are singular in the same directions are brought to their
common range first, unless --rank is given.
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

    from spdmetric import CommonRange, LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV

FEW_VALUES = 10  # whole numbers, no more than that, look like classes


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_data(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL.npz", help="file to write")
    parser.add_argument("--radius", type=float, metavar="R", help="largest distance of G from the mean")
    parser.add_argument("--rank", type=whole(1, "full"), metavar="M", help='directions to learn, or "full"')
    neighbors = "label by K neighbors; default: chosen, with --regression ridge regression"
    parser.add_argument("--neighbors", type=whole(1), metavar="K", help=neighbors)
    parser.add_argument("--regression", action="store_true", help="the labels are numbers to predict")
    folds = "of the choice; default: 5, twice for fewer than 200 matrices"
    parser.add_argument("--folds", type=whole(2), metavar="N", help=folds)


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
    learning = _numbers_asked(arguments) if arguments.regression else [_classifier_asked(arguments)]
    before = _range_needed(data.X, arguments)
    model = make_pipeline(*before, *learning)
    # The bar is for terminals, and for what takes longer than two seconds.
    with tqdm(desc="learning", unit="step", delay=2, leave=False, disable=None) as bar:
        follow = getattr(learning[0], "set_callbacks", lambda *_: None)  # from scikit-learn 1.9 on
        follow(Bar(bar.update))
        model.fit(data.X, data.y)
        follow()
    save(model if len(model) > 1 else model[0], arguments.out)
    n, d, _ = data.X.shape
    read_in = [f"{n} matrices {d} x {d}, {_told(data.y, arguments.regression)}"]
    if before:
        read_in.append(f"brought to their common range, {learning[0].n_features_in_} of {d} dimensions")
    print(*read_in, _learned(learning[0]), f"written: {arguments.out}", sep="\n")


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


def _classifier_asked(arguments: Namespace) -> LogEuclideanClassifier:
    from spdmetric import LogEuclideanClassifier

    return LogEuclideanClassifier(
        **_candidates(arguments),
        cv=arguments.folds,
        head="auto" if arguments.neighbors is None else "neighbors",
        n_neighbors=arguments.neighbors,
    )


def _candidates(arguments: Namespace) -> dict[str, Any]:
    """Radius and rank as the only candidates, as far as they are given."""
    rank = None if arguments.rank == "full" else arguments.rank
    found = {"radii": (arguments.radius,)} if arguments.radius is not None else {}
    return found | ({"ranks": (rank,)} if arguments.rank is not None else {})


def _numbers_asked(arguments: Namespace) -> list[BaseEstimator]:
    """A metric for numbers, and what predicts them."""
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor

    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

    ridge = arguments.neighbors is None
    head = Ridge() if ridge else KNeighborsRegressor(arguments.neighbors)
    metric: LogEuclideanMetric | LogEuclideanMetricCV
    if arguments.radius is not None and arguments.rank is not None:
        rank = None if arguments.rank == "full" else arguments.rank
        metric = LogEuclideanMetric(arguments.radius, rank=rank, shape="discriminant", task="regression")
    else:
        metric = LogEuclideanMetricCV(
            **_candidates(arguments),
            cv=arguments.folds,
            head="ridge" if ridge else "neighbors",
            n_neighbors=arguments.neighbors,
            task="regression",
        )
    return [metric, head]


def _learned(model: Any) -> str:
    """What was learned, in a line."""
    metric = getattr(model, "metric_", model)
    if not hasattr(metric, "best_params_"):
        told = f"alignment {metric.alignment_:.3f}, distance from the mean {metric.radius_:.3g}"
        return f"{told}, R2 {metric.shape_score_:.3f} each matrix left out in turn"
    best = metric.best_params_
    shape = "no shape" if best["shape"] is None else f"{best['shape']} shape"
    told = (
        f"chosen: radius {best['radius']:g}, rank {'full' if best['rank'] is None else best['rank']}, {shape}"
    )
    if metric.classes_ is None:
        return f"{told}; R2 in cross-validation {metric.best_score_:.3f}"
    head = "nearest class mean" if metric.n_neighbors_ is None else f"{metric.n_neighbors_} nearest neighbors"
    right = 100 * metric.cv_results_["mean_test_accuracy"][metric.best_index_]
    return f"{told}, {head}; {right:.1f} % right in cross-validation (optimistic: it was chosen by it)"


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
