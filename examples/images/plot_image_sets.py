"""
Image sets
==========

Sets of 20 images, 8 x 8 pixels each, of 20 simulated kinds: those of a kind vary in the same four ways,
hidden in noise.  A set is described by the covariance of its pixels, a 64 x 64 matrix; there are three sets
of each kind to learn from and two to recognize.

Without learning, nearest neighbors of tangent vectors are misled by the noise in 2080 directions.  A
weighting keeps what separates the kinds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric

KINDS, SETS, IMAGES, SIDE = 20, 5, 20, 8
rng = np.random.default_rng(0)
# Smooth patterns: products of waves.
waves = np.cos(np.pi * np.outer(np.arange(SIDE), np.arange(SIDE) + 0.5) / SIDE)
smooth = np.einsum("ax,by->abxy", waves, waves)[:4, :4].reshape(16, SIDE * SIDE)
patterns = rng.standard_normal((KINDS, 4, 16)) @ smooth / 8
y = np.repeat(np.arange(KINDS), SETS)
images = rng.standard_normal((len(y), IMAGES, 4)) @ patterns[y]
images += 1.2 * rng.standard_normal(images.shape)

# The covariance of the pixels of a set is singular: 0.1 % of its trace is added to every variance.
pixels = images - images.mean(axis=1, keepdims=True)
X = pixels.transpose(0, 2, 1) @ pixels / (IMAGES - 1)
X = X + 1e-3 * np.trace(X, axis1=1, axis2=2)[:, None, None] * np.eye(SIDE * SIDE)

accuracy = {}
for name, weighting in (("without a weighting", None), ("with a weighting", "discriminant")):
    found = []
    for seed in range(3):
        known, new, labels, others = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
        metric = LogEuclideanMetric(0, init="identity", weighting=weighting).fit(known, labels)
        classifier = KNeighborsClassifier(1).fit(metric.transform(known), labels)
        found.append(100 * classifier.score(metric.transform(new), others))
    accuracy[name] = np.mean(found)
    print(f"{name}: {accuracy[name]:.0f} % of {KINDS} kinds recognized, mean of {len(found)} splits")

# %%
# Three images of two kinds, a covariance, and the accuracies.

fig, panels = plt.subplots(1, 5, figsize=(11, 2.5), layout="constrained", width_ratios=(1, 1, 1, 1, 1.6))
for axes, k in zip(panels, (0, 1, SETS), strict=False):
    axes.imshow(images[k, 0].reshape(SIDE, SIDE), cmap="gray")
    axes.set(title=f"kind {k // SETS}, set {k % SETS}", xticks=[], yticks=[])
panels[3].imshow(X[0], cmap="RdBu_r", vmin=-np.abs(X[0]).max(), vmax=np.abs(X[0]).max())
panels[3].set(title="a covariance", xticks=[], yticks=[])
panels[4].bar(list(accuracy), list(accuracy.values()), width=0.5)
panels[4].axhline(100 / KINDS, color="0.4", linewidth=1, linestyle=":")
panels[4].set(title="1-NN, % (dotted: chance)", ylim=(0, 100))
plt.show()
