"""The objective and its derivatives: the paper transcribed, Taylor slopes, invariances."""

import numpy as np
import pytest

import literal
from derivatives import GAMMAS, KERNELS, at_factor, check_taylor, make_objective, same
from random_matrices import labeled, rank_coordinates, rotation, spd, symmetric
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import compose, congruence, expm, invsqrtm, logm
from spdmetric.manifolds import Ball, RankBall
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data, row_chunks

# -- against the paper --------------------------------------------------------------


def test_value_and_gradient_of_the_paper(rng):
    """n^2 Frechet derivatives by the block method, against n eigenproblems."""
    X, codes = labeled(rng, 6, 3)
    y = np.where(codes == 0, 1.0, -1.0)
    G = spd(rng, 3)
    here = at_factor(Misalignment(Data(X, ClassTarget.from_codes(codes))), invsqrtm(G))
    assert here.alignment == pytest.approx(literal.alignment(G, X, y), rel=1e-10)
    constant = np.linalg.norm(np.outer(y, y))  # y is balanced, so centered
    W = invsqrtm(G)
    euclidean = -W.T @ here.frame_gradient @ W
    expected = literal.euclidean_gradient(G, X, y) / constant
    np.testing.assert_allclose(euclidean, expected, atol=1e-9)
    inverse = np.linalg.inv(W)
    riemannian = -inverse @ here.frame_gradient @ inverse.T
    np.testing.assert_allclose(riemannian, literal.riemannian_gradient(G, expected), atol=1e-9)


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
FORMS = {"features": (20, 4), "gram": (8, 4)}


def problem(where, form, weighted, kernel, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3, scale=1e-12 if where == "tiny" else 1.0)
    if where == "repeated":  # whitened matrices that have the identity's spectrum in a plane
        X[::2] = congruence(rotation(rng, d), np.diag([1.0, 1.0, 2.0, 2.0]))
    if where == "identity multiples":
        X[1] = 3 * np.eye(d)
        X[2] = np.eye(d)
    if where == "twice":  # a distance of zero has a gradient too
        X[3] = X[0]
    weight = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    objective = make_objective(kernel, Data(X, ClassTarget.from_codes(codes, weight), row_chunks(X.shape, 5)))
    center = np.eye(d) if where in ("repeated", "identity multiples") else mean_riemann(X, weight)
    length = {"far": 10.0, "repeated": 0.0, "identity multiples": 0.0}.get(where, 1.0)
    S = symmetric(rng, d, traceless=True)
    return objective, Ball(center, 20.0), length * S / np.linalg.norm(S)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("where", "kernel"), [*((where, "linear") for where in POINTS), *(("twice", gamma) for gamma in GAMMAS)]
)
def test_gradients_in_the_frame_and_in_coordinates(where, kernel, form, weighted, rng):
    objective, ball, S = problem(where, form, weighted, kernel, rng)
    eta = symmetric(rng, S.shape[0], traceless=True)
    here = objective.at(ball.point(S))
    W = here.point.factor
    frame = np.vdot(here.frame_gradient, eta), lambda t: at_factor(objective, expm(-t * eta / 2) @ W)
    chart = np.vdot(here.gradient, eta), lambda t: objective.at(ball.point(S + t * eta))
    check_taylor(here, frame, chart)


@KERNELS
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_gradients_at_low_rank(form, rank, kernel, rng):
    objective, *_ = problem("random", form, True, kernel, rng)
    ball, S, eta = RankBall(4, rank, 10.0), rank_coordinates(rng, rank, 4), rank_coordinates(rng, rank, 4)
    here, E = objective.at(ball.point(S)), rng.standard_normal((rank, 4))
    W = here.point.factor
    chart = np.vdot(here.gradient, eta), lambda t: objective.at(ball.point(S + t * eta))
    factor = np.vdot(here.factor_gradient, E), lambda t: at_factor(objective, W + t * E)
    check_taylor(here, chart, factor)


# -- invariances ------------------------------------------------------------------------


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


@KERNELS
@pytest.mark.parametrize("form", FORMS)
def test_integer_weights_are_repetition(form, kernel, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3)
    w, W = rng.integers(1, 4, n), invsqrtm(spd(rng, d))

    def at(*arrays):
        X, *target = arrays
        return at_factor(make_objective(kernel, Data(X, ClassTarget.from_codes(*target))), W)

    weighted = at(X, codes, w.astype(float))
    same(weighted, at(np.repeat(X, w, axis=0), np.repeat(codes, w)))
    same(weighted, at(X, codes, 5.5 * w))


@KERNELS
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_chunked_is_whole(form, size, kernel, rng):
    n, d = FORMS[form]
    X, codes = labeled(rng, n, d, classes=3)
    target, W = ClassTarget.from_codes(codes, rng.uniform(0.5, 2, n)), invsqrtm(spd(rng, d))
    whole, chunked = (
        at_factor(make_objective(kernel, Data(X, target, row_chunks(X.shape, k))), W) for k in (None, size)
    )
    same(whole, chunked, rel=1e-12 if kernel == "linear" else 1e-10)
    np.testing.assert_allclose(whole.factor_gradient, chunked.factor_gradient, atol=1e-10)
    if kernel == "linear":
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
    here = Misalignment(Data(X, target, row_chunks(X.shape, 16))).at(
        Ball(np.eye(4), 3.0).point(symmetric(rng, 4))
    )
    L = logm(congruence(here.point.factor, X))
    A = np.einsum("nab,nc->abc", L - L.mean(axis=0), target.Y)
    shares = np.einsum("abc,bdc->ad", A, A)
    expected = (shares / (np.trace(shares) / 4) + 0.3 * np.eye(4)) / 1.3
    np.testing.assert_allclose(compose(*here.curvature_estimate), expected, rtol=1e-9, atol=1e-12)
    same = Misalignment(Data(np.repeat(X[:2], 2, axis=0), ClassTarget.from_codes(np.array([0, 1, 0, 1]))))
    alike = same.at(Ball(np.eye(4), 3.0).center)  # both classes have the same mean
    assert np.all(np.isfinite(alike.curvature_estimate[1]))
