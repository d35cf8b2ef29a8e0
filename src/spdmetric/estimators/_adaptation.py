"""A new domain: with some labels its matrices join those of training, without any its mean may need care.

**Labels.**  The directions on which the classes differ most come from training; how they are weighed is
learned anew from both, from vectors without a weighting, of twice the rank of the metric.

**Label shift.**  The mean of a session in which classes have other shares than in training is off by what
that contributes.  Where classes are far enough apart, the vectors around their own mean still tell the
shares; then the session is recentered where its mean tangent vector is what such shares make it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax

from spdmetric.estimators.heads import ClassMeans
from spdmetric.geometry import matrices_at, tangent_vectors
from spdmetric.objectives.data import ClassTarget
from spdmetric.objectives.weighting import discriminant_weighting, rows_of

# All matrices of training together count as so many of the new domain.  The first is taken unless another
# predicts the labels left out in the new domain clearly better, by so many standard errors.
WORTH = (30, 10, 90, 270)
_CLEAR = 1.0
# Prior deviation of the directions of the metric, in units of that of the directions beside them.
_EMPHASIS = 2.0


class LabeledVectors(NamedTuple):
    """What a classifier keeps of its training matrices, n (m(m+1)/2 + 2) numbers for vectors of rank m."""

    vectors: np.ndarray  # (n, p), without a weighting
    codes: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    ranks: tuple[tuple[int, int], ...]  # of each view: that of the metric; of the vectors, up to twice it
    # (c, p), mean tangent vectors of the classes, about their mean by the shares; None for singular matrices
    centers: np.ndarray | None = None

    def target(self, n_classes: int) -> ClassTarget:
        """What the vectors should tell."""
        return ClassTarget.from_codes(self.codes, self.weight, n_classes)

    def join(self, own: LabeledVectors, weight: float) -> LabeledVectors:
        """Both together; an own matrix of weight 1 counts as so many of training."""
        scale = weight * self.weight.mean() / own.weight.mean()
        vectors, codes = np.concatenate([self.vectors, own.vectors]), np.concatenate([self.codes, own.codes])
        weights = np.concatenate([self.weight, scale * own.weight])
        return self._replace(vectors=vectors, codes=codes, weight=weights)


def relearn_weighting(
    training: LabeledVectors, own: LabeledVectors, weight: float | None, n_classes: int
) -> tuple[LabeledVectors, np.ndarray, float]:
    """Learn the weighting anew; a weight of None is chosen.

    Returns the vectors of both, the directions (p, q), the identity where nothing tells the classes apart,
    and the weight of each own matrix.  The penalty is that of the least error: several people give no draws
    of one distribution.
    """
    emphasis = _emphasis(training)
    pooled = training._replace(vectors=training.vectors * emphasis)
    mine = own._replace(vectors=own.vectors * emphasis)
    if weight is None:
        weights = [max(1.0, len(training.codes) / worth) for worth in WORTH]
        n = len(own.codes)
        errors = np.stack([find_left_out_errors(pooled.join(mine, w), n, n_classes) for w in weights])
        gains = errors[0] - errors
        clear = gains.mean(axis=1) > _CLEAR * gains.std(axis=1, ddof=1) / np.sqrt(n)
        clear[0] = True  # where no other is
        weight = weights[np.argmin(np.where(clear, errors.mean(axis=1), np.inf))]
    joined = pooled.join(mine, weight)
    Q = discriminant_weighting(joined.vectors, joined.target(n_classes), by_error=True).directions
    Q = emphasis[:, None] * Q if Q.shape[1] else np.eye(len(Q))
    return training.join(own, weight), Q, weight


def _emphasis(training: LabeledVectors) -> np.ndarray:
    """Scale of the entries of the vectors, (p,)."""
    scales, p = [], training.vectors.shape[1]
    complex_ = p > sum(size * (size + 1) // 2 for _, size in training.ranks)
    for m, size in training.ranks:
        scale = np.ones((size, size))
        scale[:m, :m] = _EMPHASIS
        scales.append(scale[np.triu_indices(size)])
        if complex_:
            scales.append(scale[np.triu_indices(size, 1)])  # of imaginary parts
    return np.concatenate(scales)


def find_left_out_errors(joined: LabeledVectors, n_own: int, n_classes: int) -> np.ndarray:
    """Squared error of the last matrices, each left out of the regression behind the weighting, (n_own,)."""
    target, w = joined.target(n_classes), joined.weight
    penalty = discriminant_weighting(joined.vectors, target, by_error=True).penalty
    rows = np.sqrt(w)[:, None] * (joined.vectors - w @ joined.vectors / w.sum())
    n, p = rows.shape
    if n < p:
        gram = rows @ rows.T
        hat = np.linalg.solve(gram + penalty * np.eye(n), gram[:, -n_own:]).T
    else:
        hat = rows[-n_own:] @ np.linalg.solve(rows.T @ rows + penalty * np.eye(p), rows.T)
    leverage = np.diagonal(hat[:, -n_own:]) + w[-n_own:] / w.sum()
    Y = rows_of(target)
    residual = (Y[-n_own:] - hat @ Y) / (1 - leverage)[:, None]
    return np.sum(residual**2, axis=1) / w[-n_own:]


# -- Label shift --------------------------------------------------------------

# The shares of training count as so many matrices of the session, which keeps estimates from little
# evidence near them.
_PRIOR_MATRICES = 4.0
# By how much the logarithm of the likelihood must grow before a label shift is believed.
_EVIDENCE = 6.0
_STEPS, _SETTLED = 50, 1e-9


def estimate_shares(
    vectors: np.ndarray, weight: np.ndarray, head: ClassMeans, variance: float, prior: np.ndarray
) -> np.ndarray:
    """Shares of the classes of a recentered session, (c,).

    The vectors are a mixture of normal distributions around the class means, all moved by what other shares
    than those of training, ``prior``, do to the mean: of all shares the most likely ones, if they are clearly
    more likely than those of training.
    """
    weight = weight / weight.max()

    def loss(logits: np.ndarray) -> float:
        log_share = log_softmax(np.append(logits, 0.0))
        moved = vectors + (np.exp(log_share) - prior) @ head.means
        squares = np.sum((moved[:, None, :] - head.means) ** 2, axis=2)  # (n, c)
        likelihood = weight @ logsumexp(log_share - squares / (2 * variance), axis=1)
        return -float(likelihood + _PRIOR_MATRICES * prior @ log_share)

    # A class that is rare looks much like another that is: there is a maximum of each kind.
    c = len(prior)
    starts = [prior, *(0.8 * np.eye(c) + 0.2 / c)]
    found = [minimize(loss, np.log(start[:-1] / start[-1]), method="BFGS") for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    if loss(np.log(prior[:-1] / prior[-1])) - best.fun < _EVIDENCE:
        return prior
    return np.asarray(softmax(np.append(best.x, 0.0)))


def find_shifted_mean(X: np.ndarray, weight: np.ndarray, mean: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Point at which the mean tangent vector is a given one, (p,), from a point near it.

    Steps are halved where they lead away: far apart matrices bend the way.
    """

    def miss(point: np.ndarray) -> np.ndarray:
        return weight @ tangent_vectors(X, point) / weight.sum() - target

    step, length = miss(mean), 1.0
    for _ in range(_STEPS):
        there = matrices_at(length * step[None], mean)[0]
        next_step = miss(there)
        if np.linalg.norm(next_step) < np.linalg.norm(step):
            mean, step = there, next_step
        else:
            length /= 2
        if np.linalg.norm(step) < _SETTLED:
            break
    return mean
