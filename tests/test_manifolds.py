"""The ball of reference points: distances, coordinates, geodesics."""

import numpy as np
import pytest

import literal
from random_matrices import rank_coordinates, spd, symmetric
from spdmetric.linalg.symmetric import expm
from spdmetric.manifolds import Ball, RankBall


def reference(point):
    return np.linalg.inv(point.factor.T @ point.factor)


def test_far_out_the_factor_keeps_its_digits(rng):
    """At radius 30 the log-eigenvalues of W G0 W' are -s; the symmetric factor would lose four digits."""
    G0, S = spd(rng, 6), symmetric(rng, 6, traceless=True)
    S *= 30 / np.linalg.norm(S)
    point = Ball(G0, 30.0).point(S)
    A = point.factor @ G0 @ point.factor.T
    expected = np.exp(-np.linalg.eigvalsh(S))
    np.testing.assert_allclose(np.diag(A), expected, rtol=1e-11)


def test_geodesic_is_equation_6(rng):
    G0, S, step = spd(rng, 4), symmetric(rng, 4), symmetric(rng, 4)
    ball = Ball(G0, 100.0)
    here = ball.point(S)
    there = ball.geodesic(here, 0.3 * step)
    G = reference(here)
    inverse = np.linalg.inv(here.factor)
    xi = inverse @ here.push(step) @ inverse.T  # the tangent vector of P_d at G
    np.testing.assert_allclose(reference(there), literal.geodesic_step(G, xi, 0.3), rtol=1e-9)


@pytest.mark.parametrize("move", ["retract", "geodesic"])
def test_moves_far_out_keep_the_factor_graded(move, rng):
    """At radius 40 a factor whose rows ascend instead of descend has no digits left."""
    S = symmetric(rng, 6, traceless=True)
    S *= 39.9 / np.linalg.norm(S)
    ball = Ball(np.eye(6), 40.0)
    there = getattr(ball, move)(ball.point(S), 1e-9 * S)
    rows = np.linalg.norm(there.factor, axis=1)
    assert np.all(np.diff(rows) < 0)
    np.testing.assert_allclose(np.log(rows), -np.linalg.eigvalsh(S) / 2, atol=1e-4)


def literally_preconditioned(point, curvature, gradient):
    """Multiply by the root of the root of sinhc, solve ``(B X + X B) / 2 = .``, and multiply again."""
    (s, P), d, one = np.linalg.eigh(point.S), len(gradient), np.eye(len(gradient))
    gap = (s[:, None] - s) / 2
    root = np.where(gap == 0, 1.0, np.sinh(gap) / np.where(gap == 0, 1.0, gap)) ** 0.25
    hat = root * (P.T @ gradient @ P)
    trace = np.trace(hat) / d * one
    even = np.linalg.solve(
        np.kron(curvature, one) + np.kron(one, curvature), 2 * (hat - trace).ravel()
    ).reshape(d, d)
    return P @ (root * (even - np.trace(even) / d * one + trace)) @ P.T


def test_preconditioned_gradients_are_those_of_the_formula(rng):
    for length in (0.0, 1e-3, 4.0):
        S = symmetric(rng, 5)
        point, curvature = Ball(np.eye(5), 10.0).point(length * S / np.linalg.norm(S)), spd(rng, 1, 5)[0]
        known = np.linalg.eigh(curvature)
        gradient, along_trace, across = symmetric(rng, 5), np.eye(5), symmetric(rng, 5, traceless=True)
        np.testing.assert_allclose(
            point.precondition(gradient, known),
            literally_preconditioned(point, curvature, gradient),
            atol=1e-12,
        )
        # The trace, along which nothing is learned, is kept apart.
        np.testing.assert_allclose(point.precondition(along_trace, known), along_trace, atol=1e-13)
        assert np.trace(point.precondition(across, known)) == pytest.approx(0.0, abs=1e-12)


def symmetric_coordinates(S):
    """S itself, of the coordinates that a point of low rank keeps."""
    m, d = S.shape
    full = np.zeros((d, d))
    full[:m, :m], full[:m, m:], full[m:, :m] = S[:, :m], S[:, m:] / np.sqrt(2), S[:, m:].T / np.sqrt(2)
    return full


@pytest.mark.parametrize(("m", "d"), [(1, 5), (2, 6), (3, 4), (4, 4), (3, 9)])
@pytest.mark.parametrize("apart", [True, False])
def test_a_point_of_low_rank_is_made_of_rows_of_the_exponential(m, d, apart, rng):
    S = rank_coordinates(rng, m, d)
    S[:, m:] *= apart  # without it the factor stays on its axes
    full, point = symmetric_coordinates(S), RankBall(d, m, 10.0).point(S)
    np.testing.assert_allclose(point.factor, expm(-full / 2)[:m], atol=1e-13 * np.exp(np.linalg.norm(S) / 2))
    assert np.linalg.norm(S) == pytest.approx(np.linalg.norm(full))
    assert point.spread == pytest.approx(np.ptp(np.linalg.eigvalsh(full)))


def test_low_rank_in_a_large_space(rng):
    """A step of 1e-6 in a space of 2000 dimensions: nothing of size d x d is needed."""
    ball, E = RankBall(2000, 3, 10.0), rng.standard_normal((3, 2000))
    S, eta = rank_coordinates(rng, 3, 2000) / 50, rank_coordinates(rng, 3, 2000) / 50
    here, h = ball.point(S), 1e-6
    along = np.vdot(here.gradient(E), eta)
    moved = (ball.point(S + h * eta).factor - ball.point(S - h * eta).factor) / (2 * h)
    assert along == pytest.approx(np.vdot(E, moved), rel=1e-6)
