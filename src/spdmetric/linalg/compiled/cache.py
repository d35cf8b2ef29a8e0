"""Compiled code on disk, compiled anew when any source of this folder has changed.

A kernel contains the code of functions of other modules, while numba looks at the module of the kernel only.
Here the key of what is stored has a digest of all sources.  The place is numba's: ``NUMBA_CACHE_DIR`` if it
is set, else ``__pycache__``, or where that cannot be written the user's cache folder.  What is damaged there
is compiled anew; what cannot be written is compiled in each process, after one warning.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache

from spdmetric.caller import warn_at_caller

_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_DIGEST = sha256(b"\0".join(source.read_bytes() for source in _SOURCES)).hexdigest()


class _Cache(FunctionCache):
    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        return (*super()._index_key(sig, codegen), _DIGEST)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        try:
            # numba's own method makes its compiler ready first, which takes longer than loading all kernels.
            found = self._load_overload(sig, target_context)
        except Exception:  # a damaged file may raise nearly anything
            with suppress(OSError):
                self.flush()
        if found is None:
            say_that_it_compiles()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception as error:  # without a cache the kernels work all the same
            say_that_it_is_not_kept(f"{type(error).__name__}: {error}")


@lru_cache(maxsize=1)
def say_that_it_is_not_kept(why: str) -> None:
    """Tell a user why each process will compile anew, once a process."""
    warn_at_caller(
        f"Compiled kernels cannot be kept on disk ({why}), and each process will compile them anew: make the "
        "folder writable, or name another in NUMBA_CACHE_DIR.",
        RuntimeWarning,
    )


@lru_cache(maxsize=1)
def say_that_it_compiles() -> None:
    """Tell a user what is waited for, once a process."""
    text = "spdmetric: compiling kernels, once after an installation; this takes some 10 s."
    print(text, file=sys.stderr, flush=True)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function when it is first called, and keep the result on disk.

    Kernels get all their arrays from outside: they do without numba's runtime, which manages memory, and are
    loaded sooner.
    """
    options: dict[str, Any] = {"nogil": True, "_nrt": False}
    dispatcher: Any = njit(**options)(function)
    try:
        dispatcher._cache = _Cache(function)
    except RuntimeError:
        say_that_it_is_not_kept("numba finds no folder that it can write")
    return dispatcher
