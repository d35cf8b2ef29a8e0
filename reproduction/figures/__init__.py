"""The figures of [Yger2015]_, computed.

Each has a module with two parts: ``compute`` gives arrays, ``draw`` turns them into a new
matplotlib figure, or draws in a given one, and leaves matplotlib's settings as they were; of
textures, images are drawn as they are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from reproduction import style
from reproduction.datasets import load_images
from reproduction.figures import ascent, cone, deformation, tangent, textures, whitening

Images = Mapping[str, np.ndarray]


FIGURES: dict[str, Callable[..., style.Figure]] = {
    "cone": lambda images=None, seed=0: cone.draw(cone.compute()),
    "tangent": lambda images=None, seed=0: tangent.draw(tangent.compute()),
    "ascent": lambda images=None, seed=0: ascent.draw(ascent.compute(seed)),
    "deformation": lambda images=None, seed=0: deformation.draw(deformation.compute()),
    "textures": lambda images=None, seed=0: textures.draw(images or load_images()),
    "whitening": lambda images=None, seed=0: whitening.draw(whitening.compute(seed)),
}
"""Figures by name: functions of ``images`` and ``seed``, of which each takes what it needs."""


def save_figures(
    folder: str | os.PathLike[str],
    names: Iterable[str] | None = None,
    *,
    images: Images | None = None,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Write figures as ``NAME.png`` (300 dpi) and ``NAME.pdf``, and return their paths.

    ``names`` are those of `FIGURES`, by default all; ``images`` the textures to show, by default those of
    `reproduction.datasets.load_images`; ``progress`` is called with each name once it is written.
    """
    chosen = list(FIGURES if names is None else names)
    unknown = [name for name in chosen if name not in FIGURES]
    if unknown:
        raise ValueError(f"Unknown figure {unknown[0]!r}; expected one of {', '.join(FIGURES)}.")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in chosen:
        figure = FIGURES[name](images, seed)
        written += [style.save(figure, folder / f"{name}.{kind}") for kind in ("png", "pdf")]
        if progress is not None:
            progress(name)
    return written
