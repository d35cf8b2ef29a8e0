"""Where on the head the components of a metric come from.

A row w of the factor W reads a signal ``w x`` out of the channels x; where it comes from is told by
the *patterns*, the regression of the channels on the signals, ``C W' (W C W')^{-1}`` [Haufe2014]_,
C the covariance of the channels.  ``QW`` gives the same distances for every rotation Q: the rows
are turned so that the first one tells the classes apart most.  With ``L_c`` the mean of
``log(W X W')`` over class c, Q diagonalizes ``sum_c (L_c - L)^2``.

References
----------
.. [Haufe2014] S. Haufe et al., "On the interpretation of weight vectors of linear models in
   multivariate neuroimaging", NeuroImage 87, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length

from spdmetric.extras import require_extra
from spdmetric.geometry import mean_euclid
from spdmetric.linalg.hermitian import fill_matrices
from spdmetric.linalg.symmetric import adjoint, congruence
from spdmetric.plots.style import Display, Metric, find_metric, find_view
from spdmetric.plots.vectors import vectors_of
from spdmetric.validation import check_psd, to_numpy

if TYPE_CHECKING:
    import mne
    from matplotlib.axes import Axes


class Patterns(NamedTuple):
    """Components of a metric, the one that tells the classes apart most first."""

    filters: np.ndarray  # (m, d), the rows of QW
    patterns: np.ndarray  # (m, d), a row for each component
    contrast: np.ndarray  # (m, n_classes), mean log-power of each class, less the mean of all classes
    classes: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        """The patterns as they are drawn: of complex ones how large they are."""
        return np.abs(self.patterns) if np.iscomplexobj(self.patterns) else self.patterns


def patterns_of(estimator: Metric, X: ArrayLike, y: ArrayLike) -> Patterns:
    """Filters and patterns of the components of a fitted metric; the mean of X is that of the channels."""
    X, y = check_psd(to_numpy(X), estimator.components_.shape[0]), np.asarray(to_numpy(y))
    check_consistent_length(X, y)
    plain = copy(estimator)
    plain.embedding_ = replace(estimator.embedding_, weighting=None)  # which does not weigh components
    logs, classes = fill_matrices(vectors_of(plain, X), X), np.unique(y)  # (n, m, m)
    means = np.stack([logs[y == label].mean(axis=0) for label in classes])
    apart = means - means.mean(axis=0)
    Q = np.linalg.eigh(np.sum(apart @ apart, axis=0))[1][:, ::-1]
    W = adjoint(Q) @ estimator.components_
    C = mean_euclid(X)
    patterns = np.linalg.solve(congruence(W, C), W @ C).conj()
    # The sign, or the phase, of a component is free: its largest entry points up.
    largest = np.take_along_axis(patterns, np.abs(patterns).argmax(axis=1)[:, None], axis=1)
    sign = np.sign(largest)
    contrast = np.einsum("ia,cij,ja->ac", Q.conj(), apart, Q).real
    return Patterns(sign * W, sign.conj() * patterns, contrast, classes)


@dataclass(eq=False, repr=False)
class PatternsDisplay(Display):
    """Patterns of the components of a metric, as maps of the head; they need MNE (extra ``eeg``).

    Parameters
    ----------
    patterns : Patterns
        What `patterns_of` gives.
    info : mne.Info
        Channels in the order of the matrices, with places on the head.

    Attributes
    ----------
    ax_ : ndarray of matplotlib Axes, of shape (n_components,)
    figure_ : matplotlib Figure
    """

    patterns: Patterns
    info: mne.Info

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike,
        info: mne.Info,
        *,
        view: str | int | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the patterns of a fitted metric.

        Parameters
        ----------
        estimator : LogEuclideanMetric, LogEuclideanMetricCV, or what holds one
            Fitted to covariances of the channels; of low rank, or the maps are many.  Also a classifier, or
            a pipeline with such a step.
        X, y : array-like of shape (n_matrices, d, d) and (n_matrices,)
            Covariances, of the training trials for instance, and labels; of a pipeline, what it takes.
        info : mne.Info
            Its d channels, in the order of the matrices, with a montage.
        view : str or int, optional
            Name or number of one of several views; the first by default.
        **kwargs
            Passed to `plot`.
        """
        several, name, X = find_metric(estimator, "components", X)
        metric, v = find_view(several, view)
        d = metric.n_features_in_
        if metric is not several:
            X = np.asarray(to_numpy(X))[:, v, :d, :d]
        if not isinstance(info, _mne().Info):
            kind = type(info).__name__
            raise TypeError(f"info is a {kind}: expected an mne.Info, for instance epochs.info.")
        if len(info["ch_names"]) != d:
            got = f"info has {len(info['ch_names'])} channels, but the matrices are {d} x {d}"
            raise ValueError(f"{got}: pick the channels that they were computed from, in that order.")
        if info.get_montage() is None:
            raise ValueError("The channels of info have no places on the head: call info.set_montage(...).")
        return cls(patterns_of(metric, X, y), info)._draw(name, kwargs)

    def plot(
        self,
        ax: Sequence[Axes] | None = None,
        *,
        n_components: int | None = None,
        topomap_kw: dict[str, Any] | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, optional
            Where to draw, one for each component; a new figure by default.
        n_components : int, optional
            How many to draw, those that tell the classes apart most; at most four by default.
        topomap_kw : dict, optional
            Passed to ``mne.viz.plot_topomap``.
        """
        m = len(self.patterns.patterns)
        n = min(m, 4) if n_components is None else n_components
        if not 1 <= n <= m:
            raise ValueError(f"n_components={n}: the metric has {m} components.")
        look = {"show": False, "contours": 4, **(topomap_kw or {})}
        for k, one in enumerate(self._begin(ax, n, size=(2.2 * n, 2.6))):
            _mne().viz.plot_topomap(self.patterns.shown[k], self.info, axes=one, **look)
            contrast = self.patterns.contrast[k]
            strongest = f"{self.patterns.classes[contrast.argmax()]}: {contrast.max():+.2f} log-power"
            one.set_title(f"component {k + 1}\n{strongest}", fontsize="medium")
        return self


def _mne() -> ModuleType:
    with require_extra("Maps of the head need MNE", "eeg"):
        import mne
    return mne
