"""The figures of [Yger2015]_, computed.

Each has a module with two parts: ``compute`` gives arrays, ``draw`` turns them into a
matplotlib figure and leaves matplotlib's settings as they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.paper.figures import ascent, cone, deformation, style, tangent, textures, whitening

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Images = Mapping[str, np.ndarray]


def _cone(images: Images | None = None, seed: int = 0) -> Figure:
    return cone.draw(cone.compute())


def _tangent(images: Images | None = None, seed: int = 0) -> Figure:
    return tangent.draw(tangent.compute())


def _ascent(images: Images | None = None, seed: int = 0) -> Figure:
    return ascent.draw(ascent.compute(seed))


def _deformation(images: Images | None = None, seed: int = 0) -> Figure:
    return deformation.draw(deformation.compute())


def _textures(images: Images | None = None, seed: int = 0) -> Figure:
    if images is None:
        from spdmetric.datasets import load_images

        images = load_images()
    return textures.draw(textures.compute(images))


def _whitening(images: Images | None = None, seed: int = 0) -> Figure:
    return whitening.draw(whitening.compute(seed))


FIGURES: dict[str, Callable[..., Figure]] = {
    "cone": _cone,
    "tangent": _tangent,
    "ascent": _ascent,
    "deformation": _deformation,
    "textures": _textures,
    "whitening": _whitening,
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
    """Write figures as ``NAME.png`` (300 dpi) and ``NAME.pdf``.

    A file appears under its name only when it is complete.

    Parameters
    ----------
    folder : path
        Where to write; made if it does not exist.
    names : iterable of str, optional
        Names of `FIGURES`; all of them by default.
    images : mapping of str to ndarray of shape (height, width), optional
        Textures to show; those of `spdmetric.datasets.load_images` by default.
    seed : int, default=0
        Seed of the figures that draw data.
    progress : callable, optional
        Called with the name of each figure once it is written.

    Returns
    -------
    list of Path
        The files written.
    """
    chosen = _known(FIGURES if names is None else names)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in chosen:
        figure = FIGURES[name](images=images, seed=seed)
        written += [style.save(figure, folder / f"{name}.{kind}") for kind in ("png", "pdf")]
        if progress is not None:
            progress(name)
    return written


def _known(names: Iterable[str]) -> list[str]:
    chosen = list(names)
    for name in chosen:
        if name not in FIGURES:
            raise ValueError(f"Unknown figure {name!r}; expected one of {', '.join(FIGURES)}.")
    return chosen
