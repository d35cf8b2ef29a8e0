"""The texture sets of the paper: covariances of Gabor responses over patches of an image.

Every image is cut down the middle: training patches come from the left half, test
patches from the right.  A bank of Gabor filters, 4 angles by 2 scales, turns each
pixel into 8 numbers, and a patch into their 8 x 8 covariance.

[Yger2015]_ prints neither the two scales, nor what is kept of the complex response, nor
whether gray levels are standardized, nor whether the filters see more than the patch.
`TextureSettings` holds one choice of each; ``benchmarks/texture_sensitivity.py`` shows
what the others give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import fft2, ifft2
from sklearn.utils import check_random_state

from spdmetric.datasets.images import check_image
from spdmetric.datasets.toy import Seed, check_halves
from spdmetric.linalg.symmetric import symmetrize
from spdmetric.validation import check_choice, check_count

FILTERINGS = ("half", "image", "patch")
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
    frequencies: Sequence[float] = (0.1, 0.3),
    n_angles: int = 4,
    kind: str = "magnitude",
) -> np.ndarray:
    """Filter an image with a bank of Gabor filters.

    Parameters
    ----------
    image : array-like of shape (..., height, width)
        Gray levels.  The filters let some of the mean through, so the magnitude
        changes when a constant is added to the image.
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
    At the border the image is mirrored about its edge, ``d c b a | a b c d | d c b a``
    (SciPy's "reflect", NumPy's "symmetric").  An image so extended has twice its period,
    and filtering is a circular convolution over that period with the kernel wrapped
    around it: exact for kernels of any width, even wider than the image.
    """
    image = np.asarray(image, dtype=np.float64)
    if image.ndim < 2:
        raise ValueError(f"image has shape {image.shape}: expected (..., height, width).")
    kernels = _gabor_kernels(frequencies, n_angles)
    check_choice("kind", kind, tuple(KINDS))
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
        raise ValueError(
            f"frequencies={tuple(frequencies)}: expected numbers in (0, 0.5], in cycles per pixel; 0.5 is "
            "the finest that pixels can show."
        )
    check_count("n_angles", n_angles)
    try:
        from skimage.filters import gabor_kernel
    except ImportError as error:
        raise ImportError("Gabor filters need scikit-image: pip install 'spdmetric[textures]'.") from error
    angles = np.pi * np.arange(n_angles) / n_angles
    return [gabor_kernel(frequency, theta=angle) for frequency in frequencies for angle in angles]


def _wrapped(kernel: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Lay a kernel around a torus, its center at the origin; what overlaps adds up."""
    places = [(np.arange(k) - k // 2) % n for k, n in zip(kernel.shape, shape, strict=True)]
    torus = np.zeros(shape, dtype=kernel.dtype)
    np.add.at(torus, np.ix_(*places), kernel)
    return torus


def patch_covariances(responses: ArrayLike, corners: ArrayLike, size: int = 16) -> np.ndarray:
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
    responses = np.asarray(responses, dtype=np.float64)
    if responses.ndim != 3:
        raise ValueError(f"responses has shape {responses.shape}: expected (n_filters, height, width).")
    return _covariances(_cut(responses, corners, size))


def _cut(image: np.ndarray, corners: ArrayLike, size: int) -> np.ndarray:
    """Cut patches, (..., n, size, size), out of an image, (..., height, width)."""
    corners = np.asarray(corners)
    if corners.ndim != 2 or corners.shape[1] != 2 or corners.dtype.kind not in "iu":
        raise ValueError(
            f"corners has shape {corners.shape} and dtype {corners.dtype}: expected whole numbers of shape "
            "(n, 2), rows and columns."
        )
    last = np.array(image.shape[-2:]) - size
    outside = (corners < 0).any(axis=1) | (corners > last).any(axis=1)
    if outside.any():
        bad = int(np.argmax(outside))
        raise ValueError(
            f"corners[{bad}] = {tuple(corners[bad].tolist())} puts a {size} x {size} patch outside: "
            f"expected rows from 0 to {last[0]} and columns from 0 to {last[1]}."
        )
    windows = np.lib.stride_tricks.sliding_window_view(image, (size, size), axis=(-2, -1))
    return windows[..., corners[:, 0], corners[:, 1], :, :]


def _covariances(patches: np.ndarray) -> np.ndarray:
    """Covariances over the pixels of filtered patches, (n_filters, n, size, size)."""
    n_filters, n = patches.shape[:2]
    V = patches.reshape(n_filters, n, -1).transpose(1, 0, 2)  # (n, n_filters, n_pixels)
    V = V - V.mean(axis=-1, keepdims=True)
    return symmetrize(V @ V.transpose(0, 2, 1)) / (V.shape[-1] - 1)


# ---------------------------------------------------------------------------
# The data set


class TextureSettings(NamedTuple):
    """How an image becomes covariances; the fields are parameters of `make_textures`."""

    size: int = 16
    filtering: str = "half"
    standardize: bool = True
    frequencies: tuple[float, ...] = (0.1, 0.3)
    n_angles: int = 4
    kind: str = "magnitude"

    def checked(self) -> TextureSettings:
        """Return these settings, or say which of them is wrong."""
        check_count("size", self.size)
        check_choice("filtering", self.filtering, FILTERINGS)
        check_choice("kind", self.kind, tuple(KINDS))
        n_filters = len(_gabor_kernels(self.frequencies, self.n_angles))
        if self.size**2 <= n_filters:
            raise ValueError(
                f"size={self.size}: a patch of {self.size**2} pixels cannot give a covariance of full rank "
                f"for {n_filters} filters; expected more pixels than filters."
            )
        return self

    def responses(self, image: np.ndarray) -> np.ndarray:
        """Filter an image, or a stack of them, see `gabor_responses`."""
        return gabor_responses(image, frequencies=self.frequencies, n_angles=self.n_angles, kind=self.kind)


PAPER = TextureSettings()


class Texture:
    """One image cut in halves and filtered, from which patches can be drawn at will.

    Parameters
    ----------
    image : array-like of shape (height, width)
        Gray image, at least one patch high and four wide.
    settings : TextureSettings
        See `make_textures` for its fields.
    name : str, default="image"
        What the sentences call the image.
    """

    def __init__(self, image: ArrayLike, settings: TextureSettings = PAPER, *, name: str = "image"):
        self.settings = settings.checked()
        self.name = name
        image = check_image(image, name, settings.size)
        if settings.filtering == "image":
            halves = _halves(settings.responses(self._scale(image, "")))
        else:
            sides = zip(_halves(image), ("The left half of ", "The right half of "), strict=True)
            halves = [self._scale(half, side) for half, side in sides]
        if settings.filtering == "half":
            halves = [settings.responses(half) for half in halves]
        # Filtered, (n_filters, height, width), unless each patch is to be filtered alone.
        self._left, self._right = halves

    def draw(self, half: str, n: int, *, random_state: Seed = None) -> np.ndarray:
        """Draw patches from one half, all different, every position equally likely.

        Parameters
        ----------
        half : {"left", "right"}
            The left half is for training, the right one for test.
        n : int
            Number of patches; they may overlap.
        random_state : int, RandomState instance or None, default=None
            Seed of the draw.

        Returns
        -------
        X : ndarray of shape (n, n_filters, n_filters)
            SPD covariances.
        """
        check_choice("half", half, ("left", "right"))
        field, settings = self._left if half == "left" else self._right, self.settings
        rows, columns = (length - settings.size + 1 for length in field.shape[-2:])
        if not 1 <= n <= rows * columns:
            raise ValueError(
                f"{n} patches were asked of the {half} half of {self.name}: expected 1 to {rows * columns}, "
                "the number of positions."
            )
        places = check_random_state(random_state).choice(rows * columns, size=n, replace=False)
        corners = np.stack(np.divmod(places, columns), axis=1)
        patches = _cut(field, corners, settings.size)
        X = _covariances(settings.responses(patches) if settings.filtering == "patch" else patches)
        singular = _singular(X, np.mean(field**2))
        if singular.any():
            row, column = corners[np.argmax(singular)]
            raise ValueError(
                f"The patch at row {row} and column {column} of the {half} half of {self.name} gives a "
                f"covariance that is not positive definite, and so do {singular.sum()} of {n} patches: the "
                "image is flat there, or too regular for these filters; use another image or larger patches."
            )
        return X

    def _scale(self, image: np.ndarray, part: str) -> np.ndarray:
        if not self.settings.standardize:
            return image
        if image.min() == image.max():
            raise ValueError(
                f"{part}{self.name} is constant (every pixel is {image[0, 0]:g}): there is no texture in it."
            )
        return (image - image.mean()) / image.std()


def _singular(X: np.ndarray, power: float) -> np.ndarray:
    """Tell which covariances are not positive definite beyond rounding.

    Where an image is flat its responses are rounding errors of the Fourier transform,
    and their covariance is a well conditioned matrix of nothing: hence the second bound,
    against the mean square of the filtered image.
    """
    eps = np.finfo(float).eps
    values = np.linalg.eigvalsh(X)
    return values[:, 0] <= np.maximum(X.shape[-1] * eps * values[:, -1], (1000 * eps) ** 2 * power)


def _halves(image: np.ndarray) -> list[np.ndarray]:
    """Cut down the middle; of an odd number of columns the right half has one more."""
    middle = image.shape[-1] // 2
    return [image[..., :middle], image[..., middle:]]


class TexturePair(NamedTuple):
    """Two textures to tell apart.  Their images are filtered once, for any number of draws.

    Examples
    --------
    >>> from spdmetric.datasets import TexturePair, load_images
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
    def of(cls, images: Sequence[ArrayLike], settings: TextureSettings = PAPER) -> TexturePair:
        """Filter a pair of images."""
        if len(images) != 2:
            raise ValueError(
                f"Got {len(images)} images: expected a pair, the first is class 0, the second 1."
            )
        return cls(*(Texture(image, settings, name=f"images[{i}]") for i, image in enumerate(images)))

    def draw(
        self, n_train: int = 50, n_test: int = 300, *, random_state: Seed = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Draw a training and a test set, see `make_textures`."""
        if self.first.settings != self.second.settings:
            raise ValueError(
                f"The textures have different settings, {self.first.settings} and {self.second.settings}: "
                "their covariances cannot be compared."
            )
        check_halves(n_train, n_test)
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
    size: int = 16,
    filtering: str = "half",
    standardize: bool = True,
    frequencies: Sequence[float] = (0.1, 0.3),
    n_angles: int = 4,
    kind: str = "magnitude",
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Make one draw of a texture set of [Yger2015]_, training and test part.

    For several draws from the same images use `TexturePair`, which filters them once.

    Parameters
    ----------
    images : pair of array-like of shape (height, width)
        Gray images, see `load_images`.  Training patches come from the left half of
        each, test patches from the right half.
    n_train, n_test : int, default=50 and 300
        Numbers of patches, half of them of each texture.
    size : int, default=16
        Height and width of the patches.
    filtering : {"half", "image", "patch"}, default="half"
        What the filters see: each half apart, so that nothing crosses the middle; the
        whole image; or each patch alone.
    standardize : bool, default=True
        Bring what is filtered at a time, the half or the image, to mean 0 and standard
        deviation 1, so that textures are not told apart by their contrast; with
        ``filtering="patch"`` the half, before it is cut.  False keeps the gray levels.
    frequencies, n_angles, kind
        The bank of filters, see `gabor_responses`.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        Covariances of shape (n, n_filters, n_filters), and labels: 0 for the first
        image and 1 for the second.
    """
    bank = tuple(np.atleast_1d(np.asarray(frequencies, dtype=np.float64)).tolist())
    settings = TextureSettings(size, filtering, standardize, bank, n_angles, kind)
    return TexturePair.of(images, settings).draw(n_train, n_test, random_state=random_state)
