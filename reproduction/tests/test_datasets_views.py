"""Several matrices a sample: which ones, in which order."""

from __future__ import annotations

import numpy as np

from random_matrices import spd
from reproduction.datasets import load_actions, load_eegmmi_bands, load_ssvep, load_ssvep_blocks
from spdmetric.validation import check_spd


def test_actions_are_cut_into_four_stretches(rng, tmp_path):
    frames = rng.standard_normal((23, 57)).astype(np.float32)
    columns = {"lengths": [13, 10], "labels": [7, 20], "subjects": [1, 3]}
    np.savez(tmp_path / "odd_subjects.npz", frames=frames, **columns)
    X, y, subjects = load_actions(tmp_path)
    assert (X.shape, y.tolist(), subjects.tolist()) == ((2, 4, 57, 57), [7, 20], [1, 3])
    sequence = frames[:13].astype(float)
    for view, part in zip(X[0], (sequence, sequence[:6], sequence[6:], sequence[3:9]), strict=True):
        C = (part - part.mean(axis=0)).T @ (part - part.mean(axis=0)) / (len(part) - 1)
        np.testing.assert_allclose(view, C + (1e-3 * np.trace(C) / 57 + 1e-9) * np.eye(57), atol=1e-12)
    check_spd(X.reshape(-1, 57, 57))


def test_bands_are_the_whole_and_what_it_is_made_of(rng, tmp_path):
    bands = np.array([[8, 30], [4, 8], [8, 12], [12, 16], [16, 20], [20, 24], [24, 30], [30, 40]])
    X = spd(rng, 3, 8, 21).astype(np.float32)
    np.savez(tmp_path / "bands_S001-S020.npz", bands=bands, X5=X, y5=np.arange(3), r5=[4, 8, 12])
    found = load_eegmmi_bands(5, tmp_path)
    np.testing.assert_array_equal(found.X, X[:, [0, 2, 3, 4, 5, 6]])
    assert (found.X.dtype, found.groups.tolist()) == (np.float64, [4, 8, 12])


def test_blocks_are_those_of_the_frequencies(rng, tmp_path):
    np.savez(tmp_path / "covariances.npz", X2=spd(rng, 5, 24), y2=np.arange(5), r2=np.zeros(5))
    views, whole = load_ssvep_blocks(2, tmp_path).X, load_ssvep(2, tmp_path).X
    np.testing.assert_array_equal(views[:, 0], whole)
    at = np.arange(24) // 8
    for k in range(3):
        own = (at == k)[:, None] & (at == k)
        np.testing.assert_array_equal(views[:, k + 1], np.where(own, whole, np.eye(24)))
    check_spd(views.reshape(-1, 24, 24))


def test_real_views(data_folder):
    shapes = [
        load_actions(data_folder / "msr-action3d").X.shape,
        load_eegmmi_bands(20, data_folder / "eegmmi").X.shape,
        load_ssvep_blocks(12, data_folder / "ssvep").X.shape,
    ]
    assert shapes == [(292, 4, 57, 57), (45, 6, 21, 21), (96, 4, 24, 24)]
