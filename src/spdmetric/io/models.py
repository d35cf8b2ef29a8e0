"""Model files: fitted metrics, alone or with the nearest neighbors that follow them.

A model file is a plain ``.npz``: a JSON text, ``metadata``, with a SHA-256 digest against damage,
and arrays named by their places in the model.  All that is stored of a fitted estimator is listed
in `FIELDS` and checked when a file is read.  Nothing else is made of a file: it cannot run code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import fields
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
from spdmetric.estimators.cv import Path as RadiusPath
from spdmetric.estimators.embedding import Embedding
from spdmetric.io.files import FileError, Refused, described, listed, reading
from spdmetric.io.npy import npy_bytes, read_npz, write_npz
from spdmetric.linalg.symmetric import Spectrum
from spdmetric.manifolds import BallPoint, RankPoint
from spdmetric.solvers import Record, Solution, Status

FORMAT, VERSION = "spdmetric model", 1  # raised whenever a file of the former version would be read wrongly

# Of every field the kinds of dtype, "?" for None, and the shape; equal letters are equal sizes.
_METRIC = {
    **{"n_features_in_": "iu", "classes_": "biufSUO c", "n_iter_": "iu"},
    **{"alignment_": "f", "gamma_": "f?", "radius_": "f", "shape_penalty_": "f?", "shape_score_": "f?"},
    # From matrices to vectors, see `Embedding`; components_, which follows, is for other programs.
    **{"basis": "f d k", "center": "f k k", "rotation": "f k k", "factor": "f m k", "frame": "f m m"},
    **{"low_rank": "b", "distance": "f", "session_weight": "f", "shape": "f? s q", "components_": "f m d"},
    **{"domains_": "iuU? e", "domain_means_": "f? e d d", "domain_mean": "f? d d"},
    # The solution: its coordinates in the ball, and how the solver came there.
    **{"coordinates": "f m x", "status": "U", "value": "f", "residual": "f", "multiplier": "f"},
    "history": f"f h {len(Record._fields)}",
}
_CV = {
    **{"best_index_": "iu", "best_params_": "plain", "best_score_": "f", "cv_results_": "plain"},
    **{"n_neighbors_": "iu?", "temperature_": "f", "path_": f"f {len(RadiusPath._fields)} p"},
}
FIELDS = {
    "LogEuclideanMetric": _METRIC,
    "LogEuclideanMetricCV": _METRIC | _CV,
    "KNeighborsClassifier": {"vectors": "f n v", "labels": "biufSUO n", "names": "UO? v"},
}
_PLACES = {LogEuclideanMetric: "metric", LogEuclideanMetricCV: "metric", KNeighborsClassifier: "neighbors"}
_CLASSES = {kind.__name__: kind for kind in _PLACES}
_REQUESTS = ("fit", "partial_fit", "score")  # methods whose metadata requests are kept

Arrays = dict[str, np.ndarray]
State = dict[str, Any]


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file, or say what in it a file of plain values cannot hold.

    Parameters
    ----------
    model : LogEuclideanMetric, LogEuclideanMetricCV or Pipeline
        A fitted metric, or a fitted pipeline of one and a `KNeighborsClassifier`.
    path : str or path-like
        File to write, by custom ending in ``.npz``; it appears whole or not at all.

    Examples
    --------
    >>> import spdmetric, tempfile
    >>> from spdmetric.datasets import make_toy
    >>> X, y, X_new, _ = make_toy(n_train=20, n_test=4, d=4, random_state=0)
    >>> metric = spdmetric.LogEuclideanMetric(radius=2.0).fit(X, y)
    >>> path = f"{tempfile.mkdtemp()}/metric.npz"
    >>> spdmetric.save(metric, path)
    >>> bool((spdmetric.load(path).transform(X_new) == metric.transform(X_new)).all())
    True
    """
    from spdmetric import __version__

    arrays: Arrays = {}
    write_model_file(path, {"spdmetric": __version__, "model": _tree_of(model, arrays)}, arrays)


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
    """
    metadata, arrays = read_model_file(path)
    try:
        return _model_of(metadata["model"], arrays)
    except Exception as error:  # the digest holds, so whoever wrote it was not `save`
        why = described(error)
        raise FileError(f"{path} says that it is a {FORMAT}, but its content is not one ({why}).") from error


def write_model_file(path: str | PathLike[str], metadata: State, arrays: Arrays) -> None:
    """Write metadata and arrays, with format, version and digest."""
    content = {"format": FORMAT, "version": VERSION, **metadata}
    text = json.dumps({**content, "sha256": _digest(content, arrays)}, indent=1, allow_nan=False)
    write_npz(Path(path), {"metadata": np.array(text.encode("ascii")), **arrays})


def read_model_file(path: str | PathLike[str]) -> tuple[State, Arrays]:
    """Read what `write_model_file` wrote, or say why not."""
    arrays = read_npz(Path(path))
    with reading(path):
        if "metadata" not in arrays:
            raise Refused(f"it is an .npz file but not a {FORMAT} of spdmetric.save or 'spdmetric fit'.")
        metadata = json.loads(arrays.pop("metadata").item())
        found, version, writer = (metadata.get(key) for key in ("format", "version", "spdmetric"))
        if found != FORMAT:
            raise Refused(f"it is not a {FORMAT}: its metadata say {str(found)[:80]!r}.")
        if type(version) is not int or version < 1:
            raise Refused(f"it is corrupt: its format has version {str(version)[:80]!r}.")
        if version > VERSION:
            newer = f"it is a {FORMAT} of format {version}, written by spdmetric {str(writer)[:80]}"
            raise Refused(f"{newer}; this spdmetric reads formats up to {VERSION}: upgrade it.")
        if metadata.pop("sha256", None) != _digest(metadata, arrays):
            altered = "it was altered after it was saved (its SHA-256 digest does not match)"
            raise Refused(f"{altered}: fetch it again, or save the {FORMAT} anew.")
    return metadata, arrays


def _digest(metadata: State, arrays: Arrays) -> str:
    """SHA-256 over the metadata and the name, length and bytes of every array."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode("ascii"))
    for name in sorted(arrays):
        content = npy_bytes(arrays[name])
        digest.update(f"\n{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _state_of(step: Any) -> State:
    if isinstance(step, KNeighborsClassifier):  # from these scikit-learn builds the same neighbors again
        names = getattr(step, "feature_names_in_", None)
        return {"vectors": step._fit_X, "labels": step.classes_[step._y], "names": names}
    solution = step.solution_
    found = {field.name: getattr(step.embedding_, field.name) for field in fields(Embedding)}
    found |= {"coordinates": solution.point.coordinates, "status": solution.status.name}
    found |= {name: float(getattr(solution, name)) for name in ("value", "residual", "multiplier")}
    found["history"] = np.array(solution.history, dtype=np.float64)
    if isinstance(step, LogEuclideanMetricCV):
        found["path_"] = np.array(step.path_, dtype=np.float64)
    return found | {name: getattr(step, name) for name in FIELDS[type(step).__name__] if name not in found}


def _fitted(kind: str, parameters: State, state: State) -> Any:
    """The estimator that the fields were taken from."""
    _check_fields(FIELDS[kind], state)
    step = _CLASSES[kind](**parameters)
    if kind == "KNeighborsClassifier":
        step.fit(state["vectors"], state["labels"])
        if state["names"] is not None:
            step.feature_names_in_ = state["names"]
        return step
    step.embedding_ = Embedding(**{field.name: state[field.name] for field in fields(Embedding)})
    S, W, low_rank = state["coordinates"], state["factor"], state["low_rank"]
    if S.shape[1] != W.shape[1] + (not low_rank):
        raise ValueError(f"coordinates has shape {S.shape}, which does not go with a factor of {W.shape}")
    shape, p = state["shape"], len(W) * (len(W) + 1) // 2
    if shape is not None and len(shape) != p:
        raise ValueError(f"shape has {len(shape)} rows, and vectors without it have length {p}")
    point = RankPoint(S) if low_rank else BallPoint(Spectrum(S[:, -1], S[:, :-1]), np.eye(len(W)))
    point.factor = W
    rows = state["history"].tolist()
    history = tuple(Record(int(i), value, gap, d, int(n), t) for i, value, gap, d, n, t in rows)
    how = state["residual"], state["multiplier"], history
    step.solution_ = Solution(point, state["value"], Status[state["status"]], *how)
    if kind == "LogEuclideanMetricCV":
        state["path_"] = RadiusPath(*state["path_"])
    vars(step).update({k: v for k, v in state.items() if k.endswith("_") and k != "components_"})
    return step


def _check_fields(rules: Mapping[str, str], state: State) -> None:
    """Compare the values with the table, and their sizes with each other."""
    if set(state) != set(rules):
        raise ValueError(f"expected the fields {sorted(rules)}, got {sorted(state)}")
    sizes = {"d": state.get("n_features_in_")}
    for name, rule in rules.items():
        (kinds, *letters), array = rule.split(), np.asarray(state[name])
        if kinds == "plain" or (state[name] is None and "?" in kinds):
            continue
        paired = zip(letters, array.shape, strict=False)
        shape = tuple(int(s) if s.isdigit() else sizes.setdefault(s, n) for s, n in paired)
        if array.dtype.kind not in kinds or array.ndim != len(letters) or array.shape != shape:
            got = f"shape {array.shape} and dtype {array.dtype}"
            raise ValueError(f"{name} has {got}; expected '{rule}', {shape}")


def _tree_of(model: Any, arrays: Arrays) -> State:
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    if [_PLACES.get(type(step)) for _, step in steps] not in (["metric"], ["metric", "neighbors"]):
        got = listed(type(step).__name__ for _, step in steps)
        known = "a LogEuclideanMetric or a LogEuclideanMetricCV, alone or before a KNeighborsClassifier"
        raise ValueError(f"Expected {known}, got {got}: for other pipelines use skops, see docs/models.md.")
    trees = [(name, _step_tree(step, arrays)) for name, step in steps]
    if not isinstance(model, Pipeline):
        return trees[0][1]
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name != "steps"}
    return {"class": "Pipeline", "parameters": _encode_all(parameters, "pipeline", arrays), "steps": trees}


