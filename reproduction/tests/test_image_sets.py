"""Image sets: from folders, files and arrays to covariances; what is wrong with them is told."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from reproduction.__main__ import main
from reproduction.datasets import draw_sets, load_image_sets
from spdmetric.validation import check_spd

VIRUS = Path(os.environ.get("SPDMETRIC_DATA", "")) / "virus"


@pytest.fixture
def images(rng):
    """Nine sets of three classes, which differ by where the light varies."""
    light = np.ones((3, 4, 3))
    light[0, 0], light[1, 1], light[2, 2] = 30, 30, 30
    pictures = 128 + np.repeat(light, 3, axis=0)[:, None] * rng.standard_normal((9, 6, 4, 3))
    return pictures.clip(0, 255).astype(np.uint8), np.repeat(["fern", "moss", "reed"], 3)


@pytest.fixture
def folder(images, tmp_path):
    image = pytest.importorskip("PIL.Image")
    for k, (pictures, label) in enumerate(zip(*images, strict=True)):
        (tmp_path / "plants" / label / f"s{k % 3}").mkdir(parents=True)
        for i, picture in enumerate(pictures):
            image.fromarray(picture).save(tmp_path / "plants" / label / f"s{k % 3}" / f"{i}.png")
    return tmp_path / "plants"


def test_the_protocol(images):
    pictures, labels = images
    X, y, groups = load_image_sets(pictures, labels)
    check_spd(X)
    assert (X.shape, groups) == ((9, 12, 12), None)
    C = np.cov(pictures[4].reshape(6, 12).astype(float), rowvar=False)
    np.testing.assert_allclose(X[4], C + 1e-3 * np.trace(C) * np.eye(12), rtol=1e-12)
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_allclose(load_image_sets(pictures, labels, ridge=0).X[4], C, rtol=1e-12)


def test_folders_files_and_arrays_give_the_same(images, folder, tmp_path):
    pictures, labels = images
    expected = load_image_sets(pictures, labels)
    np.savez(tmp_path / "image_sets.npz", images=pictures, y=labels)
    for source in (folder, tmp_path, tmp_path / "image_sets.npz"):
        found = load_image_sets(source)
        np.testing.assert_array_equal(found.X, expected.X)
        np.testing.assert_array_equal(found.y, labels)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda p, y: ([p[0], p[1][:1]], [0, 1]), r"set 1 has 1 image: a covariance needs two"),
        (lambda p, y: ([p[0], p[1][:, :3]], [0, 1]), r"set 1 has images of 3 x 3 pixels and set 0 of 4 x 3"),
        (lambda p, y: ([0 * p[0]], [0]), r"set 0 has 6 equal images: their covariance is zero"),
        (lambda p, y: (p, [0, 1]), r"9 image sets and 2 labels"),
        (lambda p, y: (p,), "y is None: expected the label of each"),
        (lambda p, y: (p[0], np.arange(6)), r"set 0 has shape \(4, 3\)"),
    ],
)
def test_what_is_wrong_is_told(images, change, sentence):
    with pytest.raises(ValueError, match=sentence):
        load_image_sets(*change(*images))


def test_splits_take_three_of_five():
    y = np.repeat([3, 5, 7], [5, 5, 2])
    X = np.arange(12.0)[:, None, None]
    known, labels, new, others = draw_sets(X, y, random_state=0)
    assert np.bincount(labels).tolist() == [0, 0, 0, 3, 0, 3, 0, 1]
    assert sorted([*known.ravel(), *new.ravel()]) == list(range(12))
    assert set(others) == {3, 5, 7}
    np.testing.assert_array_equal(known, draw_sets(X, y, random_state=0)[0])
    with pytest.raises(ValueError, match="Class 9 has one image set"):
        draw_sets(X[:3], np.array([8, 8, 9]))


def test_the_table(folder, tmp_path, capsys):
    out = tmp_path / "out"
    methods = "euclid,logeuclid-identity,logeuclid-identity-weighting,logeuclid-identity-ridge"
    command = ["image-sets", "--data", str(folder), "--out", str(out), "--methods", methods]
    assert main([*command, "--repeats", "3", "--jobs", "1"]) == 0
    assert "Image sets: plants" in capsys.readouterr().out
    found = json.loads((out / "image-sets.json").read_text())
    counts = {entry["method"]: entry["n"] for entry in found["by_group"]}
    assert counts == dict.fromkeys(methods.split(","), 3)
    assert main(["image-sets", "--out", str(out)]) == 2
    assert "needs --data: a folder with folders CLASS/SET" in capsys.readouterr().err


@pytest.mark.skipif(not VIRUS.is_dir(), reason="needs SPDMETRIC_DATA, a folder with virus/image_sets.npz")
def test_virus_loads():
    X, y, _ = load_image_sets(VIRUS)
    assert X.shape == (75, 400, 400)
    assert np.bincount(y).tolist() == [0] + [5] * 15
