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
from functools import cached_property, reduce
from typing import Any, NamedTuple, Protocol

import numpy as np

from spdmetric.geometry import chunks
from spdmetric.matrices import LogCongruence, congruence, symmetrize, unvech, vech


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

    @classmethod
    def of(cls, features: np.ndarray, target: Target, *, gram: bool) -> Moments:
        Y, w = target
        weight = w.sum()
        mean, target_mean = (w * features).sum(axis=0) / weight, (w * Y).sum(axis=0) / weight
        Phi = features - mean
        weighted = w * Phi
        C = 0.0 if gram else weighted.T @ Phi
        return cls(float(weight), mean, target_mean, weighted.T @ (Y - target_mean), C)

    def merge(self, other: Moments) -> Moments:
        """Moments of both chunks together [Chan1983]_: no cancellation."""
        weight = self.weight + other.weight
        share = other.weight / weight
        step, target_step = other.mean - self.mean, other.target_mean - self.target_mean
        across = self.weight * share
        return Moments(
            weight,
            self.mean + share * step,
            self.target_mean + share * target_step,
            self.A + other.A + across * np.outer(step, target_step),
            self.C + other.C + across * np.outer(step, step) if isinstance(self.C, np.ndarray) else self.C,
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

    @property
    def norm(self) -> float:
        """Frobenius norm of C (in the Gram form, of C = left' left)."""
        return float(np.linalg.norm(self.right if self.left is None else self.left @ self.left.T))


class Part(NamedTuple):
    """One chunk at one point: its matrices decomposed, and its tangent vectors."""

    X: np.ndarray  # (n_k, d, d)
    log: LogCongruence  # of W X W'
    features: np.ndarray  # (n_k, p), not centred
    target: Target


# ---------------------------------------------------------------------------
# The objective


class Misalignment:
    """``1 - f`` as a function of a factor W of the reference point.

    Parameters
    ----------
    X : ndarray of shape (n, d, d)
        SPD matrices.
    target : Target
        Centred targets and weights.
    chunk_size : int, optional
        Matrices handled at a time; all by default.
    map : callable, default=map
        Maps a function over chunks; the only parallel seam.
    """

    def __init__(
        self,
        X: np.ndarray,
        target: Target,
        *,
        chunk_size: int | None = None,
        map: Callable[..., Iterable[Any]] = map,
    ):
        self.target_norm = target.norm
        self.n = X.shape[0]
        self.map = map
        self._chunks = [(X[rows], target.part(rows)) for rows in chunks(X.shape[0], chunk_size)]

    def at(self, point: Point) -> Evaluation:
        """Return the lazy evaluation at a point."""
        return Evaluation(self, point)

    def parts(self, W: np.ndarray) -> list[Part]:
        """Decompose every chunk at W."""

        def part(chunk: tuple[np.ndarray, Target]) -> Part:
            X, target = chunk
            log = LogCongruence.of(congruence(W, X))
            return Part(X, log, vech(log.log.compose(log.log.values)), target)

        # Far out in the ball W X W' can leave float64: its logarithm is then NaN, see `alignment`.
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return list(self.map(part, self._chunks))


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

    @cached_property
    def alignment(self) -> float:
        """The centred kernel-target alignment f, between 0 and 1.

        Minus infinity where it cannot be computed, so that no solver goes there.
        """
        if not all(np.isfinite(part.features).all() for part in self._parts):
            return -np.inf
        return self._A_square / (self._C_norm * self._objective.target_norm)

    @property
    def spread(self) -> float:
        """Root mean square distance of the tangent vectors from their mean."""
        squares = sum(np.sum(p.target.weight * self._Phi(p) ** 2) for p in self._parts)
        return float(np.sqrt(squares / self._moments.weight))

    @cached_property
    def gradient(self) -> np.ndarray:
        """Gradient in the coordinates of the manifold."""
        return self.point.gradient(self)

    def hvp(self, eta: np.ndarray) -> np.ndarray:
        """Hessian in the coordinates of the manifold, applied to a vector."""
        return self.point.hvp(self, eta)

    @cached_property
    def frame_gradient(self) -> np.ndarray:
        """Riemannian gradient, as a symmetric matrix in the frame."""

        def pull(part: Part) -> np.ndarray:
            return part.log.pull(unvech(self._cotangent(part)))

        return _tangent(sum(self._objective.map(pull, self._parts)))

    @cached_property
    def factor_gradient(self) -> np.ndarray:
        """Derivative in the entries of the factor, (m, d)."""
        W = self.point.factor

        def pull(part: Part) -> np.ndarray:
            return part.log.pull_factor(unvech(self._cotangent(part)), W @ part.X)

        return np.asarray(sum(self._objective.map(pull, self._parts)))

    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Riemannian Hessian, applied to a tangent vector in the frame."""
        move = _Move(self, xi)

        def pull(part: Part, Phi_dot: np.ndarray) -> np.ndarray:
            M, M_dot = self._cotangent(part), move.cotangent_derivative(part, Phi_dot)
            return part.log.pull_derivative(xi, unvech(M), unvech(M_dot))

        return _tangent(sum(self._objective.map(pull, self._parts, move.Phi_dot)))

    # -- first pass: moments ------------------------------------------------

    @cached_property
    def _parts(self) -> list[Part]:
        return self._objective.parts(self.point.factor)

    @property
    def gram(self) -> bool:
        """Whether there are fewer matrices than features."""
        m = self.point.factor.shape[0]
        return self._objective.n < m * (m + 1) // 2

    @cached_property
    def _moments(self) -> Moments:
        gram = self.gram
        return reduce(Moments.merge, [Moments.of(p.features, p.target, gram=gram) for p in self._parts])

    @cached_property
    def _scatter(self) -> Scatter:
        if not self.gram:
            return Scatter(np.asarray(self._moments.C))
        root = np.concatenate([np.sqrt(p.target.weight) * self._Phi(p) for p in self._parts])
        return Scatter(root, root)

    @cached_property
    def _C_norm(self) -> float:
        return self._scatter.norm

    @cached_property
    def _A_square(self) -> float:
        return float(np.sum(self._moments.A**2))

    # -- second pass: cotangents --------------------------------------------

    def _Phi(self, part: Part) -> np.ndarray:
        return part.features - self._moments.mean

    @property
    def _scale(self) -> float:
        """The common factor of the cotangents; its sign makes f a misalignment."""
        return -2 / (self._C_norm * self._objective.target_norm)

    def _cotangent(self, part: Part) -> np.ndarray:
        """Derivative of the misalignment in the features of a chunk."""
        Y, w = part.target
        ratio = self._A_square / self._C_norm**2
        return self._scale * w * (Y @ self._moments.A.T - ratio * self._scatter.rows(self._Phi(part)))


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
        return here._scale * w * bracket - (self.C_norm / c) * here._cotangent(part)


def _tangent(xi: np.ndarray) -> np.ndarray:
    """Remove what rounding put outside the tangent space.

    f(cG) = f(G), so gradients and Hessian-vector products have no trace; a trace left in
    by rounding would let det(G) drift.
    """
    return symmetrize(xi) - np.trace(xi) / xi.shape[0] * np.eye(xi.shape[0])
