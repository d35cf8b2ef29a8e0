"""Domains, sessions or subjects for instance: matrices of each are seen from their own mean.

Whitened by the Riemannian means of their domains, ``M^{-1/2} X M^{-1/2}``, matrices of all of them can be
compared, and everything else is as without domains.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spdmetric.estimators._data import is_dask
from spdmetric.linalg.symmetric import Array, congruence, invsqrtm
from spdmetric.linalg.threads import Map
from spdmetric.means import MEANS, average_over
from spdmetric.objectives.local import Labeled, LocalData, Rows, View, is_stored, read, selected
from spdmetric.validation import check_domains, check_spd, check_weights, to_numpy

UNSEEN = ("error", "recenter")


class Domains(NamedTuple):
    """The domains that a metric was learned on."""

    names: np.ndarray  # (k,), sorted
    means: np.ndarray  # (k, d, d)


def seen_from_means(
    X: Array, sample_domain: Array | None, sample_weight: Array | None, *, mean: str, map: Map = map
) -> tuple[Any, Domains | None]:
    """See the matrices of every domain from their mean, one of `geometry.MEANS`, by their weights.

    Those of a file are seen so when they are read.  Without domains all are as they are.
    """
    if sample_domain is None:
        return X, None
    if not is_stored(X) and not is_dask(X):
        X = check_spd(to_numpy(X))
    names, index = np.unique(check_domains(sample_domain, X.shape[0]), return_inverse=True)
    weight = check_weights(sample_weight, np.empty(X.shape[0]))
    weight = weight / weight.max()
    means = []
    for k, name in enumerate(names.tolist()):
        rows = np.flatnonzero((index == k) & (weight > 0))
        means.append(mean_of(X, rows, name, weight[rows], mean=mean, map=map))
    domains = Domains(names, np.stack(means))
    return seen_from(X, index, means), domains


def seen_from(X: Array, index: np.ndarray, means: list[np.ndarray]) -> Any:
    """Matrices, each seen from one of the means; those of a file or a cluster when they are read."""
    factors = np.stack([invsqrtm(mean) for mean in means])
    if is_dask(X):
        from spdmetric.distributed import arrays

        return arrays.map_rows(X, index, partial(_whitened, factors=factors))
    if is_stored(X):
        return View(X.shape, lambda rows: _whitened(read_checked(X, rows), index[rows], factors))
    return _whitened(X, index, factors)


def mean_of(
    X: Array, rows: np.ndarray, name: Any, weight: np.ndarray | None = None, *, mean: str, map: Map = map
) -> np.ndarray:
    """Mean of the matrices of one domain, checked already if they are in memory."""
    if rows.size < 2:
        raise ValueError(
            f"Domain {name!r} of sample_domain has {rows.size} matrices with weight: expected at least two. "
            "Seen from its own mean a single matrix is the identity, and nothing is left of it."
        )
    weight = np.ones(rows.size) if weight is None else weight
    if is_dask(X):
        from spdmetric.distributed import arrays

        average = arrays.averaging_over(X, rows, weight)
    elif is_stored(X):
        checked = View(X.shape, partial(read_checked, X))
        part = Labeled(selected(checked, rows), np.zeros(rows.size, dtype=int), weight)
        average = LocalData(part, map=map).average
    else:
        average = average_over(to_numpy(X[rows, ...]), weight)
    return MEANS[mean](average, rows.size)


def means_of(
    X: Array, sample_domain: Array, known: Mapping[Any, np.ndarray], unseen: str, *, mean: str
) -> tuple[list[np.ndarray], np.ndarray]:
    """Means of the domains of some matrices, and which of these each matrix belongs to."""
    names, index = np.unique(check_domains(sample_domain, X.shape[0]), return_inverse=True)
    means = []
    for k, name in enumerate(names.tolist()):
        if name not in known and unseen == "error":
            raise ValueError(
                f"Domain {name!r} of sample_domain was not in fit, whose domains are {_some(list(known))}: "
                "adapt() to its matrices, or set unseen_domain='recenter', which takes the mean of those at "
                "hand."
            )
        rows = np.flatnonzero(index == k)
        means.append(known[name] if name in known else mean_of(X, rows, name, mean=mean))
    return means, index


def groups_of(sample_domain: Array | None) -> np.ndarray | None:
    """Domains as groups that folds keep together, numbered as they come; None for fewer than two."""
    if sample_domain is None:
        return None
    domains = check_domains(sample_domain, len(sample_domain))
    _, first, index = np.unique(domains, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[index] if len(first) > 1 else None


def _whitened(X: np.ndarray, index: np.ndarray, factors: np.ndarray) -> np.ndarray:
    Z = np.empty_like(X)
    for k in np.unique(index):
        Z[index == k] = congruence(factors[k], X[index == k])
    return Z


def read_checked(X: Array, rows: Rows) -> np.ndarray:
    """Read some matrices, and check them."""
    first = rows.start or 0 if isinstance(rows, slice) else int(rows[0])
    return check_spd(read(X, rows), first=first)


def _some(names: list[Any]) -> str:
    return str(names) if len(names) <= 10 else f"{len(names)}, {str(names[:10])[:-1]}, ...]"
