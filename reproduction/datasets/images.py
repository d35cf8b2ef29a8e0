"""Texture images in gray, from a folder or from inside scikit-image."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.extras import require_extra

if TYPE_CHECKING:
    from PIL.Image import Image

_FORMATS = ("PNG", "GIF", "JPEG", "TIFF", "BMP", "PPM")  # what `SUFFIXES` stand for
SUFFIXES = (".png", ".gif", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".pgm")
BUNDLED = ("brick", "grass", "gravel")

# Luma of ITU-R BT.601, what the eye makes of red, green and blue.
_LUMA = np.array([0.299, 0.587, 0.114])


def load_images(
    folder: str | Path | None = None, names: str | Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """Load texture images in gray.

    Parameters
    ----------
    folder : path, optional
        A folder of images such as ``D2.gif`` (gif, png, jpg, tif, bmp or pgm).  Without
        one, the three textures that come with scikit-image: brick, grass and gravel.
    names : str or iterable of str, optional
        File names without their ending, in either case; all images there by default.

    Returns
    -------
    images : dict of str to ndarray of shape (height, width), float64
        Gray levels as they are in the file, by the names asked for.

    Warns
    -----
    UserWarning
        When a color image is converted to gray.
    """
    files = _bundled_files() if folder is None else _image_files(Path(folder))
    where = "scikit-image" if folder is None else str(folder)
    if names is None:
        names = [same[0].stem for same in files.values()]
    wanted = [names] if isinstance(names, str) else names
    return {name: read_gray(_find(name, files, where)) for name in wanted}


def _bundled_files() -> dict[str, list[Path]]:
    """Find the images inside the installed scikit-image; nothing is downloaded."""
    what = "The textures brick, grass and gravel come with scikit-image"
    with require_extra(what, "textures", ", or give a folder of images"):
        import skimage
    folder = Path(skimage.__file__).parent / "data"
    files = {name: [folder / f"{name}.png"] for name in BUNDLED}
    missing = ", ".join(path.name for (path,) in files.values() if not path.is_file())
    if missing:
        lacks = f"This build of scikit-image comes without {missing}"
        raise FileNotFoundError(f"{lacks}: install its wheel, or give a folder of images.")
    return files


def _image_files(folder: Path) -> dict[str, list[Path]]:
    """Group the images of a folder by name, whatever its case."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder: expected one that holds images such as D2.gif.")
    files: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in SUFFIXES and path.is_file():
            files.setdefault(path.stem.casefold(), []).append(path)
    if not files:
        raise FileNotFoundError(f"{folder} holds no images: expected files ending in {', '.join(SUFFIXES)}.")
    return files


def _find(name: str, files: dict[str, list[Path]], where: str) -> Path:
    found = files.get(name.casefold(), [])
    if not found:
        there = ", ".join(same[0].stem for same in files.values())
        raise FileNotFoundError(f"There is no image {name!r} in {where}: there are {there}.")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise ValueError(f"{name!r} can be any of {names} in {where}: keep one of them.")
    return found[0]


def read_gray(path: Path) -> np.ndarray:
    """Gray levels of an image file, or why it cannot be read."""
    with require_extra("Reading images needs Pillow", "textures"):
        from PIL import Image
    try:
        with Image.open(path, formats=_FORMATS) as picture:  # no others: Pillow can start programs for some
            frames = getattr(picture, "n_frames", 1)
            picture.load()
    except Exception as error:  # each decoder of Pillow has its own errors for a broken file
        why = f"{path} cannot be read as an image ({error}): it is damaged or not what its ending says"
        raise ValueError(f"{why}; fetch it again, or convert it to PNG.") from error
    if frames > 1:
        raise ValueError(f"{path} holds {frames} pictures: expected one; save the one you want on its own.")
    return _gray(picture, path)


def _gray(picture: Image, path: Path) -> np.ndarray:
    """Gray levels of a picture of any mode; the same numbers when it is gray in disguise."""
    if picture.mode in ("1", "L", "I", "F") or picture.mode.startswith("I;16"):
        return np.asarray(picture, dtype=np.float64)
    pixels = np.asarray(picture.convert("RGBA"), dtype=np.float64)
    color, alpha = pixels[..., :3], pixels[..., 3]
    if (alpha < 255).any():
        raise ValueError(f"{path} has transparent pixels: expected an opaque image; save it on a background.")
    if (color == color[..., :1]).all():
        return color[..., 0]
    what = "it was converted to gray (0.299 red + 0.587 green + 0.114 blue)"
    warnings.warn(f"{path} is in color: {what}.", UserWarning, stacklevel=2)
    return color @ _LUMA


def check_image(image: ArrayLike, name: str, size: int) -> np.ndarray:
    """Return a gray image in float64, or say why patches cannot be cut from it."""
    image = np.asarray(image)
    if image.ndim != 2 or image.dtype.kind not in "fiub":
        got = f"{name} has shape {image.shape} and dtype {image.dtype}"
        raise ValueError(f"{got}: expected a gray image, real numbers of shape (height, width).")
    height, width = image.shape
    if height < size or width < 4 * size:
        expected = f"at least {size} and {4 * size}, one patch high and four wide, two for each half"
        raise ValueError(f"{name} is {height} pixels high and {width} wide: expected {expected}.")
    image = image.astype(np.float64)
    if not np.isfinite(image).all():
        raise ValueError(f"{name} contains NaN or infinity: expected finite gray levels.")
    check_varied(image, name)
    return image


def check_varied(image: np.ndarray, name: str) -> None:
    """Refuse an image without a texture."""
    if image.min() == image.max():
        raise ValueError(f"{name} is constant (every pixel is {image[0, 0]:g}): there is no texture in it.")
