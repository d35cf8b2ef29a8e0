"""Matrices that share a null space, brought to the range that they have in common."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from spdmetric.linalg.symmetric import Array, array_namespace, congruence, detached, like
from spdmetric.linalg.threads import one_thread
from spdmetric.objectives.start import common_range
from spdmetric.validation import as_float, check_symmetric, is_single, is_tensor, to_numpy


class CommonRange(TransformerMixin, BaseEstimator):
    """Bring matrices that share a null space to their common range, where they are definite.

    An average reference, a projection of the signals, or removed components leave covariances singular,
    all in the same directions.  `transform` writes them in an orthonormal basis B of the others,
    ``B'XB``: positive definite matrices of size r, which every method can take.  Nothing is lost, and
    `inverse_transform` gives the matrices back.  Definite matrices pass as they are.

    Parameters
    ----------
    tol : float or None, default=None
        Eigenvalues up to this share of the largest count as zero.  None: d times the rounding of float64;
        for float32 twice its own rounding, 2.4e-7.

    Attributes
    ----------
    basis_ : ndarray of shape (d, r)
        Orthonormal columns that span the common range; the identity where that is all.
    n_features_in_ : int
        The size d of the matrices.

    See Also
    --------
    LogEuclideanMetric : with ``rank=m`` it takes matrices of different ranges too.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from spdmetric import CommonRange
    >>> from spdmetric.datasets import make_regression
    >>> X, y, X_test, y_test = make_regression(d=6, rank=4, random_state=0)
    >>> CommonRange().fit_transform(X).shape
    (200, 4, 4)
    """

    def __init__(self, tol: float | None = None):
        self.tol = tol

    @one_thread
    def fit(self, X: Array, y: Array | None = None) -> CommonRange:
        """Find the common range.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Positive semi-definite matrices, in memory.
        y : ignored

        Returns
        -------
        self : CommonRange
        """
        if self.tol is not None and not (isinstance(self.tol, Real) and 0 <= self.tol < 1):
            raise ValueError(f"tol={self.tol!r}: expected a number from 0 to 1, a share of an eigenvalue.")
        X = to_numpy(X)
        matrices = check_symmetric(X)
        traces = np.trace(matrices, axis1=1, axis2=2)
        if not (traces > 0).all():
            bad = int(np.argmin(traces > 0))
            raise ValueError(f"X[{bad}] has the trace {traces[bad]:.3g}: it is not a covariance matrix.")
        d = matrices.shape[1]
        floor = self._floor(X, d)
        basis = common_range(lambda f: f(matrices).mean(axis=0), floor)
        basis = np.eye(d) if basis.shape[1] == d else basis
        _check_definite(congruence(basis.T, matrices), floor, d)
        validate_data(self, matrices, reset=True, skip_check_array=True)
        self.basis_ = basis
        return self

    @one_thread
    def transform(self, X: Array) -> Array:
        """Write matrices in the basis of the common range.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Positive semi-definite matrices with that range, in memory.

        Returns
        -------
        X : ndarray of shape (n_matrices, r, r)
            float32 for float32 input; tensors, on their own device, for tensors.
        """
        check_is_fitted(self)
        matrices = check_symmetric(X)
        validate_data(self, matrices, reset=False, skip_check_array=True)
        floor = self._floor(X, matrices.shape[1])
        inside = matrices
        if self.basis_.shape[1] < len(self.basis_):
            inside = congruence(like(self.basis_.T, matrices), matrices)
            _check_inside(matrices, inside, floor)
        _check_definite(inside, floor, matrices.shape[1])
        return as_float(inside, single=is_single(X))

    def inverse_transform(self, X: Array) -> Array:
        """Matrices of size d from those of size r: the inverse of `transform`.

        Parameters
        ----------
        X : array-like of shape (n_matrices, r, r)
            Matrices as `transform` gives them.

        Returns
        -------
        X : ndarray of shape (n_matrices, d, d)
        """
        check_is_fitted(self)
        matrices, r = check_symmetric(X), self.basis_.shape[1]
        if matrices.shape[1] != r:
            got = f"X has matrices of size {matrices.shape[1]}"
            raise ValueError(f"{got}: expected {r}, the common range has {r} dimensions.")
        return as_float(congruence(like(self.basis_, matrices), matrices), single=is_single(X))

    def _floor(self, X: Array, d: int) -> float:
        """Share of the largest eigenvalue up to which one counts as zero."""
        if self.tol is not None:
            return float(self.tol)
        return float(2 * np.finfo(np.float32).eps if is_single(X) else d * np.finfo(np.float64).eps)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_definite(inside: Array, floor: float, d: int) -> None:
    """Refuse matrices that are singular on what is meant to be their range."""
    values = array_namespace(inside).linalg.eigvalsh(detached(inside))  # (n, r)
    values = np.asarray(to_numpy(values) if is_tensor(values) else values)
    ranks = np.sum(values > floor * values[:, -1:], axis=1)
    r = values.shape[1]
    if ranks.min() == r:
        return
    bad = int(np.argmin(ranks))
    if values[bad, 0] < -100 * floor * abs(values[bad]).max():
        raise ValueError(
            f"X[{bad}] is not positive semi-definite (smallest eigenvalue {values[bad, 0]:.3g}, largest "
            f"{values[bad, -1]:.3g}): it is not a covariance matrix."
        )
    raise ValueError(
        f"X[{bad}] has rank {ranks[bad]} on the common range, which has {r} of {d} dimensions; "
        f"{np.sum(ranks < r)} of {len(ranks)} matrices are singular there: they do not share one null space. "
        "Drop those that differ, estimate them with shrinkage, or learn a metric of low rank with rank=m and "
        "init='euclid', m at most the lowest rank."
    )


def _check_inside(X: Array, inside: Array, floor: float) -> None:
    """Refuse matrices that leave the range; of those that stay, what is outside is rounding."""
    xp = array_namespace(X)
    whole, part = (xp.linalg.trace(detached(matrices)) for matrices in (X, inside))
    shares = 1 - np.asarray(to_numpy(part)) / np.asarray(to_numpy(whole))
    bad = int(np.argmax(~(shares <= 100 * floor)))
    if not shares[bad] <= 100 * floor:
        raise ValueError(
            f"X[{bad}] leaves the common range of the matrices of fit: {shares[bad]:.2g} of its trace lies "
            f"outside its {inside.shape[1]} of {X.shape[1]} dimensions. Treat new matrices as those of fit "
            "were treated, with the same reference and the same projection, or fit on all of them."
        )
