"""
Matrices without full rank
==========================

After an average reference, after components were removed, or with fewer samples than channels,
covariances are singular and have no logarithm.  Three remedies: shrink them (``Shrinkage``); where all lack
the same directions, write them in a basis of the others (``CommonRange``); or learn a metric of low rank,
which looks at m directions, in which the matrices are definite, and ignores the rest.

Twelve channels with an average reference, so that every covariance has rank 11; the two classes
differ in the power of two hidden sources.  Simulated, six draws.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from spdmetric import CommonRange, LogEuclideanMetric, Shrinkage

D, N, SAMPLES, DRAWS = 12, 60, 80, 6


def draw(seed):
    """Covariances of sources mixed to channels, less the mean of the channels; power depends on the class."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((D, D))
    y = np.arange(4 * N) % 2
    power = np.exp(0.6 * rng.standard_normal((4 * N, D)))
    power[:, 0] = np.where(y == 0, 1.0, 2.2)
    power[:, 1] = np.where(y == 0, 2.2, 1.0)
    sources = np.sqrt(power)[:, :, None] * rng.standard_normal((4 * N, D, SAMPLES))
    signals = mixing @ sources
    signals -= signals.mean(axis=1, keepdims=True)  # the average reference
    X = signals @ signals.transpose(0, 2, 1) / SAMPLES
    return X[:N], y[:N], X[N:], y[N:]


X, y, X_test, y_test = draw(0)
print(f"smallest eigenvalue {np.linalg.eigvalsh(X[0])[0]:.1e}, rank {np.linalg.matrix_rank(X[0])}")
try:
    LogEuclideanMetric().fit(X, y)
except ValueError as error:
    print("full rank:", error)

# %%
# The remedies, without learning and with it.

ways = {
    "Shrinkage, at the mean": [Shrinkage(0.05), LogEuclideanMetric(0)],
    "CommonRange, at the mean": [CommonRange(), LogEuclideanMetric(0)],
    "CommonRange, learned, radius 4": [CommonRange(), LogEuclideanMetric(4.0)],
    "as they are, rank 3": [LogEuclideanMetric(3.0, rank=3)],
    "as they are, rank 6": [LogEuclideanMetric(3.0, rank=6)],
}


def accuracy(steps, sample):
    X, y, X_test, y_test = sample
    return 100 * make_pipeline(*steps, KNeighborsClassifier(5)).fit(X, y).score(X_test, y_test)


table = np.array([[accuracy(way, draw(seed)) for way in ways.values()] for seed in range(DRAWS)])
mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(DRAWS)
for name, m, e in zip(ways, mean, error, strict=True):
    print(f"{name:32s} {m:.1f} ± {e:.1f} %")

# %%
# What the directions look at: the patterns of the rank-3 factor, and the accuracies.

fig, panels = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained", width_ratios=[1, 1.2])
metric = LogEuclideanMetric(3.0, rank=3).fit(X, y)
scale = np.abs(metric.components_).max()
image = panels[0].imshow(metric.components_, cmap="RdBu_r", vmin=-scale, vmax=scale, aspect="auto")
panels[0].set(title="the 3 x 12 factor W", xlabel="channel", ylabel="direction", yticks=range(3))
fig.colorbar(image, ax=panels[0])
panels[1].barh(list(ways), mean, xerr=error, color=["0.6", "0.6", "#56B4E9", "#0072B2", "#0072B2"], capsize=3)
panels[1].set(xlabel=f"5-NN accuracy (%), {DRAWS} draws", xlim=(0, 100))
panels[1].invert_yaxis()
plt.show()
