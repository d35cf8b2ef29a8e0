"""The Gaussian kernel: Eq. (5) with another kernel matrix, the best width, and the estimator with it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.neighbors import KNeighborsClassifier

import literal
from derivatives import GAMMAS, at_factor, check_taylor, same
from random_matrices import labeled, rotation, spd, symmetric
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.linalg.symmetric import congruence, expm, invsqrtm
from spdmetric.objectives import gaussian
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.objectives.gaussian import LOG_TAUS, GaussianMisalignment, Kernel, best_log_tau


def slow_alignment(W, X, codes, gamma):
    """Eq. (5) with the Gaussian kernel, pair by pair."""
    n, logs = len(X), [literal.logm(W @ x @ W.T) for x in X]
    K = np.array([[np.exp(-gamma * np.linalg.norm(a - b) ** 2) for b in logs] for a in logs])
    T = np.array([[float(codes[i] == codes[j]) for j in range(n)] for i in range(n)])
    U = literal.centering(n)
    K, T = U @ K @ U, U @ T @ U
    return np.sum(K * T) / (np.linalg.norm(K) * np.linalg.norm(T))


def middle_and_ends(rng, n, d=6):
    """One class around the middle of an axis of the tangent space, the other at both ends: equal means."""
    y = np.arange(n) % 2
    L = 0.5 * symmetric(rng, n, d)
    L[:, 0, 0] = 0.3 * L[:, 0, 0] + np.where(y == 0, 0, rng.choice([-1.0, 1.0], n))
    return expm(congruence(rotation(np.random.default_rng(7), d), L)), y


@pytest.mark.parametrize("rows", [4, 2])
@pytest.mark.parametrize("gamma", [0.01, 0.3, 2.0])
def test_value_is_eq_5_with_another_kernel(gamma, rows, rng):
    X, codes = labeled(rng, 9, 4, classes=3)
    W = invsqrtm(spd(rng, 4))[:rows]
    here = at_factor(GaussianMisalignment(Data(X, ClassTarget.from_codes(codes)), gamma=gamma), W)
    assert here.alignment == pytest.approx(slow_alignment(W, X, codes, gamma), rel=1e-10)
    assert here.gamma == pytest.approx(gamma, rel=1e-14)
    assert here.value == 1 - here.alignment


@given(seed=st.integers(0, 10**6), exponent=st.floats(-12, -4))
def test_wide_kernels_tend_to_the_linear_one(seed, exponent):
    """k = 1 - gamma delta^2 + ..., centered 2 gamma <phi_i, phi_j>: what differs is of order gamma."""
    rng = np.random.default_rng(seed)
    X, codes = labeled(rng, 12, 3, classes=3)
    target, W, gamma = (
        ClassTarget.from_codes(codes, rng.uniform(0.5, 2, 12)),
        invsqrtm(spd(rng, 3)),
        10**exponent,
    )
    linear = at_factor(Misalignment(Data(X, target)), W)
    wide = at_factor(GaussianMisalignment(Data(X, target), gamma=gamma), W)
    bound = 20 * gamma * linear.spread**2 + 1e-12
    assert wide.alignment == pytest.approx(linear.alignment, abs=bound)
    np.testing.assert_allclose(wide.frame_gradient, linear.frame_gradient, atol=10 * bound)


def test_what_float64_cannot_hold_is_no_place_to_go(rng):
    X, codes = labeled(rng, 8, 3)
    here = at_factor(
        GaussianMisalignment(Data(X, ClassTarget.from_codes(codes))), np.diag([1e200, 1.0, 1e-200])
    )
    assert here.alignment == -np.inf


def family(rng, n=15):
    X, codes = labeled(rng, n, 3, classes=3)
    target = ClassTarget.from_codes(codes, rng.uniform(0.5, 2, n))
    return at_factor(GaussianMisalignment(Data(X, target)), invsqrtm(spd(rng, 3)))._kernel.family


@pytest.mark.parametrize("log_tau", [-6.0, -1.0, 0.5, 3.0])
def test_derivatives_in_the_width(log_tau, rng):
    kernels = family(rng)
    here, h = kernels.slope(log_tau), 1e-4
    before, after = kernels.slope(log_tau - h), kernels.slope(log_tau + h)
    assert here[0] == pytest.approx(Kernel(kernels, np.exp(log_tau)).alignment, rel=1e-11)
    assert here[1] == pytest.approx((after[0] - before[0]) / (2 * h), abs=1e-7)
    assert here[2] == pytest.approx((after[1] - before[1]) / (2 * h), abs=1e-7)


@given(seed=st.integers(0, 10**6))
def test_the_best_width_is_the_best(seed):
    """No point of a dense scan is better; inside the bounds the slope is zero to rounding."""
    kernels = family(np.random.default_rng(seed))
    best = best_log_tau(kernels)
    here = kernels.slope(best)
    scan = [kernels.slope(x)[0] for x in np.linspace(LOG_TAUS[0], LOG_TAUS[-1], 200)]
    assert here[0] >= max(scan) - 1e-10
    if LOG_TAUS[0] < best < LOG_TAUS[-1]:
        assert abs(here[1]) < 1e-12
        peer = minimize_scalar(
            lambda x: -kernels.slope(x)[0], bounds=(best - 0.1, best + 0.1), options={"xatol": 1e-8}
        )
        assert -peer.fun == pytest.approx(here[0], rel=1e-12)
    elif best == LOG_TAUS[0]:
        assert here[1] <= 0
    else:
        assert here[1] >= 0


BOUNDS = {"widest": (LOG_TAUS[0], 1), "narrowest": (LOG_TAUS[-1], 58)}  # with seeds that lead there


@pytest.mark.parametrize("end", BOUNDS)
def test_gradient_at_the_ends_of_the_bounds(end):
    """There gamma follows the spread of the vectors, and the envelope theorem alone would be wrong."""
    bound, seed = BOUNDS[end]
    rng = np.random.default_rng(seed)
    X, codes = labeled(rng, 12, 3)
    objective = GaussianMisalignment(Data(X, ClassTarget.from_codes(codes)))
    here, eta = at_factor(objective, np.eye(3)), symmetric(rng, 3, traceless=True)

    def moved(t):
        there = at_factor(objective, expm(-t * eta / 2))
        assert np.log(there._kernel.tau) == pytest.approx(bound, rel=1e-14)
        return there

    moved(0.0)
    check_taylor(here, (np.vdot(here.frame_gradient, eta), moved))


@pytest.mark.parametrize("gamma", GAMMAS)
def test_tiles_change_nothing(gamma, rng, monkeypatch):
    X, codes = labeled(rng, 20, 3, classes=3)
    X[2] = X[0]
    target, W = ClassTarget.from_codes(codes, rng.uniform(0.5, 2, 20)), invsqrtm(spd(rng, 3))
    objective = GaussianMisalignment(Data(X, target), gamma=gamma)
    whole = at_factor(objective, W)
    assert len(whole._kernel.family.tiles) == 1
    for size in (1, 6):
        monkeypatch.setattr(gaussian, "TILE", size)
        tiled = at_factor(objective, W)
        assert len(tiled._kernel.family.tiles) > 1
        assert tiled.resolved == whole.resolved
        same(tiled, whole)


@pytest.mark.parametrize("solver", ["trust-region", "gradient"])
@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("gamma", [None, 0.5])
def test_fit_improves_alignment_inside_the_ball(gamma, rank, solver, rng):
    X, y = labeled(rng, 30, 4)
    given = {"kernel": "rbf", "gamma": gamma, "rank": rank, "solver": solver, "tol": 1e-5}
    start, metric = LogEuclideanMetric(0, **given).fit(X, y), LogEuclideanMetric(2.0, **given).fit(X, y)
    assert metric.alignment_ > start.alignment_
    assert metric.radius_ <= 2 * (1 + 1e-9)
    assert metric.solution_.residual <= 1e-5
    assert metric.solution_.multiplier >= 0
    assert metric.transform(X).shape == (30, 10 if rank is None else 3)
    np.testing.assert_allclose(
        slow_alignment(metric.components_, X, y, metric.gamma_), metric.alignment_, rtol=1e-8
    )
    assert isinstance(metric.gamma_, float)
    assert gamma is None or metric.gamma_ == pytest.approx(gamma, rel=1e-12)


def test_it_learns_where_class_means_are_equal(rng):
    """The linear kernel sees only differences of means, and there are none."""
    X, y = middle_and_ends(rng, 100)
    X_test, y_test = middle_and_ends(rng, 300)
    accuracy = {}
    for kernel in ("linear", "rbf"):
        metric = LogEuclideanMetric(3.0, rank=2, kernel=kernel, tol=1e-3).fit(X, y)
        neighbors = KNeighborsClassifier(1).fit(metric.transform(X), y)
        accuracy[kernel] = neighbors.score(metric.transform(X_test), y_test)
    assert accuracy["rbf"] > 0.8
    assert accuracy["rbf"] > accuracy["linear"] + 0.15


def test_labels_that_mean_nothing_do_not_trap_the_search_at_the_identity_kernel(rng):
    X, y = labeled(rng, 40, 6)
    metric = LogEuclideanMetric(3.0, kernel="rbf").fit(X, rng.permutation(y))
    assert metric.radius_ > 0.1


def test_cross_validation_passes_the_kernel_on(rng):
    X, y = labeled(rng, 30, 3)
    metric = LogEuclideanMetricCV(
        LogEuclideanMetric(kernel="rbf", tol=3e-2, max_iter=40), radii=(0, 1), ranks=(None, 2), cv=3
    ).fit(X, y)
    assert metric.gamma_ > 0
    rank, W = metric.best_params_["rank"], metric.components_
    assert W.shape == (3 if rank is None else rank, 3)
    assert metric.alignment_ == pytest.approx(slow_alignment(W, X, y, metric.gamma_), rel=1e-8)
    fixed = LogEuclideanMetricCV(
        LogEuclideanMetric(kernel="rbf", gamma=0.2, tol=3e-2, max_iter=40), radii=(1,), ranks=(None,), cv=2
    ).fit(X, y)
    assert fixed.gamma_ == pytest.approx(0.2, rel=1e-12)


def test_more_matrices_than_pairs_can_be_kept_of_are_refused(rng, monkeypatch):
    monkeypatch.setattr("spdmetric.estimators.metric.MOST", 19)
    with pytest.raises(ValueError, match="compares all pairs of matrices, and X has 20: expected at most 19"):
        LogEuclideanMetric(1.0, kernel="rbf").fit(*middle_and_ends(rng, 20, 3))


def test_a_kernel_past_memory_says_what_it_would_take(rng, monkeypatch):
    X, y = middle_and_ends(rng, 20, 3)
    metric = LogEuclideanMetric(1.0, kernel="rbf").fit(X, y)
    monkeypatch.setattr("spdmetric.objectives.data.memory_limit", lambda: 10_000)
    with pytest.raises(
        MemoryError, match=r"A kernel of 20 x 20 pairs would take 1.28e-05 GB, and this process"
    ):
        metric.pairwise_kernel(X)
