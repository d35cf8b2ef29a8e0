"""One eigendecomposition of the stack by NumPy: what any evaluation without a kernel of its own pays."""

from __future__ import annotations

import numpy as np

TITLE = "numpy.linalg.eigh"
REQUIRES = ("numpy",)
GROUPS = ("evaluate",)


def decompose(stack: np.ndarray) -> None:
    np.linalg.eigh(stack)
