"""Hermitian matrices: everything is that of the complex matrices, as a literal transcription has it."""

import warnings

import numpy as np
import pytest
from pyriemann.geometry import distance as peers
from pyriemann.geometry.mean import mean_logeuclid as peer_logeuclid
from pyriemann.geometry.mean import mean_riemann as peer_riemann
from pyriemann.tangentspace import TangentSpace
from scipy.linalg import logm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import spdmetric
from spdmetric import (
    EmbeddingDisplay,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    LogEuclideanRegressor,
    PairDistanceDisplay,
    compare,
    geometry,
)
from spdmetric.linalg import hermitian
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.objectives.start import find_start
from spdmetric.plots.patterns import patterns_of


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
    vectors = hermitian.list_entries(L)
    whole = hermitian.unfold(vectors)
    np.testing.assert_allclose(hermitian.fold(whole), vectors, atol=1e-14)
    np.testing.assert_allclose(hermitian.fill_matrices(vectors, L), L, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), np.linalg.norm(L, axis=(1, 2)), rtol=1e-12)
    # `unfold` is twice the adjoint of `fold`.
    v, w = rng.standard_normal(36), rng.standard_normal(16)
    np.testing.assert_allclose(2 * hermitian.fold(v) @ w, v @ hermitian.unfold(w), rtol=1e-12)
    with pytest.raises(ValueError, match="length 15 is not that of a Hermitian matrix"):
        hermitian.fill_matrices(np.zeros(15), L)


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


# -- learning ------------------------------------------------------------------------


def literal_alignment(X, y, W):
    """The paper's alignment of complex matrices, by their complex logarithms."""
    L = np.array([logm(W @ Z @ W.conj().T) for Z in X])
    K = np.einsum("iab,jba->ij", L, L).real
    U = np.eye(len(y)) - 1 / len(y)
    Y = np.eye(y.max() + 1)[y]
    A, B = U @ K @ U, U @ Y @ Y.T @ U
    return np.sum(A * B) / np.linalg.norm(A) / np.linalg.norm(B)


@pytest.fixture
def labeled(rng):
    y = np.arange(24) % 2
    A = rng.standard_normal((24, 4, 12)) + 1j * rng.standard_normal((24, 4, 12))
    turn = np.eye(4) + 0.6j * np.eye(4, k=1) * 1.0
    A[y == 1] = turn @ A[y == 1]
    return A @ A.conj().mT / 12, y


@pytest.mark.parametrize("rank", [None, 2])
def test_a_real_start_is_a_complex_one(labeled, rank):
    X, y = labeled
    start = X.mean(axis=0).real
    real, same = (LogEuclideanMetric(rank=rank, init=init).fit(X, y) for init in (start, start + 0j))
    np.testing.assert_array_equal(real.components_, same.components_)


@pytest.mark.parametrize("compiled", ["0", "1"])
@pytest.mark.parametrize("rank", [None, 2])
def test_alignment_and_gradient_are_those_of_the_transcription(labeled, rng, rank, compiled, monkeypatch):
    monkeypatch.setenv("SPDMETRIC_COMPILED", compiled)
    X, y = labeled
    data = Data(X, ClassTarget.from_codes(y))
    start = find_start(data, "riemann", rank)
    objective = Misalignment(data.whitened(start.factor))
    ball = start.ball(rank, 3.0)
    step = hermitian.to_real(rng.standard_normal((rank or 4, 4)) + 1j * rng.standard_normal((rank or 4, 4)))
    m = len(step)
    step[:, :m] = step[:, :m] + step[:, :m].T
    point = ball.point(0.3 * step)
    here = objective.at(point)
    W = point.factor @ start.factor
    np.testing.assert_allclose(here.alignment, literal_alignment(X, y, W), rtol=1e-10)
    eta = ball.point(step / 7).S

    def value(t):
        return 1 - literal_alignment(X, y, ball.point(point.S + t * eta).factor @ start.factor)

    slope = (value(1e-4) - value(-1e-4)) / 2e-4
    np.testing.assert_allclose(np.vdot(here.gradient, eta), slope, rtol=1e-6)


@pytest.mark.parametrize("solver", ["trust-region", "gradient", "stochastic"])
@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("radius", [0.0, 3.0, 30.0])
def test_the_reference_point_stays_hermitian(labeled, solver, rank, radius):
    X, y = labeled
    metric = LogEuclideanMetric(radius, rank=rank, solver=solver, tol=1e-2, max_iter=30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        metric.fit(X, y)
    W = metric.components_
    assert W.shape == (rank or 4, 4)
    assert np.iscomplexobj(W)
    if radius < 30 and solver != "stochastic":  # further out a symmetric factor drowns small eigenvalues
        np.testing.assert_allclose(metric.alignment_, literal_alignment(X, y, W), rtol=1e-8)
    if rank is None:
        G = metric.reference_
        np.testing.assert_array_equal(G, G.conj().T)
        values = np.linalg.eigvalsh(G)
        assert values[0] > -1e-15 * values[-1]  # definite to rounding
        if radius < 30:
            distance = geometry.distance_riemann(geometry.mean_riemann(X), G)
            np.testing.assert_allclose(metric.radius_, distance, atol=1e-6)
            assert distance <= radius * (1 + 1e-6) + 1e-6


ESTIMATORS = [
    LogEuclideanMetric(3.0, weighting="discriminant"),
    LogEuclideanMetric(2.0, kernel="rbf", tol=1e-2),
    LogEuclideanMetric(2.0, rank=2),
    LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), cv=3),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["weighting", "Gaussian", "rank 2", "chosen"])
