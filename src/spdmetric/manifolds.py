"""Geometry of the parameter: where the reference point G is searched.

G lives on P_d, the SPD matrices, with the affine-invariant metric, inside the ball ``delta_r(G0, G) <=
radius``. (The *data* are compared with another geometry, the LogEuclidean metric at G: see
`spdmetric.geometry`.)

The normal coordinates S at G0 cover P_d: every G is ``W0^-1 exp(S) W0^-T`` with ``W0'W0 = G0^-1``, and
``delta_r(G0, G)`` is the Frobenius norm of S.  The ball is a Euclidean ball, and bringing a point back into
it is a scaling of S.  Points and balls take complex coordinates too; `ProductBall` shows them to solvers as
real ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import hypot, inf, sqrt
from typing import Any

import numpy as np

from spdmetric.linalg.batch import Views
from spdmetric.linalg.hermitian import to_complex, to_real
from spdmetric.linalg.symmetric import Array, exp_slope, expm, is_complex, powm, sinhc, symmetrize


class BallPoint:
    """A point G of the ball, by its normal coordinates ``S = P diag(s) P'`` at the center.

    *Coordinate* vectors are changes of S. *Frame* vectors xi belong to the factor ``W = diag(exp(-s/2)) P'
    W0``: they move W to ``exp(-xi/2) W``, G along its geodesic, and their affine-invariant length is their
    Frobenius norm.

    The eigenvalues s ascend, so the factor is graded by rows, the largest first: far out, the symmetric
    ``exp(-S/2) W0`` would drown small eigenvalues of ``W X W'`` in rounding.  Outside the ball of a radius,
    the point is brought back toward the center.
    """

    low_rank = False

    def __init__(self, s: np.ndarray, P: np.ndarray, root: np.ndarray, radius: float = inf):
        length = sqrt(s @ s)
        if length > radius:
            s = s * (radius / length)
        self._s, self._P = s, P
        self._root, self.square = root, float(s @ s)  # of the distance from the center
        self.factor = np.exp(-s / 2)[:, None] * (P.conj().T @ root)  # (d, d)
        S = (P * s) @ P.conj().T
        self.S = (S + S.conj().T) / 2  # normal coordinates, (d, d)
        half = s / 2
        self._sinhc = sinhc(half[:, None] - half)

    def gradient(self, derivative: Array) -> Array:
        """Gradient in coordinates, given that in the frame: by the adjoint of `push`."""
        return self._P @ (self._sinhc * derivative) @ self._P.conj().T

    def scaled(self, share: float) -> BallPoint:
        """The point at a share of the distance from the center."""
        return BallPoint(self._s * share, self._P, self._root)

    @property
    def spread(self) -> float:
        """Largest less smallest eigenvalue of S: the logarithm of its condition number once exponentiated."""
        return float(self._s[-1] - self._s[0])

    @property
    def frame(self) -> np.ndarray:
        """Orthogonal matrix P: ``P W`` is ``exp(-S/2) W0``, which moves as smoothly as S."""
        return self._P

    def push(self, eta: Array) -> Array:
        """Frame vector of a coordinate vector."""
        return self._sinhc * (self._P.conj().T @ eta @ self._P)

    def riemannian_gradient(self, gradient: Array) -> Array:
        """Coordinate vector of the affine-invariant gradient: `gradient` undone, then `push` undone."""
        return self._P @ ((self._P.conj().T @ gradient @ self._P) / self._sinhc**2) @ self._P.conj().T

    def orthonormal_gradient(self, gradient: Array) -> Array:
        """The gradient in the frame, on the axes of S: `gradient` undone, and the frame turned back."""
        return self._P @ ((self._P.conj().T @ gradient @ self._P) / self._sinhc) @ self._P.conj().T

    def norm(self, gradient: Array) -> float:
        """Affine-invariant length of a gradient given in coordinates."""
        v = (self._P.conj().T @ gradient @ self._P) / self._sinhc
        return sqrt(np.vdot(v, v).real)

    def precondition(self, gradient: np.ndarray, curvature: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Inverse curvature, about, times a gradient: a step.

        Along a frame vector xi a function bends about as ``<xi, B xi>``, given the eigenvalues and vectors of
        an estimate B, (d, d): in its eigenbasis the inverse is a scaling of entries.  The trace is left, so
        that det(G) stays.  Far from the center the function is flatter, about as the root of ``sinhc``: that
        needed the fewest evaluations.
        """
        P, d, flatness, (b, Q) = self._P, len(self._P), np.sqrt(np.sqrt(self._sinhc)), curvature
        X = Q.conj().T @ (flatness * (P.conj().T @ gradient @ P)) @ Q
        diagonal = X.reshape(-1)[:: d + 1]  # a view
        mean = sum(diagonal.tolist()) / d
        diagonal -= mean
        X *= 2 / (b[:, None] + b)
        diagonal += mean - sum(diagonal.tolist()) / d
        return P @ (flatness * (Q @ X @ Q.conj().T)) @ P.conj().T


