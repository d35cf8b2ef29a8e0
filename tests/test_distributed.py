"""Dask: the same result from chunks on workers, and clusters that break."""

import os
import signal
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import Mock

import dask
import dask.array as dask_array
import distributed
import numpy as np
import pytest
from sklearn.base import clone

from cluster_processes import cluster_processes, start_worker
from random_matrices import labeled
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.distributed.cluster import current_client
from spdmetric.geometry import distance_riemann

pytestmark = [
    # The event loop of a client that lost its scheduler is closed with callbacks pending.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    # Dask tells how large the arrays in a test's graph are; here they are meant to be in it.
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
]

WAIT = 300  # seconds for processes to start, on a machine that has other work
CHUNKS = (100, 0, 150, 400, 150)


@pytest.fixture(scope="module")
def data():
    return labeled(np.random.default_rng(0), 800, 3, classes=3)


@pytest.fixture(scope="module")
def client():
    # Workers are threads, quick to start; over TCP everything that they get and give is pickled all the same.
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def arrays(data):
    X, y = data
    return dask_array.from_array(X, chunks=(CHUNKS, 3, 3)), dask_array.from_array(y, chunks=(CHUNKS,))


def same(one, other, apart=1e-6):
    assert abs(one.alignment_ - other.alignment_) <= 1e-8
    assert distance_riemann(one.reference_, other.reference_) <= apart


# -- the same result -------------------------------------------------------------


def test_cluster_agrees_with_memory(data, arrays, client):
    there = LogEuclideanMetric(1.0, tol=1e-10).fit(*arrays)
    same(LogEuclideanMetric(1.0, tol=1e-10).fit(*data), there)
    np.testing.assert_array_equal(there.classes_, [0, 1, 2])
    assert there.n_features_in_ == 3


def test_scheduling_does_not_change_a_bit(arrays, client):
    one, other = (LogEuclideanMetric(1.0).fit(*arrays) for _ in range(2))
    np.testing.assert_array_equal(one.reference_, other.reference_)
    assert [r.value for r in one.solution_.history] == [r.value for r in other.solution_.history]


