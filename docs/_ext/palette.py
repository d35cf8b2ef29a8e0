"""One palette for all pictures of the gallery."""

from __future__ import annotations


def reset(_: object, __: str) -> None:
    """Give the lines and bars of an example the colors of `spdmetric.plots.style`."""
    import matplotlib

    from spdmetric.plots.style import CLASS_LOOKS

    matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=[color for color, _ in CLASS_LOOKS])
