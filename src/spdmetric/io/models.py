"""Model files: fitted metrics, alone, after the common range, or with the head that follows them.

A model file is a plain ``.npz``: a JSON text, ``metadata``, with a SHA-256 digest against damage,
and arrays named by their places in the model.  All that is stored of a fitted estimator is listed
in `FIELDS`, and compared with it when a file is written, when its headers are known, and when it is
read.  Nothing else is made of a file: it cannot run code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import (
    CommonRange,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
)
from spdmetric.estimators.cv import Path as RadiusPath
from spdmetric.estimators.embedding import Embedding
from spdmetric.estimators.heads import ClassMeans, Neighbors
from spdmetric.io.files import FileError, Header, Refused, described, listed, reading, shortened
from spdmetric.io.npy import npy_parts, npz_headers, read_npz, write_npz
from spdmetric.io.signals import Recipe
from spdmetric.linalg.symmetric import Spectrum
from spdmetric.manifolds import BallPoint, RankPoint
from spdmetric.solvers import Record, Solution, Status
from spdmetric.validation import check_count

FORMAT, VERSION = "spdmetric model", 1  # raised whenever a file of the former version would be read wrongly

# Of every field the kinds of dtype, and the shape in letters: equal letters are equal sizes, all but h at
# least 1.  "?": it may be None.  "~": it may be infinite; nothing may be NaN.
_METRIC = {
    **{"n_features_in_": "iu", "classes_": "biufSUO? c", "n_iter_": "iu"},
    **{"alignment_": "f", "gamma_": "f?", "radius_": "f", "shape_penalty_": "f?", "shape_score_": "f?"},
    # From matrices to vectors, see `Embedding`; components_, which follows, is for other programs.
    **{"basis": "f d k", "center": "f k k", "rotation": "f k k", "factor": "f m k", "frame": "f m m"},
    **{"low_rank": "b", "distance": "f", "session_weight": "f", "shape": "f? p q", "components_": "f m d"},
    **{"domain_mean": "f? d d", "domains_": "iuSUO? g", "domain_means_": "f? g d d"},
    **{"domains_": "iuU? e", "domain_means_": "f? e d d", "domain_mean": "f? d d"},
    # The solution: its coordinates in the ball, and how the solver came there.
    **{"coordinates": "f m x", "status": "U", "value": "f~", "residual": "f~", "multiplier": "f~"},
    "history": f"f~ h {len(Record._fields)}",
}
_CV = {
    **{"best_index_": "iu", "best_params_": "plain", "best_score_": "f", "cv_results_": "plain"},
    **{"n_neighbors_": "iu?", "temperature_": "f", "path_": f"f~ {len(RadiusPath._fields)} r"},
}
FIELDS = {
    "LogEuclideanMetric": _METRIC,
    "LogEuclideanMetricCV": _METRIC | _CV,
    "CommonRange": {"n_features_in_": "iu", "basis_": "f d k"},
    "KNeighborsClassifier": {"vectors": "f n v", "labels": "biufSUO n", "names": "UO? v"},
    # Of one number the last axis is left out where scikit-learn does so.
    "KNeighborsRegressor": {"vectors": "f n v", "values": "f n o", "one": "b", "names": "UO? v"},
    "Ridge": {"coefficients": "f o v", "intercepts": "f o", "one": "b", "names": "UO? v"},
    # Heads of LogEuclideanClassifier.
    "ClassMeans": {"means": "f c v", "variance": "f", "share": "f c"},
    "Neighbors": {
        "vectors": "f n v",
        "codes": "iu n",
        "weight": "f n",
        "n_classes": "iu",
        "n_neighbors": "iu",
    },
}
# Sizes that follow from others: of a full-rank factor, of vectors without a shape and with one.
_FOLLOWING: dict[str, Callable[[Mapping[str, int]], int | None]] = {
    "m": lambda z: None if z["low_rank"] else z["k"],
    "x": lambda z: z["k"] + 1 - z["low_rank"],
    "p": lambda z: z["m"] * (z["m"] + 1) // 2,
    "v": lambda z: z.get("q", z["m"] * (z["m"] + 1) // 2),
}
_MACHINE = ("memory", "n_jobs")  # parameters that speak of a machine, not of a model: never in a file
_OUTPUTS = (None, "default", "pandas", "polars")  # of set_output
_LONGEST_METADATA = 4 * 2**20  # bytes; parsed they take some twenty times as much
_LARGEST_TRIED = 2000  # size of matrices up to which a metric is tried when it is loaded
_PLACES = {
    **{CommonRange: "range", LogEuclideanMetric: "metric", LogEuclideanMetricCV: "metric"},
    **dict.fromkeys((KNeighborsClassifier, KNeighborsRegressor, Ridge), "head"),
    **{ClassMeans: "own head", Neighbors: "own head", LogEuclideanClassifier: "classifier"},
}
# What a file can hold, alone or in a pipeline: a metric, perhaps with what comes before and after it.
_ENDINGS = (["metric"], ["metric", "head"], ["classifier"])
_ORDERS = [["range"], *([*before, *rest] for before in ([], ["range"]) for rest in _ENDINGS)]
_CLASSES = {kind.__name__: kind for kind in _PLACES}
_REQUESTS = ("fit", "partial_fit", "score")  # methods whose metadata requests are kept

Arrays = dict[str, np.ndarray]
State = dict[str, Any]


def save(model: Any, path: str | PathLike[str], *, recipe: Recipe | None = None) -> None:
    """Write a fitted model to a file, or say what in it a file of plain values cannot hold.

    Parameters
    ----------
    model : LogEuclideanMetric, LogEuclideanMetricCV, CommonRange or Pipeline
        A fitted metric, or a fitted pipeline of one and a `KNeighborsClassifier`, a
        `KNeighborsRegressor` or a `Ridge`, perhaps after a `CommonRange`.
    path : str or path-like
        File to write, by custom ending in ``.npz``; it appears whole or not at all.
    recipe : Recipe, optional
        How the signals were read that the model was trained on, see `spdmetric.io.signals`.

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
    content = {"spdmetric": __version__, "model": _tree_of(model, arrays)}
    write_model_file(path, content | ({} if recipe is None else {"recipe": recipe.plain()}), arrays)


