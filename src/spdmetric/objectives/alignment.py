"""The objective: how well tangent vectors at G are aligned with the labels.

Centered kernel-target alignment [Cortes2012]_, Eq. (5) of [Yger2015]_, written on the
tangent vectors themselves instead of their n x n Gram matrix.  With weights w_i, rows
Phi_i of centered tangent vectors and Y_i of centered targets,

    A = sum w_i Phi_i' Y_i    C = sum w_i Phi_i' Phi_i    B = sum w_i Y_i' Y_i
    f = |A|^2 / (|C| |B|)

All of these are sums over matrices, and so are the gradient and the Hessian-vector
product: they are computed chunk by chunk, in two passes (moments; then cotangents pulled
back).  Solvers minimize the *misalignment* 1 - f; the sign changes here and nowhere else.
Derivations: ``docs/math.md``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import reduce
from math import isfinite, sqrt
from operator import add
from typing import Any, NamedTuple

import numpy as np

from spdmetric.geometry import chunks
from spdmetric.linalg.batch import Decomposition, Stack, stack_of
from spdmetric.linalg.lazy import lazy
from spdmetric.linalg.moments import Moments
from spdmetric.linalg.symmetric import LogCongruence, unvech, vech
from spdmetric.linalg.threads import Map
from spdmetric.manifolds import FactorPoint
from spdmetric.objectives.weighting import (
    Errors,
    FeatureRidge,
    GramRidge,
    Targets,
    Weighting,
    tried,
    weighting_of,
)

# What every direction is given of the curvature, besides its share: measured on the benchmark's real data.
_EVEN = 0.3


class Target(NamedTuple):
    """Centered targets and weights, rows for matrices."""

    Y: np.ndarray  # (n, c)
    weight: np.ndarray  # (n, 1)

    @classmethod
    def one_hot(cls, codes: np.ndarray, weight: np.ndarray | None = None) -> Target:
        """One column a class, for class codes 0, 1, ...

        For two classes the alignment is that of the paper's target y y'.
        """
        Y = np.eye(codes.max() + 1)[codes]
        weight = np.ones(codes.size) if weight is None else weight
        return cls(Y - np.average(Y, axis=0, weights=weight), weight[:, None])

    @classmethod
    def of(cls, codes: np.ndarray, weight: np.ndarray) -> Target:
        """Class codes (n,), or numbers to predict (n, q)."""
        if codes.ndim == 1:
            return cls.one_hot(codes, weight)
        return Numbers(codes - np.average(codes, axis=0, weights=weight), weight[:, None])

    def part(self, rows: slice) -> Target:
        return self._replace(Y=self.Y[rows], weight=self.weight[rows])

    @property
    def counts(self) -> np.ndarray | None:
        """Matrices of each class, for one-hot codes: centered, they are positive at their own class alone."""
        return np.count_nonzero(self.Y > 0, axis=0)

    @property
    def squares(self) -> np.ndarray:
        """B, (c, c)."""
        return self.Y.T @ (self.weight * self.Y)

    @property
    def norm(self) -> float:
        """The norm of B."""
        return float(np.linalg.norm(self.squares))


class Numbers(Target):
    """Targets that are numbers: there are no classes to count."""

    counts = None


class Scatter(NamedTuple):
    """C, multiplied out, or as ``left' right`` where there are fewer matrices than features.

    The second is the Gram form: the same numbers, n^2 p operations instead of n p^2.
    """

    right: np.ndarray  # (p, p), or (k, p)
    left: np.ndarray | None = None  # (k, p)

    def rows(self, Phi: np.ndarray) -> np.ndarray:
        """Return ``Phi C``."""
        return Phi @ self.right if self.left is None else (Phi @ self.left.T) @ self.right


class Block(NamedTuple):
    """A chunk of the data; the matrices are fetched when they are asked for."""

    X: Any  # anything of shape (n, d, d) that slices to arrays
    rows: slice
    target: Target

    def stack(self, *, again: bool) -> Stack:
        return stack_of(np.asarray(self.X[self.rows]), self.X.shape[0], again=again)


class Part(NamedTuple):
    """One chunk at one point: its matrices decomposed, and its tangent vectors."""

    decomposition: Decomposition
    rows: slice
    target: Target

    @property
    def features(self) -> np.ndarray:
        return self.decomposition.features

    @property
    def log(self) -> LogCongruence:
        return self.decomposition.log

    def centered(self, mean: np.ndarray) -> np.ndarray:
        """Tangent vectors centered by a mean, times the roots of their weights, (n, p)."""
        rows = self.features - mean
        rows *= np.sqrt(self.target.weight)
        return rows

    def left_out(self, ridge: FeatureRidge, mean: np.ndarray, counts: np.ndarray | None) -> Errors:
        """Errors of a regression of the targets, each matrix left out in turn."""
        Y, weight = self.target
        return ridge.errors(self.centered(mean), Targets.of_centered(Y, weight[:, 0], counts))


class Cotangents(NamedTuple):
    """What the derivative in the features of a chunk needs to know of all the others."""

    mean: np.ndarray  # (p,)
    right: np.ndarray  # (p, p)
    across: np.ndarray  # (p, c)

    @classmethod
    def of(cls, moments: Moments, of_A: float, of_C: float) -> Cotangents:
        """Scale A and C by the coefficients of an `Evaluation`."""
        return cls(moments.mean, of_C * np.asarray(moments.C), of_A * moments.A)

    def rows(self, part: Part) -> np.ndarray:
        """Derivative of the misalignment in the features of a chunk."""
        return part.decomposition.cotangents(self.mean, *part.target, self.right, self.across)


# ---------------------------------------------------------------------------
# The objective


class Misalignment:
    """``1 - f`` as a function of a factor W of the reference point.

    Parameters
    ----------
    X : array of shape (n, d, d)
        SPD matrices; if ``keep`` is False, anything that slices to arrays.
    target : Target
        Centered targets and weights.
    rows : iterable of slice, optional
        Chunks of matrices that are handled at a time; by default some that depend on n and d alone.
    keep : bool, default=True
        Whether the decomposed matrices are kept between the two passes.  If not, each pass
        decomposes them anew, and memory does not grow with n.
    map : callable, default=map
        Maps a function over chunks; the only parallel seam.
    """

    def __init__(
        self,
        X: Any,
        target: Target,
        *,
        rows: Iterable[slice] | None = None,
        keep: bool = True,
        map: Map = map,
    ):
        n, d = X.shape[0], X.shape[1]
        self.target, self.target_norm = target, target.norm
        self.n, self.keep, self.map = n, keep, map
        rows = chunks(n, default_chunk_size(d)) if rows is None else rows
        self.blocks = [Block(X, r, target.part(r)) for r in rows]
        self._stacks: dict[int, Stack] = {}

    def at(self, point: FactorPoint) -> LocalEvaluation:
        """Return the lazy evaluation at a point."""
        return LocalEvaluation(self, point)

    def part(self, k: int, W: np.ndarray) -> Part:
        """Decompose a chunk at W."""
        block = self.blocks[k]
        stack = self._stacks.get(k) or block.stack(again=self.keep)
        if self.keep:
            self._stacks[k] = stack
        return Part(stack.decompose(W), block.rows, block.target)


def default_chunk_size(d: int) -> int:
    """Matrices of size d in a chunk: enough work to be worth a thread's while, and little memory."""
    return int(max(64, min(5.5e7 / (20 * d**3), 16384))) // 8 * 8


