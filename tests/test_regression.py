"""A number to predict: the generative set, the checks, alignment and shape of continuous targets."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score

from spdmetric.datasets import make_regression
from spdmetric.validation import check_psd, check_spd

# ---------------------------------------------------------------------------
# The generative set


def log_powers_of(X: np.ndarray, rank: int, seed: int) -> np.ndarray:
    """The oracle: with the mixing known, drawn as the set draws it, the powers follow."""
    A = np.random.RandomState(seed).standard_normal((X.shape[1], rank))
    back = np.linalg.pinv(A)
    return np.log(np.diagonal(back @ X @ back.T, axis1=1, axis2=2))


@pytest.mark.parametrize(("rank", "r2"), [(8, 0.97), (None, 0.5), (3, 1.0)])
def test_make_regression_is_linear_in_the_log_powers(rank: int | None, r2: float):
    X, y, X_test, y_test = make_regression(3000, 3000, d=8, rank=rank, r2=r2, random_state=5)
    known, new = (log_powers_of(part, rank or 8, 5) for part in (X, X_test))
    assert np.std(known) == pytest.approx(1, rel=0.05)
    found = r2_score(y_test, LinearRegression().fit(known, y).predict(new))
    assert found == pytest.approx(r2, abs=0.03)


def test_make_regression_shapes_ranks_and_seeds():
    X, y, X_test, y_test = make_regression(10, 6, d=5, rank=3, n_outputs=2, random_state=0)
    assert (X.shape, y.shape, X_test.shape, y_test.shape) == ((10, 5, 5), (10, 2), (6, 5, 5), (6, 2))
    check_psd(X, 3)
    with pytest.raises(ValueError, match="numerical rank 3"):
        check_psd(X, 4)
    check_spd(make_regression(10, 6, d=5, random_state=0)[0])
    again = make_regression(10, 6, d=5, rank=3, n_outputs=2, random_state=0)
    np.testing.assert_array_equal(X, again[0])
    np.testing.assert_array_equal(y_test, again[3])


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"rank": 17}, "rank=17: expected a whole number from 1 to d=16"),
        ({"rank": 2.5}, "rank=2.5: expected a whole number"),
        ({"r2": 0.0}, "r2=0.0: expected a number > 0 and <= 1"),
        ({"r2": 1.1}, "r2=1.1: expected a number"),
        ({"n_train": 0}, "n_train=0: expected a whole number >= 1"),
        ({"n_outputs": 0}, "n_outputs=0: expected a whole number >= 1"),
    ],
)
def test_make_regression_says_what_is_wrong(parameters: dict[str, float], sentence: str):
    with pytest.raises(ValueError, match=sentence):
        make_regression(**parameters)
