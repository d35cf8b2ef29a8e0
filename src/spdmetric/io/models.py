"""Model files: fitted metrics, alone or with the nearest neighbors that follow them.

A model is written as one tree of plain values.  Numbers, strings, lists and dictionaries
are JSON; arrays are members of the ``.npz`` file, under the path of their place in the
tree; the few records that a fitted metric holds are dictionaries that tell their kind
under "!".  Nothing else is written, and nothing else is made when a file is read: a model
file cannot run code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.estimators.cv import Path as RadiusPath
from spdmetric.estimators.embedding import Embedding
from spdmetric.io.archive import KINDS, read_archive, write_archive
from spdmetric.linalg.symmetric import Spectrum
from spdmetric.manifolds import BallPoint, RankPoint
from spdmetric.solvers import Record, Solution, Status

FORMAT = "spdmetric model"
VERSION = 1  # raise it whenever a file of the former version would be read wrongly

_METRICS = {kind.__name__: kind for kind in (LogEuclideanMetric, LogEuclideanMetricCV)}
_TUPLES: dict[str, Any] = {"Path": RadiusPath, "Record": Record}
# What a metric remembers of a stream, to learn on from: a metric that was loaded begins a new one.
_FORGOTTEN = ("_stream",)

Arrays = dict[str, np.ndarray]


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : LogEuclideanMetric, LogEuclideanMetricCV or Pipeline
        A fitted metric, or a fitted pipeline of one and a
        `~sklearn.neighbors.KNeighborsClassifier`.
    path : str or path-like
        File to write, by custom ending in ``.npz``; it appears whole or not at all.

    Raises
    ------
    ValueError
        The model is not fitted, or holds something that a file of plain values cannot, such
        as a function.

    Notes
    -----
    The file is a plain ``.npz``: ``numpy.load(path)["metadata"].item()`` is a JSON text with
    the version, the parameters and a SHA-256 digest over everything.  The digest tells
    accidents, not forgeries: it is not signed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import spdmetric
    >>> from spdmetric.datasets import make_toy
    >>> X, y, X_new, _ = make_toy(n_train=20, n_test=4, d=4, random_state=0)
    >>> metric = spdmetric.LogEuclideanMetric(radius=2.0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spdmetric.save(metric, Path(folder) / "metric.npz")
    ...     loaded = spdmetric.load(Path(folder) / "metric.npz")
    >>> bool((loaded.transform(X_new) == metric.transform(X_new)).all())
    True
    """
    from spdmetric import __version__

    arrays: Arrays = {}
    tree = _model_tree(model, arrays)
    metadata = {"format": FORMAT, "version": VERSION, "spdmetric": __version__, "model": tree}
    write_archive(Path(path), metadata, arrays)


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` or ``spdmetric fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.  Reading it cannot run code, and needs memory in proportion to its size.

    Returns
    -------
    model : LogEuclideanMetric, LogEuclideanMetricCV or Pipeline
        Fitted; it gives the same numbers, bit for bit, as the one that was saved.

    Raises
    ------
    FileNotFoundError, ValueError
        With a sentence: the file is missing, truncated, altered, newer or not a model.
    """
    path = Path(path)
    metadata, arrays = read_archive(path, FORMAT, VERSION)
    try:
        return _model_of(metadata["model"], arrays)
    except Exception as error:  # the digest holds, so whoever wrote it was not `save`
        raise ValueError(
            f"{path} says that it is a {FORMAT}, but its content is not one ({type(error).__name__}: "
            f"{' '.join(str(error).split())})."
        ) from error


# ---------------------------------------------------------------------------
# Models as trees


def _model_tree(model: Any, arrays: Arrays) -> dict[str, Any]:
    if type(model).__name__ in _METRICS and type(model) is _METRICS[type(model).__name__]:
        return _metric_tree(model, "metric", arrays)
    if isinstance(model, Pipeline) and [_kind_of(step) for _, step in model.steps] == [
        "metric",
        "neighbors",
    ]:
        return _pipeline_tree(model, arrays)
    raise ValueError(
        f"Expected a LogEuclideanMetric, a LogEuclideanMetricCV, or a pipeline of one of them and a "
        f"KNeighborsClassifier, got {_described(model)}: for other pipelines use skops, see docs/models.md."
    )


def _kind_of(step: Any) -> str:
    kinds = {LogEuclideanMetric: "metric", LogEuclideanMetricCV: "metric", KNeighborsClassifier: "neighbors"}
    return kinds.get(type(step), "other")


def _described(model: Any) -> str:
    if isinstance(model, Pipeline):
        return "a pipeline of " + ", ".join(type(step).__name__ for _, step in model.steps)
    return type(model).__name__


def _metric_tree(
    metric: LogEuclideanMetric | LogEuclideanMetricCV, place: str, arrays: Arrays
) -> dict[str, Any]:
    check_is_fitted(metric)
    parameters = metric.get_params(deep=False)
    fitted = {name: value for name, value in vars(metric).items() if name not in parameters}
    fitted |= {name: None for name in _FORGOTTEN if name in fitted}
    return {
        "!": type(metric).__name__,
        "parameters": {k: _tree(v, f"{place}.{k}", arrays, k) for k, v in parameters.items()},
        "fitted": {k: _tree(v, f"{place}.{k}", arrays, k) for k, v in fitted.items()},
    }


def _neighbors_tree(judge: KNeighborsClassifier, place: str, arrays: Arrays) -> dict[str, Any]:
    """The vectors and labels: from them scikit-learn builds the same neighbors again."""
    check_is_fitted(judge)
    parameters = judge.get_params(deep=False)
    content = {"vectors": judge._fit_X, "labels": judge.classes_[judge._y]}
    content["names"] = getattr(judge, "feature_names_in_", None)
    return {
        "!": "KNeighborsClassifier",
        "parameters": {k: _tree(v, f"{place}.{k}", arrays, k) for k, v in parameters.items()},
        "fitted": {k: _tree(v, f"{place}.{k}", arrays, k) for k, v in content.items()},
    }


def _pipeline_tree(model: Pipeline, arrays: Arrays) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    (first, metric), (second, judge) = parameters.pop("steps")
    return {
        "!": "Pipeline",
        "parameters": {k: _tree(v, f"pipeline.{k}", arrays, k) for k, v in parameters.items()},
        "steps": [
            [first, _metric_tree(metric, "metric", arrays)],
            [second, _neighbors_tree(judge, "neighbors", arrays)],
        ],
    }


def _model_of(tree: Mapping[str, Any], arrays: Arrays) -> Any:
    parameters = {k: _value(v, arrays) for k, v in tree["parameters"].items()}
    if tree["!"] == "Pipeline":
        steps = [(name, _model_of(step, arrays)) for name, step in tree["steps"]]
        return Pipeline(steps, **parameters)
    fitted = {k: _value(v, arrays) for k, v in tree["fitted"].items()}
    if tree["!"] == "KNeighborsClassifier":
        judge = KNeighborsClassifier(**parameters).fit(fitted["vectors"], fitted["labels"])
        if fitted["names"] is not None:
            judge.feature_names_in_ = fitted["names"]
        return judge
    metric = _METRICS[tree["!"]](**parameters)
    for name, value in fitted.items():
        setattr(metric, name, value)
    check_is_fitted(metric)
    return metric


# ---------------------------------------------------------------------------
# Values as trees


def _tree(value: Any, place: str, arrays: Arrays, name: str) -> Any:
    """Return what JSON can hold of a value; its arrays go to ``arrays``.

    ``place`` is where the value sits in the model, ``name`` the attribute that sentences speak of.
    """

    def inner(parts: Mapping[str, Any]) -> dict[str, Any]:
        return {key: _tree(part, f"{place}.{key}", arrays, name) for key, part in parts.items()}

    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if isfinite(value) else {"!": "float", "value": repr(value)}
    if isinstance(value, np.ndarray | np.generic):
        return _array_tree(value, place, arrays, name)
    if type(value) is list:
        return [_tree(item, f"{place}.{i}", arrays, name) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"!": "tuple", "items": _tree(list(value), place, arrays, name)}
    if type(value) is dict and "!" not in value and all(type(key) is str for key in value):
        return inner(value)
    if type(value).__name__ in _TUPLES and isinstance(value, tuple):
        return {"!": type(value).__name__, **inner(value._asdict())}  # type: ignore[attr-defined]
    if type(value) is Status:
        return {"!": "Status", "name": value.name}
    if type(value) in (Solution, Embedding):
        return {"!": type(value).__name__, **inner({f.name: getattr(value, f.name) for f in fields(value)})}
    if type(value) in (BallPoint, RankPoint):
        parts = {"s": value._s, "P": value._P, "factor": value.factor}
        return {"!": type(value).__name__, **inner(parts)}
    raise ValueError(
        f"{name}={value!r} cannot be stored in a model file, which holds plain values only: call "
        f"set_params({name}=...) with one first, or use skops, see docs/models.md."
    )


def _array_tree(value: Any, place: str, arrays: Arrays, name: str) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype == object:  # strings of pandas, ranks beside None
        if array.ndim != 1:
            raise ValueError(f"{name} has {array.ndim} dimensions of Python objects: expected numbers.")
        return {"!": "objects", "items": _tree(array.tolist(), place, arrays, name)}
    if array.dtype.kind not in KINDS:
        raise ValueError(
            f"{name} has dtype {array.dtype}, which a model file cannot hold: use numbers or strings."
        )
    arrays[place] = array
    return {"!": "array" if isinstance(value, np.ndarray) else "scalar", "member": place}


def _value(tree: Any, arrays: Arrays) -> Any:
    """The inverse of `_tree`."""
    if isinstance(tree, list):
        return [_value(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if tree.get("!") in ("array", "scalar"):
        array = arrays[tree["member"]]
        return array if tree["!"] == "array" else array[()]
    parts = {key: _value(part, arrays) for key, part in tree.items() if key != "!"}
    return _MAKERS[tree["!"]](parts) if "!" in tree else parts


def _objects(items: list[Any]) -> np.ndarray:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _record(kind: Any, parts: dict[str, Any]) -> Any:
    return kind(**parts)


def _ball_point(parts: dict[str, Any]) -> BallPoint:
    point = BallPoint(Spectrum(parts["s"], parts["P"]), np.eye(len(parts["s"])))
    point.factor = parts["factor"]
    return point


def _rank_point(parts: dict[str, Any]) -> RankPoint:
    point = RankPoint(Spectrum(parts["s"], parts["P"]), len(parts["factor"]))
    point.factor = parts["factor"]
    return point


_MAKERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "float": lambda parts: float(parts["value"]),
    "tuple": lambda parts: tuple(parts["items"]),
    "objects": lambda parts: _objects(parts["items"]),
    "Status": lambda parts: Status[parts["name"]],
    "Solution": lambda parts: Solution(**parts),
    "Embedding": lambda parts: Embedding(**parts),
    "BallPoint": _ball_point,
    "RankPoint": _rank_point,
    **{name: partial(_record, kind) for name, kind in _TUPLES.items()},
}
