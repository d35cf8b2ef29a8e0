"""Steps before a metric that make singular matrices positive definite."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdmetric import validation
from spdmetric.estimators._fitted import StackEstimator
from spdmetric.linalg.symmetric import Array, adjoint, array_namespace, congruence, detached, like
from spdmetric.linalg.threads import one_thread
from spdmetric.objectives.start import common_range


class MatrixTransformer(TransformerMixin, StackEstimator):
    """What turns positive semi-definite matrices into definite ones, in the precision that they have."""

    @one_thread
    def fit(self, X: Array, y: Array | None = None) -> Self:
        """Check the parameters, and learn what `transform` needs.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Positive semi-definite matrices, in memory.
        y : ignored

        Returns
        -------
        self : estimator
        """
        X = validation.to_numpy(X)
        matrices = validation.check_symmetric(X)
        self._learn(X, matrices)
        self.n_features_in_ = matrices.shape[-1]
        return self

    @one_thread
    def transform(self, X: Array) -> Array:
        """Make matrices positive definite.

        Parameters
        ----------
        X : array-like of shape (n_matrices, d, d)
            Positive semi-definite matrices, in memory.

        Returns
        -------
        X : ndarray of shape (n_matrices, r, r)
            float32 for float32 input.  `Shrinkage` keeps the size, r = d.  `CommonRange` gives tensors, on
            their own device, for tensors.
        """
        check_is_fitted(self)
        matrices = validation.check_symmetric(X)
        validation.check_size(self, matrices)
        return validation.as_float(self._apply(X, matrices), single=validation.is_single(X))

    # X as it was given, whose precision counts, and in float64.
    @abstractmethod
    def _learn(self, X: Array, matrices: Array) -> None: ...
    @abstractmethod
    def _apply(self, X: Array, matrices: Array) -> Array: ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class CommonRange(MatrixTransformer):
    """Bring matrices that share a null space to their common range, where they are definite.

    An average reference, a projection, or removed components leave all covariances singular in the same
    directions.  `transform` writes them in an orthonormal basis B of the others, ``B'XB``: positive definite
    matrices of size r.  Nothing is lost, and `inverse_transform` gives them back.  Definite ones pass.

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
    >>> from spdmetric import CommonRange
    >>> from spdmetric.datasets import make_regression
    >>> X, y, X_test, y_test = make_regression(d=6, rank=4, random_state=0)
    >>> CommonRange().fit_transform(X).shape
    (200, 4, 4)
    """

    def __init__(self, tol: float | None = None):
        self.tol = tol

    def _learn(self, X: Array, matrices: np.ndarray) -> None:
        traces = np.trace(matrices, axis1=1, axis2=2).real
        if (bad := validation.first_true(traces <= 0)) is not None:
            raise ValueError(f"X[{bad}] has the trace {traces[bad]:.3g}: it is not a covariance matrix.")
        d = matrices.shape[1]
        floor = self._floor(X, d)
        basis = common_range(lambda f: f(matrices).mean(axis=0), floor)
        basis = np.eye(d) if basis.shape[1] == d else basis
        _check_definite(congruence(adjoint(basis), matrices), floor, d)
        self.basis_ = basis

    def _apply(self, X: Array, matrices: Array) -> Array:
        d, r = self.basis_.shape
        floor, inside = self._floor(X, d), matrices
        if r < d:
            inside = congruence(like(adjoint(self.basis_), matrices), matrices)
            trace = array_namespace(matrices).linalg.trace
            whole, part = (np.real(validation.to_numpy(trace(detached(A)))) for A in (matrices, inside))
            shares = 1 - part / whole  # of what lies outside
            if (bad := validation.first_true(~(shares <= 100 * floor))) is not None:  # more than rounding
                raise ValueError(
                    f"X[{bad}] leaves the common range of the matrices of fit: {shares[bad]:.2g} of its "
                    f"trace lies outside its {r} of {d} dimensions. Treat new matrices as those of fit were "
                    "treated, with the same reference and the same projection, or fit on all of them."
                )
        _check_definite(inside, floor, d)
        return inside

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
        matrices, r = validation.check_symmetric(X), self.basis_.shape[1]
        if matrices.shape[1] != r:
            got = f"X has matrices of size {matrices.shape[1]}"
            raise ValueError(f"{got}: expected {r}, the common range has {r} dimensions.")
        whole = congruence(like(self.basis_, matrices), matrices)
        return validation.as_float(whole, single=validation.is_single(X))

    def _floor(self, X: Array, d: int) -> float:
        if self.tol is None:
            return _rounding(d, single=validation.is_single(X))
        if not (isinstance(self.tol, Real) and 0 <= self.tol < 1):
            raise ValueError(f"tol={self.tol!r}: expected a number from 0 to 1, a share of an eigenvalue.")
        return float(self.tol)


class Shrinkage(MatrixTransformer):
    """Shrink covariance matrices: ``(1 - a) X + a tr(X)/d I``.

    Singular matrices, whatever their ranks and ranges, become positive definite.

    Parameters
    ----------
    shrinkage : float or "oas", default=0.1
        The share a, above 0 and at most 1; or "oas", for each matrix that of the oracle approximating
        shrinkage [Chen2010]_, which needs to know how many samples a matrix was estimated from.
    n_samples : int, optional
        That number, for "oas".  None: the least that it can be, one more than the rank of the matrix, which
        shrinks matrices of full rank more than is needed: where the number is known, give it.

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

    def _learn(self, X: Array, matrices: np.ndarray) -> None:
        a, n = self.shrinkage, self.n_samples
        if not (0 < a <= 1 if isinstance(a, Real) else a == "oas"):
            raise ValueError(
                f"shrinkage={a!r}: expected 'oas' or a number above 0, at most 1. That of Ledoit and Wolf "
                "needs the signals, see Covariances('lwf') of pyRiemann."
            )
        if n is not None and not (isinstance(n, Integral) and 1 <= n < 2**63):
            raise ValueError(f"n_samples={n!r}: expected a whole number, at least 1, or None.")
        if bad := validation.bad_matrices(X):
            one, count = bad[0], len(bad)
            raise ValueError(f"{one.where} is not positive semi-definite ({one.why}); {count} are not.")

    def _apply(self, X: Array, matrices: Array) -> np.ndarray:
        X, matrices = validation.to_numpy(X), validation.to_numpy(matrices)
        self._learn(X, matrices)
        d = matrices.shape[1]
        mean = np.trace(matrices, axis1=1, axis2=2).real[:, None, None] / d
        share = self._shares(matrices, single=validation.is_single(X))
        return (1 - share) * matrices + share * mean * np.eye(d)

    def _shares(self, X: np.ndarray, *, single: bool) -> Any:
        """Share of the identity: one for all matrices, or (n, 1, 1)."""
        if self.shrinkage != "oas":
            return self.shrinkage
        d = X.shape[1]
        n: Any = self.n_samples
        if n is None:
            n = _ranks(np.linalg.eigvalsh(X), _rounding(d, single=single)) + 1
        squares, mean = np.mean(np.abs(X) ** 2, axis=(1, 2)), np.trace(X, axis1=1, axis2=2).real / d
        # As scikit-learn has it, with the terms in 1/d left out.
        above, below = squares + mean**2, (n + 1) * (squares - mean**2 / d)
        share = np.where(below > above, above / np.where(below > 0, below, 1.0), 1.0)
        return share[:, None, None]


def _rounding(d: int, *, single: bool) -> float:
    """Share of the largest eigenvalue up to which one is rounding."""
    return float(2 * np.finfo(np.float32).eps if single else d * np.finfo(np.float64).eps)


def _ranks(values: np.ndarray, floor: float) -> np.ndarray:
    """Ranks of matrices, given their eigenvalues in ascending order, (n, d)."""
    return np.sum(values > floor * values[:, -1:], axis=1)


def _check_definite(inside: Array, floor: float, d: int) -> None:
    """Refuse matrices that are singular on what is meant to be their range."""
    values = validation.to_numpy(array_namespace(inside).linalg.eigvalsh(detached(inside)))  # (n, r)
    ranks, r = _ranks(values, floor), values.shape[1]
    bad = int(np.argmin(ranks))
    if ranks[bad] == r:
        return
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
