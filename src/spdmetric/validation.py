"""Validation, once, at the public edge: a stack of matrices, or a sentence that says why not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import frexp, isfinite, ldexp
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
from array_api_compat import is_array_api_obj, is_cupy_array, is_dask_array, is_numpy_array, is_torch_array
from numpy.typing import ArrayLike
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from spdmetric.caller import spell
from spdmetric.linalg.symmetric import Array, adjoint, array_namespace, detached, is_complex, symmetrize

_EPS = float(np.finfo(np.float64).eps)

ClassWeight = str | Mapping[Hashable, float] | None  # None, "balanced", or weights by label

_SINGLE = ("float32", "float16", "bfloat16", "complex64")
_SIZES = (1e-150, 1e150)  # of the largest entry of a matrix: its square must be a number
_WEIGHTS = 1e12  # largest ratio of two positive weights
_WEIGHT_SIZES = (1e-307, 1e303)  # of one that is positive: sums of many must be numbers
LARGEST_RADIUS = 300.0  # exp(radius) and its square must be numbers, those of matrices besides


class UninformativeDataError(ValueError):
    """Matrices and targets from which nothing can be learned."""


def check_spd(X: ArrayLike, *, name: str = "X", first: int = 0) -> Array:
    """Return a stack of SPD matrices in float64, or say which matrix is not one and why.

    Hermitian ones are taken too, in complex128.

    Parameters
    ----------
    X : array-like of shape (n, d, d)
        Symmetric positive definite matrices, or Hermitian ones.  Asymmetry up to 1e-8 of the largest
        entry (1e-5 for float32) counts as rounding and is averaged.
    name : str, default="X"
        What the sentences call the stack.
    first : int, default=0
        What they call its first matrix, where the stack is a chunk of a longer one.

    Returns
    -------
    X : array of shape (n, d, d), float64
        In the namespace of the input.  The input itself where nothing had to change.

    Raises
    ------
    ValueError
        With a sentence that names the first offending matrix.
    """
    return check_psd(X, None, name=name, first=first, views=False)


def check_psd(X: Any, rank: int | None, *, name: str = "X", first: int = 0, views: bool = True) -> Array:
    """Return positive semi-definite matrices of at least some numerical rank; None: they must be definite.

    All else is as in `check_spd`, but that with ``views`` samples may be of several, (n, views, d, d).
    """
    X = as_numpy(X, name) if isinstance(X, list | tuple) else X
    if views and len(getattr(X, "shape", ())) == 4:
        check_stack(X, name, views=True)
        stacks = [X[:, v, :, :] for v in range(X.shape[1])]
        checked = [check_psd(of, rank, name=f"{name}[:, {v}]", first=first) for v, of in enumerate(stacks)]
        same = all(one is other for one, other in zip(stacks, checked, strict=True))
        return X if same else array_namespace(checked[0]).stack(checked, axis=1)
    X = check_symmetric(X, name=name, first=first)
    if (spectra := _find_spectra(X)) is not None:
        _check_ranks(*spectra, rank, name, first)
    return X


def _find_spectra(X: Array) -> tuple[Array, Array] | None:
    """Eigenvalues of each matrix, ascending, and how many are not 0; None where all are surely definite."""
    d = X.shape[-1]
    if is_numpy_array(X):  # quick: a Cholesky factorization after shifting by the tolerance, by the trace
        shifted = X.copy()
        np.einsum("nii->ni", shifted)[:] -= d * _EPS * np.trace(X, axis1=1, axis2=2).real[:, None]
        with suppress(np.linalg.LinAlgError):
            np.linalg.cholesky(shifted)
            return None
    xp = array_namespace(X)
    values = xp.linalg.eigvalsh(detached(X))
    return values, xp.sum(xp.astype(values > d * _EPS * values[:, -1:], xp.int64), axis=-1)


def _check_ranks(values: Array, ranks: Array, rank: int | None, name: str, first: int) -> None:
    """Refuse matrices of too low a rank, None for their size, or with negative eigenvalues."""
    (n, d), low, high = values.shape, values[:, 0], values[:, -1]
    wrong = ranks < d if rank is None else (low < -100 * d * _EPS * high) | (high <= 0)
    bad = first_true(wrong)
    if bad is not None:
        span = f"smallest eigenvalue {float(low[bad]):.3g}, largest {float(high[bad]):.3g}"
        if rank is not None:
            raise ValueError(
                f"{name}[{first + bad}] is not positive semi-definite ({span}): it is no covariance matrix."
            )
        raise ValueError(
            f"{name}[{first + bad}] is not positive definite ({span}, numerical rank {int(ranks[bad])} of "
            f"{d}); {np.sum(to_numpy(wrong))} of {n} matrices are not. Estimate them with shrinkage (for "
            "instance pyriemann.estimation.Covariances('oas')), or learn a low-rank metric with rank=m, m at "
            "most their rank; where all are singular in the same directions, begin with CommonRange()."
        )
    lowest = int(array_namespace(values).argmin(ranks))
    if rank is not None and int(ranks[lowest]) < rank:
        raise ValueError(
            f"{name}[{first + lowest}] has numerical rank {int(ranks[lowest])}, too low for rank={rank}: "
            f"choose rank <= {int(ranks[lowest])}, or drop that matrix."
        )


def is_definite(X: Array) -> bool:
    """Whether every matrix of a checked stack is numerically positive definite."""
    return smallest_rank(X) == X.shape[-1]


def smallest_rank(X: Array) -> int:
    """Smallest numerical rank of a matrix of a checked stack, or of several views of samples."""
    if X.ndim == 4:
        return min(smallest_rank(X[:, v, :, :]) for v in range(X.shape[1]))
    spectra = _find_spectra(X)
    return int(X.shape[-1] if spectra is None else array_namespace(X).min(spectra[1]))


def check_symmetric(X: ArrayLike, *, name: str = "X", first: int = 0) -> Array:
    """As `check_spd`, less positive definiteness."""
    if hasattr(X, "get_data"):  # MNE's
        raise TypeError(
            f"{name} is of type {type(X).__name__}. They {_SIGNALS} Covariances takes {name}.get_data()."
        )
    if hasattr(X, "iloc"):  # pandas'
        raise TypeError(
            f"{name} is a {type(X).__name__}: expected an array of shape (n_matrices, d, d). "
            f"spdmetric.stack_frame({name}) makes one of what groupby(...).corr() gives."
        )
    # In rows: sums in another order have other last digits.
    X = X if is_tensor(X) else np.asarray(as_numbers(X, name), order="C")
    check_stack(X, name)
    xp, (low, high) = array_namespace(X), _SIZES
    matrices = xp.astype(X, xp.complex128 if is_complex(X) else xp.float64, copy=False)
    largest = detached(xp.max(xp.abs(matrices), axis=(-2, -1)))  # NaN and infinity show here
    sound = (largest == 0) | ((largest >= low) & (largest <= high))
    if bool(xp.all(sound)) and bool(xp.all(matrices == adjoint(matrices))):
        return matrices  # mostly: a pass, and no copy of them
    with np.errstate(invalid="ignore", over="ignore"):
        skew = detached(xp.max(xp.abs(matrices - adjoint(matrices)), axis=(-2, -1)))
    allowed = _allowed_skew(X)
    bad = first_true(~sound | (skew > allowed * largest))
    if bad is not None and (fault := _find_fault(to_numpy(matrices[bad, :, :]), name, allowed)):
        raise ValueError(f"{name}[{first + bad}] {fault[0]}: expected {fault[1]}")
    return symmetrize(matrices)


def _allowed_skew(X: Array) -> float:
    """Asymmetry up to this much of the largest entry is rounding and is averaged away."""
    return 1e-5 if str(X.dtype).rpartition(".")[2] in _SINGLE else 1e-8


@dataclass(frozen=True)
class Bad:
    """A matrix that no method can take."""

    index: int
    where: str  # its file, or its place in the stack
    why: str


def bad_matrices(X: np.ndarray, names: Sequence[str] | None = None) -> list[Bad]:
    """All matrices of a stack that are no covariance matrices, and what is wrong with each.

    Parameters
    ----------
    X : ndarray of shape (n, d, d) or (n, views, d, d)
        Matrices as they were read; singular ones are not bad.
    names : sequence of str, optional
        What they are called, by default ``X[0]``, ``X[1]``, ...

    Returns
    -------
    bad : list of Bad
        In the order of the stack; empty where every matrix can be used.
    """
    if np.ndim(X) == 4:
        of_views = [(v, one) for v in range(X.shape[1]) for one in bad_matrices(X[:, v])]
        return _named({one.index: f"view {v}: {one.why}" for v, one in of_views}, names)
    X = as_numbers(X, "X")
    check_stack(X, "X")
    matrices, allowed = as_float(X), _allowed_skew(X)
    found = {k: fault[0] for k, A in enumerate(matrices) if (fault := _find_fault(A, "X", allowed))}
    rest = [k for k in range(len(matrices)) if k not in found]
    if rest and (spectra := _find_spectra(symmetrize(matrices[rest]))) is not None:
        # Negative by more than rounding, which `check_psd` and `CommonRange` allow.
        floor = -100 * (2 * np.finfo(np.float32).eps if allowed > 1e-8 else X.shape[-1] * _EPS)
        for k, values in zip(rest, spectra[0], strict=True):
            if values[0] < floor * abs(values).max():
                span = f"the smallest is {values[0]:.3g}, the largest {values[-1]:.3g}"
                found[k] = f"negative eigenvalues: {span}"
    return _named(found, names)


def bad_signals(X: np.ndarray, names: Sequence[str] | None = None) -> list[Bad]:
    """The same for signals, (n, channels, times): those with NaN or infinity, and those that are zero."""
    return _named({k: gaps[0] for k, one in enumerate(X) if (gaps := _find_gaps(one))}, names)


def _named(found: Mapping[int, str], names: Sequence[str] | None) -> list[Bad]:
    return [Bad(k, names[k] if names else f"X[{k}]", why) for k, why in sorted(found.items())]


def _find_gaps(A: np.ndarray) -> tuple[str, str] | None:
    """What is wrong with numbers, and what was expected."""
    for wrong, kind in ((np.isnan(A), "NaN"), (np.isinf(A), "infinity")):
        if wrong.any():
            return (
                f"contains {kind} in {wrong.sum()} of {A.size} entries",
                "finite numbers. Drop that matrix, or fix the signal it was estimated from.",
            )
    return None if A.any() else ("all entries are zero", "some that are not.")


def _find_fault(A: np.ndarray, name: str, allowed: float) -> tuple[str, str] | None:
    """Why a matrix is no covariance matrix, as far as its entries tell."""
    if (gaps := _find_gaps(A)) is not None:
        return gaps
    (low, high), largest, skew = _SIZES, np.abs(A).max(), np.abs(A - adjoint(A)).max()
    if not low <= largest <= high:
        return (
            f"has {largest:.3g} for its largest entry",
            f"between {low:g} and {high:g}, so that float64 can hold its square. Choose other units, for "
            f"instance {name} / {largest:.0e}.",
        )
    if skew > allowed * largest:
        kind, other, way = "symmetric", "transpose", ""
        if is_complex(A):
            kind, other, way = "Hermitian", "conjugate transpose", ".conj()"
        return (
            f"is not {kind}: it differs from its {other} by {skew / largest:.2g} of its largest entry",
            f"at most {allowed:.0e}, as rounding. If that is meant, pass "
            f"({name} + {name}.transpose(0, 2, 1){way}) / 2.",
        )
    return None


_SIGNALS = (
    "look like signals, (n_trials, n_channels, n_times). Estimate their covariances first, with "
    'pyriemann.estimation.Covariances: make_pipeline(Covariances("oas"), LogEuclideanClassifier()).'
)


def as_numbers(x: ArrayLike, name: str) -> np.ndarray:
    """Return a NumPy array of numbers, real or complex, or say what else it holds."""
    x = as_numpy(x, name)
    if x.dtype.kind in "fiubc":
        return x
    if x.dtype.kind != "O":
        raise ValueError(f"{name} has dtype {x.dtype}: expected real numbers.")
    for index, entry in np.ndenumerate(x):
        if not isinstance(entry, (Real, np.bool_)):
            place = f"{name}{list(index) or ''}"
            raise TypeError(
                f"{name} has dtype object, and {place} is of type {type(entry).__name__}: expected real "
                "numbers (an argument must be a number, not a string, None or an object)."
            )
    try:
        return x.astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} has a whole number that float64 cannot hold: expected less.") from error


def as_numpy(x: ArrayLike, name: str) -> np.ndarray:
    """Return one NumPy array, of a tensor too; nothing masked, sparse or ragged."""
    x = to_numpy(x)
    if isinstance(x, Mapping):
        raise TypeError(f"{name} is a dict: expected an array. Of views spdmetric.stack_views makes one.")
    if issparse(x):
        raise TypeError(f"{name} is a sparse {type(x).__name__}: expected a dense array, call toarray().")
    if isinstance(x, np.ma.MaskedArray):
        masked = np.argwhere(np.ma.getmaskarray(x))
        if masked.size:
            raise ValueError(
                f"{name}{masked[0].tolist()} is masked, as are {len(masked)} entries: expected numbers. Drop "
                "these matrices, or fill the entries with .filled(...)."
            )
    try:
        return np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be read as one array: all matrices must have one size, labels and weights be one "
            f"for each ({error})."
        ) from error


def check_stack(X: Array, name: str, *, views: bool = False) -> None:
    """Refuse what has not the shape of a stack of square matrices, or of several where there may be views."""
    shape = tuple(X.shape)
    if not 3 <= len(shape) <= 3 + views or shape[-1] != shape[-2]:
        hint = ""
        if len(shape) == 2:
            hint = f" For a single matrix pass {name}[None]; vectors are not matrices (Reshape your data)."
        elif len(shape) == 4 and not views:
            hint = f" Samples of several views are taken view by view, {name}[:, 0]."
        elif len(shape) == 3:
            hint = f" They {_SIGNALS}"
            if shape[0] == shape[1]:
                hint = f" If the last axis counts the matrices, as in MATLAB, pass {name}.transpose(2, 0, 1)."
        raise ValueError(
            f"Expected {name} of shape (n_matrices, d, d), a stack of square matrices, "
            f"got {len(shape)} dimensions and shape {shape}.{hint}"
        )
    if 0 in shape:
        raise ValueError(
            f"{name} is empty: shape {shape}, 0 sample(s); a minimum of 1 is required, of size d >= 1."
        )


def check_size(estimator: Any, X: Any) -> None:
    """Refuse matrices of another size than those that an estimator was fitted on."""
    shape, expected = tuple(getattr(X, "shape", ())), estimator.n_features_in_
    if len(shape) > 2 and shape[-1] != expected:
        raise ValueError(
            f"X has {shape[-2]} x {shape[-1]} matrices, but {type(estimator).__name__} was fitted on "
            f"{expected} x {expected} ones."
        )


def first_true(condition: Array) -> int | None:
    """Index of the first matrix for which the condition holds, None if it holds for none."""
    xp = array_namespace(condition)
    return int(xp.argmax(xp.astype(condition, xp.int64))) if bool(xp.any(condition)) else None


def check_chunk(chunk: Array, rank: int | None, k: int, rows: slice, n_chunks: int) -> Array:
    """Apply `check_psd` to chunk k of a longer stack, saying which chunk it is."""
    if len(chunk) != rows.stop - rows.start:
        raise ValueError(
            f"Chunk {k} of {n_chunks} of X holds {len(chunk)} matrices, {rows.stop - rows.start} were "
            "expected: is its file truncated?"
        )
    try:
        return check_psd(chunk, rank, first=rows.start)
    except ValueError as error:
        raise ValueError(
            f"{error} (In chunk {k} of {n_chunks}, which begins with X[{rows.start}] and holds "
            f"{rows.stop - rows.start} matrices.)"
        ) from error


# -- Parameters ---------------------------------------------------------------

Constraint = tuple[Callable[[Any], bool], str]  # whether a value is valid, and what was expected


def check_value(name: str, value: object, constraint: Constraint) -> None:
    """Refuse a value of a parameter that is not valid."""
    is_valid, expected = constraint
    if not is_valid(value):
        given = f"{name}=None" if value is None else spell(name, value)
        raise ValueError(f"{given}: expected {expected}.")


def one_of(*values: object, other: str | None = None) -> Constraint:
    """One of some values; with ``other``, which says what else is allowed, only strings are looked at."""
    expected = f"one of {', '.join(map(repr, values))}" + (f", or {other}" if other else "")
    return lambda value: (other is not None and not isinstance(value, str)) or value in values, expected


def optional(constraint: Constraint) -> Constraint:
    """The same, or None."""
    is_valid, expected = constraint
    return lambda value: value is None or is_valid(value), expected


COUNT: Constraint = (
    lambda value: isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1,
    "a whole number >= 1",
)
N_JOBS: Constraint = (
    lambda value: value is None or (isinstance(value, Integral) and value != 0),
    "a whole number, -1 for one a core, or None",
)
RANDOM_STATE: Constraint = (
    lambda value: (
        value is None
        or isinstance(value, np.random.RandomState)
        or (isinstance(value, Integral) and 0 <= int(value) < 2**32)
    ),
    "a whole number from 0 to 2**32 - 1, a RandomState of NumPy, or None for another order each time",
)


def is_finite_number(value: object) -> TypeGuard[Real]:
    """Whether a value is a real number that float64 can hold."""
    try:
        return isinstance(value, Real) and isfinite(value)
    except OverflowError:  # a whole number of several hundred digits
        return False


RADIUS: Constraint = (
    lambda value: isinstance(value, Real) and 0 <= value <= LARGEST_RADIUS,  # type: ignore[operator]
    f"a finite number >= 0, at most {LARGEST_RADIUS:g}, the largest affine-invariant distance from the "
    "start. Without a bound the search runs away to degenerate G, whose eigenvalues float64 cannot hold; 10 "
    "is the default, 2 to 20 are usual",
)


# -- Labels and weights -------------------------------------------------------


def check_labels(X: Array, y: Array, *, method: str = "fit") -> np.ndarray:
    """Return labels as an array, one for each matrix, none of them missing."""
    if y is None:
        raise ValueError(f"{method} requires y to be passed, but the target y is None.")
    y = as_numpy(y, "y")
    y = y if y.dtype.kind == "c" else column_or_1d(y, warn=True)  # complex ones are refused below
    check_consistent_length(X, y)
    return check_label_kind(y, "y")


def check_label_kind(y: np.ndarray, name: str, first: int = 0) -> np.ndarray:
    """Return labels, all strings or all numbers, none missing; ``first`` is what the first is called."""
    y = y.astype(object) if y.dtype.kind == "T" else y  # scikit-learn knows no StringDType
    kind = y.dtype.kind
    if kind not in "OUfiub":
        way = f"np.char.decode({name}, 'utf-8')" if kind == "S" else f"{name}.astype(str)"
        raise ValueError(
            f"{name} has dtype {y.dtype}: expected labels that are strings, whole numbers or booleans; pass "
            f"{way}."
        )
    missing = ~np.isfinite(y) if kind == "f" else [kind == "O" and _is_missing(label) for label in y]
    if np.any(missing):
        k = int(np.argmax(missing))
        raise ValueError(
            f"{name}[{first + k}] is {y[k : k + 1].tolist()[0]!r}, no label, as are {np.sum(missing)} of "
            f"{y.size} (Input {name} contains NaN, None or infinity): expected one for each matrix. Drop "
            "these matrices, or give them any label and sample_weight=0."
        )
    if kind != "O" or all(isinstance(label, str) for label in y):
        return y
    if all(isinstance(label, (Real, np.bool_)) for label in y):
        numbers = np.array(y.tolist())
        if numbers.dtype.kind in "fiub":
            return numbers
    k = next((k for k, label in enumerate(y) if type(label) is not type(y[0])), 0)
    other = f", and {name}[{first}] of type {type(y[0]).__name__}" if k else ""
    way = "label.decode()" if isinstance(y[k], bytes) else "str(label)"
    raise TypeError(
        f"{name}[{first + k}] is {y[k]!r}, of type {type(y[k]).__name__}{other}: expected labels that are "
        f"all strings or all numbers that NumPy can hold. Pass [{way} for label in {name}]."
    )


def _is_missing(label: object) -> bool:
    # pandas.NA is not equal to anything, itself included, and does not say so in a bool.
    missing = label is None or type(label).__name__ in ("NAType", "NaTType")
    return missing or (isinstance(label, (float, np.floating)) and not isfinite(label))


def is_regression(y: ArrayLike, task: str) -> bool:
    """Whether y holds regression targets: told by the task, or by numbers not whole, or not finite."""
    y = as_numpy(y, "y")
    if task != "auto" or y.dtype.kind != "f" or y.ndim not in (1, 2):
        return task == "regression"
    return bool(np.any(~np.isfinite(y) | (y != np.round(y))))


def check_weights(sample_weight: Array, X: Array, *, scaled: bool = False) -> np.ndarray:
    """Return non-negative weights, one for each matrix, in `weight_unit` if ``scaled``; 1 for None."""
    n = X.shape[0]
    if sample_weight is None:
        return np.ones(n)
    weight = as_numbers(sample_weight, "sample_weight")
    if weight.shape not in ((), (n,)):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected ({n},): one weight for each matrix."
        )
    weight = check_weight_values(weight)
    weight = np.full(n, weight) if weight.ndim == 0 else weight
    if not weight.any():
        raise ValueError("sample_weight is zero for every matrix: nothing is left to learn from.")
    _, largest = weight_range(weight)
    return weight * weight_unit(largest) if scaled else weight


def leave_out(values: Any, sample_weight: Array | None) -> Any:
    """Matrices in memory, or what is known of each: the first that has weight, in place of those without."""
    values = as_numpy(values, "X") if isinstance(values, list | tuple) else to_numpy(values)
    if sample_weight is None or not isinstance(values, np.ndarray) or values.ndim == 0:
        return values
    counts = check_weights(sample_weight, values) > 0
    return values if counts.all() else values[np.where(counts, np.arange(len(values)), np.argmax(counts))]


def check_weight_values(sample_weight: ArrayLike, first: int = 0) -> np.ndarray:
    """Return finite weights that are not negative; ``first`` is what the first one is called."""
    weight = as_numbers(sample_weight, "sample_weight")
    if weight.dtype.kind == "c":
        raise ValueError("sample_weight is complex: complex data not supported, expected numbers >= 0.")
    weight = weight.astype(np.float64, copy=False)
    low, high = _WEIGHT_SIZES
    bad = np.flatnonzero(~((weight == 0) | ((weight >= low) & (weight <= high))))
    if bad.size:
        value = float(weight.flat[bad[0]])
        contains = "negative values" if value < 0 else "NaN, infinity, or what cannot be added up"
        raise ValueError(
            f"sample_weight[{first + bad[0]}] is {value:g}: expected a number between {low:g} and {high:g}, "
            f"or 0, which leaves a matrix out, and sample_weight contains {contains}."
        )
    return weight


def weight_range(weight: np.ndarray, name: str = "sample_weight") -> tuple[float, float]:
    """Smallest and largest positive weight, 0 without any; refused if the small ones are lost in rounding."""
    positive = weight[weight > 0]
    if not positive.size:
        return 0.0, 0.0
    smallest, largest = float(positive.min()), float(positive.max())
    if largest / _WEIGHTS > smallest * (1 + 1e-9):
        raise ValueError(
            f"{name} has positive weights from {smallest:.3g} to {largest:.3g}: expected a ratio of at most "
            f"{_WEIGHTS:.0e}, past which the small ones are lost in rounding. Set them to 0 to leave their "
            "matrices out, or make them larger."
        )
    return smallest, largest


def weight_unit(largest: float) -> float:
    """Power of four that brings the largest weight between 1 and 4: no bit of it, or its root, changes."""
    return ldexp(1.0, min(-2 * ((frexp(largest)[1] - 1) // 2), 1022))


def class_scale(
    total: float, totals: np.ndarray, classes: np.ndarray, class_weight: ClassWeight
) -> np.ndarray:
    """What the weights of each class are multiplied with, from the weight of all and of each of several."""
    if classes.dtype.kind not in "biuU":  # whole numbers and strings can be nothing but classes
        # Three times each: of as many classes as labels scikit-learn says that they look like a regression.
        check_classification_targets(np.tile(classes, 3))
    if classes.size < 2:
        raise ValueError(
            f"y has 1 class, {classes.tolist()[0]!r}: expected at least two, there is nothing to tell apart."
        )
    scale = np.ones(totals.size)
    if isinstance(class_weight, Mapping):
        scale = weights_by_label(classes, class_weight)
    elif class_weight is not None and totals.all():
        scale = total / (classes.size * totals)
    scaled = scale * totals
    if scaled.min() <= _EPS * scaled.sum():
        raise ValueError(
            f"sample_weight is zero for all matrices of class {classes.tolist()[np.argmin(scaled)]!r}, or it "
            f"is too small to count ({scaled.min():.3g} of {scaled.sum():.3g}): drop the class or give it "
            "weight."
        )
    return scale


def weights_by_label(classes: np.ndarray, class_weight: Mapping[Hashable, float]) -> np.ndarray:
    """Weights by label in a common unit; 1 for a class without, unless labels seem to be misspelled."""
    labels = classes.tolist()
    absent = [label for label in labels if label not in class_weight]
    unknown = [label for label in class_weight if label not in labels]
    if absent and unknown:
        raise ValueError(
            f"class_weight names {unknown}, which are not in y, and leaves out {absent}, which are: expected "
            f"labels among {labels}."
        )
    weight = np.array([float(class_weight.get(label, 1.0)) for label in labels])
    return weight * weight_unit(weight_range(weight, "class_weight")[1])


def check_groups(groups: ArrayLike | None, n: int) -> np.ndarray | None:
    """Return the group of each of n matrices; None for None."""
    if groups is None:
        return None
    groups = as_numpy(groups, "groups")
    if groups.shape != (n,):
        raise ValueError(f"groups has shape {groups.shape} for {n} matrices: expected one group for each.")
    return groups if groups.dtype.kind in "mM" else check_label_kind(groups, "groups")


def codes_among(classes: np.ndarray, y: np.ndarray, otherwise: str) -> np.ndarray:
    """Places of labels among the classes, or what to say of the first that is not there."""
    unknown = np.flatnonzero(~np.isin(y, classes))
    if unknown.size:
        raise ValueError(f"y[{unknown[0]}] is {y[unknown].tolist()[0]!r}, {otherwise}")
    return np.asarray(np.searchsorted(classes, y))


# -- Arrays that are not NumPy's: learning brings them to NumPy, all else stays where they are


def is_tensor(x: object) -> bool:
    """Whether this is an array of torch, JAX, CuPy or another that holds its numbers, unlike dask's."""
    return is_array_api_obj(x) and not is_numpy_array(x) and not is_dask_array(x)


def to_numpy(x: Any) -> Any:
    """Return a tensor as a NumPy array, detached and on the CPU; anything else as it is."""
    if not is_tensor(x):
        return x
    if is_torch_array(x):
        x = x.detach().cpu()
        # NumPy has no bfloat16; float32 holds its numbers exactly.
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    try:
        return x.get() if is_cupy_array(x) else np.asarray(x)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"An array of type {type(x).__name__} cannot be brought to NumPy, where learning runs ({error}): "
            "move it to the CPU first."
        ) from error


def is_single(x: object) -> bool:
    """Whether the numbers are float32, or complex ones of that precision, in any namespace."""
    return str(getattr(x, "dtype", None)).rpartition(".")[2] in ("float32", "complex64")


def as_float(x: ArrayLike, *, single: bool = False) -> Array:
    """Return an array, or what becomes one of NumPy's, in double or single precision."""
    x = x if is_tensor(x) else np.asarray(x)
    xp = array_namespace(x)
    single_type, double_type = (xp.complex64, xp.complex128) if is_complex(x) else (xp.float32, xp.float64)
    return xp.astype(x, single_type if single else double_type, copy=False)
