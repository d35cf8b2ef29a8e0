"""Objectives of either kernel, and how their derivatives and invariances are checked."""

from types import SimpleNamespace

import numpy as np
import pytest

from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.gaussian import GaussianEvaluation, GaussianMisalignment

GAMMAS = (None, 1e-9, 0.3, 2.0)
KERNELS = pytest.mark.parametrize("kernel", ["linear", *GAMMAS])  # a width, or the best one, is Gaussian


def make_objective(kernel, data):
    return Misalignment(data) if kernel == "linear" else GaussianMisalignment(data, gamma=kernel)


def at_factor(objective, W):
    return objective.at(SimpleNamespace(factor=W))


def check_taylor(here, *slopes_and_moves):
    """What a gradient leaves of the change of the value along a way falls with the square of the step."""
    h = np.logspace(-2, -4, 5)
    for along, moved in slopes_and_moves:
        left = [[abs(moved(t).value - here.value - t * along) for t in (step, -step)] for step in h]
        remainder = np.sum(left, axis=1)  # on one side, the square and the cube can cancel
        assert np.polyfit(np.log(h), np.log(remainder), 1)[0] > 1.95


def same(a, b, rel=1e-9):
    assert a.alignment == pytest.approx(b.alignment, rel=rel)
    if isinstance(a, GaussianEvaluation):
        assert a.gamma == pytest.approx(b.gamma, rel=1e-7)
    np.testing.assert_allclose(a.frame_gradient, b.frame_gradient, rtol=1e-7, atol=1e-9)
