"""
A rare class
============

In the paper's target a class counts by its number of pairs, so a rare class hardly counts, and a
metric that has few directions to spend spends them on the large classes.
``class_weight="balanced"`` weighs every matrix by the inverse frequency of its class; a dict,
``class_weight={"a": 1, "b": 1, "rare": 5}``, sets the weights by hand.

Three simulated classes of 6 x 6 matrices: two large ones that differ along one hidden direction, and
one that differs from both along another and becomes rarer and rarer.  The metric has rank 2, just
enough for both directions.  Six draws; test sets hold as many of each class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric
from spdmetric.linalg.symmetric import congruence, expm, symmetrize

D, RARE, DRAWS = 6, (60, 20, 10, 5), 6


def draw(n_rare, seed):
    """Training and test matrices in coordinates that are hidden by a rotation."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((D, D)))[0]

    def part(*sizes):
        y = np.repeat(["a", "b", "rare"], sizes)
        L = 0.4 * symmetrize(rng.standard_normal((len(y), D, D)))
        L[:, 0, 0] += np.select([y == "a", y == "b"], [0.6, -0.6], 0.0)
        L[:, 1, 1] += np.where(y == "rare", 1.2, 0.0)
        return expm(congruence(Q, L)), y

    return *part(60, 60, n_rare), *part(60, 60, 60)


def scores(metric, sample):
    X, y, X_test, y_test = sample
    labels = KNeighborsClassifier(1).fit(metric.fit(X, y).transform(X), y).predict(metric.transform(X_test))
    return balanced_accuracy_score(y_test, labels), np.mean(labels[y_test == "rare"] == "rare")


metrics = {
    "at the mean": LogEuclideanMetric(0),
    "learned": LogEuclideanMetric(3.0, rank=2),
    'learned, class_weight="balanced"': LogEuclideanMetric(3.0, rank=2, class_weight="balanced"),
}
table = 100 * np.array(
    [[[scores(m, draw(n, seed)) for m in metrics.values()] for seed in range(DRAWS)] for n in RARE]
)  # size of the rare class, draw, metric, score

# %%
# Balanced accuracy, the mean of the recalls, and the recall of the rare class alone.

mean, error = table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(DRAWS)
fig, panels = plt.subplots(1, 2, figsize=(9.5, 3.5), layout="constrained")
for axes, k, title in (
    (panels[0], 0, "balanced accuracy (%)"),
    (panels[1], 1, "recall of the rare class (%)"),
):
    for j, (name, style) in enumerate(zip(metrics, ("o:", "s--", "^-"), strict=True)):
        axes.errorbar(range(len(RARE)), mean[:, j, k], yerr=error[:, j, k], fmt=style, capsize=3, label=name)
    axes.set_xticks(range(len(RARE)), RARE)
    axes.set(xlabel="training matrices of the rare class (60 of each other)", title=title)
panels[1].legend(frameon=False, loc="lower left", fontsize=8)
for n, row, rough in zip(RARE, mean, error, strict=True):
    cells = (f"{name} {m:.1f} ± {e:.1f}" for name, m, e in zip(metrics, row[:, 0], rough[:, 0], strict=True))
    print(f"{n:2d} of the rare class:", ", ".join(cells))
plt.show()
