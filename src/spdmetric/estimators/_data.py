"""The one place where `fit` and `transform` look at what kind of array X is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from spdmetric.estimators._inputs import class_scale, weigh
from spdmetric.estimators._problem import Data
from spdmetric.estimators._sources import (
    LocalData,
    check_stored,
    fits,
    in_memory,
    is_stored,
    row_chunks,
    stored_shape,
)
from spdmetric.estimators._storing import embed
from spdmetric.estimators._tensors import to_numpy

Map = Callable[..., Iterable[Any]]

# parameter, value that needs the matrices in one process, value that does not
_NOT_ON_CLUSTERS = (
    ("kernel", "gaussian", "linear"),
    ("solver", "newton", "trust-region"),
    ("solver", "stochastic", "trust-region"),
)


def is_dask(X: Any) -> bool:
    """Whether this is a dask array; dask is not imported to find out."""
    return type(X).__module__.startswith("dask.array")


def data_of(metric: Any, X: Any, y: Any, sample_weight: Any, map_chunks: Map) -> Data:
    """Check the data of a metric where they are: in memory, in a file, or on a cluster.

    Sets ``n_features_in_`` and ``classes_`` of the metric.
    """
    if is_dask(X):
        return _dask_data(metric, X, y, sample_weight, map_chunks)
    if is_stored(X):
        rows = row_chunks(stored_shape(X), metric.chunk_size)
        return _stored_data(metric, X, y, sample_weight, rows, map_chunks)
    X, codes, weight = metric._check_data(X, y, sample_weight)
    return in_memory(X, codes, weight, metric.chunk_size, map_chunks)


def _stored_data(
    metric: Any, X: Any, y: Any, sample_weight: Any, rows: list[slice], map_chunks: Map
) -> LocalData:
    validate_data(metric, X, reset=True, skip_check_array=True)
    n = X.shape[0]
    checked = check_stored(X, metric._check_chunk, rows, map_chunks)
    X = checked if is_stored(X) else checked[:n]
    codes = metric._check_labels(X, to_numpy(y))
    X, codes, weight = weigh(X, codes, to_numpy(sample_weight), metric.classes_, metric.class_weight)
    if X.shape[0] < n:  # the chunks have moved
        rows = row_chunks(X.shape, metric.chunk_size)
    return LocalData(X, codes, weight, rows=rows, map=map_chunks)


def _dask_data(metric: Any, X: Any, y: Any, sample_weight: Any, map_chunks: Map) -> Data:
    from spdmetric import distributed

    X, y, weight = distributed.aligned(X, y, sample_weight)
    client = distributed.current_client()
    if client is None:
        rows = distributed.chunk_rows(X)
        source = X.compute() if fits(X.shape[0], X.shape[1]) else distributed.Computed(X)
        weight = None if weight is None else weight.compute()
        return _stored_data(metric, source, y.compute(), weight, rows, map_chunks)
    for name, value, other in _NOT_ON_CLUSTERS:
        if getattr(metric, name) == value:
            raise ValueError(
                f"{name}={value!r} needs the matrices in this process, and those of a dask array stay on the "
                f"workers: use {name}={other!r}, or fit on X.compute()."
            )
    validate_data(metric, X, reset=True, skip_check_array=True)
    cluster = distributed.Cluster(client)
    surveyed = distributed.survey_all(cluster, X, y, weight, metric._rank_asked())
    classes = surveyed.classes
    check_classification_targets(classes)
    metric._set_classes(classes)
    totals = surveyed.class_weights(classes)
    scale = class_scale(totals.sum(), totals, classes, metric.class_weight)
    return surveyed.data(cluster, X.shape, classes, scale)


def vectors_on_cluster(metric: Any, X: Any) -> Any:
    """Vectors of a dask array, as a dask array."""
    from spdmetric import distributed

    validate_data(metric, X, reset=False, skip_check_array=True)
    vectors = partial(embed, metric._embedding, metric.radius_)
    return distributed.transform(X, vectors, metric._n_features_out, metric._rank_asked())
