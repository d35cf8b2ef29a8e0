"""
A new subject
=============

Matrices of several subjects are learned from together, each subject recentered by its own mean.  A new one is
adapted by its mean alone, or together with a few labels; and where one of its classes is rare (label
shift), the class proportions are estimated first.
"""

# %%
# Five subjects, whose matrices are mixed by a matrix of their own, and whose classes differ along a direction
# that they share in part.

import matplotlib.pyplot as plt
import numpy as np

from spdmetric import LogEuclideanClassifier, LogEuclideanMetricCV
from spdmetric.geometry import matrices_at
from spdmetric.linalg.symmetric import congruence, expm, symmetrize

rng = np.random.default_rng(0)
d, p = 6, 21
shared = rng.standard_normal(p) / np.sqrt(p)


def subject(n):
    """Draw what a subject is, and n matrices of each class."""
    mixing = expm(0.4 * symmetrize(rng.standard_normal((d, d))))
    side = shared + 0.8 * rng.standard_normal(p) / np.sqrt(p)
    y = np.arange(2 * n) % 2
    vectors = np.where(y == 0, -0.7, 0.7)[:, None] * side + 0.4 * rng.standard_normal((2 * n, p))
    return congruence(mixing, matrices_at(vectors, np.eye(d))), y


others = [subject(40) for _ in range(5)]
X, y = (np.concatenate(parts) for parts in zip(*others, strict=True))
who = np.repeat([f"subject {k}" for k in range(5)], 80)
model = LogEuclideanClassifier(LogEuclideanMetricCV(radii=(0,))).fit(X, y, sample_domain=who)
print(model.metric_.best_params_)

# %%
# Eight new subjects.  Their first matrices come with labels, the next hundred without; the rest is for
# testing.

counts, scores = (0, 10, 20, 40), []
for _ in range(8):
    X_new, y_new = subject(200)
    unlabeled, test = slice(40, 140), slice(140, None)
    row = []
    for k in counts:
        adapted = model.adapt(X_new[:k], y_new[:k]) if k else model
        row.append(adapted.adapt(X_new[unlabeled]).score(X_new[test], y_new[test]))
    scores.append(row)

mean, error = np.mean(scores, axis=0), np.std(scores, axis=0, ddof=1) / np.sqrt(len(scores))
plt.figure(figsize=(5, 3.5))
plt.errorbar(counts, 100 * mean, 100 * error, marker="o", capsize=3)
plt.xlabel("labeled matrices of the new subject")
plt.ylabel("accuracy, %")
plt.tight_layout()
plt.show()

# %%
# A buffer of unlabeled matrices in which one class is rare: its mean is off, and so is everything that
# is recentered by it (pyRiemann's issue 490).  Estimated proportions correct it.

plain, estimated, shares = [], [], []
for _ in range(8):
    X_new, y_new = subject(200)
    rare = np.concatenate([np.flatnonzero(y_new == 0)[:72], np.flatnonzero(y_new == 1)[:8]])
    test = np.setdiff1d(np.arange(400), rare)
    test = np.concatenate([test[y_new[test] == c][:120] for c in (0, 1)])
    plain.append(model.adapt(X_new[rare]).score(X_new[test], y_new[test]))
    adapted = model.adapt(X_new[rare], prior="estimate")
    estimated.append(adapted.score(X_new[test], y_new[test]))
    shares.append(adapted.prior_[1])
print(f"nine to one: {np.mean(plain):.2f} by the mean, {np.mean(estimated):.2f} by estimated shares")
print(f"share of the rare class, 0.10: estimated {np.median(shares):.2f}")
