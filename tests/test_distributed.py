"""Dask: the same result from chunks on workers, and clusters that break."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest

from cluster_processes import cluster_processes
from random_matrices import labelled
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.geometry import distance_riemann

dask_array = pytest.importorskip("dask.array", reason="needs Dask: pip install 'spdmetric[dask]'")
distributed = pytest.importorskip("distributed", reason="needs Dask: pip install 'spdmetric[dask]'")

pytestmark = [
    # The event loop of a client that lost its scheduler is closed with callbacks pending.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Dask tells how large the arrays in a test's graph are; here they are meant to be in it.
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
]

CHUNKS = (300, 0, 350, 1000, 350)


@pytest.fixture(scope="module")
def data():
    return labelled(np.random.default_rng(0), 2000, 4, classes=3)


@pytest.fixture(scope="module")
def client():
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def arrays(data):
    X, y = data
    return dask_array.from_array(X, chunks=(CHUNKS, 4, 4)), dask_array.from_array(y, chunks=(CHUNKS,))


def same(one, other, apart=1e-6):
    assert abs(one.alignment_ - other.alignment_) <= 1e-10
    assert distance_riemann(one.reference_, other.reference_) <= apart


# -- the same result -------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"init": "euclid"}], ids=str)
def test_cluster_agrees_with_memory(data, arrays, client, options):
    metric = LogEuclideanMetric(2.0, tol=1e-9, **options)
    there = metric.fit(*arrays)
    reference, alignment, history = there.reference_, there.alignment_, there.solution_.history
    here = LogEuclideanMetric(2.0, tol=1e-9, **options).fit(*data)
    same(here, there)
    # Scheduling differs from run to run, the result does not.
    again = metric.fit(*arrays)
    np.testing.assert_array_equal(again.reference_, reference)
    assert again.alignment_ == alignment
    assert [record.value for record in again.solution_.history] == [record.value for record in history]
    np.testing.assert_array_equal(there.classes_, [0, 1, 2])
    assert there.n_features_in_ == 4


def test_low_rank(data, arrays, client):
    here, there = (LogEuclideanMetric(2.0, rank=2, tol=1e-9).fit(*where) for where in (data, arrays))
    assert abs(here.alignment_ - there.alignment_) <= 1e-10
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-5)


def test_weights(data, arrays, client, rng):
    weight = np.where(np.arange(2000) < 310, 0.0, rng.uniform(0.5, 2, 2000))  # the first chunk has none
    here = LogEuclideanMetric(2.0, tol=1e-9).fit(*data, sample_weight=weight)
    same(here, LogEuclideanMetric(2.0, tol=1e-9).fit(*arrays, sample_weight=weight))


def test_parts_that_do_not_fit_are_decomposed_again(data, arrays, client, monkeypatch):
    from spdmetric.distributed import Cluster

    kept = LogEuclideanMetric(2.0).fit(*arrays)
    monkeypatch.setattr(Cluster, "memory", lambda self: 0.0)
    np.testing.assert_array_equal(LogEuclideanMetric(2.0).fit(*arrays).reference_, kept.reference_)


def test_without_a_client(data, arrays, monkeypatch):
    monkeypatch.setattr("spdmetric.distributed.current_client", lambda: None)
    there = LogEuclideanMetric(2.0, tol=1e-9).fit(*arrays)
    same(LogEuclideanMetric(2.0, tol=1e-9).fit(*data), there)


def test_labels_in_memory_and_as_words(data, arrays, client):
    words = np.array(["left", "right", "feet"])[data[1]]
    metric = LogEuclideanMetric(1.0).fit(arrays[0], words)
    assert metric.classes_.tolist() == ["feet", "left", "right"]


def test_transform_is_lazy(data, arrays, client):
    metric = LogEuclideanMetric(1.0, callback=lambda record: None).fit(*data)
    vectors = metric.transform(arrays[0])
    assert isinstance(vectors, dask_array.Array)
    assert (vectors.shape, vectors.dtype, vectors.chunks[0]) == ((2000, 10), np.float64, CHUNKS)
    np.testing.assert_allclose(vectors.compute(), metric.transform(data[0]), rtol=0, atol=1e-13)
    single = metric.transform(arrays[0].astype(np.float32))
    assert single.dtype == single[:5].compute().dtype == np.float32


# -- what is said ------------------------------------------------------------------


def test_chunks_that_differ_are_rechunked(data, arrays, client):
    X, _ = arrays
    y = dask_array.from_array(data[1], chunks=700)
    with pytest.warns(UserWarning, match="y is cut into 3 chunks and X into 5 others: y was rechunked"):
        there = LogEuclideanMetric(1.0).fit(X, y)
    same(LogEuclideanMetric(1.0).fit(*data), there, 1e-3)
    with pytest.warns(UserWarning, match="The matrices of X are cut into 1 x 2 pieces: it was rechunked"):
        there.transform(X.rechunk({2: 2}))


def test_bad_chunks_are_named(data, arrays, client):
    X, y = data[0].copy(), arrays[1]
    X[650, 1, 1] = np.nan
    X[1900] = np.nan
    X = dask_array.from_array(X, chunks=(CHUNKS, 4, 4))
    message = r"X\[650\] contains NaN.*\(In chunk 3 of 5, which begins with X\[650\] and holds 1000 matrices"
    with pytest.raises(ValueError, match=message):
        LogEuclideanMetric(1.0).fit(X, y)
    metric = LogEuclideanMetric(1.0).fit(*data)
    with pytest.raises(ValueError, match=r"X\[650\] contains NaN.*chunk 3 of 4"):
        metric.transform(X[:700].rechunk((CHUNKS[:3] + (50,), 4, 4))).compute()


def test_truncated_chunk_file(data, client, tmp_path):
    X, y = data
    files = [tmp_path / f"{k}.npy" for k in range(2)]
    for file, part in zip(files, np.split(X, 2), strict=True):
        np.save(file, part)
    os.truncate(files[1], 10_000)

    def load(block_info=None):
        return np.load(files[block_info[None]["chunk-location"][0]])

    stack = dask_array.map_blocks(
        load, chunks=((1000, 1000), (4,), (4,)), dtype=float, meta=np.empty((0, 0, 0))
    )
    with pytest.raises(RuntimeError, match="Chunk 1 of 2 of X, or its labels, cannot be computed"):
        LogEuclideanMetric().fit(stack, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kernel": "gaussian"}, "kernel='linear'"), ({"solver": "newton"}, "solver='trust-region'")],
)
def test_what_clusters_cannot_do(arrays, client, options, message):
    with pytest.raises(ValueError, match=message):
        LogEuclideanMetric(**options).fit(*arrays)


def test_shapes_and_labels(data, arrays, client):
    X, y = arrays
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        LogEuclideanMetric().fit(X, y[:-1])
    with pytest.raises(ValueError, match="1 class"):
        LogEuclideanMetric().fit(X, dask_array.zeros_like(y))
    with pytest.raises(ValueError, match="chunks of unknown size"):
        LogEuclideanMetric().fit(X[y > 0], y[y > 0])
    with pytest.raises(ValueError, match=r"sample_weight\[3\] is -1"):
        LogEuclideanMetric().fit(X, y, sample_weight=np.where(np.arange(2000) == 3, -1.0, 1.0))
    with pytest.raises(ValueError, match="compute"):
        LogEuclideanMetricCV().fit(X, y)


# -- clusters that break -------------------------------------------------------------


def when(iteration, action):
    """A callback that does something once, after an iteration."""
    done = []

    def callback(record):
        if record.iteration >= iteration and not done:
            done.append(True)
            action()

    return callback


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_a_worker_is_killed_in_mid_fit(data, arrays, tmp_path):
    here = LogEuclideanMetric(2.0, tol=1e-9).fit(*data)
    with (
        cluster_processes(tmp_path) as processes,
        distributed.Client(processes.address, timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        callback = when(2, lambda: kill(processes.workers[0]))
        there = LogEuclideanMetric(2.0, tol=1e-9, callback=callback).fit(*arrays)
        assert processes.workers[0].poll() is not None
    same(here, there)


def test_the_scheduler_is_killed_in_mid_fit(arrays, tmp_path):
    killed = []
    with cluster_processes(tmp_path) as processes:
        client = distributed.Client(processes.address, timeout=60)
        client.wait_for_workers(2, timeout=60)
        action = when(2, lambda: (kill(processes.scheduler), killed.append(time.monotonic())))
        lost = pytest.raises(ConnectionError, match="Dask scheduler was lost in mid-fit")
        with client.as_current(), lost:
            LogEuclideanMetric(2.0, tol=1e-12, callback=action).fit(*arrays)
        assert time.monotonic() - killed[0] < 60
        client.close(timeout=1)


def test_no_worker_is_left(arrays, tmp_path, monkeypatch):
    monkeypatch.setattr("spdmetric.distributed.cluster._PATIENCE", 3.0)
    with (
        cluster_processes(tmp_path, 1) as processes,
        distributed.Client(processes.address, timeout=60) as client,
    ):
        client.wait_for_workers(1, timeout=60)
        callback = when(1, lambda: kill(processes.workers[0]))
        with pytest.raises(ConnectionError, match="no workers left"):
            LogEuclideanMetric(2.0, tol=1e-12, callback=callback).fit(*arrays)
