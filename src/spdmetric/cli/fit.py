"""The command fit: read, learn, keep the model."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from types import SimpleNamespace

import numpy as np
from sklearn.base import BaseEstimator

from spdmetric.caller import warn_at_caller
from spdmetric.cli.inputs import Input, describe_input, read_input, save_model
from spdmetric.cli.options import SCORES
from spdmetric.cli.terminal import show_progress, tell
from spdmetric.comparison import methods
from spdmetric.comparison.folds import drop_single_group, fit_keywords, steps_of
from spdmetric.estimators import LogEuclideanMetricCV
from spdmetric.estimators.cv import MetricPredictor
from spdmetric.io.files import list_some
from spdmetric.validation import is_regression

FEW_VALUES = 10  # whole numbers, no more than that, look like classes
FOLDS = 5  # of the choice, where a class has so many matrices
AUTO = "spdmetric"  # what --method auto stands for


def run(arguments: Namespace) -> None:
    """Read, learn, write the model, and say what was learned."""
    own = {arguments.method} - {"auto"}
    classes = {"--method": own, "--scoring": arguments.scoring, "--class-weight": arguments.class_weight}
    given = [option for option, value in classes.items() if value]
    if arguments.regression and given:
        raise ValueError(f"{', '.join(given)} is for classes: leave it out, or --regression.")
    methods.check_names(own, methods.METHODS)
    data = read_input(arguments.data, arguments.labels, arguments)
    y = check_labels(data, arguments)
    sizes = methods.Sizes.from_data(data.matrices.X, y)
    if arguments.rank not in (None, "full"):
        sizes = sizes._replace(shared=False)  # a metric of low rank does without the common range
    # Domains are groups too; --folds asks for folds of matrices.
    whole_groups = data.domains is None and arguments.folds is None
    groups = drop_single_group(data.matrices.groups) if whole_groups else None
    estimator = make_model(arguments, sizes, grouped=groups is not None or data.domains is not None)
    learn(estimator, data, groups)
    save_model(estimator, data, arguments.out)
    lines = [*describe_input(data), _describe_labels(data.matrices.X, y, arguments.regression)]
    if sizes.shared:
        lines.append(f"brought to their common range, {sizes.smallest_rank} of {sizes.d} dimensions")
    elif not sizes.definite:
        lowest = f"the lowest rank is {sizes.smallest_rank} of {sizes.d}"
        lines.append(f"{lowest}: a metric of low rank, from the Euclidean mean; --shrink makes them definite")
    metrics = [getattr(step, "metric_", step) for step in steps_of(estimator)]
    chosen = [describe_choice(metric, y) for metric in metrics if hasattr(metric, "best_params_")]
    chosen = chosen or [f"trained: {methods.METHODS[arguments.method].title}"]
    tell(*lines, *_describe_groups(data, groups), *chosen, f"written: {arguments.out}")


def learn(model: BaseEstimator, data: Input, groups: np.ndarray | None) -> None:
    """Train an estimator, with a bar that counts folds or iterations: scikit-learn tells them from 1.9 on."""
    columns = fit_keywords(model, groups=groups, sample_domain=data.domains)
    following = [step for step in steps_of(model) if hasattr(step, "set_callbacks")]
    with show_progress("learning") as count:
        ignored = dict.fromkeys(("setup", "on_fit_task_begin", "teardown"), lambda *_, **__: None)
        bar = SimpleNamespace(on_fit_task_end=lambda *_, **__: count(), **ignored)
        for step in following:
            step.set_callbacks(bar)
        model.fit(data.matrices.X, data.matrices.y, **columns)
        for step in following:  # and the metric inside a classifier: a model file holds no bar
            step.set_callbacks()
            getattr(step, "metric_", step).set_callbacks()


def check_labels(data: Input, arguments: Namespace) -> np.ndarray:
    """Labels to learn from, or a sentence."""
    y, path = data.matrices.labels, arguments.data
    (found, counts), n = np.unique(y, return_counts=True), len(y)
    if arguments.regression:
        if found.dtype.kind not in "fiu":
            raise ValueError(f"{path} has words for labels, such as {found[0]}: leave out --regression.")
        if len(found) <= FEW_VALUES and (found == found.round()).all():
            some = f"{path} has {len(found)} different whole numbers for labels"
            warn_at_caller(f"{some}: leave out --regression if they name classes.", UserWarning)
    elif is_regression(y, "auto"):
        some = f"labels that are not all whole, such as {y[y != np.round(y)][0]:.4g}"
        raise ValueError(f"{path} has {some}: give --regression; classes are words or whole numbers.")
    elif len(found) < 2:
        raise ValueError(f"{path} has one class, {found[0]}: expected two or more, by --labels or --events.")
    elif counts.max() == 1:
        raise ValueError(f"{path} has {n} classes of one matrix each: give --regression, or other --labels.")
    elif arguments.method == "auto" and np.sum(counts > 1) < 2:  # a fold can hold all matrices of a class
        names = list_some(found[counts == 1].tolist())
        raise ValueError(f"Only one matrix has the label {names}: expected two or more, or --method mdm.")
    most = n if arguments.regression else int(counts.max())
    if arguments.folds is not None and arguments.folds > most:
        of = f"there are {n} matrices" if arguments.regression else f"the largest class has {most} matrices"
        raise ValueError(f"--folds {arguments.folds}: {of}; expected at most {most}.")
    if arguments.neighbors is not None and arguments.neighbors > n:
        raise ValueError(f"--neighbors {arguments.neighbors}: there are {n} matrices; expected at most {n}.")
    return y


def make_model(arguments: Namespace, sizes: methods.Sizes, grouped: bool) -> BaseEstimator:
    """A fresh classifier or regressor of matrices, with the options that were given."""
    ours = "regressor" if arguments.regression else AUTO
    name = ours if arguments.method == "auto" else arguments.method
    method = methods.find_method(name)
    if why := methods.find_obstacle(method, sizes):
        todo = "" if sizes.inside.definite else "; --shrink 0.1, or another amount, makes them definite"
        raise ValueError(f"--method {name} cannot learn from {arguments.data}: {why}{todo}.")
    estimator = method.make(sizes)
    chooses = isinstance(steps_of(estimator)[-1], MetricPredictor)
    if SCORES.get(arguments.scoring) and arguments.folds is None and not grouped:
        # Scores of scikit-learn are of folds, each of which then needs all classes.
        methods.set_where_known(estimator, cv=int(np.clip(sizes.smallest_class, 2, FOLDS)))
    parameters: dict[str, dict[str, object]] = {
        "radius": {"radii": (arguments.radius,)},
        "rank": {"ranks": (None if arguments.rank == "full" else arguments.rank,)},
        "neighbors": {"n_neighbors": arguments.neighbors} | ({"head": "neighbors"} if chooses else {}),
        "folds": {"cv": arguments.folds},
        "scoring": {"scoring": arguments.scoring and SCORES[arguments.scoring]},
        "class_weight": {"class_weight": arguments.class_weight},
    }
    for argument, values in parameters.items():
        if getattr(arguments, argument) is not None and methods.set_where_known(estimator, **values):
            option = f"--{argument.replace('_', '-')}"
            raise ValueError(f"{option} has no meaning for --method {name}: leave it out, or --method.")
    if arguments.domains is not None and not chooses:
        raise ValueError(f"--domains needs their means, which {name} does not keep: use --method auto.")
    return estimator


def _describe_labels(X: np.ndarray, y: np.ndarray, regression: bool) -> str:
    n, *views, d, _ = X.shape
    matrices = f"{n} samples of {views[0]} matrices {d} x {d}" if views else f"{n} matrices {d} x {d}"
    if regression:
        return f"{matrices}, numbers from {y.min():.4g} to {y.max():.4g}"
    return f"{matrices}, {len(set(y.tolist()))} classes: {count_values(y)}"


def count_values(values: np.ndarray) -> str:
    """Different values and how often they occur; of many the first."""
    found = sorted(Counter(values.tolist()).items())
    return list_some(f"{str(name)[:40]} ({count})" for name, count in found)


def _describe_groups(data: Input, groups: np.ndarray | None) -> list[str]:
    """What groups and domains were used for, in lines."""
    if data.domains is not None:
        return [f"domains, each recentered by its own mean: {count_values(data.domains)}"]
    if groups is None:
        apart = data.matrices.groups is not None and len(set(data.matrices.groups.tolist())) > 1
        return ["--folds: of matrices, so that the groups are not kept whole"] if apart else []
    offer = "--domains groups would recenter each by its own mean"
    return [f"groups, kept whole by the folds: {count_values(groups)}; {offer}"]


def describe_choice(metric: LogEuclideanMetricCV, y: np.ndarray | None = None) -> str:
    """What cross-validation chose, in a line; with the labels, beside the share of the largest class."""
    best, k = metric.best_params_, metric.n_neighbors_
    numbers = metric.classes_ is None
    plain = "ridge regression" if numbers else "nearest class mean"
    head = {None: plain, 1: "nearest neighbor"}.get(k, f"{k} nearest neighbors")
    views = {None: "", "all": "all views, ", "first": "the first view, "}[best.get("views")]
    size = f"radius {best['radius']:g}, rank {best['rank'] or 'full'}"
    said = f"chosen: {views}{size}, {best['weighting'] or 'no'} weighting, {head}"
    optimistic = "in cross-validation (optimistic: it was chosen by it)"
    if numbers or metric.scoring is not None:
        return f"{said}; {metric.scoring or 'R2'} {metric.best_score_:.3f} {optimistic}"
    right = 100 * metric.cv_results_["mean_test_accuracy"][metric.best_index_]
    said = f"{said}; {right:.1f} % right {optimistic}"
    if y is None:
        return said
    share = 100 * max(Counter(y.tolist()).values()) / len(y)
    return f"{said}; the largest class has {share:.1f} %" + ", which is not beaten" * bool(right <= share)
