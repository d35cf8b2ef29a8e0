"""The compiled kernels as functions of NumPy arrays: a stack packed once, decomposed at many factors.

    stack = CompiledStack.of(X)          # once
    here = stack.decompose(W)            # at each factor
    here.features                        # vech(log(W X W')), (n, p)
    here.pull(rows)                      # the derivative along W -> exp(-xi/2) W, of cotangents
    here.pull_factor(rows)               # the derivative in the entries of W

Sums over the stack are taken in the order of its matrices.  Kernels do not check bounds: shapes are asserted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdmetric.linalg.compiled import kernels, sums
from spdmetric.linalg.compiled.eigen import GROUPS, LINES, MORE
from spdmetric.linalg.compiled.lanes import LANES, Scratch, empty, plain


def _even(size: int) -> int:
    return size + size % 2


# Five matrices, their size rounded up to even, and vectors of the groups that are decomposed together.
_scratch = Scratch(lambda side: ((5, _even(side), _even(side), LANES), (GROUPS, LINES, side + MORE, LANES)))


@dataclass(frozen=True)
class CompiledStack:
    """SPD matrices, packed for the kernels (see `spdmetric.linalg.compiled.kernels`)."""

    packed: np.ndarray  # (groups, d(d+1)/2, LANES)
    n: int
    d: int

    @classmethod
    def of(cls, X: np.ndarray) -> CompiledStack:
        """Pack matrices of shape (n, d, d), any real numbers; the lower triangles are read."""
        n, d, _ = X.shape
        assert X.shape == (max(n, 1), d, d)
        packed = empty((-(-n // LANES), d * (d + 1) // 2, LANES))
        kernels.pack(plain(X), packed)
        return cls(packed, n, d)

    def decompose(self, W: np.ndarray) -> CompiledDecomposition:
        """Decompose ``W X W'`` for every matrix, W of shape (m, d)."""
        (m, d), groups = W.shape, self.packed.shape[0]
        assert d == self.d
        factor, order, column = np.empty((_even(m), d)), np.empty(m, np.int64), np.empty((m, m), np.int64)
        kernels.arrange(plain(W), np.empty(m), factor, order, column)
        values, logs = empty((2, groups, m, LANES))
        vectors = empty((groups, _even(m), m, LANES))
        features = np.empty((self.n, m * (m + 1) // 2))
        small = 2 * m <= d  # W X, beside X: worth keeping for the way back
        products = empty((groups if small else 0, _even(m), _even(d), LANES))
        scratch = _scratch(max(m, d))
        kernels.forward(self.packed, factor, column, values, logs, vectors, features, products, *scratch)
        return CompiledDecomposition(self, factor, order, column, values, logs, vectors, features, products)


@dataclass
class CompiledDecomposition:
    """``W X W'`` decomposed for every matrix of a stack, and the features of its logarithm."""

    stack: CompiledStack
    factor: np.ndarray  # (even m, d), rows in `order`
    order: np.ndarray  # (m,)
    column: np.ndarray  # (m, m)
    values: np.ndarray  # (groups, m, LANES)
    logs: np.ndarray
    vectors: np.ndarray  # (groups, even m, m, LANES)
    features: np.ndarray  # (n, p)
    products: np.ndarray  # (groups, even m, even d, LANES), or none

    moments = staticmethod(sums.moments)
    cotangents = staticmethod(sums.cotangents)

    def pull(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` along ``W -> exp(-xi/2) W``, (m, m)."""
        m = self.order.size
        result = np.empty((m, m))
        decomposed = self.values, self.logs, self.vectors
        assert rows.shape == self.features.shape
        kernels.pull_frame(plain(rows), self.column, self.order, *decomposed, _scratch(m)[0], result)
        return result

    def pull_factor(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` in the entries of W, (m, d)."""
        m, d = self.order.size, self.stack.d
        result = np.empty((m, d))
        at = self.stack.packed, self.factor, self.column, self.order
        decomposed = self.values, self.logs, self.vectors, self.products
        assert rows.shape == self.features.shape
        kernels.pull_factor(plain(rows), *at, *decomposed, _scratch(max(m, d))[0], result)
        return result

    @property
    def spread(self) -> np.ndarray:
        """Largest less smallest log-eigenvalue of each matrix, (n,)."""
        return np.ptp(self.logs, axis=1).reshape(-1)[: self.stack.n]
