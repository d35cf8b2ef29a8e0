"""The table of a new subject, on simulated ones."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from reproduction import transfer
from reproduction.__main__ import main
from reproduction.transfer import (
    ADAPTED,
    ARMS,
    OWN,
    TRIALS,
    Recordings,
    cells_of,
    gains_of,
    run_transfer,
    write_transfer,
)
from spdmetric import LogEuclideanClassifier, LogEuclideanMetricCV


@pytest.fixture
def recordings() -> Recordings:
    """Three subjects who differ by a mixing, three runs of 20 trials each, two classes."""
    rng, parts = np.random.default_rng(0), []
    for subject in range(1, 4):
        mixing = np.eye(4) + 0.3 * rng.standard_normal((4, 4))
        for run in (4, 8, 12):
            y = np.tile(["left", "right"], 10)
            log = 0.4 * rng.standard_normal((20, 4))
            log[:, 0] += np.where(y == "left", 0.6, -0.6)
            X = np.einsum("ij,nj,kj->nik", mixing, np.exp(log), mixing)
            parts.append((X, y, np.full(20, subject), np.full(20, run)))
    return Recordings(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def test_the_first_trials_are_of_both_classes_in_their_order(recordings):
    some = recordings.of(recordings.subject == 1).first(10)
    assert some.y.tolist() == ["left", "right"] * 5
    np.testing.assert_array_equal(some.X, recordings.X[:10])
    assert recordings.first(0).y.size == 0


def test_all_arms_and_files(recordings, monkeypatch, tmp_path):
    monkeypatch.setattr(transfer, "CHANNELS", (4,))
    quick = partial(LogEuclideanClassifier, LogEuclideanMetricCV(radii=(0,)))
    monkeypatch.setattr(transfer, "LogEuclideanClassifier", quick)
    monkeypatch.setattr(transfer, "read_recordings", lambda data: recordings)
    results = run_transfer(Path(), tmp_path)
    assert len(results) == 3 * 3 * sum(map(len, ARMS.values()))
    told = write_transfer(results, tmp_path)
    assert "3 subjects, three test runs each" in told
    found = json.loads((tmp_path / "transfer.json").read_text())
    assert {(c["channels"], c["trials"]) for c in found["cells"] if c["arm"] == ADAPTED} == {
        (c, k) for c in (4,) for k in TRIALS
    }
    assert all((tmp_path / f"transfer.{kind}").stat().st_size for kind in ("csv", "md", "png"))
    # A gain is the mean of paired differences.
    gain = gains_of(cells_of(results))[4, OWN, 30]
    by_arm = [
        np.array([r.accuracy for r in results if r.row.startswith("4 ") and r.method == f"{arm} 30"])
        for arm in (ADAPTED, OWN)
    ]
    assert gain.mean == pytest.approx(np.mean(by_arm[0] - by_arm[1]))
    # Nothing is computed twice.
    monkeypatch.setattr(transfer, "_prepare_subject", lambda *_: pytest.fail("computed again"))
    assert run_transfer(Path(), tmp_path) == results


def test_what_is_missing_is_said(tmp_path, capsys):
    assert main(["transfer", "--out", str(tmp_path)]) == 2
    assert "transfer needs --data" in capsys.readouterr().err
