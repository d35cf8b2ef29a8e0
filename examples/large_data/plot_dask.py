r"""
A Dask cluster
==============

The chunks of a dask array stay on the workers that have them.  One evaluation of the objective
is two small reductions over the cluster: moments, then a gradient.  Here the cluster is two
processes of this machine, and every worker draws its own matrices; with
``Client("tcp://scheduler:8786")`` it is any cluster.

Run with another number of matrices as argument, or in the environment variable
``SPDMETRIC_EXAMPLE_N``.
"""

import os
import sys

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from spdmetric import LogEuclideanMetric

arguments = [word for word in sys.argv[1:] if word.isdigit()]
n = int(arguments[0] if arguments else os.environ.get("SPDMETRIC_EXAMPLE_N", 40_000))
d, chunk = 8, max(2, n // 8)


def draw(block_info=None):
    """One chunk of covariances, the second class louder in half of its channels."""
    (first, last), *_ = block_info[None]["array-location"]
    rng = np.random.default_rng(first)
    signal = rng.standard_normal((last - first, d, 2 * d))
    signal[np.arange(first, last) % 2 == 1, : d // 2] *= 1.5
    return signal @ signal.transpose(0, 2, 1) / (2 * d)


# Processes that are started by spawning import this file: what follows is for the first one only.
if __name__ == "__main__":
    sizes = tuple(min(chunk, n - first) for first in range(0, n, chunk))
    X = da.map_blocks(draw, chunks=(sizes, (d,), (d,)), dtype=float, meta=np.empty((0, 0, 0)))
    y = da.arange(n, chunks=(sizes,)) % 2
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    )
    with cluster, Client(cluster):
        metric = LogEuclideanMetric(5.0, tol=1e-4).fit(X, y)
        print(f"alignment {metric.alignment_:.3f} after {metric.n_iter_} iterations")
        # Nothing is computed by transform itself; what follows it decides what is.
        vectors = metric.transform(X)
        print(vectors)
        mean = [vectors[label::2].mean(axis=0).compute() for label in (0, 1)]
        some = vectors[:500].compute()
    axis = mean[1] - mean[0]
    place = some @ axis / np.linalg.norm(axis)
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for label, color in ((0, "#0072B2"), (1, "#D55E00")):
        axes.hist(place[label::2], bins=30, alpha=0.6, color=color, label=f"class {label}")
    axes.set(xlabel="vectors, along the line between the class means", ylabel="matrices")
    axes.legend(frameon=False)
    plt.show()
