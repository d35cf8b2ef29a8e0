"""The texture sets of the paper: covariances of Gabor responses over patches of an image.

Training patches come from the left half of an image, test patches from the right.  A bank of
Gabor filters, 4 angles by 2 scales, turns each pixel into 8 numbers, and a patch into their
8 x 8 covariance.  [Yger2015]_ prints neither the scales, nor what is kept of the complex response,
nor whether gray levels are standardized, nor whether the filters see more than the patch:
here is one choice; ``benchmarks/texture_sensitivity.py`` compares the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import fft2, ifft2
from sklearn.utils import check_random_state

from reproduction.datasets.eeg import sample_covariances
from reproduction.datasets.files import Seed
from reproduction.datasets.images import check_image, check_varied
from spdmetric.extras import require_extra
from spdmetric.validation import COUNT, check_value, one_of

SIZE = 16  # height and width of the patches
FREQUENCIES, N_ANGLES = (0.1, 0.3), 4
N_FILTERS = len(FREQUENCIES) * N_ANGLES
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "magnitude": np.abs,
    "real": np.real,
    "energy": lambda response: np.abs(response) ** 2,
}

# ---------------------------------------------------------------------------
# From pixels to covariances


def gabor_responses(
    image: ArrayLike,
    *,
    frequencies: Sequence[float] = FREQUENCIES,
    n_angles: int = N_ANGLES,
    kind: str = "magnitude",
) -> np.ndarray:
    """Filter an image with a bank of Gabor filters.

    Parameters
    ----------
    image : array-like of shape (..., height, width)
        Gray levels.  The filters let some of the mean through.
    frequencies : sequence of float, default=(0.1, 0.3)
        Frequencies in cycles per pixel, in (0, 0.5]; the filters are one octave wide.
    n_angles : int, default=4
        Number of angles, evenly spread over half a turn from 0.
    kind : {"magnitude", "real", "energy"}, default="magnitude"
        What to keep of the complex response; "energy" is the magnitude squared.

    Returns
    -------
    responses : ndarray of shape (n_filters, ..., height, width)
        Frequency by frequency, and angle by angle within.

    Notes
    -----
    At the border the image is mirrored about its edge, ``d c b a | a b c d | d c b a``.  Filtering is
    a circular convolution over twice the image with the kernel wrapped around it: exact for
    kernels of any width, even wider than the image.
    """
    image = np.asarray(image, dtype=np.float64)
    if image.ndim < 2:
        raise ValueError(f"image has shape {image.shape}: expected (..., height, width).")
    kernels = _gabor_kernels(frequencies, n_angles)
    check_value("kind", kind, one_of(*KINDS))
    height, width = image.shape[-2:]
    period = np.concatenate([image, image[..., ::-1, :]], axis=-2)
    period = np.concatenate([period, period[..., ::-1]], axis=-1)  # (..., 2 height, 2 width)
    waves = fft2(period)
    responses = np.empty((len(kernels), *image.shape))
    for response, kernel in zip(responses, kernels, strict=True):
        transfer = fft2(_wrapped(kernel, (2 * height, 2 * width)))
        response[...] = KINDS[kind](ifft2(waves * transfer)[..., :height, :width])
    return responses


def _gabor_kernels(frequencies: Sequence[float], n_angles: int) -> list[np.ndarray]:
    frequencies = np.atleast_1d(np.asarray(frequencies, dtype=np.float64)).tolist()
    if not frequencies or not all(0 < frequency <= 0.5 for frequency in frequencies):
        what = "numbers in (0, 0.5], in cycles per pixel; 0.5 is the finest that pixels can show"
        raise ValueError(f"frequencies={tuple(frequencies)}: expected {what}.")
    check_value("n_angles", n_angles, COUNT)
    with require_extra("Gabor filters need scikit-image", "textures"):
        from skimage.filters import gabor_kernel
    angles = np.pi * np.arange(n_angles) / n_angles
    return [gabor_kernel(frequency, theta=angle) for frequency in frequencies for angle in angles]


def _wrapped(kernel: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Lay a kernel around a torus, its center at the origin; what overlaps adds up."""
    places = [(np.arange(k) - k // 2) % n for k, n in zip(kernel.shape, shape, strict=True)]
    torus = np.zeros(shape, dtype=kernel.dtype)
    np.add.at(torus, np.ix_(*places), kernel)
    return torus


def patch_covariances(responses: ArrayLike, corners: ArrayLike, size: int = SIZE) -> np.ndarray:
    """Covariances of filter responses over the pixels of square patches.

    Parameters
    ----------
    responses : array-like of shape (n_filters, height, width)
        Filtered image, see `gabor_responses`.
    corners : array-like of shape (n, 2), int
        Row and column of the top left pixel of each patch.
    size : int, default=16
        Height and width of the patches.

    Returns
    -------
    X : ndarray of shape (n, n_filters, n_filters)
        Covariances with divisor ``size ** 2 - 1``.
    """
    responses, corners = np.asarray(responses, dtype=np.float64), np.asarray(corners)
    if responses.ndim != 3:
        raise ValueError(f"responses has shape {responses.shape}: expected (n_filters, height, width).")
    if corners.ndim != 2 or corners.shape[1] != 2 or corners.dtype.kind not in "iu":
        got = f"shape {corners.shape} and dtype {corners.dtype}"
        raise ValueError(f"corners has {got}: expected whole numbers of shape (n, 2), rows and columns.")
    last = np.array(responses.shape[1:]) - size
    outside = np.flatnonzero(((corners < 0) | (corners > last)).any(axis=1))
    if len(outside):
        bad = f"corners[{outside[0]}] = {tuple(corners[outside[0]].tolist())}"
        expected = f"rows from 0 to {last[0]} and columns from 0 to {last[1]}"
        raise ValueError(f"{bad} puts a {size} x {size} patch outside: expected {expected}.")
    windows = np.lib.stride_tricks.sliding_window_view(responses, (size, size), axis=(1, 2))
    patches = windows[:, corners[:, 0], corners[:, 1]]  # (n_filters, n, size, size)
    return sample_covariances(patches.reshape(*patches.shape[:2], -1).transpose(1, 0, 2))


# ---------------------------------------------------------------------------
# The data set


class Texture:
    """One image whose halves are standardized and filtered, from which patches can be drawn at will.

    Parameters
    ----------
    image : array-like of shape (height, width)
        Gray image, at least one patch, of 16 pixels, high and four wide.
    name : str, default="image"
        What the sentences call the image.
    """

    def __init__(self, image: ArrayLike, *, name: str = "image"):
        self.name = name
        image = check_image(image, name, SIZE)
        middle = image.shape[1] // 2  # of an odd number of columns the right half has one more
        halves = {"left": image[:, :middle], "right": image[:, middle:]}
        self.halves = {
            half: gabor_responses(_standardized(part, f"The {half} half of {name}"))
            for half, part in halves.items()
        }

    def draw(self, half: str, n: int, *, random_state: Seed = None) -> np.ndarray:
        """Draw different patches from one half, every position equally likely.

        Parameters
        ----------
        half : {"left", "right"}
            For training, or for test.
        n : int
            Number of patches; they may overlap.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw.

        Returns
        -------
        X : ndarray of shape (n, n_filters, n_filters)
            SPD covariances.
        """
        check_value("half", half, one_of(*self.halves))
        corners = self.positions(half, n, random_state)
        X = patch_covariances(self.halves[half], corners, SIZE)
        singular = _singular(X, np.mean(self.halves[half] ** 2))
        if singular.any():
            row, column = corners[np.argmax(singular)]
            raise ValueError(
                f"The patch at row {row} and column {column} of the {half} half of {self.name} gives a "
                f"covariance that is not positive definite, and so do {singular.sum()} of {n} patches: the "
                "image is flat there, or too regular for these filters; use another image."
            )
        return X

    def positions(self, half: str, n: int, random_state: Seed = None) -> np.ndarray:
        """Draw the places (n, 2) of different patches in one half."""
        rows, columns = (length - SIZE + 1 for length in self.halves[half].shape[-2:])
        if not 1 <= n <= rows * columns:
            got = f"{n} patches were asked of the {half} half of {self.name}"
            raise ValueError(f"{got}: expected 1 to {rows * columns}, the number of positions.")
        places = check_random_state(random_state).choice(rows * columns, size=n, replace=False)
        return np.stack(np.divmod(places, columns), axis=1)


def _standardized(image: np.ndarray, name: str) -> np.ndarray:
    """Mean 0 and standard deviation 1, so that textures are not told apart by their contrast."""
    check_varied(image, name)
    return (image - image.mean()) / image.std()


def _singular(X: np.ndarray, power: float) -> np.ndarray:
    """Tell which covariances are not positive definite beyond rounding.

    Where an image is flat, responses are rounding errors of the Fourier transform whose covariance is
    well conditioned: hence the second bound, against the mean square of the filtered image.
    """
    eps = np.finfo(float).eps
    values = np.linalg.eigvalsh(X)
    return values[:, 0] <= np.maximum(X.shape[-1] * eps * values[:, -1], (1000 * eps) ** 2 * power)


class TexturePair(NamedTuple):
    """Two textures to tell apart.  Their images are filtered once, for any number of draws.

    Examples
    --------
    >>> from reproduction.datasets import TexturePair, load_images
    >>> images = load_images()
    >>> pair = TexturePair.of((images["brick"], images["gravel"]))
    >>> draws = [pair.draw(random_state=seed) for seed in range(3)]
    >>> X_train, y_train, X_test, y_test = draws[0]
    >>> X_train.shape, X_test.shape
    ((50, 8, 8), (300, 8, 8))
    """

    first: Texture
    second: Texture

    @classmethod
    def of(cls, images: Sequence[ArrayLike]) -> TexturePair:
        """Filter a pair of images."""
        if len(images) != 2:
            raise ValueError(f"Got {len(images)} images: expected a pair, of class 0 and of class 1.")
        return cls(*(Texture(image, name=f"images[{i}]") for i, image in enumerate(images)))

    def draw(
        self, n_train: int = 50, n_test: int = 300, *, random_state: Seed = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Draw a training and a test set, see `make_textures`."""
        for name, n in (("n_train", n_train), ("n_test", n_test)):
            if not isinstance(n, Integral) or n < 2 or n % 2:
                raise ValueError(f"{name}={n}: expected an even number >= 2, half of it for each class.")
        rng = check_random_state(random_state)
        return (*self._part("left", n_train, rng), *self._part("right", n_test, rng))

    def _part(self, half: str, n: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
        X = [texture.draw(half, n // 2, random_state=rng) for texture in self]
        return np.concatenate(X), np.repeat([0, 1], n // 2)


def make_textures(
    images: Sequence[ArrayLike],
    n_train: int = 50,
    n_test: int = 300,
    *,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make one draw of a texture set of [Yger2015]_, training and test part.

    For several draws from the same images use `TexturePair`, which filters them once.

    Parameters
    ----------
    images : pair of array-like of shape (height, width)
        Gray images, see `load_images`, of the classes 0 and 1.
    n_train, n_test : int, default=50 and 300
        Numbers of patches, 16 x 16 pixels, half of them of each texture.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        Covariances of shape (n, 8, 8), and labels 0 and 1.
    """
    return TexturePair.of(images).draw(n_train, n_test, random_state=random_state)
