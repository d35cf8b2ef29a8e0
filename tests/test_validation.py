"""Every bad stack gets its sentence; every good one comes back as it is."""

import numpy as np
import pandas as pd
import pytest

from random_matrices import spd, symmetric
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanRegressor
from spdmetric.validation import check_psd, check_spd, is_definite
from spectral import spectrum


def with_entry(X, value, at=(1, 0, 2)):
    X = X.copy()
    X[at] = value
    return X


BAD = {
    "asymmetric": (
        lambda X: with_entry(X, 5.0),
        r"X\[1\] is not symmetric: it differs .* by 1 of its largest",
    ),
    "2-D": (lambda X: X[0], r"got 2 dimensions and shape \(4, 4\).*X\[None\]"),
    "4-D": (lambda X: X[None], r"got 4 dimensions and shape \(1, 3, 4, 4\)"),
    "not square": (lambda X: X[:, :3], r"got 3 dimensions and shape \(3, 3, 4\)"),
    "empty": (lambda X: X[:0], r"X is empty: shape \(0, 4, 4\)"),
    "complex": (lambda X: X + 0.1j, r"X\[0\] is not Hermitian: it differs .* conjugate transpose"),
    "indefinite": (
        lambda X: np.concatenate([X, -X[:1]]),
        r"X\[3\] is not positive definite \(smallest eigenvalue -.*rank 0 of 4\); 1 of 4.*shrinkage.*rank=m",
    ),
    "rank-deficient": (
        lambda X: np.stack([X[0], np.diag([1.0, 1, 1, 0])]),
        r"X\[1\] is not positive definite \(smallest eigenvalue 0, largest 1, numerical rank 3 of 4\)",
    ),
    "zero": (lambda X: 0 * X, r"X\[0\] is not positive definite .*rank 0 of 4\); 3 of 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_check_spd_says_what_is_wrong(case, rng):
    spoil, sentence = BAD[case]
    with pytest.raises(ValueError, match=sentence):
        check_spd(spoil(spd(rng, 3, 4)))


@pytest.mark.parametrize("scale", [1e-14, 1.0, 1e14])
@pytest.mark.parametrize("condition", [1.0, 1e6, 1e12])
def test_check_spd_accepts_scales_and_conditions(scale, condition, rng):
    s = spectrum(symmetric(rng, 5, 6))
    X = scale * s.compose(np.broadcast_to(np.logspace(0, np.log10(condition), 6), (5, 6)))
    X = (X + X.transpose(0, 2, 1)) / 2
    np.testing.assert_array_equal(check_spd(X), X)


class Epochs:
    """Like MNE's."""

    def get_data(self):
        return np.zeros((5, 3, 100))


@pytest.mark.parametrize(
    "estimator", [LogEuclideanMetric(), LogEuclideanClassifier(), LogEuclideanRegressor()]
)
def test_signals_and_frames_are_recognized(estimator):
    line = r'make_pipeline\(Covariances\("oas"\), LogEuclideanClassifier\(\)\)'
    for signals in (Epochs(), Epochs().get_data(), Epochs().get_data().tolist()):
        with pytest.raises((ValueError, TypeError), match=f"look like signals.*{line}"):
            estimator.fit(signals, np.arange(5) % 2)
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((40, 3))).groupby(np.arange(40) // 10)
    with pytest.raises(TypeError, match=r"X is a DataFrame: .*spdmetric.stack_frame\(X\) makes one"):
        estimator.fit(table.corr(), np.arange(4) % 2)


def test_the_order_of_matlab_is_recognized(rng):
    X = spd(rng, 7, 4)
    with pytest.raises(ValueError, match=r"as in MATLAB, pass X.transpose\(2, 0, 1\)"):
        check_spd(X.transpose(1, 2, 0))


def test_check_spd_averages_rounding_and_no_more(rng):
    X = spd(rng, 3, 4)
    rounded = with_entry(X, X[1, 0, 2] * (1 + 1e-10))
    checked = check_spd(rounded)
    np.testing.assert_array_equal(checked, checked.transpose(0, 2, 1))
    single = X.astype(np.float32)
    assert check_spd(single).dtype == np.float64
    assert check_spd(with_entry(single, single[1, 0, 2] * (1 + 1e-6))).dtype == np.float64
    with pytest.raises(ValueError, match="not symmetric"):
        check_spd(with_entry(X, X[1, 0, 2] * (1 + 1e-6)))


def test_check_psd_accepts_singular_matrices_of_enough_rank(rng):
    X = spd(rng, 3, 4)
    X[1] = np.diag([1.0, 2.0, 0.0, 0.0])
    np.testing.assert_array_equal(check_psd(X, 2)[1], X[1])
    assert not is_definite(X)
    assert is_definite(X[:1])
    with pytest.raises(ValueError, match=r"X\[1\] has numerical rank 2, too low for rank=3"):
        check_psd(X, 3)
    for bad in (np.diag([1.0, 1.0, 1.0, -1e-6]), np.zeros((4, 4)), -np.eye(4)):
        X[2] = bad
        with pytest.raises(ValueError, match=r"X\[2\] is not positive semi-definite"):
            check_psd(X, 2)