@pytest.mark.parametrize("options", [{"class_weight": "balanced", "init": "logeuclid"}, {"rank": 2}], ids=str)
def test_weights_starts_and_ranks(data, arrays, client, rng, options):
    weight = np.where(np.arange(800) < 110, 0.0, rng.uniform(0.5, 2, 800))  # the first chunk has none
    metric = LogEuclideanMetric(1.0, tol=1e-9, **options)
    there = clone(metric).fit(*arrays, sample_weight=weight)
    here = metric.fit(*data, sample_weight=weight)
    assert abs(here.alignment_ - there.alignment_) <= 1e-8
    np.testing.assert_allclose(there.components_, here.components_, atol=1e-5)


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("n", "radius", "rank"), [(800, 0.0, None), (800, 0.0, 2), (800, 1.0, None), (30, 0, None)]
)
def test_shape(data, arrays, client, rng, monkeypatch, n, radius, rank, kept):
    from spdmetric.distributed.cluster import Cluster

    if n == 30:  # fewer matrices than features
        data = labeled(rng, n, 8, classes=3)
        arrays = dask_array.from_array(data[0], chunks=(7, 8, 8)), data[1]
    weight = np.where(np.arange(n) < n // 7, 0.0, rng.uniform(0.5, 2, n))
    metric = LogEuclideanMetric(
        radius, rank=rank, weighting="discriminant", class_weight="balanced", tol=1e-9
    )
    here = clone(metric).fit(*data, sample_weight=weight)
    if not kept:
        monkeypatch.setattr(Cluster, "memory", lambda self: 0.0)
    there = metric.fit(*arrays, sample_weight=weight)
    assert there.weighting_penalty_ == pytest.approx(here.weighting_penalty_, rel=1e-6 if radius else 1e-9)
    assert there.weighting_score_ == pytest.approx(here.weighting_score_, rel=1e-6 if radius else 1e-9)
    apart = there.transform(data[0]) - here.transform(data[0])
    assert np.abs(apart).max() <= (1e-4 if radius else 1e-9) * np.abs(here.transform(data[0])).max()


@pytest.mark.parametrize("fits", [True, False])
def test_without_a_client(data, arrays, monkeypatch, fits):
    monkeypatch.setattr("spdmetric.distributed.cluster.current_client", lambda: None)
    monkeypatch.setattr("spdmetric.objectives.data.fits", lambda n, d: fits)
    there = LogEuclideanMetric(1.0, tol=1e-9).fit(*arrays)
    same(LogEuclideanMetric(1.0, tol=1e-9).fit(*data), there)


def test_labels_in_memory_and_as_words(data, arrays, client):
    words = np.array(["left", "right", "feet"])[data[1]]
    metric = LogEuclideanMetric(0.0).fit(arrays[0], words)
    assert metric.classes_.tolist() == ["feet", "left", "right"]


def test_transform_is_lazy(data, arrays, client, tmp_path):
    metric = LogEuclideanMetric(1.0, callback=lambda record: None).fit(*data)
    vectors = metric.transform(arrays[0])
    assert isinstance(vectors, dask_array.Array)
    assert (vectors.shape, vectors.dtype, vectors.chunks[0]) == ((800, 6), np.float64, CHUNKS)
    np.testing.assert_allclose(vectors.compute(), metric.transform(data[0]), rtol=0, atol=1e-13)
    single = metric.transform(arrays[0].astype(np.float32))
    assert single.dtype == single[:5].compute().dtype == np.float32
    written = np.load(metric.transform_to(arrays[0], tmp_path / "vectors.npy"))
    np.testing.assert_allclose(written, metric.transform(data[0]), rtol=0, atol=1e-13)


@pytest.mark.parametrize("sizes", [(0, 5, 3), (5, 3, 0), (0, 0, 8, 0), (8,)], ids=str)
@pytest.mark.parametrize("cut", [{}, {1: 2}], ids=["whole", "cut"])
def test_empty_chunks(data, sizes, cut):
    X, y = data[0][:8], data[1][:8] % 2
    metric = LogEuclideanMetric(0.0).fit(X, y)
    chunked = dask_array.from_array(X, chunks=(sizes, 3, 3)).rechunk(cut)
    with pytest.warns(UserWarning, match="rechunked") if cut else nullcontext():
        vectors = metric.transform(chunked)
    assert vectors.chunks[0] == chunked.chunks[0]
    assert [block.shape for block in dask.compute(*vectors.to_delayed().ravel())] == [(k, 6) for k in sizes]
    np.testing.assert_allclose(vectors.compute(scheduler="sync"), metric.transform(X), rtol=0, atol=1e-13)
    with pytest.raises(ValueError, match="X is empty"):
        metric.transform(chunked[:0])


# -- what is said ------------------------------------------------------------------


def test_chunks_that_differ_are_rechunked(data, arrays, client):
    X, _ = arrays
    y = dask_array.from_array(data[1], chunks=300)
    with pytest.warns(UserWarning, match="y is cut into 3 chunks and X into 5 others: y was rechunked"):
        there = LogEuclideanMetric(1.0).fit(X, y)
    same(LogEuclideanMetric(1.0).fit(*data), there, 1e-3)
    with pytest.warns(UserWarning, match="The matrices of X are cut into 1 x 2 pieces: it was rechunked"):
        there.transform(X.rechunk({2: 2}))


def test_bad_chunks_are_named(data, arrays, client):
    X, y = data[0].copy(), arrays[1]
    X[260, 1, 1] = np.nan
    X[790] = np.nan
    X = dask_array.from_array(X, chunks=(CHUNKS, 3, 3))
    message = r"X\[260\] contains NaN.*\(In chunk 3 of 5, which begins with X\[250\] and holds 400 matrices"
    with pytest.raises(ValueError, match=message):
        LogEuclideanMetric(1.0).fit(X, y)
    metric = LogEuclideanMetric(0.0).fit(*data)
    with pytest.raises(ValueError, match=r"X\[(260|790)\] contains NaN.*chunk [34] of 5"):
        metric.transform(X).compute()


def test_bad_labels_are_named_by_their_place_in_all(data, arrays, client):
    words = np.array(["a", "b", "c"], dtype=object)[data[1]]
    words[300] = None
    with pytest.raises(ValueError, match=r"y\[300\] is None"):
        LogEuclideanMetric(1.0).fit(arrays[0], words)
    words[:] = ["a"] * 650 + [3] * 150  # of one kind in each chunk
    with pytest.raises(TypeError, match="strings in some chunks and numbers in others"):
        LogEuclideanMetric(1.0).fit(arrays[0], words)
    with pytest.raises(ValueError, match=r"y\[300\] is masked"):
        LogEuclideanMetric(1.0).fit(arrays[0], np.ma.masked_array(data[1], np.arange(800) == 300))


def test_a_closed_client_is_told_before_work_is_done(arrays, monkeypatch):
    closed = SimpleNamespace(status="closed")
    with monkeypatch.context() as patch:
        patch.setattr(distributed, "get_client", lambda: closed)
        with pytest.raises(ConnectionError, match="client of this process is closed: connect a new"):
            LogEuclideanMetric(1.0).fit(*arrays)
    # Dask still has the scheduler of a client that is no more among its settings.
    monkeypatch.setattr("spdmetric.distributed.cluster.current_client", lambda: None)
    gone = RuntimeError("Requested dask.distributed scheduler but no Client active.")
    monkeypatch.setattr("dask.base.get_scheduler", Mock(side_effect=gone))
    with pytest.raises(ConnectionError, match="its client is gone"):
        LogEuclideanMetric(1.0).fit(*arrays)


def test_dask_without_distributed(monkeypatch):
    """Where that package is not installed there is no client, as in `test_without_a_client`."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert current_client() is None


def from_chunks(load):
    """A dask array of 800 matrices, each half of which is loaded by a function of its number."""

    def chunk(block_info=None):
        return load(block_info[None]["chunk-location"][0])

    return dask_array.map_blocks(chunk, chunks=((400, 400), 3, 3), dtype=float, meta=np.empty((0, 0, 0)))


def test_truncated_chunk_files(data, client, tmp_path):
    X, y = data
    metric = LogEuclideanMetric(0.0).fit(X, y)
    for k, half in enumerate(np.split(X, 2)):
        np.save(tmp_path / f"{k}.npy", half)
        half.tofile(tmp_path / f"{k}.bin")
    for file in tmp_path.glob("1.*"):
        os.truncate(file, 100 * 72)
    stack = from_chunks(lambda k: np.load(tmp_path / f"{k}.npy"))
    with pytest.raises(OSError, match="Chunk 1 of 2 of X, or its labels, cannot be computed"):
        LogEuclideanMetric().fit(stack, y)
    stack = from_chunks(lambda k: np.fromfile(tmp_path / f"{k}.bin").reshape(-1, 3, 3))
    for use in (lambda: LogEuclideanMetric().fit(stack, y), lambda: metric.transform(stack).compute()):
        with pytest.raises(ValueError, match="Chunk 1 of 2 of X holds 100 matrices, 400 were expected"):
            use()


def test_a_chunk_that_times_out_is_not_waited_for(data, client):
    def load(k):
        if k == 1:
            raise TimeoutError("no answer from the file server")
        return data[0][:400]

    with pytest.raises(OSError, match=r"Chunk 1 of 2 .*no answer from the file server"):
        LogEuclideanMetric().fit(from_chunks(load), data[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kernel": "rbf"}, "kernel='linear'"), ({"solver": "stochastic"}, "solver='trust-region'")],
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
        LogEuclideanMetric().fit(X, y, sample_weight=np.where(np.arange(800) == 3, -1.0, 1.0))
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


def test_a_cluster_that_breaks_piece_by_piece(data, arrays, tmp_path, monkeypatch):
    """One cluster for all, as it takes longer to start than to break."""
    monkeypatch.setattr("spdmetric.distributed.cluster._PATIENCE", 3.0)
    with cluster_processes(tmp_path) as processes:
        client = distributed.Client(processes.address, timeout=WAIT)
        with client.as_current():
            client.wait_for_workers(2, timeout=WAIT)
            _loses_a_worker(data, arrays, processes.workers[0])
            _loses_what_it_cannot_compute_again(client, data, processes.workers[1])
            with pytest.raises(ConnectionError, match="no workers left"):
                LogEuclideanMetric(1.0).fit(*arrays)
            processes.workers.append(start_worker(tmp_path, processes.address))
            client.wait_for_workers(1, timeout=WAIT)
            _loses_the_scheduler(arrays, processes.scheduler)
        client.close(timeout=1)


def _loses_a_worker(data, arrays, worker):
    whole = LogEuclideanMetric(1.0, tol=1e-9).fit(*arrays)
    there = LogEuclideanMetric(1.0, tol=1e-9, callback=when(2, lambda: kill(worker))).fit(*arrays)
    assert worker.poll() is not None
    np.testing.assert_array_equal(there.reference_, whole.reference_)
    same(LogEuclideanMetric(1.0, tol=1e-9).fit(*data), there)


def _loses_what_it_cannot_compute_again(client, data, worker):
    chunk = dask.delayed(client.scatter(data[0]))
    X = dask_array.from_delayed(chunk, shape=data[0].shape, dtype=float)
    with pytest.raises(ConnectionError, match="lost with a worker and cannot be computed again"):
        LogEuclideanMetric(1.0, tol=1e-12, callback=when(2, lambda: kill(worker))).fit(X, data[1])


def _loses_the_scheduler(arrays, scheduler):
    action = when(2, lambda: kill(scheduler))
    with pytest.raises(ConnectionError, match="Dask scheduler was lost in mid-fit"):
        LogEuclideanMetric(1.0, tol=1e-12, callback=action).fit(*arrays)


@pytest.mark.parametrize(("init", "with_client"), [("riemann", True), ("median", False)])
def test_domains(init, with_client, data, arrays, request):
    """Domains on a cluster, or computed without one, are those in memory."""
    if with_client:
        request.getfixturevalue("client")
    X, y = data
    session = np.array(["tuesday", "monday", "monday"])[np.arange(len(y)) // 3 % 3]
    X = np.where((session == "monday")[:, None, None], 4 * X, X)
    lazy = dask_array.from_array(X, chunks=(CHUNKS, 3, 3))
    here = LogEuclideanMetric(2.0, init=init, tol=0.1).fit(X, y, sample_domain=session)
    there = LogEuclideanMetric(2.0, init=init, tol=0.1).fit(lazy, arrays[1], sample_domain=session)
    assert there.n_iter_ > 1
    same(here, there)
    np.testing.assert_allclose(there.domain_means_, here.domain_means_, rtol=1e-7)
    vectors = there.transform(lazy, session)
    assert isinstance(vectors, dask_array.Array)
    np.testing.assert_allclose(vectors.compute(), there.transform(X, session), rtol=1e-9, atol=1e-12)
    assert there.transform(lazy.astype(np.float32), session).dtype == np.float32
