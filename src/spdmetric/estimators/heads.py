"""Heads: what turns the vectors of a metric into probabilities of classes, or into regression targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.spatial import cKDTree
from scipy.special import chdtrc, log_softmax, softmax

from spdmetric.objectives.data import ClassTarget, RegressionTarget
from spdmetric.objectives.weighting import discriminant_weighting

_TINY = float(np.finfo(np.float64).tiny)

# Votes that every class has before the neighbors vote, so that no probability is zero.
_PRIOR_VOTES = 0.5
_PAIRS_AT_A_TIME = 1_000_000
# Vectors of so few entries, and so many pairs of them, are searched by a tree: seven times as fast
# for 4,000 vectors among 16,000.
_LARGEST_TREE, _SMALLEST_TREE = 4, 1_000_000
_BY_CHANCE = 0.01  # p-value from which classes count as equally frequent


# -- Classes ------------------------------------------------------------------


class ClassMeans(NamedTuple):
    """Normal distributions around the class means, all of one variance in every direction.

    After a discriminant weighting, whose errors are alike in every direction, it is linear discriminant
    analysis with the penalty of the weighting.  The unit of the variance is that of all vectors, and its
    share that is within the classes is left to the temperature: a weighting that fits few matrices closely
    leaves no spread within the classes of the matrices it was learned on.
    """

    means: np.ndarray  # (c, q)
    variance: float  # of all vectors, the mean over directions
    offset: np.ndarray  # (c,), log prior probability; minus infinity for a class that is absent

    @classmethod
    def from_vectors(cls, vectors: np.ndarray, target: ClassTarget) -> ClassMeans:
        weight = target.weight
        total = target.share * weight.sum()
        means = (weight[:, None] * target.uncentered).T @ vectors / np.maximum(total, _TINY)[:, None]
        share = weight / weight.sum()
        spread = share @ (vectors - share @ vectors) ** 2
        variance = float(spread.mean())  # zero where all vectors are the same, and so are the means
        variance = variance if variance > _TINY else 1.0
        with np.errstate(divide="ignore"):
            return cls(means, variance, np.log(_find_prior(target.share, len(weight))))

    def evidence(self, vectors: np.ndarray) -> np.ndarray:
        """Log likelihood of every class but for a constant, (n, c)."""
        center = self.means.mean(axis=0)  # taken out first, which keeps digits
        one, other = vectors - center, self.means - center
        squares = np.sum(one**2, axis=1)[:, None] + np.sum(other**2, axis=1)
        return -np.maximum(squares - 2 * one @ other.T, 0.0) / (2 * self.variance)


def _find_prior(share: np.ndarray, n: int) -> np.ndarray:
    """Shares of the classes, equal where chance alone would make n matrices of equal classes as unequal.

    Where the vectors tell little, which is when few matrices are all there is, unequal shares by chance would
    decide in place of them.
    """
    present = share > 0
    equal = present / np.count_nonzero(present)
    statistic = n * np.sum((share - equal)[present] ** 2 / equal[present])  # Pearson's
    by_chance = chdtrc(np.count_nonzero(present) - 1, statistic)
    return np.where(present, equal if by_chance > _BY_CHANCE else share, 0.0)


def order_classes(codes: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes in the order in which they come, absent ones last, (c,): ties hang on no names."""
    first = np.full(n_classes, len(codes))
    np.minimum.at(first, codes, np.arange(len(codes)))
    return np.argsort(first, kind="stable")


class Votes(NamedTuple):
    """Votes of the nearest training vectors, each by its weight."""

    vectors: np.ndarray  # (n, q)
    votes: np.ndarray  # (n, c), the weight of each, of mean 1, in the column of its class
    n_neighbors: int
    offset: float = 0.0  # of the evidence: the votes hold the prior

    @classmethod
    def from_vectors(cls, vectors: np.ndarray, target: ClassTarget, n_neighbors: int) -> Votes:
        weight = target.weight / target.weight.mean()
        return cls(vectors, weight[:, None] * target.uncentered, n_neighbors)

    def evidence(self, vectors: np.ndarray) -> np.ndarray:
        """Log share of the votes, (n, c)."""
        return self.evidence_by_number(vectors, [self.n_neighbors])[0]

    def evidence_by_number(self, vectors: np.ndarray, numbers: Sequence[int]) -> list[np.ndarray]:
        """The same for several numbers of neighbors, from one search."""
        nearest = find_nearest(vectors, self.vectors, max(numbers))
        votes = [_PRIOR_VOTES + self.votes[nearest[:, :k]].sum(axis=1) for k in numbers]
        return [np.log(of_k / of_k.sum(axis=1, keepdims=True)) for of_k in votes]


def log_posterior(evidence: np.ndarray, offset: np.ndarray | float, temperature: float = 1.0) -> np.ndarray:
    """Log probabilities of the classes, (n, c); a high temperature trusts the evidence less."""
    return log_softmax(evidence / temperature + offset, axis=1)


