"""The vectors of matrices: where they lie, and how far apart, before and after learning."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_consistent_length

from spdmetric.geometry import PAIRWISE_METRICS, mean_riemann, pairwise_distance
from spdmetric.plots.style import CLASS_LOOKS, Display, find_metric
from spdmetric.validation import check_spd, check_value, is_regression, one_of, to_numpy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator, TransformerMixin


def vectors_of(estimator: TransformerMixin, X: ArrayLike) -> np.ndarray:
    """Vectors that a fitted transformer gives, as a plain array."""
    return np.asarray(to_numpy(estimator.transform(to_numpy(X))), dtype=np.float64)


def _find_vectors(
    estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None, Any, str]:
    """Vectors, labels, the matrices that the metric sees, and its name; of any transformer, too."""
    try:
        metric, name, X = find_metric(estimator, "vectors", X)
    except TypeError:
        if not hasattr(estimator, "transform"):
            raise
        metric, name = estimator, type(estimator).__name__
    vectors, labels = vectors_of(metric, X), to_numpy(y)
    check_consistent_length(vectors, labels)
    if len(vectors) < 2:
        raise ValueError("X holds one matrix: expected two or more, to have a distance.")
    return vectors, labels, X, name


@dataclass(eq=False, repr=False)
class EmbeddingDisplay(Display):
    """Matrices in the plane of their two principal components, after `transform`.

    Vectors of one entry, as a weighting for two classes gives them, are drawn as histograms, or against
    regression targets.

    Parameters
    ----------
    points : array-like of shape (n_matrices, 2) or (n_matrices, 1)
        Coordinates in the plane, or on a line.
    y : array-like of shape (n_matrices,), optional
        Labels, named in a legend up to 12 of them; or regression targets, drawn as a scale of color.
    explained : array-like of shape (2,), optional
        Shares of the variance that the components explain.

    Examples
    --------
    >>> from spdmetric import EmbeddingDisplay, LogEuclideanMetric
    >>> from spdmetric.datasets import make_toy
    >>> X, y, *_ = make_toy(d=4, random_state=0)
    >>> display = EmbeddingDisplay.from_estimator(LogEuclideanMetric().fit(X, y), X, y)
    >>> display.points.shape
    (50, 2)
    """

    points: ArrayLike
    y: ArrayLike | None = None
    _: KW_ONLY
    explained: ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: ArrayLike, y: ArrayLike | None = None, **kwargs: Any
    ) -> Self:
        """Draw matrices as a fitted metric sees them.

        Parameters
        ----------
        estimator : LogEuclideanMetric, what holds one, or another transformer
            Fitted: also a classifier, a regressor, or a pipeline with such a step.
        X : array-like of shape (n_matrices, d, d)
            What it takes.
        y : array-like of shape (n_matrices,), optional
            Labels, each drawn in its own color and shape.
        **kwargs
            Passed to `plot`.
        """
        vectors, y, _, name = _find_vectors(estimator, X, y)
        pca = PCA(min(2, vectors.shape[1])).fit(vectors)
        return cls(pca.transform(vectors), y, explained=pca.explained_variance_ratio_)._draw(name, kwargs)

    def plot(self, ax: Axes | None = None, *, scatter_kw: dict[str, Any] | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        scatter_kw : dict, optional
            Passed to ``Axes.scatter``; without meaning for histograms.
        """
        ax = self._begin(ax)
        points, look = np.asarray(self.points), {"s": 22, "alpha": 0.8, "lw": 0, **(scatter_kw or {})}
        y = np.zeros(len(points)) if self.y is None else np.asarray(self.y)
        labels, on_line = np.unique(y), points.shape[1] == 1
        explained = () if self.explained is None else np.asarray(self.explained)
        shares = [f", {share:.0%} of variance" for share in explained] or ["", ""]
        if is_regression(y, "auto"):
            up, labels = y if on_line else points[:, 1], labels[:0]
            drawn = ax.scatter(points[:, 0], up, **{"c": y, "cmap": "viridis", **look})
            self.figure_.colorbar(drawn, ax=ax, label="y")
        bins: Any = np.histogram_bin_edges(points[:, 0], "sturges")
        for label, (color, marker) in zip(labels, cycle(CLASS_LOOKS), strict=False):
            own: dict[str, Any] = {"color": color, "label": str(label)}
            if on_line:
                ax.hist(points[y == label, 0], bins, alpha=0.6, **own)
            else:
                ax.scatter(*points[y == label].T, **{"marker": marker, **own, **look})
        if on_line:
            ax.set(xlabel="component 1", ylabel="matrices" if len(labels) else "y")
        else:
            ax.set(xlabel=f"component 1{shares[0]}", ylabel=f"component 2{shares[1]}")
            # Distances are what is learned: one unit is one unit in both directions.
            ax.set_aspect("equal", adjustable="datalim")
        if self.y is not None and 0 < len(labels) <= 12:
            ax.legend()
        return self


