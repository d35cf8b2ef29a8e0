"""Order and colors of the gallery, and the examples that use a class or function on its API page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Folders of ``examples``, and in each the examples that come first; others follow by name.
SECTIONS: dict[str, tuple[str, ...]] = {
    "first_steps": ("learning", "compare", "displays", "weighting", "low_rank", "regression", "clustering"),
    "eeg": ("recordings", "topomaps", "rank_deficient"),
    "sessions": ("sessions", "domains", "imbalanced_buffer"),
    "images": ("image_sets", "grid_search"),
    "large_data": ("memmap", "stream", "dask"),
    "paper": ("cone", "tangent_plane", "deformation", "gradient_ascent", "whitening", "textures"),
}
BACKREFERENCES = "api/backreferences"


class Order:
    """Sort key of the examples of a section."""

    def __init__(self, folder: str) -> None:
        self.first = SECTIONS.get(Path(folder).name, ())

    def __call__(self, file: str) -> tuple[int, str]:
        name = Path(file).stem.removeprefix("plot_")
        return (self.first.index(name) if name in self.first else len(self.first)), name


def reset(_: object, __: str) -> None:
    """Give the lines and bars of an example the colors of `spdmetric.plots.style`."""
    import matplotlib

    from spdmetric.plots.style import CLASS_LOOKS

    matplotlib.rcParams["axes.prop_cycle"] = matplotlib.cycler(color=[color for color, _ in CLASS_LOOKS])


def list_examples(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """End the page of a class or function with the examples that use it."""
    path = Path(app.srcdir, BACKREFERENCES, "backreferences_all.json")
    known = json.loads(path.read_text()) if path.is_file() else {}
    if what in ("class", "function") and known.get(name):
        lines += ["", ".. rubric:: Gallery", "", f".. minigallery:: {name}", ""]


def setup(app: Any) -> dict[str, bool]:
    """Connect, after numpydoc and the links of ``pages``."""
    app.connect("autodoc-process-docstring", list_examples, priority=700)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
