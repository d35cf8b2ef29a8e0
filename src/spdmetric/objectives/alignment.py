"""The objective: how well tangent vectors at G are aligned with the labels.

Centered kernel-target alignment [Cortes2012]_, Eq. (5) of [Yger2015]_, written on the
tangent vectors themselves instead of their n x n Gram matrix.  With weights w_i, rows
Phi_i of centered tangent vectors and Y_i of centered targets,

    A = sum w_i Phi_i' Y_i    C = sum w_i Phi_i' Phi_i    B = sum w_i Y_i' Y_i
    f = |A|^2 / (|C| |B|)

All of these are sums over matrices, and so is the gradient: they are computed chunk by chunk, in two
passes (moments; then cotangents pulled back), wherever the chunks are.  Where there are fewer matrices than
features the Gram form gives the same numbers, with n^2 p operations instead of n p^2.  Solvers minimize the
*misalignment* 1 - f; the sign changes here and nowhere else.  Derivations: ``docs/math.md``.
"""

from __future__ import annotations

from functools import cached_property
from math import isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from spdmetric.linalg.moments import Moments
from spdmetric.linalg.symmetric import unvech
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.data import Data, Part
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


class Misalignment:
    """``1 - f`` as a function of a factor W of the reference point.

    Parameters
    ----------
    data : Data
        SPD matrices with their targets, here or on the workers of a cluster.
    """

    def __init__(self, data: Data):
        self.data = data
        self.target_norm: float = data.target.norm

    def at(self, point: FactorPoint) -> Evaluation:
        """Return the lazy evaluation at a point."""
        return Evaluation(self, point)


class Summary(NamedTuple):
    """What is sent from where the moments are: p c numbers instead of p^2."""

    weight: float
    mean: np.ndarray  # (p,)
    A: np.ndarray  # (p, c)
    C_norm: float
    C_trace: float

    @classmethod
    def from_moments(cls, moments: Moments) -> Summary:
        """All but C itself."""
        C = np.atleast_2d(moments.C)
        return cls(moments.weight, moments.mean, moments.A, sqrt(np.vdot(C, C)), float(np.trace(C)))


class Cotangents(NamedTuple):
    """What the derivative in the features of a chunk needs to know of all the others."""

    mean: np.ndarray  # (p,)
    right: np.ndarray  # (p, p)
    across: np.ndarray  # (p, c)

    @classmethod
    def from_moments(cls, moments: Moments, of_A: float, of_C: float) -> Cotangents:
        """Scale A and C by the coefficients of an `Evaluation`."""
        return cls(moments.mean, of_C * np.asarray(moments.C), of_A * moments.A)

    def rows(self, part: Part) -> np.ndarray:
        """Derivative of the misalignment in the features of a chunk."""
        Y, weight = part.target.Y, part.target.weight[:, None]
        return part.decomposition.cotangents(self.mean, Y, weight, self.right, self.across)


