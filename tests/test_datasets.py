"""The toy sets and the accuracies that the paper prints for them; the recentering of sessions."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from random_matrices import spd
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy, recenter
from spdmetric.geometry import mean_riemann, pairwise_distance, tangent_vectors
from spdmetric.linalg.symmetric import congruence, invsqrtm


def test_shapes_labels_and_determinism():
    X, y, X_test, y_test = make_toy(20, 30, d=6, random_state=3)
    assert X.shape == (20, 6, 6)
    assert X_test.shape == (30, 6, 6)
    assert sorted(y) == [-1] * 10 + [1] * 10
    assert (y_test == 1).sum() == 15
    np.testing.assert_array_equal(X, make_toy(20, 30, d=6, random_state=3)[0])
    assert np.abs(X - make_toy(20, 30, d=6, random_state=4)[0]).max() > 0.1


def test_distribution():
    """Traces give away the eigenvalues: E tr X = r (mean of lambda + mean of mu) + d E|epsilon|."""
    X, y, *_ = make_toy(20000, 2, d=4, noise=3.0, random_state=0)
    trace = np.trace(X, axis1=1, axis2=2)
    blur = 4 * np.sqrt(2 / np.pi)
    assert trace[y == 1].mean() == pytest.approx(2 * (5 + 2) + blur, abs=0.05)
    assert trace[y == -1].mean() == pytest.approx(2 * (4 + 2) + blur, abs=0.05)
    # var tr = r (var lambda + var mu) + d var|epsilon|, where 0.2 is the standard deviation
    spread = 2 * (0.2**2 + 4 / 12) + 4 * (1 - 2 / np.pi)
    assert trace[y == 1].var() == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize(("name", "value"), [("d", 5), ("n_train", 7), ("n_test", 0), ("noise", 0.5)])
def test_bad_parameters(name, value):
    expected = "at least 1" if name == "noise" else "an even number"
    with pytest.raises(ValueError, match=rf"{name}={value}: expected {expected}"):
        make_toy(**{name: value})


# Tables of the paper, columns I, mean, KTA, delta_r, delta_e.
PRINTED = {(6.0, 8): (77.46, 77.44, 86.78, 77.42, 83.32), (3.0, 8): (85.10, 85.00, 91.90, 84.98, 94.82)}


def one_nn(D, y, y_test):
    return 100 * np.mean(y[np.argmin(D, axis=1)] == y_test)


def columns(d, noise, seed):
    X, y, X_test, y_test = make_toy(d=d, noise=noise, random_state=seed)

    def of_vectors(train, test):
        return 100 * KNeighborsClassifier(1).fit(train, y).score(test, y_test)

    mean, learned = (LogEuclideanMetric(radius).fit(X, y) for radius in (0, 10))
    return (
        of_vectors(tangent_vectors(X), tangent_vectors(X_test)),
        of_vectors(mean.transform(X), mean.transform(X_test)),
        of_vectors(learned.transform(X), learned.transform(X_test)),
        one_nn(pairwise_distance(X_test, X, "riemann"), y, y_test),
        one_nn(pairwise_distance(X_test, X, "euclid"), y, y_test),
    )


@pytest.mark.parametrize(("noise", "d"), PRINTED)
def test_accuracy_is_the_papers(noise, d):
    """25 draws, every column within 2.5 points of print.

    The paper's own means are over 10 draws.
    """
    accuracy = np.mean([columns(d, noise, seed) for seed in range(1000, 1025)], axis=0)
    np.testing.assert_allclose(accuracy, PRINTED[noise, d], atol=2.5)


# -- recentering ------------------------------------------------------------------

GROUPS = np.array(["T", "E", "T", "E", "T", "E", "T", "E", "E"])
TRAIN = GROUPS == "T"


@pytest.fixture
def drifted(rng):
    X = spd(rng, 9, 4)
    drift = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    X[~TRAIN] = drift @ X[~TRAIN] @ drift.T
    return (X + X.transpose(0, 2, 1)) / 2


def test_recentering_by_session(drifted):
    Z = recenter(drifted, GROUPS)
    for group in "TE":
        assert np.allclose(mean_riemann(Z[group == GROUPS]), np.eye(4), atol=1e-8)
        assert np.allclose(
            Z[group == GROUPS],
            congruence(invsqrtm(mean_riemann(drifted[group == GROUPS])), drifted[group == GROUPS]),
        )
    assert np.array_equal(Z, Z.transpose(0, 2, 1))
    assert np.array_equal(recenter(drifted, GROUPS, train="T"), Z)


@pytest.mark.parametrize("train", ["T", ["T"], TRAIN])
def test_recentering_by_the_training_set(drifted, train):
    Z = recenter(drifted, GROUPS, train=train, how="train")
    assert np.allclose(Z, congruence(invsqrtm(mean_riemann(drifted[TRAIN])), drifted))


@pytest.mark.parametrize(("calibration", "first"), [(0.4, 2), (1.0, 5), (0.01, 1)])
def test_recentering_by_calibration(drifted, calibration, first):
    Z = recenter(drifted, GROUPS, train="T", how="calibration", calibration=calibration)
    test = drifted[~TRAIN]
    assert np.allclose(Z[TRAIN], congruence(invsqrtm(mean_riemann(drifted[TRAIN])), drifted[TRAIN]))
    assert np.allclose(Z[~TRAIN], congruence(invsqrtm(mean_riemann(test[:first])), test))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"how": "all"}, "how='all': expected one of 'session', 'train', 'calibration', 'none'"),
        ({"groups": GROUPS[:5]}, r"groups has shape \(5,\) for 9 matrices"),
        ({"how": "calibration"}, "how='calibration' needs train"),
        ({"how": "train", "train": ["T", "X"]}, r"names the groups \['X'\], but the groups are \['E', 'T'\]"),
        ({"how": "train", "train": np.zeros(9, dtype=bool)}, "train selects no matrix"),
        ({"how": "calibration", "train": "T", "calibration": 1.5}, "calibration=1.5: expected a share"),
        ({"X": -np.stack(9 * [np.eye(4)])}, r"X\[0\] is not positive definite"),
    ],
)
def test_sentences_of_recentering(drifted, change, match):
    with pytest.raises(ValueError, match=match):
        recenter(**({"X": drifted, "groups": GROUPS} | change))
