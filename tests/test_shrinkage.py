"""The shrinking step: scikit-learn's formulas, ranks that differ, and what it cannot do."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import oas, shrunk_covariance
from sklearn.utils.estimator_checks import check_estimator

from random_matrices import spd
from spdmetric import Shrinkage
from spdmetric.validation import check_spd


@pytest.mark.filterwarnings("ignore:Can't test estimator:sklearn.exceptions.SkipTestWarning")
def test_sklearns_own_checks():
    check_estimator(Shrinkage())


@pytest.mark.parametrize("share", [1e-6, 0.3, 1.0, np.float32(0.5)])
def test_a_share_is_that_of_scikit_learn(share, rng):
    X = spd(rng, 4, 5)
    expected = np.array([shrunk_covariance(A, share) for A in X])
    np.testing.assert_allclose(Shrinkage(share).fit_transform(X), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("n", "d"), [(4, 6), (6, 6), (50, 6), (500, 3)])
def test_oas_of_a_matrix_is_oas_of_its_samples(n, d, rng):
    samples = rng.standard_normal((3, n, d)) @ rng.standard_normal((d, d))
    X = np.array([np.cov(one.T, bias=True) for one in samples])
    found = Shrinkage("oas", n_samples=n).fit_transform(X)
    np.testing.assert_allclose(found, [oas(one)[0] for one in samples], rtol=1e-10, atol=1e-12)
    if n <= d:  # the rank tells the number of samples
        np.testing.assert_allclose(Shrinkage("oas").fit_transform(X), found, rtol=1e-12)
    else:  # else it is taken to be the least that it can be
        least = Shrinkage("oas", n_samples=d + 1).fit_transform(X)
        np.testing.assert_allclose(Shrinkage("oas").fit_transform(X), least, rtol=1e-12)


@pytest.mark.parametrize("share", ["oas", 1e-3])
def test_matrices_of_all_ranks_become_definite(share, rng):
    d = 6
    factors = [rng.standard_normal((d, r)) for r in (1, 2, 5, 6)]
    X = np.array([A @ A.T for A in factors])
    for form in (X, X.astype(np.float32)):
        found = Shrinkage(share).fit_transform(form)
        assert found.dtype == form.dtype
        check_spd(found)


def test_a_multiple_of_the_identity_stays(rng):
    X = np.stack([np.eye(3), 7 * np.eye(3)])
    np.testing.assert_allclose(Shrinkage("oas").fit_transform(X), X, rtol=1e-15)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"shrinkage": "lwf"}, r"that of Ledoit and Wolf needs the signals, see Covariances\('lwf'\)"),
        ({"shrinkage": "other"}, "'other': expected 'oas' or a number above 0, at most 1"),
        ({"shrinkage": 0}, "shrinkage=0: expected"),
        ({"shrinkage": 1.5}, "shrinkage=1.5: expected"),
        ({"shrinkage": float("nan")}, "shrinkage=nan: expected"),
        ({"shrinkage": None}, "shrinkage=None: expected"),
        ({"shrinkage": "oas", "n_samples": 0}, "n_samples=0: expected a whole number"),
        ({"shrinkage": "oas", "n_samples": 2.5}, "n_samples=2.5: expected a whole number"),
    ],
)
def test_parameters_that_are_none(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        Shrinkage(**parameters).fit(np.eye(2)[None])


def test_what_is_no_covariance_matrix_is_told():
    with pytest.raises(
        ValueError, match=r"X\[0\] is not positive semi-definite \(all entries are zero\); 2 are"
    ):
        Shrinkage().fit(np.zeros((2, 3, 3)))
    with pytest.raises(ValueError, match=r"X\[1\] is not positive semi-definite"):
        Shrinkage().fit(np.stack([np.eye(3), -np.eye(3)]))