@dataclass(eq=False, repr=False)
class PairDistanceDisplay(Display):
    """Distances of all pairs: before learning below the diagonal, after it above.

    Each triangle is in units of its own mean, so that one scale serves both.

    Parameters
    ----------
    before, after : array-like of shape (n_matrices, n_matrices)
        Distances.
    y : array-like of shape (n_matrices,), optional
        Labels; matrices are then shown class by class.

    Examples
    --------
    >>> from spdmetric import LogEuclideanMetric, PairDistanceDisplay
    >>> from spdmetric.datasets import make_toy
    >>> X, y, *_ = make_toy(d=4, random_state=0)
    >>> display = PairDistanceDisplay.from_estimator(LogEuclideanMetric().fit(X, y), X, y)
    >>> before, after = display.separation
    >>> bool(after > before)
    True
    """

    before: ArrayLike
    after: ArrayLike
    y: ArrayLike | None = None

    @property
    def separation(self) -> tuple[float, float]:
        """Mean distance between classes over that within, before and after; NaN without two classes."""
        before, after = np.asarray(self.before), np.asarray(self.after)
        y = np.zeros(len(before)) if self.y is None else np.asarray(self.y)
        same = y[:, None] == y
        within = same & ~np.eye(len(y), dtype=bool)
        if same.all() or not within.any():
            return float("nan"), float("nan")
        first, second = (float(D[~same].mean() / D[within].mean()) for D in (before, after))
        return first, second

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        before: str | TransformerMixin | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the distances that a fitted metric gives, beside those it started from.

        Parameters
        ----------
        estimator, X, y
            See `EmbeddingDisplay.from_estimator`; with labels, matrices are shown class by class.
        before : {"euclid", "logeuclid", "riemann", "stein"} or transformer, optional
            What to compare with; the LogEuclidean distance at the Riemannian mean of X by default.
        **kwargs
            Passed to `plot`.
        """
        vectors, y, X, name = _find_vectors(estimator, X, y)
        return cls(_distances(X, before), pairwise_distances(vectors), y)._draw(name, kwargs)

    def plot(self, ax: Axes | None = None, *, cmap: str = "viridis", colorbar: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        cmap : str, default="viridis"
            Colors.
        colorbar : bool, default=True
            Whether to draw the scale.
        """
        ax, both = self._begin(ax), map(np.asarray, (self.before, self.after))
        before, after = (D / D[~np.eye(len(D), dtype=bool)].mean() for D in both)
        y = None if self.y is None else np.asarray(self.y)
        order = np.arange(len(before)) if y is None else np.argsort(y, kind="stable")
        shown = np.triu(after[np.ix_(order, order)]) + np.tril(before[np.ix_(order, order)], -1)
        np.fill_diagonal(shown, np.nan)  # no distance: left white between the two
        image = ax.imshow(shown, cmap=cmap, vmin=0, interpolation="nearest")
        ax.set(xlabel="above the diagonal: after", ylabel="below: before")
        if y is not None:  # names of the classes along both sides, and lines between them
            labels, counts = np.unique(y, return_counts=True)
            ends = np.cumsum(counts)
            for end in ends[:-1]:
                ax.axhline(end - 0.5, color="white", lw=1)
                ax.axvline(end - 0.5, color="white", lw=1)
            middles, names = ends - counts / 2 - 0.5, [str(label) for label in labels]
            ax.set_xticks(middles, names)
            ax.set_yticks(middles, names, rotation=90, va="center")
            ax.tick_params(length=0)
            ax.set_title("between / within classes: {:.2f} → {:.2f}".format(*self.separation))
        label = "distance / mean distance"
        self.colorbar_ = self.figure_.colorbar(image, ax=ax, label=label) if colorbar else None
        return self


def _distances(X: ArrayLike, what: str | TransformerMixin | None) -> np.ndarray:
    """Distances of all pairs by name, by a fitted transformer, or at the mean."""
    if what is not None and not isinstance(what, str):
        return pairwise_distances(vectors_of(what, X))
    if np.ndim(X) == 4:  # of all views together
        views = np.moveaxis(np.asarray(to_numpy(X)), 1, 0)
        return np.sqrt(sum(_distances(view, what) ** 2 for view in views))
    X = check_spd(to_numpy(X))
    if what is None:
        return pairwise_distance(X, metric="logeuclid", reference=mean_riemann(X))
    check_value("before", what, one_of(*PAIRWISE_METRICS))
    return pairwise_distance(X, metric=what)
