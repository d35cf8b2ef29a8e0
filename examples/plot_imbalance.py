"""
Classes of unequal size
=======================

In the paper's target a class counts by its number of pairs, so a rare class hardly counts.
``class_weight="balanced"`` weighs every matrix by the inverse frequency of its class, in the
alignment as in the mean.  The toy set of the paper with a share of the second class between one
in two and one in ten, 20 draws each; the judge is balanced accuracy, the mean of the recalls.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy

N_TRAIN, SHARES, DRAWS = 60, (0.5, 0.3, 0.2, 0.1), 20


def unbalanced(share, seed):
    """Training matrices of which a share is of class -1, and a balanced test set."""
    X, y, X_test, y_test = make_toy(2 * N_TRAIN, 200, d=8, random_state=seed)
    rare = round(share * N_TRAIN)
    kept = np.r_[np.flatnonzero(y == 1)[: N_TRAIN - rare], np.flatnonzero(y == -1)[:rare]]
    return X[kept], y[kept], X_test, y_test


def scores(metric, draw):
    X, y, X_test, y_test = draw
    labels = KNeighborsClassifier(1).fit(metric.fit(X, y).transform(X), y).predict(metric.transform(X_test))
    return balanced_accuracy_score(y_test, labels), recall_score(y_test, labels, pos_label=-1)


metrics = {
    "at the mean": LogEuclideanMetric(0),
    "learned": LogEuclideanMetric(3.0, rank=4, tol=1e-3),
    'learned, class_weight="balanced"': LogEuclideanMetric(3.0, rank=4, tol=1e-3, class_weight="balanced"),
}
table = 100 * np.array(
    [
        [[scores(m, unbalanced(share, seed)) for m in metrics.values()] for seed in range(DRAWS)]
        for share in SHARES
    ]
)  # share, draw, metric, score

# %%
# Balanced accuracy, and the recall of the rare class.

mean, error = table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(DRAWS)
fig, panels = plt.subplots(1, 2, figsize=(9.5, 3.5), layout="constrained", sharey=True)
for axes, k, title in ((panels[0], 0, "balanced accuracy (%)"), (panels[1], 1, "recall of the rare class (%)")):
    for j, (name, style) in enumerate(zip(metrics, ("o:", "s--", "^-"), strict=True)):
        axes.errorbar(SHARES, mean[:, j, k], yerr=error[:, j, k], fmt=style, capsize=3, label=name)
    axes.set(xlabel="share of the rare class in training", title=title)
    axes.invert_xaxis()
panels[1].legend(frameon=False, loc="lower left", fontsize=8)
for share, row, rough in zip(SHARES, mean, error, strict=True):
    cells = (f"{name} {m:.1f} ± {e:.1f}" for name, m, e in zip(metrics, row[:, 0], rough[:, 0], strict=True))
    print(f"share {share:.1f}:", ", ".join(cells))
plt.show()
