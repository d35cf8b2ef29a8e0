"""Model files: fitted metrics and classifiers, and pipelines of what comes before and after them.

A model file is a plain ``.npz``: a JSON text, ``metadata``, with a SHA-256 digest against damage,
and arrays named by their places in the model.  All that is stored of a fitted estimator is listed
in `spdmetric.io.kinds`, and compared with it when a file is written and when it is read.  Nothing else is
made of a file: it cannot run code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators import LogEuclideanClassifier, LogEuclideanMetricCV
from spdmetric.estimators.classifier import Opinion
from spdmetric.estimators.heads import ClassMeans, Neighbors
from spdmetric.io.files import FileError, Header, Refused, described, listed, reading, shortened
from spdmetric.io.kinds import FOLLOWING, KINDS, OWN_HEADS, PARAMETERS, State, class_of, kind_of
from spdmetric.io.npy import npy_parts, npz_headers, read_npz, write_npz
from spdmetric.io.signals import Recipe

FORMAT, VERSION = "spdmetric model", 1  # raised whenever a file of the former version would be read wrongly

_MACHINE = ("memory", "n_jobs")  # parameters that speak of a machine, not of a model: never in a file
_OUTPUTS = (None, "default", "pandas", "polars")  # of set_output
_LONGEST_METADATA = 4 * 2**20  # bytes; parsed they take some twenty times as much
_REQUESTS = ("fit", "partial_fit", "score")  # methods whose metadata requests are kept

# Of a classifier; the second two if it was adapted with labels.
_PARTS = ("metric", "head", "own metric", "own head")

Arrays = dict[str, np.ndarray]
Sizes = dict[str, int]
Tree = bool | int | float | str | list["Tree"] | dict[str, "Tree"] | None  # what JSON holds
_Part = TypeVar("_Part")
Requests = dict[str, bool | str]  # metadata that a method asks for, see scikit-learn's routing


def save(model: BaseEstimator, path: str | PathLike[str], *, recipe: Recipe | None = None) -> None:
    """Write a fitted model to a file, or say what in it a file of plain values cannot hold.

    Parameters
    ----------
    model : estimator
        A fitted `LogEuclideanMetric`, `LogEuclideanMetricCV` or `LogEuclideanClassifier`, another
        classifier of the registry that ``spdmetric methods`` lists, or a pipeline of some of the classes
        in the page on files and models.
    path : str or path-like
        File to write, whose name ends in ``.npz`` or in nothing; it appears whole or not at all.
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

    if Path(path).suffix.lower() not in ("", ".npz"):
        todo = "A model file holds arrays and text, no pickle: save it under another name"
        raise ValueError(f"{path}: expected a name that ends in .npz. {todo}.")
    arrays: Arrays = {}
    tree = _tree_of(model, arrays, _Chain())
    _check_parts(tree)  # what could not be loaded is not saved
    content = {"spdmetric": __version__, "model": tree}
    write_model_file(path, content | ({} if recipe is None else {"recipe": recipe.plain()}), arrays)


def load_recipe(path: str | PathLike[str]) -> Recipe | None:
    """How the signals were read that a model was trained on; None for a model of matrices."""
    plain = read_model_file(path)[0].get("recipe")
    with reading(path):
        return None if plain is None else Recipe.of(plain)


def load(path: str | PathLike[str]) -> BaseEstimator:
    """Read a model that `save` or ``spdmetric fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.  Reading it cannot run code, and needs memory in proportion to its size.

    Returns
    -------
    model : estimator
        Fitted; it gives the same numbers, bit for bit, as the one that was saved.
    """
    metadata, arrays = read_model_file(path)
    try:
        tree = metadata["model"]
        _check_parts(tree)
        model = _model_of(tree, arrays, _Chain())
        if extra := set(arrays) - set(_places(tree)):
            raise ValueError(f"no field is stored in the array {listed(sorted(extra))}")
    except (FileError, ImportError):
        raise
    except Exception as error:  # the digest holds, so whoever wrote it was not `save`
        why = described(error)
        raise FileError(f"{path} says that it is a {FORMAT}, but its content is not one ({why}).") from error
    return model


def input_of(model: BaseEstimator) -> tuple[str, int | None]:
    """What a model takes, "matrices" or "signals", and their size or number of channels."""
    chain, form = _Chain(), ""
    for step in _estimators(model):
        kind = kind_of(step)
        if kind is None:
            raise ValueError(f"{type(step).__name__} cannot be stored in a model file.")
        form = form or KINDS[kind].takes.split()[0]
        if (size := chain.check(kind, _state_of(step, kind))) is not None:
            return form, size
    return form, None


def _estimators(model: BaseEstimator) -> Iterator[BaseEstimator]:
    """The estimators that a model is made of, in their order."""
    parts = _parts(model)
    if parts is None:
        yield model
    for _, part in parts or ():
        yield from _estimators(part)


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


