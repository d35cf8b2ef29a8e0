"""The commands toy, fit and predict: what they write is what the library computes."""

from __future__ import annotations

import csv
import io
import sys
import threading

import numpy as np
import pytest
import tqdm
from sklearn.base import clone

import spdmetric
from random_matrices import labeled, spd
from spdmetric import LogEuclideanClassifier
from spdmetric.cli import main, terminal
from spdmetric.cli.predict import accuracy


@pytest.fixture
def files(rng, tmp_path):
    X, codes = labeled(rng, 48, 3, classes=3)
    y = np.array(["left", "right", "both hands"])[codes]
    np.savez(tmp_path / "train.npz", X=X[:24], y=y[:24])
    np.savez(tmp_path / "new.npz", covs=X[24:], labels=y[24:])
    np.save(tmp_path / "new.npy", X[24:])
    return tmp_path, X, y


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(folder, *arguments) -> int:
    return main([str(folder / a) if "." in a and not a.startswith("-") else a for a in arguments])


def test_fit_and_predict_equal_the_pipeline_in_memory(files, capsys):
    folder, X, y = files
    assert run(folder, "fit", "train.npz", "-o", "model.skops") == 0
    said = capsys.readouterr().out
    assert "24 matrices 3 x 3, 3 classes: both hands (8), left (8), right (8)" in said
    assert "chosen: radius" in said
    assert run(folder, "predict", "model.skops", "new.npz", "-o", "labels.csv") == 0
    model = LogEuclideanClassifier().fit(X[:24], y[:24])
    expected = model.predict(X[24:])
    rows = rows_of(folder / "labels.csv")
    assert [row["label"] for row in rows] == expected.tolist()
    assert [row["true"] for row in rows] == y[24:].tolist()
    assert [row["index"] for row in rows] == [str(i) for i in range(24)]
    right = int(np.sum(expected == y[24:]))
    assert f"accuracy: {100 * right / 24:.2f} % ({right} of 24)" in capsys.readouterr().out
    loaded = spdmetric.load(folder / "model.skops")
    assert loaded.metric_.transform(X).tobytes() == model.metric_.transform(X).tobytes()
    assert loaded.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()


def test_without_labels_there_is_no_accuracy(files, capsys):
    folder, X, _ = files
    assert run(folder, "fit", "train.npz", "-o", "model.skops", "--radius", "1", "--rank", "full") == 0
    assert run(folder, "predict", "model.skops", "new.npy", "-o", "labels.csv") == 0
    assert "accuracy" not in capsys.readouterr().out
    assert list(rows_of(folder / "labels.csv")[0]) == ["index", "label"]
    model = spdmetric.load(folder / "model.skops")
    assert type(model) is LogEuclideanClassifier
    assert model.metric_.best_params_["rank"] is None
    assert [row["label"] for row in rows_of(folder / "labels.csv")] == model.predict(X[24:]).tolist()


def test_labels_from_csv(files, capsys):
    folder, X, y = files
    np.save(folder / "train.npy", X[:24])
    (folder / "train.csv").write_text("label\n" + "\n".join(y[:24]) + "\n")
    options = ("--rank", "2", "--neighbors", "3", "--folds", "2")
    assert run(folder, "fit", "train.npy", "--labels", "train.csv", "-o", "model.skops", *options) == 0
    model = spdmetric.load(folder / "model.skops")
    assert model.metric.ranks == (2,)
    assert model.n_neighbors == model.metric_.n_neighbors_ == 3
    assert (model.head_, model.cv) == ("neighbors", 2)


@pytest.mark.parametrize("method", ["euclid", "svm", "auto"])
def test_the_size_is_told_of_models_that_do_not_name_it(method, files, rng, capsys):
    folder, *_ = files
    np.savez(folder / "large.npz", X=labeled(rng, 4, 5)[0])
    assert run(folder, "fit", "train.npz", "-o", "model.skops", "--method", method) == 0
    assert run(folder, "predict", "model.skops", "large.npz") == 2
    assert "5 x 5; the model was trained on matrices 3 x 3" in capsys.readouterr().err


def test_labels_of_another_kind(capsys):
    classes, predicted = np.array([1, 2]), np.array([1, 2, 2])
    assert accuracy(classes, predicted, np.array(["1", "2", "1"])).startswith("accuracy: 66.67 %")
    assert accuracy(classes, predicted, np.array([1.0, 2.0, 2.0])).startswith("accuracy: 100.00 %")
    assert "none of the labels" in accuracy(classes, predicted, np.array(["a", "b", "b"]))


@pytest.mark.parametrize(("options", "steps"), [((), 5), (("--radius", "1", "--rank", "full"), 1)])
def test_progress_counts_every_task_and_leaves_no_trace(options, steps, files, monkeypatch):
    """Without scikit-learn's callbacks (before 1.9) there is no bar."""
    pytest.importorskip("sklearn.callback", reason="scikit-learn >= 1.9")
    bars = []

    class Bar(tqdm.tqdm):
        def __init__(self, *args, **kwargs):
            assert kwargs["disable"] is None  # off where there is no terminal
            assert kwargs["delay"] == 2
            super().__init__(*args, **kwargs | {"disable": False, "delay": 0, "file": io.StringIO()})
            bars.append(self)

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    folder, X, y = files
    assert run(folder, "fit", "train.npz", "-o", "model.skops", *options) == 0
    assert bars[0].n >= steps  # five folds; or iterations
    model = spdmetric.load(folder / "model.skops")
    plain = clone(model).fit(X[:24], y[:24])
    assert plain.metric_.transform(X).tobytes() == model.metric_.transform(X).tobytes()
    assert "Bar" not in str(vars(model)) + str(vars(model.metric_))


def test_time_is_shown_before_the_first_step_ends(monkeypatch):
    shown, seen = io.StringIO(), threading.Event()
    shown.isatty = lambda: True
    write = shown.write
    shown.write = lambda text: (write(text), seen.set() if "labeling: 0 steps, 00:00" in text else None)
    monkeypatch.setattr(terminal, "PATIENCE", 0.01)
    monkeypatch.setattr(sys, "stderr", shown)
    with terminal.show_progress("labeling"):
        assert seen.wait(60)


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, ", which is not beaten"), (3.0, "")])
def test_the_share_of_the_largest_class_stands_beside_the_accuracy(shift, verdict, rng, tmp_path, capsys):
    y = np.array(["often"] * 32 + ["rare"] * 4)
    X = np.exp(shift * (y == "rare"))[:, None, None] * spd(rng, 36, 3)
    np.savez(tmp_path / "train.npz", X=X, y=y)
    assert run(tmp_path, "fit", "train.npz", "-o", "model.skops", "--radius", "0", "--rank", "full") == 0
    assert f"; the largest class has 88.9 %{verdict}\n" in capsys.readouterr().out
