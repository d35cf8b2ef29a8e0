"""Domains, sessions or subjects for instance, each recentered by its own mean, wherever the matrices are.

Recentered, ``M^{-1/2} X M^{-1/2}``, matrices of all domains can be compared, and all else is as without.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from array_api_compat import is_dask_array

from spdmetric import validation
from spdmetric.caller import warn_at_caller
from spdmetric.distributed import arrays
from spdmetric.estimators.embedding import pad_views
from spdmetric.linalg.symmetric import Array, array_namespace, congruence, invsqrtm, like
from spdmetric.linalg.threads import Map
from spdmetric.means import find_mean
from spdmetric.objectives import data as records
from spdmetric.objectives.data import ClassTarget, Data, LazyStack, Rows, check_target, is_stored
from spdmetric.objectives.start import over_view

CONFOUNDED = 0.4  # share of the variance of y between domains from which on a user is told


def recenter_domains(
    X: Array, sample_domain: Array, sample_weight: Array, mean: str, map: Map
) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """Recenter the matrices of every domain by their mean, one of `means.MEANS`, by their weights.

    Those of a file are recentered when they are read.  Returns also names of the domains, sorted, and means.
    """
    if not is_stored(X) and not is_dask_array(X):
        X = validation.check_psd(validation.to_numpy(X), None)
    names, means, index = find_domain_means(X, sample_domain, sample_weight, mean, {}, map)
    return recenter_rows(X, index, means), (names, np.stack(means))


def check_domains(sample_domain: Any, n: int) -> np.ndarray:
    """Return the domain of each of n matrices, all strings or all whole numbers."""
    sample_domain = validation.to_numpy(sample_domain)
    given = np.asarray(sample_domain, dtype=None if hasattr(sample_domain, "dtype") else object)
    if given.shape != (n,):
        raise ValueError(
            f"sample_domain has shape {given.shape} for {n} matrices: expected one domain for each."
        )
    domains = [int(v) if isinstance(v, float) and v.is_integer() else v for v in given.tolist()]
    kind = str if isinstance(domains[0], str) else Integral
    for i, domain in enumerate(domains):
        if not isinstance(domain, kind) or isinstance(domain, bool):
            raise ValueError(
                f"sample_domain[{i}] is {domain!r}: expected strings, or whole numbers, for all matrices."
            )
    if kind is str:
        return np.array(domains)
    try:  # by itself NumPy would make float64 of int64 and uint64 together, and lose digits
        return np.array(domains, dtype=np.uint64 if max(domains) >= 2**63 else np.int64)
    except OverflowError as error:
        raise ValueError(
            f"sample_domain has whole numbers from {min(domains)} to {max(domains)}: expected a range that "
            "int64 or uint64 can hold. Pass them as strings."
        ) from error


def find_domain_means(
    X: Array,
    sample_domain: Array,
    sample_weight: Array,
    mean: str,
    known: Mapping[Any, np.ndarray],
    map: Map = map,
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Names of the domains of some matrices, their means, and which of these each matrix belongs to.

    A domain that is not known has the mean of its matrices at hand, which are checked already in memory.
    """
    domains = validation.leave_out(check_domains(sample_domain, X.shape[0]), sample_weight)
    names, index = np.unique(domains, return_inverse=True)
    weight = validation.check_weights(sample_weight, index)
    weight, means = weight / weight.max(), []
    data = None if is_dask_array(X) else Data(_readable(X), ClassTarget.from_codes(index, weight), map=map)
    for k, name in enumerate(names.tolist()):
        if name in known:
            means.append(known[name])
            continue
        rows = np.flatnonzero((index == k) & (weight > 0))
        if rows.size < 2:
            raise ValueError(
                f"Domain {name!r} of sample_domain: expected two or more matrices with weight, got "
                f"{rows.size}. Recentered by its own mean, a single matrix is the identity: nothing is left "
                "of it."
            )
        average = data.take(rows).average if data else arrays.average_over_rows(X, rows, weight[rows])
        find = partial(find_mean, mean, n=rows.size, dtype=(data or X).dtype)
        if len(X.shape) == 3:
            means.append(find(average))
        else:
            sizes = records.find_view_sizes(data.X if data else X)
            of_views = (find(partial(over_view, average, v, size)) for v, size in enumerate(sizes))
            means.append(pad_views(of_views, X.shape[-1]))
    return names, means, index


