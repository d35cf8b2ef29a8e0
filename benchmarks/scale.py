"""Data larger than memory and two workers: what is promised in docs/scale.md, measured.

    python benchmarks/scale.py                      # all; takes an hour
    python benchmarks/scale.py memory growth --n 100000

memory    peak anonymous memory of a fit on a memory map of a million 8 x 8 matrices
growth    time of an evaluation from 10^4 to 10^6 of them, and its exponent
agree     other chunks, memory map and Dask against memory on 10^5 matrices
dask      an evaluation on two worker processes against two threads in memory, 10^5 of 22 x 22
predict   the simulation's prediction for the two workers against the measurement
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scale_simulation import calibrate, matrices, measured_network, predict

from spdmetric import LogEuclideanMetric
from spdmetric.estimators.inputs import threads
from spdmetric.estimators.problem import problem_of
from spdmetric.estimators.sources import LocalData, Stored, row_chunks
from spdmetric.geometry import distance_riemann

CHUNK = 10_000
NAMES = ("memory", "growth", "agree", "dask", "predict")


def stored(folder: Path, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Write matrices chunk by chunk, and return the memory map and the labels."""
    path = folder / f"X-{n}-{d}.npy"
    if not path.exists():
        X = np.lib.format.open_memmap(path, "w+", np.float64, (n, d, d))
        for k, first in enumerate(range(0, n, CHUNK)):
            X[first : first + CHUNK] = matrices(min(CHUNK, n - first), d, seed=k)[0]
        X.flush()
    return np.load(path, mmap_mode="r"), np.arange(n) % CHUNK % 2


# ---------------------------------------------------------------------------
# Memory

_FIT = """
import sys, threading, time, numpy as np
from spdmetric import LogEuclideanMetric
def anonymous():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon")) / 1024
base, peak, done = anonymous(), [0.0], threading.Event()
def watch():
    while not done.wait(0.02):
        peak[0] = max(peak[0], anonymous())
threading.Thread(target=watch, daemon=True).start()
X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) % 10_000 % 2
began = time.perf_counter()
metric = LogEuclideanMetric(n_jobs=2).fit(X, y)
done.set()
print(base, peak[0] - base, time.perf_counter() - began, metric.alignment_, metric.n_iter_,
      metric.solution_.history[-1].evaluations, metric.solution_.converged)
"""


def memory(folder: Path, n: int) -> dict[str, Any]:
    stored(folder, n, 8)
    command = [sys.executable, "-c", _FIT, str(folder / f"X-{n}-8.npy")]
    words = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    base, above, seconds, alignment, n_iter, evaluations = map(float, words[:-1])
    return {
        "n": n,
        "interpreter_MB": base,
        "peak_above_MB": above,
        "seconds": seconds,
        "alignment": alignment,
        "iterations": n_iter,
        "evaluations": evaluations,
        "converged": words[-1],
    }


# ---------------------------------------------------------------------------
# Time of an evaluation


def evaluation_seconds(problem: Any, repeats: int = 3) -> float:
    """Least seconds of a value and a gradient, each at a point of its own."""
    objective, ball, d = problem.objective, problem.ball(1.0), len(problem.start.center)
    found = []
    for k in range(repeats + 1):
        S = np.diag(np.linspace(-0.1, 0.1, d)) * (1 + 0.01 * k)
        began = time.perf_counter()
        here = objective.at(ball.point(S))
        assert np.isfinite(here.value)
        assert np.isfinite(here.gradient).all()
        found.append(time.perf_counter() - began)
    return min(found[1:])  # the first loads the kernels


def local_seconds(X: Any, y: np.ndarray, n_jobs: int) -> float:
    with threads(n_jobs) as map_chunks:
        data = LocalData(X, y, np.ones(len(y)), rows=row_chunks(X.shape, None), map=map_chunks)
        problem = problem_of(data, rank=None, init="identity", kernel="linear", gamma=None)
        return evaluation_seconds(problem)


def growth(folder: Path, n: int) -> dict[str, Any]:
    sizes = [size for size in (10_000, 100_000, 1_000_000) if size <= n]
    X, y = stored(folder, n, 8)
    times = [local_seconds(Stored(X[:size], symmetric=True), y[:size], 1) for size in sizes]
    exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return {"n": sizes, "seconds": times, "exponent": exponent}


# ---------------------------------------------------------------------------
# Agreement


