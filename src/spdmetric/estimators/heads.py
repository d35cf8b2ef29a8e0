"""Heads: what turns the vectors of a metric into probabilities of classes, or into regression targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.spatial import cKDTree
from scipy.special import chdtrc, softmax

from spdmetric.objectives.data import RegressionTarget, Target
from spdmetric.objectives.weighting import discriminant_weighting

_TINY = float(np.finfo(np.float64).tiny)

# Votes that every class has before the neighbors vote, so that no probability is zero.
_PRIOR_VOTES = 0.5
_PAIRS_AT_A_TIME = 1_000_000
# Vectors of so few entries, and so many pairs of them, are searched by a tree, seven times as fast for 4,000
# among 16,000.
_LARGEST_TREE, _SMALLEST_TREE = 4, 1_000_000
_BY_CHANCE = 0.01  # p-value from which classes count as equally frequent


# -- Classes ------------------------------------------------------------------


class ClassMeans(NamedTuple):
    """Normal distributions around the class means, all of one variance in every direction.

    After a discriminant weighting it is linear discriminant analysis with its penalty.  The variance is that
    of all vectors; its share within the classes, of which a weighting that fits few matrices closely leaves
    none, is left to the temperature.
    """

    means: np.ndarray  # (c, q)
    variance: float  # of all vectors, the mean over directions
    offset: np.ndarray  # (c,), log prior probability; minus infinity for a class that is absent

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Log likelihood of every class but for a constant, (n, c)."""
        center = self.means.mean(axis=0)  # taken out first, which keeps digits
        one, other = vectors - center, self.means - center
        squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1)
        return -np.maximum(squares - 2 * one @ other.T, 0.0) / (2 * self.variance)


def order_classes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes in the order in which they come, absent ones last, (c,): ties hang on no names."""
    first = np.full(n_classes, len(codes))
    np.minimum.at(first, codes, np.arange(len(codes)))
    return np.argsort(first, kind="stable")


def fit_temperature(evidence: np.ndarray, offset: np.ndarray, codes: np.ndarray) -> float:
    """Temperature that gives labels that were left out the highest probability [Guo2017]_.

    Labels are taken to be right with probability (n + 1) / (n + 2), as in [Platt1999]_, which keeps it
    finite where all are right.  ``offset`` has a row for each matrix: folds differ.
    """
    n, c = evidence.shape
    target = np.full((n, c), 1 / ((n + 2) * (c - 1)))
    target[np.arange(n), codes] = (n + 1) / (n + 2)
    # No temperature brings back a class that is absent.
    target[np.isneginf(np.broadcast_to(offset, (n, c)))] = 0.0
    unit = float(np.std(evidence)) or 1.0

    def slope(exponent: float) -> float:
        """Of the loss, which is convex in the inverse temperature: its root is found to the last digits."""
        known = softmax(evidence * (np.exp(exponent) / unit) + offset, axis=1)
        return float(np.vdot(known * target.sum(axis=1, keepdims=True) - target, evidence))

    low, high = -8.0, 6.0
    if slope(low) >= 0:
        return unit / float(np.exp(low))
    return unit / float(np.exp(brentq(slope, low, high) if slope(high) > 0 else high))


# -- Regression targets, and neighbors -----------------------------------------


class Ridge(NamedTuple):
    """Ridge regression: directions of a weighting, least squares on them."""

    center: np.ndarray  # (p,), mean of the training vectors
    offset: np.ndarray  # (q,), mean of the targets
    slopes: np.ndarray  # (p, q)

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Targets of new vectors, (n, q)."""
        return self.offset + (vectors - self.center) @ self.slopes


