"""Errors of means over tested matrices: one rule for each design, and never less than that of the matrices.

A `Design` says which values were obtained together: in folds whose training sets overlap, the corrected
resampled t of [Nadeau2003]_; in groups that were left out, a t over groups; otherwise each matrix counts
alone, as in McNemar's test.  Whatever the design, an interval is never narrower than the binomial one of the
matrices: that of [Wilson1927]_ for a share, and for a paired difference that of [Agresti2005]_, which adds
half a matrix to each cell of McNemar's table.  So no interval is a single value, even where all are right.

References
----------
.. [Nadeau2003] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52, 2003.
.. [Wilson1927] E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
   of the American Statistical Association 22, 1927.
.. [Agresti2005] A. Agresti and Y. Min, "Simple improved confidence intervals for comparing matched
   proportions", Statistics in Medicine 24, 2005.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

LEVEL = 0.975  # of a normal or t quantile at each side


class Estimate(NamedTuple):
    """A mean, its standard error and its 95 % interval, as they are shown."""

    mean: float
    se: float
    low: float
    high: float
    digits: int = 1

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)

    @property
    def signed(self) -> str:
        """``+3.5 ± 1.0``, with a true minus sign."""
        return f"{self.show(self.mean, '+')} ± {self.show(self.se)}"

    @property
    def interval(self) -> str:
        """``-1.0 to +3.0``, likewise."""
        return f"{self.show(self.low, '+')} to {self.show(self.high, '+')}"

    def __str__(self) -> str:
        return f"{self.show(self.mean)} ± {self.show(self.se)}"

    def show(self, value: float, sign: str = "") -> str:
        """A value with as many digits as the error has, one that is not zero at least."""
        digits = max(self.digits, int(np.ceil(-np.log10(self.se)))) if 0 < self.se < 1 else self.digits
        rounded = round(value, digits) + 0.0
        return f"{rounded:{sign}.{digits}f}".replace("-", "\N{MINUS SIGN}")


class Design(NamedTuple):
    """Which tested matrices have an error in common."""

    rule: str  # in words
    units: str  # what the errors are over, in words
    codes: np.ndarray | None = None  # (n_repeats, n), the fold or group of each; None: each counts alone
    overlap: float = 0.0  # test by training matrices of a fold, where training sets overlap


def estimate_mean(values: np.ndarray, design: Design, counted: float, *, bounded: bool) -> Estimate:
    """Mean of values (n_repeats, n), between 0 and 1 where they are bounded.

    ``counted`` is the number of matrices whose share has the binomial error, fewer than n where classes
    count alike and have different sizes.
    """
    mean, n = float(values.mean()), values.shape[1]
    if not bounded:
        return _make_symmetric(values, design, float(np.var(values.mean(axis=0), ddof=1)) / n)
    smooth = (counted * mean + 2) / (counted + 4)
    alone = smooth * (1 - smooth) / counted
    variance, spread = _widen(values, design, alone)
    # Wilson's interval of a share, of as many matrices as would have this error.
    share, shrunk = min(max(mean, 0.0), 1.0), variance / (smooth * (1 - smooth))
    half = np.sqrt(share * (1 - share) * shrunk + shrunk**2 / 4)
    low, high = ((mean + shrunk / 2 + side * half) / (1 + shrunk) for side in (-1, 1))
    return Estimate(mean, float(np.sqrt(max(alone, spread))), float(low), float(high))


def estimate_difference(values: np.ndarray, design: Design, counted: float, span: float = 1.0) -> Estimate:
    """Mean of paired differences (n_repeats, n) of two methods, each at most ``span`` or of that order."""
    own = values.mean(axis=0)
    return _make_symmetric(values, design, float(np.var(own)) / len(own) + (span / (counted + 2)) ** 2)


def _make_symmetric(values: np.ndarray, design: Design, alone: float) -> Estimate:
    mean, (variance, spread) = float(values.mean()), _widen(values, design, alone)
    half = float(np.sqrt(variance))
    return Estimate(mean, float(np.sqrt(max(alone, spread))), mean - half, mean + half)


def _widen(values: np.ndarray, design: Design, alone: float) -> tuple[float, float]:
    """Squared half width of an interval, and the variance of the mean over folds or groups.

    The variance of the matrices alone counts with a normal quantile, what folds or groups add to it with
    one of t.  That is the longer of the two intervals from seven groups on.  Of three, t alone is so wide
    that it would cover 99 % where groups have no effect: of fewer than seven, three fifths are taken off.
    """
    from scipy.special import ndtri, stdtrit

    normal = float(ndtri(LEVEL)) ** 2
    if design.codes is None:
        return normal * alone, 0.0
    codes = design.codes[: len(values)]
    residuals = np.bincount(codes.ravel(), weights=(values - values.mean()).ravel())
    k = len(residuals)
    spread = k / (k - 1) * float(np.sum(residuals**2)) / values.size**2 * (1 + k * design.overlap)
    wide = float(stdtrit(k - 1, LEVEL)) ** 2
    return normal * alone + wide * max(0.0, spread - max(0.6, normal / wide) * alone), spread
