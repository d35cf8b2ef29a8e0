"""Properties of public functions: invariances, round trips, symmetry, the literal paper.

Each property is a function of a random generator and a size; Hypothesis draws both and
shrinks them.  Hundreds of examples in CI; with ``SPDMETRIC_NIGHTLY=1`` (``make nightly``),
10,000 in all, counted.
"""

from __future__ import annotations

import warnings
from math import ceil

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import has_fit_parameter

import literal
from nightly import NIGHTLY, share_of
from random_matrices import labeled, rank_coordinates, rotation, spd, symmetric
from spdmetric import (
    CommonRange,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    LogEuclideanRegressor,
    Shrinkage,
    geometry,
    manifolds,
    means,
    validation,
)
from spdmetric.estimators import TransferClassifier
from spdmetric.estimators._domains import check_domains
from spdmetric.estimators._selection import check_splits
from spdmetric.linalg import symmetric as matrices
from spdmetric.linalg.symmetric import congruence, invsqrtm, vech
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data, check_target
from spdmetric.validation import UninformativeDataError
from spectral import LogCongruence

TOTAL, OF_ALL_ESTIMATORS = 10_000, 2_000  # examples of a nightly run, and of what holds for every estimator

PROPERTIES: list = []
HEAVY: set = set()  # those that fit a metric
OF_ESTIMATORS: set = set()  # those that hold for every estimator, one of which is drawn


def prop(function):
    PROPERTIES.append(function)
    return function


def heavy_prop(function):
    HEAVY.add(function)
    return prop(function)


def estimator_prop(function):
    OF_ESTIMATORS.add(function)
    return heavy_prop(function)


def close(a, b, tol=1e-9):
    scale = max(1.0, float(np.abs(b).max(initial=0)))
    np.testing.assert_allclose(a, b, rtol=0, atol=tol * scale)


def invertible(rng, d):
    return rotation(rng, d) @ np.diag(np.exp(rng.uniform(-0.7, 0.7, d))) @ rotation(rng, d)


# -- matrices --------------------------------------------------------------------------


@prop
def the_symmetric_part_is_a_projection(rng, d):
    A = rng.standard_normal((2, d, d))
    S = matrices.symmetrize(A)
    assert np.array_equal(S.mT, S)
    assert np.array_equal(matrices.symmetrize(S), S)
    close(matrices.symmetrize(A - A.mT), 0 * A)


@prop
def congruences_compose(rng, d):
    X, V, W = spd(rng, 3, d), invertible(rng, d), invertible(rng, d)
    close(congruence(V, congruence(W, X)), congruence(V @ W, X))
    assert np.array_equal(congruence(W, X), congruence(W, X).transpose(0, 2, 1))


@prop
def exp_and_log_are_inverse_and_equal_scipy(rng, d):
    S = symmetric(rng, 2, d)
    close(matrices.logm(matrices.expm(S)), S)
    close(matrices.expm(S)[0], literal.expm(S[0]))
    Q = rotation(rng, d)
    close(matrices.expm(congruence(Q, S)), congruence(Q, matrices.expm(S)))


@prop
def powers_add(rng, d):
    X = spd(rng, 2, d)
    a, b = rng.uniform(-2, 2, 2)
    close(matrices.powm(X, a) @ matrices.powm(X, b), matrices.powm(X, a + b), 1e-8)
    close(matrices.sqrtm(X) @ matrices.sqrtm(X), X)
    close(matrices.invsqrtm(X) @ X @ matrices.invsqrtm(X), np.broadcast_to(np.eye(d), X.shape))


