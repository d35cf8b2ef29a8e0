"""
Five pictures of a metric
=========================

``spdmetric`` draws in scikit-learn's manner: a display is made with ``from_estimator``, takes the
axes to draw in as ``ax``, and keeps what it shows as arrays.  Here are the radius path, the
choice, the spectrum of the reference point, the matrices in a plane before and after learning, and the
distances of all pairs, on the toy set of Yger and Sugiyama (2015).
"""

import matplotlib.pyplot as plt

from spdmetric import (
    ChoiceDisplay,
    EmbeddingDisplay,
    LogEuclideanClassifier,
    LogEuclideanMetric,
    LogEuclideanMetricCV,
    PairDistanceDisplay,
    RadiusPathDisplay,
    ReferenceSpectrumDisplay,
)
from spdmetric.datasets import make_toy

X, y, X_test, y_test = make_toy(d=8, n_test=200, random_state=0)

# %%
# Alignment grows with the radius of the ball, accuracy only as far as the labels allow.
# ``LogEuclideanMetricCV`` keeps its whole path.

options = {"ranks": (None,), "weightings": (None,), "n_neighbors": 1, "scoring": "accuracy"}
chosen = LogEuclideanMetricCV(radii=(0, 1, 2, 4, 8, 16), **options).fit(X, y)
path = RadiusPathDisplay.from_estimator(chosen, score_name="1-NN accuracy in cross-validation")
path.ax_.set_title("How far to move the reference point")

# %%
# The choice itself: gains over the usual candidate, the mean with a discriminant weighting, with
# their standard errors.  Another is taken only where it is clearly better;
# :doc:`the guide </guide/weighting>` has the rule.

ChoiceDisplay.from_estimator(LogEuclideanClassifier().fit(X, y))

# %%
# What was learned: the spectrum of the reference point beside that of the mean it started from, and
# how far it moved along each direction.

metric = LogEuclideanMetric(radius=10.0).fit(X, y)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
spectrum = ReferenceSpectrumDisplay.from_estimator(metric, ax=left)
spectrum.plot(right, kind="movement")
print(f"distance from the start: {(spectrum.movement**2).sum() ** 0.5:.2f}")

# %%
# Matrices that were not learned from, in the plane of their two principal components: as the mean
# sees them, as the learned metric sees them, and as a metric of rank 4 does.

low_rank = LogEuclideanMetric(radius=5.0, rank=4).fit(X, y)
views = {"at the mean": LogEuclideanMetric(radius=0.0).fit(X, y), "learned": metric, "rank 4": low_rank}
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for ax, (name, view) in zip(axes, views.items(), strict=True):
    EmbeddingDisplay.from_estimator(view, X_test, y_test, ax=ax)
    ax.set_title(name)

# %%
# The same in distances of all pairs.  Below the diagonal they are as before, above it as learned, each
# in units of their mean; a good metric has dark squares on the diagonal, within the classes, and light
# ones beside it.

fig, axes = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
for ax, name in zip(axes, ("learned", "rank 4"), strict=True):
    display = PairDistanceDisplay.from_estimator(views[name], X_test, y_test, ax=ax)
    ax.set_title(f"{name}: {ax.get_title()}")
    print(f"{name}: between over within classes {display.separation[0]:.2f} -> {display.separation[1]:.2f}")
plt.show()
