"""The whitening step of the paper: take away what drifts between sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import Array, congruence, invsqrtm
from spdmetric.validation import check_choice, check_spd

Rows = slice | np.ndarray
WHITENINGS = ("session", "train", "calibration", "none")


def whiten(
    X: Array, groups: Array, *, train: Array | None = None, how: str = "session", calibration: float = 0.2
) -> np.ndarray:
    """Move the covariances of each session around the identity: ``M^{-1/2} X M^{-1/2}``.

    The brain and the electrodes drift between sessions.  The paper removes the drift by this
    congruence, M the Riemannian mean of the session, as in [Barachant2013]_.

    Parameters
    ----------
    X : array-like of shape (n, d, d)
        SPD matrices, those of each group in the order of their recording.
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
    X : ndarray of shape (n, d, d), float64

    References
    ----------
    .. [Barachant2013] A. Barachant, S. Bonnet, M. Congedo and C. Jutten, "Classification of covariance
       matrices using a Riemannian-based kernel for BCI applications", Neurocomputing 112, 2013.
    """
    X, groups = check_spd(X), np.asarray(groups)
    if groups.shape != (len(X),):
        raise ValueError(f"groups has shape {groups.shape} for {len(X)} matrices; expected one for each.")
    check_choice("how", how, WHITENINGS)
    if not 0 < calibration <= 1:
        raise ValueError(f"calibration={calibration}: expected a share above 0 and up to 1.")
    if how == "none":
        return X
    if how == "session":
        return _whiten_parts(X, [(part, part) for part in _parts(groups)])
    mask = _training_mask(train, groups, how)
    if how == "train":
        return _whiten_parts(X, [(slice(None), mask)])
    return _whiten_parts(X, _calibrated(mask, groups, calibration))


def _whiten_parts(X: np.ndarray, parts: Iterable[tuple[Rows, Rows]]) -> np.ndarray:
    """Whiten each part of the stack by the mean of another one."""
    Z = np.empty_like(X)
    for part, estimated_on in parts:
        Z[part] = congruence(invsqrtm(mean_riemann(X[estimated_on])), X[part])
    return Z


def _parts(groups: np.ndarray) -> list[np.ndarray]:
    return [np.flatnonzero(groups == group) for group in np.unique(groups)]


def _calibrated(
    mask: np.ndarray, groups: np.ndarray, calibration: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for part in _parts(groups):
        known, new = part[mask[part]], part[~mask[part]]
        if len(known):
            yield known, known
        if len(new):
            yield new, new[: max(1, round(calibration * len(new)))]


def _training_mask(train: Array | None, groups: np.ndarray, how: str) -> np.ndarray:
    if train is None:
        raise ValueError(f"how={how!r} needs train: the training groups, or a mask over the matrices.")
    train = np.asarray(train)
    if train.dtype == bool and train.ndim == 1:
        if len(train) != len(groups):
            raise ValueError(f"The mask train has {len(train)} entries for {len(groups)} matrices.")
        mask = train
    else:
        if unknown := np.setdiff1d(train, groups).tolist():
            known = np.unique(groups).tolist()
            raise ValueError(f"train names the groups {unknown}, but the groups are {known}.")
        mask = np.isin(groups, train)
    if not mask.any():
        raise ValueError("train selects no matrix; expected at least one to whiten by.")
    return mask
