r"""
A new session: adapt the metric
===============================

Electrodes are put on anew, the skin dries, the subject tires: the covariances of a new session lie
elsewhere.  ``adapt`` needs the new matrices but not their labels.  It moves the learned factor
from the Riemannian mean of training to that of the new session, so that new matrices are recentered
by their own mean as the training matrices were by theirs.

Here the second session is the paper's toy set, mixed by an unknown matrix :math:`A`:
:math:`X \mapsto A X A^\top`.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.linalg.symmetric import congruence

X, y, X_new, y_new = make_toy(d=8, random_state=0)
drift = np.eye(8) + 0.3 * np.random.default_rng(1).standard_normal((8, 8))
X_new = congruence(drift, X_new)

# %%
# ``adapt`` for a session at hand; ``partial_adapt`` for one that arrives batch by batch.  The order
# of the new session matters to the second one only: early matrices are recentered by a mean that is
# not yet well known.

metric = LogEuclideanMetric(3.0, rank=4).fit(X, y)
classifier = KNeighborsClassifier(5).fit(metric.transform(X), y)


def accuracy(vectors, labels=y_new):
    return 100 * classifier.score(vectors, labels)


adapted = metric.adapt(X_new)
order = np.random.default_rng(2).permutation(len(X_new))
growing, seen, course = metric, 0, []
for batch in np.array_split(order, 8):
    growing, seen = growing.partial_adapt(X_new[batch]), seen + len(batch)
    course.append((seen, accuracy(growing.transform(X_new))))
print(f"as it is           {accuracy(metric.transform(X_new)):.1f} %")
print(f"adapted            {accuracy(adapted.transform(X_new)):.1f} %")
print(f"batch by batch     {course[-1][1]:.1f} % after the last")

# %%
# The new session under the metric before and after, in principal components of training.

flat = PCA(2).fit(metric.transform(X))
fig, panels = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for axes, use, title in ((panels[0], metric, "as it is"), (panels[1], adapted, "adapted")):
    old, new = flat.transform(metric.transform(X)), flat.transform(use.transform(X_new))
    for label, color in zip(np.unique(y), ("#0072B2", "#D55E00"), strict=True):
        axes.scatter(*old[y == label].T, s=10, c=color, alpha=0.35, label=f"{label}, training")
        axes.scatter(*new[y_new == label].T, s=14, c=color, marker="x", label=f"{label}, new")
    axes.set(title=title, xlabel="first principal component", xticks=[], yticks=[])
panels[0].set_ylabel("second principal component")
names = panels[0].get_legend_handles_labels()
fig.legend(*names, loc="outside lower left", ncols=4, frameon=False, fontsize=8)
panels[2].plot(*np.transpose(course), "o-", label="partial_adapt")
panels[2].axhline(accuracy(adapted.transform(X_new)), color="0.3", ls="--", label="adapt, all at once")
panels[2].axhline(accuracy(metric.transform(X_new)), color="0.6", ls=":", label="as it is")
panels[2].set(xlabel="matrices of the new session so far", ylabel="5-NN accuracy (%)", ylim=(50, 100))
panels[2].legend(frameon=False, fontsize=8, loc="lower right")
plt.show()
