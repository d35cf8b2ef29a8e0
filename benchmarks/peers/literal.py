"""The paper's formulas as printed: n^2 Frechet derivatives a gradient, each by a 2d x 2d logarithm.

Hopeless to run, so one gradient is timed on some matrices and pairs and *extrapolated*: to n
matrices, n^2 pairs and the fewest evaluations that any contestant needed.  What belongs to one
matrix alone (its roots, the logarithm of Q_i) is computed once for it, not once for each pair.
Two slips are put right: the centering matrix is n x n, and the gradient of h_ij is the
appendix's, with D log.
"""

from __future__ import annotations

import time
import warnings
from typing import NamedTuple

import numpy as np

TITLE = "literal formulas"
REQUIRES = ("scipy",)
GROUPS = ("literal",)


class Term(NamedTuple):
    """What the formulas need of one matrix at G."""

    root: np.ndarray  # X^{1/2}
    inverse: np.ndarray  # X^{-1/2}
    Q: np.ndarray  # X^{-1/2} G X^{-1/2}
    log_Q: np.ndarray
    log: np.ndarray  # log(G^{-1/2} X G^{-1/2})


def log_matrix(A: np.ndarray) -> np.ndarray:
    """SciPy's logarithm of any matrix: the formulas know nothing of symmetry."""
    from scipy.linalg import logm

    with warnings.catch_warnings():
        # SciPy warns at an estimated error of 2e-13.
        warnings.filterwarnings("ignore", "logm result may be inaccurate", RuntimeWarning)
        return np.real(logm(A))


def term(G: np.ndarray, X: np.ndarray) -> Term:
    from scipy.linalg import sqrtm

    root, whitener = np.real(sqrtm(X)), np.linalg.inv(np.real(sqrtm(G)))
    inverse = np.linalg.inv(root)
    Q = inverse @ G @ inverse
    return Term(root, inverse, Q, log_matrix(Q), log_matrix(whitener @ X @ whitener))


def log_derivative(A: np.ndarray, E: np.ndarray) -> np.ndarray:
    """D log(A)[E], read off the logarithm of a block matrix (Al-Mohy and Higham 2009)."""
    d = len(A)
    return log_matrix(np.block([[A, E], [np.zeros((d, d)), A]]))[:d, d:]


def pair_gradient(a: Term, b: Term) -> np.ndarray:
    """Euclidean gradient in G of h_ij, the inner product of two tangent vectors (appendix)."""
    total = np.zeros_like(a.Q)
    for x, y in ((a, b), (b, a)):
        middle = x.root @ y.inverse @ y.log_Q @ y.root @ x.inverse
        total += x.inverse @ log_derivative(x.Q, (middle + middle.T) / 2) @ x.inverse
    return total


def gradient(G: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Euclidean gradient in G of the alignment with the labels y, +1 and -1."""
    n = len(y)
    terms = [term(G, matrix) for matrix in X]
    U = np.eye(n) - np.ones((n, n)) / n
    h = U @ np.array([[np.sum(a.log * b.log) for b in terms] for a in terms]) @ U
    target = U @ np.outer(y, y) @ U
    target = target / np.linalg.norm(target)
    f, norm = np.sum(h * target) / np.linalg.norm(h), np.linalg.norm(h)
    Z = U @ (target / norm - f * h / norm**2) @ U
    return sum(Z[i, j] * pair_gradient(terms[i], terms[j]) for i in range(n) for j in range(n))


def seconds_per_gradient(X: np.ndarray, pairs: int, seed: int) -> float:
    """Seconds of one gradient at G = I, extrapolated from some pairs."""
    n, G = len(X), np.eye(X.shape[1])
    chosen = np.random.default_rng(seed).integers(n, size=(pairs, 2))
    began = time.perf_counter()
    terms = {i: term(G, X[i]) for i in np.unique(chosen)}
    between = time.perf_counter()
    for i, j in chosen:
        pair_gradient(terms[i], terms[j])
    ended = time.perf_counter()
    return n * (between - began) / len(terms) + n**2 * (ended - between) / pairs
