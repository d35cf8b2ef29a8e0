"""The geometric median, as a start, of domains and of new sessions."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pyriemann.geometry.median import median_riemann as peer_median

from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann, median_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm, logm, sqrtm


def wishart(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    A = rng.standard_normal((n, d, 3 * d))
    return A @ A.transpose(0, 2, 1) / (3 * d)


def gradient(M: np.ndarray, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Of the smoothed sum of distances, transcribed; its smoothing is 1 % of the mean distance nearby."""
    logs = logm(congruence(invsqrtm(M), X))
    square = np.sum(logs**2, axis=(1, 2))
    near = 0.01 * np.average(np.sqrt(square), weights=weight)
    return np.average(logs / np.sqrt(square + near**2)[:, None, None], axis=0, weights=weight)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), d=st.integers(1, 6))
def test_the_gradient_vanishes_and_congruence_moves_it_along(seed, d):
    rng = np.random.default_rng(seed)
    X, weight = wishart(rng, 15, d), rng.uniform(0.2, 2, 15)
    M = median_riemann(X, weight)
    steep = 1e-3 if d > 1 else 2e-2  # of numbers it is, near one of them
    assert np.abs(gradient(M, X, weight)).max() < steep  # the smoothing was that of the first point
    W = rng.standard_normal((d, d)) + 2 * np.eye(d)
    moved = congruence(invsqrtm(congruence(W, M)), median_riemann(congruence(W, X), weight))
    np.testing.assert_allclose(moved, np.eye(d), atol=1e-5)


def test_of_numbers():
    """A sum of distances to numbers is flat between two of them: steps were of any length."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X, weight = np.exp(rng.standard_normal((5, 1, 1))), rng.uniform(0.1, 2, 5)
        order, found = np.argsort(X[:, 0, 0]), np.log(median_riemann(X, weight)[0, 0])
        half = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2)
        assert abs(found - np.log(X[order[half], 0, 0])) < 0.1


def test_as_pyriemann():
    X = wishart(np.random.default_rng(1), 40, 5)
    theirs = peer_median(X, tol=1e-9, maxiter=500)
    np.testing.assert_allclose(median_riemann(X), theirs, atol=2e-3)  # theirs is not smoothed


def test_outlying_matrices_hardly_move_it():
    rng = np.random.default_rng(3)
    X = wishart(rng, 60, 5)
    spoiled = np.concatenate([X, congruence(np.diag([1e4, 1, 1, 1, 1]), X[:10])])

    def away(mean):
        return float(np.linalg.norm(logm(congruence(invsqrtm(mean(X)), mean(spoiled)))))

    assert away(median_riemann) < away(mean_riemann) / 5


def test_domains_and_sessions_are_seen_from_medians():
    X, y, X_new, _ = make_toy(n_train=60, n_test=60, d=4, random_state=0)
    both, labels = np.concatenate([X, 9 * X]), np.concatenate([y, y])
    session = np.repeat(["a", "b"], len(X))
    metric = LogEuclideanMetric(2.0, init="median").fit(both, labels, sample_domain=session)
    np.testing.assert_allclose(metric.domain_means_[0], median_riemann(X), rtol=1e-6)
    np.testing.assert_allclose(metric.domain_means_[1], 9 * metric.domain_means_[0], rtol=1e-6)
    plain = LogEuclideanMetric(2.0, init="median").fit(X, y)
    root = sqrtm(median_riemann(X)) @ invsqrtm(median_riemann(X_new))
    by_hand = plain.pair_distance(congruence(root, X_new)[:10].reshape(5, 2, 4, 4))
    there = plain.adapt(X_new).pair_distance(X_new[:10].reshape(5, 2, 4, 4))
    np.testing.assert_allclose(there, by_hand, rtol=1e-9)
