"""Labeled matrices that this process can slice: in memory, in a file, or behind anything that slices.

The learning problem asks two things of its data (`Data`): totals over all matrices, and an
objective.  `LocalData` answers here; `spdmetric.distributed` does for what lives on the workers
of a cluster.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse import issparse

from spdmetric.geometry import RowFunction, chunks
from spdmetric.linalg.symmetric import Array, congruence, symmetrize
from spdmetric.linalg.threads import Map
from spdmetric.objectives.alignment import Misalignment, Target, default_chunk_size
from spdmetric.objectives.gaussian import GaussianMisalignment
from spdmetric.validation import check_stack, checked_chunk

Rows = slice | np.ndarray  # a slice, or ascending row numbers
Summand = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]  # of matrices, codes or numbers, and weights


class Data(Protocol):
    """Labeled matrices, wherever they are."""

    shape: tuple[int, ...]  # (n, d, d)
    n_classes: int  # 0 where the targets are numbers

    def average(self, f: RowFunction) -> np.ndarray:
        """Weighted mean of the rows ``f(X)``, one for each matrix."""
        ...

    def total(self, f: Summand) -> Any:
        """Sum over chunks, in their order, of arrays ``f(X, codes, weight)``."""
        ...

    def objective(self, factor: np.ndarray, *, kernel: str, gamma: float | None) -> Any:
        """The objective of the matrices ``W X W'``."""
        ...


class Labeled(NamedTuple):
    """Checked matrices in memory, or a view of them, with their classes, or numbers, and weights."""

    X: Any  # (n, d, d)
    codes: np.ndarray  # (n,), classes 0, 1, ...; or (n, q), numbers in units of their spread
    weight: np.ndarray  # (n,)

    def take(self, index: np.ndarray) -> Labeled:
        """Some of them."""
        X = self.X[index] if isinstance(self.X, np.ndarray) else selected(self.X, index)
        return Labeled(X, self.codes[index], self.weight[index])

    @property
    def counting(self) -> Labeled:
        """Those that have weight."""
        counts = self.weight > 0
        return self if counts.all() else self.take(np.flatnonzero(counts))


class LocalData:
    """Labeled matrices that this process can slice, all of positive weight.

    ``rows`` are the chunks, by default all of one size that depends on d; ``map`` maps a
    function over them.
    """

    def __init__(self, labeled: Labeled, *, rows: list[slice] | None = None, map: Map = map):
        X, codes, _ = self._labeled = labeled
        self._map = map
        self.shape: tuple[int, ...] = tuple(X.shape)
        self.n_classes = int(codes.max()) + 1 if codes.ndim == 1 else 0
        self._keep = isinstance(X, np.ndarray) and fits(X.shape[0], X.shape[1])
        self._rows = row_chunks(X.shape, None) if rows is None else rows
        # What is in memory, and was not to be cut, is summed at once.
        self._parts = [slice(0, X.shape[0])] if self._keep and rows is None else self._rows

    def average(self, f: RowFunction) -> np.ndarray:
        """Weighted mean of the rows ``f(X)``; its bits do not depend on the chunks."""
        X, _, weight = self._labeled

        def weighted(rows: slice) -> np.ndarray:
            values = f(X[rows])
            return weight[rows].reshape(-1, *[1] * (values.ndim - 1)) * values

        total: np.ndarray | float = 0.0
        for values in self._map(weighted, self._rows):
            values[0] += total  # NumPy adds up rows one after the other
            total = values.sum(axis=0)
        return total / weight.sum()

    def total(self, f: Summand) -> Any:
        """Sum of ``f(X, codes, weight)`` over the chunks, in their order."""
        X, codes, weight = self._labeled
        return sum(self._map(lambda rows: f(X[rows], codes[rows], weight[rows]), self._parts))

    def objective(self, factor: np.ndarray, *, kernel: str, gamma: float | None) -> Misalignment:
        """The objective of the matrices whitened by a factor: in memory if they are, and if it fits."""
        X, codes, weight = self._labeled
        X = congruence(factor, X) if self._keep else whitened(X, factor)
        target = Target.of(codes, weight)
        if kernel == "linear":
            return Misalignment(X, target, rows=self._rows, keep=self._keep, map=self._map)
        return GaussianMisalignment(X, target, gamma=gamma, rows=self._rows, map=self._map)


def in_memory(labeled: Labeled, chunk_size: int | None, map: Map = map) -> LocalData:
    """Checked matrices in memory, cut if the user wants it."""
    rows = None if chunk_size is None else row_chunks(labeled.X.shape, chunk_size)
    return LocalData(labeled, rows=rows, map=map)