def _step_tree(step: Any, arrays: Arrays) -> State:
    check_is_fitted(step)
    place, routing = _PLACES[type(step)], step.get_metadata_routing()
    requests = {method: getattr(routing, method).requests.items() for method in _REQUESTS}
    return {
        "class": type(step).__name__,
        "parameters": _encode_all(step.get_params(deep=False), place, arrays),
        "fitted": _encode_all(_state_of(step), place, arrays),
        "output": getattr(step, "_sklearn_output_config", {}).get("transform"),
        "requests": {m: {k: v for k, v in some if v is not None} for m, some in requests.items()},
    }


def _model_of(tree: State, arrays: Arrays) -> Any:
    parameters = {name: _decode(value, arrays) for name, value in tree["parameters"].items()}
    if tree["class"] == "Pipeline":
        return Pipeline([(name, _model_of(step, arrays)) for name, step in tree["steps"]], **parameters)
    state = {name: _decode(value, arrays) for name, value in tree["fitted"].items()}
    step = _fitted(tree["class"], parameters, state)
    if tree["output"] is not None:
        step.set_output(transform=tree["output"])
    with config_context(enable_metadata_routing=True):
        for method in filter(tree["requests"].get, _REQUESTS):
            getattr(step, f"set_{method}_request")(**tree["requests"][method])
    return step


