"""Alignment from mini-batches: moments that run along with the point.

Alignment is a ratio of moments, so that of a mini-batch is biased, and so is its gradient.  Given the
moments, though, the gradient is a plain sum over matrices.  Here the moments are those of the last few
mini-batches, and only the sum is that of one: the gradient of a composition [Wang2017]_.

Two things would spoil moments taken while W moves.  The frame of a factor may turn and jump, so features are
turned to that of the symmetric factor, which moves as smoothly as the point.  And all features shift
together, so they are taken relative to the image of the center, ``log(W W')``: that changes no alignment, and
takes most of the noise out of the gradient.  Derivations: ``docs/math.md``, "Stochastic learning".
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np

from spdmetric.linalg.batch import Factor, Views, make_stack, map_views, view_columns
from spdmetric.linalg.hermitian import fill_matrices, list_entries
from spdmetric.linalg.symmetric import Moments, adjoint, compute_cotangents, compute_moments, lazy
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.alignment import Misalignment, scale_moments, traceless
from spdmetric.objectives.data import Data, Rows, row_chunks
from spdmetric.objectives.weighting import FeatureRidge, Weighting, weigh_directions

# How much moments count when the next batch comes.  They are those of some four batches then:
# fewer would be noisy, and more would lag behind the point.
_KEEP = 0.75


class RunningMisalignment(Misalignment):
    """``1 - alignment`` of matrices, whitened by the center, that are looked at a mini-batch at a time.

    Kernels are chosen by ``work``, the matrices of all batches.
    """

    def __init__(self, data: Data, *, work: int | None = None):
        super().__init__(data)
        self.n, self.work = data.shape[0], work or data.shape[0]
        self.Y, self.weight = data.target.regressors, data.target.weight[:, None]

    def moments(self, point: FactorPoint) -> Moments:
        """Moments of all rows, as samples have them."""
        chunks = row_chunks(self.data.shape)
        return reduce(Moments.merge, (self.sample(rows, point).memory for rows in chunks))

    def sample(self, rows: Rows, point: FactorPoint, memory: Moments | None = None) -> Sample:
        """Evaluate some rows, with the moments remembered of others; without any, with their own."""
        return Sample(self, rows, point, memory)


class Sample:
    """A mini-batch at a point.

    ``memory`` is what the next sample should remember.  Value and gradient are those of the moments
    remembered *before*, of other matrices: with its own among them, a batch would overrate its own noise.
    """

    def __init__(self, batches: RunningMisalignment, rows: Rows, point: FactorPoint, memory: Moments | None):
        # The last matrix is the center, which features are relative to.
        X = map_views(lambda X: np.concatenate([X, np.eye(X.shape[1])[None]]), batches.data.X[rows])
        self.point, self._decomposition = point, make_stack(X, batches.work).decompose(point.factor)
        self._Y, self._weight = batches.Y[rows], batches.weight[rows]
        features = self._decomposition.features
        with np.errstate(invalid="ignore"):  # of what has left float64, as the error below says
            self._features = _turned(point.frame, features[:-1] - features[-1])
        if not np.isfinite(self._features).all():
            raise ValueError(
                "At this distance from its start the reference point is too close to singular to compare "
                "these matrices in float64: learn with a smaller radius."
            )
        own = compute_moments(self._features, self._Y, self._weight)
        self.memory = own if memory is None else scale_moments(memory, _KEEP, _KEEP, _KEEP).merge(own)
        self._own, self._given = _averages(own), _averages(own if memory is None else memory)
        self._target_norm = batches.data.target.norm_about(self._given.target_mean)

    @lazy
    def value(self) -> float:
        """Estimate of the misalignment, exact without a memory; 1 as long as there is a single class."""
        own, given = self._own, self._given
        scale = np.sqrt(np.vdot(own.C, given.C)) * self._target_norm
        return 1.0 - float(np.clip(np.vdot(own.A, given.A) / scale, 0, 1)) if scale > 0 else 1.0

    @lazy
    def gradient(self) -> np.ndarray:
        """Estimate of the gradient, in the coordinates of the manifold."""
        if self.point.low_rank:  # from the derivative in the entries of the factor
            return self.point.gradient(self._decomposition.pull_factor(self._cotangent))
        return self.point.gradient(map_views(traceless, self._decomposition.pull(self._cotangent)))

    @lazy
    def _cotangent(self) -> np.ndarray:
        """Derivative of the misalignment in the features of the batch and of the center, (n + 1, p)."""
        given = self._given
        C = np.asarray(given.C)
        C_square = float(np.vdot(C, C))
        if C_square == 0 or self._target_norm == 0:
            return np.zeros_like(self._decomposition.features)
        scale = -2 / (np.sqrt(C_square) * self._target_norm * self._weight.sum())
        ratio = float(np.vdot(given.A, given.A)) / C_square
        Y, weight = self._Y - given.target_mean, scale * self._weight
        M = compute_cotangents(self._features, given.mean, Y, weight, -ratio * C, given.A)
        M = _turned(map_views(adjoint, self.point.frame), M)
        return np.concatenate([M, -M.sum(axis=0, keepdims=True)])


class Past(NamedTuple):
    """What the weighting needs to know of matrices that are gone, as far as it is still true at a point."""

    point: FactorPoint
    moments: Moments  # of features as samples have them
    weight_squares: float  # sum of the squared weights that the moments are of
    total: float  # weight of all matrices that ever came

    @classmethod
    def from_batch(cls, batch: RunningMisalignment, point: FactorPoint) -> Past:
        """Of one batch."""
        w = batch.data.target.weight
        return cls(point, batch.moments(point), float(np.vdot(w, w)), float(w.sum()))

    def then(self, batch: Past) -> Past:
        """Both, at the point of the later batch; the first count less once the point has moved.

        They count in proportion to what had come before them; those at the center, a long step away, not at
        all.
        """
        total, kept = self.total + batch.total, 1.0
        if not np.array_equal(self.point.S, batch.point.S):
            if not self.point.S.any():
                return batch._replace(total=total)
            kept = self.total / total
        moments = scale_moments(self.moments, kept, kept, kept).merge(batch.moments)
        return Past(batch.point, moments, kept**2 * self.weight_squares + batch.weight_squares, total)

    def weighting(self) -> Weighting | None:
        """The weighting in the frame of the factor; None as long as nothing tells classes apart."""
        moments = self.moments
        came = moments.target_mean > 0
        if np.count_nonzero(came) < 2:
            return None
        q, n = moments.target_mean[came], moments.weight**2 / self.weight_squares
        scale = self.total / moments.weight  # the weighting has the unit of all, as that of `fit`
        C, A = scale * np.asarray(moments.C), scale * moments.A[:, came]
        squares = self.total * (np.diag(q) - np.outer(q, q))
        of_all = moments._replace(weight=self.total, A=A, C=C)
        ridge = FeatureRidge.from_moments(of_all, squares, n / q.size, learned=True)
        weighting = weigh_directions(ridge, ridge.estimated_errors(n))
        directions = _turned(map_views(adjoint, self.point.frame), weighting.directions.T).T
        return weighting._replace(directions=directions) if directions.size else None


def _averages(moments: Moments) -> Moments:
    """The same of matrices whose weights add up to 1."""
    s = moments.weight
    return moments._replace(weight=1.0, A=moments.A / s, C=moments.C / s)


def _turned(Q: Factor, vectors: np.ndarray) -> np.ndarray:
    """Vectors of the matrices ``Q L Q'``."""
    if isinstance(Q, Views):
        parts = zip(Q.views, view_columns(Q.views), strict=True)
        return np.concatenate([_turned(of_view, vectors[:, columns]) for of_view, columns in parts], axis=1)
    return list_entries(Q @ fill_matrices(vectors, Q) @ Q.conj().T)