# ---------------------------------------------------------------------------
# Reading and checking, chunk by chunk


def is_stored(X: Array) -> bool:
    """Whether to read X chunk by chunk: a memory map, or what has a weighting and slices but is no array."""
    if isinstance(X, np.ndarray):
        return isinstance(X, np.memmap)
    has_all = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return has_all and not is_array_api_obj(X) and not hasattr(X, "iloc") and not issparse(X)


def stored_shape(X: Array) -> tuple[int, ...]:
    """Weighting of a stack that is about to be read, or why it is no stack."""
    check_stack(X, "X")
    return tuple(X.shape)


def row_chunks(shape: tuple[int, ...], chunk_size: int | None) -> list[slice]:
    """Chunks of a stack, of a size that depends on that of the matrices alone unless it is given."""
    return list(chunks(shape[0], chunk_size or default_chunk_size(shape[-1])))


def read(X: Array, rows: Rows) -> np.ndarray:
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


def checked_chunks(
    X: Array, rank: int | None, rows: list[slice], map: Map = map
) -> Iterator[tuple[Any, Any]]:
    """Yield each chunk as it was read and as it was checked; errors name chunk and matrix."""
    _check_file(X)

    def checked(numbered: tuple[int, slice]) -> tuple[np.ndarray, np.ndarray]:
        k, part = numbered
        chunk = read(X, part)
        return chunk, checked_chunk(chunk, rank, k, part, len(rows))

    yield from map(checked, enumerate(rows))


def check_stored(X: Array, rank: int | None, rows: list[slice], map: Map = map) -> View:
    """Check a stack chunk by chunk."""
    symmetric = [np.array_equal(c, c.transpose(0, 2, 1)) for c, _ in checked_chunks(X, rank, rows, map)]
    return stored(X, symmetric=all(symmetric))


def _check_file(X: Array) -> None:
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


# ---------------------------------------------------------------------------
# Views


class View:
    """A stack of which some matrices are made whenever they are asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, shape: tuple[int, ...], of_rows: Callable[[Rows], np.ndarray]):
        self.shape, self._of_rows = tuple(shape), of_rows

    def __getitem__(self, rows: Rows) -> np.ndarray:
        return self._of_rows(rows)


def stored(X: Array, *, symmetric: bool) -> View:
    """A stack that was checked, and is read again; it need not be symmetric to the last digit."""

    def of_rows(rows: Rows) -> np.ndarray:
        chunk = read(X, rows).astype(np.float64, copy=False)
        return chunk if symmetric else symmetrize(chunk)

    return View(X.shape, of_rows)


def selected(X: Array, index: np.ndarray) -> View:
    """Some matrices of a stack, in their order."""

    def of_rows(rows: Rows) -> np.ndarray:
        some = index[rows]
        if not isinstance(rows, slice):
            return X[some]
        return X[slice(some[0], some[-1] + 1)][some - some[0]]

    return View((index.size, *X.shape[1:]), of_rows)


def whitened(X: Array, factor: np.ndarray) -> View:
    """A stack seen through a factor, ``W X W'``."""
    k = factor.shape[0]
    return View((X.shape[0], k, k), lambda rows: congruence(factor, X[rows]))


# ---------------------------------------------------------------------------
# Memory

_UNKNOWN_MEMORY = 8 * 2**30


def fits(n: int, d: int) -> bool:
    """Whether n matrices, whitened and decomposed at two points, take at most a quarter of the memory."""
    needed = 8 * n * (2 * d * d + 2 * (d * d + d * (d + 1)))  # whitened, and packed or factored
    return needed <= memory_limit() / 4


def check_memory(needed: int, what: str) -> None:
    """Refuse what needs more bytes than this process may use."""
    limit = memory_limit()
    if needed > limit:
        raise MemoryError(
            f"{what} would take {needed / 1e9:.3g} GB, and this process may use {limit / 1e9:.3g} GB: pass "
            "fewer matrices at a time."
        )


def memory_limit(root: str | os.PathLike[str] = "/") -> int:
    """Bytes that this process may use: those of the machine, or fewer where its container is given fewer.

    ``root`` is the folder below which the files of control groups, of version 2 and 1, are looked for.
    """
    try:
        limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # not on every system
        limits = [_UNKNOWN_MEMORY]
    for name in ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limits.append(int((Path(root) / name).read_text()))
        except (OSError, ValueError):  # no such file, or "max": no limit
            continue
    return min(limits)
