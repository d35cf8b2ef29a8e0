"""The whitening of sessions: by which mean, what it takes away, and its sentences."""

from __future__ import annotations

import numpy as np
import pytest

from random_matrices import spd
from spdmetric.datasets import whiten
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import invsqrtm

GROUPS = np.array(["T", "E", "T", "E", "T", "E", "T", "E", "E"])
TRAIN = GROUPS == "T"


def whitened_by(X, M):
    W = invsqrtm(M)
    return W @ X @ W


@pytest.fixture
def drifted(rng):
    X = spd(rng, 9, 4)
    drift = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    X[~TRAIN] = drift @ X[~TRAIN] @ drift.T
    return (X + X.transpose(0, 2, 1)) / 2


def test_whitening_by_session(drifted):
    Z = whiten(drifted, GROUPS)
    for group in "TE":
        assert np.allclose(mean_riemann(Z[group == GROUPS]), np.eye(4), atol=1e-8)
        assert np.allclose(
            Z[group == GROUPS], whitened_by(drifted[group == GROUPS], mean_riemann(drifted[group == GROUPS]))
        )
    assert np.array_equal(Z, Z.transpose(0, 2, 1))
    assert np.array_equal(whiten(drifted, GROUPS, train="T"), Z)


@pytest.mark.parametrize("train", ["T", ["T"], TRAIN])
def test_whitening_by_the_training_set(drifted, train):
    Z = whiten(drifted, GROUPS, train=train, how="train")
    assert np.allclose(Z, whitened_by(drifted, mean_riemann(drifted[TRAIN])))


@pytest.mark.parametrize(("calibration", "first"), [(0.4, 2), (1.0, 5), (0.01, 1)])
def test_whitening_by_calibration(drifted, calibration, first):
    Z = whiten(drifted, GROUPS, train="T", how="calibration", calibration=calibration)
    test = drifted[~TRAIN]
    assert np.allclose(Z[TRAIN], whitened_by(drifted[TRAIN], mean_riemann(drifted[TRAIN])))
    assert np.allclose(Z[~TRAIN], whitened_by(test, mean_riemann(test[:first])))


def test_whitening_by_calibration_uses_nothing_later(drifted):
    changed = drifted.copy()
    changed[-1] *= 7
    settings = {"train": "T", "how": "calibration", "calibration": 0.4}
    Z = whiten(drifted, GROUPS, **settings)
    assert np.array_equal(whiten(changed, GROUPS, **settings)[:-1], Z[:-1])


def test_whitening_takes_a_drift_away(drifted, rng):
    """A congruence of a whole session changes the whitened matrices by a rotation alone."""
    A = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    moved = drifted.copy()
    moved[~TRAIN] = A @ moved[~TRAIN] @ A.T
    eigenvalues, before = (np.linalg.eigvalsh(whiten(X, GROUPS)) for X in (moved, drifted))
    assert np.allclose(eigenvalues, before)


def test_no_whitening(drifted):
    assert np.array_equal(whiten(drifted, GROUPS, how="none"), drifted)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"how": "all"}, "how='all': expected one of 'session', 'train', 'calibration', 'none'"),
        ({"groups": GROUPS[:5]}, r"groups has shape \(5,\) for 9 matrices"),
        ({"how": "train"}, "how='train' needs train: the training groups, or a mask"),
        ({"how": "calibration"}, "how='calibration' needs train"),
        ({"how": "train", "train": ["T", "X"]}, r"names the groups \['X'\], but the groups are \['E', 'T'\]"),
        ({"how": "train", "train": TRAIN[:4]}, "mask train has 4 entries for 9 matrices"),
        ({"how": "train", "train": np.zeros(9, dtype=bool)}, "train selects no matrix"),
        ({"how": "calibration", "train": "T", "calibration": 0}, "calibration=0: expected a share"),
        ({"how": "calibration", "train": "T", "calibration": 1.5}, "calibration=1.5: expected a share"),
    ],
)
def test_sentences_of_whitening(drifted, change, match):
    with pytest.raises(ValueError, match=match):
        whiten(**({"X": drifted, "groups": GROUPS} | change))


def test_whitening_asks_for_definite_matrices(drifted):
    with pytest.raises(ValueError, match=r"X\[0\] is not positive definite"):
        whiten(-drifted, GROUPS)
