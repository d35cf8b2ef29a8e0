"""Time of one evaluation on a cluster: a model, its calibration on this machine, a table.

    python benchmarks/scale_simulation.py          # calibrates on one core, then prints the tables

The model is in docs/scale.md.  An evaluation is a value and a gradient.  `scale.py` checks it
against two workers, and puts the tables into the document.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spdmetric.linalg.symmetric import compute_moments
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data

# Of no machine in particular: ten gigabits a second, and what a task costs Dask's scheduler at
# most by its own documentation.  `on_workers` measures them where there is a cluster.
NETWORK, TASK, LATENCY = 1.25e9, 5e-4, 1e-3
ARITY = 8  # results that a task of the tree merges


@dataclass(frozen=True)
class Machine:
    """What an evaluation costs where."""

    d: int
    matrix: float  # seconds of a core for one matrix, both passes
    merge: float  # seconds to merge the moments of two chunks
    task: float = TASK  # seconds of the scheduler for one task
    latency: float = LATENCY  # seconds from the end of a task to the start of one that waits for it
    network: float = NETWORK  # bytes a second, from worker to worker

    @property
    def p(self) -> int:
        return self.d * (self.d + 1) // 2

    @property
    def traffic(self) -> int:
        """Bytes of the moments of a chunk: p^2 doubles."""
        return 8 * self.p**2

    def as_json(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class Prediction:
    """Seconds of one evaluation, and where they go."""

    compute: float
    scheduler: float
    reduction: float
    broadcast: float

    @property
    def total(self) -> float:
        # The scheduler hands out tasks while workers compute; what it cannot hide is the excess.
        return max(self.compute, self.scheduler) + self.reduction + self.broadcast


def tasks_per_evaluation(blocks: int) -> int:
    """Tasks: decompose, moments and pull for each block, two trees, three single ones."""
    merges, width = 0, blocks
    while width > 1:
        width = math.ceil(width / ARITY)
        merges += width
    return 3 * blocks + 2 * merges + 3


def levels(blocks: int) -> int:
    """Height of the tree."""
    height = 0
    while blocks > 1:
        blocks, height = math.ceil(blocks / ARITY), height + 1
    return height


def predict(machine: Machine, n: float, workers: int, blocks_per_worker: int = 4) -> Prediction:
    """Predict an evaluation of n matrices on workers of one core each."""
    blocks = workers * blocks_per_worker
    up, height = machine.traffic / machine.network, levels(blocks)
    away = 1 - 1 / workers  # share of moments and cotangents that is not on the spot
    joined = min(ARITY, blocks) - 1
    return Prediction(
        compute=n / workers * machine.matrix,
        scheduler=tasks_per_evaluation(blocks) * machine.task,
        # Each level brings up to seven moments to one worker, which merges them; gradients are small.
        reduction=height * (joined * (away * up + machine.merge) + 2 * machine.latency),
        # Copies beget copies: the number of workers that have the cotangents doubles.
        broadcast=math.ceil(math.log2(workers)) * up + 3 * machine.latency,
    )


# ---------------------------------------------------------------------------
# Calibration


def matrices(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Covariances of two classes: cheap to draw, well conditioned."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    signal = rng.standard_normal((n, d, 2 * d))
    signal[codes == 1, : d // 2] *= 1.5
    return signal @ signal.transpose(0, 2, 1) / (2 * d), codes


def calibrate(d: int, n: int = 4000, repeats: int = 3) -> Machine:
    """Measure what a matrix and a merge cost on one core of this machine."""
    p = d * (d + 1) // 2
    n = max(n, p + 1)  # fewer matrices than features would be evaluated in another way, which no worker takes
    X, codes = matrices(n, d)
    objective = Misalignment(Data(X, ClassTarget.from_codes(codes)))
    point = Ball(np.eye(d), 1.0).point(np.diag(np.linspace(-0.1, 0.1, d)))
    times = [_seconds(lambda: objective.at(point).gradient) for _ in range(repeats + 1)]
    features = np.random.default_rng(0).standard_normal((p, p))
    one = compute_moments(features, np.eye(2)[np.arange(p) % 2], np.ones((p, 1)))
    # The first time loads the kernels.
    return Machine(
        d, matrix=min(times[1:]) / n, merge=min(_seconds(lambda: one.merge(one)) for _ in range(5))
    )


def on_workers(client: Any, d: int, n: int) -> Machine:
    """Calibrate on all workers of a cluster at once, and its scheduler and network too."""
    names = list(client.scheduler_info()["workers"])
    found = client.gather(
        [client.submit(calibrate, d, n, 1, workers=[name], pure=False) for name in names], direct=False
    )
    matrix, merge = (float(np.mean([getattr(one, part) for one in found])) for part in ("matrix", "merge"))
    many, length, size = 500, 20, 16 * 2**20
    task = _seconds(lambda: client.gather(client.map(_nothing, range(many), pure=False))) / many
    chain = _seconds(lambda: _chain(client, length)) / length
    source = client.submit(np.ones, size // 8, workers=names[:1], pure=False)
    send = _seconds(lambda: client.submit(len, source, workers=names[-1:], pure=False).result())
    return Machine(d, matrix, merge, task, chain, size / max(send - chain, 1e-4))


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def best_of(machines: Sequence[Machine]) -> Machine:
    """The least of every cost over several calibrations."""
    costs = {name: min(getattr(m, name) for m in machines) for name in ("matrix", "merge", "task", "latency")}
    return Machine(d=machines[0].d, network=max(m.network for m in machines), **costs)


def _nothing(k: int) -> int:
    return k


def _chain(client: Any, length: int) -> int:
    future = client.submit(_nothing, 0, pure=False)
    for _ in range(length - 1):
        future = client.submit(_nothing, future, pure=False)
    return future.result()


# ---------------------------------------------------------------------------
# The table


def table(machine: Machine) -> str:
    """Seconds of an evaluation for 1 to 1,000 workers and 10^6 to 10^9 matrices."""
    lines = ["| n | " + " | ".join(f"{w} workers" for w in (1, 10, 100, 1000)) + " |", "|---" * 5 + "|"]
    for n in (1e6, 1e7, 1e8, 1e9):
        row = [predict(machine, n, workers) for workers in (1, 10, 100, 1000)]
        cells = [f"{one.total:.3g} s ({100 * one.compute / one.total:.0f} %)" for one in row]
        lines.append(f"| {n:.0e} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def crossover(machine: Machine, workers: int) -> float:
    """Matrices in all at which computing takes as long as everything else."""
    fixed = predict(machine, 0, workers)
    return (fixed.scheduler + fixed.reduction + fixed.broadcast) * workers / machine.matrix


def simulate(sizes: Sequence[int] = (8, 22, 64)) -> dict[str, Any]:
    """Calibrate on one core, and predict what clusters of such cores do."""
    machines = [calibrate(d, n=max(200, 40_000 // d)) for d in sizes]
    paragraphs = []
    for machine in machines:
        paragraphs.append(
            f"d = {machine.d}, p = {machine.p}: {1e6 * machine.matrix:.1f} µs a matrix, moments of "
            f"{machine.traffic / 1e6:.2g} MB merged in {1e3 * machine.merge:.2g} ms. On 100 workers "
            f"computing is half of an evaluation at n = {crossover(machine, 100):.1g}."
        )
        paragraphs.append(table(machine))
    return {"machines": [machine.as_json() for machine in machines], "text": "\n\n".join(paragraphs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 22, 64])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("scale_simulation.json"))
    arguments = parser.parse_args()
    found = simulate(arguments.sizes)
    print(found["text"])
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
