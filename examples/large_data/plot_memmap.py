r"""
Matrices that stay on the disk
==============================

A million 8 x 8 matrices are 512 MB, and decomposed at two points of the search they are
2.5 GB.  From a memory map they are read chunk by chunk, in each pass anew: memory holds a
few chunks, however many matrices there are, and the result is the one that an array in
memory would give, to the last bit.

Here there are 100,000, so that this page is made in seconds.  For a million, which takes a few
minutes, give ``1000000`` as argument or in the environment variable ``SPDMETRIC_EXAMPLE_N``.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from spdmetric import LogEuclideanMetric

arguments = [word for word in sys.argv[1:] if word.isdigit()]
n = int(arguments[0] if arguments else os.environ.get("SPDMETRIC_EXAMPLE_N", 100_000))
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "X.npy"

# %%
# Covariances of signals with a louder half in the second class, written chunk by chunk.

rng = np.random.default_rng(0)
y = np.arange(n) % 2
X = np.lib.format.open_memmap(path, "w+", np.float64, (n, 8, 8))
for first in range(0, n, 10_000):
    labels = y[first : first + 10_000]
    signal = rng.standard_normal((len(labels), 8, 16))
    signal[labels == 1, :4] *= 1.5
    X[first : first + 10_000] = signal @ signal.transpose(0, 2, 1) / 16
X.flush()
X = np.load(path, mmap_mode="r")
print(f"{n} matrices, {path.stat().st_size / 1e6:.0f} MB on disk")

# %%
# Nothing is different in the call.  `n_jobs` threads share the chunks.


def anonymous_memory():
    """Megabytes that are not pages of a file; known on Linux only."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")) / 1024


before, memory = anonymous_memory(), []
began = time.perf_counter()
metric = LogEuclideanMetric(
    5.0, tol=1e-4, n_jobs=2, callback=lambda record: memory.append(anonymous_memory() - before)
)
metric.fit(X, y)
print(
    f"alignment {metric.alignment_:.3f} after {metric.n_iter_} iterations, "
    f"{time.perf_counter() - began:.0f} s; {max(memory):.0f} MB of memory more than before"
)

# %%
# The vectors go to the disk as well.  Their file appears when it is whole.

vectors = np.load(metric.transform_to(X, path.with_name("vectors.npy")), mmap_mode="r")
mean = [np.mean(vectors[: 2 * (n // 2)][label::2], axis=0) for label in (0, 1)]
print(f"vectors: {vectors.shape}, class means {np.linalg.norm(mean[1] - mean[0]):.2f} apart")

history = metric.solution_.history
figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot([record.seconds for record in history], [1 - record.value for record in history], marker=".")
axes.set(xlabel="seconds", ylabel="alignment", title=f"{n:,} matrices of size 8 x 8, from a memory map")
plt.show()
folder.cleanup()
