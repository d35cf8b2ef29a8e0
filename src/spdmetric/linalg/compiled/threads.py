"""Blocks of work shared by threads; results come in the order of the blocks."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def each_block(
    function: Callable[[Item], Result], blocks: Iterable[Item], n_threads: int = 1
) -> Iterator[Result]:
    """Yield the results of a function on blocks, in their order, computed by threads.

    The function should release the interpreter lock, as all kernels do, and not call this itself.
    Threads run at most two blocks each ahead of the one who asks for results, so the memory
    that results take does not grow with the number of blocks.
    """
    if n_threads <= 1:
        yield from map(function, blocks)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for block in blocks:
            waiting.append(_pool(n_threads).submit(function, block))
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
