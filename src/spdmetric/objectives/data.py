"""Labeled matrices: one record wherever they are, and one way to map over their chunks.

`Data` holds matrices that this process can slice, in memory or in a file, and their target;
`spdmetric.distributed` has the same record for matrices on workers.  Whatever is computed of all is a sum
over chunks: of the matrices (`Data.average`, `Data.total`), or of these decomposed at a factor
(`Data.decompose`, `Data.total_of_parts`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from operator import add
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length

from spdmetric.linalg.batch import Decomposition, Factor, Stack, Views, make_stack
from spdmetric.linalg.symmetric import Array, Moments, Summary, adjoint, congruence, symmetrize
from spdmetric.linalg.threads import Map
from spdmetric.means import RowFunction
from spdmetric.validation import (
    ClassWeight,
    as_numpy,
    check_chunk,
    check_labels,
    check_stack,
    check_weights,
    class_scale,
    is_regression,
)

_EPS = float(np.finfo(np.float64).eps)

Rows = slice | np.ndarray  # a slice, or ascending row numbers

# -- Targets ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Labeled:
    """Targets and weights of matrices, of all or of a chunk; what is known of all stays with a chunk."""

    values: np.ndarray  # classes 0, 1, ..., (n,); or regression targets, (n, q), in units of their spread
    weight: np.ndarray  # (n,)
    Y: np.ndarray  # (n, c), indicators of classes, or the values, less the mean of all
    mean: np.ndarray  # (c,), of all: of classes their shares of the weight
    squares: np.ndarray  # B, (c, c), of all
    total: float  # weight of all

    def part(self, rows: slice) -> Self:
        """Those of a chunk."""
        return replace(self, values=self.values[rows], weight=self.weight[rows], Y=self.Y[rows])


@dataclass(frozen=True, eq=False)
class ClassTarget(_Labeled):
    """Classes: for two of them the alignment of the centered indicators is that of the paper's y y'."""

    counts: np.ndarray  # (c,), how many matrices there are in all
    per_class: float  # matrices of one weight that a class is worth, on the mean of those that occur

    @classmethod
    def from_codes(
        cls, codes: np.ndarray, weight: np.ndarray | None = None, n_classes: int | None = None
    ) -> ClassTarget:
        """All matrices, by default of weight 1 and with every class among them."""
        n_classes = int(codes.max()) + 1 if n_classes is None else n_classes
        weight = np.ones(codes.size) if weight is None else weight
        counts = np.bincount(codes, minlength=n_classes)
        total = float(weight.sum())
        share = np.bincount(codes, weights=weight, minlength=n_classes) / total
        Y = np.eye(n_classes)[codes] - share
        per_class = total**2 / float(np.vdot(weight, weight)) / int(np.count_nonzero(counts))
        return cls(codes, weight, Y, share, Y.T @ (weight[:, None] * Y), total, counts, per_class)

    def take(self, index: Rows) -> ClassTarget:
        """Some of them, by themselves; classes may be absent."""
        return self.from_codes(self.values[index], self.weight[index], len(self.counts))

    @property
    def present(self) -> ClassTarget:
        """The same without classes that are absent."""
        if self.counts.all():
            return self
        return self.from_codes(np.unique(self.values, return_inverse=True)[1], self.weight)

    @property
    def regressors(self) -> np.ndarray:
        """Columns that functions of the target are sums of: indicators, (n, c)."""
        return np.eye(len(self.counts))[self.values]

    @property
    def judged(self) -> np.ndarray:
        """Whose errors count, (n,): without the only matrix of a class nothing is known of the class."""
        return self.counts[self.values] > 1

    def norm_about(self, mean: np.ndarray) -> float:
        """The norm of B for weights that add up to 1, given the mean of the regressors."""
        return float(np.linalg.norm(np.diag(mean) - np.outer(mean, mean)))

    def contrasts(self, means: np.ndarray) -> list[np.ndarray]:
        """What to tell apart, given the means of all classes: two classes share one contrast."""
        return [means[0] - means[1]] if len(means) == 2 else list(means)


@dataclass(frozen=True, eq=False)
class RegressionTarget(_Labeled):
    """Regression targets."""

    per_class = None  # there are no classes: the penalty of a weighting is that of the least error

    @classmethod
    def from_values(cls, values: np.ndarray, weight: np.ndarray | None = None) -> RegressionTarget:
        """All matrices, by default of weight 1."""
        weight = np.ones(len(values)) if weight is None else weight
        mean = np.average(values, axis=0, weights=weight)
        Y = values - mean
        return cls(values, weight, Y, mean, Y.T @ (weight[:, None] * Y), float(weight.sum()))

    def take(self, index: Rows) -> RegressionTarget:
        """Some of them, by themselves."""
        return self.from_values(self.values[index], self.weight[index])

    @property
    def present(self) -> RegressionTarget:
        """The same: no classes are absent."""
        return self

    @property
    def regressors(self) -> np.ndarray:
        """A constant and the targets, (n, 1 + q)."""
        return np.column_stack([np.ones(len(self.values)), self.values])

    @property
    def judged(self) -> np.ndarray:
        """Whose errors count, (n,): all."""
        return np.ones(len(self.values), bool)

    def norm_about(self, mean: np.ndarray) -> float:
        """The norm of B for weights that add up to 1, which is that of all whatever the mean of some."""
        return float(np.linalg.norm(self.squares)) / self.total

    def contrasts(self, means: np.ndarray) -> list[np.ndarray]:
        """The slopes, without the constant."""
        return list(means[1:])


Target: TypeAlias = ClassTarget | RegressionTarget
Summand = Callable[[np.ndarray, Any], Any]  # of matrices and their target


def check_target(
    X: Array, y: Array, sample_weight: Array, class_weight: ClassWeight, task: str
) -> tuple[np.ndarray | None, Target]:
    """The classes, None for regression targets, and the target."""
    if y is None or not is_regression(y, task):
        classes, codes = np.unique(check_labels(X, y), return_inverse=True)
        weight = check_weights(sample_weight, codes, scaled=True)
        totals = np.bincount(codes, weights=weight, minlength=classes.size)
        scale = class_scale(weight.sum(), totals, classes, class_weight)
        return classes, ClassTarget.from_codes(codes, weight * scale[codes], len(classes))
    if class_weight is not None:
        raise ValueError(
            f"class_weight={class_weight!r} is for classes, and y holds regression targets: pass "
            "sample_weight to fit, or task='classification' if the numbers are labels."
        )
    values = check_values(X, y)
    weight = check_weights(sample_weight, values, scaled=True)
    return None, RegressionTarget.from_values(_standardize(values, weight), weight)


def check_values(X: Array, y: ArrayLike) -> np.ndarray:
    """Return regression targets, (n, q), in float64, or say why they are none."""
    y = as_numpy(y, "y")
    if y.dtype.kind not in "fiu":
        raise ValueError(
            f"y has dtype {y.dtype}: expected numbers, as regression targets. For labels choose "
            "LogEuclideanClassifier, or task='classification'."
        )
    if y.ndim not in (1, 2) or 0 in y.shape:
        raise ValueError(f"y has shape {y.shape}: expected (n_matrices,) or (n_matrices, n_outputs).")
    check_consistent_length(X, y)
    values = y.reshape(len(y), -1).astype(np.float64)
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        place = bad[0, 0] if y.ndim == 1 else ", ".join(map(str, bad[0]))
        raise ValueError(
            f"y[{place}] is {values[tuple(bad[0])]}, NaN or infinity: expected finite numbers. Drop that "
            "matrix, or fill in its value."
        )
    return values


def _standardize(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Targets (n, q) about their weighted means, in units of their spread; constant ones are refused."""
    largest = np.abs(values).max(axis=0)
    unit = values / np.where(largest > 0, largest, 1.0)  # squares stay in float64
    unit -= np.average(unit, axis=0, weights=weight)
    spread = np.sqrt(np.average(unit**2, axis=0, weights=weight))
    constant = np.flatnonzero(spread <= 10 * _EPS)
    if constant.size:
        name = "y" if values.shape[1] == 1 else f"y[:, {constant[0]}]"
        raise ValueError(
            f"{name} is constant, {values[np.argmax(weight), constant[0]]:g} for every matrix with weight: "
            "there is nothing to predict."
        )
    return unit / spread


