"""Pictures of metrics, in scikit-learn's manner: ``SomethingDisplay.from_estimator(...)``.

A display holds what it shows as plain arrays, draws itself with ``plot(ax=...)``, and keeps
the axes in ``ax_`` and their figure in ``figure_``.  Matplotlib is imported when something is
drawn, MNE when it is a map of the head.
"""

from spdmetric.plots.learned import ChoiceDisplay, RadiusPathDisplay, ReferenceSpectrumDisplay
from spdmetric.plots.patterns import PatternsDisplay
from spdmetric.plots.vectors import EmbeddingDisplay, PairDistanceDisplay

__all__ = [
    "ChoiceDisplay",
    "EmbeddingDisplay",
    "PairDistanceDisplay",
    "PatternsDisplay",
    "RadiusPathDisplay",
    "ReferenceSpectrumDisplay",
]
