"""Stacks of SPD matrices as the objective sees them: decomposed at a factor, cotangents pulled back.

There are two kinds: in NumPy, to be read and to judge by, and compiled
(`spdmetric.linalg.compiled`), to be fast.  `make_stack` chooses, and of large matrices at low rank
`PlainStack.decompose`, by the sizes and the environment's settings alone; the results agree to some 1e-12.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.linalg.blas import dtrmm

from spdmetric.linalg import compiled
from spdmetric.linalg.hermitian import fold, to_complex, to_real, unfold
from spdmetric.linalg.symmetric import (
    Moments,
    compose,
    compute_cotangents,
    compute_moments,
    is_complex,
    sinhc,
    ucothu,
    unvech,
    vech,
)

if TYPE_CHECKING:
    from spdmetric.linalg.compiled.stack import CompiledDecomposition, CompiledStack

OneStack: TypeAlias = "PlainStack | CompiledStack"
Factor: TypeAlias = "np.ndarray | Views"
Stack: TypeAlias = Any  # of one kind of matrices, or of several views: each takes a factor of its own kind
Decomposition: TypeAlias = Any

LIMIT = 96  # beyond, eight matrices leave the cache and the gain over LAPACK goes; measured to 160
# The same at low rank: rank 10 takes half of NumPy's time at size 400, nine tenths at 700.
LIMIT_AT_RANK = 512

# n d^3 of the smallest problem for the kernels, that is 40 matrices of size 8.  A fit of that size takes
# 0.1 s with NumPy, half of it with the kernels: loading them pays from some ten such fits in a process on.
SMALLEST = 40 * 8**3


def make_stack(X: np.ndarray | Views, n: int | None = None, *, again: bool = False) -> Any:
    """Return the stack for n matrices, X among them; without n its kind depends on the size of each alone.

    With ``again`` it will be decomposed many times, and may keep what is the same each time.
    """
    if isinstance(X, Views):
        return ViewStacks(tuple(make_stack(view, n, again=again) for view in X.views))
    if is_complex(X):
        return ComplexStack(make_stack(to_real(X), n, again=again))
    return compiled.load().of(X) if pays(n, X.shape[1]) else PlainStack(X, again=again)


def pays(n: int | None, d: int) -> bool:
    """Whether the kernels are to evaluate n matrices of size d, 40 if that is not known, some thirty times.

    Never does it depend on what the process did before.  ``SPDMETRIC_COMPILED=0`` keeps all problems with
    NumPy, ``SPDMETRIC_COMPILED=1`` none that the kernels can do.
    """
    wish = os.environ.get("SPDMETRIC_COMPILED")
    if wish == "0" or not 1 <= d <= LIMIT or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    return (wish == "1" or (40 if n is None else n) * d**3 >= SMALLEST) and compiled.works()


def pays_at_rank(n: int, d: int, m: int) -> bool:
    """Whether the kernels are to evaluate n matrices of size d many times at factors of low rank m."""
    return d <= LIMIT_AT_RANK and pays(n * d**2 // m**2, m)


@dataclass(eq=False)
class PlainStack:
    """A stack in NumPy; of large matrices lower triangles are read.

    One that is decomposed again keeps the Cholesky factors of large matrices, or at low rank what kernels
    pack.
    """

    X: np.ndarray  # (n, d, d)
    again: bool = False  # whether it will be decomposed many times
    factors: dict[int, np.ndarray | None] = field(default_factory=dict)  # those that are kept, by number
    packed: CompiledStack | None = None

    def _congruence(self, W: np.ndarray, k: int) -> np.ndarray:
        """Lower triangle of ``W X W'`` of the k-th matrix, a large one; with ``X = C C'`` if that exists."""
        if k in self.factors:
            C = self.factors[k]
        else:
            try:
                C = np.linalg.cholesky(self.X[k].astype(np.float64, copy=False))
            except np.linalg.LinAlgError:
                C = None
            if self.again:
                self.factors[k] = C
        if C is None:
            return _half_product(W @ self.X[k], W.T, lower=True)
        root = dtrmm(1.0, C.T, W.T).T  # W C, of transposes, as BLAS has its arrays by columns
        return root @ root.T

    def decompose(self, W: np.ndarray) -> PlainDecomposition | CompiledDecomposition:
        """Decompose ``W X W'``; where it has left float64 its logarithm is NaN."""
        n, (m, d) = self.X.shape[0], W.shape
        at_identity = m == d and np.array_equal(W, np.eye(d))
        # For few rows of W, BLAS spends more time on copying X than on its products.
        if self.again and 2 * m <= d and pays_at_rank(n, d, m):
            self.packed = self.packed or compiled.load().of(self.X)
            return self.packed.decompose(W)
        WX = np.empty((n, m, d)) if 2 * m <= d else None  # kept where that needs little memory
        logs, vectors, features = np.empty((n, m)), np.empty((n, m, m)), np.empty((n, m * (m + 1) // 2))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # Matrices to work on at a time: their temporaries stay in the cache, large ones go alone.
            size = max(1, 40_000 // m**2) if len(_bands(m)) == 1 else 1
            for first in range(0, n, size):
                rows = slice(first, min(first + size, n))
                if at_identity:
                    A = self.X[rows]
                elif WX is not None:
                    A = _half_product(np.matmul(W, self.X[rows], out=WX[rows]), W.T, lower=True)
                elif len(_bands(m)) == 1:
                    A = W @ self.X[rows] @ W.T
                else:  # one at a time
                    A = self._congruence(W, rows.start)[None]
                values, V = _eigh(A)
                logs[rows], vectors[rows] = np.log(values), V
                features[rows] = vech((compose if len(_bands(m)) == 1 else _logarithm)(logs[rows], V))
            spread = logs[:, -1] - logs[:, 0]
        return PlainDecomposition(self.X, W, logs, vectors, features, spread, WX)


@dataclass(frozen=True, eq=False)
class PlainDecomposition:
    """A stack in NumPy, decomposed at W."""

    X: np.ndarray  # (n, d, d)
    W: np.ndarray  # (m, d)
    logs: np.ndarray  # (n, m), logarithms of the eigenvalues of W X W', ascending
    vectors: np.ndarray  # (n, m, m), eigenvectors
    features: np.ndarray  # (n, p)
    spread: np.ndarray  # (n,), largest less smallest log-eigenvalue
    WX: np.ndarray | None = None  # (n, m, d), where they are kept

    moments = staticmethod(compute_moments)
    cotangents = staticmethod(compute_cotangents)

    def pull(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` along ``W -> exp(-xi/2) W``, which moves G along a geodesic.

        In the eigenbasis of ``W X W'`` the derivative of the logarithm is multiplication by -h(t), t the gaps
        of the log-eigenvalues, ``h(t) = (t/2) coth(t/2)``.  Of large matrices one triangle is enough: with
        ``E = V' M V`` and ``h o E = N + N'`` the sum of ``V N V'`` and its transpose.
        """
        m = self.W.shape[0]
        if len(_bands(m)) == 1:
            logs, V, M = self.logs, self.vectors, unvech(rows)
            h = ucothu((logs[:, :, None] - logs[:, None, :]) / 2)
            return np.sum(V @ (-h * (V.mT @ M @ V)) @ V.mT, axis=0)
        total = np.zeros((m, m))
        for row, log, V in zip(rows, self.logs, self.vectors, strict=True):
            N = _half_product(V.T, unvech(row) @ V, lower=False)
            for band in _bands(m):
                N[band, band.start :] *= ucothu((log[band.start :] - log[band, None]) / 2)
            N.reshape(-1)[:: m + 1] /= 2
            total -= dtrmm(1.0, N.T, V.T, lower=1).T @ V.T  # V N, whose lower triangle is not read
        return total + total.T

    def pull_factor(self, rows: np.ndarray) -> np.ndarray:
        """Derivative of ``sum <rows, features>`` in the entries of W."""
        logs, V, M = self.logs, self.vectors, unvech(rows)
        WX = self.W @ self.X if self.WX is None else self.WX
        root = np.exp(-logs / 2)
        slope = root[:, :, None] * root[:, None, :] / sinhc((logs[:, :, None] - logs[:, None, :]) / 2)
        B = V @ (slope * (V.mT @ M @ V)) @ V.mT  # D log [M], (n, m, m)
        return 2 * np.tensordot(B, WX, axes=((0, 2), (0, 1)))


# -- Several views, whose features are put side by side


@dataclass(frozen=True, eq=False)
class Views:
    """What there is of each view: its matrices, its factor, or its part of a derivative.

    Rows are taken of all views, and sums view by view.
    """

    views: tuple[np.ndarray, ...]  # of sizes of their own
    scales: tuple[float, ...] = ()  # of factors: what the features of the view are multiplied with

    @property
    def shape(self) -> tuple[int, ...]:
        """Of matrices: as of one array, its size that of the largest view."""
        d = max(view.shape[-1] for view in self.views)
        return (len(self.views[0]), len(self.views), d, d)

    @property
    def dtype(self) -> Any:
        """That of the matrices."""
        return self.views[0].dtype

    def __getitem__(self, rows: Any) -> Views:
        return Views(tuple(view[rows] for view in self.views))

    def __add__(self, other: Views) -> Views:
        return map_views(np.add, self, other)


def map_views(f: Callable[..., Any], *arrays: Factor) -> Any:
    """A function of arrays, or of what there is of each view; scales stay those of the first."""
    if isinstance(arrays[0], Views):
        return Views(tuple(map(f, *(array.views for array in arrays))), arrays[0].scales)  # type: ignore[union-attr]
    return f(*arrays)


def count_features(W: Factor) -> int:
    """Length of the tangent vectors at a factor."""
    if isinstance(W, Views):
        return sum(map(count_features, W.views))
    return len(W) ** 2 if is_complex(W) else len(W) * (len(W) + 1) // 2


def view_columns(views: Iterable[np.ndarray]) -> Iterator[slice]:
    """Where the features of each view are, given its factor or another matrix of as many rows."""
    stop = 0
    for view in views:
        start, stop = stop, stop + count_features(view)
        yield slice(start, stop)


@dataclass(frozen=True, eq=False)
class ViewStacks:
    """A stack of each view."""

    stacks: tuple[Any, ...]

    def decompose(self, W: Views) -> Rearranged:
        """Decompose each view at its factor; features are scaled."""
        parts: list[Any] = []
        features, columns = np.empty((0, 0)), list(view_columns(W.views))
        for stack, factor, scale, place in zip(self.stacks, W.views, W.scales, columns, strict=True):
            part = stack.decompose(factor)
            if not parts:
                features = np.empty((len(part.features), count_features(W)))
            np.multiply(part.features, scale, out=features[:, place])
            parts.append(replace(part, features=features[:, place]))  # they are not kept twice

        def of_views(rows: np.ndarray) -> Iterator[np.ndarray]:
            return (scale * rows[:, place] for scale, place in zip(W.scales, columns, strict=True))

        return Rearranged(tuple(parts), features, of_views, Views)


@dataclass(frozen=True, eq=False)
class ComplexStack:
    """Hermitian matrices: real ones of twice the size, whose features keep what differs."""

    real: OneStack

    def decompose(self, W: np.ndarray) -> Rearranged:
        """Decompose ``W X W'`` for a complex factor."""
        part = self.real.decompose(to_real(W))
        return Rearranged(
            (part,), fold(part.features), lambda rows: [unfold(rows)], lambda found: to_complex(found[0])
        )


@dataclass(frozen=True, eq=False)
class Rearranged:
    """Decompositions whose features were rearranged; those of the first are summed by its functions."""

    parts: tuple[Any, ...]
    features: np.ndarray  # (n, p)
    of_parts: Callable[[np.ndarray], Iterable[np.ndarray]]  # cotangents of the features of each part
    join: Callable[[tuple[np.ndarray, ...]], Factor]  # what was pulled back through each part

    @property
    def moments(self) -> Callable[..., Moments]:
        return self.parts[0].moments

    @property
    def cotangents(self) -> Callable[..., np.ndarray]:
        return self.parts[0].cotangents

    def pull(self, rows: np.ndarray) -> Factor:
        """Derivative of ``sum <rows, features>`` along ``W -> exp(-xi/2) W``."""
        return self.join(tuple(map(lambda part, own: part.pull(own), self.parts, self.of_parts(rows))))

    def pull_factor(self, rows: np.ndarray) -> Factor:
        """Derivative of ``sum <rows, features>`` in the entries of W, real and imaginary parts of each."""
        return self.join(tuple(map(lambda part, own: part.pull_factor(own), self.parts, self.of_parts(rows))))


# -- Products that are triangular or symmetric: large matrices need little more than half the operations, in
# bands of rows, by BLAS, or by NumPy, which knows the product of a matrix with its own transpose.


def _eigh(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors of a stack; NaN for a matrix that LAPACK gives up on, for that one alone."""
    try:
        return np.linalg.eigh(A)
    except np.linalg.LinAlgError:
        if len(A) == 1:
            return np.full(A.shape[:2], np.nan), np.full(A.shape, np.nan)
        values, vectors = zip(*map(_eigh, np.array_split(A, 2)), strict=True)
        return np.concatenate(values), np.concatenate(vectors)


@lru_cache(maxsize=32)
def _bands(m: int) -> list[slice]:
    """Rows of large matrices, which the kernels leave to NumPy, in bands; of others all in one band."""
    width = 72 if m > LIMIT else m  # a multiple of 24: OpenBLAS takes that many rows at a time
    return [slice(k, min(k + width, m)) for k in range(0, m, width)]


def _half_product(A: np.ndarray, B: np.ndarray, *, lower: bool) -> np.ndarray:
    """Lower or upper triangles of the products A B; beyond them there is something else."""
    bands = _bands(A.shape[-2])
    if len(bands) == 1:
        return A @ B
    out = np.empty((*A.shape[:-1], B.shape[-1]))
    for band in bands:
        columns = slice(0, band.stop) if lower else slice(band.start, None)
        np.matmul(A[..., band, :], B[..., columns], out=out[..., band, columns])
    return out


def _logarithm(logs: np.ndarray, V: np.ndarray) -> np.ndarray:
    """``V diag(logs) V'`` of large matrices, for logs that ascend: but for the smallest, a square."""
    m, low = logs.shape[-1], logs[:, :1]
    root = V * np.sqrt(logs - low)[:, None, :]
    L = root @ root.mT
    L.reshape(-1, m * m)[:, :: m + 1] += low
    return L
