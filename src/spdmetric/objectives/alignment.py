"""The objective: how well tangent vectors at G are aligned with the labels.

Centered kernel-target alignment [Cortes2012]_, Eq. (5) of [Yger2015]_, written on the
tangent vectors themselves instead of their n x n Gram matrix.  With weights w_i, rows
Phi_i of centered tangent vectors and Y_i of centered targets,

    A = sum w_i Phi_i' Y_i    C = sum w_i Phi_i' Phi_i    B = sum w_i Y_i' Y_i
    f = |A|^2 / (|C| |B|)

All of these are sums over matrices, computed chunk by chunk in two passes (moments; then cotangents pulled
back), wherever the chunks are.  For fewer matrices than features the Gram form gives the same numbers, with
n^2 p operations instead of n p^2.  Solvers minimize the *misalignment* 1 - f; the sign changes here alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any

import numpy as np

from spdmetric.linalg.batch import Decomposition, Factor, Views, count_features, map_views, view_columns
from spdmetric.linalg.hermitian import fill_matrices
from spdmetric.linalg.symmetric import Moments, center, lazy
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.data import Chunk, Data
from spdmetric.objectives.weighting import (
    Errors,
    FeatureRidge,
    GramRidge,
    Weighting,
    discriminant_weighting,
    weigh_directions,
)

# What every direction is given of the curvature, besides its share: measured on the benchmark's real data.
_EVEN = 0.3


@dataclass(eq=False)
class Misalignment:
    """``1 - f`` as a function of a factor W of the reference point.

    Parameters
    ----------
    data : Data
        SPD matrices with their targets, here or on the workers of a cluster.
    rotation : array of shape (d, d), optional
        Orthogonal; the objective is that of the matrices ``R X R'``, of which none is computed.
    """

    data: Data
    rotation: Factor | None = None

    def at(self, point: FactorPoint) -> Evaluation:
        """Evaluate at a point."""
        return Evaluation(self, point)


class Evaluation:
    """Misalignment at a point: ``value`` is computed at once, derivatives when they are asked for.

    ``gradient`` is in the coordinates of the point's manifold; ``frame_gradient`` is in the frame of its
    factor, the derivative along W -> exp(-xi/2) W, that is along the geodesic of G.
    """

    def __init__(self, objective: Misalignment, point: FactorPoint):
        self.point, self.objective, self.data = point, objective, objective.data
        W, R = point.factor, objective.rotation
        self.factor = W if R is None else map_views(np.matmul, W, R)  # of the matrices as they are
        n, p = self.data.shape[0], count_features(self.factor)
        # In Gram form where there are fewer matrices than features, and they can be brought together.
        self.gram = self.data.gathers and (n < p or not self.needs_scatter)
        # Moments of all chunks together and the chunks decomposed, where they are; none if not kept.
        self.moments, self.summary, self.parts = self.data.decompose(self.factor, gram=self.gram)
        self.value = 1.0 - self.alignment

    needs_scatter = True  # of the features, C, unless it is replaced by the Gram form

    @lazy
    def alignment(self) -> float:
        """The centered kernel-target alignment f, 0 to 1; 0 if all matrices, or all targets, are the same.

        Minus infinity where it cannot be computed, so that no solver goes there.
        """
        mean, A, B = self.summary.mean, self.summary.A, self.data.target.squares
        if not isfinite(mean @ mean):
            return -np.inf
        K = self._gram_matrix if self.gram else None
        self._C_norm = self.summary.C_norm if K is None else sqrt(np.vdot(K, K))
        self._norms = self._C_norm * sqrt(np.vdot(B, B))
        return float(np.vdot(A, A)) / self._norms if self._norms > 0 else 0.0

    @lazy
    def gradient(self) -> np.ndarray:
        """Gradient in the coordinates of the manifold."""
        point = self.point
        return point.gradient(self.factor_gradient if point.low_rank else self.frame_gradient)

    @lazy
    def frame_gradient(self) -> Any:
        """Riemannian gradient, as a symmetric matrix in the frame, of several views one of each."""
        xi = self.data.total_of_parts(_pull, self.factor, self.parts, self._cotangents(), False)
        return map_views(traceless, xi)

    @lazy
    def factor_gradient(self) -> Any:
        """Derivative in the entries of the factor of the point, (m, d), of several views one of each."""
        R = self.objective.rotation
        there = self.data.total_of_parts(_pull, self.factor, self.parts, self._cotangents(), True)
        return there if R is None else map_views(lambda of, Q: of @ Q.conj().T, there, R)

    @lazy
    def curvature_estimate(self) -> Any:
        """How much f bends along directions of the frame, about: more where A has more; of trace m.

        As eigenvalues and vectors, of several views those of each.
        """
        W, found = self.factor, list[Any]()
        views = (W,) if isinstance(W, np.ndarray) else W.views
        for view, rows in zip(views, view_columns(views), strict=True):
            columns = fill_matrices(self.summary.A[rows].T, view)
            stacked = columns.reshape(-1, columns.shape[-1])
            shares = stacked.conj().T @ stacked
            m, total = len(shares), float(np.trace(shares).real)
            if total > 0:
                shares *= m / (total * (1 + _EVEN))
                shares.reshape(-1)[:: m + 1] += _EVEN / (1 + _EVEN)
            found.append(np.linalg.eigh(shares if total > 0 else np.eye(m)))
        return found[0] if isinstance(W, np.ndarray) else Views(tuple(found))

    @lazy
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        squares, mean = self.summary.C_trace, self.summary.mean
        if self.gram:
            both = zip(self.data.chunks, self.parts, strict=True)
            with np.errstate(invalid="ignore"):  # it tells of what has left float64
                squares = sum(np.sum(c.target.weight[:, None] * (p.features - mean) ** 2) for c, p in both)
        return float(np.sqrt(squares / self.summary.weight))

    @property
    def vectors(self) -> np.ndarray:
        """Tangent vectors of all matrices, (n, p), if they can be brought together."""
        # Where they did not fit beside the matrices, chunks are decomposed again.
        parts = self.parts or (chunk.decompose(self.factor) for chunk in self.data.chunks)
        rows = [part.features for part in parts]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def weighting(self) -> Weighting:
        """How much each direction counts: from the Gram form, or the moments and a pass for the errors."""
        data, target, mean = self.data, self.data.target, self.summary.mean
        # Whether labels had a part in the point: at full rank not at the center, at low rank always.
        factors = [self.factor] if isinstance(self.factor, np.ndarray) else self.factor.views
        learned = bool(self.point.S.any()) or any(len(W) < W.shape[1] for W in factors)
        if self.gram:
            gram = GramRidge.from_rows(self._root, self._gram_matrix, target, target.per_class, learned)
            return weigh_directions(gram, gram.errors(target))
        if data.shape[0] < mean.size:  # elsewhere: there are few of them
            return discriminant_weighting(*data.gather(self.factor, self.parts), learned=learned)
        ridge = data.call(FeatureRidge.from_moments, self.moments, target.squares, target.per_class, learned)
        errors = data.total_of_parts(_left_out, self.factor, self.parts, ridge, mean)
        return data.call(weigh_directions, ridge, errors, fetch=True)

    @lazy
    def _root(self) -> np.ndarray:
        """All centered tangent vectors, times the roots of their weights, (n, p)."""
        both = zip(self.data.chunks, self.parts, strict=True)
        mean = self.summary.mean
        rows = [center(part.features, mean, chunk.target.weight[:, None]) for chunk, part in both]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    @lazy
    def _gram_matrix(self) -> np.ndarray:
        return self._root @ self._root.T

    def _cotangents(self) -> Any:
        """What all chunks need to know to pull back, and nobody else: derivatives in features or moments."""
        scale = -2 / self._norms  # the sign makes f a misalignment
        other = -scale * float(np.vdot(self.summary.A, self.summary.A)) / self._C_norm**2
        if not self.gram:
            return self.data.call(scale_moments, self.moments, scale, other)  # once, where they are
        Y, w = self.data.target.Y, self.data.target.weight[:, None]
        root = np.sqrt(w)
        # A too is a sum of centered tangent vectors: both terms are one product with all of them.
        left, rows = self._gram_matrix, self._root
        del self._gram_matrix, self._root  # they are written over, and computed again for who asks
        left *= root * other
        across = Y @ (root * Y).T
        across *= scale * w
        left += across
        width = max(128, 40_000 // len(rows))  # columns at a time
        for start in range(0, rows.shape[1], width):
            rows[:, start : start + width] = left @ rows[:, start : start + width]
        return rows


def traceless(xi: np.ndarray) -> np.ndarray:
    """The symmetric part without the trace: as f(cG) = f(G), it is rounding, which would let det(G) drift."""
    xi = xi + xi.conj().T
    xi *= 0.5
    diagonal = xi.reshape(-1)[:: len(xi) + 1]  # a view
    diagonal -= sum(diagonal.tolist()) / len(xi)
    return xi


def scale_moments(moments: Moments, of_A: float, of_C: float, of_weight: float = 1.0) -> Moments:
    """The same with each sum multiplied by a number."""
    return moments._replace(weight=of_weight * moments.weight, A=of_A * moments.A, C=of_C * moments.C)


def _pull(chunk: Chunk, here: Decomposition, known: Moments | np.ndarray, to_factor: bool) -> Factor:
    """Derivative of the misalignment in the frame, or the factor, from that in the features of a chunk."""
    if isinstance(known, np.ndarray):
        rows = known[chunk.rows]
    else:
        Y, weight = chunk.target.Y, chunk.target.weight[:, None]
        rows = here.cotangents(here.features, known.mean, Y, weight, np.asarray(known.C), known.A)
    return here.pull_factor(rows) if to_factor else here.pull(rows)


def _left_out(chunk: Chunk, here: Decomposition, ridge: FeatureRidge, mean: np.ndarray) -> Errors:
    """Errors of a regression of the targets on the features of a chunk, each matrix left out in turn."""
    target = chunk.target
    return ridge.errors(center(here.features, mean, target.weight[:, None]), target)
