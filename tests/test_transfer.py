"""MOABB's cross-subject protocols, and pyRiemann's way to tell domains."""

import numpy as np
import pytest
from pyriemann.transfer import decode_domains, encode_domains

from random_matrices import labeled
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import recenter
from spdmetric.estimators import TransferClassifier
from spdmetric.geometry import mean_riemann


def signals(rng, n_subjects=3, n=24):
    """Signals of three channels, of which one is louder in one class; each subject mixes them."""
    y, who = np.tile([0, 1], n_subjects * n // 2), np.repeat(np.arange(n_subjects), n)
    X = rng.standard_normal((len(y), 3, 80))
    X[:, 0] *= np.where(y == 0, 1.0, 2.0)[:, None]
    mixings = np.eye(3) + 0.3 * rng.standard_normal((n_subjects, 3, 3))
    return np.einsum("nij,njt->nit", mixings[who], X), y, who


def test_carried_to_a_new_subject(rng):
    X, y, who = signals(rng)
    old, first, rest = who < 2, np.flatnonzero(who == 2)[:12], np.flatnonzero(who == 2)[12:]
    model = TransferClassifier(classifier=LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,))))
    covariances = model.fit(X[old], y[old], who[old]).covariance_.transform
    means = model.model_.metric_.domain_means_
    np.testing.assert_allclose(model.model_.metric_.embedding_.domain_means[0], mean_riemann(means))
    assert model.predict_proba(X[rest]).shape == (12, 2)
    model.fit(X[old], y[old], who[old], X_target_unlabeled=X[first])
    domain_mean = model.model_.metric_.embedding_.domain_means[0]
    np.testing.assert_allclose(domain_mean, mean_riemann(covariances(X[first])))
    model.fit(X[old], y[old], who[old], X_target_labeled=X[first], y_target_labeled=y[first])
    assert model.model_.own_weight_ > 0
    assert model.score(X[rest], y[rest]) > 0.8
    assert model.fit(X[old], y[old]).model_.metric_.domains_ is None  # nobody said who they are


# MOABB 1.7 asks MNE 1.13 for a montage by the name that MNE is about to drop.
@pytest.mark.filterwarnings("ignore:Montage name 'standard_1005' is deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:Creating a dataset without passing data or dtype is deprecated")
def test_in_moabb(tmp_path, monkeypatch):
    """Cross-session, and two cross-subject modes, on data that need no download."""
    from moabb.datasets.fake import FakeDataset
    from moabb.evaluations import CrossSessionEvaluation, CrossSubjectEvaluation
    from moabb.paradigms import LeftRightImagery

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where it makes a folder of its own
    events, channels = ["left_hand", "right_hand"], ("C3", "Cz", "C4")
    data = FakeDataset(events, n_subjects=3, n_sessions=2, n_runs=1, n_events=16, channels=channels, seed=1)
    model = TransferClassifier(
        classifier=LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,), ranks=(None,)))
    )
    common = {"paradigm": LeftRightImagery(), "datasets": [data], "overwrite": True}
    for k, (kind, options) in enumerate(
        [
            (CrossSessionEvaluation, {}),
            (CrossSubjectEvaluation, {}),
            (CrossSubjectEvaluation, {"cv_kwargs": {"calibration_size": 0.3, "calibration_labeled": True}}),
            (CrossSubjectEvaluation, {"cv_kwargs": {"calibration_size": 0.3}}),
        ]
    ):
        evaluation = kind(hdf5_path=str(tmp_path / str(k)), **common, **options)
        results = evaluation.process({"transfer": model})
        assert len(results) == 6
        assert results["score"].between(0, 1).all()


def test_domains_of_pyriemann(rng):
    X, y = labeled(rng, 40, 3)
    sessions = np.array(["monday", "tuesday"])[np.arange(40) // 20]
    X, y_encoded = encode_domains(X, y, sessions)
    X, labels, domains = decode_domains(X, y_encoded)
    metric = LogEuclideanMetric(1.0).fit(X, labels, sample_domain=domains)
    by_hand = LogEuclideanMetric(1.0).fit(recenter(X, sessions), y)
    vectors = by_hand.transform(recenter(X, sessions))
    np.testing.assert_allclose(metric.transform(X, domains), vectors, atol=1e-10)
