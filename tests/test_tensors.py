"""Tensors: learning runs on NumPy, everything else where the tensor lives; the same numbers."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from random_matrices import labeled, spd
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV, geometry
from spdmetric.linalg.symmetric import symmetrize
from spdmetric.validation import is_tensor, to_numpy

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch: pip install 'spdmetric[torch]'")
WAYS = {
    "array_api_strict": strict.asarray,
    "torch": lambda x: torch.asarray(x) if isinstance(x, np.ndarray) else torch.tensor(x),
}
ways = pytest.mark.parametrize(
    "to", [pytest.param(WAYS[name], id=name, marks=needs_torch if name == "torch" else ()) for name in WAYS]
)
MODELS = {
    "full rank": LogEuclideanMetric(3.0),
    "far out": LogEuclideanMetric(15.0, tol=1e-3),
    "rank 2": LogEuclideanMetric(2.0, rank=2, tol=1e-3),
    "shape": LogEuclideanMetric(2.0, weighting="discriminant", tol=1e-3),
    "Gaussian": LogEuclideanMetric(2.0, kernel="rbf", tol=1e-3),
    "chosen": LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), cv=2),
}
models = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


@pytest.fixture
def data(rng):
    return labeled(rng, 24, 4, classes=2)


def same(ours, expected, atol=1e-9):
    """The same numbers, in a tensor: to 1e-9, and to 1e-9 of the largest number where that is above 1."""
    assert is_tensor(ours)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(to_numpy(ours), expected, rtol=0, atol=atol * scale)


# -- the estimator --------------------------------------------------------------


@ways
@models
def test_everything_that_is_learned_and_given_back(model, to, data, rng):
    X, y = data
    weight = rng.uniform(0.5, 2, len(X))
    new = spd(rng, 6, 4)
    ours = clone(model).fit(to(X), to(y), sample_weight=to(weight))
    theirs = clone(model).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(ours.components_, theirs.components_)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert isinstance(ours.components_, np.ndarray)
    vectors = theirs.transform(new)
    same(ours.transform(to(new)), vectors)
    if theirs.weighting_ is None:
        same(ours.inverse_transform(to(vectors)), theirs.inverse_transform(vectors))
    pairs = np.stack([new[:3], new[3:]], axis=1)
    same(ours.pair_distance(to(pairs)), theirs.pair_distance(pairs))
    same(ours.pair_score(to(pairs)), theirs.pair_score(pairs))
    assert ours.get_metric()(to(new[0]), to(new[1])) == theirs.get_metric()(new[0], new[1])
    adapted = ours.adapt(to(new), sample_weight=to(weight[:6]))
    np.testing.assert_array_equal(adapted.components_, theirs.adapt(new, weight[:6]).components_)


@ways
def test_start_and_groups_as_tensors(to, data):
    X, y = data
    G0 = np.diag([1.0, 2.0, 3.0, 4.0])
    ours = LogEuclideanMetric(1.0, init=to(G0)).fit(X, y)
    np.testing.assert_array_equal(ours.components_, LogEuclideanMetric(1.0, init=G0).fit(X, y).components_)
    with pytest.raises(ValueError, match="init='riemann' and init='median' only"):
        ours.adapt(X)
    from sklearn.model_selection import GroupKFold

    groups = np.arange(len(X)) // 8
    chosen = LogEuclideanMetricCV(radii=(0, 1), ranks=(None,), cv=GroupKFold(3))
    by_tensor = clone(chosen).fit(to(X), to(y), groups=to(groups))
    assert by_tensor.best_score_ == clone(chosen).fit(X, y, groups=groups).best_score_


@ways
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_domains(to, dtype, data):
    X, y, domain = symmetrize(data[0]).astype(dtype), data[1], np.arange(len(data[1])) // 2 % 3
    ours = LogEuclideanMetric(2.0).fit(to(X), to(y), sample_domain=to(domain))
    theirs = LogEuclideanMetric(2.0).fit(X, y, sample_domain=domain)
    for domains in (domain, domain + 2):  # the latter is new
        expected = theirs.transform(X, domains)
        assert str(expected.dtype) in str(ours.transform(to(X), domains).dtype)
        same(ours.transform(to(X), to(domains)), expected, atol=1e-6)
    chosen = LogEuclideanClassifier(LogEuclideanMetric(0.0)).fit(to(X), to(y), sample_domain=domain)
    assert chosen.predict(to(X), to(domain)).shape == (len(X),)


@ways
def test_bad_tensors_get_the_same_sentences(to, data):
    X, y = data
    metric = LogEuclideanMetric(1.0).fit(X, y)
    bad = X.copy()
    bad[3] = -np.eye(4)
    for use in (metric.transform, lambda Z: LogEuclideanMetric(1.0).fit(Z, y)):
        with pytest.raises(ValueError, match=r"X\[3\] is not positive definite"):
            use(to(bad))
    with pytest.raises(ValueError, match="X has 3 x 3 matrices, but"):
        metric.transform(to(X[:, :3, :3].copy()))
    singular = X.copy()
    singular[5] = np.diag([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"X\[5\] has numerical rank 1, too low for rank=2"):
        LogEuclideanMetric(1.0, rank=2).fit(X, y).transform(to(singular))


def test_an_array_that_stays_on_its_device_is_told_so(data):
    X, y = data
    far = strict.asarray(X, device=strict.Device("device1"))
    with pytest.raises(ValueError, match=r"cannot be brought to NumPy.*move it to the CPU"):
        LogEuclideanMetric(1.0).fit(far, y)
    metric = LogEuclideanMetric(1.0).fit(X, y)
    vectors = metric.transform(far)
    assert vectors.device == far.device
    assert metric.inverse_transform(vectors).device == far.device


# -- torch alone ----------------------------------------------------------------


@needs_torch
@pytest.mark.parametrize("rank", [None, 2])
def test_gradients_flow_through_transform_and_back(rank, data):
    X, y = data
    metric = LogEuclideanMetric(2.0, rank=rank, tol=1e-3).fit(torch.tensor(X, requires_grad=True), y)

    def forth(L):
        return metric.transform(symmetrize(L))

    def back(v):
        return metric.inverse_transform(v)

    L = torch.tensor(X[:2], requires_grad=True)
    assert torch.autograd.gradcheck(forth, (L,))
    vectors = forth(L).detach().requires_grad_()
    assert torch.autograd.gradcheck(back, (vectors,))
    assert forth(L).requires_grad


@needs_torch
def test_awkward_torch_tensors(data):
    X, y = data
    metric = LogEuclideanMetric(2.0)
    expected = clone(metric).fit(X, y).transform(X)
    double = torch.tensor(np.repeat(X, 2, axis=0))[::2]
    turned = torch.tensor(X).transpose(1, 2)
    for other in (double, turned, torch.tensor(X, requires_grad=True)):
        ours = clone(metric).fit(other, torch.tensor(y, dtype=torch.int32))
        # Sums in another order round otherwise, and `tol` leaves the solution some slack.
        same(ours.transform(other), expected, atol=1e-3)
    assert not double.is_contiguous()


# -- functions that claim the array API -------------------------------------------


def agree(to, f, *arrays):
    same(f(*(to(a) for a in arrays)), f(*arrays))


@ways
@given(seed=st.integers(0, 2**32 - 1), d=st.integers(1, 3))
def test_geometry_in_other_namespaces(to, seed, d):
    rng = np.random.default_rng(seed)
    X, Y, G, w = spd(rng, 5, d), spd(rng, 4, d), spd(rng, d), rng.uniform(0.5, 2, 5)
    agree(to, geometry.tangent_vectors, X, G)
    agree(to, lambda V, A: geometry.matrices_at(V, A), geometry.tangent_vectors(X, G), G)
    agree(to, geometry.log_map, X, G)
    agree(to, geometry.exp_map, geometry.log_map(X, G), G)
    agree(to, lambda A, B: geometry.geodesic(A, B, 0.3), X[0], Y[0])
    agree(to, geometry.kernel_tangent, X, Y, G)
    for distance in (
        geometry.distance_euclid,
        geometry.distance_logeuclid,
        geometry.distance_riemann,
        geometry.distance_stein,
    ):
        agree(to, distance, X[:4], Y)
    for metric in geometry.PAIRWISE_METRICS:
        agree(to, lambda A, B, metric=metric: geometry.pairwise_distance(A, B, metric), X, Y)
    for mean in (geometry.mean_euclid, geometry.mean_logeuclid, geometry.mean_riemann):
        agree(to, mean, X, w)


@ways
def test_a_reference_of_numpy_beside_tensors(to, data):
    """An estimator keeps its reference point in NumPy."""
    X, y = data
    G = LogEuclideanMetric(1.0).fit(X, y).reference_
    same(
        geometry.distance_logeuclid(to(X[:5]), to(X[5:10]), G), geometry.distance_logeuclid(X[:5], X[5:10], G)
    )
    same(geometry.kernel_tangent(to(X), reference=G), geometry.kernel_tangent(X, reference=G))
    vectors = geometry.tangent_vectors(X, G)
    same(geometry.matrices_at(to(vectors), G), geometry.matrices_at(vectors, G))


@needs_torch
def test_means_are_differentiable(rng):
    X = torch.tensor(spd(rng, 4, 3), requires_grad=True)
    geometry.mean_riemann(X).trace().backward()
    step = torch.tensor(symmetrize(rng.standard_normal((4, 3, 3))))
    h = 1e-5
    ends = [geometry.mean_riemann(X.detach() + s * h * step, tol=1e-12).trace() for s in (1, -1)]
    slope = float(ends[0] - ends[1]) / (2 * h)
    assert float((X.grad * step).sum()) == pytest.approx(slope, rel=1e-4)
