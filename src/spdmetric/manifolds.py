"""Geometry of the parameter: where the reference point G is searched.

G lives on P_d, the SPD matrices, with the affine-invariant metric, inside the ball
``delta_r(G0, G) <= radius``.  (The *data* are compared with another geometry, the
LogEuclidean metric at G: see `spdmetric.geometry`.)

P_d has no positive curvature, so the normal coordinates S at G0 cover it: every G is
``W0^-1 exp(S) W0^-T`` with ``W0'W0 = G0^-1``, and ``delta_r(G0, G)`` is the Frobenius norm
of S.  The ball is a Euclidean ball, and bringing a point back into it is a scaling of S.

The same holds for Hermitian matrices: points and balls take complex coordinates, and `ComplexBall` shows
them to solvers as real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import hypot, sqrt
from typing import Any

import numpy as np

from spdmetric.linalg.batch import Factors, PerView
from spdmetric.linalg.hermitian import to_complex, to_real
from spdmetric.linalg.symmetric import (
    Array,
    Spectrum,
    exp_slope,
    expm,
    invsqrtm,
    sinhc,
    spectrum,
    symmetrize,
)


class BallPoint:
    """A point G of the ball, by its normal coordinates ``S = P diag(s) P'`` at the center.

    Two kinds of tangent vectors meet here.  *Coordinate* vectors are changes of S. *Frame* vectors xi belong
    to the factor ``W = diag(exp(-s/2)) P' W0``: they move W to ``exp(-xi/2) W``, G along its geodesic, and
    their affine-invariant length is their Frobenius norm.  `push` turns coordinate vectors into frame
    vectors, `gradient` turns gradients in the frame into gradients in the coordinates.

    The eigenvalues s ascend, so the factor is graded by rows, the largest first.  The
    symmetric ``exp(-S/2) W0`` is another factor of the same G, but far out it drowns small
    eigenvalues of ``W X W'`` in rounding.
    """

    low_rank = False

    def __init__(self, coordinates: Spectrum, root: np.ndarray):
        s, P = self._s, self._P = coordinates
        self._root, self.square = root, float(s @ s)  # of the distance from the center
        self.factor = np.exp(-s / 2)[:, None] * (P.conj().T @ root)  # (d, d)
        S = (P * s) @ P.conj().T
        self.S = (S + S.conj().T) / 2  # normal coordinates, (d, d)
        half = s / 2
        self._sinhc = sinhc(half[:, None] - half)

    def gradient(self, function: Any) -> Array:
        """Gradient of a function of the factor in coordinates: that in the frame by the adjoint of `push`."""
        return self._P @ (self._sinhc * function.frame_gradient) @ self._P.conj().T

    @property
    def coordinates(self) -> np.ndarray:
        """Eigenvectors and, in the last column, eigenvalues of S, (d, d + 1): what a file needs to keep."""
        return np.column_stack([self._P, self._s])

    def scaled(self, share: float) -> BallPoint:
        """The point at a share of the distance from the center."""
        return BallPoint(Spectrum(self._s * share, self._P), self._root)

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

    def preconditioner(self, curvature: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Inverse curvature, about, as a function that makes a step of a gradient.

        Along a frame vector xi a function bends about as ``<xi, B xi>``, B the given estimate of its
        curvature, (d, d); in its eigenbasis the inverse of ``xi -> (B xi + xi B) / 2`` is a scaling of
        entries.  The trace is left, so that det(G) stays.  Far from the center the function is flatter where
        the eigenvalues of S differ more, about as the root of ``sinhc``: this power needed the fewest
        evaluations, on toys of size 8 and 20 and on EEG.
        """
        P, d, flatness = self._P, len(self._P), np.sqrt(np.sqrt(self._sinhc))
        b, Q = np.linalg.eigh(curvature)
        scale = 2 / (b[:, None] + b)

        def precondition(gradient: np.ndarray) -> np.ndarray:
            X = Q.conj().T @ (flatness * (P.conj().T @ gradient @ P)) @ Q
            diagonal = X.reshape(-1)[:: d + 1]  # a view
            mean = sum(diagonal.tolist()) / d
            diagonal -= mean
            X *= scale
            diagonal += mean - sum(diagonal.tolist()) / d
            return P @ (flatness * (Q @ X @ Q.conj().T)) @ P.conj().T

        return precondition


