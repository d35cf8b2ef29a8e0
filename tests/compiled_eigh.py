"""The compiled eigensolver on matrices themselves; the package has it inside its passes only."""

import numpy as np

from spdmetric.linalg.compiled.cache import kernel
from spdmetric.linalg.compiled.eigen import GROUPS, LINES, MORE, diagonalize, tridiagonalize
from spdmetric.linalg.compiled.lanes import LANES
from spectral import Spectrum


@kernel
def _decompose(A, V, d, lines):
    n = A.shape[1]
    for first in range(0, A.shape[0], GROUPS):
        last = min(first + GROUPS, A.shape[0])
        for g in range(first, last):
            tridiagonalize(A[g], n, V[g], d[g], lines[g - first])
        diagonalize(n, V[first:last], d[first:last], lines)


def eigh(X):
    """Spectra of symmetric matrices (n, d, d), eigenvalues ascending; NaN where there are none."""
    n, d = X.shape[:2]
    index = np.minimum(np.arange(-(-n // LANES) * LANES), n - 1).reshape(-1, LANES)
    A = np.ascontiguousarray(X[index].transpose(0, 2, 3, 1))
    values, vectors = np.empty((len(A), d, LANES)), np.empty((len(A), d + d % 2, d, LANES))
    _decompose(A, vectors, values, np.empty((GROUPS, LINES, d + MORE, LANES)))
    values = values.swapaxes(1, 2).reshape(-1, d)[:n]
    vectors = vectors[:, :d].transpose(0, 3, 1, 2).reshape(-1, d, d)[:n]
    vectors = np.where(np.isnan(values)[:, None, :], np.nan, vectors)
    order = np.argsort(values, axis=-1)
    return Spectrum(
        np.take_along_axis(values, order, axis=-1), np.take_along_axis(vectors, order[:, None, :], axis=-1)
    )
