"""Data larger than memory: the same numbers from files, chunk by chunk, and what goes wrong there."""

import os
import time
from contextlib import ExitStack

import numpy as np
import pytest

from python_process import run_python
from random_matrices import labeled
from spdmetric import LogEuclideanMetric
from spdmetric.linalg.threads import map_by_threads
from spdmetric.means import MEANS, average_over
from spdmetric.objectives.data import default_chunk_size, memory_limit


@pytest.fixture
def data(rng):
    return labeled(rng, 600, 4, classes=3)


def saved(folder, X, name="X.npy"):
    np.save(folder / name, X)
    return np.load(folder / name, mmap_mode="r")


class Sliceable:
    """What HDF5 and Zarr arrays have in common: a shape, a dtype, slices."""

    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype
        self.largest = 0

    def __getitem__(self, rows):
        chunk = self._X[rows].copy()
        self.largest = max(self.largest, len(chunk))
        return chunk


# -- the same bits ---------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_jobs": 2},
        {"rank": 2},
        {"init": "euclid"},
        {"init": "logeuclid"},
        {"class_weight": "balanced"},
        {"weighting": "discriminant", "n_jobs": 2},
        {"solver": "stochastic", "max_iter": 3, "tol": 1e-1, "random_state": 0},
        {"kernel": "rbf", "max_iter": 3, "tol": 1e-1},
    ],
    ids=str,
)
def test_same_chunks_same_bits(data, tmp_path, options, chunks_of):
    chunks_of(70)
    X, y = data
    X = X[:150] if "kernel" in options else X
    y = y[: len(X)]
    metric = LogEuclideanMetric(2.0, **options)
    here, weighting = metric.fit(X, y).components_, metric.weighting_
    there = metric.fit(saved(tmp_path, X), y)
    if "rank" in options:  # sums over what is in memory are taken at once
        np.testing.assert_allclose(there.components_, here, rtol=1e-9)
        return
    np.testing.assert_array_equal(there.components_, here)
    np.testing.assert_array_equal(there.weighting_, weighting)


@pytest.mark.parametrize("init", ["riemann", "logeuclid", "euclid"])
def test_default_chunks_give_the_bits_of_arrays(rng, tmp_path, init):
    n = default_chunk_size(16) + 100  # two chunks; in memory the mean is taken over all at once
    X, y = labeled(rng, n, 16)
    metric = LogEuclideanMetric(2.0, init=init, tol=1e-2)
    reference, alignment = metric.fit(X, y).reference_, metric.alignment_
    there = metric.fit(saved(tmp_path, X), y)
    np.testing.assert_array_equal(there.reference_, reference)
    assert there.alignment_ == alignment
    center = MEANS[init](average_over(X, np.ones(n)), n)
    np.testing.assert_array_equal(there.embedding_.starts[0].center, center)


def test_float32_and_rounding_asymmetry(data, tmp_path, chunks_of):
    chunks_of(70)
    X, y = data
    X = X.astype(np.float32)
    X[3, 0, 1] *= 1 + 1e-6
    here = LogEuclideanMetric(2.0).fit(X, y)
    there = LogEuclideanMetric(2.0).fit(saved(tmp_path, X), y)
    np.testing.assert_array_equal(there.reference_, here.reference_)
    assert there.transform(saved(tmp_path, X)).dtype == np.float32


@pytest.mark.parametrize("library", ["slices", "h5py", "zarr"])
def test_whatever_slices(data, tmp_path, library, chunks_of):
    chunks_of(70)
    X, y = data
    if library == "slices":
        source = Sliceable(X)
    else:
        module = pytest.importorskip(library, reason=f"{library} is not installed")
        if library == "h5py":
            source = module.File(tmp_path / "X.h5", "w").create_dataset("X", data=X)
        else:
            shape = {"shape": X.shape, "chunks": (100, 4, 4), "dtype": "f8"}
            source = module.open(str(tmp_path / "X.zarr"), mode="w", **shape)
            source[:] = X
    metric, expected = LogEuclideanMetric(2.0).fit(source, y), LogEuclideanMetric(2.0).fit(X, y)
    np.testing.assert_array_equal(metric.reference_, expected.reference_)
    np.testing.assert_array_equal(metric.transform(source), expected.transform(X))
    assert library != "slices" or source.largest <= 70