class Ball:
    """The geodesic ball of SPD matrices around a center: all up to an affine-invariant distance from it."""

    def __init__(self, center: Array, radius: float):
        self.radius = radius
        self._root = invsqrtm(center)

    @property
    def center(self) -> BallPoint:
        """The center of the ball."""
        d = len(self._root)
        return BallPoint(Spectrum(np.zeros(d), np.eye(d, dtype=self._root.dtype)), self._root)

    def point(self, S: Array) -> BallPoint:
        """Return the point with normal coordinates ``S``."""
        return BallPoint(spectrum(S), self._root)

    def retract(self, point: BallPoint, step: Array) -> BallPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        return self._inside(spectrum(point.S + step))

    def geodesic(self, point: BallPoint, step: Array) -> BallPoint:
        """Follow the geodesic of P_d that leaves in direction ``step``, Eq. (6) of [Yger2015]_.

        Outside the ball, return to it along the geodesic to the center: to the nearest point.
        """
        s, P, xi = point._s, point._P, point.push(step)
        # Past this length, far outside of any ball, exponentials leave float64: no solver wants to go there.
        xi = xi * min(1.0, 600 / max(sqrt(np.vdot(xi, xi).real), 1e-300))
        # exp(S') = (E exp(S/2))' (E exp(S/2)) with E = exp(xi/2): its singular values keep
        # twice the digits that the eigenvalues of the product would.
        _, sigma, Qt = np.linalg.svd(expm(xi / 2) * np.exp(s / 2))
        # Singular values descend; a factor keeps its digits only if s ascends.
        return self._inside(Spectrum(2 * np.log(sigma[::-1]), P @ Qt.conj().T[:, ::-1]))

    def _inside(self, coordinates: Spectrum) -> BallPoint:
        s, P = coordinates
        length = sqrt(s @ s)
        if length > self.radius:
            s = s * (self.radius / length)
        return BallPoint(Spectrum(s, P), self._root)


# -- Factors of low rank ------------------------------------------------------