# -- Chunks -------------------------------------------------------------------


@dataclass(eq=False)
class Chunk:
    """A chunk of the data; the matrices are fetched when they are asked for."""

    X: Any  # anything of shape (n, d, d) that slices to arrays, or of several views to `Views`
    rows: slice
    target: Any
    n: int  # matrices of all chunks, by which kernels are chosen
    keep: bool  # whether they are packed once for all factors
    stack: Stack | None = None

    def decompose(self, W: Factor) -> Decomposition:
        """The matrices at a factor."""
        stack = self.stack
        if stack is None:
            X = self.X[self.rows]
            stack = make_stack(X if isinstance(X, Views) else np.asarray(X), self.n, again=self.keep)
            self.stack = stack if self.keep else None
        return stack.decompose(W)

    def evaluate(self, W: Factor, *, kept: bool, gram: bool = False) -> tuple[Moments, Decomposition | None]:
        """Moments at a factor, and the matrices there if these are kept."""
        here, target = self.decompose(W), self.target
        moments = here.moments(here.features, target.Y, target.weight[:, None], gram=gram)
        return moments, here if kept else None


# -- The record ---------------------------------------------------------------


@dataclass(eq=False)
class Data:
    """Labeled matrices that this process can slice.

    ``rows`` are the chunks, by default of one size that depends on d; ``map`` maps a function over them.
    """

    X: Any  # (n, d, d) or (n, views, d, d), anything that slices to arrays; or `Views`, once whitened
    target: Any  # a `Target` of all of them
    rows: list[slice] | None = None
    map: Map = map

    gathers = True  # vectors of all matrices can be brought together
    gather: ClassVar[Any]  # brings a few here with their target, where chunks are elsewhere

    def __post_init__(self) -> None:
        self.shape = tuple(self.X.shape)  # (n, d, d), or (n, views, d, d)
        self.dtype = self.X.dtype  # float64, or complex128
        self._rows = row_chunks(self.shape) if self.rows is None else self.rows
        # Whether what is computed of all matrices is kept there too.
        self._held = isinstance(self.X, np.ndarray | Views)
        self.in_memory = self._held and fits(prod(self.shape[:-2]), self.shape[-1])
        n, keep = self.shape[0], self.in_memory
        self.chunks = [Chunk(self.X, rows, self.target.part(rows), n, keep) for rows in self._rows]

    def take(self, index: Rows) -> Data:
        """Some of them; classes may be absent."""
        X = self.X[index] if self._held else select_rows(self.X, np.arange(self.shape[0])[index])
        return Data(X, self.target.take(index), map=self.map)

    @property
    def weighted(self) -> Data:
        """Those of positive weight."""
        counts = self.target.weight > 0
        return self if counts.all() else self.take(np.flatnonzero(counts))

    def average(self, f: RowFunction) -> np.ndarray:
        """Weighted mean of the rows ``f(X)``; its bits do not depend on the chunks."""
        weight = self.target.weight
        total: np.ndarray | float = 0.0
        of_chunks = self.map(lambda rows: f(self.X[rows]), self._rows)
        for rows, values in zip(self._rows, of_chunks, strict=True):
            values = weight[rows].reshape(-1, *[1] * (values.ndim - 1)) * values
            values[0] += total  # NumPy adds up rows one after the other
            total = values.sum(axis=0)
        return total / weight.sum()

    def total(self, f: Summand) -> Any:
        """Sum of ``f(X, target)`` over the chunks, in their order."""
        # What is in memory, and was not to be cut, is summed at once.
        rows = [slice(0, self.shape[0])] if self.rows is None and self.in_memory else self._rows
        return sum(self.map(lambda part: f(self.X[part], self.target.part(part)), rows))

    def whitened(self, factor: Factor) -> Data:
        """The matrices ``W X W'``: in memory if these are and it fits, else whenever they are read."""
        if self.in_memory:
            return replace(self, X=whiten(factor, self.X), rows=self._rows)
        X, shape = self.X, whitened_shape(self.shape[0], factor)
        lazy_stack = LazyStack(shape, lambda rows: whiten(factor, X[rows]), self.dtype)
        return replace(self, X=lazy_stack, rows=self._rows)

    # -- chunks at a factor ---------------------------------------------------

    def decompose(self, W: Factor, *, gram: bool) -> tuple[Moments, Summary, list[Decomposition]]:
        """Moments of all chunks at W, their summary, and the chunks decomposed, none if they are not kept."""
        kept = self.in_memory or gram  # the Gram form keeps its few in any case
        results = iter(self.map(lambda chunk: chunk.evaluate(W, kept=kept, gram=gram), self.chunks))
        merged, part = next(results)
        parts = [part]
        for moments, part in results:
            merged = merged.merge(moments, overwrite=True)
            parts.append(part)
        return merged, Summary.from_moments(merged), parts if kept else []

    def total_of_parts(self, f: Callable[..., Any], W: Factor, parts: list[Any], *shared: Any) -> Any:
        """Sum of ``f(chunk, part, *shared)`` over the chunks, decomposed at W again if they were not kept."""
        if parts:
            values = self.map(lambda both: f(*both, *shared), zip(self.chunks, parts, strict=True))
        else:
            values = self.map(lambda chunk: f(chunk, chunk.decompose(W), *shared), self.chunks)
        return reduce(add, values)

    def call(self, f: Callable[..., Any], *args: Any, fetch: bool = False) -> Any:
        """Call a function where moments are; its result stays there unless it is to be fetched."""
        return f(*args)


