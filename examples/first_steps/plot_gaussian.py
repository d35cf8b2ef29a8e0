r"""
A Gaussian kernel where class means are equal
=============================================

Alignment with the linear kernel brings apart the *means* of the classes in the tangent space.
Here there is nothing to bring apart: along one hidden axis the first class lies in the middle
and the second at both ends, so that no hyperplane of the tangent space separates them.  The
kernel :math:`\exp(-\gamma \delta^2)` depends on which matrices are near each other instead.  It learns
two directions, and its :math:`\gamma` with them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanMetric
from spdmetric.linalg.symmetric import congruence, expm, symmetrize

rng = np.random.default_rng(0)
Q = np.linalg.qr(rng.standard_normal((6, 6)))[0]


def draw(n):
    y = np.arange(n) % 2
    L = 0.5 * symmetrize(rng.standard_normal((n, 6, 6)))
    L[:, 0, 0] = 0.3 * L[:, 0, 0] + np.where(y == 0, 0.0, rng.choice([-1.0, 1.0], n))
    return expm(congruence(Q, L)), y


X, y = draw(100)
X_test, y_test = draw(400)

# %%
# Neighbors under three metrics, and the test matrices under each metric.

metrics = {
    "at the mean": LogEuclideanMetric(0),
    "linear, rank 2": LogEuclideanMetric(3.0, rank=2),
    "Gaussian, rank 2": LogEuclideanMetric(3.0, rank=2, kernel="rbf"),
}
figure, panels = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
for axes, (name, metric) in zip(panels, metrics.items(), strict=True):
    train, test = metric.fit(X, y).transform(X), metric.transform(X_test)
    accuracy = 100 * KNeighborsClassifier(1).fit(train, y).score(test, y_test)
    flat = PCA(2).fit(train).transform(test)
    for label, color, marker in ((0, "#0072B2", "^"), (1, "#D55E00", "o")):
        axes.scatter(
            *flat[y_test == label].T, s=14, c=color, marker=marker, alpha=0.7, label=f"class {label}"
        )
    axes.set(title=f"{name}: 1-NN {accuracy:.0f} %", xticks=[], yticks=[], xlabel="first principal component")
    print(f"{name:17s} alignment {metric.alignment_:.3f}   1-NN accuracy {accuracy:.1f} %")
panels[0].set_ylabel("second principal component")
panels[0].legend(frameon=False)
print(f"gamma learned: {metrics['Gaussian, rank 2'].gamma_:.3g}")
plt.show()
