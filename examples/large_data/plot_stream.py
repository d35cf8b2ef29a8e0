r"""
Learning from a stream
======================

Matrices arrive in batches of fifty and are forgotten at once.  :math:`G_0` is the mean of the
first batches, as many as hold :math:`d(d+1)/2` matrices, and is fixed then; every further batch
moves the reference point a little.  One of the two classes is late: as long as there is only
one, nothing can be learned.  A metric learned from all matrices together is there to compare.
"""

import matplotlib.pyplot as plt
import numpy as np

from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy

X, y, X_test, y_test = make_toy(6000, 1000, d=6, random_state=0)
order = np.random.default_rng(0).permutation(len(X))
batches = [(X[rows], y[rows]) for rows in np.array_split(order, len(X) // 50)]

# %%
# The first five batches bring one class only.

batches[:5] = [(A[labels == 1], labels[labels == 1]) for A, labels in batches[:5]]


def alignment(metric):
    """Alignment of the test matrices: with two classes, that of the vectors with the labels."""
    Phi = metric.transform(X_test)
    Phi = Phi - Phi.mean(axis=0)
    target = y_test - y_test.mean()
    return np.sum((Phi.T @ target) ** 2) / (np.linalg.norm(Phi.T @ Phi) * np.sum(target**2))


metric = LogEuclideanMetric(4.0, random_state=0)
seen, estimated, on_test = [], [], []
for A, labels in batches:
    metric.partial_fit(A, labels, classes=[-1, 1])
    seen.append(len(A))
    estimated.append(metric.alignment_)
    on_test.append(alignment(metric))
seen = np.cumsum(seen)

# %%
# The estimate comes from the moments of the last few batches and needs no matrix that is gone.  It is
# that of the stream, whose matrices are somewhat harder to separate than those kept for testing,
# and as noisy as a few hundred matrices are.

batch = LogEuclideanMetric(4.0, tol=1e-4).fit(X, y)
print(f"test alignment: stream {on_test[-1]:.3f}, all at once {alignment(batch):.3f}")

figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
axes.plot(seen, estimated, color="#999999", linewidth=1, label="stream, running estimate")
axes.plot(seen, on_test, color="#0072B2", label="stream, test matrices")
axes.axhline(alignment(batch), color="#D55E00", linestyle="--", label="all at once, test matrices")
axes.axhline(batch.alignment_, color="#999999", linestyle="--", label="all at once, its own matrices")
axes.set(xlabel="matrices so far", ylabel="alignment", xlim=(0, seen[-1]), ylim=(0, None))
axes.legend(frameon=False, loc="lower right")
plt.show()
