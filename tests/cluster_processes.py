"""A Dask scheduler and workers in processes of their own, on loopback, to be killed in tests."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

# No nanny: a worker that was killed stays dead, and it is the very process that was started.
_WORKER = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--no-dashboard")


class Processes(NamedTuple):
    address: str
    scheduler: subprocess.Popen
    workers: list[subprocess.Popen]


@contextmanager
def cluster_processes(folder, n_workers: int = 2) -> Iterator[Processes]:
    """Start a cluster; whatever of it is left is killed at the end, each process by its own handle."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    address = f"tcp://127.0.0.1:{port}"
    scheduler = _start(folder, "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
    workers: list[subprocess.Popen] = []
    try:
        workers += [start_worker(folder, address) for _ in range(n_workers)]
        yield Processes(address, scheduler, workers)
    finally:
        for process in (scheduler, *workers):
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()


def start_worker(folder, address: str) -> subprocess.Popen:
    return _start(folder, "worker", address, *_WORKER)


def _start(folder, *command: str) -> subprocess.Popen:
    # The thread count of BLAS is left alone: it is for the tasks to see to that.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment["SPDMETRIC_COMPILED"] = "0"  # kernels take longer to load than these fits
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