def _encode_all(values: State, place: str, arrays: Arrays) -> State:
    return {name: _encode(value, f"{place}.{name}", arrays) for name, value in values.items()}


def _encode(value: Any, place: str, arrays: Arrays) -> Any:
    """What JSON holds of a value: itself, or its kind and content; arrays go to ``arrays``."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and isfinite(value)):
        return value
    kind = type(value)
    array = np.asarray(value) if isinstance(value, float | np.ndarray | np.generic) else None
    if array is not None and array.dtype.kind in "biufSU":
        arrays[place] = array
        return {"array" if kind is np.ndarray else "scalar": place}
    if kind in (list, tuple) or (array is not None and array.dtype == object and array.ndim == 1):
        items = [_encode(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
        return items if kind is list else {"tuple" if kind is tuple else "objects": items}
    if kind is dict:
        pairs = [[_encode(k, place, arrays), _encode(v, f"{place}.{k}", arrays)] for k, v in value.items()]
        return {"dict": pairs}
    name = place.split(".")[1]
    got = f"{name}={value!r}" if array is None else f"{name} has dtype {array.dtype}, which"
    todo = f"call set_params({name}=...) with one first, or use skops, see docs/models.md"
    raise ValueError(f"{got} cannot be stored in a model file, only plain numbers and strings: {todo}.")


def _decode(tree: Any, arrays: Arrays) -> Any:
    """The inverse of `_encode`."""
    if not isinstance(tree, dict):
        return [_decode(item, arrays) for item in tree] if isinstance(tree, list) else tree
    ((kind, content),) = tree.items()
    makers: dict[str, Callable[[Any], Any]] = {
        **{"tuple": tuple, "dict": dict, "array": arrays.__getitem__},
        "scalar": lambda place: arrays[place][()],
        "objects": lambda items: np.array([None, *items], dtype=object)[1:],  # one axis, whatever the items
    }
    return makers[kind](_decode(content, arrays))
