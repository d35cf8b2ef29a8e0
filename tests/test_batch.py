"""Stacks in NumPy: large matrices go by triangles, with the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from random_matrices import symmetric
from spdmetric.linalg.batch import PlainStack
from spdmetric.linalg.symmetric import LogCongruence, congruence, expm, unvech, vech


@pytest.mark.parametrize(("n", "d", "rows"), [(3, 160, 160), (2, 251, 251), (3, 160, 7), (900, 8, 8)])
def test_features_and_derivatives_are_those_of_the_formulas(n, d, rows, rng):
    X, W = (expm(symmetric(rng, k, d) / np.sqrt(d)) for k in (n, 1))
    W = W[0, :rows]
    here, log = PlainStack(X).decompose(W), LogCongruence.of(congruence(W, X))
    np.testing.assert_allclose(here.features, vech(log.log.compose(log.log.values)), atol=1e-12)
    cotangents = rng.standard_normal(here.features.shape)
    M = unvech(cotangents)
    for ours, formula in (
        (here.pull(cotangents), log.pull(M)),
        (here.pull_factor(cotangents), log.pull_factor(M, W @ X)),
    ):
        np.testing.assert_allclose(ours, formula, atol=1e-11 * np.abs(formula).max())


def test_equal_and_distant_eigenvalues(rng):
    """Gaps of zero, near zero and of hundreds: the derivative of the formulas in each."""
    values = np.concatenate([np.ones(50), 1 + 1e-9 * np.arange(50), np.logspace(-1, 1, 50), [1e-60, 1e60]])
    X = np.diag(values)[None]
    here, log = PlainStack(X).decompose(np.eye(152)), LogCongruence.of(X)
    cotangents = rng.standard_normal(here.features.shape)
    formula = log.pull(unvech(cotangents))
    np.testing.assert_allclose(here.pull(cotangents), formula, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_lapack_gives_up_on_stays_in_its_matrix(bad, rng):
    X = expm(symmetric(rng, 900, 8))  # several groups
    good = PlainStack(X).decompose(np.eye(8)).features
    X[411, 3, 2] = X[411, 2, 3] = bad
    features, others = PlainStack(X).decompose(np.eye(8)).features, np.arange(900) != 411
    assert np.isnan(features[411]).all()
    np.testing.assert_array_equal(features[others], good[others])
