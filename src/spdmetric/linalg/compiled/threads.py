"""Blocks of work and the threads that share them.

The bounds of blocks depend on the sizes of the problem alone, and results come in the order of
the blocks: any number of threads gives the same bits.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Operations in a block: below this, handing it to a thread costs more than it gains.
_BLOCK = 4_000_000
_MOST = 64


def map_blocks(
    function: Callable[[Item], Result], blocks: Iterable[Item], n_threads: int = 1
) -> list[Result]:
    """Return the results of a function on blocks, in their order, computed by threads.

    Parameters
    ----------
    function : callable
        Called with each block.  It should release the interpreter lock, as all kernels do, and
        not call `map_blocks` with several threads itself.
    blocks : iterable
        The blocks.
    n_threads : int, default=1
        Number of threads; with 1 the calling thread does all.

    Returns
    -------
    results : list
    """
    blocks = list(blocks)
    if n_threads <= 1 or len(blocks) <= 1:
        return [function(block) for block in blocks]
    return list(_pool(n_threads).map(function, blocks))


def each_block(
    function: Callable[[Item], Result], blocks: Iterable[Item], n_threads: int = 1
) -> Iterator[Result]:
    """Yield what `map_blocks` returns, one result at a time.

    Threads run at most two blocks each ahead of the one who asks for results, so the memory
    that results take does not grow with the number of blocks.  Parameters are those of `map_blocks`.
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


@lru_cache(maxsize=64)
def cut(count: int, operations: int) -> tuple[tuple[int, int], ...]:
    """Cut ``count`` pieces of so many operations each into blocks ``(first, last)`` of like work."""
    number = max(1, min(count, count * operations // _BLOCK, _MOST))
    edges = [count * k // number for k in range(number + 1)]
    return tuple(pairwise(edges))
