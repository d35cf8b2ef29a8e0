"""The objective: how well tangent vectors at G are aligned with the labels.

Centred kernel-target alignment [Cortes2012]_, Eq. (5) of [Yger2015]_, written on the
tangent vectors themselves instead of their n x n Gram matrix.  With weights w_i, rows
Phi_i of centred tangent vectors and Y_i of centred targets,

    A = sum w_i Phi_i' Y_i    C = sum w_i Phi_i' Phi_i    B = sum w_i Y_i' Y_i
    f = |A|^2 / (|C| |B|)

All of these are sums over matrices, and so are the gradient and the Hessian-vector
product: they are computed chunk by chunk, in two passes (moments; then cotangents pulled
back).  Solvers minimise the *misalignment* 1 - f; the sign changes here and nowhere else.
Derivations: ``docs/math.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from math import isfinite, sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np

from spdmetric.geometry import chunks
from spdmetric.lazy import lazy
from spdmetric.matrices import LogCongruence, unvech, vech
from spdmetric.stacks import Decomposition, Stack, stack_of


class Point(Protocol):
    """A point of a manifold, as the objective sees it (see `spdmetric.manifolds.BallPoint`)."""

    factor: np.ndarray  # W, (m, d)

    def gradient(self, function: Any) -> np.ndarray: ...
    def hvp(self, function: Any, eta: np.ndarray) -> np.ndarray: ...


class Target(NamedTuple):
    """Centred targets and weights, rows for matrices."""

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

    def part(self, rows: slice) -> Target:
        return Target(self.Y[rows], self.weight[rows])

    @property
    def norm(self) -> float:
        """The norm of B."""
        return float(np.linalg.norm(self.Y.T @ (self.weight * self.Y)))


class Moments(NamedTuple):
    """Moments of a chunk of features about its own means, ready to be merged."""

    weight: float
    mean: np.ndarray  # (p,)
    target_mean: np.ndarray  # (c,)
    A: np.ndarray  # (p, c)
    C: np.ndarray | float  # (p, p), or 0 where the Gram form makes it unnecessary

    def merge(self, other: Moments) -> Moments:
        """Moments of both chunks together [Chan1983]_: no cancellation."""
        weight = self.weight + other.weight
        share = other.weight / weight
        with np.errstate(invalid="ignore"):  # of what has left float64
            step, target_step = other.mean - self.mean, other.target_mean - self.target_mean
        across = (self.weight * share) * step
        C = self.C
        if isinstance(C, np.ndarray):
            C = np.outer(across, step)
            C += self.C
            C += other.C
        return Moments(
            weight,
            self.mean + share * step,
            self.target_mean + share * target_step,
            self.A + other.A + np.outer(across, target_step),
            C,
        )


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

    def stack(self) -> Stack:
        return stack_of(np.asarray(self.X[self.rows]), self.X.shape[0])


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


# ---------------------------------------------------------------------------
# The objective


class Misalignment:
    """``1 - f`` as a function of a factor W of the reference point.

    Parameters
    ----------
    X : array of shape (n, d, d)
        SPD matrices; if ``keep`` is False, anything that slices to arrays.
    target : Target
        Centred targets and weights.
    chunk_size : int, optional
        Matrices handled at a time; by default some number that depends on n and d alone.
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
        chunk_size: int | None = None,
        keep: bool = True,
        map: Callable[..., Iterable[Any]] = map,
    ):
        n, d = X.shape[0], X.shape[1]
        self.target_norm = target.norm
        self.n, self.keep, self.map = n, keep, map
        rows = chunks(n, chunk_size or default_chunk_size(d))
        self.blocks = [Block(X, r, target.part(r)) for r in rows]
        self._stacks: dict[int, Stack] = {}

    def at(self, point: Point) -> Evaluation:
        """Return the lazy evaluation at a point."""
        return Evaluation(self, point)

    def part(self, k: int, W: np.ndarray) -> Part:
        """Decompose a chunk at W."""
        block = self.blocks[k]
        stack = self._stacks.get(k) or block.stack()
        if self.keep:
            self._stacks[k] = stack
        return Part(stack.decompose(W), block.rows, block.target)


def default_chunk_size(d: int) -> int:
    """Matrices of size d in a chunk: enough work to be worth a thread's while, and little memory."""
    return int(max(64, min(4e7 / (20 * d**3), 16384))) // 8 * 8


