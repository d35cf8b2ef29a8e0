"""Threads: ours share the chunks of a computation, and BLAS keeps to one in each.

Small matrices gain nothing from threads inside BLAS, and lose much where other processes want the cores.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial, wraps
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

Map = Callable[..., Iterable[Any]]  # a function over chunks, results in their order
Item = TypeVar("Item")
P = ParamSpec("P")
R = TypeVar("R")


@lru_cache(maxsize=1)
def _libraries() -> list[Any]:
    """The libraries of BLAS in this process."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@contextmanager
def threads(n_jobs: int | None = 1) -> Iterator[Map]:
    """Give a ``map`` over chunks by so many threads; BLAS runs one in each of them.

    Inside a worker of joblib it is one thread: the workers are parallel already.
    """
    n_threads = effective_n_jobs(n_jobs)
    limit, caller = _LIMIT, object()
    try:
        limit.inside.add(caller)  # in C, as `discard`: ^C finds a set that is right
        limit.settle()
        yield map if n_threads == 1 else partial(map_by_threads, n_threads=n_threads)
    finally:
        limit.inside.discard(caller)
        try:
            limit.settle()
        except KeyboardInterrupt:
            limit.settle()
            raise


class _Limit:
    """One thread in BLAS for the process: set by the first who enters, lifted by the last who leaves."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # what is collected in its middle may leave there too
        self.inside: set[object] = set()
        self.found: list[tuple[Any, int]] = []  # libraries and their threads, before anyone was inside

    def settle(self) -> None:
        """Set what holds for those inside; interrupted, it can be done again."""
        with self.lock:
            if self.inside:
                self.found = self.found or [(of, of.get_num_threads()) for of in _libraries()]
                for library, _ in self.found:
                    library.set_num_threads(1)
            else:
                for library, number in self.found:
                    library.set_num_threads(number)
                self.found = []


_LIMIT = _Limit()


def map_by_threads(function: Callable[[Item], R], chunks: Iterable[Item], *, n_threads: int) -> Iterator[R]:
    """Yield the results of a function on chunks, in their order, computed by threads.

    The function should release the interpreter lock, as all kernels do, and not call this itself.  Threads
    run at most two chunks each ahead, so that the memory of results does not grow with the number of chunks.
    """
    tasks, wanted = _start_workers(n_threads), [True]  # emptied where nothing is wanted any more
    waiting: deque[SimpleQueue[tuple[bool, Any]]] = deque()
    try:
        for chunk in chunks:
            waiting.append(SimpleQueue())
            tasks.put((function, chunk, waiting[-1], wanted))
            if len(waiting) > 2 * n_threads:
                yield _receive(waiting.popleft())
        while waiting:
            yield _receive(waiting.popleft())
    finally:  # an error, or nobody asks any more
        wanted.clear()


def _receive(answer: SimpleQueue[tuple[bool, R]]) -> R:
    """The result of a chunk, when it is there; an error is raised here."""
    done, value = answer.get()
    if not done:
        raise value  # type: ignore[misc]
    return value


# Executors of the standard library take locks in Python code, and ^C at the wrong moment leaves one of them
# held: the process then never ends.  The queues below are atomic, so that an interruption finds no lock.
@lru_cache(maxsize=4)
def _start_workers(n_threads: int) -> SimpleQueue[Any]:
    """Start threads that work on what comes through a queue, until the process ends."""
    tasks: SimpleQueue[Any] = SimpleQueue()
    for k in range(n_threads):
        threading.Thread(target=_work, args=(tasks,), name=f"spdmetric_{k}", daemon=True).start()
    atexit.register(_stop_workers, tasks, n_threads)
    return tasks


def _work(tasks: SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        function, chunk, answer, wanted = task
        try:
            answer.put((True, function(chunk)) if wanted else (False, None))
        except BaseException as error:  # it is raised where the result is wanted
            answer.put((False, error))
        del task, function, chunk, answer, wanted  # nothing is held on to until the next task


def _stop_workers(tasks: SimpleQueue[Any], n_threads: int) -> None:
    """Let no thread begin anything while the interpreter is taken down."""
    try:
        while True:
            tasks.get_nowait()
    except Empty:
        pass
    for _ in range(n_threads):
        tasks.put(None)


def _begin_anew() -> None:
    """In a forked process, which inherits queues and locks, but not the threads that would answer."""
    global _LIMIT
    _start_workers.cache_clear()
    _LIMIT = _Limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function run with one thread of BLAS."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with threads():
            return function(*args, **kwargs)

    return inside
