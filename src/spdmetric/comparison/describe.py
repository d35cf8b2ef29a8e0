"""What the matrices are like, before anything is learned from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spdmetric.comparison.baselines import FirstView
from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.validation import check_psd

FAR = 5.0  # robust standard deviations beyond which a matrix is called far


@dataclass(frozen=True)
class Description:
    """A file of matrices in numbers."""

    n: int
    d: int
    n_views: int  # matrices a sample; of several, the following speaks of the first, but for equal ones
    classes: tuple[tuple[str, int], ...]  # name and size of each
    groups: tuple[tuple[str, int], ...]  # the same; empty where there are none
    condition: np.ndarray  # (n,), infinite where singular
    ranks: np.ndarray  # (n,)
    distance: np.ndarray  # (n,), from the mean: affine-invariant, or Frobenius where singular
    far: list[int]  # indices, the farthest first
    duplicates: int  # matrices that are equal to an earlier one
    contradictory: int  # matrices that are equal to one of another class

    @property
    def definite(self) -> bool:
        """Whether all matrices have full rank."""
        return bool(self.ranks.min() == self.d)


def describe(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None) -> Description:
    """Describe positive semi-definite matrices, others being refused, with labels and groups.

    Of samples (n, views, d, d) the first matrix of each is described.
    """
    samples = check_psd(X, 1)
    X = FirstView().fit_transform(samples) if samples.ndim == 4 else samples
    values = np.linalg.eigvalsh(X)  # (n, d)
    ranks = np.sum(values > X.shape[1] * np.finfo(float).eps * values[:, -1:], axis=1)
    definite = ranks == X.shape[1]
    if definite.all():
        distance = np.linalg.norm(tangent_vectors(X, mean_riemann(X)), axis=1)
    else:
        distance = np.linalg.norm(X - X.mean(axis=0), axis=(1, 2))
    same = np.unique(samples.reshape(len(X), -1), axis=0, return_inverse=True)[1].ravel()
    kinds = np.unique(np.column_stack([same, np.unique(y, return_inverse=True)[1]]), axis=0)[:, 0]
    return Description(
        len(X),
        X.shape[1],
        samples.shape[1] if samples.ndim == 4 else 1,
        _count_sizes(y),
        () if groups is None else _count_sizes(groups),
        np.where(definite, values[:, -1] / np.where(definite, values[:, 0], 1.0), np.inf),
        ranks,
        distance,
        _find_far(distance),
        len(X) - int(same.max()) - 1,
        int(np.sum(np.bincount(kinds)[same] > 1)),
    )


def count_of(n: int, one: str) -> str:
    """``1 fold``, ``2 folds``."""
    return f"{n} {one}" + "s" * (n != 1)


def _count_sizes(labels: np.ndarray) -> tuple[tuple[str, int], ...]:
    names, counts = np.unique(labels, return_counts=True)
    return tuple((str(name), int(count)) for name, count in zip(names, counts, strict=True))


def _find_far(distance: np.ndarray) -> list[int]:
    """Indices whose distance exceeds the median by `FAR` robust standard deviations."""
    middle = np.median(distance)
    spread = 1.4826 * np.median(np.abs(distance - middle))  # the standard deviation, were they Gaussian
    order = np.argsort(-distance, kind="stable")
    return order[(distance[order] > middle + FAR * spread) & (spread > 0)].tolist()