class Ball:
    """The geodesic ball of SPD matrices around a center: all up to an affine-invariant distance from it."""

    def __init__(self, center: Array, radius: float):
        self.radius = radius
        self._root = root = powm(center, -0.5)
        self.center = BallPoint(np.zeros(len(root)), np.eye(len(root), dtype=root.dtype), root)

    def point(self, S: Array) -> BallPoint:
        """Return the point with normal coordinates ``S``."""
        return BallPoint(*np.linalg.eigh(S), self._root)

    def retract(self, point: BallPoint, step: Array) -> BallPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        return BallPoint(*np.linalg.eigh(point.S + step), self._root, self.radius)

    def geodesic(self, point: BallPoint, step: Array) -> BallPoint:
        """Follow the geodesic in direction ``step``, Eq. (6) of [Yger2015]_; outside, return to the ball."""
        s, P, xi = point._s, point._P, point.push(step)
        # Past this length, far outside of any ball, exponentials leave float64: no solver wants to go there.
        xi = xi * min(1.0, 600 / max(sqrt(np.vdot(xi, xi).real), 1e-300))
        # exp(S') = (E exp(S/2))' (E exp(S/2)) with E = exp(xi/2): its singular values keep
        # twice the digits that the eigenvalues of the product would.
        _, sigma, Qt = np.linalg.svd(expm(xi / 2) * np.exp(s / 2))
        # Singular values descend; a factor keeps its digits only if s ascends.
        return BallPoint(2 * np.log(sigma[::-1]), P @ Qt.conj().T[:, ::-1], self._root, self.radius)


# -- Factors of low rank ------------------------------------------------------


