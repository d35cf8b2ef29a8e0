"""Learn a metric from labeled matrices, and keep it with its nearest neighbors in a file.

Radius and rank are chosen by cross-validation, unless both are given.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spdmetric.cli.options import add_data, check_target, printable, read, whole

if TYPE_CHECKING:
    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_data(parser)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="MODEL.npz", help="file to write")
    parser.add_argument("--radius", type=float, metavar="R", help="largest distance of G from the mean")
    parser.add_argument("--rank", type=whole(1, "full"), metavar="M", help='directions to learn, or "full"')
    parser.add_argument("--neighbors", type=whole(1), default=1, metavar="K", help="default: 1")
    parser.add_argument("--folds", type=whole(2), default=5, metavar="N", help="of the choice (default: 5)")


def run(arguments: Namespace) -> None:
    """Read, learn, write the model, and say what was learned."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from tqdm import tqdm

    from spdmetric.io.models import save

    check_target(arguments.out, arguments.data, arguments.labels)
    data = read(arguments.data, arguments.labels, arguments.subject)
    if data.y is None:
        raise ValueError(f"{arguments.data} has no labels to learn from: give them with --labels CSV.")
    metric = _metric_asked(arguments)
    model = make_pipeline(metric, KNeighborsClassifier(arguments.neighbors))
    # The bar is for terminals, and for what takes longer than two seconds.
    with tqdm(desc="learning", unit="step", delay=2, leave=False, disable=None) as bar:
        follow = getattr(metric, "set_callbacks", lambda *_: None)  # from scikit-learn 1.9 on
        follow(Bar(bar.update))
        model.fit(data.X, data.y)
        follow()
    save(model, arguments.out)
    n, d, _ = data.X.shape
    counts = [f"{printable(name)[:40]} ({count})" for name, count in sorted(Counter(data.y.tolist()).items())]
    listed = ", ".join(counts if len(counts) <= 8 else [*counts[:7], "..."])
    read_in = f"{n} matrices {d} x {d}, {len(counts)} classes: {listed}"
    print(read_in, _learned(metric), f"written: {arguments.out}", sep="\n")


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


def _learned(metric: Any) -> str:
    if not hasattr(metric, "best_params_"):
        return f"alignment {metric.alignment_:.3f}, distance from the mean {metric.radius_:.3g}"
    radius, rank = metric.best_params_["radius"], metric.best_params_["rank"]
    return (
        f"chosen: radius {radius:g}, rank {'full' if rank is None else rank}; accuracy in cross-validation "
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