class Evaluation(ABC):
    """Misalignment at a point: immutable, and nothing is computed before it is asked for.

    ``gradient`` and ``hvp`` are in the coordinates of the point's manifold;
    ``frame_gradient`` and ``frame_hvp`` are in the frame of its factor, the derivative
    along W -> exp(-xi/2) W, that is along the geodesic of G.

    Where the matrices are is the matter of the classes below this one: they give ``_mean`` and
    ``_norms``, from the moments, and ``_pulled``, the derivative.
    """

    def __init__(self, point: FactorPoint, target_norm: float):
        self.point, self._target_norm = point, target_norm

    @property
    def value(self) -> float:
        """The misalignment, ``1 - alignment``."""
        return 1.0 - self.alignment

    @lazy
    def alignment(self) -> float:
        """The centered kernel-target alignment f, between 0 and 1.

        Minus infinity where it cannot be computed, so that no solver goes there.
        """
        if not isfinite(self._mean @ self._mean):
            return -np.inf
        A_square, C_norm = self._norms
        return A_square / (C_norm * self._target_norm)

    @lazy
    def gradient(self) -> np.ndarray:
        """Gradient in the coordinates of the manifold."""
        return self.point.gradient(self)

    @property
    def learned(self) -> bool:
        """Whether labels had a part in the point: at full rank not at the center, at low rank always."""
        m, d = self.point.factor.shape
        return m < d or bool(self.point.S.any())

    @lazy
    def bends(self) -> np.ndarray:
        """How much f bends along directions of the frame, about: a matrix whose trace is its size.

        More where A has more (``docs/math.md``, "Axes").
        """
        shares = self._A_squares
        m, total = len(shares), float(np.trace(shares))
        if not total > 0:
            return np.eye(m)
        bends = shares * (m / (total * (1 + _EVEN)))
        bends.reshape(-1)[:: m + 1] += _EVEN / (1 + _EVEN)
        return bends

    def hvp(self, eta: np.ndarray) -> np.ndarray:
        """Hessian in the coordinates of the manifold, applied to a vector."""
        return self.point.hvp(self, eta)

    @lazy
    def frame_gradient(self) -> np.ndarray:
        """Riemannian gradient, as a symmetric matrix in the frame."""
        return tangent_part(self._pulled("pull"))

    @lazy
    def factor_gradient(self) -> np.ndarray:
        """Derivative in the entries of the factor, (m, d)."""
        return self._pulled("pull_factor")

    @lazy
    def _coefficients(self) -> tuple[float, float]:
        """What the cotangents have of Y A' and of Phi C; the sign makes f a misalignment."""
        A_square, C_norm = self._norms
        scale = -2 / (C_norm * self._target_norm)
        return scale, -scale * A_square / C_norm**2

    @abstractmethod
    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Riemannian Hessian, applied to a tangent vector in the frame."""

    @abstractmethod
    def weighting(self) -> Weighting:
        """How much each direction of the tangent vectors should count."""

    @property
    @abstractmethod
    def _mean(self) -> np.ndarray:
        """Mean of the features, (p,)."""

    @property
    @abstractmethod
    def _norms(self) -> tuple[float, float]:
        """The squared norm of A, and the norm of C."""

    @property
    @abstractmethod
    def _A_squares(self) -> np.ndarray:
        """Sum of the squares of the matrices whose vectors are the columns of A, (m, m)."""

    @abstractmethod
    def _pulled(self, pull: str) -> np.ndarray:
        """Sum over all chunks of the cotangents, pulled back by a method of their decompositions."""


class LocalEvaluation(Evaluation):
    """Misalignment of matrices that this process can slice."""

    def __init__(self, objective: Misalignment, point: FactorPoint):
        super().__init__(point, objective.target_norm)
        self._objective = objective

    @property
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        with np.errstate(invalid="ignore"):  # it tells of what has left float64
            squares = sum(self._each(lambda part: np.sum(part.target.weight * self._Phi(part) ** 2)))
        return float(np.sqrt(squares / self._moments.weight))

    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Riemannian Hessian, applied to a tangent vector in the frame."""
        move = _Move(self, xi)

        def pull(part: Part) -> np.ndarray:
            M, M_dot = self._cotangent(part), move.cotangent_derivative(part, move.features(part))
            return part.log.pull_derivative(xi, unvech(M), unvech(M_dot))

        return tangent_part(sum(self._each(pull)))

    def weighting(self) -> Weighting:
        """From the moments, and one more pass for the errors; in Gram form from the tangent vectors."""
        target = self._objective.target
        counts = target.counts
        targets = Targets.of_centered(target.Y, target.weight[:, 0], counts)
        if self.gram:
            gram = tried(GramRidge.of(self._gram_matrix, targets, self._mean.size), learned=self.learned)
            return weighting_of(gram, gram.errors(targets), self._root)
        mean, C, A = self._mean, np.asarray(self._moments.C), self._moments.A
        ridge = FeatureRidge.of(C, A, target.squares, self._moments.weight, targets.per_class)
        ridge = tried(ridge, learned=self.learned)
        return weighting_of(ridge, reduce(add, self._each(lambda part: part.left_out(ridge, mean, counts))))

    def _pulled(self, pull: str) -> np.ndarray:
        return reduce(
            np.add, self._each(lambda part: getattr(part.decomposition, pull)(self._cotangent(part)))
        )

    # -- first pass: moments ------------------------------------------------

    @lazy
    def _first_pass(self) -> tuple[Moments, list[Part]]:
        """Moments of all chunks, and the chunks themselves if they are kept."""
        objective, W, gram = self._objective, self.point.factor, self.gram

        def first(k: int) -> tuple[Moments, Part | None]:
            part = objective.part(k, W)
            moments = part.decomposition.moments(*part.target, gram=gram)
            return moments, part if self._keep else None

        results = iter(objective.map(first, range(len(objective.blocks))))
        merged, part = next(results)
        parts = [part]
        for moments, part in results:
            merged = merged.merge(moments, overwrite=True)
            parts.append(part)
        return merged, [part for part in parts if part is not None]

    @property
    def _keep(self) -> bool:
        """The Gram form needs all tangent vectors at once: there are few of them."""
        return self._objective.keep or self.gram

    def _each(self, function: Callable[[Part], Any]) -> Iterable[Any]:
        """Map a function over the chunks, decomposed."""
        objective, W = self._objective, self.point.factor
        parts = self._first_pass[1]  # here, as threads that asked for it would wait for each other
        if self._keep:
            return objective.map(function, parts)
        return objective.map(lambda k: function(objective.part(k, W)), range(len(objective.blocks)))

    @property
    def _parts(self) -> list[Part]:
        """All chunks, where they are kept."""
        return self._first_pass[1]

    @property
    def _moments(self) -> Moments:
        return self._first_pass[0]

    @property
    def _mean(self) -> np.ndarray:
        return self._moments.mean

    @property
    def gram(self) -> bool:
        """Whether there are fewer matrices than features."""
        m = self.point.factor.shape[0]
        return self._objective.n < m * (m + 1) // 2

    @lazy
    def _root(self) -> np.ndarray:
        """All centered tangent vectors, times the roots of their weights, (n, p)."""
        rows = [part.centered(self._mean) for part in self._parts]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    @lazy
    def _gram_matrix(self) -> np.ndarray:
        return self._root @ self._root.T

    @lazy
    def _scatter(self) -> Scatter:
        return Scatter(self._root, self._root) if self.gram else Scatter(np.asarray(self._moments.C))

    @lazy
    def _norms(self) -> tuple[float, float]:
        A, C = self._moments.A, self._gram_matrix if self.gram else self._moments.C
        return float(np.vdot(A, A)), sqrt(np.vdot(C, C))

    @property
    def _A_squares(self) -> np.ndarray:
        return squares_of(self._moments.A)

    # -- second pass: cotangents --------------------------------------------

    def _Phi(self, part: Part) -> np.ndarray:
        return part.features - self._mean

    @lazy
    def _of_all(self) -> Cotangents:
        return Cotangents.of(self._moments, *self._coefficients)

    def _cotangent(self, part: Part) -> np.ndarray:
        """Derivative of the misalignment in the features of a chunk."""
        if not self.gram:
            return self._of_all.rows(part)
        (Y, w), (scale, other) = part.target, self._coefficients
        of_all = self._objective.target
        # A too is a sum of centered tangent vectors: both terms are one product with all of them.
        across = Y @ (np.sqrt(of_all.weight) * of_all.Y).T
        return (np.sqrt(w) * other * self._gram_matrix[part.rows] + scale * w * across) @ self._root


