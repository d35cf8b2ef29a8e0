"""Data larger than memory and two workers: what is promised in docs/scale.md, measured.

    python -m benchmarks.scale                      # all of it, a quarter of an hour on two idle cores
    python -m benchmarks.scale memory growth        # some of it; the other results are kept
    python -m benchmarks.scale --n 20000            # the same with fewer matrices, to try it out

memory      peak anonymous memory of a fit on a memory map of a million 8 x 8 matrices
growth      time of an evaluation from 10^4 to 10^6 of them, and its exponent
agree       memory map and Dask against memory on 10^5 matrices of the paper's toy set
faults      a worker killed in mid-fit, and a scheduler
workers     an evaluation on two worker processes against two threads in memory, 10^5 of 22 x 22,
            and the prediction of scale_simulation.py for it
simulation  the tables of scale_simulation.py

Results go to scale.json and, in full size, to the tables of docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Before NumPy: chunks are parallel already.
os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1"))

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks import scale_simulation
from benchmarks.scale_simulation import Machine, matrices, predict
from benchmarks.scale_table import put_into, table
from reproduction.stamps import stamp_part
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.geometry import distance_riemann

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))
from cluster_processes import cluster_processes  # noqa: E402  # the very processes that tests kill

CHUNK = 10_000  # matrices drawn at a time
FULL = 1_000_000
STEPS = 5  # of a fit whose evaluations are timed


def stored(folder: Path, n: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Write matrices chunk by chunk, and return the memory map and the labels."""
    path = folder / f"X-{n}-{d}.npy"
    if not path.exists():
        X = np.lib.format.open_memmap(path, "w+", np.float64, (n, d, d))
        for k, first in enumerate(range(0, n, CHUNK)):
            X[first : first + CHUNK] = matrices(min(CHUNK, n - first), d, seed=k)[0]
        X.flush()
    return np.load(path, mmap_mode="r"), np.arange(n) % 2


# ---------------------------------------------------------------------------
# Memory

_FIT = """
import json, sys, threading, time, numpy as np
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
began = time.perf_counter()
metric = LogEuclideanMetric(n_jobs=2, tol=1e-4).fit(X, np.arange(len(X)) % 2)
done.set()
print(json.dumps({"interpreter_MB": base, "peak_above_MB": peak[0] - base,
    "seconds": time.perf_counter() - began, "alignment": metric.alignment_,
    "evaluations": metric.solution_.history[-1].evaluations, "converged": metric.solution_.converged}))
"""


def memory(folder: Path, n: int) -> dict[str, Any]:
    """Peak of RssAnon, sampled every 20 ms, above that of the interpreter with the package loaded."""
    stored(folder, n)
    command = [sys.executable, "-c", _FIT, str(folder / f"X-{n}-8.npy")]
    return {"n": n} | json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


# ---------------------------------------------------------------------------
# Time of an evaluation


def evaluation_seconds(X: Any, y: np.ndarray, **options: Any) -> float:
    """Seconds of an evaluation, the mean over the first steps of a fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many steps are what is asked for
        metric = LogEuclideanMetric(1.0, init="identity", tol=1e-12, max_iter=STEPS, **options).fit(X, y)
    first, *_, last = metric.solution_.history
    return (last.seconds - first.seconds) / (last.evaluations - first.evaluations)


def best_in_turn(contestants: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Least seconds of each, taking turns; the first round loads the kernels and does not count."""
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds + 1):
        for name, seconds in contestants.items():
            found[name].append(seconds())
    return {name: min(times[1:]) for name, times in found.items()}


