"""The eigenvalues of a reference point, beside those of its start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.linalg.symmetric import congruence, invsqrtm, logm
from spdmetric.plots.style import BLUE, GRAY, VERMILLION, Display, Metric, axes_for, check_metric
from spdmetric.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class ReferenceSpectrumDisplay(Display):
    """What was learned, direction by direction.

    It is recommended to use `from_estimator`.

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
    def from_estimator(cls, estimator: Metric, **kwargs: Any) -> Self:
        """Draw the spectrum of a fitted metric of full rank.

        Parameters
        ----------
        estimator : LogEuclideanMetric or LogEuclideanMetricCV
            Fitted, of full rank.
        **kwargs
            Passed to `plot`.
        """
        check_metric(estimator, "reference point")
        G = estimator.reference_  # at low rank this says why there is none
        G0 = congruence(estimator.embedding_.basis, estimator.embedding_.center)
        values, vectors = np.linalg.eigh(G)
        moved = np.linalg.eigvalsh(logm(congruence(invsqrtm(G0), G)))
        start = np.linalg.eigvalsh(G0)
        return cls(values[::-1], vectors[:, ::-1], start[::-1], moved[::-1]).plot(**kwargs)

    def plot(self, ax: Axes | None = None, *, kind: str = "spectrum") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"spectrum", "movement"}, default="spectrum"
            "spectrum": the eigenvalues of G and of its start; "movement": the
            log-eigenvalues of G as seen from its start.
        """
        check_choice("kind", kind, ("spectrum", "movement"))
        self.ax_, self.figure_ = axes_for(ax)
        index = np.arange(1, len(np.asarray(self.values)) + 1)
        if kind == "spectrum":
            every = -(-len(index) // 30)  # more marks would hide the lines
            self.ax_.semilogy(index, self.start, "--s", color=GRAY, label="start", markevery=every)
            self.ax_.semilogy(index, self.values, "-o", color=BLUE, label="learned", markevery=every)
            self.ax_.set(xlabel="eigenvalue, largest first", ylabel="size")
            self.ax_.legend()
        else:
            colors = np.where(np.asarray(self.movement) > 0, BLUE, VERMILLION)
            self.ax_.bar(index, np.asarray(self.movement), color=colors.tolist())
            self.ax_.axhline(0, color="black", lw=0.8)
            self.ax_.set(xlabel="direction", ylabel="log-eigenvalue seen from the start")
        self.ax_.set_title(f"{kind.capitalize()} of the reference point")
        self.ax_.locator_params("x", integer=True)
        return self
