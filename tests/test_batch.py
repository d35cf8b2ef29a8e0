"""Stacks in NumPy: large matrices go by triangles, with the same numbers."""

import numpy as np
import pytest

from random_matrices import symmetric
from spdmetric.linalg import batch
from spdmetric.linalg.batch import PlainStack
from spdmetric.linalg.symmetric import congruence, expm, unvech, vech
from spectral import LogCongruence


@pytest.mark.parametrize(
    ("n", "d", "rows"),
    [(3, 160, 160), (2, 251, 251), (1, 145, 145), (5, 101, 101), (2, 251, 170), (3, 160, 7), (900, 8, 8)],
)
def test_features_and_derivatives_are_those_of_the_formulas(n, d, rows, rng):
    X, W = (expm(symmetric(rng, k, d) / np.sqrt(d)) for k in (n, 1))
    W = W[0, :rows]
    here, log = PlainStack(X).decompose(W), LogCongruence.of(congruence(W, X))
    np.testing.assert_allclose(here.features, vech(log.log.compose(log.log.values)), atol=1e-12)
    cotangents = rng.standard_normal(here.features.shape)
    M = unvech(cotangents)
    for ours, formula in (
        (here.pull(cotangents), log.push(M).sum(axis=0)),
        (here.pull_factor(cotangents), log.pull_factor(M, W @ X)),
    ):
        np.testing.assert_allclose(ours, formula, atol=1e-11 * np.abs(formula).max())


def test_equal_and_distant_eigenvalues(rng):
    """Gaps of zero, near zero and of hundreds: the derivative of the formulas in each."""
    values = np.concatenate([np.ones(50), 1 + 1e-9 * np.arange(50), np.logspace(-1, 1, 50), [1e-60, 1e60]])
    X = np.diag(values)[None]
    here, log = PlainStack(X).decompose(np.eye(152)), LogCongruence.of(X)
    cotangents = rng.standard_normal(here.features.shape)
    formula = log.push(unvech(cotangents)).sum(axis=0)
    np.testing.assert_allclose(here.pull(cotangents), formula, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_lapack_gives_up_on_stays_in_its_matrix(bad, rng):
    X = expm(symmetric(rng, 900, 8))  # several groups
    good = PlainStack(X).decompose(np.eye(8)).features
    X[411, 3, 2] = X[411, 2, 3] = bad
    features, others = PlainStack(X).decompose(np.eye(8)).features, np.arange(900) != 411
    assert np.isnan(features[411]).all()
    np.testing.assert_array_equal(features[others], good[others])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0])
def test_a_large_matrix_without_a_cholesky_factor_is_alone_in_it(bad, rng):
    X, W = expm(symmetric(rng, 4, 150) / 12), expm(symmetric(rng, 150) / 12)
    good = PlainStack(X).decompose(W).features
    X[2, 3, 3] = bad
    features = PlainStack(X).decompose(W).features
    assert np.isnan(features[2]).all()
    np.testing.assert_array_equal(features[[0, 1, 3]], good[[0, 1, 3]])


def test_large_matrices_that_leave_float64(rng):
    X = expm(symmetric(rng, 2, 150) / 12) * 1e200
    assert np.isnan(PlainStack(X).decompose(1e100 * np.eye(150)).features).all()


def test_large_matrices_barely_definite_are_those_of_the_product(rng):
    """At a condition of 1e14 a Cholesky factor exists or not by chance: both ways agree."""
    s, Q = np.logspace(-14, 0, 150), np.linalg.qr(rng.standard_normal((150, 150)))[0]
    X = (Q * s) @ Q.T
    X = np.stack([(X + X.T) / 2, np.diag(s)])
    stack, W = PlainStack(X, again=True), np.diag(np.logspace(0, 1, 150))
    largest = slice(75, None)  # of the others rounding takes digits, in either way
    logs = stack.decompose(W).logs
    stack.factors |= {0: None, 1: None}
    np.testing.assert_allclose(logs[:, largest], stack.decompose(W).logs[:, largest], atol=1e-7)


@pytest.mark.parametrize("rows", [150, 7])
def test_any_array_and_the_same_bits_each_time(rows, rng):
    X, W = expm(symmetric(rng, 3, 150) / 12).astype(np.float32), expm(symmetric(rng, 150) / 12)[:rows]
    stack = PlainStack(X.astype(np.float64))
    good = stack.decompose(W).features
    frozen = X.astype(np.float64)
    frozen.flags.writeable = False
    strided = np.repeat(X.astype(np.float64), 2, axis=2)[:, :, ::2]
    for other in (PlainStack(frozen), PlainStack(X), PlainStack(strided)):
        np.testing.assert_allclose(other.decompose(W).features, good, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(stack.decompose(W).features, good)
    np.testing.assert_array_equal(PlainStack(frozen[1:2]).decompose(W).features, good[1:2])


@pytest.mark.parametrize(("n", "rows"), [(3, 7), (9, 10), (1, 75)])
def test_at_low_rank_a_stack_used_again_goes_by_the_kernels(n, rows, rng, monkeypatch):
    monkeypatch.delenv("SPDMETRIC_COMPILED", raising=False)
    assert batch.pays_at_rank(n, 151, rows)
    X, W = expm(symmetric(rng, n, 151) / 12), rng.standard_normal((rows, 151))
    plain, packed = (PlainStack(X, again=again).decompose(W) for again in (False, True))
    assert type(plain) is not type(packed)
    np.testing.assert_allclose(packed.features, plain.features, rtol=0, atol=1e-12)
    cotangents = rng.standard_normal(plain.features.shape)
    for pull in ("pull", "pull_factor"):
        ours, formula = (getattr(here, pull)(cotangents) for here in (packed, plain))
        np.testing.assert_allclose(ours, formula, atol=1e-11 * np.abs(formula).max())
