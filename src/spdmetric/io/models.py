"""Model files: fitted estimators and pipelines in the format of skops, without pickles.

A file names the types that it is made of.  Those of `TRUSTED` and those that skops trusts by itself are made;
a file that names another one is refused before anything is made of it.
"""

from __future__ import annotations

import json
from contextlib import suppress
from copy import copy
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from spdmetric.io.arrays import member_header, open_archive
from spdmetric.io.atomic import write_atomically
from spdmetric.io.files import FileError, check_size, describe_error, explain_unreadable, list_some, shorten
from spdmetric.io.signals import Recipe, event_labels

FORMAT, VERSION = "spdmetric model", 1  # raised whenever a file of the former version would be read wrongly

# Every type of ours that a fitted model holds, and those of others that the registry's pipelines need and
# skops does not trust by itself.  Whoever adds a record to an estimator adds its name here.
TRUSTED = frozenset(
    {
        "spdmetric.estimators.metric.LogEuclideanMetric",
        "spdmetric.estimators.cv.LogEuclideanMetricCV",
        "spdmetric.estimators.classifier.LogEuclideanClassifier",
        "spdmetric.estimators.regressor.LogEuclideanRegressor",
        "spdmetric.estimators.heads.ClassMeans",
        "spdmetric.estimators.heads.Ridge",
        "spdmetric.estimators.heads.Neighbors",
        "spdmetric.estimators.embedding.Embedding",
        "spdmetric.objectives.start.Start",
        "spdmetric.estimators._adaptation.LabeledVectors",
        "spdmetric.estimators.filterbank.FilterBankCovariances",
        "spdmetric.estimators.preprocessing.CommonRange",
        "spdmetric.estimators.preprocessing.Shrinkage",
        "spdmetric.estimators.transfer.TransferClassifier",
        "spdmetric.io.signals.Recipe",
        "spdmetric.manifolds.BallPoint",
        "spdmetric.linalg.batch.Views",
        "spdmetric.manifolds.RankPoint",
        "spdmetric.manifolds.ProductPoint",
        "spdmetric.solvers.result.Record",
        "spdmetric.solvers.result.Solution",
        "spdmetric.comparison.baselines.FirstView",
        "spdmetric.comparison.baselines.NearestNeighbor",
        "pyriemann.classification.FgMDM",
        "pyriemann.classification.MDM",
        "pyriemann.estimation.Covariances",
        "pyriemann.spatialfilters.CSP",
        "pyriemann.tangentspace.FGDA",
        "pyriemann.tangentspace.TangentSpace",
        # Of a choice, and of nearest neighbors.
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.utils._bunch.Bunch",
    }
)
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pyriemann", "skops")


def save(model: BaseEstimator, path: str | PathLike[str], *, recipe: Recipe | None = None) -> None:
    """Write a fitted model to a file, or say what in it a model file does not hold.

    Parameters
    ----------
    model : estimator
        A fitted estimator of this package, a classifier that ``spdmetric methods`` lists, or a pipeline of
        these and of scikit-learn's estimators.
    path : str or path-like
        File to write, whose name ends in ``.skops`` or in nothing; it appears whole or not at all.
    recipe : Recipe, optional
        How the signals were read that the model was trained on, see `spdmetric.io.signals`.

    Notes
    -----
    The file holds what the model keeps of its training data: vectors and labels of the training matrices,
    for nearest neighbors and for ``adapt(X, y)``.

    Examples
    --------
    >>> import spdmetric, tempfile
    >>> from spdmetric.datasets import make_toy
    >>> X, y, X_new, _ = make_toy(n_train=20, n_test=4, d=4, random_state=0)
    >>> metric = spdmetric.LogEuclideanMetric(radius=2.0).fit(X, y)
    >>> path = f"{tempfile.mkdtemp()}/metric.skops"
    >>> spdmetric.save(metric, path)
    >>> bool((spdmetric.load(path).transform(X_new) == metric.transform(X_new)).all())
    True
    """
    from skops.io import dumps

    if Path(path).suffix.lower() not in ("", ".skops"):
        raise ValueError(f"{path}: expected a name that ends in .skops: a model file is no pickle.")
    check_is_fitted(model)
    content = {"format": FORMAT, "version": VERSION, "versions": _versions(), "recipe": recipe}
    try:
        data = dumps(content | {"model": _without_streams(model)})
    except Exception as error:
        todo = "After set_fit_request or set_score_request it refers to itself, which skops does not store"
        raise ValueError(f"The model cannot be stored ({describe_error(error)}). {todo}.") from error
    if unknown := _unknown_types(data):
        todo = "set the parameter that holds it to a plain value first, as set_params(callback=None)"
        raise ValueError(f"The model holds {list_some(unknown)}, which a model file does not hold: {todo}.")
    _check_model(model)
    write_atomically(path, data)


