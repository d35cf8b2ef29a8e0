"""
Few labels, many matrices: clusters and a dose
==============================================

The learned vectors are for more than nearest neighbors.  Two uses on matrices most of which have
no label: *clustering* under a metric learned from a few labeled ones, and *regression* of a
quantity that changes gradually, with the metric learned from two classes at its ends.  (Where the
quantity is known for all training matrices it is given as ``y``:
:doc:`/gallery/first_steps/plot_regression`.)

The matrices are simulated: a dose between 0 and 1 shifts the logarithm of the covariances along one
hidden direction, and they come from two sites, unknown to the analyst, that differ as much along
another.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import RidgeCV
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_predict

from spdmetric import LogEuclideanMetric
from spdmetric.linalg.symmetric import congruence, expm, symmetrize

rng = np.random.default_rng(0)
d = 6
Q = np.linalg.qr(rng.standard_normal((d, d)))[0]


def matrices(dose):
    """SPD matrices: one hidden direction follows the dose, one the site, the rest is noise."""
    L = 0.3 * symmetrize(rng.standard_normal((len(dose), d, d)))
    L[:, 0, 0] += 2.0 * dose
    L[:, 1, 1] += 2.0 * rng.choice([0, 1], len(dose))
    return expm(congruence(Q, L))


# %%
# Clustering: three doses, 300 matrices, labels for 10 of each.  The metric is learned from the 30,
# and k-means gets the vectors of all, but no label.

dose = np.repeat([0.0, 0.5, 1.0], 100)
X, y = matrices(dose), np.repeat([0, 1, 2], 100)
labeled = np.concatenate([np.flatnonzero(y == label)[:10] for label in range(3)])
rest = np.setdiff1d(np.arange(len(y)), labeled)
learned = LogEuclideanMetric(2.0, rank=2).fit(X[labeled], y[labeled])
plain = LogEuclideanMetric(0).fit(X[labeled], y[labeled])
agreement = {}
for name, metric in (("at the mean", plain), ("learned, rank 2", learned)):
    clusters = KMeans(3, n_init=10, random_state=0).fit_predict(metric.transform(X))
    agreement[name] = adjusted_rand_score(y[rest], clusters[rest])
    print(f"{name:16s} adjusted Rand index on the {len(rest)} others: {agreement[name]:.2f}")

# %%
# Regression: the dose is now continuous.  The metric is learned from 40 matrices without dose and 40
# with the full one; a ridge regression on its vectors predicts the dose of 200 others.

ends = np.repeat([0.0, 1.0], 40)
metric = LogEuclideanMetric(2.0, rank=2).fit(matrices(ends), ends.astype(int))
doses = rng.uniform(0, 1, 200)
between = matrices(doses)
predicted = cross_val_predict(RidgeCV(), metric.transform(between), doses, cv=5)
explained = 1 - np.mean((predicted - doses) ** 2) / np.var(doses)
print(f"share of the variance of the dose explained: {explained:.2f}")

fig, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", width_ratios=[1.2, 0.8, 1])
vectors = learned.transform(X)
dots = panels[0].scatter(vectors[:, 0], vectors[:, 2], c=dose, s=12, cmap="viridis")
panels[0].scatter(*vectors[labeled][:, [0, 2]].T, s=40, facecolors="none", edgecolors="k", label="labeled")
panels[0].set(title="learned vectors", xlabel="first diagonal entry", ylabel="second diagonal entry")
fig.legend(loc="outside lower left", frameon=False)
fig.colorbar(dots, ax=panels[0], ticks=[0, 0.5, 1]).ax.set_title("dose", fontsize=10)
panels[1].bar(list(agreement), list(agreement.values()), color=["0.6", "#0072B2"], width=0.6)
panels[1].set(title="k-means: adjusted Rand index", ylim=(0, 1))
fig.get_layout_engine().set(wspace=0.08)
panels[2].plot([0, 1], [0, 1], color="0.7")
panels[2].scatter(doses, predicted, s=12, c="#0072B2")
panels[2].set(title="dose by regression", xlabel="dose", ylabel="predicted")
plt.show()