class Evaluation:
    """Misalignment at a point: immutable, and nothing is computed before it is asked for.

    ``gradient`` is in the coordinates of the point's manifold; ``frame_gradient`` is in the frame of its
    factor, the derivative along W -> exp(-xi/2) W, that is along the geodesic of G.
    """

    def __init__(self, objective: Misalignment, point: FactorPoint):
        self.point, self._objective, self._data = point, objective, objective.data

    @property
    def value(self) -> float:
        """The misalignment, ``1 - alignment``."""
        return 1.0 - self.alignment

    @cached_property
    def alignment(self) -> float:
        """The centered kernel-target alignment f, between 0 and 1.

        Minus infinity where it cannot be computed, so that no solver goes there.
        """
        mean = self._summary.mean
        if not isfinite(mean @ mean):
            return -np.inf
        return self._A_square / (self._C_norm * self._objective.target_norm)

    @cached_property
    def gradient(self) -> np.ndarray:
        """Gradient in the coordinates of the manifold."""
        return self.point.gradient(self)

    @cached_property
    def frame_gradient(self) -> np.ndarray:
        """Riemannian gradient, as a symmetric matrix in the frame."""
        xi = self._data.total_of_parts(_pull, self.point.factor, self._parts, self._cotangents)
        return tangent_part(xi)

    @cached_property
    def factor_gradient(self) -> np.ndarray:
        """Derivative in the entries of the factor, (m, d)."""
        return self._data.total_of_parts(_pull_factor, self.point.factor, self._parts, self._cotangents)

    @cached_property
    def curvature_estimate(self) -> np.ndarray:
        """How much f bends along directions of the frame, about: a matrix whose trace is its size.

        More where A has more (``docs/math.md``, "Axes").
        """
        columns = unvech(self._summary.A.T)
        stacked = columns.reshape(-1, columns.shape[-1])
        shares = stacked.T @ stacked
        m, total = len(shares), float(np.trace(shares))
        if not total > 0:
            return np.eye(m)
        estimate = shares * (m / (total * (1 + _EVEN)))
        estimate.reshape(-1)[:: m + 1] += _EVEN / (1 + _EVEN)
        return estimate

    @property
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        squares, mean = self._summary.C_trace, self._summary.mean
        if self.gram:
            with np.errstate(invalid="ignore"):  # it tells of what has left float64
                squares = sum(
                    np.sum(p.target.weight[:, None] * (p.features - mean) ** 2) for p in self._parts
                )
        return float(np.sqrt(squares / self._summary.weight))

    @property
    def vectors(self) -> np.ndarray | None:
        """Tangent vectors of all matrices, (n, p), where they are kept."""
        if not self._data.gathers or not self._parts:
            return None
        rows = [part.features for part in self._parts]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    @property
    def learned(self) -> bool:
        """Whether labels had a part in the point: at full rank not at the center, at low rank always."""
        m, d = self.point.factor.shape
        return m < d or bool(self.point.S.any())

    def weighting(self) -> Weighting:
        """How much each direction counts: from the moments, and one more pass for the errors.

        In Gram form from the tangent vectors.
        """
        data, target, mean = self._data, self._data.target, self._summary.mean
        if self.gram:
            K, per_class = self._gram_matrix, target.per_class
            gram = GramRidge.from_products(K, target, mean.size, per_class, learned=self.learned)
            return weigh_directions(gram, gram.errors(target), self._root)
        if data.shape[0] < mean.size:  # elsewhere: there are few of them
            return discriminant_weighting(*data.gather(self.point.factor, self._parts), learned=self.learned)
        ridge = data.call(
            FeatureRidge.from_moments, self._moments, target.squares, target.per_class, self.learned
        )
        errors = data.total_of_parts(_left_out, self.point.factor, self._parts, ridge, mean)
        return data.fetch(data.call(weigh_directions, ridge, errors))

    # -- first pass: moments ------------------------------------------------

    @cached_property
    def gram(self) -> bool:
        """Whether there are fewer matrices than features, and they can be brought together."""
        m = self.point.factor.shape[0]
        return self._data.gathers and self._data.shape[0] < m * (m + 1) // 2

    @cached_property
    def _first_pass(self) -> tuple[Any, list[Any]]:
        return self._data.decompose(self.point.factor, gram=self.gram)

    @property
    def _moments(self) -> Any:
        """Moments of all chunks together, where they are."""
        return self._first_pass[0]

    @property
    def _parts(self) -> list[Any]:
        """The chunks at this point, where they are; none if they are not kept."""
        return self._first_pass[1]

    @cached_property
    def _summary(self) -> Summary:
        return self._data.fetch(self._data.call(Summary.from_moments, self._moments))

    @cached_property
    def _root(self) -> np.ndarray:
        """All centered tangent vectors, times the roots of their weights, (n, p)."""
        rows = [part.centered(self._summary.mean) for part in self._parts]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    @cached_property
    def _gram_matrix(self) -> np.ndarray:
        return self._root @ self._root.T

    @cached_property
    def _A_square(self) -> float:
        return float(np.vdot(self._summary.A, self._summary.A))

    @cached_property
    def _C_norm(self) -> float:
        return sqrt(np.vdot(self._gram_matrix, self._gram_matrix)) if self.gram else self._summary.C_norm

    # -- second pass: cotangents --------------------------------------------

    @cached_property
    def _cotangents(self) -> Any:
        """What all chunks need to know to pull back: derivatives in the features, where they are."""
        scale = -2 / (self._C_norm * self._objective.target_norm)  # the sign makes f a misalignment
        other = -scale * self._A_square / self._C_norm**2
        if not self.gram:
            return self._data.call(Cotangents.from_moments, self._moments, scale, other)
        target = self._data.target
        Y, w = target.Y, target.weight[:, None]
        root = np.sqrt(w)
        # A too is a sum of centered tangent vectors: both terms are one product with all of them.
        return (root * other * self._gram_matrix + scale * w * (Y @ (root * Y).T)) @ self._root


def _rows(part: Part, cotangents: Cotangents | np.ndarray) -> np.ndarray:
    """Derivative of the misalignment in the features of a chunk, (n, p)."""
    return cotangents[part.rows] if isinstance(cotangents, np.ndarray) else cotangents.rows(part)


def _pull(part: Part, cotangents: Cotangents | np.ndarray) -> np.ndarray:
    return part.decomposition.pull(_rows(part, cotangents))


def _pull_factor(part: Part, cotangents: Cotangents | np.ndarray) -> np.ndarray:
    return part.decomposition.pull_factor(_rows(part, cotangents))


def _left_out(part: Part, ridge: FeatureRidge, mean: np.ndarray) -> Errors:
    """Errors of a regression of the targets on the features of a chunk, each matrix left out in turn."""
    return ridge.errors(part.centered(mean), part.target)


def tangent_part(xi: np.ndarray) -> np.ndarray:
    """Remove what rounding put outside the tangent space.

    f(cG) = f(G), so gradients have no trace; a trace left in by rounding would let det(G) drift.
    """
    d = xi.shape[0]
    xi = xi + xi.T
    xi *= 0.5
    diagonal = xi.reshape(-1)[:: d + 1]  # a view
    diagonal -= sum(diagonal.tolist()) / d
    return xi
