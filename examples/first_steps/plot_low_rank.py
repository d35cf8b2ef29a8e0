"""
Radius and rank, chosen from the training matrices
==================================================

In the toy set of Yger and Sugiyama (2015) the classes differ in d/2 directions, and all else is
noise.  ``LogEuclideanMetricCV`` does not know that.  It learns metrics of several ranks within
balls of several radii, all radii of a rank in one sweep, and takes another metric than "no
learning", radius 0 at full rank, where cross-validation says that it is clearly better.  Weightings are
left out here, so that the reference point is all that differs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_toy

d = 8
X, y, X_test, y_test = make_toy(d=d, random_state=1)
candidates = {"radii": (0, 1, 2, 4, 8), "ranks": (None, 2, 3, 4, 6), "weightings": (None,)}
chosen = LogEuclideanMetricCV(**candidates, n_neighbors=1).fit(X, y)
print("chosen:", chosen.best_params_, f"log probability in cross-validation {chosen.best_score_:.2f}")

# %%
# Scores of all candidates, and their accuracy on new matrices.

radii = np.unique(chosen.cv_results_["param_radius"])
ranks = [2, 3, 4, 6, None]
results = chosen.cv_results_
rows = zip(results["params"], results["mean_test_accuracy"], strict=True)
scores = {(p["radius"], p["rank"]): score for p, score in rows if p["n_neighbors"] == 1}
table = np.array([[scores[radius, rank] for radius in radii] for rank in ranks])

metrics = {
    "at the mean": LogEuclideanMetric(0.0).fit(X, y),
    "learned, radius 10": LogEuclideanMetric().fit(X, y),
    "known rank, radius 5": LogEuclideanMetric(5.0, rank=d // 2).fit(X, y),
    "chosen by CV": chosen,
}
accuracy = {
    name: KNeighborsClassifier(1).fit(m.transform(X), y).score(m.transform(X_test), y_test)
    for name, m in metrics.items()
}
for name, value in accuracy.items():
    print(f"{name:22s} {value:.3f}")

fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
image = left.imshow(table, cmap="viridis", aspect="auto")
left.set_xticks(range(len(radii)), [f"{r:g}" for r in radii])
left.set_yticks(range(len(ranks)), ["full" if m is None else m for m in ranks])
left.set(xlabel="radius", ylabel="rank", title="1-NN accuracy in cross-validation (star: chosen)")
best = chosen.best_params_
left.plot(list(radii).index(best["radius"]), ranks.index(best["rank"]), "*", c="#D55E00", ms=14)
fig.colorbar(image, ax=left)

right.barh(
    list(accuracy), [100 * v for v in accuracy.values()], color=["0.6", "#56B4E9", "#009E73", "#0072B2"]
)
right.set(xlim=(0, 100), xlabel="1-NN accuracy on 500 new matrices (%)", title=f"Toy set, {d} x {d}")
right.invert_yaxis()
plt.show()
