"""Distances, kernels, means: closed forms, pyRiemann, and the theorems of the paper."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyriemann.geometry.kernel import kernel_logeuclid, kernel_riemann
from pyriemann.geometry.mean import mean_logeuclid as peer_mean_logeuclid
from pyriemann.geometry.mean import mean_riemann as peer_mean_riemann
from pyriemann.tangentspace import TangentSpace
from sklearn.exceptions import ConvergenceWarning

import literal
from random_matrices import rotation, spd, symmetric
from spdmetric.geometry import (
    distance_euclid,
    distance_logeuclid,
    distance_riemann,
    distance_stein,
    kernel_tangent,
    mean_euclid,
    mean_logeuclid,
    mean_riemann,
    median_riemann,
    pairwise_distance,
    tangent_vectors,
)
from spdmetric.linalg.symmetric import congruence, expm, powm, vech
from spdmetric.means import average_riemann

seeds = st.integers(0, 2**32 - 1)


# -- peers ----------------------------------------------------------------------


def test_kernel_is_pyriemanns_kernel_riemann_and_not_its_kernel_logeuclid(rng):
    X, Y, G = spd(rng, 6, 4), spd(rng, 5, 4), spd(rng, 4)
    ours = kernel_tangent(X, Y, G)
    np.testing.assert_allclose(ours, kernel_riemann(X, Y, Cref=G), rtol=1e-10, atol=1e-10)
    assert np.abs(ours - kernel_logeuclid(X, Y, Cref=G)).max() > 1e-2
    assert ours[1, 2] == pytest.approx(literal.k(G, X[1], Y[2]), rel=1e-10)


def test_tangent_vectors_are_pyriemanns(rng):
    X, G = spd(rng, 6, 4), spd(rng, 4)
    peer = TangentSpace(metric="riemann")
    peer.reference_ = G
    np.testing.assert_allclose(tangent_vectors(X, G), peer.transform(X), rtol=1e-10, atol=1e-10)


DISTANCES = {"euclid": distance_euclid, "logeuclid": distance_logeuclid, "riemann": distance_riemann,
             "stein": distance_stein}  # fmt: skip


@pytest.mark.parametrize("metric", DISTANCES)
def test_distances_are_pyriemanns(metric, rng):
    from pyriemann.geometry.distance import distance

    X, Y, of_pairs = spd(rng, 5, 4), spd(rng, 3, 4), DISTANCES[metric]
    peer = {"stein": "logdet"}.get(metric, metric)
    expected = np.array([[distance(A, B, metric=peer) for B in Y] for A in X])
    np.testing.assert_allclose(pairwise_distance(X, Y, metric), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(of_pairs(X[:, None], Y), expected, rtol=1e-10)
    assert of_pairs(X[0], Y[1]) == pytest.approx(expected[0, 1], rel=1e-10)
    among = pairwise_distance(X, None, metric)
    np.testing.assert_array_equal(among, among.T)


@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize("switch", ["0", "1"])
def test_integers_are_not_truncated_and_single_precision_stays(metric, switch, rng, monkeypatch):
    """With the kernels, distances were cast back to the type of X."""
    monkeypatch.setenv("SPDMETRIC_COMPILED", switch)
    A = rng.integers(-3, 4, (8, 3, 5))
    X = A @ A.transpose(0, 2, 1) + np.eye(3, dtype=int)
    found, expected = pairwise_distance(X, X[:4], metric), pairwise_distance(X * 1.0, X[:4] * 1.0, metric)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        pairwise_distance(X, None, metric), pairwise_distance(X * 1.0, None, metric)
    )
    assert found.dtype == np.float64
    assert pairwise_distance(X.astype(np.float32), metric=metric).dtype == np.float32


@pytest.mark.parametrize("scale", [1e-14, 1.0, 1e14])
def test_means_are_pyriemanns(scale, rng):
    X, w = spd(rng, 20, 5), rng.uniform(0.5, 2, 20)
    peer = peer_mean_riemann(X, sample_weight=w, tol=1e-12)
    np.testing.assert_allclose(mean_riemann(scale * X, w) / scale, peer, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(mean_logeuclid(X, w), peer_mean_logeuclid(X, sample_weight=w), rtol=1e-10)


def test_vech_of_integers_does_not_truncate():
    S = np.array([[4, 1], [1, 9]])
    np.testing.assert_array_equal(vech(S), vech(S.astype(float)))


# -- means ----------------------------------------------------------------------


def test_mean_says_when_it_stops_early(rng):
    with pytest.warns(ConvergenceWarning, match="stopped after 1 iterations .* raise max_iter") as caught:
        mean_riemann(spd(rng, 5, 3), max_iter=1)
    assert caught[0].filename == __file__  # the caller's line, not the package's


# -- theorems and invariances -----------------------------------------------------


@given(seeds, st.integers(2, 6))
def test_equality_on_geodesics_through_the_reference(seed, d):
    rng = np.random.default_rng(seed)
    G, xi = spd(rng, d), symmetric(rng, d)
    root = powm(G, 0.5)
    A, B = congruence(root, expm(0.7 * xi)), congruence(root, expm(-0.4 * xi))
    assert float(distance_logeuclid(A, B, G)) == pytest.approx(float(distance_riemann(A, B)), rel=1e-8)
    # ... and for any pair that commutes after whitening, which the paper does not say
    Q = rotation(rng, d)
    a, b = np.exp(rng.standard_normal((2, d)))
    A, B = (congruence(root, (Q * x) @ Q.T) for x in (a, b))
    assert float(distance_logeuclid(A, B, G)) == pytest.approx(float(distance_riemann(A, B)), rel=1e-8)


# -- the Riemannian mean in few passes -------------------------------------------------


def gradient_length(X, G):
    return np.linalg.norm(tangent_vectors(X, G).mean(axis=0))


def one_wide_direction(rng, d=8):
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    scales = np.ones((50, d))
    scales[:, 0] = np.exp(6 * rng.standard_normal(50))
    return Q @ (scales[:, :, None] * Q.T) + 1e-3 * np.eye(d)


def scattered(rng, d=8):
    found = []
    for _ in range(50):
        Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        found.append((Q * np.exp(4 * rng.standard_normal(d))) @ Q.T)
    return (lambda X: (X + X.swapaxes(1, 2)) / 2)(np.array(found))


@pytest.mark.parametrize("draw", [one_wide_direction, scattered])
@pytest.mark.parametrize("seed", range(5))
def test_mean_of_awkward_matrices(draw, seed):
    X = draw(np.random.default_rng(seed))
    assert gradient_length(X, mean_riemann(X)) <= 1e-7


def practical(rng):
    A = rng.standard_normal((60, 16, 40))
    return A @ A.swapaxes(1, 2) / 40


def uneven(rng, d=30):
    """Matrices that vary far more along some axes than along others, as those of images do."""
    root = np.logspace(-0.5, 0.0, d)
    return expm(root[:, None] * symmetric(rng, 20, d) * root)


@pytest.mark.parametrize(("draw", "most"), [(practical, 8), (uneven, 9)])
@pytest.mark.parametrize("seed", range(4))
def test_mean_takes_few_passes(draw, most, seed):
    """Each pass decomposes every matrix; uneven ones needed ten when curvature was one number."""
    X, passes = draw(np.random.default_rng(seed)), []

    def average(f):
        passes.append(f)
        return f(X).mean(axis=0)

    G = average_riemann(average, len(X), tol=1e-8)
    assert gradient_length(X, G) <= 1e-8
    assert len(passes) <= most + 2  # the arithmetic and the harmonic mean have a cheap one each


def test_a_step_that_misleads_is_taken_back():
    """Two matrices far apart in one direction: secants of the first steps are poor."""
    X = np.array([np.diag([1e4, 1e-4, 1.0]), np.diag([1.0, 1e4, 1e-4]), np.eye(3) + 0.9 * (1 - np.eye(3))])
    assert gradient_length(X, mean_riemann(X)) <= 1e-6


MEANS = pytest.mark.parametrize("mean", [mean_euclid, mean_logeuclid, mean_riemann, median_riemann])


@MEANS
def test_means_of_what_is_no_stack_get_a_sentence(rng, mean):
    for X, hint in ((spd(rng, 4), r"X\[None\]"), (spd(rng, 6, 2, 4), "view by view")):
        with pytest.raises(ValueError, match=f"Expected X of shape .*{hint}"):
            mean(X)


@MEANS
@pytest.mark.parametrize("weight", [np.ones(1), np.ones(3), np.ones((4, 1)), [1.0, 2.0, 1.0]])
def test_means_want_one_weight_for_each_matrix(rng, mean, weight):
    with pytest.raises(
        ValueError, match=r"sample_weight.shape == .*, expected \(4,\): one weight for each matrix"
    ):
        mean(spd(rng, 4, 3), weight)
