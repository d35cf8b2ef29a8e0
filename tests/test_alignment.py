"""The objective and its derivatives: the paper transcribed, Taylor slopes, invariances."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import literal
from random_matrices import labeled, rank_coordinates, rotation, spd, symmetric
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, expm, invsqrtm, logm
from spdmetric.linalg.threads import chunks
from spdmetric.manifolds import Ball, RankBall
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data


def at_factor(objective, W):
    return objective.at(SimpleNamespace(factor=W))


def slope(h, remainder):
    return np.polyfit(np.log(h), np.log(remainder), 1)[0]


# -- against the paper --------------------------------------------------------------


def test_value_and_gradient_of_the_paper(rng):
    """n^2 Frechet derivatives by the block method, against n eigenproblems."""
    X, codes = labeled(rng, 8, 4)
    y = np.where(codes == 0, 1.0, -1.0)
    G = spd(rng, 4)
    here = at_factor(Misalignment(Data(X, ClassTarget.from_codes(codes))), invsqrtm(G))
    assert here.alignment == pytest.approx(literal.alignment(G, X, y), rel=1e-10)
    constant = np.linalg.norm(np.outer(y, y))  # y is balanced, so centered
    W = invsqrtm(G)
    euclidean = -W.T @ here.frame_gradient @ W
    np.testing.assert_allclose(euclidean, literal.euclidean_gradient(G, X, y) / constant, atol=1e-9)
    inverse = np.linalg.inv(W)
    riemannian = -inverse @ here.frame_gradient @ inverse.T
    np.testing.assert_allclose(riemannian, literal.riemannian_gradient(G, X, y) / constant, atol=1e-9)


def test_two_classes_of_any_sizes_are_the_targets_plus_and_minus_one(rng):
    X, _ = labeled(rng, 9, 3)
    codes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    G = spd(rng, 3)
    here = at_factor(Misalignment(Data(X, ClassTarget.from_codes(codes))), invsqrtm(G))
    assert here.alignment == pytest.approx(
        literal.alignment(G, X, np.where(codes == 0, 1.0, -1.0)), rel=1e-10
    )
    assert here.alignment == pytest.approx(literal.alignment(G, X, codes * 7.0 + 2), rel=1e-10)


# -- derivatives ----------------------------------------------------------------------

POINTS = ["random", "far", "repeated", "tiny", "identity multiples"]
FORMS = {"features": (20, 4), "gram": (7, 4)}


def problem(where, form, weighted, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3, scale=1e-12 if where == "tiny" else 1.0)
    if where == "repeated":  # whitened matrices that have the identity's spectrum in a plane
        X[::2] = congruence(rotation(rng, d), np.diag([1.0, 1.0, 2.0, 2.0]))
    if where == "identity multiples":
        X[1] = 3 * np.eye(d)
        X[2] = np.eye(d)
    weight = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    objective = Misalignment(Data(X, ClassTarget.from_codes(codes, weight), list(chunks(len(X), 5))))
    center = np.eye(d) if where in ("repeated", "identity multiples") else mean_riemann(X, weight)
    length = {"far": 10.0, "repeated": 0.0, "identity multiples": 0.0}.get(where, 1.0)
    S = symmetric(rng, d, traceless=True)
    return objective, Ball(center, 20.0), length * S / np.linalg.norm(S)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", POINTS)
def test_taylor_slopes(where, form, weighted, rng):
    """Slope 2 of the gradient's remainder, in the frame and in coordinates."""
    objective, ball, S = problem(where, form, weighted, rng)
    eta = symmetric(rng, S.shape[0], traceless=True)
    here = objective.at(ball.point(S))
    W, h = here.point.factor, np.logspace(-2, -4, 7)
    frame = here.frame_gradient, lambda t: at_factor(objective, expm(-t * eta / 2) @ W)
    chart = here.gradient, lambda t: objective.at(ball.point(S + t * eta))
    for g, moved in (frame, chart):
        remainder = [abs(moved(t).value - here.value - t * np.vdot(g, eta)) for t in h]
        assert slope(h, remainder) == pytest.approx(2, abs=0.05)


# -- invariances ------------------------------------------------------------------------