class _Move:
    """How the moments and the cotangents change when the point moves along ``eta``."""

    def __init__(self, here: LocalEvaluation, eta: np.ndarray):
        self._here, self._eta = here, eta
        self._A_square, self._C_norm = here._norms
        self._kept: dict[int, np.ndarray] = {}
        totals = [sum(column) for column in zip(*here._each(self._sums), strict=True)]
        self.mean = totals[0] / here._moments.weight
        self.A, inner, half = totals[1:]
        self.C_norm = float(2 * inner / self._C_norm)
        self.A_square = float(2 * np.vdot(here._moments.A, self.A))
        self.scatter = self._gram_scatter() if here.gram else Scatter(half + half.T)

    def features(self, part: Part) -> np.ndarray:
        """Derivative of the tangent vectors of a chunk; kept if the chunk is."""
        first = part.rows.start
        if first in self._kept:
            return self._kept[first]
        Phi_dot = vech(part.log.push(self._eta))
        if self._here._keep:
            self._kept[first] = Phi_dot
        return Phi_dot

    def _sums(self, part: Part) -> tuple[Any, ...]:
        """A chunk's shares of the derivatives of the mean, A, ``|C|^2 / 2``, and half of C."""
        here, (Y, w) = self._here, part.target
        w_dot, Phi = w * self.features(part), here._Phi(part)
        # <C, dC> = 2 sum w_i dPhi_i . (Phi C)_i, in either form of C
        inner = np.vdot(w_dot, here._scatter.rows(Phi))
        return w_dot.sum(axis=0), w_dot.T @ Y, inner, 0.0 if here.gram else w_dot.T @ Phi

    def _gram_scatter(self) -> Scatter:
        here = self._here
        Phi = np.concatenate([here._Phi(p) for p in here._parts])
        w = np.concatenate([p.target.weight for p in here._parts])
        Phi_dot = np.concatenate([self.features(p) for p in here._parts])
        w_dot = w * (Phi_dot - self.mean)
        return Scatter(np.concatenate([w_dot, w * Phi]), np.concatenate([Phi, w_dot / w]))

    def cotangent_derivative(self, part: Part, Phi_dot: np.ndarray) -> np.ndarray:
        here = self._here
        a, c = self._A_square, self._C_norm
        Y, w = part.target
        Phi = here._Phi(part)
        ratio, ratio_dot = a / c**2, self.A_square / c**2 - 2 * a * self.C_norm / c**3
        C_dot_rows = here._scatter.rows(Phi_dot - self.mean) + self.scatter.rows(Phi)
        bracket = Y @ self.A.T - ratio_dot * here._scatter.rows(Phi) - ratio * C_dot_rows
        return here._coefficients[0] * w * bracket - (self.C_norm / c) * here._cotangent(part)


def squares_of(A: np.ndarray) -> np.ndarray:
    """Sum of the squares of the symmetric matrices whose vectors are the columns of A."""
    columns = unvech(A.T)
    stacked = columns.reshape(-1, columns.shape[-1])
    return stacked.T @ stacked


def tangent_part(xi: np.ndarray) -> np.ndarray:
    """Remove what rounding put outside the tangent space.

    f(cG) = f(G), so gradients and Hessian-vector products have no trace; a trace left in
    by rounding would let det(G) drift.
    """
    d = xi.shape[0]
    xi = xi + xi.T
    xi *= 0.5
    diagonal = xi.reshape(-1)[:: d + 1]  # a view
    diagonal -= sum(diagonal.tolist()) / d
    return xi