class Neighbors(NamedTuple):
    """The nearest training vectors, each by its weight: votes for classes, or means of targets."""

    vectors: np.ndarray  # (n, p)
    values: np.ndarray  # (n, q), indicators of the classes, or targets
    weight: np.ndarray  # (n,), for classes of mean 1
    n_neighbors: int
    offset: np.ndarray  # (q,): of classes nothing, as the votes hold the prior; or the mean of the targets
    vote: bool

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Log shares of the votes of new vectors, or their targets, (n, q)."""
        return self.predict_by_number(vectors, [self.n_neighbors])[0]

    def predict_by_number(self, vectors: np.ndarray, numbers: Sequence[int]) -> list[np.ndarray]:
        """The same for several numbers of neighbors, from one search."""
        nearest, found = find_nearest(vectors, self.vectors, max(numbers)), []
        for near in (nearest[:, :k] for k in numbers):
            weight = self.weight[near]
            sums = np.einsum("nk,nkq->nq", weight, self.values[near])
            if self.vote:
                votes = _PRIOR_VOTES + sums
                found.append(np.log(votes / votes.sum(axis=1, keepdims=True)))
            else:
                found.append(sums / weight.sum(axis=1, keepdims=True))
        return found


# -- Fitting ------------------------------------------------------------------


def fit_head(vectors: np.ndarray, target: Target, n_neighbors: int | None = None) -> Any:
    """Fit neighbors, or where there is no number of them class means or ridge regression."""
    weight = target.weight
    if isinstance(target, RegressionTarget):
        if n_neighbors is not None:
            return Neighbors(vectors, target.values, weight, n_neighbors, target.mean, vote=False)
        Q = discriminant_weighting(vectors, target).directions
        center, root = np.average(vectors, axis=0, weights=weight), np.sqrt(weight)[:, None]
        slopes = np.linalg.lstsq(root * ((vectors - center) @ Q), root * target.Y, rcond=None)[0]
        return Ridge(center, target.mean, Q @ slopes)
    if n_neighbors is not None:
        offset = np.zeros(len(target.counts))
        return Neighbors(vectors, target.regressors, weight / weight.mean(), n_neighbors, offset, vote=True)
    share = target.mean
    total = share * weight.sum()
    means = (weight[:, None] * target.regressors).T @ vectors / np.maximum(total, _TINY)[:, None]
    weight = weight / weight.sum()
    squares = vectors - weight @ vectors
    variance = float((weight @ np.square(squares, out=squares)).mean())
    variance = variance if variance > _TINY else 1.0  # all vectors are the same, and so are the means
    # Classes are equal where chance alone would make so many matrices of equal ones as unequal: it would
    # decide where the vectors tell little, which is when few matrices are all there is.
    present = share > 0
    equal = present / np.count_nonzero(present)
    statistic = len(vectors) * np.sum((share - equal)[present] ** 2 / equal[present])  # Pearson's
    by_chance = chdtrc(np.count_nonzero(present) - 1, statistic)
    with np.errstate(divide="ignore"):
        return ClassMeans(means, variance, np.log(equal if by_chance > _BY_CHANCE else share))


# -- Distances ----------------------------------------------------------------


def find_nearest(new: np.ndarray, known: np.ndarray, k: int, *, tree: bool = True) -> np.ndarray:
    """Indices of the k nearest known vectors, nearest first, (n, k); the first of equally near ones."""
    (n, p), columns = new.shape, len(known)
    if tree and p <= _LARGEST_TREE and n * columns >= _SMALLEST_TREE and k < columns:
        # A tree does not say which of several at the same distance it gives: these are looked up.
        distances, near = cKDTree(known).query(new, k + 1)
        tied = np.flatnonzero((distances[:, 1:] == distances[:, :-1]).any(axis=1))
        found = near[:, :k]
        found[tied] = find_nearest(new[tied], known, k, tree=False)
        return found
    # Squared, and less the square of the new vector, the distances of all pairs are one product.
    center = known.mean(axis=0)  # without it digits would be lost
    left, right = np.ones((n, p + 1)), np.empty((columns, p + 1))
    np.subtract(new, center, out=left[:, :p])
    np.subtract(known, center, out=right[:, :p])
    np.einsum("ij,ij->i", right[:, :p], right[:, :p], out=right[:, p])
    left[:, :p] *= -2
    found, size = np.empty((n, k), dtype=np.intp), max(1, _PAIRS_AT_A_TIME // columns)
    # The k-th smallest of the minima of many groups of a row is no less than the k-th smallest entry, and
    # hardly more: few entries are left to sort, seven times as fast as `numpy.argpartition`.
    n_groups = max(k, columns // max(1, min(32, columns // (4 * k))))
    for first in range(0, n, size):
        far = left[first : first + size] @ right.T
        minima = far[:, : columns - columns % n_groups].reshape(len(far), -1, n_groups).min(axis=1)
        bound = np.partition(minima, k - 1, axis=1)[:, k - 1 : k]
        near = np.flatnonzero(far <= bound)
        row, column = np.divmod(near, columns)
        order = np.lexsort((far.reshape(-1)[near], row))  # stable: the first of equal ones
        starts = np.searchsorted(row, np.arange(len(far)))
        found[first : first + size] = column[order[starts[:, None] + np.arange(k)]]
    return found
