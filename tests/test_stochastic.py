"""Mini-batches: running moments, the stochastic solver, streams."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from random_matrices import labeled, spd
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.manifolds import Ball, RankBall
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.objectives.minibatch import RunningMisalignment
from spdmetric.solvers import Descent, Status, mini_batches


@pytest.fixture
def pair(rng):
    """The same data for mini-batches and as a whole, with weights, three classes."""
    X, codes = labeled(rng, 60, 4, classes=3)
    codes = np.unique(codes, return_inverse=True)[1]
    weight = rng.uniform(0.5, 2.0, size=60)
    whole = Misalignment(Data(X, ClassTarget.from_codes(codes, weight)))
    return whole, RunningMisalignment(whole.data)


def points(rng):
    S = rng.standard_normal((4, 4))
    return [Ball(np.eye(4), 5.0).point(S + S.T), RankBall(4, 2, 5.0).point((S + S.T)[:2])]


# -- Running moments -------------------------------------------------------------------


def everything(running, point, memory=None):
    return running.sample(np.arange(running.n), point, memory)


def test_a_batch_of_all_rows_is_exact(pair, rng):
    whole, running = pair
    for point in points(rng):
        there, here = whole.at(point), everything(running, point)
        assert here.value == pytest.approx(there.value, rel=1e-12)
        np.testing.assert_allclose(here.gradient, there.gradient, atol=1e-12)


def test_gradients_given_the_moments_add_up_to_the_gradient(pair, rng):
    """The gradient of a mini-batch is unbiased once the moments are those of all rows."""
    whole, running = pair
    for point in points(rng):
        memory, parts = everything(running, point).memory, np.array_split(np.arange(60), 6)
        weights = [running.data.target.weight[rows].sum() for rows in parts]
        gradients = [running.sample(rows, point, memory).gradient for rows in parts]
        mean = np.average(gradients, axis=0, weights=weights)
        np.testing.assert_allclose(mean, whole.at(point).gradient, atol=1e-12)


# -- The solver ------------------------------------------------------------------------


def test_mini_batches_are_all_rows_once():
    parts = list(mini_batches(103, 10, np.random.default_rng(0)))
    assert sorted(np.concatenate(parts)) == list(range(103))
    assert {len(part) for part in parts} == {10, 11}
    assert all(np.all(np.diff(part) > 0) for part in parts)


@pytest.mark.parametrize("rank", [None, 2])
def test_stays_in_the_ball_and_comes_near_the_optimum(rank):
    X, y, *_ = make_toy(2000, 2, d=6, random_state=0)
    best = LogEuclideanMetric(4.0, rank=rank, tol=1e-4).fit(X, y)
    metric = LogEuclideanMetric(4.0, rank=rank, solver="stochastic", random_state=0).fit(X, y)
    exact = _alignment(metric, X, y)
    assert exact >= 0.98 * best.alignment_
    assert metric.alignment_ == pytest.approx(exact, rel=1e-9)
    assert metric.radius_ <= 4.0 * (1 + 1e-12)
    assert metric.solution_.status is Status.NOISE
    assert 1 - metric.solution_.history[-1].value == pytest.approx(exact, rel=0.1)


def test_more_passes_do_no_harm():
    """Averages over too many batches lag behind the point, and drive it away in the end."""
    X, y, *_ = make_toy(4000, 2, d=8, random_state=0)
    whole = Misalignment(Data(X, ClassTarget.from_codes((y > 0).astype(int))))
    objective, ball = RunningMisalignment(whole.data), Ball(np.eye(8), 6.0)
    descent, rng, reached = Descent(ball, ball.point(np.zeros((8, 8)))), np.random.default_rng(0), []
    for _ in range(8):
        for rows in mini_batches(4000, 32, rng):
            descent.learn(objective, rows)
        reached.append(whole.at(descent.point).alignment)
    assert min(reached[3:]) >= 0.99 * max(reached)


def _alignment(metric, X, y):
    """Alignment of all the data under a learned metric."""
    Phi = metric.transform(X)
    Phi, Y = Phi - Phi.mean(axis=0), ClassTarget.from_codes(np.unique(y, return_inverse=True)[1]).Y
    square = np.linalg.norm(Phi.T @ Y) ** 2
    return square / (np.linalg.norm(Phi.T @ Phi) * np.linalg.norm(Y.T @ Y))


def test_a_first_batch_of_one_class_is_no_convergence(batches_of):
    """Its gradient is zero, which says nothing of the others."""
    batches_of(8)
    X, y, *_ = make_toy(2000, 2, d=4, random_state=0)
    few = (y < 0) | (np.cumsum(y > 0) <= 20)
    metric = LogEuclideanMetric(2.0, solver="stochastic", random_state=0).fit(X[few], y[few])
    assert metric.n_iter_ > 1
    assert metric.alignment_ > LogEuclideanMetric(0.0).fit(X[few], y[few]).alignment_


def test_same_seed_same_bits(rng, batches_of):
    batches_of(10)
    X, y = labeled(rng, 80, 4)
    learn = LogEuclideanMetric(3.0, solver="stochastic", random_state=1).fit
    first, second = learn(X, y).components_, learn(X, y).components_
    np.testing.assert_array_equal(first, second)
    other = LogEuclideanMetric(3.0, solver="stochastic", random_state=2).fit(X, y)
    assert not np.array_equal(first, other.components_)


def test_iterations_are_passes_and_the_callback_stops_them(rng):
    X, y = labeled(rng, 60, 3)
    seen = []
    metric = LogEuclideanMetric(
        2.0,
        solver="stochastic",
        random_state=0,
        callback=lambda record: seen.append(record) or len(seen) == 3,
    ).fit(X, y)
    assert [record.iteration for record in seen] == [0, 1, 2]
    assert [record.evaluations for record in seen] == [0, 1, 2]
    assert metric.solution_.status is Status.CALLBACK
    assert metric.n_iter_ == 2


# -- Streams ---------------------------------------------------------------------------


def batches(X, y, size, seed=0):
    order = np.random.default_rng(seed).permutation(len(X))
    return [(X[rows], y[rows]) for rows in np.array_split(order, len(X) // size)]


def streamed(parts, classes, **parameters):
    metric = LogEuclideanMetric(random_state=0, **parameters)
    for X, y in parts:
        metric.partial_fit(X, y, classes=classes)
    return metric


@pytest.mark.parametrize("rank", [None, 2])
def test_a_stream_comes_near_the_batch_fit(rank):
    X, y, *_ = make_toy(6000, 2, d=6, random_state=0)
    best = LogEuclideanMetric(4.0, rank=rank, tol=1e-4).fit(X, y)
    metric = streamed(batches(X, y, 100), [-1, 1], radius=4.0, rank=rank)
    assert _alignment(metric, X, y) >= 0.98 * best.alignment_
    assert metric.alignment_ == pytest.approx(_alignment(metric, X, y), rel=0.1)
    assert metric.radius_ <= 4.0 * (1 + 1e-12)
    assert metric.solution_.status is Status.STREAM
    assert len(metric.solution_.history) == 60
    assert metric.n_iter_ == metric.solution_.history[-1].iteration


def test_works_after_the_first_batch_at_the_mean_so_far(rng):
    X, y = labeled(rng, 4, 4)
    metric = LogEuclideanMetric(2.0).partial_fit(X, y, classes=np.unique(y))
    plain = LogEuclideanMetric(0.0).fit(X, y)
    np.testing.assert_allclose(metric.transform(X), plain.transform(X), atol=1e-9)
    assert metric.alignment_ == pytest.approx(plain.alignment_)


def test_matrices_one_by_one(rng, batches_of):
    """They wait for each other: a mini-batch has its size, or a little more."""
    batches_of(8)
    X, y = labeled(rng, 40, 3)
    singles = [(X[k : k + 1], y[k : k + 1]) for k in range(40)]
    metric = streamed(singles, np.unique(y), radius=1.0)
    assert np.isfinite(metric.transform(X)).all()
    assert metric.n_iter_ == 5
    assert metric.radius_ == pytest.approx(1.0)


def test_a_first_matrix_alone_at_low_rank(rng, batches_of):
    """Its logarithm at itself is zero, exactly: no direction is better than another."""
    batches_of(8)
    metric = LogEuclideanMetric(1.0, rank=1, random_state=0)
    metric.partial_fit([4.0 * np.eye(2)], [0], classes=[0, 1])
    assert np.linalg.norm(metric.components_) == pytest.approx(0.5)
    X, y = labeled(rng, 40, 2)
    assert metric.partial_fit(X, y).radius_ > 0
    with pytest.raises(ValueError, match="All matrices to learn from are the same"):
        LogEuclideanMetric(1.0, rank=1).fit(np.full((6, 1, 1), 2.0), np.arange(6) % 2)


def test_a_late_class_and_one_that_never_comes():
    X, y, *_ = make_toy(3000, 2, d=4, random_state=1)
    shuffled = batches(X, y, 60)
    early = [(A[b == 1], b[b == 1]) for A, b in shuffled[:5]]
    with pytest.warns(UserWarning, match=r"first 96 matrices .* none of \[-1, 0\]"):  # 8 times 10 waited for
        metric = streamed([*early, *shuffled[5:]], [-1, 0, 1], radius=3.0)
    usual = streamed(shuffled, [-1, 1], radius=3.0)
    assert _alignment(metric, X, y) >= 0.95 * _alignment(usual, X, y)
    assert list(metric.classes_) == [-1, 0, 1]


def test_a_stream_of_one_class_keeps_a_bounded_number_of_matrices(rng):
    parts = [(X, np.zeros(5)) for X in np.split(spd(rng, 200, 3), 40)]
    with pytest.warns(UserWarning, match="none of"):
        metric = streamed(parts, [0, 1], radius=1.0)
    assert metric._stream._waiting is None or len(metric._stream._waiting[0]) < 32
    assert metric.radius_ == 0
    assert metric.alignment_ == 0


def test_same_stream_same_bits_also_through_pickle(rng):
    X, y = labeled(rng, 80, 3)
    parts, classes = batches(X, y, 10), np.unique(y)
    first = streamed(parts, classes, radius=2.0)
    half = pickle.loads(pickle.dumps(streamed(parts[:4], classes, radius=2.0)))
    for A, b in parts[4:]:
        half.partial_fit(A, b)
    np.testing.assert_array_equal(first.components_, half.components_)


def test_fit_and_clone_forget_the_stream(rng):
    X, y = labeled(rng, 40, 3)
    metric = LogEuclideanMetric(2.0).partial_fit(X, y, classes=np.unique(y))
    for other in (clone(metric), metric.fit(X, y)):
        with pytest.raises(ValueError, match="needs classes="):
            other.partial_fit(X, y)
    np.testing.assert_array_equal(metric.components_, LogEuclideanMetric(2.0).fit(X, y).components_)


def test_streams_of_float32_that_must_not_be_written_to(rng):
    X, y = labeled(rng, 80, 3)
    X = X.astype(np.float32)
    X.setflags(write=False)
    metric = streamed([(X[:40], y[:40]), (X[40:], y[40:])], np.unique(y), radius=2.0)
    assert metric.transform(X).dtype == np.float32
    double = streamed(
        [(X[:40].astype(float), y[:40]), (X[40:].astype(float), y[40:])], np.unique(y), radius=2.0
    )
    np.testing.assert_allclose(metric.components_, double.components_, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"classes": None}, "needs classes="),
        ({"classes": [0]}, "at least two"),
        ({"y": [0, 1, 7, 0]}, r"y\[2\] is .*7.* not one of the classes"),
        ({"y": None}, "requires y"),
        ({"sample_weight": [0, 0, 0, 0]}, "zero for every matrix"),
    ],
)
def test_bad_first_batches(change, sentence, rng):
    arguments = {"X": spd(rng, 4, 3), "y": [0, 1, 1, 0], "classes": [0, 1], **change}
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanMetric(1.0).partial_fit(**arguments)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [({"kernel": "rbf"}, "a stream forgets them"), ({"class_weight": "balanced"}, "pass sample_weight")],
)
def test_what_streams_cannot_do(parameters, sentence, rng):
    X, y = labeled(rng, 20, 3)
    with pytest.raises(ValueError, match=sentence):
        LogEuclideanMetric(**parameters).partial_fit(X, y, classes=np.unique(y))


def test_a_point_too_far_says_so_and_nothing_else(rng):
    """Warnings are errors here: of a matrix and a center that are both zero, the sentence alone tells."""
    running = RunningMisalignment(
        Data(spd(rng, 8, 3), ClassTarget.from_codes(np.arange(8) % 2, np.ones(8), 2))
    )
    with pytest.raises(ValueError, match="learn with a smaller radius"):
        everything(running, RankBall(3, 1, 9999.0).point(np.array([[1500.0, 0.0, 0.0]])))
