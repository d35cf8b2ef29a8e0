"""Threads: what is changed in the process is restored, and an interrupted process ends."""

import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from nightly import NIGHTLY, share_of
from python_process import run_python
from spdmetric import LogEuclideanClassifier
from spdmetric.datasets import make_toy
from spdmetric.linalg.threads import map_by_threads, threads


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_limits_that_overlap_are_lifted_by_the_last():
    """Each restoring what it found, the one that began second would restore the limit of the first."""
    with threadpool_limits(2, user_api="blas"):
        one, other = threads(), threads()
        one.__enter__()
        other.__enter__()
        assert set(blas_threads()) == {1}
        one.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        other.__exit__(None, None, None)
        assert set(blas_threads()) == {2}


def test_predictions_from_several_threads_leave_blas_as_it_was():
    X, y, *_ = make_toy(n_train=20, n_test=2, d=4, random_state=0)
    model = LogEuclideanClassifier(cv=2).fit(X, y)
    expected = model.predict_proba(X)
    failed = []

    def predict():
        for _ in range(10):
            if not np.array_equal(model.predict_proba(X), expected):
                failed.append(True)

    with threadpool_limits(2, user_api="blas"):
        started = [threading.Thread(target=predict) for _ in range(16 if NIGHTLY else 4)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()
        assert set(blas_threads()) == {2}
    assert not failed


def test_errors_of_workers_are_raised_and_the_rest_is_left():
    done = []

    def work(k):
        if k == 3:
            raise OSError("chunk 3")
        done.append(k)
        return k

    with pytest.raises(OSError, match="chunk 3"):
        list(map_by_threads(work, range(1000), n_threads=2))
    assert len(done) < 1000
    assert list(map_by_threads(lambda k: k * k, range(50), n_threads=2)) == [k * k for k in range(50)]


INTERRUPTED = """
    import os, random, signal, sys, threading, time
    from threadpoolctl import threadpool_info, threadpool_limits
    from spdmetric import LogEuclideanMetric
    from spdmetric.datasets import make_toy
    from spdmetric.objectives import data

    signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
    data.default_chunk_size = lambda d: 8  # many chunks
    X, y, *_ = make_toy(n_train=200, n_test=2, d=6, random_state=0)
    def fit():
        LogEuclideanMetric(1.0, n_jobs=2, tol=0.3).fit(X, y)

    def blas_threads():
        return [library["num_threads"] for library in threadpool_info()]

    threadpool_limits(2)
    fit()
    began, before = time.perf_counter(), blas_threads()
    fit()
    seconds = time.perf_counter() - began
    wait, begun, stop = random.Random(int(sys.argv[1])), [], []

    def interrupt():
        while not begun:  # what is outside of the loop below would end the process
            time.sleep(0.001)
        for _ in range(int(sys.argv[2])):
            time.sleep(wait.uniform(0, 1.5 * seconds))  # some fits end
            os.kill(os.getpid(), signal.SIGINT)
        stop.append(True)

    thread = threading.Thread(target=interrupt, daemon=True)
    counts = [0, 0]
    thread.start()
    while not stop:
        try:
            while not stop:
                begun.append(True)
                fit()
                counts[0] += 1
        except KeyboardInterrupt:
            counts[1] += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    thread.join()
    fit()  # still works
    assert blas_threads() == before
    print(*counts)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("seed", range(4 if NIGHTLY else 1))
def test_interrupted_fits_leave_no_lock(seed, record_property):
    """Nightly 2,000 interruptions at random moments; the process goes on each time, and ends."""
    number = share_of(500) if NIGHTLY else 30
    ended, interrupted = map(int, run_python(INTERRUPTED, seed, number).stdout.split())
    assert interrupted > number // 3
    if NIGHTLY:
        record_property("interruptions", number)
        record_property("of fits that ended with them", interrupted)
        record_property("of fits that had ended before", ended)