def growth(folder: Path, n: int) -> dict[str, Any]:
    """One thread, from the memory map."""
    sizes = [size for size in (10_000, 100_000, FULL) if size <= n]
    X, y = stored(folder, n)

    def repeated(size: int) -> Callable[[], float]:
        repeats = min(10, FULL // size)
        return lambda: min(evaluation_seconds(X[:size], y[:size]) for _ in range(repeats))

    times = list(best_in_turn({str(size): repeated(size) for size in sizes}, rounds=3).values())
    exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    return {"n": sizes, "seconds": times, "exponent": exponent}


# ---------------------------------------------------------------------------
# Agreement


def in_chunks(get: Callable[[slice, int], np.ndarray], shape: tuple[int, ...], chunk: int) -> Any:
    """A dask array whose workers get their chunks, of rows and a number, by themselves."""
    import dask.array

    def block(block_info: Any = None) -> np.ndarray:
        where = block_info[None]
        return get(slice(*where["array-location"][0]), where["chunk-location"][0])

    sizes = tuple(min(chunk, shape[0] - first) for first in range(0, shape[0], chunk))
    chunks = (sizes, *((d,) for d in shape[1:]))
    return dask.array.map_blocks(block, chunks=chunks, dtype=float, meta=np.empty((0, 0, 0)))


def from_file(X: Any) -> Any:
    """The matrices of a memory map, read by the workers."""
    path = str(X.filename)  # the map itself would be sent with all its matrices
    return in_chunks(lambda rows, k: np.array(np.load(path, mmap_mode="r")[rows]), X.shape, 7_000)


def compared(there: LogEuclideanMetric, here: LogEuclideanMetric, allowed: float) -> dict[str, Any]:
    return {
        "alignment": abs(there.alignment_ - here.alignment_),
        "distance": float(distance_riemann(there.reference_, here.reference_)),
        "allowed": allowed,
        "same_bits": bool(np.array_equal(there.reference_, here.reference_)),
    }


def stored_toy(folder: Path, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The toy set of the paper, mixed: its optimum is a single point.

    (That of `matrices` is not: its classes look the same after rotations, and learned points that
    agree in alignment to 1e-10 are up to 0.03 apart.)
    """
    path = folder / f"toy-{n}.npy"
    X, y, *_ = make_toy(n, 2, d=8, random_state=0)
    order = np.random.default_rng(0).permutation(n)
    np.save(path, X[order])
    return np.load(path, mmap_mode="r"), y[order]


def agree(folder: Path, n: int) -> dict[str, Any]:
    n = min(n, 100_000)
    X, y = stored_toy(folder, n)
    inside, found = np.array(X), {}
    with two_workers():
        spread = from_file(X), y
        for tol, allowed in ((1e-6, 1e-3), (1e-10, 1e-6)):
            here = LogEuclideanMetric(tol=tol, n_jobs=2).fit(inside, y)
            others = {
                "memory map": LogEuclideanMetric(tol=tol, n_jobs=2).fit(X, y),
                "Dask, two processes": LogEuclideanMetric(tol=tol).fit(*spread),
            }
            for name, there in others.items():
                found[f"{name}, tol={tol:g}"] = compared(there, here, allowed)
    return {"n": n, "cases": found}


# ---------------------------------------------------------------------------
# Faults


def once(iteration: int, action: Callable[[], None]) -> Callable[[Any], None]:
    """A callback that does something after an iteration."""
    return lambda record: action() if record.iteration == iteration else None


def faults(folder: Path, n: int) -> dict[str, Any]:
    """Kill a worker and compare with memory; then kill the scheduler and wait for the error."""
    from distributed import Client

    n = min(n, 100_000)
    X, y = stored_toy(folder, n)
    here = LogEuclideanMetric(n_jobs=2).fit(np.array(X), y)
    spread = from_file(X), y
    with cluster_processes(folder) as processes:
        client = Client(processes.address, timeout=300)
        with client.as_current():
            client.wait_for_workers(2, timeout=300)
            there = LogEuclideanMetric(callback=once(5, processes.workers[0].kill)).fit(*spread)
            killed: list[float] = []

            def kill() -> None:
                processes.scheduler.kill()
                killed.append(time.monotonic())

            try:
                LogEuclideanMetric(callback=once(5, kill)).fit(*spread)
                said = "nothing"
            except ConnectionError as error:
                said = str(error)
        seconds = time.monotonic() - killed[0]
        client.close(timeout=1)
    return {"n": n, "worker": compared(there, here, 1e-3), "scheduler_s": seconds, "said": said}


# ---------------------------------------------------------------------------
# Two workers


@contextmanager
def two_workers() -> Iterator[Any]:
    """A client of two worker processes on this machine."""
    import dask
    from distributed import Client, LocalCluster

    # Dask has workers give freed memory back to the system at once, to be asked for anew in each pass.
    keep = {f"MALLOC_{name}_THRESHOLD_": 2**30 for name in ("TRIM", "MMAP")}
    dask.config.set({"distributed.nanny.pre-spawn-environ": keep})
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit="8GB",
    )
    with cluster, Client(cluster) as client:
        yield client


def workers(n: int, d: int = 22, chunk: int = 5_000, rounds: int = 4) -> dict[str, Any]:
    """Threads, workers and calibration take turns; the best of each counts."""
    n = min(n, 100_000)
    X, y = np.concatenate([matrices(CHUNK, d, seed=k)[0] for k in range(n // CHUNK)]), np.arange(n) % 2
    machines: list[Machine] = []
    with two_workers() as client:
        drawn = in_chunks(lambda rows, k: matrices(chunk, d, seed=k)[0], X.shape, chunk)

        def calibration() -> float:
            machines.append(scale_simulation.on_workers(client, d, chunk))
            return machines[-1].matrix

        times = best_in_turn(
            {
                "threads": lambda: evaluation_seconds(X, y, n_jobs=2),
                "workers": lambda: evaluation_seconds(drawn, y),
                "calibration": calibration,
            },
            rounds,
        )
    machine = scale_simulation.best_of(machines[1:])
    predicted = predict(machine, n, 2, blocks_per_worker=-(-n // chunk) // 2)
    return {
        "n": n,
        "d": d,
        "threads_s": times["threads"],
        "workers_s": times["workers"],
        "ratio": times["workers"] / times["threads"],
        "predicted_s": predicted.total,
        "predicted_by_measured": predicted.total / times["workers"],
        "machine": machine.as_json(),
    }


# ---------------------------------------------------------------------------


def sections(folder: Path, n: int) -> dict[str, Callable[[], dict[str, Any]]]:
    return {
        "memory": lambda: memory(folder, n),
        "growth": lambda: growth(folder, n),
        "agree": lambda: agree(folder, n),
        "faults": lambda: faults(folder, n),
        "workers": lambda: workers(n),
        "simulation": scale_simulation.simulate,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="section", help="which to measure; all by default")
    parser.add_argument("--n", type=int, default=FULL, help="most matrices to use")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("scale.json"))
    arguments = parser.parse_args()
    results = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        run = sections(Path(folder), arguments.n)
        unknown = set(arguments.names) - set(run)
        if unknown:
            parser.error(f"no section {', '.join(sorted(unknown))}: expected some of {', '.join(run)}")
        for name in arguments.names or run:
            began = time.perf_counter()
            results[name] = run[name]() | {"n_asked": arguments.n}
            stamp_part(results, name)
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
            arguments.out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    if arguments.n == FULL:
        put_into(ROOT / "docs" / "scale.md", results)


if __name__ == "__main__":
    main()
