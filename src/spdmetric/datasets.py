"""Artificial data sets, and the recentering of sessions."""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
from sklearn.utils import check_random_state

from spdmetric.estimators.embedding import pad_views
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import Array, congruence, invsqrtm, symmetrize
from spdmetric.objectives.data import find_view_sizes
from spdmetric.validation import COUNT, check_psd, check_value, one_of

__all__ = ["make_regression", "make_toy", "recenter"]

Seed = int | np.random.RandomState | None


def make_toy(
    n_train: int = 50, n_test: int = 500, *, d: int = 8, noise: float = 6.0, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make one draw of a toy set of [Yger2015]_, training and test part.

    ``X = Q diag(lambda, mu) Q' + V diag(|epsilon|) V'`` with Q one random rotation for the
    whole draw, V a new one for each matrix, and ``epsilon ~ N(0, 1)``.  Half of the eigenvalues
    are informative, ``lambda`` of mean 5 and standard deviation 0.2 in class +1, 4 and 0.1 in
    class -1; the other half is noise, ``mu ~ U[1, noise]``.

    Parameters
    ----------
    n_train, n_test : int, default=50 and 500
        Numbers of matrices, half of them of each class.
    d : int, default=8
        Size of the matrices, even.
    noise : float, default=6.0
        Upper end of the noise: 6 is the paper's toy set, 3 the easier one of its appendix.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        Matrices of shape (n, d, d) and labels +1 and -1.
    """
    carry, each = "half of the eigenvalues carry the class", "half of it for each class"
    for name, value, half in (("d", d, carry), ("n_train", n_train, each), ("n_test", n_test, each)):
        if not isinstance(value, Integral) or value < 2 or value % 2:
            raise ValueError(f"{name}={value}: expected an even number >= 2, {half}.")
    if noise < 1:
        raise ValueError(f"noise={noise}: expected at least 1, the lower end of the noise eigenvalues.")
    rng, parts = check_random_state(random_state), []
    Q = _rotations(1, d, rng)[0]
    for n in (n_train, n_test):
        y = np.repeat([1, -1], n // 2)
        mean, spread = np.where(y == 1, 5.0, 4.0), np.where(y == 1, 0.2, 0.1)
        informative = mean[:, None] + spread[:, None] * rng.standard_normal((n, d // 2))
        eigenvalues = np.hstack([informative, rng.uniform(1.0, noise, size=(n, d // 2))])
        V = _rotations(n, d, rng)
        blur = np.abs(rng.standard_normal((n, d)))
        X = (Q * eigenvalues[:, None, :]) @ Q.T + (V * blur[:, None, :]) @ V.transpose(0, 2, 1)
        parts += [symmetrize(X), y]
    X_train, y_train, X_test, y_test = parts
    return X_train, y_train, X_test, y_test


def _rotations(n: int, d: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw n orthogonal matrices from the Haar distribution: the QR of Gaussians, signs fixed."""
    Q, R = np.linalg.qr(rng.standard_normal((n, d, d)))
    return Q * np.sign(np.einsum("nii->ni", R))[:, None, :]


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
        Number of regression targets.
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
    for name, value in {"n_train": n_train, "n_test": n_test, "d": d, "n_outputs": n_outputs}.items():
        check_value(name, value, COUNT)
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


def recenter(
    X: Array, groups: Array, *, train: Array | None = None, how: str = "session", calibration: float = 0.2
) -> np.ndarray:
    """Move the covariances of each session around the identity: ``M^{-1/2} X M^{-1/2}``.

    The brain and the electrodes drift between sessions.  The paper removes the drift by this
    congruence, M the Riemannian mean of the session, as in [Barachant2013]_.

    Parameters
    ----------
    X : array-like of shape (n, d, d) or (n, views, d, d)
        SPD matrices, those of each group in the order of their recording.  Each view has means of its own.
    groups : array-like of shape (n,)
        Session, or run, of each matrix.
    train : group, array-like of groups, or boolean mask of shape (n,), optional
        What belongs to the training set; needed by "train" and "calibration".
    how : {"session", "train", "calibration", "none"}, default="session"
        Which matrices M is the mean of:

        - "session", the paper's: all matrices of the same group.  It is transductive: the
          unlabeled matrices of a test session are used before the first is classified.
        - "train": the training matrices, one M for all; inductive, but the drift stays.
        - "calibration", the paper's remark for real use: in each group, the training
          matrices by their own mean, the others by the mean of the first of them.
        - "none": X comes back as it is.
    calibration : float, default=0.2
        Share of the others, in each group, whose mean "calibration" takes; at least one.

    Returns
    -------
    X : ndarray of the same shape, float64

    References
    ----------
    .. [Barachant2013] A. Barachant, S. Bonnet, M. Congedo and C. Jutten, "Classification of covariance
       matrices using a Riemannian-based kernel for BCI applications", Neurocomputing 112, 2013.
    """
    X, groups = check_psd(X, None), np.asarray(groups)
    if X.ndim == 4:
        sizes = find_view_sizes(X)
        views = (X[:, v, :k, :k] for v, k in enumerate(sizes))
        return pad_views(
            [recenter(of, groups, train=train, how=how, calibration=calibration) for of in views], X.shape[-1]
        )
    if groups.shape != (len(X),):
        raise ValueError(f"groups has shape {groups.shape} for {len(X)} matrices; expected one for each.")
    check_value("how", how, one_of("session", "train", "calibration", "none"))
    if not 0 < calibration <= 1:
        raise ValueError(f"calibration={calibration}: expected a share above 0 and up to 1.")
    if how == "none":
        return X
    # Matrices are moved by the mean of those of their part that are used for it.
    part, used = np.unique(groups, return_inverse=True)[1], np.ones(len(X), dtype=bool)
    if how != "session":
        mask = _training_mask(train, groups, how)
    if how == "train":
        part, used = np.zeros(len(X), dtype=int), mask
    if how == "calibration":
        part = 2 * part + mask
        for k in np.unique(part[~mask]):
            others = np.flatnonzero(part == k)
            used[others[max(1, round(calibration * len(others))) :]] = False
    Z = np.empty_like(X)
    for k in np.unique(part):
        Z[part == k] = congruence(invsqrtm(mean_riemann(X[(part == k) & used])), X[part == k])
    return Z


def _training_mask(train: Array | None, groups: np.ndarray, how: str) -> np.ndarray:
    if train is None:
        raise ValueError(f"how={how!r} needs train: the training groups, or a mask over the matrices.")
    mask = train = np.asarray(train)
    if train.dtype != bool or train.ndim != 1:
        if unknown := np.setdiff1d(train, groups).tolist():
            known = np.unique(groups).tolist()
            raise ValueError(f"train names the groups {unknown}, but the groups are {known}.")
        mask = np.isin(groups, train)
    if len(mask) != len(groups):
        raise ValueError(f"The mask train has {len(mask)} entries for {len(groups)} matrices.")
    if not mask.any():
        raise ValueError("train selects no matrix; expected at least one to recenter by.")
    return mask
