"""From signals to several covariance matrices a sample: one for each frequency band and time window."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators._fitted import StackEstimator
from spdmetric.extras import require_extra
from spdmetric.linalg.symmetric import Array
from spdmetric.validation import as_numbers, bad_signals

Pair = tuple[float, float]


class FilterBankCovariances(TransformerMixin, StackEstimator):
    """Covariance matrices of signals, a view for each frequency band and each time window.

    Every estimator of this package takes the views together, ``(n_trials, n_views, d, d)``, and learns a
    reference point for each of them.  The first view is the one that a choice falls back on: let it be the
    broadest band and the longest window.

    Parameters
    ----------
    bands : sequence of (float, float) or None, default=None
        Lower and upper edges in Hz.  None leaves the signals as they are, also as an element, for a view
        of unfiltered signals.  Filters are Butterworth filters of order 5, forward and backward over
        each trial, so that nothing is delayed.
    windows : sequence of (float, float) or None, default=None
        First and last moment in seconds, both included.  They count from the first sample of arrays, and
        from the event of MNE's epochs.  None is the whole trial, also as an element.
    sfreq : float, optional
        Sampling rate in Hz.  Arrays with bands or windows need it; epochs know theirs.
    estimator : str or callable, default="oas"
        How a covariance is estimated, one of pyRiemann's estimators: "oas", "lwf", "scm", ...

    Attributes
    ----------
    view_names_ : ndarray of shape (n_views,)
        Band and window of each view; all windows of the first band come first.
    n_features_in_ : int
        The number of channels d.

    Examples
    --------
    >>> import numpy as np
    >>> from spdmetric import FilterBankCovariances
    >>> signals = np.random.default_rng(0).standard_normal((10, 4, 500))  # 10 trials of 4 channels, 2 s
    >>> views = FilterBankCovariances([(8, 30), (8, 12)], sfreq=250.0).fit(signals)
    >>> views.transform(signals).shape, views.view_names_.tolist()
    ((10, 2, 4, 4), ['8-30 Hz', '8-12 Hz'])
    """

    def __init__(
        self,
        bands: Sequence[Pair | None] | None = None,
        windows: Sequence[Pair | None] | None = None,
        *,
        sfreq: float | None = None,
        estimator: str | Any = "oas",
    ):
        self.bands = bands
        self.windows = windows
        self.sfreq = sfreq
        self.estimator = estimator

    def fit(self, X: Array, y: Array = None) -> FilterBankCovariances:
        """Check bands and windows against signals; nothing else is learned.

        Parameters
        ----------
        X : array-like of shape (n_trials, n_channels, n_times), or MNE's Epochs
        y : ignored

        Returns
        -------
        self : FilterBankCovariances
        """
        signals, sfreq, first = self._check_signals(X)
        views = self._find_views(sfreq, first, signals.shape[2])
        self.n_features_in_ = signals.shape[1]
        self.view_names_ = np.array([name for *_, name in views], dtype=object)
        return self

    def transform(self, X: Array) -> np.ndarray:
        """Covariance matrices of signals.

        Parameters
        ----------
        X : array-like of shape (n_trials, n_channels, n_times), or MNE's Epochs

        Returns
        -------
        matrices : ndarray of shape (n_trials, n_views, n_channels, n_channels)
        """
        check_is_fitted(self)
        with require_extra("FilterBankCovariances needs pyRiemann", "compare"):
            from pyriemann.estimation import Covariances
        from scipy.signal import butter, sosfiltfilt

        signals, sfreq, first = self._check_signals(X)
        d, known = signals.shape[1], self.n_features_in_
        if d != known:
            raise ValueError(f"X has {d} channels, but FilterBankCovariances was fitted on {known}.")
        covariances, matrices, filtered, of_band = Covariances(self.estimator), [], signals, None
        for band, samples, _ in self._find_views(sfreq, first, signals.shape[2]):
            if band is None:
                filtered = signals
            elif band != of_band:  # the windows of a band share its filter
                sos = butter(5, band, "band", fs=sfreq, output="sos")
                pad = min(3 * (2 * len(sos) + 1), signals.shape[2] - 1)
                filtered = sosfiltfilt(sos, signals, axis=2, padlen=pad)
            matrices.append(covariances.fit_transform(filtered[:, :, samples]))
            of_band = band
        return np.stack(matrices, axis=1)

    def _find_views(self, sfreq: float, first: float, n_times: int) -> list[tuple[Pair | None, slice, str]]:
        """Band, samples and name of each view."""
        last, views = first + (n_times - 1) / sfreq, []
        for band, window in product(self.bands or (None,), self.windows or (None,)):
            samples, parts = slice(None), []
            if band is not None:
                band = _check_pair("bands", band, 0.0, sfreq / 2, "frequencies in Hz between 0 and")
                parts.append(f"{band[0]:g}-{band[1]:g} Hz")
            if window is not None:
                within = f"moments in seconds, not before {first:g} and not after"
                window = _check_pair("windows", window, first - 0.5 / sfreq, last + 0.5 / sfreq, within)
                samples = slice(*(round((moment - first) * sfreq) + k for k, moment in enumerate(window)))
                parts.append(f"{window[0]:g}-{window[1]:g} s")
            views.append((band, samples, ", ".join(parts) or "all"))
        return views

    def _check_signals(self, X: Any) -> tuple[np.ndarray, float, float]:
        """Signals in float64, their rate, and the moment of their first sample in seconds."""
        sfreq, first = self.sfreq, 0.0
        if hasattr(X, "get_data") and hasattr(X, "info"):  # MNE's epochs
            X, rate, first = X.get_data(copy=False), float(X.info["sfreq"]), float(X.tmin)
            if sfreq is not None and sfreq != rate:
                raise ValueError(f"sfreq={sfreq!r}, but the epochs have {rate:g} Hz: leave sfreq=None.")
            sfreq = rate
        if sfreq is None and (self.bands or self.windows):
            raise ValueError("sfreq=None: bands and windows need the sampling rate of arrays, in Hz.")
        if sfreq is not None and not (isinstance(sfreq, Real) and 0 < sfreq < np.inf):
            raise ValueError(f"sfreq={sfreq!r}: expected a positive number, the sampling rate in Hz.")
        signals = as_numbers(X, "X")
        if signals.dtype.kind == "c":
            raise ValueError("X is complex: complex data not supported, expected real signals.")
        if signals.ndim != 3:
            got = f"{signals.ndim} dimensions and shape {signals.shape}. Reshape your data"
            raise ValueError(f"Expected X of shape (n_trials, n_channels, n_times), got {got}.")
        if 0 in signals.shape:
            raise ValueError(f"X is empty: shape {signals.shape}, 0 sample(s); a minimum of 1 is required.")
        signals = signals.astype(np.float64, copy=False)
        if bad := bad_signals(signals):
            raise ValueError(f"{bad[0].where} {bad[0].why}: drop that trial, or fill the gap.")
        return signals, 1.0 if sfreq is None else float(sfreq), first


def _check_pair(name: str, pair: Pair, low: float, high: float, of: str) -> Pair:
    """Two rising numbers within an interval, as floats."""
    ends = np.ravel(pair).tolist()
    if len(ends) != 2 or not low < ends[0] < ends[1] < high:
        raise ValueError(f"{name} has {pair!r}: expected two rising {of} {high:g}.")
    return float(ends[0]), float(ends[1])
