"""What a choice was made among, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.estimators import LogEuclideanClassifier, LogEuclideanMetricCV
from spdmetric.plots.axes import Display, axes_for, check_metric
from spdmetric.plots.style import BLUE, GRAY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ChoiceDisplay(Display):
    """Gain of every candidate over the usual one in cross-validation, with its standard error.

    It is recommended to use `from_estimator`.

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
    def from_estimator(
        cls, estimator: LogEuclideanMetricCV | LogEuclideanClassifier, *, ax: Axes | None = None
    ) -> Self:
        """Draw the choice of a fitted estimator, a line for each metric with the head that was chosen.

        Parameters
        ----------
        estimator : LogEuclideanMetricCV or LogEuclideanClassifier
            Fitted.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        metric = getattr(estimator, "metric_", estimator)
        check_metric(metric, "choice")
        if not isinstance(metric, LogEuclideanMetricCV):
            raise TypeError("A LogEuclideanMetric chooses nothing: expected a LogEuclideanMetricCV.")
        results, best = metric.cv_results_, metric.best_params_
        rows = [i for i, row in enumerate(results["params"]) if row["n_neighbors"] == best["n_neighbors"]]
        return cls(
            [_name(results["params"][i]) for i in rows],
            results["mean_gain"][rows],
            results["gain_error"][rows],
            chosen=rows.index(metric.best_index_),
        ).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        self.ax_, self.figure_ = axes_for(ax)
        places = np.arange(len(self.names))
        for k, (gain, error) in enumerate(zip(np.asarray(self.gain), np.asarray(self.error), strict=True)):
            color = VERMILLION if k == self.chosen else BLUE
            self.ax_.errorbar(gain, k, xerr=error, fmt="o", color=color, capsize=3)
        self.ax_.axvline(0, color=GRAY, ls=":", zorder=0)
        self.ax_.set_yticks(places, self.names)
        self.ax_.get_yticklabels()[self.chosen].set_color(VERMILLION)
        self.ax_.invert_yaxis()
        self.ax_.set(xlabel="gain over the usual candidate, ± one standard error")
        return self


def _name(params: dict[str, Any]) -> str:
    rank = "full rank" if params["rank"] is None else f"rank {params['rank']}"
    weighting = "" if params["weighting"] is None else ", weighting"
    return f"{rank}, radius {params['radius']:g}{weighting}"
