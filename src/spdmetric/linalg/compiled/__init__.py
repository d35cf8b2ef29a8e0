"""Compiled kernels for stacks of small matrices.

One evaluation of the objective is n small eigenproblems and their derivatives.  NumPy solves
them one by one; here eight are solved at once (`spdmetric.linalg.compiled.lanes`), some seven times
as fast for sizes up to twenty-odd, less so for larger ones; sizes past `LIMIT` are left to LAPACK.

numba is imported when `load` is first called.  Compiling takes some ten seconds, once: the
result is kept on disk (`spdmetric.linalg.compiled.cache`).  Loading it takes a fifth of a second in
each process, which the smallest problems do not repay; `pays` tells which.  Where numba is absent or
broken, NumPy does the work, after one warning.

========== =====================================================================
module     holds
========== =====================================================================
lanes      a number type: one entry of eight matrices
functions  logarithm and divided differences of lanes
products   matrix products of lanes
eigen      eigendecomposition of eight symmetric matrices at once
kernels    forward and backward pass over a packed stack
sums       moments of few features, and cotangents
cache      compiled code on disk
stack      `CompiledStack`: the kernels as functions of NumPy arrays
========== =====================================================================
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.caller import warn_at_caller

if TYPE_CHECKING:
    from spdmetric.linalg.compiled.stack import CompiledStack

__all__ = ["EVALUATIONS", "LIMIT", "SMALLEST", "load", "pays", "pays_at_rank"]

LIMIT = 96  # beyond, eight matrices leave the cache and the gain over LAPACK goes; measured to 160
# The same at low rank: rank 10 takes half of NumPy's time at size 400, nine tenths at 700.
LIMIT_AT_RANK = 512

# n d^3 of the smallest problem for the kernels, that is 40 matrices of size 8.  A fit of that size takes
# 0.1 s with NumPy, half of it with the kernels: loading them pays from some ten such fits in a process on.
SMALLEST = 40 * 8**3
EVALUATIONS = 30  # values and gradients that a fit needs, about


def pays(n: int | None, d: int) -> bool:
    """Whether the kernels are to evaluate n matrices of size d, 40 if that is not known, some thirty times.

    The answer depends on the sizes, on what is installed and on the environment alone, never on what
    the process did before: ``SPDMETRIC_COMPILED=0`` keeps all problems with NumPy,
    ``SPDMETRIC_COMPILED=1`` none that the kernels can do.
    """
    wish = os.environ.get("SPDMETRIC_COMPILED")
    if wish == "0" or not 1 <= d <= LIMIT or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        return False
    return (wish == "1" or (40 if n is None else n) * d**3 >= SMALLEST) and _works()


def pays_at_rank(n: int, d: int, m: int) -> bool:
    """Whether the kernels are to evaluate n matrices of size d many times at factors of low rank m."""
    return 2 * m <= d <= LIMIT_AT_RANK and pays(n * d**2 // m**2, m)


def load() -> type[CompiledStack]:
    """Import the kernels."""
    from spdmetric.linalg.compiled.stack import CompiledStack

    return CompiledStack


@lru_cache(maxsize=1)
def _works() -> bool:
    """Whether the kernels can be imported and compiled; if not, say so once."""
    try:
        load().of(np.ones((1, 1, 1))).decompose(np.ones((1, 1)))
    except Exception as error:  # of the many ways to be broken, each has its own
        warn_at_caller(
            f"The compiled kernels cannot be used ({type(error).__name__}: {error}): NumPy takes their "
            "place, with the same results several times more slowly. Fix the installation of numba, or set "
            "SPDMETRIC_COMPILED=0 in the environment to do without it.",
            RuntimeWarning,
        )
        return False
    return True
