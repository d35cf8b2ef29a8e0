"""Functions of symmetric matrices, their derivatives, and validation."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from random_matrices import spd, symmetric
from spdmetric.linalg.symmetric import (
    congruence,
    expm,
    invsqrtm,
    logm,
    powm,
    sinhc,
    spectrum,
    sqrtm,
    ucothu,
    unvech,
    vech,
)
from spectral import EXP, LOG, LogCongruence, derivative, power

seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 7))
def test_functions_invert_each_other(seed, d):
    X = spd(np.random.default_rng(seed), 3, d)
    np.testing.assert_allclose(expm(logm(X)), X, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(sqrtm(X) @ sqrtm(X), X, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(congruence(invsqrtm(X), X), np.broadcast_to(np.eye(d), X.shape), atol=1e-10)
    np.testing.assert_allclose(powm(X, -1.0) @ X, np.broadcast_to(np.eye(d), X.shape), atol=1e-9)


@given(seeds, st.integers(1, 7))
def test_vech_is_an_isometry_with_inverse(seed, d):
    S = symmetric(np.random.default_rng(seed), 4, d)
    v = vech(S)
    assert v.shape == (4, d * (d + 1) // 2)
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), np.linalg.norm(S, axis=(1, 2)), rtol=1e-13)
    np.testing.assert_allclose(unvech(v), S, rtol=1e-15)


def test_vech_of_integers_does_not_truncate():
    S = np.array([[4, 1], [1, 9]])
    np.testing.assert_array_equal(vech(S), vech(S.astype(float)))


def test_unvech_refuses_other_lengths():
    with pytest.raises(ValueError, match="length 4 is not the upper triangle"):
        unvech(np.zeros((2, 4)))


def test_even_functions_at_zero_and_far():
    u = np.array([0.0, 1e-300, 1e-9, 1e-3, 1.0, 300.0])
    np.testing.assert_allclose(ucothu(u)[:4], 1 + u[:4] ** 2 / 3, rtol=1e-12)
    np.testing.assert_allclose(ucothu(u)[4:], u[4:] / np.tanh(u[4:]), rtol=1e-15)
    np.testing.assert_allclose(sinhc(u)[:4], 1 + u[:4] ** 2 / 6, rtol=1e-12)


FUNCTIONS = {"exp": EXP, "log": LOG, "sqrt": power(0.5), "inverse": power(-1.0), "square": power(2.0)}


def awkward_stack(rng, d=5):
    """Random, repeated, nearly repeated and widely spread eigenvalues."""
    rows = [
        np.exp(rng.standard_normal(d)),
        np.ones(d),
        1 + 1e-9 * rng.standard_normal(d),
        1 + 1e-3 * rng.standard_normal(d),
        np.array([1.0, 1.0, 2.0, 2.0, 2.0 + 1e-7]),
        np.logspace(-1.0, 0.5, d),
    ]
    vectors = spectrum(symmetric(rng, len(rows), d)).vectors
    return (vectors * np.array(rows)[:, None, :]) @ vectors.transpose(0, 2, 1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_derivative(name, rng):
    f, X = FUNCTIONS[name], awkward_stack(rng)
    E = symmetric(rng, len(X), 5)

    def value(S):
        s = spectrum(S)
        return s.compose(f.value(s.values))

    h = 1e-4
    stencil = (8 * (value(X + h * E) - value(X - h * E)) - (value(X + 2 * h * E) - value(X - 2 * h * E))) / (
        12 * h
    )
    np.testing.assert_allclose(derivative(f, spectrum(X), E), stencil, rtol=1e-6, atol=1e-7)


def test_derivative_of_log_at_tiny_scale(rng):
    """Where an absolute tolerance on the gaps is 25 % wrong: covariances in V^2."""
    X = spd(rng, 3, 4)
    E = symmetric(rng, 3, 4)
    scale = 1e-12
    np.testing.assert_allclose(
        derivative(LOG, spectrum(scale * X), scale * E),
        derivative(LOG, spectrum(X), E),
        rtol=1e-9,
        atol=1e-12,
    )


def test_log_along_a_congruence(rng):
    A, eta = awkward_stack(rng), symmetric(rng, 5)
    M = symmetric(rng, len(A), 5)

    def moved(h):
        return LogCongruence.of(congruence(expm(-h * eta / 2), A))

    here, h = LogCongruence.of(A), 1e-4
    difference = [moved(t).log.compose(moved(t).log.values) for t in (h, -h)]
    np.testing.assert_allclose(
        here.push(eta), (difference[0] - difference[1]) / (2 * h), rtol=1e-6, atol=1e-6
    )
    assert np.vdot(here.push(M).sum(axis=0), eta) == pytest.approx(np.vdot(M, here.push(eta)), rel=1e-12)


def test_congruence_derivatives_agree_with_the_general_ones(rng):
    """D log along a congruence is D log of the moved matrix: two formulas, one number."""
    A, eta = awkward_stack(rng), symmetric(rng, 5)
    moved = -(eta @ A + A @ eta) / 2
    np.testing.assert_allclose(
        LogCongruence.of(A).push(eta), derivative(LOG, spectrum(A), moved), rtol=1e-9, atol=1e-10
    )


def test_array_api(rng):
    X = spd(rng, 3, 4)
    Z = strict.asarray(X)
    for f in (logm, expm, sqrtm, vech, lambda A: unvech(vech(A))):
        np.testing.assert_allclose(np.asarray(f(Z)), f(X), rtol=1e-12)
    E = symmetric(rng, 3, 4)
    np.testing.assert_allclose(
        np.asarray(LogCongruence.of(Z).push(strict.asarray(E))), LogCongruence.of(X).push(E), rtol=1e-10
    )