class Evaluation:
    """Misalignment at a point: immutable, and nothing is computed before it is asked for.

    ``gradient`` and ``hvp`` are in the coordinates of the point's manifold;
    ``frame_gradient`` and ``frame_hvp`` are in the frame of its factor, the derivative
    along W -> exp(-xi/2) W, that is along the geodesic of G.
    """

    def __init__(self, objective: Misalignment, point: Point):
        self.point = point
        self._objective = objective

    @property
    def value(self) -> float:
        """The misalignment, ``1 - alignment``."""
        return 1.0 - self.alignment

    @lazy
    def alignment(self) -> float:
        """The centred kernel-target alignment f, between 0 and 1.

        Minus infinity where it cannot be computed, so that no solver goes there.
        """
        mean = self._moments.mean
        if not isfinite(mean @ mean):
            return -np.inf
        A_square, C_norm = self._norms
        return A_square / (C_norm * self._objective.target_norm)

    @property
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        squares = sum(self._each(lambda part: np.sum(part.target.weight * self._Phi(part) ** 2)))
        return float(np.sqrt(squares / self._moments.weight))

    @lazy
    def gradient(self) -> np.ndarray:
        """Gradient in the coordinates of the manifold."""
        return self.point.gradient(self)

    def hvp(self, eta: np.ndarray) -> np.ndarray:
        """Hessian in the coordinates of the manifold, applied to a vector."""
        return self.point.hvp(self, eta)

    @lazy
    def frame_gradient(self) -> np.ndarray:
        """Riemannian gradient, as a symmetric matrix in the frame."""
        return _tangent(_sum(self._each(lambda part: part.decomposition.pull(self._cotangent(part)))))

    @lazy
    def factor_gradient(self) -> np.ndarray:
        """Derivative in the entries of the factor, (m, d)."""
        return _sum(self._each(lambda part: part.decomposition.pull_factor(self._cotangent(part))))

    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Riemannian Hessian, applied to a tangent vector in the frame."""
        move = _Move(self, xi)

        def pull(pair: tuple[Part, np.ndarray]) -> np.ndarray:
            part, Phi_dot = pair
            M, M_dot = self._cotangent(part), move.cotangent_derivative(part, Phi_dot)
            return part.log.pull_derivative(xi, unvech(M), unvech(M_dot))

        pairs = zip(self._parts, move.Phi_dot, strict=True)
        return _tangent(sum(self._objective.map(pull, pairs)))

    # -- first pass: moments ------------------------------------------------

    @lazy
    def _first_pass(self) -> tuple[Moments, list[Part]]:
        """Moments of all chunks, and the chunks themselves if they are kept."""
        objective, W, gram = self._objective, self.point.factor, self.gram

        def first(k: int) -> tuple[Moments, Part | None]:
            part = objective.part(k, W)
            moments = Moments(*part.decomposition.moments(*part.target, gram=gram))
            return moments, part if self._keep else None

        results = iter(objective.map(first, range(len(objective.blocks))))
        merged, part = next(results)
        parts = [part]
        for moments, part in results:
            merged = merged.merge(moments)
            parts.append(part)
        return merged, [part for part in parts if part is not None]

    @property
    def _keep(self) -> bool:
        """The Gram form needs all tangent vectors at once: there are few of them."""
        return self._objective.keep or self.gram

    def _each(self, function: Callable[[Part], Any]) -> Iterable[Any]:
        """Map a function over the chunks, decomposed."""
        objective, W = self._objective, self.point.factor
        if self._keep:
            return objective.map(function, self._parts)
        return objective.map(lambda k: function(objective.part(k, W)), range(len(objective.blocks)))

    @lazy
    def _parts(self) -> list[Part]:
        if self._keep:
            return self._first_pass[1]
        return [self._objective.part(k, self.point.factor) for k in range(len(self._objective.blocks))]

    @property
    def _moments(self) -> Moments:
        return self._first_pass[0]

    @property
    def gram(self) -> bool:
        """Whether there are fewer matrices than features."""
        m = self.point.factor.shape[0]
        return self._objective.n < m * (m + 1) // 2

    @lazy
    def _root(self) -> np.ndarray:
        """All centred tangent vectors, times the roots of their weights, (n, p)."""
        return np.concatenate([np.sqrt(p.target.weight) * self._Phi(p) for p in self._parts])

    @lazy
    def _gram_matrix(self) -> np.ndarray:
        return self._root @ self._root.T

    @lazy
    def _scatter(self) -> Scatter:
        return Scatter(self._root, self._root) if self.gram else Scatter(np.asarray(self._moments.C))

    @lazy
    def _norms(self) -> tuple[float, float]:
        """The squared norm of A, and the norm of C."""
        A, C = self._moments.A, self._gram_matrix if self.gram else self._moments.C
        return float(np.vdot(A, A)), sqrt(np.vdot(C, C))

    @property
    def _A_square(self) -> float:
        return self._norms[0]

    @property
    def _C_norm(self) -> float:
        return self._norms[1]

    # -- second pass: cotangents --------------------------------------------

    def _Phi(self, part: Part) -> np.ndarray:
        return part.features - self._moments.mean

    @lazy
    def _coefficients(self) -> tuple[float, float]:
        """What the cotangents have of Y A' and of Phi C; the sign makes f a misalignment."""
        A_square, C_norm = self._norms
        scale = -2 / (C_norm * self._objective.target_norm)
        return scale, -scale * A_square / C_norm**2

    @lazy
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """C and A, times these."""
        scale, other = self._coefficients
        return other * np.asarray(self._moments.C), scale * self._moments.A

    def _cotangent(self, part: Part) -> np.ndarray:
        """Derivative of the misalignment in the features of a chunk."""
        Y, w = part.target
        if not self.gram:
            return part.decomposition.cotangents(self._moments.mean, Y, w, *self._factors)
        scale, other = self._coefficients
        rows = (np.sqrt(w) * other) * (self._gram_matrix[part.rows] @ self._root)
        return rows + (scale * w) * (Y @ self._moments.A.T)


