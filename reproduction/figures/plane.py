"""P_2 in pictures: coordinates for 2 x 2 matrices.

``[[a, b], [b, c]]`` is a point of space, and P_2 is the inside of the cone a c > b^2.
The matrices of one determinant form a surface in it, which geodesics do not leave and
which has constant negative curvature: a hyperbolic plane, whose pictures need no
projection.  Its points have two *normal coordinates* at a reference point G of the
surface, ``x = (l11 - l22)/sqrt(2)`` and ``y = sqrt(2) l12`` with ``l = log(G^-1/2 X G^-1/2)``;
``l`` has no trace, so the distance from the origin is delta_r(G, X).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from spdmetric.geometry import exp_map, log_map, matrices_at, tangent_vectors


def embedding(X: np.ndarray) -> np.ndarray:
    """Place matrices in space with the cone upright: shape (..., 3), Frobenius distances kept.

    The last coordinate is the trace, which is the axis of the cone, over sqrt(2).
    """
    a, b, c = X[..., 0, 0], X[..., 0, 1], X[..., 1, 1]
    return np.stack([a - c, 2 * b, a + c], axis=-1) / sqrt(2)


def dome(X: np.ndarray) -> np.ndarray:
    """Place matrices of determinant 1 in space with I on top, at the origin, and the others below."""
    return np.sqrt(2) * np.array([0, 0, 1]) + embedding(X) * np.array([1, 1, -1])


def normal_coordinates(X: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Coordinates x, y of matrices at a reference point, the trace left out: shape (..., 2)."""
    v = tangent_vectors(X, reference)  # l11, sqrt(2) l12, l22
    return np.stack([(v[..., 0] - v[..., 2]) / sqrt(2), v[..., 1]], axis=-1)


def at_normal_coordinates(xy: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Matrices, of the determinant of ``reference``, that have the given `normal_coordinates`."""
    x, y = np.moveaxis(np.asarray(xy, dtype=float), -1, 0)
    return matrices_at(np.stack([x / sqrt(2), y, -x / sqrt(2)], axis=-1), reference)


def traceless(xy: np.ndarray) -> np.ndarray:
    """Symmetric matrices without trace, whose Frobenius norms are those of the given x, y."""
    x, y = np.moveaxis(np.asarray(xy, dtype=float), -1, 0)
    return np.stack([np.stack([x, y], axis=-1), np.stack([y, -x], axis=-1)], axis=-2) / sqrt(2)


def circle(n: int) -> np.ndarray:
    """Points of the unit circle, the last one the first: shape (n, 2)."""
    angle = np.linspace(0, 2 * np.pi, n)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)


def segment(A: np.ndarray, B: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Points of the straight line through A (t = 0) and B (t = 1)."""
    return A + t[:, None, None] * (B - A)


def geodesic(A: np.ndarray, B: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Points of the affine-invariant geodesic through A (t = 0) and B (t = 1)."""
    return exp_map(t[:, None, None] * log_map(B, A), A)
