"""Compiled kernels for stacks of small matrices.

One evaluation of the objective is n small eigenproblems and their derivatives.  NumPy solves
them one by one; here eight are solved at once (`spdmetric.linalg.compiled.lanes`), some seven times
as fast for sizes up to twenty-odd, less so for larger ones; sizes past 96 are left to LAPACK.

numba is imported when `load` is first called.  Compiling takes some ten seconds, once: the
result is kept on disk (`spdmetric.linalg.compiled.cache`).  Loading it takes a fifth of a second in
each process, which the smallest problems do not repay; `spdmetric.linalg.batch.pays` tells which.
Where numba is absent or broken, NumPy does the work, after one warning.

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

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.caller import warn_at_caller

if TYPE_CHECKING:
    from spdmetric.linalg.compiled.stack import CompiledStack

__all__ = ["EVALUATIONS", "load", "works"]

EVALUATIONS = 30  # values and gradients that a fit needs, about


def load() -> type[CompiledStack]:
    """Import the kernels."""
    from spdmetric.linalg.compiled.stack import CompiledStack

    return CompiledStack


@lru_cache(maxsize=1)
def works() -> bool:
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
