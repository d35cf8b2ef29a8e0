"""Threads: ours share the chunks of a computation, and BLAS keeps to one in each.

Small matrices gain nothing from threads inside BLAS, and lose much where other processes want the cores.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial, wraps
from typing import Any, ParamSpec, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Map = Callable[..., Iterable[Any]]  # a function over chunks, results in their order
Item = TypeVar("Item")
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
        yield map if n_threads == 1 else partial(map_by_threads, n_threads=n_threads)


def map_by_threads(function: Callable[[Item], R], chunks: Iterable[Item], *, n_threads: int) -> Iterator[R]:
    """Yield the results of a function on chunks, in their order, computed by threads.

    The function should release the interpreter lock, as all kernels do, and not call this itself.  Threads
    run at most two chunks each ahead, so that the memory of results does not grow with the number of chunks.
    """
    waiting: deque[Future[R]] = deque()
    try:
        for chunk in chunks:
            waiting.append(_pool(n_threads).submit(function, chunk))
            if len(waiting) > 2 * n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # an error, or nobody asks any more
        for future in waiting:
            future.cancel()


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="spdmetric")


# A forked process inherits the pool but not its threads, and would wait for them for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


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