class RankPoint:
    """The first m rows of ``exp(-S/2)``: a factor of rank m.

    At S = 0 it is the first m axes, which should be a good start.  ``S = [A B; B' 0]`` has rank 2m at most,
    so with ``B' = Q R`` everything happens in matrices of that size (``docs/math.md``, "Low rank").
    Coordinates are kept as ``[A, sqrt(2) B]``, (m, d), whose Frobenius norm is that of S.
    """

    low_rank = True

    def __init__(self, S: np.ndarray):
        m = len(S)
        self.S, self.square = S, float(np.vdot(S, S).real)
        self._Q, R = np.linalg.qr(S[:, m:].conj().T / sqrt(2.0))  # (d - m, r), (r, m)
        T = np.zeros((m + len(R), m + len(R)), S.dtype)
        T[:m, :m], T[m:, :m], T[:m, m:] = S[:, :m], R, R.conj().T
        self._s, self._P = np.linalg.eigh(T)
        E = (self._P[:m] * np.exp(-self._s / 2)) @ self._P.conj().T  # (m, m + r)
        self.factor = np.concatenate([E[:, :m], E[:, m:] @ self._Q.conj().T], axis=1)  # (m, d)

    def scaled(self, share: float) -> RankPoint:
        """The point at a share of the coordinates."""
        return RankPoint(self.S * share)

    def widened(self, rank: int) -> RankPoint:
        """More rows of the same ``exp(-S/2)``: the factor of a higher rank."""
        m, d = self.S.shape
        S = np.zeros((rank, d), self.S.dtype)
        S[:m, :m], S[:m, m:] = self.S[:, :m], self.S[:, m:] / sqrt(2.0)
        S[m:, :m] = S[:m, m:rank].conj().T
        S[:, rank:] *= sqrt(2.0)
        return RankPoint(S)

    @property
    def spread(self) -> float:
        """Largest less smallest eigenvalue of S."""
        others = 0.0 if self.factor.shape[1] > len(self._s) else self._s[0]
        return float(max(self._s[-1], others) - min(self._s[0], others))

    @property
    def frame(self) -> np.ndarray:
        """The identity: rows of ``exp(-S/2)`` move smoothly as they are."""
        return np.eye(len(self.S), dtype=self.S.dtype)

    def gradient(self, derivative: Array) -> Array:
        """Gradient in coordinates, given the derivative in the entries of the factor, (m, d).

        With zeros for the rows that were left out it goes, symmetrized, through the derivative of exp(-S/2),
        which is self-adjoint.  What of it lies outside the range of S meets the eigenvalue 0 there.
        """
        m, x, G = len(self.S), -self._s / 2, derivative
        inside = G[:, m:] @ self._Q
        outside = G[:, m:] - inside @ self._Q.conj().T
        Z = np.zeros_like(self._P)
        Z[:m, :m], Z[:m, m:] = G[:, :m], inside
        slopes = exp_slope(x[:, None], x) * (self._P.conj().T @ symmetrize(Z) @ self._P)
        K = self._P @ slopes @ self._P.conj().T
        to_zero = (self._P[:m] * exp_slope(x, np.zeros_like(x))) @ self._P[:m].conj().T  # (m, m)
        B = K[:m, m:] @ self._Q.conj().T + to_zero @ outside / 2
        return np.concatenate([-symmetrize(K[:m, :m]) / 2, -B / sqrt(2.0)], axis=1)

    def riemannian_gradient(self, gradient: Array) -> Array:
        """The gradient itself: at low rank, steepest descent is that of the coordinates."""
        return gradient

    orthonormal_gradient = riemannian_gradient

    def norm(self, gradient: Array) -> float:
        """Length of a gradient, in coordinates."""
        return sqrt(np.vdot(gradient, gradient).real)

    def precondition(self, gradient: np.ndarray, curvature: Any) -> np.ndarray:
        """Gradients as they are: rotated, they would leave the coordinates of this rank."""
        return gradient


class RankBall:
    """Factors of rank m around the first m axes of R^d, up to a norm of the coordinates."""

    def __init__(self, d: int, rank: int, radius: float, dtype: Any = np.float64):
        self.radius, self.center = radius, RankPoint(np.zeros((rank, d), dtype))

    def point(self, S: Array) -> RankPoint:
        """Return the point with coordinates ``S``, (m, d)."""
        return RankPoint(S)

    def retract(self, point: RankPoint, step: Array) -> RankPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        S = point.S + step
        length = sqrt(np.vdot(S, S).real)
        return self.point(S * (self.radius / length) if length > self.radius else S)

    geodesic = retract  # geodesics of P_d leave this set


# -- Hermitian matrices, and several views ------------------------------------


