"""What learning does as the ball grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from spdmetric.estimators import LogEuclideanMetricCV
from spdmetric.plots.axes import Display, Metric, axes_for, check_metric
from spdmetric.plots.style import BLUE, GRAY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCORE_NAME = "score in cross-validation"
RADII = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)


@dataclass(eq=False, repr=False)
class RadiusPathDisplay(Display):
    """Alignment, and the score in cross-validation, against the radius of the ball.

    It is recommended to use `from_estimator`.

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
        estimator: Metric,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        *,
        radii: Sequence[float] = RADII,
        ax: Axes | None = None,
        score_name: str = SCORE_NAME,
    ) -> Self:
        """Draw the path of a fitted metric.

        Parameters
        ----------
        estimator : LogEuclideanMetricCV or LogEuclideanMetric
            Fitted.  The former knows its path and scores; of the latter, copies with other
            radii are fitted to X and y.
        X, y : array-like, optional
            Matrices and labels, for a `LogEuclideanMetric` only.
        radii : sequence of float, default=(0, 1, 2, 4, 8, 16)
            Radii to fit, for a `LogEuclideanMetric` only.
        ax, score_name
            See `plot`.
        """
        check_metric(estimator, "radius")
        if isinstance(estimator, LogEuclideanMetricCV):
            score, error = _scores_along(estimator)
            path, chosen = estimator.path_, estimator.best_params_["radius"]
            display = cls(path.radius, path.alignment, score=score, score_error=error, chosen=chosen)
            return display.plot(ax, score_name=score_name)
        if X is None or y is None:
            todo = "pass X and y to learn others, or draw the path of a LogEuclideanMetricCV"
            raise ValueError(f"A LogEuclideanMetric knows its own radius only: {todo}.")
        fits = [clone(estimator).set_params(radius=radius).fit(X, y) for radius in sorted(radii)]
        alignment = np.array([fit.alignment_ for fit in fits])
        return cls(np.array(sorted(radii), dtype=float), alignment).plot(ax, score_name=score_name)

    def plot(self, ax: Axes | None = None, *, score_name: str = SCORE_NAME) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        score_name : str, default="score in cross-validation"
            What the legend calls the score.
        """
        self.ax_, self.figure_ = axes_for(ax)
        ax = self.ax_
        ax.plot(self.radius, self.alignment, "-o", color=BLUE, label="alignment, all matrices")
        if self.score is not None:
            error, color = self.score_error, VERMILLION
            ax.errorbar(self.radius, self.score, error, fmt="--s", color=color, capsize=3, label=score_name)
        if self.chosen is not None:
            ax.axvline(self.chosen, color=GRAY, ls=":", zorder=0, label=f"chosen: {self.chosen:g}")
        ylabel = "alignment" if self.score is None else "alignment and score"
        ax.set(xlabel="radius of the ball", ylabel=ylabel)
        if self.score is not None and np.all(np.asarray(self.score) >= 0):
            ax.set_ylim(0, 1.02 * max(1.0, np.max(self.score)))  # alignment has these bounds, most scores too
        ax.legend()
        return self


def _scores_along(estimator: LogEuclideanMetricCV) -> tuple[np.ndarray, np.ndarray | None]:
    """Scores of the candidates that differ from the chosen one in the radius alone, and their errors."""
    results, best = estimator.cv_results_, estimator.best_params_
    n_folds = sum(name.startswith("split") for name in results)
    same = ("rank", "weighting", "n_neighbors")  # what the radius is varied at
    rows = [i for i, row in enumerate(results["params"]) if all(row[name] == best[name] for name in same)]
    rows.sort(key=lambda i: results["params"][i]["radius"])
    # std_test_score divides by n; the standard error of the mean has n - 1 below it.
    error = results["std_test_score"][rows] / np.sqrt(n_folds - 1) if n_folds > 1 else None
    return results["mean_test_score"][rows], error
