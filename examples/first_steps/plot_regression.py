"""
Regression
==========

Covariances of 16 sensors that see 8 sources: all of them have rank 8, with one null space, and the target is
a weighted sum of the logarithms of the sources' powers, with noise that leaves an R2 of 0.97 at best
(``make_regression``).  ``CommonRange`` brings the matrices to their 8 dimensions.

The closed-form weighting weighs the 36 directions of the tangent space there by how reliably they predict the
target.  Five nearest neighbors without it look at all of them alike.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from spdmetric import CommonRange, LogEuclideanMetric
from spdmetric.datasets import make_regression

SIZES, DRAWS = (30, 60, 120, 240), 5
models = {
    "neighbors": make_pipeline(CommonRange(), LogEuclideanMetric(0), KNeighborsRegressor(5)),
    "neighbors, with a weighting": make_pipeline(
        CommonRange(), LogEuclideanMetric(0, weighting="discriminant"), KNeighborsRegressor(5)
    ),
    "ridge": make_pipeline(CommonRange(), LogEuclideanMetric(0), RidgeCV(np.logspace(-3, 5, 25))),
}
table = np.empty((len(SIZES), DRAWS, len(models)))
for i, n in enumerate(SIZES):
    for seed in range(DRAWS):
        X, y, X_test, y_test = make_regression(n, 200, rank=8, random_state=seed)
        table[i, seed] = [model.fit(X, y).score(X_test, y_test) for model in models.values()]

# %%
# The vector of a matrix is one number now: what is predicted, up to its unit.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
weighted = models["neighbors, with a weighting"]
left.plot(weighted[:-1].transform(X_test)[:, 0], y_test, "o", markersize=3)
left.set(xlabel="the vector of a matrix", ylabel="y", title="test matrices")
mean, error = table.mean(axis=1), table.std(axis=1, ddof=1) / np.sqrt(DRAWS)
for j, (name, style) in enumerate(zip(models, ("o:", "^-", "s--"), strict=True)):
    right.errorbar(range(len(SIZES)), mean[:, j], yerr=error[:, j], fmt=style, capsize=3, label=name)
right.axhline(0.97, color="0.6", linewidth=1)
right.set_xticks(range(len(SIZES)), SIZES)
right.set(xlabel="training matrices", title="R2 (the line: at best)")
right.legend(frameon=False, fontsize=8)
for n, row in zip(SIZES, mean, strict=True):
    print(f"{n} matrices:", ", ".join(f"{name} {m:.2f}" for name, m in zip(models, row, strict=True)))
plt.show()
