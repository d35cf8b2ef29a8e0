"""Matrices drawn towards a multiple of the identity, which makes singular ones definite."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from spdmetric.linalg.symmetric import Array
from spdmetric.validation import as_float, bad_matrices, check_symmetric, is_single, to_numpy


class Shrinkage(TransformerMixin, BaseEstimator):
    """Shrink covariance matrices: ``(1 - a) X + a tr(X)/d I``.

    Singular matrices, whatever their ranks and ranges, become positive definite, so that every method can
    take them.

    Parameters
    ----------
    shrinkage : float or "oas", default=0.1
        The share a, above 0 and at most 1; or "oas", for each matrix that of the oracle approximating
        shrinkage [Chen2010]_, which needs to know how many samples a matrix was estimated from.
    n_samples : int, optional
        That number, for "oas".  None: the least that it can be, one more than the rank of the matrix, as
        n centered samples give a covariance of rank n - 1 or less.  This shrinks matrices of full rank
        more than is needed: where the number is known, give it.

    Attributes
    ----------
    n_features_in_ : int
        The size d of the matrices.

    Notes
    -----
    The shrinkage of Ledoit and Wolf needs the samples themselves: estimate the matrices anew, for instance by
    pyRiemann's ``Covariances("lwf")``.

    References
    ----------
    .. [Chen2010] Y. Chen, A. Wiesel, Y. Eldar and A. Hero, "Shrinkage Algorithms for MMSE Covariance
       Estimation", IEEE Transactions on Signal Processing, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from spdmetric import Shrinkage
    >>> Shrinkage(0.5).fit_transform(np.diag([4.0, 0.0])[None])[0].tolist()
    [[3.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, shrinkage: float | str = 0.1, n_samples: int | None = None):
        self.shrinkage = shrinkage
        self.n_samples = n_samples

    def fit(self, X: Array, y: Array | None = None) -> Shrinkage:
        """Check the parameters and remember the size of the matrices.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Positive semi-definite matrices, in memory.
        y : ignored

        Returns
        -------
        self : Shrinkage
        """
        self._check()
        validate_data(self, _checked(to_numpy(X)), reset=True, skip_check_array=True)
        return self

    def transform(self, X: Array) -> np.ndarray:
        """Shrink matrices.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Positive semi-definite matrices, in memory.

        Returns
        -------
        X : ndarray of shape (n_matrices, d, d)
            float32 for float32 input.
        """
        check_is_fitted(self)
        self._check()
        matrices = _checked(to_numpy(X))
        validate_data(self, matrices, reset=False, skip_check_array=True)
        d = matrices.shape[1]
        mean = np.trace(matrices, axis1=1, axis2=2)[:, None, None] / d
        share = self._shares(matrices, single=is_single(X))
        return as_float((1 - share) * matrices + share * mean * np.eye(d), single=is_single(X))

    def _shares(self, X: np.ndarray, *, single: bool) -> Any:
        """Share of the identity: one for all matrices, or (n, 1, 1)."""
        if self.shrinkage != "oas":
            return self.shrinkage
        d, n = X.shape[1], self.n_samples
        if n is None:
            values = np.linalg.eigvalsh(X)
            floor = 2 * np.finfo(np.float32).eps if single else d * np.finfo(np.float64).eps
            n = np.sum(values > floor * values[:, -1:], axis=1) + 1
        squares, mean = np.mean(X**2, axis=(1, 2)), np.trace(X, axis1=1, axis2=2) / d
        # As scikit-learn has it, with the terms in 1/d left out.
        above, below = squares + mean**2, (n + 1) * (squares - mean**2 / d)
        share = np.where(below > above, above / np.where(below > 0, below, 1.0), 1.0)
        return share[:, None, None]

    def _check(self) -> None:
        a, n = self.shrinkage, self.n_samples
        if isinstance(a, str) and a != "oas":
            why = "that of Ledoit and Wolf needs the signals, see Covariances('lwf') of pyRiemann. "
            raise ValueError(
                f"shrinkage={a!r}: {why if a == 'lwf' else ''}Expected 'oas' or a number above 0, at most 1."
            )
        if not isinstance(a, str) and not (isinstance(a, Real) and 0 < a <= 1):
            raise ValueError(f"shrinkage={a!r}: expected 'oas' or a number above 0, at most 1.")
        if n is not None and not (isinstance(n, Integral) and n >= 1):
            raise ValueError(f"n_samples={n!r}: expected a whole number, at least 1, or None.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _checked(X: Any) -> np.ndarray:
    """Positive semi-definite matrices in float64, or what is wrong with the first that is none."""
    matrices = check_symmetric(X)
    if bad := bad_matrices(X):
        raise ValueError(f"{bad[0].where} is not positive semi-definite ({bad[0].why}); {len(bad)} are not.")
    return matrices
