"""The data of the cases, all seeded; real data through the environment variable SPDMETRIC_DATA."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.outcomes import Absent
from reproduction.datasets import (
    load_bci_iv_2a,
    load_cho2017,
    load_eegmmi_covariances,
    load_images,
    make_textures,
)
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm


class Labeled(NamedTuple):
    """Matrices and their classes as codes 0, 1, ..."""

    X: np.ndarray  # (n, d, d)
    codes: np.ndarray  # (n,)


def covariances(n: int, d: int, seed: int) -> Labeled:
    """Covariances of 4 d Gaussian samples, the second class with more variance on half of the channels."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    scale = np.where(np.arange(d) < d // 2, 1.0 + 0.5 * codes[:, None], 1.0)
    root = np.linspace(0.5, 2.0, d) * scale  # (n, d)
    X = np.empty((n, d, d))
    for rows in np.array_split(np.arange(n), max(1, n // 2000)):  # the samples need four times the memory
        samples = rng.standard_normal((rows.size, 4 * d, d)) * root[rows, None, :]
        X[rows] = samples.transpose(0, 2, 1) @ samples / (4 * d)
    return Labeled(X, codes)


def three_directions(n: int, d: int, seed: int, gain: float = 1.3) -> Labeled:
    """Covariances of 2 d samples; the second class is stronger, by ``gain``, along three directions."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((d, 3)))[0]
    louder = np.eye(d) + (gain - 1) * directions @ directions.T
    codes = np.arange(n) % 2
    X = np.empty((n, d, d))
    for k, code in enumerate(codes):
        samples = rng.standard_normal((2 * d, d))
        samples = samples @ louder if code else samples
        X[k] = samples.T @ samples / (2 * d)
    return Labeled(X, codes)


def connectomes(n: int, d: int, seed: int, gain: float = 1.3) -> Labeled:
    """Correlations of 150 samples with 20 latent factors, shrunk; three factors are stronger in one class."""
    rng = np.random.default_rng(seed)
    loadings = rng.standard_normal((20, d)) / np.sqrt(20)
    louder = np.where(np.arange(20) < 3, gain, 1.0)
    codes = np.arange(n) % 2
    X = np.empty((n, d, d))
    for k, code in enumerate(codes):
        factors = rng.standard_normal((150, 20)) * (louder if code else 1.0)
        samples = factors @ loadings + rng.standard_normal((150, d))
        X[k] = 0.8 * np.corrcoef(samples, rowvar=False) + 0.2 * np.eye(d)
    return Labeled(X, codes)


def toy(d: int, n: int, seed: int) -> Labeled:
    """One draw of the toy set of the paper."""
    X, y, *_ = make_toy(n, 2, d=d, random_state=seed)
    return _coded(X, y)


def real(name: str) -> Path:
    """The folder of a set of real data, or `Absent`."""
    folder = Path(os.environ.get("SPDMETRIC_DATA", ""), name)
    if "SPDMETRIC_DATA" not in os.environ or not folder.is_dir():
        raise Absent(f"real data absent: set SPDMETRIC_DATA, or give --data, to a folder that holds {name}")
    return folder


def subject9(classes: Sequence[str] = ("left_hand", "right_hand")) -> Labeled:
    """Training session of subject 9 of BCI Competition IV 2a, left against right hand by default."""
    recording = load_bci_iv_2a(9, real("bci2a-a09"), classes=classes)
    training = recording.groups == "T"
    return _coded(recording.X[training], recording.y[training])


def cho2017(subject: int) -> Labeled:
    """Left against right hand, all 200 trials of a subject of Cho et al. (2017)."""
    X, y, _ = load_cho2017(subject, real("cho2017"))
    return _coded(np.asarray(X, dtype=np.float64), y)


def eegmmi(subject: int, channels: int) -> Labeled:
    """Left against right fist, the first channels of a subject; 21 are the motor strip."""
    X, y, _ = load_eegmmi_covariances(subject, real("eegmmi"))
    return _coded(X[:, :channels, :channels], y)


def textures(first: str, second: str, n: int, seed: int) -> Labeled:
    """Patches of the left halves of two textures."""
    images = load_images(real("brodatz"), (first, second))
    X, y, *_ = make_textures(list(images.values()), n, 2, random_state=seed)
    return _coded(X, y)


def virus(seed: int) -> Labeled:
    """Three image sets of each of 15 classes, as covariances 400 x 400 of their pixels."""
    with np.load(real("virus") / "image_sets.npz") as stored:
        images, y = stored["images"], stored["y"]
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == label))[:3] for label in np.unique(y)])
    pixels = images[rows].reshape(len(rows), images.shape[1], -1).astype(np.float64)
    pixels -= pixels.mean(axis=1, keepdims=True)
    X = pixels.transpose(0, 2, 1) @ pixels / (pixels.shape[1] - 1)
    X += 1e-3 * np.trace(X, axis1=1, axis2=2)[:, None, None] * np.eye(X.shape[1])
    return _coded(X, y[rows])


def whitened(data: Labeled) -> Labeled:
    """The same seen from its Riemannian mean, which becomes the identity."""
    return data._replace(X=congruence(invsqrtm(mean_riemann(data.X)), data.X))


def _coded(X: np.ndarray, y: np.ndarray) -> Labeled:
    return Labeled(X, np.unique(y, return_inverse=True)[1])