class RankPoint:
    """The first m rows of ``exp(-S/2)``: a factor of rank m.

    At S = 0 it is the first m axes, so the data must come in coordinates whose first m axes are a good start.
    The block of S that concerns only the other axes is zero: what is left, ``S = [A B; B' 0]``, has as many
    dimensions as there are factors of rank m up to rotation.  It has rank 2m at most, so with ``B' = Q R``
    everything happens in matrices of that size (``docs/math.md``, "Low rank").

    Coordinates are kept as ``[A, sqrt(2) B]``, (m, d), whose Frobenius norm is that of S.
    """

    low_rank = True

    def __init__(self, S: np.ndarray):
        m = len(S)
        self.S, self.square = S, float(np.vdot(S, S).real)
        self._Q, R = np.linalg.qr(S[:, m:].conj().T / sqrt(2.0))  # (d - m, r), (r, m)
        T = np.zeros((m + len(R), m + len(R)), S.dtype)
        T[:m, :m], T[m:, :m], T[:m, m:] = S[:, :m], R, R.conj().T
        self._s, self._P = spectrum(T)
        E = (self._P[:m] * np.exp(-self._s / 2)) @ self._P.conj().T  # (m, m + r)
        self.factor = np.concatenate([E[:, :m], E[:, m:] @ self._Q.conj().T], axis=1)  # (m, d)

    @property
    def coordinates(self) -> np.ndarray:
        """All that a file needs to keep, (m, d)."""
        return self.S

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

    def gradient(self, function: Any) -> Array:
        """Gradient of a function of the factor, in coordinates.

        The derivative of exp(-S/2) is self-adjoint, so the gradient in the factor, with
        zeros for the rows that were left out, goes through it symmetrized.  What of it lies
        outside the range of S meets the eigenvalue 0 there.
        """
        m, x = len(self.S), -self._s / 2
        G = function.factor_gradient
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

    def preconditioner(self, curvature: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Gradients as they are: rotated, they would leave the coordinates of this rank."""
        return lambda gradient: gradient


class RankBall:
    """Factors of rank m around the first m axes of R^d, up to a norm of the coordinates."""

    def __init__(self, d: int, rank: int, radius: float, dtype: Any = np.float64):
        self.d, self.rank, self.radius, self.dtype = d, rank, radius, dtype

    @property
    def center(self) -> RankPoint:
        """The first m axes."""
        return self.point(np.zeros((self.rank, self.d), self.dtype))

    def point(self, S: Array) -> RankPoint:
        """Return the point with coordinates ``S``, (m, d)."""
        return RankPoint(S)

    def retract(self, point: RankPoint, step: Array) -> RankPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        S = point.S + step
        length = sqrt(np.vdot(S, S).real)
        return self.point(S * (self.radius / length) if length > self.radius else S)

    geodesic = retract  # geodesics of P_d leave this set


# -- Hermitian matrices -------------------------------------------------------


class ComplexPoint:
    """A point of complex coordinates as solvers see it: by real ones of the same norm."""

    def __init__(self, point: BallPoint | RankPoint):
        self.point: Any = point
        self.S = _to_coordinates(point.S)  # (2d, 2d), or (2m, 2d)

    def __getattr__(self, name: str) -> Any:
        """What does not depend on coordinates is that of the point."""
        if name.startswith("__") or name == "point":  # asked of a point that is being made
            raise AttributeError(name)
        return getattr(self.point, name)

    def scaled(self, share: float) -> ComplexPoint:
        """The point at a share of the distance from the center."""
        return ComplexPoint(self.point.scaled(share))

    def widened(self, rank: int) -> ComplexPoint:
        """The factor of a higher rank."""
        return ComplexPoint(self.point.widened(rank))

    def gradient(self, function: Any) -> Array:
        """Gradient of a function of the factor, in coordinates."""
        return _to_coordinates(self.point.gradient(function))

    def riemannian_gradient(self, gradient: Array) -> Array:
        """Coordinate vector of the affine-invariant gradient."""
        return _to_coordinates(self.point.riemannian_gradient(_from_coordinates(gradient)))

    def orthonormal_gradient(self, gradient: Array) -> Array:
        """The gradient in the frame, turned back."""
        return _to_coordinates(self.point.orthonormal_gradient(_from_coordinates(gradient)))

    def norm(self, gradient: Array) -> float:
        """Length of a gradient."""
        return self.point.norm(_from_coordinates(gradient))

    def preconditioner(self, curvature: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """That of the point."""
        precondition = self.point.preconditioner(curvature)
        return lambda gradient: _to_coordinates(precondition(_from_coordinates(gradient)))


class ComplexBall:
    """A ball of Hermitian matrices, or of complex factors; reading coordinates brings them back to such."""

    def __init__(self, ball: Ball | RankBall):
        self._ball: Any = ball
        self.radius = ball.radius

    @property
    def center(self) -> ComplexPoint:
        """The center of the ball."""
        return ComplexPoint(self._ball.center)

    def point(self, S: Array) -> ComplexPoint:
        """Return the point with coordinates ``S``."""
        return ComplexPoint(self._ball.point(_from_coordinates(S)))

    def retract(self, point: ComplexPoint, step: Array) -> ComplexPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        return ComplexPoint(self._ball.retract(point.point, _from_coordinates(step)))

    def geodesic(self, point: ComplexPoint, step: Array) -> ComplexPoint:
        """Follow a geodesic; outside the ball, return to it."""
        return ComplexPoint(self._ball.geodesic(point.point, _from_coordinates(step)))


def _to_coordinates(S: np.ndarray) -> np.ndarray:
    return to_real(S) / sqrt(2.0)


def _from_coordinates(S: np.ndarray) -> np.ndarray:
    return to_complex(S) * sqrt(2.0)


# -- Several views ------------------------------------------------------------


class ViewPoint:
    """A point of each view; their coordinates are put side by side, in one array S."""

    def __init__(self, views: Iterable[Any], scales: tuple[float, ...]):
        self.views = tuple(views)
        self.factor = Factors(tuple(view.factor for view in self.views), scales)
        self.S = self._join(view.S for view in self.views)

    def split(self, S: np.ndarray) -> list[np.ndarray]:
        """What belongs to each view."""
        stops = np.cumsum([view.S.shape[1] for view in self.views])[:-1]
        return [part[: len(view.S)] for view, part in zip(self.views, np.split(S, stops, 1), strict=True)]

    def _join(self, blocks: Iterable[np.ndarray]) -> np.ndarray:
        joined = np.zeros((max(len(v.S) for v in self.views), sum(v.S.shape[1] for v in self.views)))
        for place, block in zip(self.split(joined), blocks, strict=True):
            place[...] = block
        return joined

    def gradient(self, function: Any) -> Array:
        """Gradient of a function of the factors, in coordinates."""
        return self._join(view.gradient(_OfView(function, v)) for v, view in enumerate(self.views))

    def riemannian_gradient(self, gradient: Array) -> Array:
        """Coordinate vector of the affine-invariant gradient."""
        return self._join(view.riemannian_gradient(part) for view, part in self._parts(gradient))

    def orthonormal_gradient(self, gradient: Array) -> Array:
        """The gradients in the frames, turned back."""
        return self._join(view.orthonormal_gradient(part) for view, part in self._parts(gradient))

    def norm(self, gradient: Array) -> float:
        """Length of a gradient on the product of the manifolds."""
        return hypot(*(view.norm(part) for view, part in self._parts(gradient)))

    def _parts(self, S: np.ndarray) -> Iterable[tuple[BallPoint | RankPoint, np.ndarray]]:
        return zip(self.views, self.split(S), strict=True)

    def preconditioner(self, curvature: PerView) -> Callable[[np.ndarray], np.ndarray]:
        """Those of the views, each for its own part."""
        of_views = [view.preconditioner(own) for view, own in zip(self.views, curvature, strict=True)]
        return lambda gradient: self._join(map(lambda f, part: f(part), of_views, self.split(gradient)))

    def widened(self, *ranks: int) -> ViewPoint:
        """More rows for each view, which is of low rank."""
        views: Iterable[Any] = self.views
        return ViewPoint((view.widened(m) for view, m in zip(views, ranks, strict=True)), self.factor.scales)

    @property
    def spread(self) -> float:
        """The largest of the views."""
        return max(view.spread for view in self.views)

    @property
    def frame(self) -> PerView:
        """Those of the views."""
        return PerView(view.frame for view in self.views)


class _OfView:
    """A function of several factors as one of the v-th."""

    def __init__(self, function: Any, v: int):
        self._function, self._v = function, v

    @property
    def frame_gradient(self) -> np.ndarray:
        return self._function.frame_gradient[self._v]

    @property
    def factor_gradient(self) -> np.ndarray:
        return self._function.factor_gradient[self._v]


class ViewBall:
    """The ball of a product of manifolds: squared distances of all views add up.

    The balls of the views are of infinite radius: one view may go further than another.
    """

    def __init__(self, balls: Iterable[Any], scales: tuple[float, ...], radius: float):
        self._balls, self._scales, self.radius = tuple(balls), scales, radius

    @property
    def center(self) -> ViewPoint:
        """The centers of all views."""
        return ViewPoint((ball.center for ball in self._balls), self._scales)

    def point(self, S: Array) -> ViewPoint:
        """Return the point with coordinates ``S``."""
        blocks = self.center.split(S)
        points = (ball.point(block) for ball, block in zip(self._balls, blocks, strict=True))
        return ViewPoint(points, self._scales)

    def retract(self, point: ViewPoint, step: Array) -> ViewPoint:
        """Follow a straight line of coordinates; outside the ball, return to it toward the center."""
        return self._inside(ball.retract(*part) for ball, *part in self._of_views(point, step))

    def geodesic(self, point: ViewPoint, step: Array) -> ViewPoint:
        """Follow the geodesic of each view; outside the ball, return to it toward the center."""
        return self._inside(ball.geodesic(*part) for ball, *part in self._of_views(point, step))

    def _of_views(self, point: ViewPoint, step: Array) -> Iterable[Any]:
        return zip(self._balls, point.views, point.split(step), strict=True)

    def _inside(self, points: Iterable[Any]) -> ViewPoint:
        views = list(points)
        length = sqrt(sum(view.square for view in views))
        if length > self.radius:
            views = [view.scaled(self.radius / length) for view in views]
        return ViewPoint(views, self._scales)


FactorPoint = BallPoint | RankPoint | ComplexPoint | ViewPoint
