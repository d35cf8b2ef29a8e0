"""Image sets: each set of images of one thing becomes the covariance of its pixels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Real
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from reproduction.datasets.files import Seed, read_arrays
from reproduction.datasets.images import SUFFIXES, read_gray
from reproduction.datasets.prepared import Covariances

FILE = "image_sets.npz"


def load_image_sets(
    source: str | PathLike[str] | Sequence[ArrayLike] | np.ndarray,
    y: ArrayLike | None = None,
    *,
    ridge: float = 1e-3,
) -> Covariances:
    """Covariances of image sets, by the protocol of the literature.

    The pixels of an image are a vector, of length d; a set of images has the covariance C of these vectors,
    singular where there are fewer images than pixels, and is described by ``C + ridge * trace(C) * I``.

    Parameters
    ----------
    source : path, or sequence of arrays of shape (n_images, height, width)
        A folder that holds a folder for each class, in it one for each set, in it images of one size, in
        gray; or an ``.npz`` file, or a folder with ``image_sets.npz``, with the arrays ``images``
        (n_sets, n_images, height, width) and ``y``; or such images themselves.
    y : array-like of shape (n_sets,), optional
        Labels, where the images themselves are given.
    ridge : float, default=1e-3
        Share of the trace that is added to each variance.

    Returns
    -------
    covariances : Covariances
        Matrices of size height times width, their labels (of folders, the names of the classes), and no
        groups.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.datasets import load_image_sets
    >>> images = np.random.default_rng(0).random((6, 10, 4, 4))
    >>> load_image_sets(images, [0, 0, 1, 1, 2, 2]).X.shape
    (6, 16, 16)
    """
    if not isinstance(ridge, Real) or not 0 <= ridge < np.inf:
        raise ValueError(f"ridge={ridge!r}: expected a number >= 0, a share of the trace.")
    if isinstance(source, str | PathLike):
        named, labels = _stored(Path(source))
    else:
        named = [(f"set {k}", np.asarray(images)) for k, images in enumerate(source)]
        if y is None:
            raise ValueError("y is None: expected the label of each image set.")
        labels = np.asarray(y)
    if len(labels) != len(named) or not len(named):
        raise ValueError(f"There are {len(named)} image sets and {len(labels)} labels: expected as many.")
    X = [_covariance(images, name, named[0], float(ridge)) for name, images in named]
    return Covariances(np.stack(X), labels, None)


def _covariance(images: np.ndarray, name: str, first: tuple[str, np.ndarray], ridge: float) -> np.ndarray:
    if images.ndim != 3 or images.dtype.kind not in "fiub":
        got = f"{name} has shape {images.shape} and dtype {images.dtype}"
        raise ValueError(f"{got}: expected gray images, numbers of shape (n_images, height, width).")
    if images.shape[1:] != first[1].shape[1:]:
        sizes = " x ".join(map(str, images.shape[1:])), " x ".join(map(str, first[1].shape[1:]))
        got = f"{name} has images of {sizes[0]} pixels and {first[0]} of {sizes[1]}"
        raise ValueError(f"{got}: expected one size.")
    if len(images) < 2:
        raise ValueError(f"{name} has {len(images)} image: a covariance needs two at least.")
    pixels = images.reshape(len(images), -1).astype(np.float64)
    if not np.isfinite(pixels).all():
        raise ValueError(f"{name} contains NaN or infinity: expected finite gray levels.")
    pixels -= pixels.mean(axis=0)
    C = pixels.T @ pixels / (len(pixels) - 1)
    trace = float(np.trace(C))
    if trace == 0:
        raise ValueError(f"{name} has {len(images)} equal images: their covariance is zero.")
    return C + ridge * trace * np.eye(len(C))


Named = list[tuple[str, np.ndarray]]  # images of each set, and what sentences call it


def _stored(path: Path) -> tuple[Named, np.ndarray]:
    """Images and labels of a file, or of folders."""
    path = path / FILE if (path / FILE).is_file() else path
    if path.is_dir():
        found = list(_in_folders(path))
        return [(name, images) for name, _, images in found], np.array([label for _, label, _ in found])
    if path.suffix != ".npz":
        raise FileNotFoundError(f"{path} is not a folder, nor an .npz file: expected one with image sets.")
    arrays = read_arrays(path)
    if not {"images", "y"} <= set(arrays):
        raise ValueError(f"{path} holds {', '.join(sorted(arrays))}: expected the arrays images and y.")
    return [(f"{path}, set {k}", images) for k, images in enumerate(arrays["images"])], arrays["y"]


def _in_folders(folder: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """Name, label and images of each set."""
    sets = [(label, one) for label in _folders(folder) for one in _folders(label)]
    if not sets:
        raise FileNotFoundError(
            f"{folder} holds no image sets: expected folders CLASS/SET with images in each, or {FILE}."
        )
    for label, one in sets:
        files = sorted(file for file in one.iterdir() if file.suffix.lower() in SUFFIXES)
        pictures = [read_gray(file) for file in files]
        for file, picture in zip(files, pictures, strict=True):
            if picture.shape != pictures[0].shape:
                sizes = [" x ".join(map(str, image.shape)) for image in (picture, pictures[0])]
                got = f"{file} has {sizes[0]} pixels and {files[0]} {sizes[1]}"
                raise ValueError(f"{got}: expected one size.")
        yield str(one), label.name, np.array(pictures if pictures else np.empty((0, 0, 0)))


def _folders(folder: Path) -> list[Path]:
    return sorted(inner for inner in folder.iterdir() if inner.is_dir() and not inner.name.startswith("."))


def draw_sets(
    X: np.ndarray, y: np.ndarray, *, share: float = 0.6, random_state: Seed = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Split at random, that share of each class, rounded, to train: three sets of five.

    Parameters
    ----------
    X, y : array of shape (n_sets, d, d) and (n_sets,)
        Matrices and their classes, two of each at least.
    share : float, default=0.6
        At least one of each class is left to test, and one to train.
    random_state : int, RandomState instance or None, default=None
        Seed of the split.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
    """
    from sklearn.utils import check_random_state

    rng, train = check_random_state(random_state), np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        if len(own) < 2:
            raise ValueError(f"Class {label} has one image set: expected two at least, to train and to test.")
        train[rng.permutation(own)[: int(np.clip(round(share * len(own)), 1, len(own) - 1))]] = True
    return X[train], y[train], X[~train], y[~train]