def load_recipe(path: str | PathLike[str]) -> Recipe | None:
    """How the signals were read that a model was trained on; None for a model of matrices."""
    plain = read_model_file(path)[0].get("recipe")
    with reading(path):
        return None if plain is None else Recipe.of(plain)


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` or ``spdmetric fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.  Reading it cannot run code, and needs memory in proportion to its size.

    Returns
    -------
    model : LogEuclideanMetric, LogEuclideanMetricCV, CommonRange or Pipeline
        Fitted; it gives the same numbers, bit for bit, as the one that was saved.
    """
    headers = npz_headers(Path(path))
    with reading(path):
        metadata = _read_metadata(Path(path), headers)
    try:
        _check_tree(metadata["model"], {k: v for k, v in headers.items() if k != "metadata"})
        metadata, arrays = read_model_file(path)
        return _model_of(metadata["model"], arrays, {})
    except FileError:
        raise
    except Exception as error:  # the digest holds, so whoever wrote it was not `save`
        why = described(error)
        raise FileError(f"{path} says that it is a {FORMAT}, but its content is not one ({why}).") from error


def write_model_file(path: str | PathLike[str], metadata: State, arrays: Arrays) -> None:
    """Write metadata and arrays, with format, version and digest."""
    content = {"format": FORMAT, "version": VERSION, **metadata}
    text = json.dumps({**content, "sha256": _digest(content, arrays)}, indent=1, allow_nan=False)
    if len(text) > _LONGEST_METADATA:
        todo = "learn from labels that are numbers or strings, y.astype(str) for instance, not objects"
        raise ValueError(f"The metadata of the model have {len(text)} letters, too many for a file: {todo}.")
    write_npz(Path(path), {"metadata": np.array(text.encode("ascii")), **arrays})


def read_model_file(path: str | PathLike[str]) -> tuple[State, Arrays]:
    """Read what `write_model_file` wrote, or say why not."""
    headers = npz_headers(Path(path))
    with reading(path):
        metadata = _read_metadata(Path(path), headers)
        arrays = read_npz(Path(path), [name for name in headers if name != "metadata"])
        if metadata.pop("sha256", None) != _digest(metadata, arrays):
            altered = "it was altered after it was saved (its SHA-256 digest does not match)"
            raise Refused(f"{altered}: fetch it again, or save the {FORMAT} anew.")
    return metadata, arrays


def _read_metadata(path: Path, headers: Mapping[str, Header]) -> State:
    """The metadata of a file of a format that is known here."""
    if "metadata" not in headers:
        raise Refused(f"it is an .npz file but not a {FORMAT} of spdmetric.save or 'spdmetric fit'.")
    shape, dtype = headers["metadata"]
    if shape != () or dtype.kind != "S" or dtype.itemsize > _LONGEST_METADATA:
        raise Refused(
            f"its metadata are no text of at most {_LONGEST_METADATA} letters, but {dtype} {shape}."
        )
    text = read_npz(path, ["metadata"])["metadata"].item()
    metadata = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(metadata, dict):
        raise Refused(f"it is not a {FORMAT}: its metadata are a {type(metadata).__name__}.")
    found, version, writer = (metadata.get(key) for key in ("format", "version", "spdmetric"))
    if found != FORMAT:
        raise Refused(f"it is not a {FORMAT}: its metadata say {str(found)[:80]!r}.")
    if type(version) is not int or version < 1:
        raise Refused(f"it is corrupt: its format has version {str(version)[:80]!r}.")
    if version > VERSION:
        newer = f"it is a {FORMAT} of format {version}, written by spdmetric {shortened(writer)}"
        raise Refused(f"{newer}; this spdmetric reads formats up to {VERSION}: upgrade it.")
    return metadata


def _refuse_constant(name: str) -> float:
    raise Refused(f"its metadata hold {name}; expected finite numbers.")


def _digest(metadata: State, arrays: Arrays) -> str:
    """SHA-256 over the metadata and the name, length and bytes of every array."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode("ascii"))
    for name in sorted(arrays):
        header, content = npy_parts(arrays[name])
        digest.update(f"\n{name} {len(header) + len(content)}\n".encode() + header)
        digest.update(content)
    return digest.hexdigest()


def _state_of(step: Any) -> State:
    if isinstance(step, ClassMeans | Neighbors):
        return step._asdict()
    if isinstance(step, KNeighborsClassifier):  # from these scikit-learn builds the same neighbors again
        names = getattr(step, "feature_names_in_", None)
        return {"vectors": step._fit_X, "labels": step.classes_[step._y], "names": names}
    if isinstance(step, KNeighborsRegressor):
        values = np.asarray(step._y, dtype=np.float64)
        found = {"vectors": step._fit_X, "values": values.reshape(len(values), -1), "one": values.ndim == 1}
        return found | {"names": getattr(step, "feature_names_in_", None)}
    if isinstance(step, Ridge):
        found = {"coefficients": np.atleast_2d(step.coef_), "intercepts": np.atleast_1d(step.intercept_)}
        return found | {"one": np.ndim(step.coef_) == 1, "names": getattr(step, "feature_names_in_", None)}
    if isinstance(step, CommonRange):
        return {name: getattr(step, name) for name in FIELDS["CommonRange"]}
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
    if kind in ("ClassMeans", "Neighbors"):
        return _CLASSES[kind](**state)
    step = _CLASSES[kind](**parameters)
    if kind == "KNeighborsClassifier":
        step.fit(state["vectors"], state["labels"]).kneighbors(state["vectors"][:1])  # as `_try` below
        if state["names"] is not None:
            step.feature_names_in_ = state["names"]
        return step
    if kind == "CommonRange":
        vars(step).update(state)
        return step
    if kind in ("KNeighborsRegressor", "Ridge"):
        return _regressor(step, state)
    step.embedding_ = Embedding(**{field.name: state[field.name] for field in fields(Embedding)})
    S, W = state["coordinates"], state["factor"]
    point = RankPoint(S) if state["low_rank"] else BallPoint(Spectrum(S[:, -1], S[:, :-1]), np.eye(len(W)))
    point.factor = W
    rows = state["history"].tolist()
    history = tuple(Record(int(i), value, gap, d, int(n), t) for i, value, gap, d, n, t in rows)
    how = state["residual"], state["multiplier"], history
    step.solution_ = Solution(point, state["value"], Status[state["status"]], *how)
    if kind == "LogEuclideanMetricCV":
        state["path_"] = RadiusPath(*state["path_"])
    vars(step).update({k: v for k, v in state.items() if k.endswith("_") and k != "components_"})
    return step


def _regressor(step: KNeighborsRegressor | Ridge, state: State) -> KNeighborsRegressor | Ridge:
    if isinstance(step, KNeighborsRegressor):
        step.fit(state["vectors"], state["values"][:, 0] if state["one"] else state["values"])
    else:
        B, a = state["coefficients"], state["intercepts"]
        step.coef_, step.intercept_ = (B[0], float(a[0])) if state["one"] else (B, a)
        step.n_features_in_ = B.shape[1]
    if state["names"] is not None:
        step.feature_names_in_ = state["names"]
    return step


def _try(step: Any) -> None:
    """Use a metric once, so that what does not go together is told here and not later."""
    check_count("chunk_size", step.chunk_size, optional=True)
    B, center = step.embedding_.basis, step.embedding_.center
    if len(B) <= _LARGEST_TRIED:  # the center of the training matrices, the identity beside their range
        X = B @ center @ B.T + np.mean(np.diag(center)) * (np.eye(len(B)) - B @ B.T)
        seen = step.transform if step.domains_ is None else step.embedding_.embed
        seen((X + X.T)[None] / 2)


def _check_fields(kind: str, state: State, sizes: dict[str, int]) -> None:
    """Compare values, or headers of arrays, with the table, and their sizes with each other."""
    rules = FIELDS[kind]
    if set(state) != set(rules):
        raise ValueError(f"expected the fields {sorted(rules)}, got {sorted(state)}")
    for name, letter in (("n_features_in_", "d"), ("low_rank", "low_rank")):
        if name in state and isinstance(state[name], int | np.integer | np.bool_):
            sizes[letter] = int(state[name])
    for name, rule in rules.items():
        (kinds, *letters), value = rule.split(), state[name]
        if kinds == "plain":
            _check_plain(name, value)
            continue
        if value is None and "?" in kinds:
            continue
        header = value if isinstance(value, Header) else Header(*_shape_and_dtype(value))
        paired = zip(letters, header.shape, strict=False)
        shape = tuple(_expected(letter, n, sizes) for letter, n in paired)
        if header.dtype.kind not in kinds or len(header.shape) != len(letters) or header.shape != shape:
            got = f"shape {header.shape} and dtype {header.dtype}"
            raise ValueError(f"{name} has {got}; expected '{rule}', {shape}")
        _check_finite(name, value, infinite="~" in kinds)


def _shape_and_dtype(value: Any) -> tuple[tuple[int, ...], np.dtype]:
    array = np.asarray(value)
    return array.shape, array.dtype


def _expected(letter: str, n: int, sizes: dict[str, int]) -> int:
    """What a size should be: a number, what follows from other sizes, what it was before, or free."""
    if letter.isdigit():
        return int(letter)
    if letter not in sizes:
        following = _FOLLOWING[letter](sizes) if letter in _FOLLOWING else None
        sizes[letter] = n if following is None else following
    if sizes[letter] < (letter != "h"):
        raise ValueError(f"a size is {sizes[letter]}; expected at least 1")
    return sizes[letter]


def _check_finite(name: str, value: Any, *, infinite: bool) -> None:
    """Refuse NaN, and infinity where it has no meaning, in an array, a number or a list of labels."""
    if isinstance(value, Header) or value is None:
        return
    array = np.asarray(value)
    if array.dtype == object:
        for item in array.ravel():
            _check_plain(name, item)
    elif array.dtype.kind == "f" and not (~np.isnan(array) if infinite else np.isfinite(array)).all():
        raise ValueError(f"{name} holds NaN or infinity; expected finite numbers")


def _check_plain(name: str, value: Any) -> None:
    """Refuse what is not made of numbers and strings, and NaN among them."""
    if value is None or isinstance(value, Header | str | bytes):
        return
    if isinstance(value, dict | list | tuple):
        for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _check_plain(name, item)
    elif isinstance(value, bool | int | float | np.generic | np.ndarray):
        _check_finite(name, value, infinite=True)
    else:
        raise ValueError(f"{name} holds a {type(value).__name__}; expected numbers and strings")


def _tree_of(model: Any, arrays: Arrays) -> State:
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    if [_PLACES.get(type(step)) for _, step in steps] not in _ORDERS:
        got = listed(type(step).__name__ for _, step in steps)
        known = (
            "a LogEuclideanClassifier, or a LogEuclideanMetric or LogEuclideanMetricCV, alone or before a "
            "KNeighborsClassifier, a KNeighborsRegressor or a Ridge, perhaps after a CommonRange"
        )
        raise ValueError(f"Expected {known}, got {got}: for other pipelines use skops, see docs/models.md.")
    sizes: dict[str, int] = {}
    trees = [(name, _step_tree(step, arrays, sizes)) for name, step in steps]
    if not isinstance(model, Pipeline):
        return trees[0][1]
    return {"class": "Pipeline", "parameters": _parameters(model, "pipeline", arrays), "steps": trees}


def _step_tree(step: Any, arrays: Arrays, sizes: dict[str, int]) -> State:
    place, kind = _PLACES[type(step)], type(step).__name__
    tree: State = {"class": kind}
    if place != "own head":
        check_is_fitted(step)
        tree |= {"parameters": _parameters(step, place, arrays), "requests": _requests(step)}
        tree["output"] = getattr(step, "_sklearn_output_config", {}).get("transform")
    if place == "classifier":
        parts = {"metric": step.metric_, "head": step._head}
        return tree | {"steps": [(name, _step_tree(part, arrays, sizes)) for name, part in parts.items()]}
    state = _state_of(step)
    tree["fitted"] = _encode_all(state, place, arrays)
    # What could not be loaded is not saved.
    _check_fields(kind, state, {} if place == "range" else sizes)
    return tree


def _requests(step: Any) -> dict[str, dict[str, Any]]:
    """Metadata that an estimator asks for."""
    routing = step.get_metadata_routing()
    asked = {m: getattr(routing, m).requests.items() for m in _REQUESTS if hasattr(routing, m)}
    return {method: {k: v for k, v in some if v is not None} for method, some in asked.items()}


def _parameters(step: Any, place: str, arrays: Arrays) -> State:
    left_out = ("steps", *_MACHINE)
    values = {name: value for name, value in step.get_params(deep=False).items() if name not in left_out}
    return _encode_all(values, place, arrays)


def _check_tree(tree: State, headers: Mapping[str, Header]) -> None:
    """Compare the headers of all arrays with the table, before any of them is read."""
    steps = [step for _, step in tree["steps"]] if tree["class"] == "Pipeline" else [tree]
    if [_PLACES.get(_CLASSES.get(step["class"], object)) for step in steps] not in _ORDERS:
        raise ValueError(f"it is made of {listed(step['class'] for step in steps)}")
    if steps[-1]["class"] == "LogEuclideanClassifier":
        steps[-1:] = parts = [part for _, part in steps[-1]["steps"]]
        if [_PLACES.get(_CLASSES.get(part["class"], object)) for part in parts] != ["metric", "own head"]:
            raise ValueError(f"its classifier is made of {listed(part['class'] for part in parts)}")
    sizes: dict[str, int] = {}
    for step in steps:
        apart = step["class"] == "CommonRange"
        _check_fields(step["class"], _decode_all(step["fitted"], headers), {} if apart else sizes)
    if extra := set(headers) - set(_places(tree)):
        raise ValueError(f"no field is stored in the array {listed(sorted(extra))}")


def _places(tree: Any) -> Iterator[str]:
    """Names of the arrays that a tree speaks of."""
    if isinstance(tree, dict):
        yield from (tree[kind] for kind in ("array", "scalar") if isinstance(tree.get(kind), str))
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _places(item)


def _model_of(tree: State, arrays: Arrays, sizes: dict[str, int]) -> Any:
    kind = tree["class"]
    parameters = _decode_all(tree.get("parameters", {}), arrays)
    for name in _MACHINE:
        parameters.pop(name, None)
    _check_plain("parameters", parameters)
    if "steps" in tree:
        steps = [(str(name), _model_of(step, arrays, sizes)) for name, step in tree["steps"]]
        if kind != "Pipeline":
            return _requesting(_classifier(parameters, *(part for _, part in steps)), tree["requests"])
        _check_together([step for _, step in steps])
        return Pipeline(steps, **parameters)
    state = _decode_all(tree["fitted"], arrays)
    _check_fields(kind, state, {} if kind == "CommonRange" else sizes)
    step = _fitted(kind, parameters, state)
    if _PLACES[type(step)] == "own head":
        return step
    if _PLACES[type(step)] == "metric":
        _try(step)
    if tree["output"] not in _OUTPUTS:
        raise ValueError(f"output is {tree['output']!r}; expected one of {_OUTPUTS}")
    if tree["output"] is not None:
        step.set_output(transform=tree["output"])
    return _requesting(step, tree["requests"])


def _check_together(steps: list[Any]) -> None:
    """Refuse steps that do not follow from each other, where their fields have no sizes in common."""
    if isinstance(steps[0], CommonRange):
        first, *steps = steps
        if steps[0].n_features_in_ != first.basis_.shape[1]:
            raise ValueError("the metric is not of the size of the common range")
    known = [step.classes_.tolist() for step in steps if getattr(step, "classes_", None) is not None]
    if len(known) == 2 and known[0] != known[1]:
        raise ValueError("the metric and the neighbors know different classes")


def _requesting(step: Any, requests: Mapping[str, Mapping[str, Any]]) -> Any:
    """The same estimator, asking for the metadata that it asked for."""
    with config_context(enable_metadata_routing=True):
        for method in filter(requests.get, _REQUESTS):
            getattr(step, f"set_{method}_request")(**requests[method])
    return step


def _classifier(parameters: State, metric: Any, head: ClassMeans | Neighbors) -> LogEuclideanClassifier:
    """The classifier of a metric and a head, if they go together."""
    if isinstance(head, Neighbors):
        c, n = len(metric.classes_), len(head.codes)
        if head.n_classes != c or not (head.codes.min() >= 0 and head.codes.max() < c):
            raise ValueError(f"the neighbors have classes other than the {c} of the metric")
        if not 1 <= head.n_neighbors <= n:
            raise ValueError(f"n_neighbors is {head.n_neighbors}, of {n} vectors")
        head = head._replace(n_classes=int(head.n_classes), n_neighbors=int(head.n_neighbors))
    return LogEuclideanClassifier(**parameters)._keep(metric, head)


def _decode_all(tree: State, arrays: Mapping[str, Any]) -> State:
    return {name: _decode(value, arrays) for name, value in tree.items()}


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


def _decode(tree: Any, arrays: Mapping[str, Any]) -> Any:
    """The inverse of `_encode`; with headers in place of arrays, what can be known without reading them."""
    if not isinstance(tree, dict):
        return [_decode(item, arrays) for item in tree] if isinstance(tree, list) else tree
    ((kind, content),) = tree.items()
    makers: dict[str, Callable[[Any], Any]] = {
        **{"tuple": tuple, "dict": dict, "array": arrays.__getitem__},
        "scalar": lambda place: arrays[place] if isinstance(arrays[place], Header) else arrays[place][()],
        "objects": lambda items: np.array([None, *items], dtype=object)[1:],  # one axis, whatever the items
    }
    return makers[kind](_decode(content, arrays))
