"""Where the matrices are: in memory, in a file, or behind anything that slices like an array.

The learning problem asks two things of its data (`spdmetric.estimators._problem.Data`): totals
over all matrices, and an objective.  `LocalData` answers for what this process can slice;
`spdmetric.distributed` for what lives on the workers of a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from spdmetric.geometry import RowFunction, chunks
from spdmetric.linalg.symmetric import congruence, symmetrize
from spdmetric.objectives.alignment import Misalignment, Target, default_chunk_size
from spdmetric.objectives.gaussian import GaussianMisalignment
from spdmetric.validation import check_stack, checked_chunk

Map = Callable[..., Iterable[Any]]

_UNKNOWN_MEMORY = 8 * 2**30


def is_stored(X: Any) -> bool:
    """Whether to read X chunk by chunk: a memory map, or what has a shape and slices but is no array."""
    if isinstance(X, np.ndarray):
        return isinstance(X, np.memmap)
    has_all = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return has_all and not is_array_api_obj(X) and not hasattr(X, "iloc")


def fits(n: int, d: int) -> bool:
    """Whether n matrices, whitened and decomposed at two points, take at most a quarter of the memory."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on every system
        memory = _UNKNOWN_MEMORY
    return kept_bytes(n, d) <= memory / 4


def kept_bytes(n: int, d: int) -> int:
    """Bytes of n matrices, whitened, packed, and decomposed at two points."""
    return 8 * n * (d * d + d * (d + 1) // 2 + 2 * (d * d + d * (d + 1)))


# ---------------------------------------------------------------------------
# Views: a shape, and slices that are made when they are asked for


class Stored:
    """A stack that was checked, and is read again whenever a slice of it is asked for."""

    def __init__(self, X: Any, *, symmetric: bool):
        self._X, self._symmetric = X, symmetric
        self.shape: tuple[int, ...] = tuple(X.shape)

    def __getitem__(self, rows: Rows) -> np.ndarray:
        chunk = read(self._X, rows).astype(np.float64, copy=False)
        return chunk if self._symmetric else symmetrize(chunk)


class Selected:
    """Some matrices of a stack, in their order."""

    def __init__(self, X: Any, index: np.ndarray):
        self._X, self._index = X, index
        self.shape: tuple[int, ...] = (index.size, *X.shape[1:])

    def __getitem__(self, rows: Rows) -> np.ndarray:
        index = self._index[rows]
        if not isinstance(rows, slice):
            return self._X[index]
        return self._X[slice(index[0], index[-1] + 1)][index - index[0]]


class Whitened:
    """A stack seen through a factor, ``W X W'``."""

    def __init__(self, X: Any, factor: np.ndarray):
        self._X, self._factor = X, factor
        self.shape: tuple[int, ...] = (X.shape[0], factor.shape[0], factor.shape[0])

    def __getitem__(self, rows: Rows) -> np.ndarray:
        return congruence(self._factor, self._X[rows])


# ---------------------------------------------------------------------------
# Reading and checking


Rows = slice | np.ndarray  # a slice, or ascending row numbers


def read(X: Any, rows: Rows) -> np.ndarray:
    """Read some matrices into memory, or say which cannot be read."""
    try:
        # Zarr has a word of its own for row numbers.
        return np.asarray(X.oindex[rows] if hasattr(X, "oindex") else X[rows])
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        first, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else (rows[0], rows[-1])
        raise OSError(
            f"Matrices {first} to {last} of X cannot be read: the file is truncated or damaged "
            f"({type(error).__name__}: {error}). Write it again."
        ) from error


def row_chunks(shape: tuple[int, ...], chunk_size: int | None) -> list[slice]:
    """Chunks of a stack, of a size that depends on that of the matrices alone unless it is given."""
    return list(chunks(shape[0], chunk_size or default_chunk_size(shape[-1])))


def check_stored(X: Any, check: Callable[..., np.ndarray], rows: list[slice], map: Map = map) -> Stored:
    """Check a stack chunk by chunk, naming chunk and matrix where something is wrong."""
    _check_file(X)

    def symmetric(numbered: tuple[int, slice]) -> bool:
        k, part = numbered
        chunk = read(X, part)
        checked_chunk(chunk, check, k, part, len(rows))
        return np.array_equal(chunk, chunk.transpose(0, 2, 1))

    return Stored(X, symmetric=all(list(map(symmetric, enumerate(rows)))))


def _check_file(X: Any) -> None:
    """A memory map of a file that was cut short would end the process when it is read."""
    filename = getattr(X, "filename", None)
    if not isinstance(X, np.memmap) or filename is None or not os.path.exists(filename):
        return
    # Of a slice of a memory map the offset is not known; its own bytes must be there at least.
    needed = X.nbytes + (X.offset if X.base is None or not isinstance(X.base, np.memmap) else 0)
    if os.path.getsize(filename) < needed:
        raise ValueError(
            f"{filename} is truncated: it holds {os.path.getsize(filename)} bytes, {needed} are needed for X "
            f"of shape {X.shape}. Write it again."
        )


def stored_shape(X: Any) -> tuple[int, ...]:
    """Shape of a stack that is about to be read, or why it is no stack."""
    check_stack(X, "X")
    return tuple(X.shape)


# ---------------------------------------------------------------------------
# The data of a learning problem


class LocalData:
    """Labeled matrices that this process can slice.

    Parameters
    ----------
    X : ndarray, or a view of shape (n, d, d)
        Checked matrices.
    codes, weight : ndarray of shape (n,)
        Classes 0, 1, ... and positive weights.
    rows : list of slice, optional
        The chunks; by default all of one size that depends on d.
    map : callable, default=map
        Maps a function over chunks.
    """

    def __init__(
        self,
        X: Any,
        codes: np.ndarray,
        weight: np.ndarray,
        *,
        rows: list[slice] | None = None,
        map: Map = map,
    ):
        self._X, self._codes, self._weight, self._map = X, codes, weight, map
        self.shape: tuple[int, ...] = tuple(X.shape)
        self.n_classes = int(codes.max()) + 1
        self._keep = isinstance(X, np.ndarray) and fits(X.shape[0], X.shape[1])
        self._rows = row_chunks(X.shape, None) if rows is None else rows
        # What is in memory, and was not to be cut, is summed at once.
        self._parts = [slice(0, X.shape[0])] if self._keep and rows is None else self._rows

    def average(self, f: RowFunction) -> np.ndarray:
        """Weighted mean of the rows ``f(X)``; its bits do not depend on the chunks."""

        def weighted(rows: slice) -> np.ndarray:
            values = f(self._X[rows])
            return self._weight[rows].reshape(-1, *[1] * (values.ndim - 1)) * values

        total: Any = 0.0
        for values in self._map(weighted, self._rows):
            values[0] += total  # NumPy adds up rows one after the other
            total = values.sum(axis=0)
        return total / self._weight.sum()

    def total(self, f: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]) -> Any:
        """Sum of ``f(X, codes, weight)`` over the chunks, in their order."""
        X, codes, weight = self._X, self._codes, self._weight
        return sum(self._map(lambda rows: f(X[rows], codes[rows], weight[rows]), self._parts))

    def objective(self, factor: np.ndarray, *, kernel: str, gamma: float | None) -> Misalignment:
        """The objective of the matrices whitened by a factor: in memory if they are, and if it fits."""
        X = congruence(factor, self._X) if self._keep else Whitened(self._X, factor)
        target = Target.one_hot(self._codes, self._weight)
        if kernel == "linear":
            return Misalignment(X, target, rows=self._rows, keep=self._keep, map=self._map)
        return GaussianMisalignment(X, target, gamma=gamma, rows=self._rows, map=self._map)


def in_memory(
    X: np.ndarray, codes: np.ndarray, weight: np.ndarray, chunk_size: int | None, map: Map
) -> LocalData:
    """Checked matrices in memory, cut if the user wants it."""
    rows = None if chunk_size is None else row_chunks(X.shape, chunk_size)
    return LocalData(X, codes, weight, rows=rows, map=map)