def _check_fields(kind: str, state: State, sizes: Sizes) -> None:
    """Compare values with the table, and their sizes with each other."""
    rules = _rules(kind)
    if set(state) != set(rules):
        raise ValueError(f"expected the fields {sorted(rules)}, got {sorted(state)}")
    for name, rule in rules.items():
        letter, value = rule.partition("=")[2], state[name]
        sized = letter and isinstance(value, int | np.integer | np.bool_)
        if sized and sizes.setdefault(letter, int(value)) != value:
            raise ValueError(f"{name} is {value}; expected {sizes[letter]}")
    for name, rule in rules.items():
        (kinds, *letters), value = rule.partition("=")[0].split(), state[name]
        if kinds == "plain":
            _check_plain(name, value)
            continue
        if value is None and "?" in kinds:
            continue
        array = np.asarray(value)
        shape = tuple(_expected(letter, n, sizes) for letter, n in zip(letters, array.shape, strict=False))
        if array.dtype.kind not in kinds or array.ndim != len(letters) or array.shape != shape:
            got = f"shape {array.shape} and dtype {array.dtype}"
            raise ValueError(f"{name} has {got}; expected '{rule}', {shape}")
        _check_finite(name, value, infinite="~" in kinds)


def _rules(kind: str) -> Mapping[str, str]:
    """The fields of a kind; of what scikit-learn does with vectors, also their names."""
    named = KINDS[kind].takes.startswith("vectors") and kind not in OWN_HEADS
    return {**KINDS[kind].fields, **({"names": "UO? v"} if named else {})}


class _Chain:
    """The sizes that go from each step of a model to the next."""

    def __init__(self) -> None:
        self.form, self.shared = "", Sizes()
        self.size: int | None = None
        self._first: int | None = None  # size of the matrices of the metric of a classifier

    def check(self, kind: str, state: State) -> int | None:
        """Compare the fields of the next step with the table and with what comes to it: the size of that."""
        takes, gives = (KINDS[kind].takes.split(), KINDS[kind].gives.split())
        if self.form != takes[0] and (self.form or takes[0] == "vectors"):
            given = self.form or "matrices or signals"
            raise ValueError(f"{kind} takes {takes[0]}, and cannot follow where {given} are given")
        sizes = dict(self.shared)
        if self.size is not None:
            sizes[takes[-1]] = self.size
        _check_fields(kind, state, sizes)
        self.form, self.size = gives[0], _known(gives[-1], sizes)
        self.shared = {"c": sizes["c"]} if "c" in sizes else {}
        taken = _known(takes[-1], sizes)
        self._first = taken if takes[0] == "matrices" else self._first
        return taken

    def along(self, made: str, parts: Iterable[_Part]) -> Iterator[_Part]:
        """The parts of a model; the second metric of a classifier takes what the first one takes."""
        for k, part in enumerate(parts):
            if made == "LogEuclideanClassifier" and k == _PARTS.index("own metric"):
                self.form, self.size = "matrices", self._first
            yield part


def _known(letter: str, sizes: Sizes) -> int | None:
    """A size, if the fields tell it."""
    following = FOLLOWING.get(letter, lambda _: None)(sizes) if letter not in sizes else None
    return sizes.get(letter, following)


def _expected(letter: str, n: int, sizes: dict[str, int]) -> int:
    """What a size should be: a number, what follows from other sizes, what it was before, or free."""
    if letter.isdigit():
        return int(letter)
    if letter not in sizes:
        following = FOLLOWING[letter](sizes) if letter in FOLLOWING else None
        sizes[letter] = n if following is None else following
    if sizes[letter] < (letter != "h"):
        raise ValueError(f"a size is {sizes[letter]}; expected at least 1")
    return sizes[letter]


def _check_finite(name: str, value: object, *, infinite: bool) -> None:
    """Refuse NaN, and infinity where it has no meaning, in an array, a number or a list of labels."""
    array = np.asarray(value)
    if array.dtype == object:
        for item in array.ravel():
            _check_plain(name, item)
    elif array.dtype.kind == "f" and not (~np.isnan(array) if infinite else np.isfinite(array)).all():
        raise ValueError(f"{name} holds NaN or infinity; expected finite numbers")


def _check_plain(name: str, value: object) -> None:
    """Refuse what is not made of numbers and strings, and NaN among them."""
    if value is None or isinstance(value, str | bytes):
        return
    if isinstance(value, dict | list | tuple):
        for item in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _check_plain(name, item)
    elif isinstance(value, bool | int | float | np.generic | np.ndarray):
        _check_finite(name, value, infinite=True)
    elif isinstance(value, BaseEstimator) and type(value) in PARAMETERS.values():
        _check_plain(name, value.get_params(deep=False))
    else:
        raise ValueError(f"{name} holds a {type(value).__name__}; expected numbers and strings")