def same(a, b, rel=1e-9):
    assert a.alignment == pytest.approx(b.alignment, rel=rel)
    np.testing.assert_allclose(a.frame_gradient, b.frame_gradient, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rank", [None, 2])
def test_rotated_matrices_need_not_be_computed(rank, rng):
    X, codes = labeled(rng, 9, 4)
    R, target = rotation(rng, 4), ClassTarget.from_codes(codes)
    S = symmetric(rng, 4) if rank is None else rank_coordinates(rng, rank, 4)
    point = (Ball(np.eye(4), 9.0) if rank is None else RankBall(4, rank, 9.0)).point(S)
    turned = Misalignment(Data(X, target), R).at(point)
    plain = Misalignment(Data(congruence(R, X), target)).at(point)
    assert turned.value == pytest.approx(plain.value, rel=1e-11)
    np.testing.assert_allclose(turned.gradient, plain.gradient, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(turned.vectors, plain.vectors, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_are_repetition(form, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3)
    w = rng.integers(1, 4, n)
    W = invsqrtm(spd(rng, d))
    weighted = at_factor(Misalignment(Data(X, ClassTarget.from_codes(codes, w.astype(float)))), W)
    repeated = at_factor(
        Misalignment(Data(np.repeat(X, w, axis=0), ClassTarget.from_codes(np.repeat(codes, w)))), W
    )
    scaled = at_factor(Misalignment(Data(X, ClassTarget.from_codes(codes, 5.5 * w))), W)
    for other in (repeated, scaled):
        same(weighted, other)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_chunked_is_whole(form, size, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3)
    target = ClassTarget.from_codes(codes, rng.uniform(0.5, 2, n))
    W = invsqrtm(spd(rng, d))
    whole = at_factor(Misalignment(Data(X, target)), W)
    chunked = at_factor(Misalignment(Data(X, target, list(chunks(len(X), size)))), W)
    same(whole, chunked, rel=1e-12)
    assert whole.spread == pytest.approx(chunked.spread, rel=1e-12)


def test_gram_and_feature_forms_give_the_same_numbers(rng, monkeypatch):
    X, codes = labeled(rng, 9, 4)
    objective, W = Misalignment(Data(X, ClassTarget.from_codes(codes))), invsqrtm(spd(rng, 4))
    gram = at_factor(objective, W)
    assert gram.gram
    numbers = gram.alignment, gram.frame_gradient, gram.spread
    monkeypatch.setattr(Data, "gathers", False)
    features = at_factor(objective, W)
    for a, b in zip(numbers, (features.alignment, features.frame_gradient, features.spread), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_low_rank_taylor_slope(form, rank, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3)
    objective = Misalignment(
        Data(X, ClassTarget.from_codes(codes, rng.uniform(0.5, 2, n)), list(chunks(len(X), 5)))
    )
    ball, S, eta = RankBall(d, rank, 10.0), rank_coordinates(rng, rank, d), rank_coordinates(rng, rank, d)
    here, h, E = objective.at(ball.point(S)), np.logspace(-2, -4, 7), rng.standard_normal((rank, d))
    W = here.point.factor
    chart = (np.vdot(here.gradient, eta), lambda t: objective.at(ball.point(S + t * eta)))
    factor = (np.vdot(here.factor_gradient, E), lambda t: at_factor(objective, W + t * E))
    for along, moved in (chart, factor):
        remainder = [abs(moved(t).value - here.value - t * along) for t in h]
        assert slope(h, remainder) == pytest.approx(2, abs=0.05)


def test_full_rank_is_low_rank_with_all_rows(rng):
    X, codes = labeled(rng, 20, 4)
    objective, S = Misalignment(Data(X, ClassTarget.from_codes(codes))), symmetric(rng, 4, traceless=True)
    full, low = Ball(np.eye(4), 10.0).point(S), RankBall(4, 4, 10.0).point(S)
    assert objective.at(full).alignment == pytest.approx(objective.at(low).alignment, rel=1e-12)
    np.testing.assert_allclose(objective.at(full).gradient, objective.at(low).gradient, atol=1e-12)


def test_curvature_estimates_are_the_shares_of_the_cross_moments(rng):
    """Where the classes do not differ the function bends least; NumPy's sums as the oracle."""
    X, codes = labeled(rng, 40, 4, classes=3)
    target = ClassTarget.from_codes(codes)
    here = Misalignment(Data(X, target, list(chunks(len(X), 16)))).at(
        Ball(np.eye(4), 3.0).point(symmetric(rng, 4))
    )
    L = logm(congruence(here.point.factor, X))
    A = np.einsum("nab,nc->abc", L - L.mean(axis=0), target.Y)
    shares = np.einsum("abc,bdc->ad", A, A)
    expected = (shares / (np.trace(shares) / 4) + 0.3 * np.eye(4)) / 1.3
    np.testing.assert_allclose(here.curvature_estimate, expected, rtol=1e-9, atol=1e-12)
    same = Misalignment(Data(np.repeat(X[:2], 2, axis=0), ClassTarget.from_codes(np.array([0, 1, 0, 1]))))
    alike = same.at(Ball(np.eye(4), 3.0).center)  # both classes have the same mean
    assert np.all(np.isfinite(alike.curvature_estimate))
