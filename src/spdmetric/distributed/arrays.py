"""Dask arrays in the form that learning needs, and the lazy way from matrices to vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spdmetric.caller import warn_at_caller
from spdmetric.objectives.data import LazyStack, replace_left_out
from spdmetric.validation import as_numpy, check_chunk, check_psd, check_stack

if TYPE_CHECKING:
    from dask.array import Array as DaskArray


def align_columns(X: DaskArray, y: Any, sample_weight: Any) -> tuple[DaskArray, DaskArray, DaskArray | None]:
    """Return the dask arrays X, y and weights (or None) in matching chunks, saying what was rechunked."""
    X = whole_matrices(X)
    if y is None:
        raise ValueError("y is None: expected the labels of X, as a dask array or in memory.")
    weight = None if sample_weight is None else _cut_as(X, sample_weight, "sample_weight")
    return X, _cut_as(X, y, "y"), weight


def whole_matrices(X: DaskArray) -> DaskArray:
    """Return X with its matrices in one piece each."""
    check_stack(X, "X", views=True)
    if any(np.isnan(size) for size in X.chunks[0]):
        raise ValueError("X has chunks of unknown size: call X = X.compute_chunk_sizes() first.")
    if all(len(chunks) == 1 for chunks in X.chunks[1:]):
        return X
    warn_at_caller(
        f"The matrices of X are cut into {' x '.join(str(len(c)) for c in X.chunks[1:])} pieces: it was "
        "rechunked, which sends data between workers. X.rechunk({1: -1, 2: -1}), of views {1: -1, 2: -1, "
        "3: -1}, does that once for all.",
        UserWarning,
    )
    return X.rechunk(dict.fromkeys(range(1, X.ndim), -1))


def _cut_as(X: DaskArray, column: Any, name: str) -> DaskArray:
    """Return labels or weights as a dask array with the chunks of X."""
    import dask.array

    in_memory = not isinstance(column, dask.array.Array)
    column = as_numpy(column, name) if in_memory else column
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1 or column.shape[0] != X.shape[0]:
        raise ValueError(
            f"{name} has shape {column.shape} and X {X.shape}: expected one entry for each matrix "
            "(inconsistent numbers of samples)."
        )
    if in_memory:
        return dask.array.from_array(column, chunks=(X.chunks[0],))
    if column.chunks[0] == X.chunks[0]:
        return column
    warn_at_caller(
        f"{name} is cut into {len(column.chunks[0])} chunks and X into {len(X.chunks[0])} others: {name} was "
        "rechunked to those of X.",
        UserWarning,
    )
    return column.rechunk((X.chunks[0],))


def leave_out(X: DaskArray, weight: DaskArray | None) -> DaskArray:
    """The identity in place of matrices without weight; nothing is computed yet."""
    return X if weight is None else map_rows(X, weight, replace_left_out, X.dtype)


def chunk_rows(X: DaskArray) -> list[slice]:
    """Matrices of each chunk, empty ones left out."""
    edges = accumulate(X.chunks[0], initial=0)
    return [slice(first, last) for first, last in pairwise(edges) if first < last]


def compute_lazily(X: DaskArray) -> LazyStack:
    """A dask array that is computed slice by slice in this process: there is no cluster."""
    return LazyStack(X.shape, lambda rows: compute(X[rows]))


def compute(array: DaskArray) -> np.ndarray:
    """Compute an array in this process."""
    try:
        return np.asarray(array.compute())
    except RuntimeError as error:
        if "Client" not in str(error):
            raise
        raise ConnectionError(
            f"Dask cannot compute X, as its client is gone ({error}): connect a new distributed.Client, "
            "or set dask.config.set(scheduler='threads')."
        ) from error


def average_over_rows(X: DaskArray, rows: np.ndarray, weight: np.ndarray) -> Callable[[Any], np.ndarray]:
    """Averages of functions over some matrices of a dask array, each chunk where it is, added in order."""
    from dask import delayed

    kept = np.zeros(X.shape[0])
    kept[rows] = weight
    X = whole_matrices(X)
    edges = pairwise(accumulate(X.chunks[0], initial=0))
    places = zip(X.to_delayed().ravel(), edges, strict=True)
    chunks = [(chunk, kept[i:j], i) for chunk, (i, j) in places if kept[i:j].any()]

    def average(f: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        total = delayed(sum)([delayed(_sum_of_chunk)(f, *chunk) for chunk in chunks])
        return np.asarray(total.compute()) / kept.sum()

    return average


def _sum_of_chunk(
    f: Callable[[np.ndarray], np.ndarray], X: np.ndarray, weight: np.ndarray, first: int
) -> np.ndarray:
    """Weighted sum over the matrices of a chunk that have weight."""
    counts = weight > 0
    values = f(check_psd(np.asarray(X), None, first=first)[counts])
    return np.tensordot(weight[counts], values, axes=1)


def map_rows(X: DaskArray, column: Any, of_rows: Callable[..., np.ndarray], dtype: Any) -> DaskArray:
    """Matrices of a dask array after ``of_rows(matrices, column)``, of which nothing is computed yet."""
    import dask.array

    X = whole_matrices(X)
    column = dask.array.asarray(column).rechunk((X.chunks[0],))[(slice(None), *[None] * (X.ndim - 1))]
    meta = np.empty((0,) * X.ndim, dtype)
    f = partial(_map_chunk, of_rows=of_rows)
    return dask.array.map_blocks(f, X, column, dtype=meta.dtype, chunks=X.chunks, meta=meta)


def _map_chunk(X: np.ndarray, column: np.ndarray, *, of_rows: Callable[..., np.ndarray]) -> np.ndarray:
    return of_rows(np.asarray(X), column.reshape(-1)) if len(X) else X


def transform(
    X: Any, embed: Callable[..., np.ndarray], p: int, rank: int | None, dtype: np.dtype
) -> DaskArray:
    """Return the vectors, of length p, of matrices of at least some rank; nothing is computed yet."""
    X = whole_matrices(X)
    none = np.empty((0, p), dtype=dtype)
    return X.map_blocks(
        partial(_embed_block, embed=embed, none=none, rank=rank, n_chunks=len(X.chunks[0])),
        dtype=dtype,
        drop_axis=list(range(1, X.ndim)),
        new_axis=[1],
        chunks=(X.chunks[0], (p,)),
        meta=none,
    )


def _embed_block(
    X: np.ndarray,
    *,
    embed: Callable[..., np.ndarray],
    none: np.ndarray,
    rank: int | None,
    n_chunks: int,
    block_info: Any = None,
) -> np.ndarray:
    where = block_info[0]
    if len(X) == 0:
        return none
    rows = slice(*where["array-location"][0])
    checked = check_chunk(X, rank, where["chunk-location"][0], rows, n_chunks)
    return embed(checked, first=rows.start).astype(none.dtype, copy=False)
