"""Time of one evaluation on a cluster: a model, its calibration on this machine, a table.

    python benchmarks/scale_simulation.py          # calibrates, then prints the table of docs/scale.md

The model is in docs/scale.md.  An evaluation is a value and a gradient.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from spdmetric.alignment import Cotangents, Moments
from spdmetric.distributed.cluster import _ARITY
from spdmetric.distributed.tasks import Block, decompose, merge_moments, prepare, pull
from spdmetric.manifolds import Ball

# Of no machine in particular: ten gigabits a second, and what a task costs Dask's scheduler at
# most by its own documentation.  `--measured` replaces both by what is measured here.
NETWORK, TASK, LATENCY = 1.25e9, 5e-4, 1e-3


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
        width = math.ceil(width / _ARITY)
        merges += width
    return 3 * blocks + 2 * merges + 3


def levels(blocks: int) -> int:
    """Height of the tree."""
    height = 0
    while blocks > 1:
        blocks, height = math.ceil(blocks / _ARITY), height + 1
    return height


def predict(machine: Machine, n: float, workers: int, blocks_per_worker: int = 4) -> Prediction:
    """Predict an evaluation of n matrices on workers of one core each."""
    blocks = workers * blocks_per_worker
    up, height = machine.traffic / machine.network, levels(blocks)
    away = 1 - 1 / workers  # share of moments and cotangents that is not on the spot
    joined = min(_ARITY, blocks) - 1
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
    """Measure what a matrix and a merge cost on one core of this machine, with the tasks themselves."""
    X, codes = matrices(n, d)
    block = Block(X, codes, np.ones(n), True)
    pieces = prepare(block, np.eye(d), np.array([0.5, 0.5]), 10**6)
    point = Ball(np.eye(d), 1.0).point(np.diag(np.linspace(-0.1, 0.1, d)))
    best, here = math.inf, None
    for _ in range(repeats + 1):  # the first loads the kernels
        began = time.perf_counter()
        here = decompose(pieces, point.factor, True)
        pull(None, here, point.factor, Cotangents.of(here.moments, 1.0), False)
        best = min(best, time.perf_counter() - began)
    assert here is not None
    return Machine(d, matrix=best / n, merge=_merge_seconds(here.moments))


def _merge_seconds(moments: Moments, repeats: int = 5) -> float:
    def once() -> float:
        began = time.perf_counter()
        merge_moments(moments, moments)
        return time.perf_counter() - began

    return min(once() for _ in range(repeats))


def measured_network(machine: Machine, client: object) -> Machine:
    """Replace what is assumed of scheduler and network by what a client measures here."""
    workers = list(client.scheduler_info()["workers"])  # type: ignore[attr-defined]

    def seconds(run) -> float:  # type: ignore[no-untyped-def]
        def once() -> float:
            began = time.perf_counter()
            run()
            return time.perf_counter() - began

        run()
        return min(once() for _ in range(3))

    many = 500
    task = seconds(lambda: client.gather(client.map(_nothing, range(many), pure=False))) / many  # type: ignore[attr-defined]
    chain = seconds(lambda: _chain(client, 20)) / 20
    size = 16 * 2**20
    source = client.submit(np.ones, size // 8, workers=workers[:1], pure=False)  # type: ignore[attr-defined]
    send = seconds(
        lambda: client.submit(
            len, source, workers=workers[-1:], pure=False, allow_other_workers=False
        ).result()  # type: ignore[attr-defined]
    )
    return replace(machine, task=task, latency=chain, network=size / max(send - chain, 1e-4))


def _nothing(k: int) -> int:
    return k


def _chain(client: object, length: int) -> int:
    future = client.submit(_nothing, 0, pure=False)  # type: ignore[attr-defined]
    for _ in range(length - 1):
        future = client.submit(_nothing, future, pure=False)  # type: ignore[attr-defined]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 22, 64])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("scale_simulation.json"))
    arguments = parser.parse_args()
    machines = [calibrate(d, n=max(200, 40_000 // d)) for d in arguments.sizes]
    for machine in machines:
        print(
            f"\nd = {machine.d}, p = {machine.p}: {1e6 * machine.matrix:.1f} us a matrix, moments of "
            f"{machine.traffic / 1e6:.2g} MB merged in {1e3 * machine.merge:.2g} ms; computing is half of "
            f"an evaluation on 100 workers at n = {crossover(machine, 100):.2g}"
        )
        print(table(machine))
    arguments.out.write_text(json.dumps([asdict(machine) for machine in machines], indent=1) + "\n")


if __name__ == "__main__":
    main()