def agree(folder: Path, n: int) -> dict[str, Any]:
    import dask.array

    n = min(n, 100_000)
    X, y = stored(folder, n, 8)
    inside = np.array(X)
    found: dict[str, Any] = {"n": n}
    with two_workers():
        spread = dask.array.from_array(X, chunks=(7_000, 8, 8)), y
        for tol, most in ((1e-6, 1e-3), (1e-10, 1e-6)):
            here = LogEuclideanMetric(tol=tol, n_jobs=2).fit(inside, y)
            others = {
                "chunks of 1000": LogEuclideanMetric(tol=tol, n_jobs=2, chunk_size=1000).fit(inside, y),
                "memory map": LogEuclideanMetric(tol=tol, n_jobs=2).fit(X, y),
                "dask": LogEuclideanMetric(tol=tol).fit(*spread),
            }
            for name, there in others.items():
                found[f"{name}, tol={tol:g}"] = {
                    "alignment": abs(there.alignment_ - here.alignment_),
                    "distance": float(distance_riemann(there.reference_, here.reference_)),
                    "allowed": most,
                    "same_bits": bool(np.array_equal(there.reference_, here.reference_)),
                }
    return found


# ---------------------------------------------------------------------------
# Two workers


class two_workers:
    """A client of two worker processes on this machine."""

    def __enter__(self) -> Any:
        from distributed import Client, LocalCluster

        self._cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit="8GB"
        )
        self._client = Client(self._cluster)
        return self._client

    def __exit__(self, *_: Any) -> None:
        self._client.close()
        self._cluster.close()


def generated(n: int, d: int, chunk: int) -> Any:
    """Matrices that are drawn where they are needed."""
    import dask.array

    def draw(block_info: Any = None) -> np.ndarray:
        (first, last), *_ = block_info[None]["array-location"]
        return matrices(last - first, d, seed=block_info[None]["chunk-location"][0])[0]

    sizes = tuple(min(chunk, n - first) for first in range(0, n, chunk))
    return dask.array.map_blocks(draw, chunks=(sizes, (d,), (d,)), dtype=float, meta=np.empty((0, 0, 0)))


def cluster_seconds(n: int, d: int, chunk: int, simulate: bool) -> tuple[float, float]:
    """Measured seconds of an evaluation on two workers, and what is predicted."""
    from spdmetric.estimators.data import data_of

    with two_workers() as client:
        X, y = generated(n, d, chunk), np.arange(n) % 2
        data = data_of(LogEuclideanMetric(), X, y, None, map)
        problem = problem_of(data, rank=None, init="identity", kernel="linear", gamma=None)
        measured = evaluation_seconds(problem)
        if not simulate:
            return measured, float("nan")
        machine = measured_network(calibrate(d), client)
    return measured, predict(machine, n, 2, blocks_per_worker=-(-n // chunk) // 2).total


def dask_speed(n: int, d: int = 22) -> dict[str, Any]:
    n = min(n, 100_000)
    X, y = np.concatenate([matrices(CHUNK, d, seed=k)[0] for k in range(n // CHUNK)]), np.arange(n) % 2
    threaded = local_seconds(X, y, 2)
    del X
    workers, _ = cluster_seconds(n, d, CHUNK // 2, simulate=False)
    return {"n": n, "d": d, "threads_s": threaded, "workers_s": workers, "ratio": workers / threaded}


def prediction(n: int, d: int = 22) -> dict[str, Any]:
    found = {}
    for size, chunk in ((min(n, 100_000), 5_000), (min(n, 20_000), 2_500)):
        measured, predicted = cluster_seconds(size, d, chunk, simulate=True)
        found[f"n={size}"] = {"measured_s": measured, "predicted_s": predicted, "ratio": predicted / measured}
    return found


# ---------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=list(NAMES))
    parser.add_argument("--n", type=int, default=1_000_000, help="most matrices to use")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("scale.json"))
    arguments = parser.parse_args()
    results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        run: dict[str, Callable[[], dict[str, Any]]] = {
            "memory": lambda: memory(Path(folder), arguments.n),
            "growth": lambda: growth(Path(folder), arguments.n),
            "agree": lambda: agree(Path(folder), arguments.n),
            "dask": lambda: dask_speed(arguments.n),
            "predict": lambda: prediction(arguments.n),
        }
        for name in arguments.names:
            results[name] = run[name]()
            print(name, json.dumps(results[name], indent=1), flush=True)
            arguments.out.write_text(json.dumps(results, indent=1) + os.linesep)


if __name__ == "__main__":
    main()
