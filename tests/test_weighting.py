"""The weighting of a metric: its leave-one-out errors by refitting, its directions by scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from random_matrices import labeled, spd
from spdmetric import LogEuclideanMetric
from spdmetric.linalg.symmetric import Moments
from spdmetric.objectives.data import ClassTarget
from spdmetric.objectives.weighting import (
    FeatureRidge,
    GramRidge,
    discriminant_weighting,
    rows_of,
    weigh_directions,
)


def problem(n, p, c, seed=0, *, weighted=True, spread=1.0):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(c), np.arange(c), rng.integers(0, c, n - 2 * c)]
    vectors = rng.normal(size=(n, p)) + spread * rng.normal(size=(c, p))[codes]
    weight = rng.uniform(0.3, 3.0, n) if weighted else np.ones(n)
    return vectors, codes, weight, ClassTarget.from_codes(codes, weight, c)


def refitted(vectors, codes, weight, c, penalty):
    """Errors of n ridge regressions, each without one matrix; means and intercept are its own."""
    Y, found = np.eye(c)[codes], []
    for i in range(len(codes)):
        k = np.arange(len(codes)) != i
        w = weight[k]
        mean, share = w @ vectors[k] / w.sum(), w @ Y[k] / w.sum()
        rows = np.sqrt(w)[:, None] * (vectors[k] - mean)
        # Least squares of the stacked system: no squared condition number at small penalties.
        stacked = np.concatenate([rows, np.sqrt(penalty) * np.eye(rows.shape[1])])
        right = np.concatenate([np.sqrt(w)[:, None] * (Y[k] - share), np.zeros((rows.shape[1], c))])
        B = np.linalg.lstsq(stacked, right, rcond=None)[0]
        found.append(Y[i] - share - (vectors[i] - mean) @ B)
    return np.array(found)


def ridge_of(vectors, targets, form, penalties=None):
    """The regression, its errors and its rows; penalties are in units of the largest eigenvalue."""
    w = targets.weight
    rows = np.sqrt(w)[:, None] * (vectors - w @ vectors / w.sum())
    if form == "gram":
        ridge = GramRidge.from_rows(rows, rows @ rows.T, targets, targets.per_class, learned=False)
    else:
        Y = rows_of(targets)
        zero = np.zeros(vectors.shape[1]), np.zeros(Y.shape[1])
        moments = Moments(w.sum(), *zero, rows.T @ Y, rows.T @ rows)
        ridge = FeatureRidge.from_moments(moments, Y.T @ Y, targets.per_class, learned=False)
    if penalties is not None:
        ridge = ridge._replace(penalties=np.array(penalties) * ridge.values[-1], usual=None)
    errors = ridge.errors(targets) if form == "gram" else ridge.errors(rows, targets)
    return ridge, errors, rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "form"), [(40, 6, "feature"), (14, 30, "gram"), (40, 6, "gram")])
def test_errors_are_those_of_refitting(n, p, form, weighted):
    vectors, codes, weight, targets = problem(n, p, 3, weighted=weighted)
    ridge, errors, _ = ridge_of(vectors, targets, form, [1e-8, 1e-5, 1e-3, 0.1, 1.0, 100.0])
    for k in range(len(ridge.penalties)):
        left_out = refitted(vectors, codes, weight, 3, ridge.penalties[k])
        expected = (weight[:, None] * left_out).T @ left_out
        assert_allclose(errors.products[k], expected, rtol=1e-9, atol=1e-9 * np.trace(expected))


def gram_of(vectors, shape):
    scores = (vectors - vectors.mean(axis=0)) @ shape.directions
    return scores @ scores.T


def test_without_penalty_it_is_linear_discriminant_analysis():
    """With many matrices, up to a rotation and the factor of the degrees of freedom."""
    vectors, codes, _, targets = problem(3000, 5, 4, weighted=False, spread=0.5)
    ridge, errors, _ = ridge_of(vectors, targets, "feature", [1e-8])
    ours = weigh_directions(ridge, errors)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(vectors, codes)
    theirs = lda.transform(vectors) - lda.transform(vectors).mean(axis=0)
    K, other = gram_of(vectors, ours), theirs @ theirs.T
    assert_allclose(K, other * np.trace(K) / np.trace(other), atol=1e-6 * K.max())


def slow_penalty(vectors, codes, weight):
    """From the covariance within classes itself."""
    c, p = codes.max() + 1, vectors.shape[1]
    means = np.array([np.average(vectors[codes == k], axis=0, weights=weight[codes == k]) for k in range(c)])
    rest = vectors - means[codes]
    S = (weight[:, None] * rest).T @ rest / weight.sum()
    mean, n = np.trace(S) / p, weight.sum() ** 2 / np.sum(weight**2)
    noise = np.trace(S) ** 2 + np.trace(S @ S)
    away = np.linalg.norm(S - mean * np.eye(p)) ** 2 - noise / n
    return weight.sum() * mean * noise / (n / c) / away


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "c"), [(200, 8, 3), (40, 60, 2), (30, 120, 5)])
@pytest.mark.parametrize("informative", ["large", "small"])
def test_the_penalty_of_classes(n, p, c, weighted, informative):
    """The closed form, or 0.3 or 3 times of it where refits err less by two standard errors."""
    vectors, codes, weight, targets = problem(n, p, c, weighted=weighted)
    scale = np.geomspace(1, 20, p)
    vectors *= scale if informative == "large" else scale[0] + scale[-1] - scale
    vectors[:, : p // 2] += 3 * np.random.default_rng(1).normal(size=(c, p // 2))[codes]
    closed = slow_penalty(vectors, codes, weight)
    form = "gram" if n < p else "feature"
    assert_allclose(
        ridge_of(vectors, targets, form)[0].penalties, [0.3 * closed, closed, 3 * closed], rtol=1e-9
    )
    left_out = [refitted(vectors, codes, weight, c, factor * closed) for factor in (0.3, 1, 3)]
    errors = [weight * np.sum(error**2, axis=1) for error in left_out]
    best = 1
    for k in (0, 2):
        gain = errors[1] - errors[k]
        if gain.sum() > 2 * np.sqrt(n) * gain.std() and errors[k].sum() < errors[best].sum():
            best = k
    assert_allclose(discriminant_weighting(vectors, targets).penalty, (0.3, 1, 3)[best] * closed, rtol=1e-9)
    assert_allclose(discriminant_weighting(vectors, targets, learned=True).penalty, closed, rtol=1e-9)


@pytest.mark.parametrize("c", [2, 4])
def test_the_penalty_is_that_of_ledoit_and_wolf(c):
    """Of normal vectors, for each class by itself; and class means are then LDA with that shrinkage."""
    codes = np.repeat(np.arange(c), 200)
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=(200 * c, 40)) + rng.normal(size=(c, 40))[codes]) * np.geomspace(1, 5, 40)
    ridge, _, rows = ridge_of(vectors, targets := ClassTarget.from_codes(codes, np.ones(200 * c)), "feature")
    usual = ridge._replace(penalties=ridge.penalties[[ridge.usual]], usual=None)
    shape = weigh_directions(usual, usual.errors(rows, targets))
    means = np.array([vectors[codes == k].mean(axis=0) for k in range(c)])
    mean = np.mean((vectors - means[codes]) ** 2)
    share = 1 / (1 + mean * 200 * c / shape.penalty)
    theirs = [ledoit_wolf_shrinkage(vectors[codes == k]) for k in range(c)]
    assert_allclose(share, np.mean(theirs), rtol=0.05)
    new = rng.normal(size=(500, 40)) * np.geomspace(1, 5, 40)
    lda = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=share).fit(vectors, codes)
    squares = np.sum(((new[:, None] - means) @ shape.directions) ** 2, axis=2)
    assert np.array_equal(squares.argmin(axis=1), lda.predict(new))


@pytest.mark.parametrize(("n", "p"), [(300, 8), (20, 400)], ids=["scatter", "interpolates"])
def test_columns_have_an_order_and_signs(n, p):
    """Classes of equal weight leave the eigenvectors to rounding; the coordinates do not hang on it."""
    vectors, codes, _, _ = problem(n - n % 4, p, 4, weighted=False)
    codes = np.arange(len(codes)) % 4
    targets = ClassTarget.from_codes(codes, np.ones(len(codes)), 4)
    one = discriminant_weighting(vectors, targets).directions
    order = np.random.default_rng(0).permutation(len(codes))
    moved = ClassTarget.from_codes(codes[order], np.ones(len(codes)), 4)
    other = discriminant_weighting(vectors[order], moved).directions
    assert_allclose(other, one, rtol=0, atol=1e-7 * np.abs(one).max())


def test_a_class_of_one_matrix_is_fitted_and_not_judged():
    vectors, codes, _, _ = problem(20, 6, 3, weighted=False)
    codes = np.r_[codes, 3]
    vectors = np.concatenate([vectors, 5 * np.ones((1, 6))])
    targets = ClassTarget.from_codes(codes, np.ones(21), 4)
    assert targets.judged.tolist() == [True] * 20 + [False]
    shape = discriminant_weighting(vectors, targets)
    assert shape.directions.shape == (6, 3)
    assert np.isfinite(shape.directions).all()


@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 1.0, 1e6]), n=st.sampled_from([12, 60]))
def test_scale_of_weights_and_rotation_of_vectors_change_nothing(seed, scale, n):
    vectors, codes, weight, targets = problem(n, 20, 3, seed)
    one = discriminant_weighting(vectors, targets)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(20, 20)))[0]
    other = discriminant_weighting(vectors @ Q, ClassTarget.from_codes(codes, scale * weight, 3))
    assert_allclose(other.penalty, scale * one.penalty, rtol=1e-6)
    K, L = gram_of(vectors, one), gram_of(vectors @ Q, other)
    assert_allclose(K / np.trace(K), L / np.trace(L), atol=1e-7)


# -- Through the estimator -------------------------------------------------------------

SHAPED = LogEuclideanMetric(0.0, weighting="discriminant")
SIZES = pytest.mark.parametrize(("n", "d"), [(120, 4), (30, 9)], ids=["features", "gram"])
RANKS = pytest.mark.parametrize("options", [{}, {"radius": 2.0}, {"radius": 1.0, "rank": 3}], ids=str)


def close(one, other, X, tolerance=1e-9):
    """The same metric, in the scale of its distances."""
    assert_allclose(one.weighting_penalty_, other.weighting_penalty_, rtol=tolerance)
    assert_allclose(one.weighting_score_, other.weighting_score_, rtol=tolerance)
    K = other.pairwise_kernel(X)
    assert_allclose(one.pairwise_kernel(X), K, rtol=0, atol=tolerance * np.abs(K).max())


@RANKS
@SIZES
def test_it_is_the_shape_of_the_plain_vectors(n, d, options, rng):
    X, y = labeled(rng, n, d, classes=3)
    weight = rng.uniform(0.5, 2, n)
    metric = clone(SHAPED).set_params(**options, max_iter=20, tol=1.0).fit(X, y, weight)
    plain = clone(metric).set_params(weighting=None).fit(X, y, weight)
    vectors = plain.transform(X)
    expected = discriminant_weighting(vectors, ClassTarget.from_codes(y, weight, 3), learned=bool(options))
    assert metric.weighting_.shape == (vectors.shape[1], 2)
    assert metric.weighting_penalty_ == pytest.approx(expected.penalty, rel=1e-9)
    assert metric.weighting_score_ == pytest.approx(expected.score, rel=1e-7)
    Q, R = metric.weighting_, expected.directions
    assert_allclose(Q @ Q.T, R @ R.T, rtol=0, atol=1e-8 * np.abs(R @ R.T).max())
    assert_allclose(
        metric.transform(X), vectors @ metric.weighting_, rtol=0, atol=1e-12 * np.abs(vectors @ Q).max()
    )
    assert (plain.weighting_, plain.weighting_penalty_, plain.weighting_score_) == (None, None, None)


@SIZES
@pytest.mark.parametrize("where", ["memory", "file", "vectors are not kept"])
def test_chunks_give_what_the_whole_does(n, d, where, rng, tmp_path, chunks_of, monkeypatch):
    X, y = labeled(rng, n, d, classes=3)
    weight = rng.uniform(0.5, 2, n)
    np.save(tmp_path / "X.npy", X)
    source = np.load(tmp_path / "X.npy", mmap_mode="r") if where == "file" else X
    whole = clone(SHAPED).fit(X, y, weight)
    chunks_of(11)
    if where == "vectors are not kept":
        monkeypatch.setattr("spdmetric.objectives.data.fits", lambda n, d: False)
    close(clone(SHAPED).fit(source, y, weight), whole, X)


@pytest.mark.parametrize("stored", [False, True])
def test_fewer_matrices_than_features_need_no_square_of_these(stored, rng, tmp_path):
    X, y = labeled(rng, 12, 70, classes=3)
    np.save(tmp_path / "X.npy", X)
    source, p = np.load(tmp_path / "X.npy", mmap_mode="r") if stored else X, 70 * 71 // 2
    clone(SHAPED).fit(source[:6], y[:6])  # what is loaded once does not count
    tracemalloc.start()
    clone(SHAPED).fit(source, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * p**2 / 3


def test_weights_count_in_the_judgement_of_a_matrix_alone(rng):
    """A class with one matrix of weight, others without, is a class of one matrix."""
    X, y = labeled(rng, 40, 3, classes=2)
    X, y = np.concatenate([X, spd(rng, 3, 3)]), np.r_[y, 2, 2, 2]
    weight = np.r_[np.ones(41), 0, 0]
    close(clone(SHAPED).fit(X, y, weight), clone(SHAPED).fit(X[:41], y[:41]), X)


# -- bad input


@pytest.mark.parametrize("n", [5, 20])
def test_classes_of_one_matrix_each(n, rng):
    X, _ = labeled(rng, n, 4)
    metric = clone(SHAPED).fit(X, np.arange(n))
    assert np.isfinite(metric.transform(X)).all()
    assert metric.weighting_score_ == 0


@SIZES
def test_identical_matrices_of_two_classes(n, d, rng):
    X, y = labeled(rng, n, d)
    X[1] = X[0]
    metric = clone(SHAPED).fit(X, y)
    assert np.isfinite(metric.transform(X)).all()
    assert metric.weighting_score_ < 1


def test_classes_with_one_mean(rng):
    X = np.repeat(spd(rng, 10, 3), 2, axis=0)
    with pytest.raises(ValueError, match="classes have the same mean tangent vector"):
        clone(SHAPED).fit(X, np.arange(20) % 2)


def test_sentences(rng):
    X, y = labeled(rng, 20, 3)
    with pytest.raises(ValueError, match="weighting='round': expected one of None, 'discriminant'"):
        LogEuclideanMetric(weighting="round").partial_fit(X, y, classes=[0, 1])
    metric = clone(SHAPED).fit(X, y)
    with pytest.raises(ValueError, match="keep 1 of 6 directions, and no matrix can be made"):
        metric.inverse_transform(metric.transform(X))
