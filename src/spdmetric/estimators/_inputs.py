"""What the estimators share: weights, choices among names, printing, threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import threadpool_limits

from spdmetric.estimators._sources import Selected
from spdmetric.linalg.compiled import each_block
from spdmetric.solvers import Callback, Record


def weigh(
    X: Any, codes: np.ndarray, sample_weight: Any, classes: np.ndarray, classweight: str | None
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return the matrices that count, with their classes and weights."""
    weight = _check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True)
    totals = np.bincount(codes, weights=weight, minlength=classes.size)
    scale = class_scale(weight.sum(), totals, classes, classweight)
    if classweight is not None:
        weight = weight * scale[codes]
    counts = weight > 0
    if counts.all():
        return X, codes, weight
    index = np.flatnonzero(counts)
    return X[index] if isinstance(X, np.ndarray) else Selected(X, index), codes[index], weight[index]


def class_scale(total: float, totals: np.ndarray, classes: np.ndarray, classweight: str | None) -> np.ndarray:
    """What the weights of each class are multiplied with, from the weight of all and of each."""
    if total == 0:
        raise ValueError("sample_weight is zero for every matrix: nothing is left to learn from.")
    if not totals.all():
        raise ValueError(
            f"sample_weight is zero for all matrices of class {classes[np.argmin(totals)]!r}: drop the class "
            "or give it weight."
        )
    return np.ones(totals.size) if classweight is None else total / (classes.size * totals)


def check_choice(name: str, value: Any, valid: tuple[Any, ...], other: str | None = None) -> None:
    """Refuse a value that is not one of the valid ones, listing them."""
    if other is not None and not isinstance(value, str):
        return
    if value not in valid:
        raise ValueError(
            f"{name}={value!r}: expected one of {', '.join(map(repr, valid))}"
            + (f", or {other}." if other else ".")
        )


def printing(callback: Callback | None) -> Callback:
    """Return a callback that prints each record before it calls the given one."""

    def report(record: Record) -> Any:
        print(
            f"iteration {record.iteration:4d}  alignment {1 - record.value:.6f}  "
            f"KKT residual {record.residual:.1e}  distance {record.distance:6.3f}  "
            f"evaluations {record.evaluations:5d}  {record.seconds:.2f} s"
        )
        return None if callback is None else callback(record)

    return report


@contextmanager
def threads(n_jobs: int | None) -> Iterator[Callable[..., Iterable[Any]]]:
    """Give a ``map`` over chunks by so many threads, each with one thread of BLAS.

    Inside a worker of joblib it is one thread: the workers are parallel already.
    """
    n_threads = effective_n_jobs(n_jobs)
    # With threads of its own BLAS would add up in another order: n_jobs must not change a bit.
    with threadpool_limits(1, user_api="blas"):
        yield map if n_threads == 1 else partial(each_block, n_threads=n_threads)
