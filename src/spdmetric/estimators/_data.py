"""From what the user gives to what is learned from: the one place that asks what kind of array X is."""

from __future__ import annotations

import numpy as np

from spdmetric import validation
from spdmetric.estimators._settings import Settings
from spdmetric.linalg.symmetric import Array
from spdmetric.linalg.threads import Map
from spdmetric.objectives import local
from spdmetric.objectives.local import Data, Labeled, LocalData
from spdmetric.validation import ClassWeight, check_psd, encode, to_numpy, weights_of

# parameter, value that needs the matrices in one process, value that does not
_NOT_ON_CLUSTERS = (
    ("kernel", "rbf", "linear"),
    ("solver", "newton", "trust-region"),
    ("solver", "stochastic", "trust-region"),
)


def data_of(
    X: Array,
    y: Array,
    sample_weight: Array,
    settings: Settings,
    *,
    rank: int | None,
    task: str = "classification",
    map: Map = map,
) -> tuple[np.ndarray | None, Data]:
    """Check the data where they are, in memory, in a file, or on a cluster; return classes and data.

    Where y holds numbers to predict, there are no classes.
    """
    if is_dask(X):
        return _dask_data(X, y, sample_weight, settings, rank, task, map)
    if local.is_stored(X):
        rows = local.row_chunks(local.stored_shape(X), settings.chunk_size)
        return _stored_data(X, y, sample_weight, settings, rank, task, rows, map)
    classes, labeled = checked_of(X, y, sample_weight, settings.class_weight, rank, task)
    return classes, local.in_memory(labeled.counting, settings.chunk_size, map)


def _targets_of(
    X: Array, y: Array, sample_weight: Array, class_weight: ClassWeight, task: str
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """Classes, codes and weights; or None, numbers (n, q) in units of their spread, and weights."""
    if y is None or not validation.is_regression(y, task):
        classes, codes = encode(X, y)
        return classes, codes, weights_of(sample_weight, codes, classes, class_weight)
    validation.check_no_class_weight(class_weight)
    values = validation.check_numbers(X, y)
    weight = weights_of(sample_weight, np.zeros(len(values), dtype=int), np.array(["all"]), None)
    return None, validation.standardized(values, weight), weight


def checked_of(
    X: Array, y: Array, sample_weight: Array, class_weight: ClassWeight, rank: int | None, task: str
) -> tuple[np.ndarray | None, Labeled]:
    """Check matrices in memory; return the classes, and all matrices, those without weight too."""
    if is_dask(X):
        raise ValueError(
            "Cross-validation needs the matrices in this process, and those of a dask array stay on the "
            "workers: fit on X.compute(), or choose a radius and use LogEuclideanMetric."
        )
    X = check_psd(to_numpy(X), rank)
    classes, *target = _targets_of(X, y, sample_weight, class_weight, task)
    return classes, Labeled(X, *target)


def _stored_data(
    X: Array,
    y: Array,
    weight: Array,
    settings: Settings,
    rank: int | None,
    task: str,
    rows: list[slice],
    map: Map,
) -> tuple[np.ndarray | None, LocalData]:
    checked = local.check_stored(X, rank, rows, map)
    classes, codes, weight = _targets_of(X, y, weight, settings.class_weight, task)
    labeled = Labeled(checked if local.is_stored(X) else checked[: X.shape[0]], codes, weight).counting
    if labeled.X.shape[0] < X.shape[0]:  # the chunks have moved
        rows = local.row_chunks(labeled.X.shape, settings.chunk_size)
    return classes, LocalData(labeled, rows=rows, map=map)


def _dask_data(
    X: Array, y: Array, sample_weight: Array, settings: Settings, rank: int | None, task: str, map: Map
) -> tuple[np.ndarray | None, Data]:
    from spdmetric.distributed.arrays import Computed, aligned, chunk_rows, computed
    from spdmetric.distributed.cluster import Cluster, current_client
    from spdmetric.distributed.objective import survey_all

    X, y, weight = aligned(X, y, sample_weight)
    client = current_client()
    if client is None:
        rows = chunk_rows(X)
        fits = local.fits(X.shape[0], X.shape[1])
        source = computed(X) if fits else Computed(X)
        y, sample_weight = (None if v is None else computed(v) for v in (y, weight))
        return _stored_data(source, y, sample_weight, settings, rank, task, rows, map)
    for name, value, other in _NOT_ON_CLUSTERS:
        if getattr(settings, name) == value:
            raise ValueError(
                f"{name}={value!r} needs the matrices in this process, and those of a dask array stay on the "
                f"workers: use {name}={other!r}, or fit on X.compute()."
            )
    cluster = Cluster(client)
    surveyed = survey_all(cluster, X, y, weight, rank)
    if validation.is_regression(surveyed.classes, task):
        raise ValueError(
            "y holds numbers to predict, and from what stays on the workers only classes are learned: fit on "
            "X.compute(), or without a Dask client, which computes X chunk by chunk."
        )
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
