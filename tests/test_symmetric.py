"""Functions of symmetric matrices, their derivatives, and validation."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from spdmetric.linalg.symmetric import (
    sinhc,
    ucothu,
    vech,
)

seeds = st.integers(0, 2**32 - 1)


def test_vech_of_integers_does_not_truncate():
    S = np.array([[4, 1], [1, 9]])
    np.testing.assert_array_equal(vech(S), vech(S.astype(float)))


def test_even_functions_at_zero_and_far():
    u = np.array([0.0, 1e-300, 1e-9, 1e-3, 1.0, 300.0])
    np.testing.assert_allclose(ucothu(u)[:4], 1 + u[:4] ** 2 / 3, rtol=1e-12)
    np.testing.assert_allclose(ucothu(u)[4:], u[4:] / np.tanh(u[4:]), rtol=1e-15)
    np.testing.assert_allclose(sinhc(u)[:4], 1 + u[:4] ** 2 / 6, rtol=1e-12)
