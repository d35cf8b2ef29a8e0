"""The data of the cases, all seeded; real data through the environment variable SPDMETRIC_DATA."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.outcomes import Absent
from spdmetric.datasets import load_bci_iv_2a, make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm


class Labeled(NamedTuple):
    """Matrices and their classes as codes 0, 1."""

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


def toy(d: int, n: int, seed: int) -> Labeled:
    """One draw of the toy set of the paper."""
    X, y, *_ = make_toy(n, 2, d=d, random_state=seed)
    return _coded(X, y)


def subject9() -> Labeled:
    """Left against right hand, training session of subject 9 of BCI Competition IV 2a."""
    folder = Path(os.environ.get("SPDMETRIC_DATA", ""), "bci2a-a09")
    if "SPDMETRIC_DATA" not in os.environ or not folder.is_dir():
        raise Absent("real data absent: set SPDMETRIC_DATA to a folder with bci2a-a09/MotorImagery.mat")
    recording = load_bci_iv_2a(9, folder)
    training = recording.groups == "T"
    return _coded(recording.X[training], recording.y[training])


def whitened(data: Labeled) -> Labeled:
    """The same seen from its Riemannian mean, which becomes the identity."""
    return data._replace(X=congruence(invsqrtm(mean_riemann(data.X)), data.X))


def _coded(X: np.ndarray, y: np.ndarray) -> Labeled:
    return Labeled(X, np.unique(y, return_inverse=True)[1])
