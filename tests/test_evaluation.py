"""The registry of methods, folds that share work, the store, the baselines' closed forms."""

import os
import time
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from random_matrices import spd
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.comparison.baselines import distances_wasserstein
from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import COMPARED, METHODS, Sizes, expression, find_obstacle, set_where_known
from spdmetric.comparison.store import Store, run_tasks
from spdmetric.datasets import make_toy
from spdmetric.geometry import pairwise_distance


@pytest.fixture(scope="module")
def fold():
    X, y, X_test, _ = make_toy(20, 40, d=4, random_state=2)
    return Fold(X, y, X_test)


def labels(name, fold):
    return fold.labels(METHODS[name].make(Sizes.from_data(fold.X, fold.y)))


# -- the registry -------------------------------------------------------------------------


@pytest.mark.parametrize(("rank", "ranks"), [(3, (1,)), (4, (2,)), (8, (4,)), (20, (4, 8))])
def test_ranges_that_differ_begin_at_the_euclidean_mean_with_low_ranks(rank, ranks):
    made = METHODS["spdmetric"].make(Sizes(60, 24, 30, rank))
    inside = "LogEuclideanMetric(init='euclid', max_iter=40, tol=0.03)"
    choice = f"LogEuclideanMetricCV(metric={inside}, ranks={ranks})"
    assert expression(made) == f"LogEuclideanClassifier(metric={choice})"
    shared = METHODS["spdmetric"].make(Sizes(60, 24, 30, rank, shared=True))
    assert expression(shared) == "make_pipeline(CommonRange(), LogEuclideanClassifier())"


def test_parameters_are_given_to_the_steps_that_have_them():
    made = METHODS["logeuclid-chosen"].make(Sizes(60, 6, 30, 6))
    assert set_where_known(made, class_weight="balanced", n_neighbors=3, alpha=1.0) == ["alpha"]
    assert expression(made) == (
        "make_pipeline(\n    LogEuclideanMetricCV(metric=LogEuclideanMetric(class_weight='balanced', "
        "max_iter=40, tol=0.03), n_neighbors=3),\n"
        "    KNeighborsClassifier(n_neighbors=3),\n)"
    )
    assert set_where_known(METHODS["riemann"].make(Sizes(60, 6, 30, 6)), class_weight="balanced") == [
        "class_weight"
    ]


def test_what_the_data_do_not_allow_has_a_reason():
    def left_out(*sizes):
        found = {name: find_obstacle(METHODS[name], Sizes(*sizes)) for name in COMPARED}
        return {name: why for name, why in found.items() if why}

    low = left_out(100, 6, 50, 4)
    assert set(COMPARED) - set(low) == {*("spdmetric", "euclid", "wasserstein", "logeuclid-kta-rank")}
    assert "the lowest here is 4 of 6" in low["mdm"]
    assert set(left_out(15, 6, 7, 6)) == {"logeuclid-mean-11nn"}
    assert set(left_out(100, 3, 50, 3)) == {"logeuclid-kta-rank"}


def test_without_pyriemann_the_extra_is_named(monkeypatch):
    """Before a method is made; of making one without it test_wheel.py asks."""
    monkeypatch.setattr("spdmetric.comparison.methods.find_spec", lambda name: None)
    assert "spdmetric[compare]" in find_obstacle(METHODS["mdm"], Sizes(20, 4, 10, 4))
    assert find_obstacle(METHODS["riemann"], Sizes(20, 4, 10, 4)) is None


# -- sharing ------------------------------------------------------------------------------


def test_shared_work_is_done_once_and_charged_to_everyone(monkeypatch):
    """A clock that only the work moves."""
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    fold = Fold(*np.empty((3, 0)))
    calls = []

    def slow():
        calls.append(1)
        clock[0] += 5
        return 7

    def outer():
        clock[0] += 1
        return fold.once("slow", slow) + 1

    assert fold.timed(lambda: fold.once("outer", outer)) == (8, 6.0)
    assert fold.timed(lambda: fold.once("outer", outer)) == (8, 6.0)
    assert fold.timed(lambda: fold.once("other", outer)) == (8, 6.0)
    assert len(calls) == 1


def test_equal_transformers_are_fitted_once(fold, monkeypatch):
    fold = Fold(fold.X, fold.y, fold.X_test)
    calls = []
    fit = LogEuclideanMetric.fit
    monkeypatch.setattr(LogEuclideanMetric, "fit", lambda self, *args: calls.append(1) or fit(self, *args))
    for name in ("logeuclid-mean", "logeuclid-mean-lda", "nca", "svm"):
        labels(name, fold)
    assert len(calls) == 1


def test_a_chosen_metric_in_a_fold_is_the_estimators(fold):
    pipeline = make_pipeline(LogEuclideanMetricCV(n_neighbors=1), KNeighborsClassifier(1))
    expected = pipeline.fit(fold.X, fold.y).predict(fold.X_test)
    np.testing.assert_array_equal(labels("logeuclid-chosen", fold), expected)


# -- the store ----------------------------------------------------------------------------


