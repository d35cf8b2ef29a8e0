"""Model files: fitted metrics, alone or with the nearest neighbors that follow them.

A model file is a plain ``.npz``: a JSON text, ``metadata``, with a SHA-256 digest that tells
accidents, not forgeries; and arrays, whose names are their places in the model.  What is stored of a fitted metric is listed in `FIELDS`, with kind
of dtype and shape, and checked when it is read.  Nothing else is made of a file: it cannot run code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.estimators.embedding import Start
from spdmetric.estimators.cv import Path as RadiusPath
from spdmetric.io.files import FileError, described, listed
from spdmetric.io.npy import npy_bytes, read_npz, write_npz
from spdmetric.linalg.symmetric import Spectrum
from spdmetric.manifolds import BallPoint, RankPoint
from spdmetric.solvers import Record, Solution, Status

FORMAT = "spdmetric model"
VERSION = 1  # raise it whenever a file of the former version would be read wrongly

Arrays = dict[str, np.ndarray]
State = dict[str, Any]  # plain values by name


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
    tree = _tree_of(model, arrays)
    write_model_file(path, {"spdmetric": __version__, "model": tree}, arrays)


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
    metadata, arrays = read_model_file(path)
    try:
        return _model_of(metadata["model"], arrays)
    except Exception as error:  # the digest holds, so whoever wrote it was not `save`
        what = f"{path} says that it is a {FORMAT}, but its content is not one"
        raise FileError(f"{what} ({described(error)}).") from error


# ---------------------------------------------------------------------------
# The file: metadata, arrays, and the digest over both


def write_model_file(path: str | PathLike[str], metadata: Mapping[str, Any], arrays: Arrays) -> None:
    """Write metadata and arrays, with format, version and digest."""
    content = {"format": FORMAT, "version": VERSION, **metadata}
    signed = {**content, "sha256": _digest(content, arrays)}
    text = json.dumps(signed, indent=1, allow_nan=False).encode("ascii")
    write_npz(Path(path), {"metadata": np.array(text), **arrays})


def read_model_file(path: str | PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Read what `write_model_file` wrote, or say why not."""
    arrays = read_npz(Path(path))
    if "metadata" not in arrays:
        raise FileError(
            f"{path} is an .npz file but not a {FORMAT}: expected one that spdmetric.save or 'spdmetric fit' "
            "wrote."
        )
    try:
        metadata = json.loads(arrays.pop("metadata").item())
        found = metadata["format"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileError(f"{path} is not a {FORMAT}: its metadata cannot be read ({error!r}).") from error
    version, writer = metadata.get("version"), metadata.get("spdmetric")
    if found != FORMAT:
        raise FileError(f"{path} is not a {FORMAT}: its metadata say {str(found)[:80]!r}.")
    if type(version) is not int or version < 1:
        raise FileError(f"{path} is corrupt: its format has version {str(version)[:80]!r}.")
    if version > VERSION:
        raise FileError(
            f"{path} is a {FORMAT} of format {version}, written by spdmetric {str(writer)[:80]}; this "
            f"spdmetric reads formats up to {VERSION}: upgrade it."
        )
    if metadata.pop("sha256", None) != _digest(metadata, arrays):
        raise FileError(
            f"{path} was altered after it was saved (its SHA-256 digest does not match): fetch it again, or "
            f"save the {FORMAT} anew."
        )
    return metadata, arrays


def _digest(metadata: Mapping[str, Any], arrays: Arrays) -> str:
    """SHA-256 over the metadata and the name, length and bytes of every array."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True, allow_nan=False).encode("ascii"))
    for name in sorted(arrays):
        content = npy_bytes(arrays[name])
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


# ---------------------------------------------------------------------------
# Metrics: the kind of dtype and the shape of every stored field; equal letters are equal sizes

FIELDS = {
    **{"n_features_in_": "iu", "classes_": "biufSUO c", "n_iter_": "iu"},
    **{"alignment_": "f", "gamma_": "f?", "radius_": "f"},
    # From matrices to vectors, see `Embedding`; components_, which follows, is for other programs.
    **{"basis": "f d k", "center": "f k k", "rotation": "f k k", "factor": "f m k", "frame": "f m m"},
    **{"low_rank": "b", "distance": "f", "session_weight": "f", "components_": "f m d"},
    # The solution: its coordinates in the ball, and how the solver came there.
    **{"values": "f k", "vectors": "f k k", "status": "U", "value": "f", "residual": "f", "multiplier": "f"},
    "history": f"f h {len(Record._fields)}",
}
CV_FIELDS = FIELDS | {
    **{"best_index_": "iu", "best_params_": "plain", "best_score_": "f", "cv_results_": "plain"},
    "path_": f"f {len(RadiusPath._fields)} p",
}
_METRICS = {
    "LogEuclideanMetric": (LogEuclideanMetric, FIELDS),
    "LogEuclideanMetricCV": (LogEuclideanMetricCV, CV_FIELDS),
}


def _metric_state(metric: LogEuclideanMetric) -> State:
    solution = metric.solution_
    found = {
        **{"basis": metric._start.basis, "center": metric._start.center, "rotation": metric._start.rotation},
        **{"factor": metric._solution_factor, "frame": metric._embedding[2], "low_rank": metric._low_rank},
        **{"distance": metric.radius_, "session_weight": metric._adapted_weight},
        **{"status": solution.status.name, "history": np.array(solution.history, dtype=np.float64)},
        **solution.point.coordinates._asdict(),
        **{name: float(getattr(solution, name)) for name in ("value", "residual", "multiplier")},
    }
    if isinstance(metric, LogEuclideanMetricCV):
        found["path_"] = np.array(metric.path_, dtype=np.float64)
    fields = _METRICS[type(metric).__name__][1]
    return {name: found[name] if name in found else getattr(metric, name) for name in fields}


def _fitted_metric(kind: str, parameters: State, state: State) -> LogEuclideanMetric:
    cls, fields = _METRICS[kind]
    check_fields(fields, state)
    metric, factor = cls(**parameters), state["factor"]
    metric._start = Start(state["basis"], state["center"], state["rotation"])
    metric._solution_factor, metric._low_rank = factor, state["low_rank"]
    metric._adapted_weight, metric._stream = state["session_weight"], None
    metric._set_factor(state["frame"])
    metric._n_features_out = len(factor) * (len(factor) + 1) // 2
    coordinates = Spectrum(state["values"], state["vectors"])
    low = state["low_rank"]
    point = RankPoint(coordinates, len(factor)) if low else BallPoint(coordinates, np.eye(len(factor)))
    point.factor = factor
    rows = state["history"].tolist()
    history = tuple(Record(int(i), value, residual, d, int(n), t) for i, value, residual, d, n, t in rows)
    numbers = state["residual"], state["multiplier"]
    metric.solution_ = Solution(point, state["value"], Status[state["status"]], *numbers, history)
    if isinstance(metric, LogEuclideanMetricCV):
        metric.path_ = RadiusPath(*state.pop("path_"))
    vars(metric).update({k: v for k, v in state.items() if k.endswith("_") and k != "components_"})
    return metric


def check_fields(fields: Mapping[str, str], state: State) -> None:
    """Compare values with a table of fields, and their sizes with each other."""
    if set(state) != set(fields):
        raise ValueError(f"expected the fields {sorted(fields)}, got {sorted(state)}")
    sizes = {"d": state["n_features_in_"]}
    for name, rule in fields.items():
        (kinds, *shape), array = rule.split(), np.asarray(state[name])
        if kinds == "plain" or (state[name] is None and "?" in kinds):
            continue
        expected = tuple(sizes.setdefault(s, n) for s, n in zip(shape, array.shape, strict=False))
        expected = tuple(int(s) if s.isdigit() else n for s, n in zip(shape, expected, strict=False))
        if array.dtype.kind not in kinds or array.ndim != len(shape) or array.shape != expected:
            raise ValueError(
                f"{name} has shape {array.shape} and dtype {array.dtype}; expected {rule!r}, {expected}"
            )


# ---------------------------------------------------------------------------
# Models as trees of plain values

_PLACES = {LogEuclideanMetric: "metric", LogEuclideanMetricCV: "metric", KNeighborsClassifier: "neighbors"}
_REQUESTS = ("fit", "partial_fit", "score")  # methods whose metadata requests are kept


def _tree_of(model: Any, arrays: Arrays) -> State:
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    if [_PLACES.get(type(step)) for _, step in steps] not in (["metric"], ["metric", "neighbors"]):
        got = listed(type(step).__name__ for _, step in steps)
        raise ValueError(
            "Expected a LogEuclideanMetric, a LogEuclideanMetricCV, or a pipeline of one of them and a "
            f"KNeighborsClassifier, got {got}: for other pipelines use skops, see docs/models.md."
        )
    trees = [[name, _step_tree(step, arrays)] for name, step in steps]
    if not isinstance(model, Pipeline):
        return trees[0][1]
    parameters = {k: v for k, v in model.get_params(deep=False).items() if k != "steps"}
    return {"class": "Pipeline", "parameters": _encode_all(parameters, "pipeline", arrays), "steps": trees}


def _step_tree(step: Any, arrays: Arrays) -> State:
    check_is_fitted(step)
    place, routing = _PLACES[type(step)], step.get_metadata_routing()
    if place == "metric":
        state = _metric_state(step)
    else:  # from the vectors and labels scikit-learn builds the same neighbors again
        state = {"vectors": step._fit_X, "labels": step.classes_[step._y]}
        state["names"] = getattr(step, "feature_names_in_", None)
    requests = {method: getattr(routing, method).requests for method in _REQUESTS}
    return {
        "class": type(step).__name__,
        "parameters": _encode_all(step.get_params(deep=False), place, arrays),
        "fitted": _encode_all(state, place, arrays),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
        "requests": {m: {k: v for k, v in some.items() if v is not None} for m, some in requests.items()},
    }


def _model_of(tree: State, arrays: Arrays) -> Any:
    parameters = {name: _decode(value, arrays) for name, value in tree["parameters"].items()}
    if tree["class"] == "Pipeline":
        return Pipeline([(name, _model_of(step, arrays)) for name, step in tree["steps"]], **parameters)
    fitted = {name: _decode(value, arrays) for name, value in tree["fitted"].items()}
    if tree["class"] == "KNeighborsClassifier":
        model = KNeighborsClassifier(**parameters).fit(fitted["vectors"], fitted["labels"])
        if fitted["names"] is not None:
            model.feature_names_in_ = fitted["names"]
    else:
        model = _fitted_metric(tree["class"], parameters, fitted).set_output(transform=tree["output"])
    with config_context(enable_metadata_routing=True):
        for method in filter(tree["requests"].get, _REQUESTS):
            getattr(model, f"set_{method}_request")(**tree["requests"][method])
    return model


def _encode_all(values: State, place: str, arrays: Arrays) -> State:
    return {name: _encode(value, f"{place}.{name}", arrays) for name, value in values.items()}


def _encode(value: Any, place: str, arrays: Arrays) -> Any:
    """What JSON holds of a value: itself, or its kind and content; arrays go to ``arrays``."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and isfinite(value)):
        return value
    if type(value) is float:
        return {"float": repr(value)}
    name = place.split(".")[1]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufSU":
        arrays[place] = np.asarray(value)
        return {"array" if isinstance(value, np.ndarray) else "scalar": place}
    if isinstance(value, np.ndarray | np.generic) and (value.dtype != object or value.ndim != 1):
        raise ValueError(
            f"{name} has dtype {value.dtype} and {value.ndim} dimensions, which a model file cannot hold: "
            "use numbers or strings."
        )
    if type(value) in (list, tuple, np.ndarray):  # objects: strings of pandas, ranks beside None
        items = [_encode(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
        return items if type(value) is list else {"tuple" if type(value) is tuple else "objects": items}
    if type(value) is dict:
        return {
            "dict": [
                [_encode(k, place, arrays), _encode(v, f"{place}.{k}", arrays)] for k, v in value.items()
            ]
        }
    raise ValueError(
        f"{name}={value!r} cannot be stored in a model file, which holds plain values only: call "
        f"set_params({name}=...) with one first, or use skops, see docs/models.md."
    )


def _decode(tree: Any, arrays: Arrays) -> Any:
    """The inverse of `_encode`."""
    if isinstance(tree, list):
        return [_decode(item, arrays) for item in tree]
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind in ("array", "scalar"):
        return arrays[content] if kind == "array" else arrays[content][()]
    makers: dict[str, Callable[[Any], Any]] = {"float": float, "tuple": tuple, "dict": dict}
    if kind in makers:
        return makers[kind](_decode(content, arrays))
    objects = np.empty(len(content), dtype=object)
    objects[:] = _decode(content, arrays)
    return objects
