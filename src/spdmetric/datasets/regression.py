"""A set whose target is a number: signals of varying power, mixed by one unknown matrix."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from spdmetric.datasets.toy import Seed
from spdmetric.linalg.symmetric import symmetrize
from spdmetric.validation import check_count


def make_regression(
    n_train: int = 200,
    n_test: int = 500,
    *,
    d: int = 16,
    rank: int | None = None,
    r2: float = 0.97,
    n_outputs: int = 1,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make one draw of covariances ``A diag(p_i) A'`` with a target linear in ``log p_i``.

    A, of shape (d, rank), mixes as many sources and is the same for the whole draw; the logarithms of
    their powers p_i are Gaussian, independent, of standard deviation 1.  The target is the sum of
    ``log p_i`` with random weights, of variance 1, and Gaussian noise [Sabbagh2019]_.

    Parameters
    ----------
    n_train, n_test : int, default=200 and 500
        Numbers of matrices.
    d : int, default=16
        Size of the matrices.
    rank : int or None, default=None
        Number of sources; below d all matrices share a null space.  None: d, full rank.
    r2 : float, default=0.97
        R² of an oracle that knows the powers and the weights, more than 0 and at most 1, which is no
        noise: nobody can predict better.
    n_outputs : int, default=1
        Numbers to predict.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        Matrices of shape (n, d, d); targets of shape (n,), or (n, n_outputs) for several.

    References
    ----------
    .. [Sabbagh2019] D. Sabbagh, P. Ablin, G. Varoquaux, A. Gramfort and D. A. Engemann, "Manifold-regression
       to predict from MEG/EEG brain signals without source modeling", NeurIPS 2019.

    Examples
    --------
    >>> from spdmetric.datasets import make_regression
    >>> X, y, X_test, y_test = make_regression(d=6, rank=4, random_state=0)
    >>> X.shape, y.shape
    ((200, 6, 6), (200,))
    """
    sizes = {"n_train": n_train, "n_test": n_test, "d": d, "n_outputs": n_outputs}
    for name, value in sizes.items():
        check_count(name, value)
    rank = d if rank is None else rank
    if not isinstance(rank, Integral) or not 1 <= rank <= d:
        raise ValueError(f"rank={rank!r}: expected a whole number from 1 to d={d}, or None for d.")
    if not isinstance(r2, Real) or not 0 < r2 <= 1:
        raise ValueError(f"r2={r2!r}: expected a number > 0 and <= 1; 1 is a target without noise.")
    rng = check_random_state(random_state)
    A = rng.standard_normal((d, rank))
    weights = rng.standard_normal((rank, n_outputs))
    weights /= np.linalg.norm(weights, axis=0)
    log_powers = rng.standard_normal((n_train + n_test, rank))
    noise = np.sqrt(1 / r2 - 1) * rng.standard_normal((n_train + n_test, n_outputs))
    X = symmetrize((A * np.exp(log_powers)[:, None, :]) @ A.T)
    y = log_powers @ weights + noise
    y = y[:, 0] if n_outputs == 1 else y
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]