def share_between_domains(
    y: Array, sample_domain: Array, sample_weight: Array | None = None, task: str = "auto"
) -> float:
    """Share of the variance of y that lies between domains, adjusted for their number as R² is.

    Of labels it is that of their indicators, of several outputs each in units of its spread.  Recentering
    removes what it stands for.  It is near 0, or below, where domains have nothing to do with y.
    """
    target = check_target(y, y, sample_weight, None, task)[1]
    index = np.unique(check_domains(sample_domain, len(target.Y)), return_inverse=True)[1]
    w, Y = target.weight / target.weight.sum(), target.Y
    sums, size = np.zeros((index.max() + 1, Y.shape[1])), np.bincount(index, weights=w)
    np.add.at(sums, index, w[:, None] * Y)
    n, k, size = 1 / np.vdot(w, w), np.count_nonzero(size), size[:, None]
    between = np.sum(np.divide(sums**2, size, where=size > 0, out=sums)) / np.sum(w @ Y**2)
    return float(1 - (1 - between) * (n - 1) / (n - k)) if n > k else 0.0


def warn_if_confounded(y: Array, sample_domain: Array, sample_weight: Array | None, task: str) -> None:
    """Warn of domains that carry the target, see `share_between_domains`."""
    share = share_between_domains(y, sample_domain, sample_weight, task)
    if share >= CONFOUNDED:
        warn_at_caller(
            f"Domains carry the target: {share:.0%} of the variance of y lies between the domains of "
            "sample_domain (adjusted for their number), and recentering each by its own mean removes what "
            "the matrices tell of that. Compare with a fit without sample_domain.",
            UserWarning,
        )


def recenter_rows(X: Array, index: np.ndarray, means: list[np.ndarray]) -> Any:
    """Matrices, each recentered by one of the means; those of a file or a cluster when they are read."""
    M = np.stack(means)
    if M.ndim == 3:
        factors = invsqrtm(M)
    else:
        sizes = records.find_view_sizes(M)
        factors = pad_views([invsqrtm(M[:, v, :k, :k]) for v, k in enumerate(sizes)], M.shape[-1])
    if is_dask_array(X):
        whiten = partial(_check_and_whiten, factors=factors)
        return arrays.map_rows(X, index, whiten, np.result_type(X.dtype, np.float64))
    if is_stored(X):
        checked = _readable(X)
        return LazyStack(X.shape, lambda rows: _whiten_rows(checked[rows], index[rows], factors), X.dtype)
    parts = [_whiten_rows(X[rows, ...], index[rows], factors) for rows in records.row_chunks(X.shape)]
    return array_namespace(X).concat(parts)


def groups_of_domains(sample_domain: Array, sample_weight: Array | None) -> np.ndarray | None:
    """Domains as groups that folds keep together, numbered as they come; None for fewer than two."""
    domains = check_domains(sample_domain, len(sample_domain))
    domains = validation.leave_out(domains, sample_weight)
    _, first, index = np.unique(domains, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[index] if len(first) > 1 else None


def _check_and_whiten(X: np.ndarray, index: np.ndarray, factors: np.ndarray) -> np.ndarray:
    return _whiten_rows(validation.check_psd(X, None), index, factors)


def _whiten_rows(X: Array, index: np.ndarray, factors: np.ndarray) -> Array:
    return congruence(like(factors[index], X), X)


def _readable(X: Array) -> Any:
    """A stack in NumPy, or one whose matrices are checked when they are read."""

    def of_rows(rows: Rows) -> np.ndarray:
        first = rows.start or 0 if isinstance(rows, slice) else int(rows[0])
        return validation.check_psd(records.read(X, rows), None, first=first)

    return LazyStack(X.shape, of_rows, X.dtype) if is_stored(X) else validation.to_numpy(X)
