"""How much of the optimum mini-batches reach, in how many passes over the data, and in what time.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.stochastic

writes ``benchmarks/stochastic.json`` in a little under five minutes of one idle core.  It has two parts:

large
    100,000 toy matrices 16 x 16.  The full batch is the trust region at its default tolerance; the
    stochastic solver makes one pass, or as many as it likes but three at most; a stream is seen
    once, in shuffled batches of a thousand.  Five seeds each, of the order of the data.
cases
    What the default step does elsewhere, without any tuning: sizes 4 to 32, radius 1, rank 2,
    classes 20 to 1, subject 9 of BCI IV 2a (if ``SPDMETRIC_DATA`` names the folder).
    The solver ends by its own rule; three seeds each.

All is judged by the alignment of all the data, evaluated exactly, as a share of what the full
batch reaches.  Times are those of ``fit``; in the first part the mean of the matrices is given to
it, and the time of the mean beside it, as it is the same for all but the stream.  Kernels are
compiled, and loaded before the clock starts.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reproduction.datasets import load_bci_iv_2a
from reproduction.stamps import stamp_part
from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data

N, D, SEEDS, STREAM_BATCH = 100_000, 16, range(5), 1000

Row = dict[str, Any]


def alignment(metric: LogEuclideanMetric, X: np.ndarray, y: np.ndarray) -> float:
    """Alignment of all the data under a learned metric, whatever it was learned by."""
    W = metric.components_
    objective = Misalignment(
        Data(congruence(W, X), ClassTarget.from_codes(np.unique(y, return_inverse=True)[1]))
    )
    return float(objective.at(Ball(np.eye(len(W)), 0.0).point(np.zeros((len(W), len(W))))).alignment)


def timed(learn: Any, X: np.ndarray, y: np.ndarray) -> tuple[LogEuclideanMetric, Row]:
    wall, cpu = time.perf_counter(), time.process_time()
    metric = learn()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return metric, {
        "alignment": alignment(metric, X, y),
        "alignment_": metric.alignment_,
        "seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "learning_seconds": round(metric.solution_.history[-1].seconds, 2),
        "iterations": metric.n_iter_,
    }


def stochastic(X: np.ndarray, y: np.ndarray, seed: int, **parameters: Any) -> LogEuclideanMetric:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many passes are what is asked for
        return LogEuclideanMetric(solver="stochastic", random_state=seed, **parameters).fit(X, y)


def stream(X: np.ndarray, y: np.ndarray, seed: int) -> LogEuclideanMetric:
    metric = LogEuclideanMetric(random_state=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    for rows in np.array_split(order, len(X) // STREAM_BATCH):
        metric.partial_fit(X[rows], y[rows], classes=[-1, 1])
    return metric


def first_to(share: float, optimum: float, metric: LogEuclideanMetric) -> Row:
    """When the full batch had a share of its own optimum, for a fair comparison."""
    for record in metric.solution_.history:
        if 1 - record.value >= share * optimum:
            return {"evaluations": record.evaluations, "learning_seconds": round(record.seconds, 2)}
    raise RuntimeError(f"The full batch never reached {share} of its own optimum.")


def large() -> Row:
    X, y, *_ = make_toy(N, 2, d=D, random_state=0)
    part = np.r_[:2000, N - 2000 : N]
    stochastic(X[part], y[part], 0)  # loads the kernels
    began = time.process_time()
    G0 = mean_riemann(X)
    result: Row = {"n": N, "d": D, "mean, cpu_seconds": round(time.process_time() - began, 2)}
    full, row = timed(lambda: LogEuclideanMetric(init=G0).fit(X, y), X, y)
    best, result["full batch"] = row["alignment"], row
    result["full batch to 0.98"] = first_to(0.98, best, full)
    print(json.dumps(result), flush=True)
    ways = {
        "one pass": lambda seed: stochastic(X, y, seed, init=G0, max_iter=1),
        "three passes": lambda seed: stochastic(X, y, seed, init=G0, max_iter=3),
        "stream": lambda seed: stream(X, y, seed),
    }
    for name, learn in ways.items():
        result[name] = []
        for seed in SEEDS:
            metric, found = timed(lambda learn=learn, seed=seed: learn(seed), X, y)
            result[name].append({"seed": seed, "share": round(found["alignment"] / best, 5), **found})
            print(name, json.dumps(result[name][-1]), flush=True)
        again = learn(SEEDS[-1]).components_
        result[name + ", same seed, same bits"] = bool(np.array_equal(again, metric.components_))
    return result


def problems() -> Iterator[tuple[str, np.ndarray, np.ndarray, Row]]:
    """Name, matrices, labels and parameters of each case."""
    for n, d in ((20_000, 4), (20_000, 8), (20_000, 16), (1_000, 32), (500, 8)):
        X, y, *_ = make_toy(n, 2, d=d, random_state=0)
        yield f"toy {d} x {d}", X, y, {}
        if (n, d) == (20_000, 8):
            yield "toy 8 x 8, radius 1", X, y, {"radius": 1.0}
            yield "toy 8 x 8, rank 2", X, y, {"rank": 2}
            rare = (y < 0) | (np.arange(n) % 20 == 0)
            yield "toy 8 x 8, classes 20 to 1", X[rare], y[rare], {}
            yield "toy 8 x 8, classes 20 to 1, balanced", X[rare], y[rare], {"class_weight": "balanced"}
    if "SPDMETRIC_DATA" in os.environ:
        folder = Path(os.environ["SPDMETRIC_DATA"]) / "bci2a-a09"
        X, y, groups = load_bci_iv_2a(9, folder, classes=("left_hand", "right_hand", "feet", "tongue"))
        X, y = X[groups == "T"], y[groups == "T"]
        yield "subject 9, four classes", X, y, {}
        yield "subject 9, radius 1", X, y, {"radius": 1.0}
        yield "subject 9, rank 2", X, y, {"rank": 2}


def cases() -> list[Row]:
    results = []
    for name, X, y, parameters in problems():
        began = time.process_time()
        full = LogEuclideanMetric(tol=1e-5, **parameters).fit(X, y)
        row: Row = {"case": name, "n": len(X), "d": X.shape[1], "full batch": full.alignment_}
        row["full batch cpu_seconds"] = round(time.process_time() - began, 2)
        began = time.process_time()
        found = [stochastic(X, y, seed, **parameters) for seed in range(3)]
        row["stochastic cpu_seconds"] = round((time.process_time() - began) / 3, 2)
        # alignment_ is exact with these solvers, and knows of the weights of balanced classes
        row["shares"] = [round(metric.alignment_ / full.alignment_, 4) for metric in found]
        row["passes"] = [metric.n_iter_ for metric in found]
        results.append(row)
        print(json.dumps(row), flush=True)
    return results


PARTS = {"large": large, "cases": cases}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS, help="one part; the other is left as it is in the file")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    results = json.loads(options.output.read_text()) if options.only and options.output.exists() else {}
    for name in [options.only] if options.only else PARTS:
        began = time.process_time()
        results[name] = PARTS[name]()
        results[f"{name}, cpu_seconds"] = round(time.process_time() - began)
        stamp_part(results, name)
        options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
