"""The shape of a metric: its leave-one-out errors by refitting, its directions by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from spdmetric.objectives.shape import (
    Errors,
    FeatureRidge,
    GramRidge,
    Targets,
    discriminant_shape,
    shape_of,
)


def problem(n, p, c, seed=0, *, weighted=True, spread=1.0):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(c), np.arange(c), rng.integers(0, c, n - 2 * c)]
    vectors = rng.normal(size=(n, p)) + spread * rng.normal(size=(c, p))[codes]
    weight = rng.uniform(0.3, 3.0, n) if weighted else np.ones(n)
    return vectors, codes, weight, Targets.of_classes(codes, weight, c)


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


def ridge_of(vectors, targets, form):
    w = targets.weight
    rows = np.sqrt(w)[:, None] * (vectors - w @ vectors / w.sum())
    if form == "gram":
        ridge = GramRidge.of(rows @ rows.T, targets)
        return ridge, ridge.errors(targets), rows
    Y = targets.rows()
    ridge = FeatureRidge.of(rows.T @ rows, rows.T @ Y, Y.T @ Y, w.sum())
    return ridge, ridge.errors(rows, targets), rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "form"), [(40, 6, "feature"), (14, 30, "gram"), (40, 6, "gram")])
def test_errors_are_those_of_refitting(n, p, form, weighted):
    vectors, codes, weight, targets = problem(n, p, 3, weighted=weighted)
    ridge, errors, _ = ridge_of(vectors, targets, form)
    for k in range(0, len(ridge.penalties), 3):
        left_out = refitted(vectors, codes, weight, 3, ridge.penalties[k])
        expected = (weight[:, None] * left_out).T @ left_out
        assert_allclose(errors.products[k], expected, rtol=1e-9, atol=1e-9 * np.trace(expected))


def test_errors_at_penalties_next_to_zero():
    """In the Gram form, down to 1e-12 of the trace, where 1 - leverage has lost its digits."""
    vectors, codes, weight, targets = problem(12, 40, 3)
    rows = np.sqrt(weight)[:, None] * (vectors - weight @ vectors / weight.sum())
    ridge = GramRidge.of(rows @ rows.T, targets)
    penalty = 1e-12 * np.trace(rows @ rows.T)
    left = penalty / (ridge.values + penalty)
    found = (ridge.basis * left) @ ridge.inner / (ridge.basis**2 @ left)[:, None]
    expected = np.sqrt(weight)[:, None] * refitted(vectors, codes, weight, 3, penalty)
    assert_allclose(found, expected, atol=1e-9)


def test_chunks_add_up():
    vectors, _, _, targets = problem(60, 5, 3)
    ridge, whole, rows = ridge_of(vectors, targets, "feature")
    parts = [
        ridge.errors(rows[part], Targets(targets.Y[part], targets.weight[part], targets.judged[part]))
        for part in (slice(0, 23), slice(23, 60))
    ]
    for one, other in zip(parts[0] + parts[1], whole, strict=True):
        assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("n", [30, 400])
def test_both_forms_give_one_shape(n):
    vectors, _, _, targets = problem(n, 20, 4)
    feature, errors, _ = ridge_of(vectors, targets, "feature")
    gram, gram_errors, rows = ridge_of(vectors, targets, "gram")
    same = Errors(*(x[-len(feature.penalties) :] for x in gram_errors[:2]), gram_errors.total)
    assert_allclose(same.squares, errors.squares, rtol=1e-8)
    one, other = shape_of(feature, errors), shape_of(gram, gram_errors, rows)
    assert_allclose(one.penalty, other.penalty, rtol=1e-9)
    assert_allclose(gram_of(vectors, one), gram_of(vectors, other), rtol=1e-7, atol=1e-9)


def gram_of(vectors, shape):
    scores = (vectors - vectors.mean(axis=0)) @ shape.directions
    return scores @ scores.T


def test_without_penalty_it_is_linear_discriminant_analysis():
    """With many matrices, up to a rotation and the factor of the degrees of freedom."""
    vectors, codes, _, targets = problem(3000, 5, 4, weighted=False, spread=0.5)
    ridge, errors, _ = ridge_of(vectors, targets, "feature")
    ours = shape_of(ridge, errors._replace(squares=ridge.penalties))  # the smallest penalty is the best
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(vectors, codes)
    theirs = lda.transform(vectors) - lda.transform(vectors).mean(axis=0)
    K, other = gram_of(vectors, ours), theirs @ theirs.T
    assert_allclose(K, other * np.trace(K) / np.trace(other), atol=1e-6 * K.max())


def test_errors_within_classes_are_alike_in_every_direction():
    vectors, codes, weight, targets = problem(300, 8, 4)
    shape = discriminant_shape(vectors, targets)
    scores = vectors @ shape.directions
    means = np.array([np.average(scores[codes == k], axis=0, weights=weight[codes == k]) for k in range(4)])
    within = (weight[:, None] * (scores - means[codes])).T @ (scores - means[codes])
    penalty = shape.penalty * shape.directions.T @ shape.directions
    total = within + penalty
    assert_allclose(total, total[0, 0] * np.eye(3), atol=1e-9 * total[0, 0])


def test_a_class_of_one_matrix_is_fitted_and_not_judged():
    vectors, codes, _, _ = problem(20, 6, 3, weighted=False)
    codes = np.r_[codes, 3]
    vectors = np.concatenate([vectors, 5 * np.ones((1, 6))])
    targets = Targets.of_classes(codes, np.ones(21), 4)
    assert targets.judged.tolist() == [True] * 20 + [False]
    shape = discriminant_shape(vectors, targets)
    assert shape.directions.shape == (6, 3)
    assert np.isfinite(shape.directions).all()


def test_every_class_of_one_matrix():
    vectors = np.random.default_rng(0).normal(size=(5, 8))
    shape = discriminant_shape(vectors, Targets.of_classes(np.arange(5), np.ones(5), 5))
    assert np.isfinite(shape.directions).all()
    assert shape.score == 0


def test_two_identical_matrices_with_different_labels():
    vectors, codes, weight, _ = problem(12, 30, 2)
    vectors[1] = vectors[0]
    shape = discriminant_shape(vectors, Targets.of_classes(codes, weight, 2))
    assert np.isfinite(shape.directions).all()
    assert np.isfinite(shape.score)


def test_identical_matrices_have_no_shape():
    targets = Targets.of_classes(np.array([0, 1, 0, 1]), np.ones(4), 2)
    shape = discriminant_shape(np.ones((4, 3)), targets)
    assert shape.directions.shape == (3, 0)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([1e-6, 1.0, 1e6]), n=st.sampled_from([12, 60]))
def test_scale_of_weights_and_rotation_of_vectors_change_nothing(seed, scale, n):
    vectors, codes, weight, targets = problem(n, 20, 3, seed)
    one = discriminant_shape(vectors, targets)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(20, 20)))[0]
    other = discriminant_shape(vectors @ Q, Targets.of_classes(codes, scale * weight, 3))
    assert_allclose(other.penalty, scale * one.penalty, rtol=1e-6)
    K, L = gram_of(vectors, one), gram_of(vectors @ Q, other)
    assert_allclose(K / np.trace(K), L / np.trace(L), atol=1e-7)
