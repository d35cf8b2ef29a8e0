"""From what the user gives to what is learned from: the one place that asks what kind of array X is."""

from __future__ import annotations

import numpy as np

from spdmetric import validation
from spdmetric.estimators._settings import Settings
from spdmetric.linalg.symmetric import Array
from spdmetric.objectives import local
from spdmetric.objectives.local import Data, Labeled, LocalData, Map
from spdmetric.validation import ClassWeight, check_matrices, encode, to_numpy, weights_of

# parameter, value that needs the matrices in one process, value that does not
_NOT_ON_CLUSTERS = (
    ("kernel", "rbf", "linear"),
    ("solver", "newton", "trust-region"),
    ("solver", "stochastic", "trust-region"),
)


def data_of(
    X: Array, y: Array, sample_weight: Array, settings: Settings, *, rank: int | None, map: Map = map
) -> tuple[np.ndarray, Data]:
    """Check the data where they are, in memory, in a file, or on a cluster; return classes and data."""
    if is_dask(X):
        return _dask_data(X, y, sample_weight, settings, rank, map)
    if local.is_stored(X):
        rows = local.row_chunks(local.stored_shape(X), settings.chunk_size)
        return _stored_data(X, y, sample_weight, settings, rank, rows, map)
    classes, labeled = labeled_of(X, y, sample_weight, settings.class_weight, rank)
    return classes, local.in_memory(labeled.counting, settings.chunk_size, map)


def labeled_of(
    X: Array, y: Array, sample_weight: Array, class_weight: ClassWeight, rank: int | None
) -> tuple[np.ndarray, Labeled]:
    """Check matrices in memory; return the classes, and all matrices, those without weight too."""
    if is_dask(X):
        raise ValueError(
            "Cross-validation needs the matrices in this process, and those of a dask array stay on the "
            "workers: fit on X.compute(), or choose a radius and use LogEuclideanMetric."
        )
    X = check_matrices(to_numpy(X), rank)
    classes, codes = encode(X, y)
    return classes, Labeled(X, codes, weights_of(sample_weight, codes, classes, class_weight))


def _stored_data(
    X: Array, y: Array, weight: Array, settings: Settings, rank: int | None, rows: list[slice], map: Map
) -> tuple[np.ndarray, LocalData]:
    checked = local.check_stored(X, rank, rows, map)
    classes, codes = encode(X, y)
    weight = weights_of(weight, codes, classes, settings.class_weight)
    labeled = Labeled(checked if local.is_stored(X) else checked[: X.shape[0]], codes, weight).counting
    if labeled.X.shape[0] < X.shape[0]:  # the chunks have moved
        rows = local.row_chunks(labeled.X.shape, settings.chunk_size)
    return classes, LocalData(labeled, rows=rows, map=map)


def _dask_data(
    X: Array, y: Array, sample_weight: Array, settings: Settings, rank: int | None, map: Map
) -> tuple[np.ndarray, Data]:
    from spdmetric import distributed

    X, y, weight = distributed.aligned(X, y, sample_weight)
    client = distributed.current_client()
    if client is None:
        rows = distributed.chunk_rows(X)
        fits = local.fits(X.shape[0], X.shape[1])
        source = distributed.computed(X) if fits else distributed.Computed(X)
        y, sample_weight = (None if v is None else distributed.computed(v) for v in (y, weight))
        return _stored_data(source, y, sample_weight, settings, rank, rows, map)
    for name, value, other in _NOT_ON_CLUSTERS:
        if getattr(settings, name) == value:
            raise ValueError(
                f"{name}={value!r} needs the matrices in this process, and those of a dask array stay on the "
                f"workers: use {name}={other!r}, or fit on X.compute()."
            )
    cluster = distributed.Cluster(client)
    surveyed = distributed.survey_all(cluster, X, y, weight, rank)
    classes = validation.check_classes(surveyed.classes)
    smallest, largest = surveyed.weight_range
    validation.check_weight_range(smallest, largest)
    unit = validation.weight_unit(largest)
    totals = surveyed.class_weights(classes) * unit
    scale = unit * validation.class_scale(totals.sum(), totals, classes, settings.class_weight)
    return classes, surveyed.data(cluster, X.shape, classes, scale)


def is_dask(X: Array) -> bool:
    """Whether this is a dask array; dask is not imported to find out."""
    return type(X).__module__.startswith("dask.array")
