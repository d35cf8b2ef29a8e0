"""Compiled kernels for stacks of small matrices; they need numba: ``pip install 'spdmetric[fast]'``.

One evaluation of the objective is n small eigenproblems and their derivatives.  NumPy solves
them one by one; here eight are solved at once (`spdmetric.linalg.compiled.lanes`), some seven times
as fast for sizes up to twenty-odd, less so for larger ones; sizes past `LIMIT` are left to LAPACK.

Nothing is compiled, and numba is not imported, before `decompose`, `eigh` or `Stack` is used.
Compiling takes ten to twenty seconds, once: the result is kept on disk.  Loading it takes half a
second in each process, which a small problem does not repay; `pays` tells.

========== =====================================================================
module     holds
========== =====================================================================
lanes      a number type: one entry of eight matrices
functions  logarithm and divided differences of lanes
products   matrix products of lanes
eigen      eigendecomposition of eight symmetric matrices at once
kernels    forward and backward pass over a packed stack
sums       moments of few features, and cotangents
stack      the face in NumPy arrays: `Stack`, `decompose`, `eigh`
threads    `map_blocks` and `each_block`, the parallel seam
========== =====================================================================
"""

from __future__ import annotations

import importlib
import os
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from spdmetric.linalg.compiled.threads import each_block, map_blocks

if TYPE_CHECKING:
    from spdmetric.linalg.compiled.stack import Decomposition, Stack, decompose, eigh
    from spdmetric.linalg.compiled.sums import cotangents, moments

__all__ = [
    "EVALUATIONS",
    "LIMIT",
    "Decomposition",
    "Stack",
    "available",
    "cotangents",
    "decompose",
    "each_block",
    "eigh",
    "loaded",
    "map_blocks",
    "moments",
    "pays",
]

LIMIT = 96  # beyond, eight matrices leave the cache and the gain over LAPACK goes; measured to 160

_LOADING = 1.0  # seconds to import numba and to load the kernels from disk
EVALUATIONS = 30  # what a fit needs, about


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether the kernels can be used: numba is installed, and not switched off."""
    switched_off = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    return find_spec("numba") is not None and not switched_off


def loaded() -> bool:
    """Whether this process has the kernels already, so that they cost nothing more."""
    return "spdmetric.linalg.compiled.kernels" in sys.modules


def pays(n: int, m: int, d: int, evaluations: int = EVALUATIONS, *, warm: bool | None = None) -> bool:
    """Whether the kernels are the faster way to evaluate an objective.

    Parameters
    ----------
    n : int
        Number of matrices.
    m, d : int
        Shape of the factor.
    evaluations : int, default=30
        Values and gradients that will be asked for.
    warm : bool, optional
        Whether the kernels are loaded; `loaded` by default.  With False the answer depends on
        the sizes alone, not on what the process did before.

    Returns
    -------
    pays : bool
        False where numba is absent.
    """
    if not available() or not 1 <= m <= LIMIT or d > LIMIT:
        return False
    warm = loaded() if warm is None else warm
    return warm or 0.8 * evaluations * _numpy_seconds(n, max(m, d)) > _LOADING


def _numpy_seconds(n: int, size: int) -> float:
    """Time of a value and gradient with NumPy, as measured for sizes 3 to 64."""
    return 1e-6 * n * (7 + 0.12 * size**2 + 0.006 * size**3)


_HOME = {
    "Decomposition": "stack",
    "Stack": "stack",
    "decompose": "stack",
    "eigh": "stack",
    "cotangents": "sums",
    "moments": "sums",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not available():
        raise ImportError("Compiled kernels need numba: pip install 'spdmetric[fast]'.")
    value = getattr(importlib.import_module(f"spdmetric.linalg.compiled.{_HOME[name]}"), name)
    globals()[name] = value  # the next look-up does not come here
    return value
