"""
The weighting of a metric
=========================

A reference point decides where matrices are flattened; ``weighting="discriminant"`` also weighs the
directions of the flat space by how reliably they separate the classes.  It is computed in closed
form, here at the mean of the training matrices (``radius=0``): nothing is searched.

Three simulated classes of 8 x 8 matrices differ along two hidden directions of 36, and vary most along
others.  Without a weighting these hide the difference from nearest neighbors; with it, vectors of three
classes are points of a plane.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric
from spdmetric.linalg.symmetric import congruence, expm, symmetrize

D, SIZES, DRAWS = 8, (10, 20, 40, 80), 5


def draw(size, seed):
    """Training matrices, so many of each class, and 100 of each for the test."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]

    def part(n):
        y = np.repeat([0, 1, 2], n)
        L = 0.5 * symmetrize(rng.standard_normal((len(y), D, D)))
        L[:, 2:, 2:] *= 2  # what varies most says nothing
        L[:, 0, 0] += np.array([1.0, -1.0, 0.0])[y]
        L[:, 1, 1] += np.array([-0.6, -0.6, 1.2])[y]
        return expm(congruence(Q, L)), y

    return *part(size), *part(100)


def accuracy(metric, sample):
    X, y, X_test, y_test = sample
    classifier = KNeighborsClassifier(5).fit(metric.fit(X, y).transform(X), y)
    return 100 * classifier.score(metric.transform(X_test), y_test)


metrics = {
    "at the mean": LogEuclideanMetric(0),
    "learned": LogEuclideanMetric(3.0),
    "at the mean, with a weighting": LogEuclideanMetric(0, weighting="discriminant"),
    "learned, with a weighting": LogEuclideanMetric(3.0, weighting="discriminant"),
}
table = np.array(
    [[[accuracy(m, draw(n, seed)) for m in metrics.values()] for seed in range(DRAWS)] for n in SIZES]
)  # size, draw, metric

# %%
# Test matrices in the plane: the first principal components without a weighting, the vectors themselves
# with one; and the accuracy of 5 nearest neighbors.

X, y, X_test, y_test = draw(40, 0)
plain, weighted = (
    LogEuclideanMetric(0, weighting=weighting).fit(X, y) for weighting in (None, "discriminant")
)
planes = {
    "without a weighting": PCA(2).fit(plain.transform(X)).transform(plain.transform(X_test)),
    "with a weighting": weighted.transform(X_test),
}
fig, panels = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
for axes, (title, points) in zip(panels, planes.items(), strict=False):
    for k, marker in enumerate("o^s"):
        axes.plot(*points[y_test == k].T, marker, markersize=3, label=f"class {k}")
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")
panels[0].legend(frameon=False, fontsize=8)
mean, error = table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(DRAWS)
for j, (name, style) in enumerate(zip(metrics, ("o:", "s:", "^-", "v-"), strict=True)):
    panels[2].errorbar(range(len(SIZES)), mean[:, j], yerr=error[:, j], fmt=style, capsize=3, label=name)
panels[2].set_xticks(range(len(SIZES)), SIZES)
panels[2].set(xlabel="training matrices of each class", title="5-NN accuracy (%)")
panels[2].legend(frameon=False, fontsize=8)
for n, row in zip(SIZES, mean, strict=True):
    print(f"{n} of each class:", ", ".join(f"{name} {m:.1f}" for name, m in zip(metrics, row, strict=True)))
print(f"leave-one-out R2 of the weighting in the picture: {weighted.weighting_score_:.2f}")
plt.show()
