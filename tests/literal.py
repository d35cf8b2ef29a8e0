"""The paper, transcribed slowly, equation by equation, as an oracle.

Differences from print, each a slip of the paper: the centering matrix U is n x n; the
alignment is divided by the norm of the target too; the gradient of h_ij is the
appendix's, with D log instead of D Q_i.
"""

import warnings

import numpy as np
from scipy.linalg import expm, sqrtm
from scipy.linalg import logm as scipy_logm


def logm(A):
    """SciPy's general logarithm; it warns at an estimated error of 2e-13, good enough for an oracle."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "logm result may be inaccurate", RuntimeWarning)
        return np.real(scipy_logm(A))


def power(A, exponent):
    return np.real(sqrtm(A)) if exponent == 0.5 else np.linalg.inv(np.real(sqrtm(A)))


def sym(A):
    return (A + A.T) / 2


def k(G, X, Y):
    """The LogEuclidean metric at G, unnumbered, after Eq. (3)."""
    R = power(G, -0.5)
    return np.trace(logm(R @ X @ R) @ logm(R @ Y @ R))


def gram(G, X):
    R = power(G, -0.5)
    logs = [logm(R @ A @ R) for A in X]  # of `k`, each once
    return np.array([[np.trace(A @ B) for B in logs] for A in logs])


def centering(n):
    return np.eye(n) - np.ones((n, n)) / n


def f_printed(G, X, y):
    """Eq. (5), for any y: the target is centered first."""
    U = centering(len(y))
    h = U @ gram(G, X) @ U
    target = U @ np.outer(y, y) @ U
    return np.sum(h * target) / np.linalg.norm(h)


def alignment(G, X, y):
    U = centering(len(y))
    return f_printed(G, X, y) / np.linalg.norm(U @ np.outer(y, y) @ U)


def dlog(A, E):
    """D log(A)[E] by the block method of Al-Mohy and Higham."""
    d = len(A)
    zero = np.zeros((d, d))
    return logm(np.block([[A, E], [zero, A]]))[:d, d:]


def grad_h(G, Xi, Xj):
    """The appendix's gradient of h_ij."""
    ri, rj = power(Xi, 0.5), power(Xj, 0.5)
    ii, ij = np.linalg.inv(ri), np.linalg.inv(rj)
    Qi, Qj = ii @ G @ ii, ij @ G @ ij
    Aij = ri @ ij @ logm(Qj) @ rj @ ii
    Aji = rj @ ii @ logm(Qi) @ ri @ ij
    return ii @ dlog(Qi, sym(Aij)) @ ii + ij @ dlog(Qj, sym(Aji)) @ ij


def euclidean_gradient(G, X, y):
    """Gradient of the printed f: n^2 Frechet derivatives."""
    n = len(y)
    U = centering(n)
    h = U @ gram(G, X) @ U
    norm = np.linalg.norm(h)
    target = U @ np.outer(y, y) @ U
    Z = U @ (target / norm - f_printed(G, X, y) * h / norm**2) @ U
    return sum(Z[i, j] * grad_h(G, X[i], X[j]) for i in range(n) for j in range(n))


def riemannian_gradient(G, euclidean):
    return G @ sym(euclidean) @ G


def geodesic_step(G, xi, eta):
    """Eq. (6)."""
    root, inverse = power(G, 0.5), power(G, -0.5)
    return root @ expm(eta * inverse @ xi @ inverse) @ root