class ProductPoint:
    """A point of each view: coordinates of all, complex ones as real ones, side by side in one array S."""

    def __init__(self, views: Iterable[Any], scales: tuple[float, ...] | None):
        self.views, self.scales = tuple(views), scales  # None: of one stack, whose factor is an array
        self.low_rank = self.views[0].low_rank
        self.factor = self._together(view.factor for view in self.views)
        self.S = self._join(view.S for view in self.views)

    def _together(self, parts: Iterable[np.ndarray]) -> Any:
        parts = tuple(parts)
        return parts[0] if self.scales is None else Views(parts, self.scales)

    def _join(self, coordinates: Iterable[np.ndarray]) -> np.ndarray:
        blocks = [to_real(S) / sqrt(2.0) if is_complex(S) else S for S in coordinates]
        stops = np.cumsum([block.shape[1] for block in blocks])
        joined = np.zeros((max(map(len, blocks)), stops[-1]))
        for block, stop in zip(blocks, stops, strict=True):
            joined[: len(block), stop - block.shape[1] : stop] = block
        return joined

    def split(self, S: np.ndarray) -> list[np.ndarray]:
        """Coordinates of each view, complex where those of its point are."""
        blocks, stop = [], 0
        for view in self.views:
            rows, columns = np.multiply(view.S.shape, 2 if is_complex(view.S) else 1).tolist()
            block = S[:rows, stop : stop + columns]
            blocks.append(to_complex(block) * sqrt(2.0) if is_complex(view.S) else block)
            stop += columns
        return blocks

    def _parts(self, S: np.ndarray) -> Iterable[tuple[BallPoint | RankPoint, np.ndarray]]:
        return zip(self.views, self.split(S), strict=True)

    def gradient(self, derivative: Any) -> Array:
        """Gradient in coordinates, given the derivative that each view asks for."""
        parts = [derivative] if self.scales is None else derivative.views
        return self._join(view.gradient(part) for view, part in zip(self.views, parts, strict=True))

    def riemannian_gradient(self, gradient: Array) -> Array:
        """Coordinate vector of the affine-invariant gradient."""
        return self._join(view.riemannian_gradient(part) for view, part in self._parts(gradient))

    def orthonormal_gradient(self, gradient: Array) -> Array:
        """The gradients in the frames, turned back."""
        return self._join(view.orthonormal_gradient(part) for view, part in self._parts(gradient))

    def norm(self, gradient: Array) -> float:
        """Length of a gradient on the product of the manifolds."""
        return hypot(*(view.norm(part) for view, part in self._parts(gradient)))

    def precondition(self, gradient: np.ndarray, curvature: Any) -> np.ndarray:
        """A step of each view, by its own curvature."""
        curvatures = [curvature] if self.scales is None else curvature.views
        both = zip(self._parts(gradient), curvatures, strict=True)
        return self._join(view.precondition(part, own) for (view, part), own in both)

    def widened(self, *ranks: int) -> ProductPoint:
        """More rows for each view, which is of low rank."""
        return ProductPoint((view.widened(m) for view, m in zip(self.views, ranks, strict=True)), self.scales)

    @property
    def spread(self) -> float:
        """The largest of the views."""
        return max(view.spread for view in self.views)

    @property
    def frame(self) -> Any:
        """Those of the views."""
        return self._together(view.frame for view in self.views)


class ProductBall:
    """The ball of a product of manifolds, those of the views of infinite radius: squared distances add up."""

    def __init__(self, balls: Iterable[Any], scales: tuple[float, ...] | None, radius: float):
        self._balls, self._scales, self.radius = tuple(balls), scales, radius
        self.center = ProductPoint((ball.center for ball in self._balls), scales)

    def point(self, S: Array) -> ProductPoint:
        """Return the point with coordinates ``S``; of each view the nearest ones are taken."""
        blocks = zip(self._balls, self.center.split(S), strict=True)
        return ProductPoint((ball.point(block) for ball, block in blocks), self._scales)

    def retract(self, point: ProductPoint, step: Array) -> ProductPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        return self._inside(ball.retract(*part) for ball, *part in self._of_views(point, step))

    def geodesic(self, point: ProductPoint, step: Array) -> ProductPoint:
        """Follow the geodesic of each view; outside the ball, return to it toward the center."""
        return self._inside(ball.geodesic(*part) for ball, *part in self._of_views(point, step))

    def _of_views(self, point: ProductPoint, step: Array) -> Iterable[Any]:
        return zip(self._balls, point.views, point.split(step), strict=True)

    def _inside(self, points: Iterable[Any]) -> ProductPoint:
        views = list(points)
        length = sqrt(sum(view.square for view in views))
        if length > self.radius:
            views = [view.scaled(self.radius / length) for view in views]
        return ProductPoint(views, self._scales)


FactorPoint = BallPoint | RankPoint | ProductPoint