@pytest.mark.parametrize("domain", [None, np.arange(120) // 3 % 2], ids=["plain", "domains"])
@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("where", ["memory", "file", "slices", "dask", "cluster"])
def test_weight_zero_leaves_a_matrix_out_wherever_it_is(where, rank, domain, rng, tmp_path, chunks_of):
    """A singular one, one of NaN, and one that tells the size of a view; alone in their chunk, or not."""
    chunks_of(20)
    X, y = labeled(rng, 120, 4)
    if rank is None:
        X = np.stack([X, np.broadcast_to(np.eye(4), X.shape)], axis=1)
        X[:, 1, :2, :2] = labeled(rng, 120, 2)[0]
    weight = rng.uniform(0.5, 2, 120)
    weight[40:60] = weight[[3, 77]] = 0
    metric = LogEuclideanMetric(1.0, rank=rank, tol=1e-8)
    expected = metric.fit(X, y, weight, domain).components_
    X[3], X[77], X[50] = 0.0, np.nan, 5.0 * np.eye(4)
    if where == "file":
        X = saved(tmp_path, X)
    if where == "slices":
        X = Sliceable(X)
    if where in ("dask", "cluster"):
        X = pytest.importorskip("dask.array").from_array(X, chunks=(20, *X.shape[1:]))
    with ExitStack() as stack:
        if where == "cluster":
            client = pytest.importorskip("distributed").Client
            stack.enter_context(client(processes=False, n_workers=1, dashboard_address=None))
        found = metric.fit(X, y, weight, domain).components_
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


# -- memory ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "limit"),
    [
        ("memory.max", "1048576\n", 2**20),
        ("memory.max", "max\n", None),
        ("memory/memory.limit_in_bytes", "2097152\n", 2**21),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", None),
    ],
)
def test_the_memory_of_the_container_is_the_limit(tmp_path, name, content, limit):
    machine = memory_limit(tmp_path)
    assert machine > 2**21
    path = tmp_path / "sys/fs/cgroup" / name
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert memory_limit(tmp_path) == (limit or machine)


def test_threads_run_only_a_little_ahead():
    begun = []

    def work(k):
        begun.append(k)
        return k

    results = map_by_threads(work, iter(range(100)), n_threads=2)
    assert next(results) == 0
    assert len(begun) <= 6
    assert list(results) == list(range(1, 100))


def test_of_several_errors_that_of_the_first_block_is_raised():
    def work(k):
        time.sleep(0.02 if k == 0 else 0.0)
        raise ValueError(f"block {k}")

    for _ in range(5):
        with pytest.raises(ValueError, match="block 0"):
            list(map_by_threads(work, range(6), n_threads=2))


_MEMORY = """
import sys, numpy as np
from spdmetric import LogEuclideanMetric
def anonymous():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon")) / 1024
X, y = np.load(sys.argv[1], mmap_mode="r"), np.load(sys.argv[2])
fit = dict(init="identity", max_iter=2, tol=1e-1)
LogEuclideanMetric(1.0, **fit).fit(X[:500], y[:500])
before, seen = anonymous(), []
LogEuclideanMetric(1.0, **fit, callback=lambda record: seen.append(anonymous())).fit(X, y)
print(max(seen) - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="RssAnon is told by Linux only")
def test_memory_does_not_hold_the_matrices(rng, tmp_path):
    X, y = labeled(rng, 40_000, 8)  # 20 MB, some 80 MB decomposed
    saved(tmp_path, X)
    saved(tmp_path, y, "y.npy")
    plain = {"SPDMETRIC_COMPILED": "0", "PYTHONWARNINGS": "ignore"}
    assert float(run_python(_MEMORY, tmp_path / "X.npy", tmp_path / "y.npy", **plain).stdout) < 60


# -- vectors into a file -------------------------------------------------------------


def test_transform_to(data, tmp_path, chunks_of):
    chunks_of(70)
    X, y = data
    metric = LogEuclideanMetric(2.0).fit(X, y)
    path = metric.transform_to(saved(tmp_path, X), tmp_path / "vectors.npy")
    np.testing.assert_array_equal(np.load(path), metric.transform(X))
    assert np.load(metric.transform_to(X.astype(np.float32), path)).dtype == np.float32
    assert sorted(p.name for p in tmp_path.iterdir()) == ["X.npy", "vectors.npy"]


# -- bad input -----------------------------------------------------------------------


def test_bad_matrix_is_named_with_its_chunk(data, tmp_path, chunks_of):
    chunks_of(70)
    X, y = data
    metric = LogEuclideanMetric(1.0).fit(X, y)
    X = X.copy()
    X[345, 1, 2] = np.nan
    stored = saved(tmp_path, X)
    message = r"X\[345\] contains NaN.*\(In chunk 5 of 9, which begins with X\[335\] and holds 67 matrices"
    with pytest.raises(ValueError, match=message):
        metric.transform(stored)
    with pytest.raises(ValueError, match=message):
        LogEuclideanMetric(1.0, n_jobs=2).fit(stored, y)
    X[345] = -np.eye(4)
    with pytest.raises(ValueError, match=r"X\[345\] is not positive definite.*chunk 5 of 9"):
        LogEuclideanMetric(1.0).fit(saved(tmp_path, X, "other.npy"), y)


def test_truncated_file(data, tmp_path):
    X, y = data
    stored = saved(tmp_path, X)
    os.truncate(tmp_path / "X.npy", 30_000)
    with pytest.raises(ValueError, match=r"X\.npy is truncated"):
        LogEuclideanMetric().fit(stored, y)


def test_unreadable_chunk(data, chunks_of):
    chunks_of(70)
    X, y = data

    class Damaged(Sliceable):
        def __getitem__(self, rows):
            if rows.stop > 300:
                raise OSError("Can't synchronously read data")
            return super().__getitem__(rows)

    with pytest.raises(OSError, match="Matrices 268 to 334 of X cannot be read"):
        LogEuclideanMetric().fit(Damaged(X), y)

    class Short(Sliceable):
        def __getitem__(self, rows):
            return super().__getitem__(slice(rows.start, min(rows.stop, 300)))

    with pytest.raises(ValueError, match="Chunk 4 of 9 of X holds 32 matrices, 67 were expected"):
        LogEuclideanMetric().fit(Short(X), y)
