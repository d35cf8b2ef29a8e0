"""Metrics of low rank: what they learn, on what they work, what they refuse."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from random_matrices import labeled, rotation, spd
from spdmetric import LogEuclideanMetric
from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.linalg.symmetric import congruence, invsqrtm, logm
from spdmetric.objectives.data import ClassTarget
from spdmetric.objectives.start import class_directions


def directions(X, y):
    L = logm(X)
    target = ClassTarget.from_codes(np.unique(y, return_inverse=True)[1])
    return class_directions(lambda f: f(L, target), L.shape[1], target.contrasts)


def test_shapes_and_what_there_is(rng):
    X, y = labeled(rng, 30, 5, classes=3)
    metric = LogEuclideanMetric(3.0, rank=2).fit(X, y)
    assert metric.components_.shape == (2, 5)
    assert metric.transform(X).shape == (30, 3)
    assert metric.radius_ <= 3 * (1 + 1e-9)
    assert metric.solution_.converged
    np.testing.assert_allclose(metric.transform(X), tangent_vectors(X, factor=metric.components_), atol=1e-9)
    images = metric.inverse_transform(metric.transform(X))
    np.testing.assert_allclose(images, congruence(metric.components_, X), rtol=1e-8)
    with pytest.raises(AttributeError, match=r"rank 2 .* has no reference point: use components_"):
        metric.reference_  # noqa: B018


def test_radius_zero_is_the_start(rng):
    X, y = labeled(rng, 30, 5)
    metric = LogEuclideanMetric(0, rank=2).fit(X, y)
    W0 = invsqrtm(mean_riemann(X))
    expected = directions(congruence(W0, X), y)[:2] @ W0
    np.testing.assert_allclose(metric.components_.T @ metric.components_, expected.T @ expected, atol=1e-10)
    assert metric.radius_ == 0


def test_class_directions_find_the_plane_in_which_classes_differ(rng):
    X = spd(rng, 40, 5, spread=0.05)
    y = np.arange(40) % 2
    Q = rotation(rng, 5)
    X[y == 1] = congruence(Q @ np.diag([2.0, 0.5, 1, 1, 1]) @ Q.T, X[y == 1])
    found = directions(congruence(invsqrtm(mean_riemann(X)), X), y)
    np.testing.assert_allclose(found @ found.T, np.eye(5), atol=1e-12)
    cosines = np.linalg.svd(found[:2] @ Q[:, :2], compute_uv=False)
    assert cosines.min() > 0.95


@pytest.mark.parametrize("solver", ["trust-region", "gradient"])
def test_solvers_end_at_kkt_points(solver, rng):
    X, y = labeled(rng, 30, 4)
    metric = LogEuclideanMetric(2.0, rank=2, solver=solver, tol=1e-5).fit(X, y)
    assert metric.solution_.residual <= 1e-5
    assert metric.solution_.multiplier >= 0
    assert metric.alignment_ > LogEuclideanMetric(0, rank=2).fit(X, y).alignment_


# -- rank-deficient matrices ---------------------------------------------------------------


def test_projected_matrices_give_the_fit_of_the_small_ones(data_folder):
    """22 channels projected to rank 15: full rank refuses, rank 10 is the fit inside the range."""
    from reproduction.datasets import load_bci_iv_2a
    from spdmetric.datasets import recenter

    X, y, groups = load_bci_iv_2a(9, data_folder / "bci2a-a09")
    X, y = recenter(X, groups)[::2], y[::2]
    P = rotation(np.random.default_rng(0), 22)[:, :15]
    small, singular = congruence(P.T, X), congruence(P @ P.T, X)
    with pytest.raises(ValueError, match=r"numerical rank 15 of 22.*rank=m"):
        LogEuclideanMetric().fit(singular, y)
    inside, projected = (LogEuclideanMetric(5.0, rank=10).fit(Z, y) for Z in (small, singular))
    assert projected.alignment_ == pytest.approx(inside.alignment_, abs=1e-6)
    predictions = [
        KNeighborsClassifier(1).fit(m.transform(Z[::2]), y[::2]).predict(m.transform(Z[1::2]))
        for m, Z in ((inside, small), (projected, singular))
    ]
    np.testing.assert_array_equal(*predictions)


def test_fewer_samples_than_channels(rng):
    """Each matrix has a range of its own: no Riemannian mean, but arithmetic means and rank 3 work."""
    signals = rng.standard_normal((30, 6, 4)) * np.where(np.arange(30) % 2, 1.0, 2.0)[:, None, None]
    X, y = signals @ signals.transpose(0, 2, 1), np.arange(30) % 2
    with pytest.raises(ValueError, match=r"init='riemann' needs .* pass init='euclid'"):
        LogEuclideanMetric(2.0, rank=3).fit(X, y)
    metric = LogEuclideanMetric(2.0, rank=3, init="euclid", tol=1e-4).fit(X, y)
    assert np.isfinite(metric.transform(X)).all()
    with pytest.raises(ValueError, match=r"rank 4, too low for rank=5: choose rank <= 4"):
        LogEuclideanMetric(rank=5, init="euclid").fit(X, y)