def fit_temperature(evidence: np.ndarray, offset: np.ndarray, codes: np.ndarray) -> float:
    """Temperature that gives labels that were left out the highest probability [Guo2017]_.

    Labels are taken to be right with probability (n + 1) / (n + 2), as in [Platt1999]_, which keeps it
    finite where all are right.  ``offset`` has a row for each matrix: folds differ.

    References
    ----------
    .. [Guo2017] C. Guo, G. Pleiss, Y. Sun and K. Weinberger, "On Calibration of Modern Neural Networks",
       ICML, 2017.
    .. [Platt1999] J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
       likelihood methods", Advances in Large Margin Classifiers, 1999.
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


# -- Regression targets -------------------------------------------------------


class Ridge(NamedTuple):
    """Ridge regression: directions of a weighting, least squares on them."""

    center: np.ndarray  # (p,), mean of the training vectors
    level: np.ndarray  # (q,), mean of the targets
    slopes: np.ndarray  # (p, q)

    @classmethod
    def from_vectors(cls, vectors: np.ndarray, target: RegressionTarget) -> Ridge:
        Q = discriminant_weighting(vectors, target).directions
        center, root = np.average(vectors, axis=0, weights=target.weight), np.sqrt(target.weight)[:, None]
        slopes = np.linalg.lstsq(root * ((vectors - center) @ Q), root * target.Y, rcond=None)[0]
        return cls(center, target.mean, Q @ slopes)

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Targets of new vectors, (n, q)."""
        return self.level + (vectors - self.center) @ self.slopes


class NeighborMeans(NamedTuple):
    """Means over the nearest training vectors, each by its weight."""

    vectors: np.ndarray  # (n, p)
    Y: np.ndarray  # (n, q)
    weight: np.ndarray  # (n,)
    n_neighbors: int

    @classmethod
    def from_vectors(cls, vectors: np.ndarray, target: RegressionTarget, n_neighbors: int) -> NeighborMeans:
        return cls(vectors, target.values, target.weight, n_neighbors)

    def predict(self, vectors: np.ndarray) -> np.ndarray:
        """Targets of new vectors, (n, q)."""
        return self.predict_by_number(vectors, [self.n_neighbors])[0]

    def predict_by_number(self, vectors: np.ndarray, numbers: Sequence[int]) -> list[np.ndarray]:
        """The same for several numbers of neighbors, from one search."""
        nearest, w = find_nearest(vectors, self.vectors, max(numbers)), self.weight
        parts = [nearest[:, :k] for k in numbers]
        return [np.einsum("nk,nkq->nq", w[p], self.Y[p]) / w[p].sum(axis=1, keepdims=True) for p in parts]


# -- Distances ----------------------------------------------------------------


def find_nearest(new: np.ndarray, known: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k nearest known vectors, nearest first, (n, k); the first of equally near ones."""
    few_entries, many_pairs = known.shape[1] <= _LARGEST_TREE, len(new) * len(known) >= _SMALLEST_TREE
    by_tree = few_entries and many_pairs and k < len(known)
    return _find_by_tree(new, known, k) if by_tree else _find_among_all(new, known, k)


def _find_among_all(new: np.ndarray, known: np.ndarray, k: int) -> np.ndarray:
    """By the distances of all pairs: squared, and less the square of the new vector, they are one product."""
    center = known.mean(axis=0)  # without it digits would be lost
    new, known = new - center, known - center
    left = np.column_stack([new, np.ones(len(new))])
    right = np.column_stack([-2 * known, np.sum(known**2, axis=1)]).T
    size = max(1, _PAIRS_AT_A_TIME // len(known))
    parts = [_smallest(left[first : first + size] @ right, k) for first in range(0, len(new), size)]
    return np.concatenate(parts) if parts else np.empty((0, k), dtype=np.intp)


def _smallest(rows: np.ndarray, k: int) -> np.ndarray:
    """Columns of the k smallest entries of every row, smallest first; the first of equal ones.

    Each row is cut into many groups.  The k-th smallest of their minima is no less than the k-th smallest
    entry, and hardly more: few entries are left to sort, seven times as fast as `numpy.argpartition`.
    """
    n, columns = rows.shape
    n_groups = max(k, columns // max(1, min(32, columns // (4 * k))))
    minima = rows[:, : columns - columns % n_groups].reshape(n, -1, n_groups).min(axis=1)
    bound = np.partition(minima, k - 1, axis=1)[:, k - 1 : k]
    near = np.flatnonzero(rows <= bound)
    row, column = np.divmod(near, columns)
    order = np.lexsort((rows.reshape(-1)[near], row))  # stable
    first = np.searchsorted(row, np.arange(n))
    return column[order[first[:, None] + np.arange(k)]]


def _find_by_tree(new: np.ndarray, known: np.ndarray, k: int) -> np.ndarray:
    """By a tree, which does not say which of several at the same distance it gives: these are looked up."""
    distances, near = cKDTree(known).query(new, k + 1)
    tied = np.flatnonzero((distances[:, 1:] == distances[:, :-1]).any(axis=1))
    found = near[:, :k]
    found[tied] = _find_among_all(new[tied], known, k)
    return found