@prop
def vectors_keep_inner_products(rng, d):
    A, B = symmetric(rng, d), symmetric(rng, d)
    close(np.vdot(vech(A), vech(B)), np.sum(A * B))
    close(matrices.unvech(vech(A)), A, 1e-15)
    if d > 1:  # 1 + d(d+1)/2 is the next triangular number for d = 1 only
        with pytest.raises(ValueError, match="not the upper triangle"):
            matrices.unvech(np.zeros(d * (d + 1) // 2 + 1))


@prop
def even_functions_agree_with_their_quotients(rng, d):
    u = np.concatenate([rng.standard_normal(d) * 10.0 ** rng.integers(-8, 1), [0.0]])
    assert np.array_equal(matrices.sinhc(u), matrices.sinhc(-u))
    away = u[np.abs(u) > 1e-3]
    close(matrices.sinhc(away), np.sinh(away) / away, 1e-12)
    close(matrices.ucothu(away), away / np.tanh(away), 1e-12)
    small = u[np.abs(u) <= 1e-3]
    close(matrices.ucothu(small), 1 + small**2 / 3, 1e-12)


@prop
def the_logarithm_along_a_congruence(rng, d):
    A, M, eta = spd(rng, 3, d), symmetric(rng, 3, d), symmetric(rng, d)
    here, h = LogCongruence.of(A), 1e-5
    move = {t: matrices.expm(-t * eta / 2) for t in (h, -h)}
    logs = {t: matrices.logm(congruence(W, A)) for t, W in move.items()}
    close(here.push(eta), (logs[h] - logs[-h]) / (2 * h), 1e-6)
    close(np.vdot(here.pull(M), eta), np.sum(M * here.push(eta)), 1e-9)
    W = invertible(rng, d)
    factor = LogCongruence.of(congruence(W, A)).pull_factor(M, W @ A)
    E = rng.standard_normal((d, d))
    sums = [np.sum(M * matrices.logm(congruence(W + t * E, A))) for t in (h, -h)]
    close(np.vdot(factor, E), (sums[0] - sums[1]) / (2 * h), 1e-4)


# -- geometry --------------------------------------------------------------------------


@prop
def tangent_vectors_invert_and_isolate_the_reference(rng, d):
    X, G = spd(rng, 3, d), spd(rng, d)
    vectors = geometry.tangent_vectors(X, G)
    close(geometry.matrices_at(vectors, G), X)
    close(geometry.tangent_vectors(G, G), np.zeros(d * (d + 1) // 2))
    close(geometry.tangent_vectors(X, factor=invsqrtm(G)), vectors)
    Q = rotation(rng, d)  # another factor of the same G: the same lengths and angles
    turned = geometry.tangent_vectors(X, factor=Q @ invsqrtm(G))
    close(turned @ turned.T, vectors @ vectors.T)


@prop
def riemannian_log_and_exp_are_inverse(rng, d):
    X, G = spd(rng, 2, d), spd(rng, d)
    close(geometry.exp_map(geometry.log_map(X, G), G), X, 1e-8)
    xi = symmetric(rng, d)
    close(geometry.exp_map(0.3 * xi, G), literal.geodesic_step(G, xi, 0.3), 1e-6)


@prop
def geodesics_join_and_are_reversible(rng, d):
    A, B, t = spd(rng, d), spd(rng, d), float(rng.uniform())
    close(geometry.geodesic(A, B, 0.0), A)
    close(geometry.geodesic(A, B, 1.0), B)
    point = geometry.geodesic(A, B, t)
    close(point, geometry.geodesic(B, A, 1 - t), 1e-8)
    close(geometry.distance_riemann(A, point), t * geometry.distance_riemann(A, B), 1e-7)


DISTANCES = ("euclid", "logeuclid", "riemann", "stein")


@prop
def distances_are_metrics(rng, d):
    A, B, C = spd(rng, 3, d)
    for name in DISTANCES:
        distance = getattr(geometry, f"distance_{name}")
        # Near zero Stein's is the square root of a difference of rounded numbers.
        tol = 1e-4 if name == "stein" else 1e-7
        close(distance(A, B), float(distance(B, A)), tol)
        close(distance(A, A), 0.0, tol)
        assert distance(A, C) <= distance(A, B) + distance(B, C) + tol


@prop
def distances_have_their_invariances(rng, d):
    A, B, W, Q = spd(rng, d), spd(rng, d), invertible(rng, d), rotation(rng, d)
    for distance in (geometry.distance_riemann, geometry.distance_stein):
        close(distance(congruence(W, A), congruence(W, B)), distance(A, B), 1e-7)
    flat = geometry.distance_logeuclid
    close(flat(congruence(Q, A), congruence(Q, B)), flat(A, B))
    close(flat(np.linalg.inv(A), np.linalg.inv(B)), flat(A, B), 1e-8)
    # The exponential metric increasing property, with equality at an end.
    G = spd(rng, d)
    assert flat(A, B, G) <= geometry.distance_riemann(A, B) + 1e-8
    close(flat(G, B, G), geometry.distance_riemann(G, B), 1e-8)


@prop
def the_kernel_is_the_papers(rng, d):
    X, Y, G = spd(rng, 3, d), spd(rng, 2, d), spd(rng, d)
    K = geometry.kernel_tangent(X, Y, G)
    close(K[1, 0], literal.k(G, X[1], Y[0]), 1e-6)
    assert np.linalg.eigvalsh(geometry.kernel_tangent(X, reference=G))[0] > -1e-9
    norms = [np.diag(geometry.kernel_tangent(Z, reference=G)) for Z in (X, Y)]
    squares = norms[0][:, None] + norms[1] - 2 * K
    close(np.sqrt(np.maximum(squares, 0)), geometry.pairwise_distance(X, Y, "logeuclid", reference=G), 1e-6)


@prop
def pairwise_distances_are_distances_of_pairs(rng, d):
    X, Y = spd(rng, 3, d), spd(rng, 2, d)
    for name in DISTANCES:
        D = geometry.pairwise_distance(X, Y, name)
        assert D.shape == (3, 2)
        close(D[2, 1], float(getattr(geometry, f"distance_{name}")(X[2], Y[1])), 1e-7)
        close(geometry.pairwise_distance(X, metric=name), geometry.pairwise_distance(X, X, name), 1e-7)


@prop
def means_are_invariant(rng, d):
    X, w, Q = spd(rng, 5, d), rng.uniform(0.1, 2, 5), rotation(rng, d)
    for mean in (means.mean_euclid, means.mean_logeuclid, means.mean_riemann, means.median_riemann):
        M, tol = mean(X, w), 1e-6 if mean is means.median_riemann else 1e-7  # a sum of distances is flat
        close(mean(congruence(Q, X), w), congruence(Q, M), tol)
        close(mean(X[::-1], w[::-1]), M, tol)
        assert np.array_equal(mean(np.concatenate([0 * X[:1], X]), np.append(0, w)), M)
        close(mean(np.repeat(X[:1], 3, axis=0)), X[0], 1e-8)
        close(mean(np.concatenate([X, X[:1]])), mean(X, np.array([2.0, 1, 1, 1, 1])), tol)


@prop
def the_riemannian_mean_is_affine_invariant_and_stationary(rng, d):
    X, W = spd(rng, 4, d), invertible(rng, d)
    M = geometry.mean_riemann(X)
    close(geometry.mean_riemann(congruence(W, X)), congruence(W, M), 1e-6)
    close(geometry.mean_riemann(np.linalg.inv(X)), np.linalg.inv(M), 1e-6)
    close(geometry.tangent_vectors(X, M).mean(axis=0), np.zeros(d * (d + 1) // 2), 1e-7)


@prop
def preconditioned_and_orthonormal_gradients(rng, d):
    S, (x, y) = symmetric(rng, d), symmetric(rng, 2, d)
    for ball in (manifolds.Ball(np.eye(d), 3.0), manifolds.RankBall(d, d, 3.0)):
        point = ball.point(S * (rng.uniform(0, 3) / max(np.linalg.norm(S), 1e-9)))
        even_x, even_y = (point.precondition(gradient, np.linalg.eigh(np.eye(d))) for gradient in (x, y))
        close(np.vdot(even_x, y), np.vdot(x, even_y))
        # sinhc is at least 1: preconditioned they are longer, orthonormal of the affine-invariant length.
        assert np.vdot(x, even_x) >= np.vdot(x, x) * (1 - 1e-9)
        close(np.linalg.norm(point.orthonormal_gradient(x)), point.norm(x))


# -- manifolds -------------------------------------------------------------------------


def objective(rng, d, n=8):
    X, codes = labeled(rng, n, d)
    return Misalignment(
        Data(congruence(invsqrtm(geometry.mean_riemann(X)), X), ClassTarget.from_codes(codes, np.ones(n)))
    )


@prop
def moves_end_inside_the_ball_and_distances_are_norms(rng, d):
    G0, S = spd(rng, d), symmetric(rng, d)
    ball = manifolds.Ball(G0, float(rng.uniform(0.1, 3)))
    point = ball.point(S * ball.radius / max(np.linalg.norm(S), 1e-12) * 0.9)
    for move in (ball.retract, ball.geodesic):
        there = move(point, rng.uniform(0, 3) * symmetric(rng, d))
        assert np.linalg.norm(there.S) <= ball.radius * (1 + 1e-9)
        G = np.linalg.inv(there.factor.T @ there.factor)
        close(geometry.distance_riemann(G0, G), np.linalg.norm(there.S), 1e-6)
        close(move(point, np.zeros((d, d))).S, point.S, 1e-8)


@prop
def push_and_pull_are_adjoint(rng, d):
    point = manifolds.Ball(spd(rng, d), 10.0).point(symmetric(rng, d))
    eta, g = symmetric(rng, d), symmetric(rng, d)
    pulled = point.gradient(g)
    close(np.vdot(pulled, eta), np.vdot(g, point.push(eta)))
    close(point.push(point.riemannian_gradient(pulled)), g, 1e-8)
    close(point.norm(pulled), np.linalg.norm(g), 1e-8)


@prop
def derivatives_in_the_ball_are_limits_of_differences(rng, d):
    f, ball = objective(rng, d), manifolds.Ball(np.eye(d), 10.0)
    S, eta, h = 0.5 * symmetric(rng, d), symmetric(rng, d), 1e-5
    eta = eta / max(np.linalg.norm(eta), 1e-12)
    here, there, back = (f.at(ball.point(S + t * eta)) for t in (0, h, -h))
    close(np.vdot(here.gradient, eta), (there.value - back.value) / (2 * h), 1e-6)


@prop
def derivatives_at_low_rank_are_limits_of_differences(rng, d):
    m = int(rng.integers(1, d + 1))
    f, ball, h = objective(rng, d), manifolds.RankBall(d, m, 10.0), 1e-5
    S, eta = 0.5 * rank_coordinates(rng, m, d), rank_coordinates(rng, m, d)
    point = ball.point(S)
    assert np.array_equal(ball.center.S, np.zeros((m, d)))
    assert point.factor.shape == (m, d)
    here, there, back = (f.at(ball.geodesic(point, t * eta)) for t in (0, h, -h))
    close(np.vdot(here.gradient, eta), (there.value - back.value) / (2 * h), 1e-5)
    assert np.array_equal(point.riemannian_gradient(here.gradient), here.gradient)
    close(point.norm(here.gradient), np.linalg.norm(here.gradient))


# -- validation ------------------------------------------------------------------------


@prop
def secants_solve_what_they_learned(rng, d):
    """After a step and its change of the gradient, the change leads back to the step; a frame moves by it."""
    step, change = (vech(symmetric(rng, d)) for _ in range(2))
    change = change if step @ change > 0 else step
    secants = means.Secants()
    secants.learn(step, change)
    close(secants.solve(change, 2.0, np.divide), step, 1e-7)
    frame = means.Frame(np.eye(d), np.eye(d)).move(step)
    close(frame.root @ frame.root.T, matrices.expm(matrices.unvech(step)), 1e-8)
    close(frame.root @ frame.factor, np.eye(d), 1e-8)


@prop
def good_stacks_pass_and_spoiled_ones_are_named(rng, d):
    X = spd(rng, 4, d)
    X = matrices.symmetrize(X) * 10.0 ** rng.integers(-12, 12)
    for check in (validation.check_spd, validation.check_symmetric):
        assert check(X) is X
        assert np.array_equal(check(X.tolist()), X)
    assert validation.is_definite(X)
    bad, spoiled = int(rng.integers(4)), X.copy()
    spoiled[bad] *= -1
    assert np.array_equal(validation.check_symmetric(spoiled), spoiled)
    assert not validation.is_definite(spoiled)
    with pytest.raises(ValueError, match=rf"X\[{bad}\] is not positive definite"):
        validation.check_spd(spoiled)
    spoiled[bad, 0, -1] = rng.choice([np.nan, np.inf])
    with pytest.raises(ValueError, match=rf"X\[{bad}\] contains"):
        validation.check_symmetric(spoiled)


@prop
def ranks_are_counted(rng, d):
    r = int(rng.integers(1, d + 1))
    V = rng.standard_normal((3, d, r))
    X = matrices.symmetrize(V @ V.transpose(0, 2, 1))
    close(validation.check_psd(X, r), X)
    if r < d:
        with pytest.raises(ValueError, match=f"rank {r}, too low"):
            validation.check_psd(X, r + 1)


@prop
def tensors_are_checked_where_they_are_and_come_home_unchanged(rng, d):
    X = matrices.symmetrize(spd(rng, 3, d))
    tensor = strict.asarray(X)
    assert validation.is_tensor(tensor)
    assert not validation.is_tensor(X)
    assert not validation.is_tensor(X.tolist())
    for rank in (None, d):
        assert np.array_equal(validation.to_numpy(validation.check_psd(tensor, rank)), X)
        with pytest.raises(ValueError, match=r"stack\[4\] is not positive"):
            validation.check_psd(-X, rank, name="stack", first=4)
    single = validation.as_float(tensor, single=True)
    assert validation.is_single(single)
    assert not validation.is_single(validation.as_float(single))
    assert np.array_equal(validation.to_numpy(single), X.astype(np.float32))
    assert validation.as_float([1, 2]).dtype == np.float64


# -- hostile input: whatever is drawn, a sentence of a known type or a right result ----


@prop
def what_does_not_fit_is_named(rng, d):
    ((train, test),) = check_splits(None, lambda: [(np.arange(7) < d, [d])], 7)
    assert (train.tolist(), test.tolist()) == (list(range(d)), [d])
    with pytest.raises(ValueError, match="pairs of the indices"):
        check_splits(None, lambda: [([d], [0.5])], 7)
    names = rng.choice(["a", "b", "c"], 7 + d)
    assert check_domains(list(names), len(names)).tolist() == names.tolist()
    with pytest.raises(ValueError, match="sample_domain has shape"):
        check_domains(names, len(names) + 1)


@prop
def weights_of_any_scale_are_the_normalized_ones(rng, d):
    codes = np.arange(12) % 2
    ratio = 10.0 ** rng.uniform(0, 11.9)
    w = ratio ** rng.uniform(0, 1, 12) * (rng.uniform(size=12) < 0.9)
    w[:2] = 1, ratio
    scaled = 10.0 ** rng.uniform(-300, 288) * w
    expected, found = (check_target(codes, codes, v, None, "auto")[1].weight for v in (w, scaled))
    assert 1 <= found.max() < 4
    assert np.array_equal(found > 0, w > 0)
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-13)
    unit = validation.weight_unit(float(scaled.max()))
    assert np.frexp(unit)[0] == 0.5
    assert np.array_equal(scaled * unit / unit, scaled)
    assert validation.weight_range(scaled) == (scaled[scaled > 0].min(), scaled.max())
    far = np.where(np.arange(12) == d, 10.0 ** rng.uniform(12.1, 300), 1.0)
    with pytest.raises(ValueError, match=r"ratio of at most 1e\+12"):
        validation.check_weights(far if rng.uniform() < 0.5 else 1 / far, codes)
    bad = rng.choice([np.nan, np.inf, -np.inf, -1e-300])
    with pytest.raises(ValueError, match=rf"sample_weight\[{d + 3}\] is .*number between 1e-307 and"):
        validation.check_weight_values(np.where(np.arange(12) == d, bad, w), first=3)


# -- estimators ------------------------------------------------------------------------


def metric_on(rng, d, **parameters):
    X, y = labeled(rng, 12, d)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations on purpose
        return LogEuclideanMetric(1.5, max_iter=15, tol=1e-4, **parameters).fit(X, y), X, y


@heavy_prop
def a_fitted_metric_is_the_logeuclidean_one_at_its_reference(rng, d):
    metric, X, _ = metric_on(rng, d)
    assert metric.radius_ <= 1.5 * (1 + 1e-9)
    assert 0 <= metric.alignment_ <= 1
    vectors = metric.transform(X)
    close(metric.inverse_transform(vectors), X, 1e-7)
    pairs = np.stack([X[:5], X[5:10]], axis=1)
    distances = metric.pair_distance(pairs)
    close(distances, np.linalg.norm(vectors[:5] - vectors[5:10], axis=1))
    close(distances, geometry.distance_logeuclid(X[:5], X[5:10], metric.reference_), 1e-7)
    assert np.array_equal(metric.pair_score(pairs), -distances)
    close(metric.get_metric()(*pairs[3]), distances[3])
    close(metric.pairwise_kernel(X, X[:3]), geometry.kernel_tangent(X, X[:3], metric.reference_), 1e-7)


@heavy_prop
def entries_are_named_by_their_two_channels(rng, d):
    metric = metric_on(rng, d)[0]
    one, other = np.array([name.split("·") for name in metric.get_feature_names_out(range(d))], dtype=int).T
    S = spd(rng, 1, d)[0]
    close(S[one, other] * np.where(one == other, 1, np.sqrt(2)), vech(S), 1e-15)


@heavy_prop
def alignment_is_the_literal_one_and_at_least_that_of_the_mean(rng, d):
    metric, X, y = metric_on(rng, d)
    close(metric.alignment_, literal.alignment(metric.reference_, X, 2.0 * y - 1), 1e-6)
    mean = LogEuclideanMetric(0).fit(X, y)
    close(mean.reference_, geometry.mean_riemann(X), 1e-7)
    assert metric.alignment_ >= mean.alignment_ - 1e-9


@heavy_prop
def a_session_in_other_units_has_the_same_vectors(rng, d):
    metric, X, _ = metric_on(rng, d)
    vectors, scaled = metric.transform(X), float(np.exp(rng.uniform(-5, 5))) * X
    close(metric.adapt(X).transform(X), vectors, 1e-6)
    close(metric.adapt(scaled).transform(scaled), vectors, 1e-6)
    close(metric.partial_adapt(scaled).transform(scaled), vectors, 1e-6)
    # A batch that repeats the session leaves its mean where it is.
    twice = metric.partial_adapt(scaled).partial_adapt(scaled, rng.uniform(0.1, 2) * np.ones(12))
    close(twice.transform(scaled), vectors, 1e-6)


@heavy_prop
def the_chosen_candidate_is_one_of_the_candidates_and_the_best(rng, d):
    X, y = labeled(rng, 12, d)
    ranks = (None, 1) if d > 1 else (None,)
    options = {"radii": (0, 1), "ranks": ranks, "weightings": (None,), "head": "centroid", "rule": "best"}
    metric = LogEuclideanMetricCV(LogEuclideanMetric(max_iter=4, tol=3e-2), **options, cv=2).fit(X, y)
    assert metric.best_params_ in metric.cv_results_["params"]
    close(metric.best_score_, metric.cv_results_["mean_test_score"].max(), 1e-12)
    assert metric.path_.radius.tolist() == [0, 1]
    assert metric.transform(X).shape[1] in (1, d * (d + 1) // 2)


@prop
def a_wider_factor_has_the_rows_of_the_narrow_one(rng, d):
    m = int(rng.integers(1, d + 1))
    point = manifolds.RankPoint(0.3 * rng.standard_normal((m, d)))
    S = point.S.copy()
    S[:, :m] = (S[:, :m] + S[:, :m].T) / 2
    point = manifolds.RankPoint(S)
    wide = point.widened(int(rng.integers(m, d + 1)))
    close(wide.factor[:m], point.factor, 1e-9)


@prop
def regression_targets_keep_neither_unit_nor_origin(rng, d):
    y, weight, X = rng.standard_normal((9, d)), rng.uniform(0.5, 2, 9), np.empty((9, 1, 1))
    _, target = check_target(X, y, weight, None, "auto")
    close(np.average(target.values, axis=0, weights=weight), np.zeros(d))
    close(np.average(target.values**2, axis=0, weights=weight), np.ones(d))
    close(check_target(X, 3e5 * y - 7, weight, None, "auto")[1].values, target.values, 1e-8)
    assert validation.is_regression(y, "auto")
    assert not validation.is_regression(np.round(y), "auto")
    assert validation.is_regression(np.round(y), "regression")
    y[4, 0] = np.nan
    with pytest.raises(ValueError, match=r"y\[4"):
        check_target(X, y, weight, None, "auto")


@prop
def the_smallest_rank_is_that_of_the_flattest(rng, d):
    ranks = rng.integers(1, d + 1, 5)
    A = [rng.standard_normal((d, r)) for r in ranks]
    assert validation.smallest_rank(np.array([a @ a.T for a in A])) == min(ranks)


@prop
def the_common_range_loses_nothing(rng, d):
    basis = np.linalg.qr(rng.standard_normal((d + 2, d)))[0]
    X, y = labeled(rng, 8, d)
    flat = basis @ X @ basis.T
    flat = (flat + flat.transpose(0, 2, 1)) / 2
    step = CommonRange().fit(flat, y)
    inside = step.transform(flat)
    assert inside.shape == (8, d, d)
    close(np.linalg.eigvalsh(inside), np.linalg.eigvalsh(X), 1e-8)
    close(step.inverse_transform(inside), flat, 1e-8)


@prop
def shrinkage_keeps_the_trace_and_the_directions(rng, d):
    X = spd(rng, 3, d)
    shares = rng.uniform(0.1, 1, 2)
    for share in (*shares, "oas"):
        Z = Shrinkage(share).fit_transform(X)
        close(np.trace(Z, axis1=1, axis2=2), np.trace(X, axis1=1, axis2=2), 1e-12)
        close(Z @ X, X @ Z)
        assert (np.linalg.cond(Z) <= np.linalg.cond(X) * (1 + 1e-9)).all()
    twice = Shrinkage(shares[0]).fit_transform(Shrinkage(shares[1]).fit_transform(X))
    close(twice, Shrinkage(1 - np.prod(1 - shares)).fit_transform(X), 1e-12)


@prop
def bad_matrices_are_all_found_and_no_others(rng, d):
    flat = rng.standard_normal((12, d + 1, max(1, d - 1)))
    X = flat @ flat.transpose(0, 2, 1) * 10.0 ** rng.integers(-20, 20)  # singular ones are not bad
    assert validation.bad_matrices(X) == []
    spoil = [np.nan, np.inf, -np.inf]
    bad = sorted(rng.choice(12, 6, replace=False).tolist())
    for k, value in zip(bad[:3], spoil, strict=True):
        X[k, 0, d] = value
    X[bad[3]] = 0
    X[bad[4]] *= -1
    X[bad[5], 0, d] += np.abs(X[bad[5]]).max()
    found = validation.bad_matrices(X, [f"file{k}" for k in range(12)])
    assert [one.index for one in found] == bad
    assert [one.where for one in found] == [f"file{k}" for k in bad]
    words = ("NaN", "infinity", "infinity", "zero", "negative", "symmetric")
    assert all(word in one.why for word, one in zip(words, found, strict=True))
    signals = [(one.index, one.why) for one in found if one.index in bad[:4]]  # need no symmetry
    assert [(one.index, one.why) for one in validation.bad_signals(X)] == signals


@heavy_prop
def probabilities_agree_with_each_other_and_follow_a_session(rng, d):
    X, y = labeled(rng, 16, d)
    model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,), ranks=(None,)), cv=2, n_neighbors=1).fit(
        X, y
    )
    told = model.predict_proba(X)
    close(told.sum(axis=1), np.ones(16))
    close(np.exp(model.predict_log_proba(X)), told, 1e-12)
    assert model.predict(X).tolist() == model.classes_[told.argmax(axis=1)].tolist()
    close(model.decision_function(X), np.diff(model.predict_log_proba(X), axis=1)[:, 0], 1e-9)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    scale = np.exp(rng.standard_normal())
    here = model.adapt(X).predict_proba(X)
    close(model.adapt(scale * X).predict_proba(scale * X), here, 1e-4)
    close(model.partial_adapt(scale * X).predict_proba(scale * X), here, 1e-4)


# -- What changes nothing, for every estimator -------------------------------------------


METRICS = ("metric", "choice", "classifier", "regressor")


def draw_estimator(rng, d, of=(*METRICS, "transfer", "range", "shrinkage")):
    """One of these estimators, its matrices, targets and domains, and the folds that it is given."""
    kind, n = of[int(rng.integers(len(of)))], 24
    X, y = labeled(rng, n, d, classes=3)
    metric = LogEuclideanMetric(float(rng.integers(3)), tol=1e-2, max_iter=15)
    ranks = [None] if rng.uniform() < 0.5 else [max(1, d - 1)]
    chosen = LogEuclideanMetricCV(metric, radii=(0, 1), ranks=ranks)
    folds = rng.permutation(np.arange(n) // 3 % 2)
    folds = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(2)]
    if kind == "regressor":
        y = y + 0.3 * rng.standard_normal(n)
    if kind == "range":
        X = np.pad(X, ((0, 0), (0, 1), (0, 1)))
        X = congruence(rotation(rng, d + 1), X)
    if kind == "metric":
        metric.set_params(rank=ranks[0], weighting=[None, "discriminant"][int(rng.integers(2))])
    model = {
        **{"metric": metric, "choice": chosen, "classifier": LogEuclideanClassifier(chosen)},
        **{"regressor": LogEuclideanRegressor(chosen), "range": CommonRange(1e-5), "shrinkage": Shrinkage()},
        "transfer": TransferClassifier(FunctionTransformer(), LogEuclideanClassifier(chosen)),
    }[kind]
    return model, X, y, rng.permutation(np.arange(n) % 4), folds


def learn(model, X, y, *arguments, folds=None, new=None, **named):
    """Distances of vectors, probabilities, or targets that a copy gives after a fit; and the copy."""
    model = clone(model)
    if folds is not None:
        model.set_params(**{name: folds for name in ("cv", "classifier__cv") if name in model.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations, and domains that may tell of y
        try:
            model.fit(X, y, *arguments, **named)
        except UninformativeDataError:  # drawn by chance: nothing can be said of what is learned
            reject()
    asked = [X if new is None else new]
    if "sample_domain" in named:
        asked.append(named["sample_domain"][-len(asked[0]) :])
    if hasattr(model, "predict_proba"):
        return model.predict_proba(*asked), model
    if hasattr(model, "predict"):
        return model.predict(*asked), model
    vectors = model.transform(*asked).reshape(len(asked[0]), -1)
    return np.linalg.norm(vectors[:, None] - vectors, axis=2), model


@estimator_prop
def names_of_classes_change_nothing_but_names(rng, d):
    model, X, y, _, _ = draw_estimator(rng, d, ("metric", "choice", "classifier", "transfer"))
    names = rng.permutation(["left", "right", "feet"])
    expected, _ = learn(model, X, y)
    found, renamed = learn(model, X, names[y])
    close(found[:, renamed.classes_.searchsorted(names)] if hasattr(model, "predict") else found, expected)


@estimator_prop
def names_of_domains_change_nothing(rng, d):
    model, X, y, domain, folds = draw_estimator(rng, d, (*METRICS, "transfer"))
    transfer = isinstance(model, TransferClassifier)  # which adds up means of domains in the order of names
    keyword, tol = ("subjects", 1e-9) if transfer else ("sample_domain", 0)
    expected, _ = learn(model, X, y, folds=folds, **{keyword: domain})
    for names in (rng.permutation(["a", "b", "c", "d"]), rng.permutation([2**40, -3, 7, 0])):
        close(learn(model, X, y, folds=folds, **{keyword: names[domain]})[0], expected, tol)


@estimator_prop
def the_order_of_samples_changes_nothing_on_given_folds(rng, d):
    model, X, y, _, folds = draw_estimator(rng, d)
    order = rng.permutation(len(X))
    place = np.argsort(order)
    moved = [(np.sort(place[train]), np.sort(place[test])) for train, test in folds]
    expected, _ = learn(model, X, y, folds=folds)
    close(learn(model, X[order], y[order], folds=moved, new=X)[0], expected, 1e-5)


@estimator_prop
def memory_layout_changes_nothing_and_float32_only_its_digits(rng, d):
    model, X, y, _, folds = draw_estimator(rng, d)
    single = X.astype(np.float32)
    expected, _ = learn(model, single.astype(np.float64), y, folds=folds)
    read_only = single.astype(np.float64)
    read_only.flags.writeable = False
    strided = np.repeat(read_only, 2, axis=2)[:, :, ::2]
    for same in (np.asfortranarray(read_only), read_only, strided):
        assert np.array_equal(learn(model, same, y, folds=folds)[0], expected)
    close(learn(model, single, y, folds=folds)[0], expected, 1e-4)


@estimator_prop
def a_matrix_of_weight_0_is_not_there(rng, d):
    """Singular ones, of a domain of their own, that come first."""
    model, X, y, domain, folds = draw_estimator(rng, d, METRICS)
    weight, A = rng.uniform(0.5, 2, len(X)), rng.standard_normal((3, d, 1))
    beside = [(np.append([0, 1], train + 3), np.append(2, test + 3)) for train, test in folds]
    if rng.uniform() < 0.5:
        folds = beside = 2
    named = {} if rng.uniform() < 0.5 else {"sample_domain": domain}
    expected, _ = learn(model, X, y, weight, folds=folds, **named)
    named = {name: np.append([-1, -1, 9], domain) for name in named}
    both, targets = np.concatenate([1e3 * A @ A.mT, X]), np.concatenate([y[2::-1], y])
    found, _ = learn(model, both, targets, np.append([0, 0, 0], weight), folds=beside, new=X, **named)
    close(found, expected)


@estimator_prop
def arguments_may_be_named_or_not(rng, d):
    model, X, y, domain, folds = draw_estimator(rng, d)
    weight, groups = rng.uniform(0.5, 2, len(X)), np.arange(len(X)) // 4
    named = {"sample_weight": weight, "groups": groups, "subjects": domain}
    named = {name: value for name, value in named.items() if has_fit_parameter(model, name)}
    domains = {"sample_domain": domain} if has_fit_parameter(model, "sample_domain") else {}
    expected, _ = learn(model, X, y, folds=folds, **domains, **named)
    found = learn(model, X, y, *named.values(), folds=folds, **domains)[0]
    assert np.array_equal(found, expected)
    back = dict(reversed(model.get_params(deep=False).items()))
    again = type(model)(**back)
    assert np.array_equal(learn(again, X, y, folds=folds, **domains, **named)[0], expected)


# -- All of them -----------------------------------------------------------------------


def examples(prop) -> int:
    if not NIGHTLY:
        return 3 if prop in HEAVY else 10
    if prop in OF_ESTIMATORS:
        return ceil(OF_ALL_ESTIMATORS / len(OF_ESTIMATORS))
    of_heavy, others = 150, len(HEAVY - OF_ESTIMATORS)
    left = TOTAL - OF_ALL_ESTIMATORS - of_heavy * others
    return of_heavy if prop in HEAVY else ceil(left / (len(PROPERTIES) - len(HEAVY)))


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.__name__)
def test_property(prop, record_property):
    relaxed = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
    wanted, seen = share_of(examples(prop)) if NIGHTLY else examples(prop), []

    @settings(max_examples=wanted, derandomize=not NIGHTLY, database=None, **relaxed)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 6))
    def check(seed, d):
        seen.append(seed)
        prop(np.random.default_rng(seed), d)

    check()
    assert len(seen) >= wanted
    if NIGHTLY:
        record_property("properties", 1)
        record_property("examples", len(seen))


def test_a_nightly_run_has_all_examples():
    assert sum(map(examples, PROPERTIES)) >= (TOTAL if NIGHTLY else 200)
