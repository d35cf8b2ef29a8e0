"""Hermitian matrices: everything is that of the complex matrices, as a literal transcription has it."""

from __future__ import annotations

import numpy as np
import pytest
from pyriemann.geometry import distance as peers
from pyriemann.geometry.mean import mean_logeuclid as peer_logeuclid
from pyriemann.geometry.mean import mean_riemann as peer_riemann
from pyriemann.tangentspace import TangentSpace
from scipy.linalg import logm

from spdmetric import geometry
from spdmetric.linalg import hermitian


def make_hermitian(rng, n, d, scale=1.0):
    A = rng.standard_normal((n, d, 2 * d)) + 1j * rng.standard_normal((n, d, 2 * d))
    return scale * A @ A.conj().mT / (4 * d)


@pytest.fixture
def X(rng):
    return make_hermitian(rng, 8, 4)


def test_real_matrices_of_complex_ones(X, rng):
    """Products, logarithms and vectors go along; what is not of that form is projected."""
    R, L = hermitian.to_real(X), np.array([logm(Z) for Z in X])
    np.testing.assert_allclose(hermitian.to_real(X @ X), R @ R, atol=1e-12)
    vectors = hermitian.vech_complex(L)
    whole = hermitian.unfold(vectors)
    np.testing.assert_allclose(hermitian.fold(whole), vectors, atol=1e-14)
    np.testing.assert_allclose(hermitian.unvech_complex(vectors), L, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.linalg.norm(L, axis=(1, 2)), rtol=1e-12)
    values, vectors = hermitian.complex_spectrum(R[0])
    np.testing.assert_allclose((vectors * values) @ vectors.T, R[0], atol=1e-12)
    rest = rng.standard_normal((6, 8))
    step = rest - hermitian.project(rest)
    assert abs(np.vdot(step, hermitian.project(rest))) < 1e-12
    # `unfold` is twice the adjoint of `fold`.
    v, w = rng.standard_normal(36), rng.standard_normal(16)
    np.testing.assert_allclose(2 * hermitian.fold(v) @ w, v @ hermitian.unfold(w), rtol=1e-12)
    with pytest.raises(ValueError, match="length 15 is not that of a Hermitian matrix"):
        hermitian.unvech_complex(np.zeros(15))


@pytest.mark.parametrize("scale", [1.0, 1e-12])
@pytest.mark.parametrize(
    ("name", "peer"),
    [("euclid", "euclid"), ("logeuclid", "logeuclid"), ("riemann", "riemann"), ("stein", "logdet")],
)
def test_distances_are_those_of_pyriemann(X, name, peer, scale):
    A, B = X[0] * scale, X[1] * scale
    ours = getattr(geometry, f"distance_{name}")(A, B)
    np.testing.assert_allclose(ours, getattr(peers, f"distance_{peer}")(A, B), rtol=1e-10)
    D = geometry.pairwise_distance(X * scale, metric=name)
    np.testing.assert_allclose(D[0, 1], ours, rtol=1e-10)
    np.testing.assert_allclose(D, geometry.pairwise_distance(X * scale, X * scale, metric=name), atol=1e-9)


def test_vectors_are_those_of_the_complex_logarithm(X):
    G = X.mean(axis=0)
    vectors = geometry.tangent_vectors(X, G)
    assert vectors.shape == (8, 16)
    assert vectors.dtype == np.float64
    np.testing.assert_allclose(geometry.matrices_at(vectors, G), X, atol=1e-12)
    peer = TangentSpace(metric="riemann").fit(X)
    theirs = peer.transform(X)
    expected = np.real(theirs @ theirs.conj().T)
    np.testing.assert_allclose(geometry.kernel_tangent(X, reference=peer.reference_), expected, atol=1e-7)


def test_means_are_those_of_pyriemann(X, rng):
    weight = rng.uniform(0.5, 2.0, len(X))
    mean = geometry.mean_riemann(X, weight)
    np.testing.assert_array_equal(mean, mean.conj().T)
    np.testing.assert_allclose(mean, peer_riemann(X, tol=1e-12, maxiter=200, sample_weight=weight), atol=1e-9)
    logeuclid = geometry.mean_logeuclid(X, weight)
    np.testing.assert_allclose(logeuclid, peer_logeuclid(X, sample_weight=weight), atol=1e-12)
    np.testing.assert_allclose(geometry.mean_euclid(X, weight), np.average(X, axis=0, weights=weight))
    U = np.linalg.qr(rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))[0]
    for average in (geometry.mean_riemann, geometry.median_riemann):
        turned = average(U @ X @ U.conj().T)
        np.testing.assert_allclose(turned, U @ average(X) @ U.conj().T, atol=1e-7)


def test_no_imaginary_part_gives_the_numbers_of_real_matrices(X):
    real = X.real
    for average in (geometry.mean_riemann, geometry.median_riemann, geometry.mean_logeuclid):
        np.testing.assert_allclose(average(real + 0j), average(real), atol=1e-9)
    for metric in geometry.PAIRWISE_METRICS:
        D = geometry.pairwise_distance(real, metric=metric)
        np.testing.assert_allclose(geometry.pairwise_distance(real + 0j, metric=metric), D, atol=1e-9)
