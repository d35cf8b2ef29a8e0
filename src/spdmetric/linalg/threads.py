"""Threads: ours share the chunks of a computation, and BLAS keeps to one in each.

Small matrices gain nothing from threads inside BLAS, and lose much where other processes want the cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial, wraps
from typing import Any, ParamSpec, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from spdmetric.linalg.compiled import each_block

Map = Callable[..., Iterable[Any]]  # a function over chunks, results in their order
P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def threads(n_jobs: int | None = 1) -> Iterator[Map]:
    """Give a ``map`` over chunks by so many threads; BLAS runs one in each of them.

    Inside a worker of joblib it is one thread: the workers are parallel already.
    """
    n_threads = effective_n_jobs(n_jobs)
    with _controller().limit(limits=1, user_api="blas"):
        yield map if n_threads == 1 else partial(each_block, n_threads=n_threads)


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function run with one thread of BLAS."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with threads():
            return function(*args, **kwargs)

    return inside


def chunks(n: int, size: int | None) -> Iterator[slice]:
    """Slices that cut ``range(n)`` into chunks of like sizes, at most ``size``; one slice for None.

    Where ``size`` is a multiple of eight, so are the chunks but for the last: compiled kernels
    take eight matrices at a time.
    """
    if size is not None and n > size:
        even = -(-n // -(-n // size))
        size = even if size % 8 else -(-even // 8) * 8
    size = n if size is None else size
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
