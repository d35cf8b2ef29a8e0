"""The toy sets of the paper."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state

from spdmetric.linalg.symmetric import symmetrize

Seed = int | np.random.RandomState | None


def make_toy(
    n_train: int = 50,
    n_test: int = 500,
    *,
    d: int = 8,
    noise: float = 6.0,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make one draw of a toy set of [Yger2015]_, training and test part.

    ``X = Q diag(lambda, mu) Q' + V diag(|epsilon|) V'`` with Q one random rotation for the
    whole draw, V a new one for each matrix, ``epsilon ~ N(0, 1)``, and half of the
    eigenvalues informative: ``lambda ~ N(5, 0.2)`` in class +1 and ``N(4, 0.1)`` in
    class -1, the second number being the standard deviation.  The other half is noise,
    ``mu ~ U[1, noise]``.

    Parameters
    ----------
    n_train, n_test : int, default=50 and 500
        Numbers of matrices, half of them of each class.
    d : int, default=8
        Size of the matrices, even.
    noise : float, default=6.0
        Upper end of the uninformative eigenvalues: 6 is the paper's toy set, 3 the
        easier one of its appendix.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        Matrices of shape (n, d, d) and labels +1 and -1.
    """
    if d < 2 or d % 2:
        raise ValueError(f"d={d}: expected an even number >= 2, half of the eigenvalues carry the class.")
    if noise < 1:
        raise ValueError(f"noise={noise}: expected at least 1, the lower end of the noise eigenvalues.")
    check_halves(n_train, n_test)
    rng = check_random_state(random_state)
    Q = _rotations(1, d, rng)[0]
    return (*_toy_part(n_train, Q, noise, rng), *_toy_part(n_test, Q, noise, rng))


def check_halves(n_train: int, n_test: int) -> None:
    """Refuse numbers of matrices that two classes cannot share equally."""
    for name, n in (("n_train", n_train), ("n_test", n_test)):
        if not isinstance(n, Integral) or n < 2 or n % 2:
            raise ValueError(f"{name}={n}: expected an even number >= 2, half of it for each class.")


def _toy_part(
    n: int, Q: np.ndarray, noise: float, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    d, half = Q.shape[0], n // 2
    y = np.repeat([1, -1], half)
    mean, spread = np.where(y == 1, 5.0, 4.0), np.where(y == 1, 0.2, 0.1)
    informative = mean[:, None] + spread[:, None] * rng.standard_normal((n, d // 2))
    eigenvalues = np.hstack([informative, rng.uniform(1.0, noise, size=(n, d // 2))])
    V = _rotations(n, d, rng)
    blur = np.abs(rng.standard_normal((n, d)))
    X = (Q * eigenvalues[:, None, :]) @ Q.T + (V * blur[:, None, :]) @ V.transpose(0, 2, 1)
    return symmetrize(X), y


def _rotations(n: int, d: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw n orthogonal matrices from the Haar distribution: the QR of Gaussians, signs fixed."""
    Q, R = np.linalg.qr(rng.standard_normal((n, d, d)))
    return Q * np.sign(np.einsum("nii->ni", R))[:, None, :]