def squares(calls, fails):
    def square(name):
        calls.append(name)
        if name in fails:
            raise MemoryError("too large")
        return float(name) ** 2

    return square


def test_failures_are_reported_and_tried_again(tmp_path):
    """One of them for lack of memory; what succeeded is not computed again."""
    calls, fails, path = [], {"3"}, tmp_path / "a.state"
    keys = [{name: {"task": k, "name": name} for name in "23"} for k in range(2)]
    tasks = {k: (keys[k], partial(squares, calls, fails)) for k in range(2)}
    assert run_tasks(tasks, path)[1] == {"2": 4.0, "3": "MemoryError: too large"}
    assert "MemoryError" not in path.read_text()
    calls.clear()
    fails.clear()
    for _ in range(2):
        assert run_tasks(tasks, path)[1] == {"2": 4.0, "3": 9.0}
        assert calls == ["3", "3"]


def test_a_bar_counts_the_tasks(capsys, monkeypatch):
    """In a terminal alone, and only where it is named."""
    tasks = {k: ({"2": {"task": k}}, partial(squares, [], ())) for k in range(3)}
    run_tasks(tasks, None, progress="run")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    run_tasks(tasks, None)
    assert capsys.readouterr().err == ""
    run_tasks(tasks, None, progress="run")
    assert "run: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["hello\n", "notes", "[1]\n"])
def test_files_of_others_are_refused(content, tmp_path):
    path = tmp_path / "toy.state"
    path.write_text(content)
    with pytest.raises(ValueError, match="is not a state file of spdmetric: remove it"):
        Store(path)
    assert path.read_text() == content


@pytest.mark.parametrize("left", ["", "{", '{"key": {"method": "ö'])
def test_what_a_killed_run_left_of_a_line_is_cut_off(left, tmp_path):
    path = tmp_path / "a.state"
    path.write_text(left)
    with closing(Store(path)) as store:
        assert store.get({"method": "mdm"}) is None
        store.put({"method": "mdm"}, [1.5])
    whole = path.read_bytes()
    path.write_bytes(whole + left.encode()[:-1])
    with closing(Store(path)) as store:
        assert store.get({"method": "mdm"}) == [1.5]
    assert path.read_bytes() == whole


@pytest.mark.parametrize("line", [b"hello", b"[1]", b"3", b"\xff\xfe", b"[" * 100_000, b"", b'{"key": {}}'])
def test_damaged_lines_are_left_out(line, tmp_path):
    path = tmp_path / "a.state"
    with closing(Store(path)) as store:
        store.put({"k": 0}, 1.5)
    path.write_bytes(path.read_bytes() + line + b"\n")
    with closing(Store(path)) as store:
        store.put({"k": 1}, 2.5)
    with closing(Store(path)) as store:
        assert [store.get({"k": k}) for k in range(3)] == [1.5, 2.5, None]


def test_a_second_process_is_told(tmp_path):
    pytest.importorskip("fcntl")
    busy = pytest.raises(ValueError, match=r"a\.state is being written by another process: wait")
    with closing(Store(tmp_path / "a.state")), busy:
        Store(tmp_path / "a.state")
    with closing(Store(tmp_path / "a.state")) as store:
        assert store.get({}) is None


def test_a_pipe_is_no_store(tmp_path):
    os.mkfifo(tmp_path / "a.state")
    with pytest.raises(ValueError, match="not a regular file"):
        Store(tmp_path / "a.state")


# -- baselines ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["euclid", "riemann", "stein", "logeuclid-identity"])
def test_distances_are_sklearns_1nn(name):
    X, y, X_test, _ = make_toy(20, 40, d=4, random_state=1)
    metric = {"logeuclid-identity": "logeuclid"}.get(name, name)
    neighbors = KNeighborsClassifier(1, metric="precomputed").fit(pairwise_distance(X, metric=metric), y)
    expected = neighbors.predict(pairwise_distance(X_test, X, metric))
    np.testing.assert_array_equal(labels(name, Fold(X, y, X_test)), expected)


def test_wasserstein_is_that_of_pyriemann(rng):
    from pyriemann.geometry.distance import distance_wasserstein

    X, Y = spd(rng, 4, 5), spd(rng, 3, 5)
    expected = [[distance_wasserstein(A, B) for B in Y] for A in X]
    assert np.allclose(distances_wasserstein(X, Y), expected, rtol=1e-9)


def test_wasserstein_of_matrices_that_are_singular_in_different_directions(rng):
    """Of FF' and GG' it is tr FF' + tr GG' minus twice the sum of the singular values of F'G."""
    F = 30 * rng.standard_normal((6, 21, 12))
    X, G = F @ F.transpose(0, 2, 1), F[:, None].transpose(0, 1, 3, 2) @ F
    sizes = np.trace(X, axis1=1, axis2=2)
    expected = sizes[:, None] + sizes - 2 * np.linalg.svd(G, compute_uv=False).sum(axis=-1)
    found = distances_wasserstein(X, X)
    assert np.allclose(found**2, expected, atol=1e-6 * sizes.max())
