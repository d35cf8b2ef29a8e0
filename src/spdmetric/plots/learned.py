"""What a fitted metric shows of itself: its reference point, what it was chosen among, its path of radii."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from spdmetric.estimators import LogEuclideanMetricCV
from spdmetric.linalg.symmetric import congruence, invsqrtm, logm
from spdmetric.plots.style import BLUE, GRAY, VERMILLION, Display, find_metric, find_view
from spdmetric.validation import check_value, one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ChoiceDisplay(Display):
    """Gain of every candidate over the usual one in cross-validation, with its standard error.

    Parameters
    ----------
    names : sequence of str
        Candidates.
    gain, error : array-like of shape (n_candidates,)
        Mean paired difference of the scores, and its standard error.
    chosen : int
        Place of the candidate that was chosen.

    Examples
    --------
    >>> from spdmetric import ChoiceDisplay, LogEuclideanMetricCV
    >>> from spdmetric.datasets import make_toy
    >>> X, y, *_ = make_toy(d=4, random_state=0)
    >>> metric = LogEuclideanMetricCV(radii=(0, 2), ranks=(None,), cv=3).fit(X, y)
    >>> len(ChoiceDisplay.from_estimator(metric).names)
    4
    """

    names: Sequence[str]
    gain: ArrayLike
    error: ArrayLike
    _: KW_ONLY
    chosen: int

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, **kwargs: Any) -> Self:
        """Draw the choice of a fitted estimator, a line for each metric with the classifier that was chosen.

        Parameters
        ----------
        estimator : LogEuclideanMetricCV, LogEuclideanClassifier, LogEuclideanRegressor or Pipeline
            Fitted; of a pipeline, the last such step.
        **kwargs
            Passed to `plot`.
        """
        metric, name, _ = find_metric(estimator, "choice")
        if not isinstance(metric, LogEuclideanMetricCV):
            raise TypeError("A LogEuclideanMetric chooses nothing: expected a LogEuclideanMetricCV.")
        results, rows = metric.cv_results_, _rows_like_best(metric, "n_neighbors")
        names, gain = [_name(results["params"][i]) for i in rows], results["mean_gain"][rows]
        display = cls(names, gain, results["gain_error"][rows], chosen=rows.index(metric.best_index_))
        return display._draw(name, kwargs)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        ax = self._begin(ax)
        for k, (gain, error) in enumerate(zip(np.asarray(self.gain), np.asarray(self.error), strict=True)):
            color = VERMILLION if k == self.chosen else BLUE
            ax.errorbar(gain, k, xerr=error, fmt="o", color=color, capsize=3)
        ax.axvline(0, color=GRAY, ls=":", zorder=0)
        ax.set_yticks(np.arange(len(self.names)), self.names)
        ax.get_yticklabels()[self.chosen].set_color(VERMILLION)
        ax.invert_yaxis()
        ax.locator_params(axis="x", nbins=5)
        ax.set(xlabel="gain over the usual candidate, ± one standard error")
        return self


@dataclass(eq=False, repr=False)
class RadiusPathDisplay(Display):
    """Alignment, and the score in cross-validation, against the radius of the ball.

    Parameters
    ----------
    radius : array-like of shape (n_radii,)
        Radii, ascending.
    alignment : array-like of shape (n_radii,)
        Kernel-target alignment that was reached in each ball.
    score, score_error : array-like of shape (n_radii,), optional
        Mean score over the folds and its standard error.
    chosen : float, optional
        The radius that was chosen.

    Examples
    --------
    >>> from spdmetric import LogEuclideanMetricCV, RadiusPathDisplay
    >>> from spdmetric.datasets import make_toy
    >>> X, y, *_ = make_toy(d=4, random_state=0)
    >>> metric = LogEuclideanMetricCV(radii=(0, 2, 4), ranks=(None,), cv=3).fit(X, y)
    >>> RadiusPathDisplay.from_estimator(metric).ax_.get_xlabel()
    'radius of the ball'
    """

    radius: ArrayLike
    alignment: ArrayLike
    _: KW_ONLY
    score: ArrayLike | None = None
    score_error: ArrayLike | None = None
    chosen: float | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        radii: Sequence[float] = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0),
        **kwargs: Any,
    ) -> Self:
        """Draw the path of a fitted metric.

        Parameters
        ----------
        estimator : LogEuclideanMetricCV, LogEuclideanMetric, or what holds one
            Fitted: also a classifier, a regressor, or a pipeline.  A `LogEuclideanMetricCV` knows its path
            and scores; of a `LogEuclideanMetric`, copies with other radii are fitted to X and y.
        X, y : array-like, optional
            Matrices and labels, for a `LogEuclideanMetric` only.
        radii : sequence of float, default=(0, 1, 2, 4, 8, 16)
            Radii to fit, for a `LogEuclideanMetric` only.
        **kwargs
            Passed to `plot`.
        """
        metric, name, X = find_metric(estimator, "radius", X)
        if isinstance(metric, LogEuclideanMetricCV):
            # Candidates that differ from the chosen one in the radius alone.
            results, path, chosen = metric.cv_results_, metric.path_, metric.best_params_["radius"]
            rows = _rows_like_best(metric, "rank", "weighting", "n_neighbors", "views")
            rows.sort(key=lambda i: results["params"][i]["radius"])
            n_folds = sum(key.startswith("split") for key in results)
            score, error = results["mean_test_score"][rows], None
            if n_folds > 1:  # std_test_score divides by n; the standard error of the mean has n - 1 below it
                error = results["std_test_score"][rows] / np.sqrt(n_folds - 1)
            display = cls(path.radius, path.alignment, score=score, score_error=error, chosen=chosen)
            return display._draw(name, kwargs)
        if X is None or y is None:
            todo = "pass X and y to learn others, or draw the path of a LogEuclideanMetricCV"
            raise ValueError(f"A LogEuclideanMetric knows its own radius only: {todo}.")
        fits = [clone(metric).set_params(radius=radius).fit(X, y) for radius in sorted(radii)]
        alignment = np.array([fit.alignment_ for fit in fits])
        return cls(np.array(sorted(radii), dtype=float), alignment)._draw(name, kwargs)

    def plot(self, ax: Axes | None = None, *, score_name: str = "score in cross-validation") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        score_name : str, default="score in cross-validation"
            What the legend calls the score.
        """
        ax = self._begin(ax)
        ax.plot(self.radius, self.alignment, "-o", color=BLUE, label="alignment, all matrices")
        if self.score is not None:
            error, color = self.score_error, VERMILLION
            ax.errorbar(self.radius, self.score, error, fmt="--s", color=color, capsize=3, label=score_name)
            if np.all(np.asarray(self.score) >= 0):  # alignment has these bounds, most scores too
                ax.set_ylim(0, 1.02 * max(1.0, np.max(self.score)))
        if self.chosen is not None:
            ax.axvline(self.chosen, color=GRAY, ls=":", zorder=0, label=f"chosen: {self.chosen:g}")
        ylabel = "alignment" if self.score is None else "alignment and score"
        ax.set(xlabel="radius of the ball", ylabel=ylabel)
        ax.legend()
        return self