def load(path: str | PathLike[str]) -> BaseEstimator:
    """Read a model that `save` or ``spdmetric fit`` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.  It is made of types that are known here; another one is refused by name.

    Returns
    -------
    model : estimator
        Fitted; it gives the same numbers, bit for bit, as the one that was saved.
    """
    return read_content(path)["model"]


def load_recipe(path: str | PathLike[str]) -> Recipe | None:
    """How the signals were read that a model was trained on; None for a model of matrices."""
    return read_content(path)["recipe"]


def read_content(path: str | PathLike[str]) -> dict[str, Any]:
    """All that a model file holds: model, recipe and the versions of the packages that wrote it."""
    from skops.io import loads

    with explain_unreadable(path):
        data = _read_checked(Path(path))
        if unknown := _unknown_types(data):
            todo = "Nothing was made of it: load models of people you trust, saved by spdmetric.save"
            raise FileError(f"it holds {list_some(unknown)}, which is not a type of a model file. {todo}.")
        content = loads(data, trusted=sorted(TRUSTED))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileError(f"it is a skops file but not a {FORMAT} of spdmetric.save or 'spdmetric fit'.")
        if content.get("version") != VERSION:
            got, wrote = shorten(content.get("version")), shorten(content.get("versions"))
            raise FileError(f"it is of version {got}, not {VERSION}: load it with what wrote it, {wrote}.")
        _check_model(content["model"])
        if content["recipe"] is not None:
            _check_recipe(content["recipe"])
        return content


def _check_recipe(recipe: Recipe) -> None:
    """Raise on a recipe that `read_signals` would stumble over."""
    "".join([recipe.kind, *(recipe.channels or ())])  # words
    np.array([recipe.band or (0, 1), recipe.window or (0, 1)], dtype=np.float64)  # pairs of numbers
    if recipe.events is not None:
        event_labels(recipe.events)


def input_of(model: BaseEstimator) -> tuple[str, int | None]:
    """What a model takes, "matrices" or "signals", and their size or number of channels if that is known."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    modules = ("pyriemann.estimation", "spdmetric.estimators.filterbank")
    form = "signals" if type(steps[0]).__module__ in modules else "matrices"
    for step in steps:
        if hasattr(step, "n_features_in_"):
            return form, int(step.n_features_in_)
        for name in ("X_", "covmeans_", "filters_"):  # of classifiers and filters that do not say it
            if hasattr(step, name):
                return form, int(getattr(step, name).shape[-1])
    return form, None


def _without_streams(model: BaseEstimator) -> BaseEstimator:
    """The model, or a copy that begins a new stream at its next `partial_fit`."""
    kept = copy(model)
    if isinstance(model, Pipeline):
        kept.steps = [(name, _without_streams(step)) for name, step in model.steps]
    elif hasattr(model, "_stream"):
        kept._stream = None
    return kept


def _versions() -> dict[str, str]:
    from spdmetric import __version__

    found = {"spdmetric": __version__}
    for package in _PACKAGES:
        with suppress(PackageNotFoundError):  # pyRiemann is an extra
            found[package] = version(package)
    return found


def _unknown_types(data: bytes) -> list[str]:
    """Names of the types of a file that are neither in the list nor trusted by skops."""
    from skops.io import get_untrusted_types

    return sorted(set(get_untrusted_types(data=data)) - TRUSTED)


def _read_checked(path: Path) -> bytes:
    """The bytes of a file whose members are not compressed, and whose arrays are as large as they say."""
    stored = path.stat().st_size
    with open_archive(path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
        if "schema.json" not in sizes:
            raise FileError(f"it is a zip archive, but no skops file: it has {list_some(sizes)}.")
        if sum(sizes.values()) > stored:
            raise FileError(f"it unpacks to {sum(sizes.values())} bytes, more than its own {stored}.")
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                member_header(archive, info.filename)
        loaded: list[str] = []  # an array can be named any number of times
        json.loads(archive.read("schema.json"), object_hook=lambda node: loaded.append(str(node.get("file"))))
    check_size("the model", sum(sizes.get(name, 0) for name in loaded), stored)
    return path.read_bytes()


def _check_model(model: object) -> None:
    """Refuse what is no estimator, and a folder of pickles that scikit-learn would read."""
    if not isinstance(model, BaseEstimator):
        raise FileError(f"it holds a {type(model).__name__}; expected an estimator.")
    if getattr(model, "memory", None) is not None:
        raise FileError("the pipeline has a memory, a folder of pickles; call set_params(memory=None) first.")