def _parts(model: BaseEstimator) -> Sequence[tuple[str, BaseEstimator]] | None:
    """What a model is made of, None for a single estimator."""
    if type(model) is Pipeline:
        return model.steps
    if type(model) is LogEuclideanClassifier:
        check_is_fitted(model)
        own = () if model._own is None else (model._own.metric, model._own.head)
        return list(zip(_PARTS, (model.metric_, model._head, *own), strict=False))
    return None


def _tree_of(model: BaseEstimator, arrays: Arrays, chain: _Chain) -> State:
    """All that is stored of a model, compared with the table."""
    parts, kind = _parts(model), kind_of(model)
    if parts is None and kind is None:
        known = listed(name for name in KINDS if name not in OWN_HEADS)
        got = type(model).__name__
        raise ValueError(
            f"Expected a LogEuclideanClassifier, or a pipeline of some of {known}, got {got}: "
            "for others use skops, see docs/models.md."
        )
    tree: State = {"class": type(model).__name__}
    place = KINDS[kind].place if kind else "pipeline"
    if kind not in OWN_HEADS:
        check_is_fitted(model)
        tree["parameters"] = _parameters(model, place, arrays)
        if type(model) is not Pipeline:
            tree["requests"] = _requests(model)
            tree["output"] = getattr(model, "_sklearn_output_config", {}).get("transform")
    if own := getattr(model, "_own", None):
        tree["own share"] = own.share
    if parts is not None or kind is None:
        steps = chain.along(tree["class"], parts or ())
        return tree | {"steps": [(name, _tree_of(part, arrays, chain)) for name, part in steps]}
    state = _state_of(model, kind)
    tree["fitted"] = _encode_all(state, place, arrays)
    chain.check(kind, state)
    return tree


def _state_of(step: BaseEstimator, kind: str) -> State:
    named = {"names": getattr(step, "feature_names_in_", None)} if "names" in _rules(kind) else {}
    return KINDS[kind].by.state(step, KINDS[kind].fields) | named


def _requests(step: BaseEstimator) -> dict[str, Requests]:
    """Metadata that an estimator asks for."""
    # As set_fit_request left it; get_metadata_routing() of RidgeClassifierCV calls itself without an end.
    routing = getattr(step, "_metadata_request", None)
    asked = {m: getattr(routing, m).requests.items() for m in _REQUESTS if hasattr(routing, m)}
    return {method: {k: v for k, v in some if v is not None} for method, some in asked.items()}


def _parameters(step: BaseEstimator, place: str, arrays: Arrays) -> State:
    left_out = ("steps", *_MACHINE)
    values = {name: value for name, value in step.get_params(deep=False).items() if name not in left_out}
    return _encode_all(values, place, arrays)


def _check_parts(tree: State, within: str = "") -> None:
    """Refuse what is made of anything else than estimators of the table, or otherwise than `save` does it."""
    kind = tree["class"]
    if kind == "Pipeline" and not within:
        for _, step in tree["steps"]:
            _check_parts(step, kind)
    elif kind == "LogEuclideanClassifier":
        classes = [part["class"] for _, part in tree["steps"]]
        metric, own = "LogEuclideanMetricCV", ["LogEuclideanMetricCV", "ClassMeans"]
        if classes not in [[metric, head, *more] for head in OWN_HEADS for more in ([], own)]:
            raise ValueError(f"its classifier is made of {listed(classes)}")
    elif kind not in KINDS or kind in OWN_HEADS:
        raise ValueError(f"it is made of {shortened(kind)}")


def _places(tree: Tree) -> Iterator[str]:
    """Names of the arrays that a tree speaks of."""
    if isinstance(tree, dict):
        yield from (place for kind in ("array", "scalar") if isinstance(place := tree.get(kind), str))
    for item in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _places(item)


def _model_of(tree: State, arrays: Arrays, chain: _Chain) -> BaseEstimator:
    kind = tree["class"]
    parameters = _decode_all(tree.get("parameters", {}), arrays)
    for name in _MACHINE:
        parameters.pop(name, None)
    _check_plain("parameters", parameters)
    if kind in ("Pipeline", "LogEuclideanClassifier"):
        parts = chain.along(kind, tree["steps"])
        steps = [(str(name), _model_of(part, arrays, chain)) for name, part in parts]
        if kind == "Pipeline":
            _check_classes([step for _, step in steps])
            return Pipeline(steps, **parameters)
        classifier = _classifier(parameters, tree.get("own share"), *(part for _, part in steps))
        return _requesting(classifier, tree["requests"])
    state = _decode_all(tree["fitted"], arrays)
    size = chain.check(kind, state)
    if kind in OWN_HEADS:
        return class_of(kind)(**state)
    step, names = class_of(kind)(**parameters), state.pop("names", None)
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()
    step = KINDS[kind].by.fitted(step, state)
    KINDS[kind].by.trial(step, size)
    if names is not None:
        step.feature_names_in_ = names
    if tree["output"] not in _OUTPUTS:
        raise ValueError(f"output is {tree['output']!r}; expected one of {_OUTPUTS}")
    if tree["output"] is not None:
        step.set_output(transform=tree["output"])
    return _requesting(step, tree["requests"])