def test_unitary_congruence_changes_nothing(labeled, rng, estimator, tmp_path):
    """Turned matrices have the same distances, and files keep everything."""
    X, y = labeled
    U = np.linalg.qr(rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))[0]
    pairs = np.stack([X[:12], X[12:]], axis=1)
    metric = clone(estimator).fit(X, y)
    turned = clone(estimator).fit(U @ X @ U.conj().T, y)
    distances = metric.pair_distance(pairs)
    np.testing.assert_allclose(turned.pair_distance(U @ pairs @ U.conj().T), distances, rtol=1e-4)
    vectors = metric.transform(X)
    assert vectors.dtype == np.float64
    np.testing.assert_allclose(np.linalg.norm(vectors[:12] - vectors[12:], axis=1), distances, rtol=1e-9)
    single = metric.transform(X.astype(np.complex64))
    np.testing.assert_allclose(single, vectors, atol=1e-3 * np.abs(vectors).max())
    spdmetric.save(metric, tmp_path / "model.skops")
    np.testing.assert_array_equal(spdmetric.load(tmp_path / "model.skops").transform(X), vectors)
    adapted = metric.adapt(X[::-1])
    np.testing.assert_allclose(adapted.transform(X), vectors, atol=1e-6)


def test_vectors_have_an_inverse_and_names(labeled):
    X, y = labeled
    metric = LogEuclideanMetric(2.0).fit(X, y)
    vectors = metric.transform(X)
    np.testing.assert_allclose(metric.inverse_transform(vectors), X, atol=1e-9)
    expected = geometry.distance_logeuclid(X[0], X[1], metric.reference_)
    np.testing.assert_allclose(np.linalg.norm(vectors[0] - vectors[1]), expected, rtol=1e-9)
    names = metric.get_feature_names_out(["a", "b", "c", "d"])
    assert names[[0, 1, 10, 15]].tolist() == ["a·a real", "a·b real", "a·b imag", "c·d imag"]


def test_classifier_and_regressor_with_domains_and_weights(labeled, rng):
    X, y = labeled
    domain = np.repeat(["one", "two"], 12)
    weight = rng.uniform(0.5, 2.0, len(y))
    model = LogEuclideanClassifier(cv=2).fit(X, y, sample_weight=weight, sample_domain=domain)
    assert model.score(X, y, sample_domain=domain) > 0.7
    adapted = LogEuclideanClassifier(cv=2).fit(X, y).adapt(X, y)
    assert adapted.score(X, y) > 0.7
    target = np.log(np.trace(X, axis1=1, axis2=2).real)
    assert LogEuclideanRegressor(cv=3).fit(X, target).score(X, target) > 0.7


def test_streams_files_and_several_views(labeled, tmp_path):
    X, y = labeled
    stream = LogEuclideanMetric(1.0, random_state=0).partial_fit(X, y, classes=[0, 1])
    assert np.iscomplexobj(stream.reference_)
    np.save(tmp_path / "X.npy", X)
    whole = LogEuclideanMetric(2.0).fit(X, y)
    mapped = LogEuclideanMetric(2.0).fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_allclose(mapped.reference_, whole.reference_, rtol=1e-9)
    one = LogEuclideanMetric(2.0).fit(X[:, None], y)
    np.testing.assert_array_equal(one.transform(X[:, None]), whole.transform(X))
    views = np.stack([X, X], axis=1)
    two = LogEuclideanMetric(2.0).fit(views, y)
    assert two.reference_.shape == (2, 4, 4)
    pairs = np.stack([X[:12], X[12:]], axis=1)
    of_views = np.stack([views[:12], views[12:]], axis=1)
    distances = np.sqrt(2) * whole.pair_distance(pairs)
    np.testing.assert_allclose(two.pair_distance(of_views), distances, rtol=1e-6)


def test_comparison_and_displays_of_complex_matrices(labeled, tmp_path):
    """Methods that would drop the imaginary part are named, and patterns explain the components."""
    X, y = labeled
    report = compare(X, y, repeats=1, methods=("spdmetric", "mdm", "csp-lda", "fgmdm", "logeuclid-mean-lda"))
    assert report.verdict.plan.left_out == dict.fromkeys(("csp-lda", "fgmdm"), "takes real matrices only")
    assert not report.verdict.failed
    assert not any(found["warning"] for found in report.verdict.outcomes.values())
    report.save(tmp_path / "page.html")
    metric = LogEuclideanMetric(1.0, rank=2).fit(X, y)
    found = patterns_of(metric, X, y)
    np.testing.assert_allclose(found.filters @ found.patterns.T, np.eye(2), atol=1e-9)
    S = found.filters @ X.mean(axis=0) @ found.filters.conj().T
    np.testing.assert_allclose(X.mean(axis=0) @ found.filters.conj().T, found.patterns.T @ S, atol=1e-9)
    np.testing.assert_allclose(found.shown.max(axis=1), found.patterns.max(axis=1).real)
    EmbeddingDisplay.from_estimator(metric, X, y)
    PairDistanceDisplay.from_estimator(metric, X, y)


def test_no_imaginary_part_learns_what_real_matrices_do(labeled):
    """At the mean; the search has more directions."""
    X, y = labeled
    real = LogEuclideanMetric(0.0).fit(X.real, y)
    flat = LogEuclideanMetric(0.0).fit(X.real + 0j, y)
    np.testing.assert_allclose(flat.alignment_, real.alignment_, rtol=1e-10)
    np.testing.assert_allclose(flat.reference_, real.reference_, atol=1e-9)


def test_a_metric_of_real_matrices_takes_no_others(labeled):
    X, y = labeled
    with pytest.raises(ValueError, match="fitted on real matrices"):
        LogEuclideanMetric(1.0).fit(X.real, y).transform(X)
