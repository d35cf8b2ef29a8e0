"""Regression targets on the command line: fit, predict, toy, and compare."""

import csv

import numpy as np
import pytest

import spdmetric
from spdmetric.cli import main
from spdmetric.datasets import make_regression


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y, X_new, y_new = make_regression(60, 20, d=6, rank=4, random_state=0)
    np.savez("train.npz", X=X, y=y)
    np.savez("new.npz", X=X_new, y=y_new)
    return X, y, X_new, y_new


@pytest.mark.parametrize("options", [[], ["--neighbors", "3"], ["--rank", "2"]], ids=str)
def test_fit_and_predict(options, files, capsys):
    _, _, X_new, y_new = files
    assert main(["fit", "train.npz", "-o", "model.skops", "--regression", "--radius", "0", *options]) == 0
    out = capsys.readouterr().out
    assert "60 matrices 6 x 6, numbers from" in out
    assert ("brought to their common range, 4 of 6 dimensions" in out) is ("--rank" not in options)
    assert main(["predict", "model.skops", "new.npz", "-o", "numbers.csv"]) == 0
    model = spdmetric.load("model.skops")
    score = model.score(X_new, y_new)
    assert score > 0.5
    assert f"R2: {score:.3f}, mean absolute error" in capsys.readouterr().out
    with open("numbers.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["index", "value", "true"]
    np.testing.assert_array_equal([float(row[1]) for row in rows], model.predict(X_new))


def test_fit_chooses(files, capsys):
    assert main(["fit", "train.npz", "-o", "model.skops", "--regression"]) == 0
    assert "ridge regression; R2 0.9" in capsys.readouterr().out
    model = spdmetric.load("model.skops")
    assert type(model[1]).__name__ == "LogEuclideanRegressor"
    assert model.score(*files[2:]) > 0.9


@pytest.mark.parametrize(
    ("y", "options", "sentence"),
    [
        (np.arange(60) / 7, [], "labels that are not all whole, such as 0.1429: give --regression"),
        (
            np.array(["a", "b"] * 30),
            ["--regression"],
            "has words for labels, such as a: leave out --regression",
        ),
    ],
)
def test_what_cannot_be_learned_gets_one_sentence(y, options, sentence, files, capsys):
    np.savez("bad.npz", X=files[0], y=y)
    assert main(["fit", "bad.npz", "-o", "model.skops", *options]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.filterwarnings("default:.*whole numbers for labels:UserWarning")
def test_few_whole_numbers_are_warned_of(files, capsys):
    np.savez("grades.npz", X=files[0], y=np.arange(60) % 5)
    assert main(["fit", "grades.npz", "-o", "model.skops", "--regression"]) == 0
    assert "5 different whole numbers for labels: leave out --regression" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--scoring", "mae"], ["--regression", "--title", "Ages <1>"]], ids=str)
def test_compare(options, files, capsys):
    methods = ["--methods", "logeuclid-mean-ridge,mean", "--repeats", "1", "--jobs", "1"]
    methods += ["--method", "logeuclid-mean-ridge"] * ("--title" in options)
    assert main(["compare", "train.npz", "--save", "model.skops", *methods, *options]) == 0
    assert "Use Tangent space + ridge: " in capsys.readouterr().out
    with open("report.html", encoding="utf-8") as file:
        text = file.read()
    assert "Predicted and true</h2>" in text
    assert ("<h1><bdi>Ages &lt;1&gt;</bdi></h1>" in text) is ("--title" in options)
    assert spdmetric.load("model.skops").score(*files[2:]) > 0.5


def test_compare_says_which_scores_are_for_numbers(files, capsys):
    assert main(["compare", "train.npz", "--scoring", "auc"]) == 2
    assert "scoring='auc' is for classes, and y holds numbers" in capsys.readouterr().err


def test_toy(tmp_path, capsys):
    assert main(["toy", "--regression", "--out", str(tmp_path)]) == 0
    with np.load(tmp_path / "toy-train.npz") as file:
        assert (file["X"].shape, file["y"].dtype) == ((200, 16, 16), np.float64)