class _Move:
    """How the moments and the cotangents change when the point moves along ``eta``."""

    def __init__(self, here: Evaluation, eta: np.ndarray):
        self._here = here
        self.Phi_dot = list(here._objective.map(lambda p: vech(p.log.push(eta)), here._parts))
        parts, weights = here._parts, [p.target.weight for p in here._parts]
        total = here._moments.weight
        self.mean = sum((w * v).sum(axis=0) for w, v in zip(weights, self.Phi_dot, strict=True)) / total
        pairs = list(zip(parts, self.Phi_dot, strict=True))
        self.A = sum((p.target.weight * v).T @ p.target.Y for p, v in pairs)
        # <C, dC> = 2 sum w_i dPhi_i . (Phi C)_i, in either form of C
        inner = sum(np.vdot(p.target.weight * v, here._scatter.rows(here._Phi(p))) for p, v in pairs)
        self.C_norm = float(2 * inner / here._C_norm)
        self.A_square = float(2 * np.vdot(here._moments.A, self.A))
        self.scatter = self._scatter(pairs)

    def _scatter(self, pairs: list[tuple[Part, np.ndarray]]) -> Scatter:
        here = self._here
        if not here.gram:
            half = sum((p.target.weight * v).T @ here._Phi(p) for p, v in pairs)
            return Scatter(half + half.T)
        Phi = np.concatenate([here._Phi(p) for p, _ in pairs])
        w_dot = np.concatenate([p.target.weight * (v - self.mean) for p, v in pairs])
        w = np.concatenate([p.target.weight for p, _ in pairs])
        return Scatter(np.concatenate([w_dot, w * Phi]), np.concatenate([Phi, w_dot / w]))

    def cotangent_derivative(self, part: Part, Phi_dot: np.ndarray) -> np.ndarray:
        here = self._here
        a, c = here._A_square, here._C_norm
        Y, w = part.target
        Phi = here._Phi(part)
        ratio, ratio_dot = a / c**2, self.A_square / c**2 - 2 * a * self.C_norm / c**3
        C_dot_rows = here._scatter.rows(Phi_dot - self.mean) + self.scatter.rows(Phi)
        bracket = Y @ self.A.T - ratio_dot * here._scatter.rows(Phi) - ratio * C_dot_rows
        return here._coefficients[0] * w * bracket - (self.C_norm / c) * here._cotangent(part)


def _sum(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Add arrays in their order; one array is its own sum."""
    return reduce(np.add, arrays)


def _tangent(xi: np.ndarray) -> np.ndarray:
    """Remove what rounding put outside the tangent space.

    f(cG) = f(G), so gradients and Hessian-vector products have no trace; a trace left in
    by rounding would let det(G) drift.
    """
    d = xi.shape[0]
    xi = (xi + xi.T) / 2
    diagonal = xi.reshape(-1)[:: d + 1]  # a view
    diagonal -= diagonal.sum() / d
    return xi
