"""The face of the compiled kernels: a stack of SPD matrices, packed once, decomposed at many factors.

    stack = Stack.of(X)                  # once
    here = decompose(stack, W)           # at each factor
    here.features                        # vech(log(W X W')), (n, p)
    here.pull(rows)                      # LogCongruence.pull of the cotangents unvech(rows)
    here.pull_factor(rows)               # LogCongruence.pull_factor
    here.log                             # a LogCongruence, for second derivatives

Work is cut into blocks whose bounds depend on the sizes alone, and block results are added in
their order: any number of threads gives the same bits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from spdmetric.linalg.compiled import kernels, sums
from spdmetric.linalg.compiled.lanes import LANES, plain
from spdmetric.linalg.compiled.threads import cut, map_blocks
from spdmetric.linalg.lazy import lazy
from spdmetric.linalg.symmetric import LogCongruence, Spectrum, gaps, ucothu


def _even(size: int) -> int:
    return size + size % 2


class _Room(threading.local):
    """Where a thread's kernels work; kept, since fresh memory costs as much as a small block of work."""

    side = 0

    def __call__(self, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for matrices (6, side, side, LANES), side rounded up to even, and for vectors."""
        if self.side != side:
            self.matrices = np.empty((6, _even(side), _even(side), LANES))
            self.lines = np.empty((5, side + 1, LANES))
            self.side = side
        return self.matrices, self.lines


_room = _Room()


@dataclass(frozen=True)
class Stack:
    """SPD matrices, packed for the kernels (see `spdmetric.linalg.compiled.kernels`)."""

    packed: np.ndarray  # (groups, d(d+1)/2, LANES)
    n: int
    d: int

    @classmethod
    def of(cls, X: np.ndarray) -> Stack:
        """Pack matrices of shape (n, d, d), any real numbers; the lower triangles are read."""
        X = np.asarray(X)
        if X.ndim != 3 or X.shape[1] != X.shape[2] or 0 in X.shape:
            raise ValueError(
                f"Expected matrices of shape (n, d, d), at least one, got an array of shape {X.shape}."
            )
        n, d = X.shape[0], X.shape[-1]
        packed = np.empty((-(-n // LANES), d * (d + 1) // 2, LANES))
        kernels.pack(plain(X), packed)
        return cls(packed, n, d)

    @property
    def groups(self) -> int:
        return self.packed.shape[0]

    def decompose(self, W: np.ndarray) -> Decomposition:
        return decompose(self, W)

    def blocks(self, size: int) -> tuple[tuple[int, int], ...]:
        """Blocks of groups to work on apart, for matrices of this size."""
        return cut(self.groups, 20 * LANES * size**3)


@dataclass
class Decomposition:
    """``W X W'`` decomposed for every matrix of a stack, and the features of its logarithm."""

    stack: Stack
    factor: np.ndarray  # (even m, d), rows in `order`
    order: np.ndarray  # (m,)
    column: np.ndarray  # (m, m)
    values: np.ndarray  # (groups, m, LANES)
    logs: np.ndarray
    vectors: np.ndarray  # (groups, even m, m, LANES)
    features: np.ndarray  # (n, p)
    n_threads: int = 1

    def pull(self, rows: np.ndarray) -> np.ndarray:
        """Sum over the stack of the adjoint of the logarithm's derivative in the frame, (m, m).

        Parameters
        ----------
        rows : array of shape (n, p)
            Cotangents of the features.
        """
        m = self.order.size
        args = self._rows(rows), self.column, self.order, self.values, self.logs, self.vectors
        return self._sum(kernels.pull_frame, args, (m, m))

    def pull_factor(self, rows: np.ndarray) -> np.ndarray:
        """Derivative in the factor of ``sum <rows, features>``, (m, d)."""
        shape = self.order.size, self.stack.d
        args = self._rows(rows), self.stack.packed, self.factor, self.column, self.order
        return self._sum(kernels.pull_factor, (*args, self.values, self.logs, self.vectors), shape)

    def moments(self, Y: np.ndarray, weight: np.ndarray, *, gram: bool) -> sums.Moments:
        """Moments of features and targets about their means."""
        return sums.moments(self.features, Y, weight, gram=gram)

    def cotangents(
        self, mean: np.ndarray, Y: np.ndarray, weight: np.ndarray, right: np.ndarray, across: np.ndarray
    ) -> np.ndarray:
        """Return ``w ((features - mean) right + Y across')``."""
        return sums.cotangents(self.features, mean, Y, weight, right, across)

    def _rows(self, rows: np.ndarray) -> np.ndarray:
        if rows.shape != self.features.shape:
            raise ValueError(
                f"Expected cotangents of the shape of the features, {self.features.shape}, got {rows.shape}."
            )
        return plain(rows)

    def _sum(self, kernel: Callable[..., None], args: tuple, shape: tuple[int, int]) -> np.ndarray:
        side = max(*shape)

        def part(block: tuple[int, int]) -> np.ndarray:
            result = np.empty(shape)
            kernel(*args, _room(side)[0], *block, result)
            return result

        parts = map_blocks(part, self.stack.blocks(side), self.n_threads)
        return parts[0] if len(parts) == 1 else reduce(np.add, parts)

    @property
    def spread(self) -> np.ndarray:
        """Largest less smallest log-eigenvalue of each matrix, (n,)."""
        return np.ptp(self.logs, axis=1).reshape(-1)[: self.stack.n]

    @lazy
    def log(self) -> LogCongruence:
        """The same as NumPy arrays: log-eigenvalues (ascending), eigenvectors and h."""
        n, m = self.stack.n, self.order.size
        values, vectors = _unpacked(self.logs, self.vectors, n, m)
        placed = np.empty_like(vectors)
        placed[:, self.order] = vectors
        return LogCongruence(Spectrum(values, placed), ucothu(gaps(values) / 2))


def _unpacked(values: np.ndarray, vectors: np.ndarray, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Spectra as arrays (n, m) and (n, m, m), eigenvalues ascending."""
    values = values.swapaxes(1, 2).reshape(-1, m)[:n]
    vectors = vectors[:, :m].transpose(0, 3, 1, 2).reshape(-1, m, m)[:n]
    # A matrix without eigenvalues has no eigenvectors either.
    vectors = np.where(np.isnan(values)[:, None, :], np.nan, vectors)
    order = np.argsort(values, axis=-1)
    return (
        np.take_along_axis(values, order, axis=-1),
        np.take_along_axis(vectors, order[:, None, :], axis=-1),
    )


def decompose(stack: Stack, W: np.ndarray, n_threads: int = 1) -> Decomposition:
    """Decompose ``W X W'`` for every matrix of a stack.

    Parameters
    ----------
    stack : Stack
        The matrices X.
    W : array of shape (m, d)
        The factor.
    n_threads : int, default=1
        Threads; the result does not depend on it.

    Returns
    -------
    Decomposition
    """
    W = np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[1] != stack.d or W.shape[0] < 1:
        raise ValueError(
            f"Expected a factor of shape (m, {stack.d}), as the matrices have size {stack.d}, got {W.shape}."
        )
    m, d = W.shape
    factor, order, column = np.empty((_even(m), d)), np.empty(m, np.int64), np.empty((m, m), np.int64)
    kernels.arrange(plain(W), factor, order, column)
    values, logs = np.empty((2, stack.groups, m, LANES))
    vectors = np.empty((stack.groups, _even(m), m, LANES))
    features = np.empty((stack.n, m * (m + 1) // 2))

    def part(block: tuple[int, int]) -> None:
        room = _room(max(m, d))
        kernels.forward(stack.packed, factor, column, values, logs, vectors, features, *room, *block)

    map_blocks(part, stack.blocks(max(m, d)), n_threads)
    return Decomposition(stack, factor, order, column, values, logs, vectors, features, n_threads)


def eigh(X: np.ndarray, n_threads: int = 1) -> Spectrum:
    """Eigendecomposition of symmetric matrices: `spdmetric.linalg.symmetric.spectrum`, compiled.

    Parameters
    ----------
    X : array of shape (n, d, d)
        Symmetric matrices; the lower triangles are read.  One with NaN gives NaN.
    n_threads : int, default=1
        Threads; the result does not depend on it.

    Returns
    -------
    Spectrum
        Eigenvalues ascending.
    """
    stack = Stack.of(X)
    m = stack.d
    values = np.empty((stack.groups, m, LANES))
    vectors = np.empty((stack.groups, _even(m), m, LANES))

    def part(block: tuple[int, int]) -> None:
        kernels.eigh(stack.packed, values, vectors, *_room(m), *block)

    map_blocks(part, stack.blocks(m), n_threads)
    return Spectrum(*_unpacked(values, vectors, stack.n, m))