def _check_classes(steps: list[BaseEstimator]) -> None:
    """Refuse a pipeline whose steps know different classes."""
    known = [step.classes_.tolist() for step in steps if getattr(step, "classes_", None) is not None]
    if any(classes != known[0] for classes in known):
        raise ValueError("its steps know different classes")


def _requesting(step: BaseEstimator, requests: Mapping[str, Requests]) -> BaseEstimator:
    """The same estimator, asking for the metadata that it asked for."""
    with config_context(enable_metadata_routing=True):
        for method in filter(requests.get, _REQUESTS):
            getattr(step, f"set_{method}_request")(**requests[method])
    return step


def _classifier(
    parameters: State, share: Any, metric: LogEuclideanMetricCV, head: ClassMeans | Neighbors, *own: Any
) -> LogEuclideanClassifier:
    """The classifier of a metric and a head, if they go together."""
    if metric.classes_ is None:
        raise ValueError("the metric was learned from numbers, and knows no classes")
    if isinstance(head, Neighbors):
        c, n = len(metric.classes_), len(head.codes)
        if head.n_classes != c or not (head.codes.min() >= 0 and head.codes.max() < c):
            raise ValueError(f"the neighbors have classes other than the {c} of the metric")
        if not 1 <= head.n_neighbors <= n:
            raise ValueError(f"n_neighbors is {head.n_neighbors}, of {n} vectors")
        head = head._replace(n_classes=int(head.n_classes), n_neighbors=int(head.n_neighbors))
    _check_classes([metric, *own[:1]])
    if own and not (type(share) is float and 0 < share < 1):
        raise ValueError(f"own share is {share!r}; expected a number between 0 and 1")
    second = Opinion(*own)._replace(share=share) if own else None
    return LogEuclideanClassifier(**parameters)._keep(metric, head, second)


def _decode_all(tree: State, arrays: Arrays) -> State:
    return {name: _decode(value, arrays) for name, value in tree.items()}


def _encode_all(values: State, place: str, arrays: Arrays) -> State:
    return {name: _encode(value, f"{place}.{name}", arrays) for name, value in values.items()}


def _encode(value: Any, place: str, arrays: Arrays) -> Tree:
    """What JSON holds of a value: itself, or its kind and content; arrays go to ``arrays``."""
    if value is None or type(value) in (bool, int, str) or (type(value) is float and isfinite(value)):
        return value
    kind = type(value)
    array = np.asarray(value) if isinstance(value, float | np.ndarray | np.generic) else None
    if array is not None and array.dtype.kind in "biufSU":
        while place in arrays:  # of a step before, of the same kind
            place += "'"
        arrays[place] = array
        return {"array" if kind is np.ndarray else "scalar": place}
    if kind in (list, tuple) or (array is not None and array.dtype == object and array.ndim == 1):
        items = [_encode(item, f"{place}.{i}", arrays) for i, item in enumerate(value)]
        return items if kind is list else {"tuple" if kind is tuple else "objects": items}
    if kind is dict:
        pairs: list[Tree] = [
            [_encode(k, place, arrays), _encode(v, f"{place}.{k}", arrays)] for k, v in value.items()
        ]
        return {"dict": pairs}
    if kind in PARAMETERS.values():
        return {"estimator": [kind.__name__, _encode(value.get_params(deep=False), place, arrays)]}
    name = place.split(".")[1]
    got = f"{name}={value!r}" if array is None else f"{name} has dtype {array.dtype}, which"
    todo = f"call set_params({name}=...) with one first, or use skops, see docs/models.md"
    raise ValueError(f"{got} cannot be stored in a model file, only plain numbers and strings: {todo}.")


def _decode(tree: Tree, arrays: Arrays) -> Any:
    """The inverse of `_encode`."""
    if not isinstance(tree, dict):
        return [_decode(item, arrays) for item in tree] if isinstance(tree, list) else tree
    ((kind, content),) = tree.items()
    makers: dict[str, Callable[[Any], Any]] = {
        **{"tuple": tuple, "dict": dict, "array": arrays.__getitem__},
        "scalar": lambda place: arrays[place][()],
        "objects": lambda items: np.array([None, *items], dtype=object)[1:],  # one axis, whatever the items
        "estimator": lambda named: PARAMETERS[named[0]](**named[1]),
    }
    return makers[kind](_decode(content, arrays))
