"""``spdmetric fit``: learn a metric from a file, and keep it with its nearest neighbors."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdmetric.cli.options import DATA, Command, add_data, check_target, read, whole

if TYPE_CHECKING:
    import numpy as np

    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

DESCRIPTION = f"""\
Learn a metric from labeled matrices, and keep it with its nearest neighbors in a file.

{DATA}Radius and rank are chosen by cross-validation, unless both are given."""


def _add_options(parser: ArgumentParser) -> None:
    add_data(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL.npz", help="file to write")
    parser.add_argument("--radius", type=float, metavar="R", help="largest distance of G from the mean")
    parser.add_argument("--rank", type=_rank, metavar="M", help='directions to learn, or "full"')
    parser.add_argument("--neighbors", type=whole(1), default=1, metavar="K", help="default: 1")
    parser.add_argument(
        "--folds", type=whole(2), default=5, metavar="N", help="of cross-validation, default: 5"
    )


def _rank(text: str) -> int | str:
    if text == "full":
        return text
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f'expected a whole number >= 1, or "full", got {text!r}')


def _run(arguments: Namespace) -> None:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    from spdmetric.io.models import save

    check_target(arguments.out)
    data = read(arguments.data, arguments.labels, arguments.subject)
    if data.y is None:
        raise ValueError(f"{arguments.data} has no labels to learn from: give them with --labels CSV.")
    metric = _metric_asked(arguments)
    model = make_pipeline(metric, KNeighborsClassifier(arguments.neighbors))
    with followed(metric):
        model.fit(data.X, data.y)
    save(model, arguments.out)
    n, d, _ = data.X.shape
    print(f"{n} matrices {d} x {d}, {len(metric.classes_)} classes: {_counts(data.y)}")
    print(_learned(metric))
    print(f"written: {arguments.out}")


def _metric_asked(arguments: Namespace) -> LogEuclideanMetric | LogEuclideanMetricCV:
    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

    rank = None if arguments.rank == "full" else arguments.rank
    if arguments.radius is not None and arguments.rank is not None:
        return LogEuclideanMetric(arguments.radius, rank=rank)
    return LogEuclideanMetricCV(
        radii=None if arguments.radius is None else (arguments.radius,),
        ranks=None if arguments.rank is None else (rank,),
        cv=arguments.folds,
        n_neighbors=arguments.neighbors,
    )


def _counts(y: np.ndarray) -> str:
    import numpy as np

    names, counts = np.unique(y, return_counts=True)
    text = [f"{name} ({count})" for name, count in zip(names, counts, strict=True)]
    return ", ".join(text if len(text) <= 8 else [*text[:7], "..."])


def _learned(metric: LogEuclideanMetric | LogEuclideanMetricCV) -> str:
    from spdmetric import LogEuclideanMetricCV

    if not isinstance(metric, LogEuclideanMetricCV):
        return f"alignment {metric.alignment_:.3f}, distance from the mean {metric.radius_:.3g}"
    radius, rank = metric.best_params_["radius"], metric.best_params_["rank"]
    return (
        f"chosen: radius {radius:g}, rank {'full' if rank is None else rank}; accuracy in cross-validation "
        f"{100 * metric.best_score_:.1f} % (optimistic: the best of {len(metric.cv_results_['params'])} candidates)"
    )


class Bar:
    """A callback of scikit-learn (>= 1.9) that counts the tasks of a fit: folds, or iterations."""

    def __init__(self, bar: Any):
        self.bar = bar

    def setup(self, estimator: object, context: object) -> None:
        """Begin nothing: the bar is there."""

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator: object, context: object) -> bool:
        """Count a task; never ask to stop."""
        self.bar.update()
        return False


@contextmanager
def followed(metric: Any) -> Iterator[None]:
    """Show a bar when learning takes longer than two seconds, in a terminal only."""
    from tqdm import tqdm

    with tqdm(desc="learning", unit="step", delay=2, leave=False, disable=None) as bar:
        if hasattr(metric, "set_callbacks"):
            metric.set_callbacks(Bar(bar))
            yield
            metric.set_callbacks()
        else:  # an older scikit-learn: the steps of the final fit alone
            metric.set_params(callback=lambda record: bar.update() and None)
            yield
            metric.set_params(callback=None)


COMMAND = Command("fit", "train on a file of matrices", DESCRIPTION, _add_options, _run)
