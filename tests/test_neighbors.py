"""Neighbors: pyRiemann's steps, MOABB's pipeline files, scikit-learn's callbacks."""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from random_matrices import labeled
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric, LogEuclideanMetricCV, pipelines_folder
from spdmetric.estimators import TransferClassifier
from spdmetric.linalg.symmetric import congruence

KNN = KNeighborsClassifier(1)
CHOSEN = LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), cv=2)


def signals(rng, n=40, channels=4, samples=200):
    """Mixed sources, the first of which is louder in class "b"."""
    y = np.array(["a", "b"])[np.arange(n) % 2]
    sources = rng.standard_normal((n, channels, samples))
    sources[:, 0] *= np.where(y == "b", 2.0, 1.0)[:, None]
    return rng.standard_normal((channels, channels)) @ sources, y


def two_sessions(rng):
    """The same classes seen through two mixings."""
    X, y = labeled(rng, 80, 4)
    moved = congruence(np.diag([3.0, 1.0, 0.5, 2.0]) + 0.3 * rng.standard_normal((4, 4)), X[40:])
    domains = np.repeat(["first", "second"], 40)
    return np.concatenate([X[:40], moved]), y, domains


def test_inside_tlclassifier(rng):
    from pyriemann.transfer import TLCenter, TLClassifier, encode_domains

    X, y, domains = two_sessions(rng)
    X_enc, y_enc = encode_domains(X, y, domains)
    inner = make_pipeline(LogEuclideanMetric(2.0), KNN)
    pipe = make_pipeline(TLCenter("second"), TLClassifier("second", inner))
    predicted = pipe.fit(X_enc, y_enc).predict(X[domains == "second"])
    assert np.mean(predicted.astype(int) == y[domains == "second"]) > 0.9


NAMES = {"LE-I + 1NN", "LE-mean + 1NN", "LE-learned + 1NN", "LE-rank4 + 1NN", "LE-CV + 1NN", "spdmetric"}
NAMES |= {"spdmetric transfer", "spdmetric augmented"}


def moabb_configs(tmp_path):
    """Parsed from a copy: MOABB leaves a lock beside each file that it reads."""
    from moabb.pipelines.utils import parse_pipelines_from_directory

    copy = shutil.copytree(pipelines_folder(), tmp_path / "pipelines")
    return {config["name"]: config for config in parse_pipelines_from_directory(str(copy))}


def test_moabb_parses_the_pipeline_files(rng, tmp_path):
    configs = moabb_configs(tmp_path)
    assert set(configs) == NAMES
    assert not list(Path(pipelines_folder()).glob("*.py"))  # MOABB would run them
    X, y = signals(rng, channels=6)
    assert isinstance(configs.pop("spdmetric transfer")["pipeline"][0], TransferClassifier)
    augmented = configs.pop("spdmetric augmented")["pipeline"]
    assert augmented.fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.5
    assert augmented[-1].n_features_in_ == 3 * 6
    steps = {name: config["pipeline"][1] for name, config in configs.items()}
    for name, config in configs.items():
        assert config["paradigms"] == ["LeftRightImagery", "MotorImagery"]
        if name == "spdmetric":
            assert isinstance(steps[name], LogEuclideanClassifier)
            continue
        assert [type(step).__name__ for _, step in config["pipeline"].steps][::2] == [
            "Covariances",
            "KNeighborsClassifier",
        ]
        if name != "LE-CV + 1NN":
            assert config["pipeline"].fit(X[:30], y[:30]).score(X[30:], y[30:]) > 0.5
    np.testing.assert_array_equal(steps["LE-I + 1NN"].reference_, np.eye(6))
    assert steps["LE-mean + 1NN"].radius_ == 0
    assert steps["LE-learned + 1NN"].radius_ > 5
    assert steps["LE-rank4 + 1NN"].components_.shape == (4, 6)
    assert isinstance(steps["LE-CV + 1NN"], LogEuclideanMetricCV)


class Tasks:
    """A callback that writes down what it is told, and asks to stop after some iterations."""

    def __init__(self, stop_after=None):
        self.begun, self.ended, self.stop_after, self.closed = [], [], stop_after, 0

    def setup(self, estimator, context):
        self.most = context.max_subtasks

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context.task_name)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context.task_name)
        return self.stop_after is not None and self.ended.count("iteration") >= self.stop_after

    def teardown(self, estimator, context):
        self.closed += 1


def needs_callbacks():
    pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


@pytest.fixture
def data(rng):
    return labeled(rng, 24, 4)


def test_callbacks_follow_the_iterations(data):
    needs_callbacks()
    tasks = Tasks()
    metric = LogEuclideanMetric(2.0).set_callbacks(tasks)
    assert metric.fit(*data) is metric
    assert tasks.ended.count("iteration") == metric.n_iter_ + 1 <= tasks.most
    assert sorted(tasks.begun) == sorted(tasks.ended)
    assert tasks.begun[0] == tasks.ended[-1] == "fit"
    assert tasks.closed == 1
    plain = LogEuclideanMetric(2.0).fit(*data)
    np.testing.assert_array_equal(metric.components_, plain.components_)
    metric.set_callbacks().fit(*data)
    assert tasks.closed == 1


def test_a_callback_can_stop_and_ours_is_still_called(data):
    needs_callbacks()
    records = []
    metric = LogEuclideanMetric(2.0, callback=records.append).set_callbacks(Tasks(stop_after=3)).fit(*data)
    assert metric.n_iter_ == 2
    assert len(records) == 3
    assert metric.solution_.status.name == "CALLBACK"


def test_callbacks_are_closed_when_fit_fails(data):
    needs_callbacks()
    tasks = Tasks()
    metric = LogEuclideanMetric(2.0).set_callbacks(tasks)
    with pytest.raises(ValueError, match="is not positive definite"):
        metric.fit(-data[0], data[1])
    assert tasks.closed == 1


def test_callbacks_follow_the_cross_validation(data):
    needs_callbacks()
    from sklearn.callback import ProgressBar

    pytest.importorskip("rich")
    tasks = Tasks()
    chosen = clone(CHOSEN).set_callbacks(tasks).fit(*data)
    assert tasks.ended.count("candidates") == 2  # two folds
    assert tasks.ended[-2:] == ["cross-validation", "fit"]
    assert chosen.best_params_ == clone(CHOSEN).fit(*data).best_params_
    chosen.set_callbacks(ProgressBar()).fit(*data)


def test_older_scikit_learn_has_no_callbacks(monkeypatch):
    """The module as it is where scikit-learn has none: `fit` is `fit`."""
    from spdmetric.estimators import _fitted

    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location("fitted_before", _fitted.__file__)
    before = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(before)

    class Estimator(before.CallbackSupportMixin):
        @before.with_progress(lambda self: 1)
        def fit(self, X):
            return X

    assert not hasattr(Estimator, "set_callbacks")
    assert Estimator().fit(len) is len
    assert list(before.follow_folds(Estimator(), [1, 2], "numbers", 2)) == [1, 2]
