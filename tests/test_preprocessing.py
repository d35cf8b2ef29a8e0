"""Steps that make matrices definite: the common range loses nothing, shrinkage is scikit-learn's."""

import array_api_strict as strict
import numpy as np
import pytest
from sklearn.covariance import oas, shrunk_covariance

from random_matrices import labeled, spd
from spdmetric import CommonRange, Shrinkage
from spdmetric.datasets import make_regression
from spdmetric.validation import check_spd


@pytest.fixture
def deficient():
    X, _, X_new, _ = make_regression(30, 10, d=7, rank=4, random_state=1)
    return X, X_new


def test_definite_matrices_pass_as_they_are(rng):
    X, _ = labeled(rng, 12, 3, classes=2)
    np.testing.assert_array_equal(CommonRange().fit_transform(X), X)


def test_tensors_stay_where_they_are(deficient):
    X, X_new = deficient
    common = CommonRange().fit(strict.asarray(X))
    inside = common.transform(strict.asarray(X_new))
    assert type(inside) is type(strict.asarray(X))
    np.testing.assert_allclose(np.asarray(inside), common.transform(X_new), atol=1e-12)
    assert type(common.inverse_transform(inside)) is type(inside)


def test_matrices_without_a_common_range_are_told(deficient):
    X, X_new = deficient
    lower, strange = X.copy(), X_new.copy()
    lower[3] = X[3, :, :1] @ X[3, :1]
    strange[2] += 1e-3 * np.eye(7)
    with pytest.raises(ValueError, match=r"X\[3\] has rank 1 on the common range, .* 4 of 7 dim.*1 of 30"):
        CommonRange().fit(lower)
    with pytest.raises(ValueError, match=r"X\[0\] has the trace 0: it is not a covariance"):
        CommonRange().fit(0 * X)
    common = CommonRange().fit(X)
    with pytest.raises(ValueError, match=r"X\[2\] leaves the common range .* 4 of 7 dimensions"):
        common.transform(strange)
    with pytest.raises(ValueError, match="the common range has 4 dimensions"):
        common.inverse_transform(X_new)


# -- shrinkage --------------------------------------------------------------------


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


@pytest.mark.parametrize("share", ["lwf", "other", 0, 1.5, float("nan"), None])
def test_shares_that_are_none(share):
    expected = (
        "expected 'oas' or a number" if share != "lwf" else r".*needs the signals, see Covariances\('lwf'\)"
    )
    with pytest.raises(ValueError, match=rf"shrinkage='?{share}'?: {expected}"):
        Shrinkage(share).fit(np.eye(2)[None])


@pytest.mark.parametrize("n_samples", [0, 2.5])
def test_numbers_of_samples_that_are_none(n_samples):
    with pytest.raises(ValueError, match=f"n_samples={n_samples}: expected a whole number"):
        Shrinkage("oas", n_samples=n_samples).fit(np.eye(2)[None])


@pytest.mark.parametrize("bad", [np.zeros((3, 3)), -np.eye(3)])
def test_what_is_no_covariance_matrix_is_told(bad):
    with pytest.raises(ValueError, match=r"X\[1\] is not positive semi-definite"):
        Shrinkage().fit(np.stack([np.eye(3), bad]))
