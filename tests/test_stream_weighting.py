"""The weighting of a stream: that of `fit` as long as the point stays, that of weighted matrices as it moves.

`fit` at radius 0 may take another multiple of the penalty, by errors that a stream does not know.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from random_matrices import labeled, spd
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.objectives.data import ClassTarget
from spdmetric.objectives.weighting import discriminant_weighting


def streamed(X, y, cuts, *, classes=None, weight=None, **parameters):
    metric = LogEuclideanMetric(weighting="discriminant", **{"random_state": 0, **parameters})
    for rows in np.split(np.arange(len(X)), cuts):
        given = None if weight is None else weight[rows]
        metric.partial_fit(
            X[rows], y[rows], classes=np.unique(y) if classes is None else classes, sample_weight=given
        )
    return metric


def exact_at(metric, X, y, weight=None):
    """The weighting of all matrices at the point where a metric has come to, in the frame of its vectors."""
    vectors = replace(metric.embedding_, weighting=None).embed(X)
    weight = np.ones(len(X)) if weight is None else weight
    targets = ClassTarget.from_codes(np.unique(y, return_inverse=True)[1], weight)
    return vectors, discriminant_weighting(vectors, targets, learned=True)


@pytest.fixture
def one_penalty(monkeypatch):
    """No multiple of the penalty is clearly better."""
    monkeypatch.setattr("spdmetric.objectives.weighting._CLEARLY", 1e9)


def likeness(vectors, one, other):
    """Cosine of the Gram matrices of two weightings: 1 where distances are proportional."""
    vectors = vectors - vectors.mean(axis=0)
    S, T = vectors @ one, vectors @ other
    return np.linalg.norm(S.T @ T) ** 2 / (np.linalg.norm(S.T @ S) * np.linalg.norm(T.T @ T))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_one_pass_at_a_fixed_point_is_fit(n_classes, weighted, rng, one_penalty):
    X, y = labeled(rng, 240, 3, classes=n_classes)
    weight = rng.uniform(0.2, 3.0, 240) if weighted else None
    G = spd(rng, 3)
    whole = LogEuclideanMetric(0.0, weighting="discriminant", init=G).fit(X, y, sample_weight=weight)
    metric = streamed(X, y, [4, 40, 81, 130, 200], weight=weight, radius=0.0, init=G)
    assert_allclose(
        metric.weighting_, whole.weighting_, rtol=1e-9, atol=1e-9 * np.abs(whole.weighting_).max()
    )
    assert metric.weighting_penalty_ == pytest.approx(whole.weighting_penalty_, rel=1e-9)
    assert metric.weighting_score_ == pytest.approx(whole.weighting_score_, abs=0.02)
    assert_allclose(metric.transform(X), whole.transform(X), atol=1e-9)
    pairs = np.stack([X[:9], X[9:18]], axis=1)
    assert_allclose(metric.pair_distance(pairs), whole.pair_distance(pairs), atol=1e-9)
    assert metric.get_metric()(X[0], X[9]) == pytest.approx(whole.get_metric()(X[0], X[9]), rel=1e-9)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    d=st.integers(1, 4),
    cuts=st.lists(st.integers(30, 59), max_size=6, unique=True).map(sorted),
    scale=st.sampled_from([1e-9, 1.0, 3e7]),
)
def test_how_a_stream_is_cut_does_not_matter(seed, d, cuts, scale):
    """Neither do batches that lack classes, nor the unit of the weights."""
    rng = np.random.default_rng(seed)
    X, y = labeled(rng, 60, d, classes=3)
    weight = rng.uniform(0.5, 2.0, 60)
    options = {"radius": 0.0, "init": "identity"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spdmetric.estimators._streaming.batch_size", lambda d: 1)
        once = streamed(X, y, [], weight=weight, **options)
        pieces = streamed(X, y, cuts, weight=scale * weight, **options)
    unit = pieces._stream._unit / once._stream._unit * scale
    assert_allclose(
        np.sqrt(unit) * pieces.weighting_, once.weighting_, atol=1e-8 * np.abs(once.weighting_).max()
    )
    assert pieces.weighting_penalty_ == pytest.approx(unit * once.weighting_penalty_, rel=1e-8)
    assert pieces.weighting_score_ == pytest.approx(once.weighting_score_, abs=1e-8)
    assert once.weighting_score_ < 1


def test_the_first_batch_has_the_shape_of_fit(rng, one_penalty):
    """Also where there are fewer matrices than features."""
    X, y = labeled(rng, 20, 7, classes=3)
    metric = streamed(X, y, [])
    whole = LogEuclideanMetric(0.0, weighting="discriminant").fit(X, y)
    assert metric.weighting_penalty_ == pytest.approx(whole.weighting_penalty_, rel=1e-6)
    assert_allclose(metric.transform(X), whole.transform(X), atol=1e-6)


@pytest.mark.parametrize("rank", [None, 2])
def test_what_comes_at_once_has_its_shape_where_it_leads(rank, rng):
    X, y = labeled(rng, 200, 4, classes=3)
    metric = streamed(X, y, [], radius=2.0, rank=rank)
    assert metric.radius_ == pytest.approx(2.0)
    _, exact = exact_at(metric, X, y)
    assert metric.weighting_penalty_ == pytest.approx(exact.penalty, rel=1e-9)
    assert_allclose(metric.weighting_, exact.directions, atol=1e-9 * np.abs(exact.directions).max())


def test_a_long_stream_comes_near_the_shape_of_all():
    """And nearer the longer it is: less and less of it was taken elsewhere."""
    X, y, X_test, y_test = make_toy(6000, 500, d=4, random_state=0)
    order = np.random.default_rng(0).permutation(6000)
    X, y = X[order], y[order]
    apart = []
    for n in (400, 6000):
        metric = streamed(X[:n], y[:n], range(40, n, 40), radius=4.0)
        vectors, exact = exact_at(metric, X[:n], y[:n])
        apart.append(1 - likeness(vectors, metric.weighting_, exact.directions))
        assert metric.weighting_score_ == pytest.approx(exact.score, abs=0.03)
    assert apart[1] < 2e-3
    assert apart[1] < 0.5 * apart[0]
    whole = LogEuclideanMetric(4.0, weighting="discriminant", tol=1e-2).fit(X, y)
    ours, theirs = (abs(np.corrcoef(m.transform(X_test)[:, 0], y_test)[0, 1]) for m in (metric, whole))
    assert ours > theirs - 0.01


def test_no_shape_before_there_are_two_classes(one_penalty, rng):
    X, y = labeled(rng, 300, 3, classes=3)
    early, late = np.flatnonzero((y == 0) & (np.arange(300) < 180)), np.arange(180, 300)
    metric = LogEuclideanMetric(0.0, weighting="discriminant", init="identity", random_state=0)
    with pytest.warns(UserWarning, match=r"none of \[1, 2, 9\]"):
        metric.partial_fit(X[early], y[early], classes=[0, 1, 2, 9])
    assert metric.weighting_ is metric.weighting_penalty_ is metric.weighting_score_ is None
    assert metric.transform(X).shape == (300, 6)
    two = late[y[late] < 2]
    assert metric.partial_fit(X[two], y[two]).transform(X).shape == (300, 1)
    metric.partial_fit(X[late], y[late])
    rows = np.concatenate([early, two, late])
    whole = LogEuclideanMetric(0.0, weighting="discriminant", init="identity").fit(X[rows], y[rows])
    assert_allclose(metric.weighting_, whole.weighting_, atol=1e-9 * np.abs(whole.weighting_).max())


def test_classes_that_are_the_same_have_no_shape(rng):
    X = np.repeat(spd(rng, 40, 3), 2, axis=0)
    metric = streamed(X, np.arange(80) % 2, [], radius=0.0)
    assert metric.weighting_ is None
    assert metric.transform(X).shape == (80, 6)


def test_the_shape_does_not_change_what_is_learned(rng):
    X, y = labeled(rng, 160, 3)
    shaped = streamed(X, y, range(10, 160, 10), radius=2.0)
    plain = LogEuclideanMetric(2.0, random_state=0)
    for rows in np.split(np.arange(160), range(10, 160, 10)):
        plain.partial_fit(X[rows], y[rows], classes=[0, 1])
    assert_array_equal(plain.components_, shaped.components_)
    assert plain.alignment_ == shaped.alignment_