@dataclass(eq=False, repr=False)
class ReferenceSpectrumDisplay(Display):
    """What was learned, direction by direction.

    Parameters
    ----------
    values : array-like of shape (d,)
        Eigenvalues of the reference point G, descending.
    vectors : array-like of shape (d, d)
        Its eigenvectors, which are those of log G, one a column, in that order.
    start : array-like of shape (d,)
        Eigenvalues of the start G0, descending.
    movement : array-like of shape (d,)
        Eigenvalues of ``log(G0^{-1/2} G G0^{-1/2})``, descending: how far G moved along each
        of d directions.  The root of their sum of squares is the distance from G0.

    Examples
    --------
    >>> from spdmetric import LogEuclideanMetric, ReferenceSpectrumDisplay
    >>> from spdmetric.datasets import make_toy
    >>> X, y, *_ = make_toy(d=4, random_state=0)
    >>> metric = LogEuclideanMetric(radius=2.0).fit(X, y)
    >>> display = ReferenceSpectrumDisplay.from_estimator(metric)
    >>> round(float((display.movement**2).sum() ** 0.5), 6)
    2.0
    """

    values: ArrayLike
    vectors: ArrayLike
    start: ArrayLike
    movement: ArrayLike

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, view: str | int | None = None, **kwargs: Any
    ) -> Self:
        """Draw the spectrum of a fitted metric of full rank.

        Parameters
        ----------
        estimator : LogEuclideanMetric, LogEuclideanMetricCV, or what holds one
            Fitted, of full rank: also a classifier, a regressor, or a pipeline.
        view : str or int, optional
            Name or number of one of several views; the first by default.
        **kwargs
            Passed to `plot`.
        """
        metric, name, _ = find_metric(estimator, "reference point")
        metric, _ = find_view(metric, view)
        G = metric.reference_  # at low rank this says why there is none
        (origin,) = metric.embedding_.starts
        G0 = congruence(origin.basis, origin.center)
        values, vectors = np.linalg.eigh(G)
        moved = np.linalg.eigvalsh(logm(congruence(invsqrtm(G0), G)))
        start = np.linalg.eigvalsh(G0)
        return cls(values[::-1], vectors[:, ::-1], start[::-1], moved[::-1])._draw(name, kwargs)

    def plot(self, ax: Axes | None = None, *, kind: str = "spectrum") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"spectrum", "movement"}, default="spectrum"
            "spectrum": the eigenvalues of G and of its start; "movement": the
            log-eigenvalues of G relative to its start.
        """
        check_value("kind", kind, one_of("spectrum", "movement"))
        ax, movement = self._begin(ax), np.asarray(self.movement)
        index = np.arange(1, len(movement) + 1)
        if kind == "spectrum":
            every = -(-len(index) // 30)  # more marks would hide the lines
            ax.semilogy(index, self.start, "--s", color=GRAY, label="start", markevery=every)
            ax.semilogy(index, self.values, "-o", color=BLUE, label="learned", markevery=every)
            ax.set(xlabel="eigenvalue, largest first", ylabel="size")
            ax.legend()
        else:
            ax.bar(index, movement, color=np.where(movement > 0, BLUE, VERMILLION).tolist())
            ax.axhline(0, color="black", lw=0.8)
            ax.set(xlabel="direction", ylabel="log-eigenvalue relative to the start")
        ax.set_title(f"{kind.capitalize()} of the reference point")
        ax.locator_params("x", integer=True)
        return self


def _name(params: dict[str, Any]) -> str:
    rank = "full rank" if params["rank"] is None else f"rank {params['rank']}"
    weighting = "" if params["weighting"] is None else ", weighting"
    views = f", {params['views']} view{'s' * (params['views'] == 'all')}" if "views" in params else ""
    return f"{rank}, radius {params['radius']:g}{weighting}{views}"


def _rows_like_best(metric: LogEuclideanMetricCV, *names: str) -> list[int]:
    """Rows of the candidates that have these parameters in common with the chosen one."""
    best, candidates = metric.best_params_, metric.cv_results_["params"]
    return [i for i, row in enumerate(candidates) if all(row.get(name) == best.get(name) for name in names)]