# -- Reading and checking, chunk by chunk -------------------------------------


def is_stored(X: Array) -> bool:
    """Whether to read X chunk by chunk: a memory map, or what has a shape and slices but is no array."""
    if isinstance(X, np.ndarray):
        return isinstance(X, np.memmap)
    has_all = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return has_all and not is_array_api_obj(X) and not hasattr(X, "iloc") and not issparse(X)


def stored_shape(X: Array) -> tuple[int, ...]:
    """Shape of a stack that is about to be read, or why it is no stack."""
    check_stack(X, "X", views=True)
    return tuple(X.shape)


def row_chunks(shape: tuple[int, ...], size: int | None = None) -> list[slice]:
    """Chunks of a stack, of like sizes, by default at most one that depends on the size of matrices alone."""
    n, size = shape[0], default_chunk_size(shape[-1]) if size is None else size
    if n > size:
        even = -(-n // -(-n // size))
        size = even if size % 8 else -(-even // 8) * 8  # kernels take eight matrices at a time
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def default_chunk_size(d: int) -> int:
    """Matrices of size d in a chunk: enough work to be worth a thread's while, and little memory."""
    return int(max(64, min(5.5e7 / (20 * d**3), 16384))) // 8 * 8


def read(X: Array, rows: Rows) -> np.ndarray:
    """Read some matrices into memory, or say which cannot be read."""
    if isinstance(X, LazyStack):  # what it reads itself has its own sentences
        return X[rows]
    try:
        # Zarr has a word of its own for row numbers.
        return np.asarray(X.oindex[rows] if hasattr(X, "oindex") else X[rows])
    except (OSError, EOFError, RuntimeError, ValueError) as error:
        first, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else (rows[0], rows[-1])
        raise OSError(
            f"Matrices {first} to {last} of X cannot be read: the file is truncated or damaged "
            f"({type(error).__name__}: {error}). Write it again."
        ) from error


def check_chunks(X: Array, rank: int | None, rows: list[slice], map: Map = map) -> Iterator[tuple[Any, Any]]:
    """Yield each chunk as it was read and as it was checked; errors name chunk and matrix."""
    _check_file(X)

    def checked(numbered: tuple[int, slice]) -> tuple[np.ndarray, np.ndarray]:
        k, part = numbered
        chunk = read(X, part)
        return chunk, check_chunk(chunk, rank, k, part, len(rows))

    yield from map(checked, enumerate(rows))


def check_stored(X: Array, rank: int | None, rows: list[slice], map: Map = map) -> LazyStack:
    """Check a stack, chunk by chunk, that is read again; it need not be symmetric to the last digit."""
    return as_symmetric(X, all([np.array_equal(c, adjoint(c)) for c, _ in check_chunks(X, rank, rows, map)]))


def as_symmetric(X: Array, symmetric: bool) -> LazyStack:
    """A stack in double precision, and made symmetric unless it is, whenever it is read."""
    dtype = np.complex128 if np.dtype(X.dtype).kind == "c" else np.float64

    def of_rows(rows: Rows) -> np.ndarray:
        chunk = read(X, rows).astype(dtype, copy=False)
        return chunk if symmetric else symmetrize(chunk)

    return LazyStack(X.shape, of_rows, dtype)


def leave_out_stored(X: Array, sample_weight: Array | None) -> Array:
    """A stack that is read, with the identity in place of matrices without weight."""
    weight = check_weights(sample_weight, X)
    if weight.all():
        return X
    _check_file(X)
    return LazyStack(X.shape, lambda rows: replace_left_out(read(X, rows), weight[rows]), X.dtype)


def replace_left_out(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The identity in place of matrices without weight; of a file cut short there may be fewer of them."""
    left = weight[: len(X)] == 0
    if not left.any():
        return X
    X = np.array(X)
    X[left] = np.eye(X.shape[-1])
    return X


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


# -- Stacks that are read or made when they are asked for ---------------------


class LazyStack:
    """A stack of which some matrices are made whenever they are asked for."""

    def __init__(
        self, shape: tuple[int, ...], of_rows: Callable[[Rows], np.ndarray], dtype: Any = np.float64
    ):
        self.shape, self._of_rows, self.dtype = tuple(shape), of_rows, np.dtype(dtype)

    def __getitem__(self, rows: Rows) -> np.ndarray:
        return self._of_rows(rows)


def select_rows(X: Array, index: np.ndarray) -> LazyStack:
    """Some matrices of a stack, in their order."""

    def of_rows(rows: Rows) -> np.ndarray:
        some = index[rows]
        if not isinstance(rows, slice):
            return X[some]
        return X[slice(some[0], some[-1] + 1)][some - some[0]]

    return LazyStack((index.size, *X.shape[1:]), of_rows, X.dtype)


def whiten(factor: Factor, X: Any) -> Any:
    """The matrices ``W X W'``; of several views, each by its own factor, without its padding."""
    if isinstance(factor, np.ndarray):
        Z = np.empty((len(X), len(factor), len(factor)), np.result_type(factor, X))
        for rows in row_chunks(X.shape):  # what lies between is not held for all of them
            Z[rows] = congruence(factor, X[rows])
        return Z
    return Views(tuple(whiten(W, take_view(X, v, W.shape[1])) for v, W in enumerate(factor.views)))


def take_view(X: Any, v: int, size: int) -> np.ndarray:
    """The v-th view of samples, or of means, of its own size: what is beyond is padding."""
    return X.views[v] if isinstance(X, Views) else X[..., v, :size, :size]


def count_differences(X: Any, target: object = None) -> Any:
    """How many samples differ from the identity in each row of each view, (views, d)."""
    return (np.eye(X.shape[-1]) != X).any(axis=3).sum(axis=0)


def view_sizes(differences: np.ndarray) -> list[int]:
    """Sizes of views, given the differences of all samples: what is always the identity beyond is padding."""
    differ = np.asarray(differences) > 0
    d = differ.shape[1]
    return [d - int(np.argmax(row[::-1])) if row.any() else d for row in differ]


def find_view_sizes(X: Any) -> list[int]:
    """Sizes of the views of samples, wherever they are."""
    if is_stored(X):
        return view_sizes(sum(count_differences(read(X, rows)) for rows in row_chunks(X.shape)))
    return view_sizes(count_differences(X))


def whitened_shape(n: int, factor: Factor) -> tuple[int, ...]:
    """Shape of n matrices once whitened."""
    views = (factor,) if isinstance(factor, np.ndarray) else factor.views
    k = max(len(W) for W in views)
    return (n, k, k) if isinstance(factor, np.ndarray) else (n, len(views), k, k)


# -- Memory -------------------------------------------------------------------

_UNKNOWN_MEMORY = 8 * 2**30
_ALWAYS_FITS = 2**26  # a quarter of less memory than Python with NumPy and SciPy needs to work at all


def fits(n: int, d: int) -> bool:
    """Whether n matrices, whitened and decomposed at two points, take at most a quarter of the memory."""
    needed = 8 * n * (2 * d * d + 2 * (d * d + d * (d + 1)))  # whitened, and packed or factored
    return needed <= _ALWAYS_FITS or needed <= memory_limit() / 4


def check_memory(needed: int, what: str) -> None:
    """Refuse what needs more bytes than this process may use."""
    limit = memory_limit()
    if needed > limit:
        raise MemoryError(
            f"{what} would take {needed / 1e9:.3g} GB, and this process may use {limit / 1e9:.3g} GB: pass "
            "fewer matrices at a time."
        )


def memory_limit(root: str | os.PathLike[str] = "/") -> int:
    """Bytes that this process may use: of the machine, or of its container, by files below ``root``."""
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
