"""Carrying a learned metric to a new session."""

import numpy as np
import pytest

from random_matrices import labeled, rotation
from spdmetric import LogEuclideanMetric
from spdmetric.geometry import distance_riemann, mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm, sqrtm


@pytest.mark.parametrize("rank", [None, 2])
def test_adaptation_is_the_transport_of_the_factor(rank, rng):
    """W becomes W M_old^{1/2} M_new^{-1/2}: the same inner products as by the formula."""
    X, y = labeled(rng, 30, 4)
    new = congruence(rng.standard_normal((4, 4)) + 2 * np.eye(4), X)
    metric = LogEuclideanMetric(2.0, rank=rank).fit(X, y)
    W = metric.components_ @ sqrtm(mean_riemann(X)) @ invsqrtm(mean_riemann(new))
    adapted = metric.adapt(new)
    np.testing.assert_allclose(adapted.components_, W, rtol=1e-6, atol=1e-8)
    if rank is None:
        np.testing.assert_allclose(adapted.reference_, np.linalg.inv(W.T @ W), rtol=1e-5, atol=1e-8)
    assert adapted is not metric
    assert adapted.alignment_ == metric.alignment_


def test_a_stream_ends_near_the_whole_session(rng):
    X, y = labeled(rng, 60, 3)
    new = congruence(rotation(rng, 3) @ np.diag([1.0, 2.0, 3.0]), X)
    metric = LogEuclideanMetric(2.0).fit(X, y)
    stream = metric
    for start in range(0, 60, 12):
        stream = stream.partial_adapt(new[start : start + 12])
    whole = metric.adapt(new)
    before = float(distance_riemann(metric.reference_, whole.reference_))
    assert float(distance_riemann(stream.reference_, whole.reference_)) < 0.05 * before
    np.testing.assert_allclose(stream.adapt(new).reference_, whole.reference_, rtol=1e-9)
