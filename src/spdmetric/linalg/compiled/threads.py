"""Blocks of work shared by threads; results come in the order of the blocks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_block(
    function: Callable[[Item], Result], blocks: Iterable[Item], n_threads: int = 1
) -> Iterator[Result]:
    """Yield the results of a function on blocks, in their order, computed by threads.

    The function should release the interpreter lock, as all kernels do, and not call this itself.
    The thread that asks is one of them: waking another takes as long as a small block.  They run at most
    two blocks each ahead, so the memory that results take does not grow with the number of blocks.
    """
    if n_threads <= 1:
        yield from map(function, blocks)
        return
    waiting: deque[_Task[Item, Result]] = deque()
    try:
        for block in blocks:
            waiting.append(_Task(block, _pool(n_threads - 1).submit(function, block)))
            if len(waiting) > 2 * n_threads:
                yield _first(waiting, function)
        while waiting:
            yield _first(waiting, function)
    finally:  # an error, or nobody asks any more
        for task in waiting:
            task.future.cancel()


@dataclass
class _Task(Generic[Item, Result]):
    item: Item
    future: Future[Result]


def _first(waiting: deque[_Task[Item, Result]], function: Callable[[Item], Result]) -> Result:
    """Take the first result; until it is there, do what no other thread has begun."""
    for task in waiting:
        if waiting[0].future.done():
            break
        if task.future.cancel():
            task.future = Future()
            try:
                task.future.set_result(function(task.item))
            except Exception as error:  # that of an earlier block, if it has one, is raised before
                task.future.set_exception(error)
    return waiting.popleft().future.result()


@lru_cache(maxsize=4)
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="spdmetric")


# A forked process inherits the pool but not its threads, and would wait for them for ever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)
