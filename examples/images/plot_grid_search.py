"""
A pipeline searched by scikit-learn
===================================

The metric is a transformer: what follows it, and how both are tuned, is left to scikit-learn.
Here a grid search chooses the radius together with the classifier behind it.  The matrices are
covariances of Gabor responses on two textures that come with scikit-image, gravel and grass.

For radius, rank and weighting with nearest neighbors alone, take ``LogEuclideanMetricCV``
instead: it learns all radii of a rank in one sweep, while a grid search starts each from nothing.
"""

import matplotlib.pyplot as plt
import numpy as np
from skimage import data
from skimage.filters import gabor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from spdmetric import LogEuclideanMetric


def draw_patches(image, n, rng, size=16):
    """Covariances of eight Gabor responses over n random patches."""
    image = (image - image.mean()) / image.std()
    bank = [gabor(image, frequency, theta=k * np.pi / 4) for frequency in (0.1, 0.3) for k in range(4)]
    responses = np.array([np.hypot(real, imaginary) for real, imaginary in bank])
    rows, columns = (rng.integers(0, length - size, n) for length in image.shape)
    patches = [responses[:, r : r + size, c : c + size] for r, c in zip(rows, columns, strict=True)]
    return np.array([np.cov(patch.reshape(8, -1)) for patch in patches])


rng = np.random.default_rng(0)
images = [data.grass().astype(float), data.gravel().astype(float)]  # inside scikit-image, no download
X = np.concatenate([draw_patches(image[:, :256], 25, rng) for image in images])
X_test = np.concatenate([draw_patches(image[:, 256:], 150, rng) for image in images])
y, y_test = np.repeat([0, 1], 25), np.repeat([0, 1], 150)
print("training", X.shape, "test", X_test.shape)

# %%
# Three classifiers, four radii, five folds of the training matrices.

classifiers = {
    "1-NN": KNeighborsClassifier(1),
    "LDA": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "logistic": LogisticRegression(max_iter=5000),
}
radii = [0.0, 1.0, 2.0, 4.0]
pipeline = Pipeline([("metric", LogEuclideanMetric()), ("classifier", KNeighborsClassifier())])
search = GridSearchCV(
    pipeline, {"metric__radius": radii, "classifier": list(classifiers.values())}, cv=5
).fit(X, y)
print("chosen:", search.best_params_)
print(f"in cross-validation {search.best_score_:.3f}, on the test patches {search.score(X_test, y_test):.3f}")

# %%
# The scores of all candidates; bars are standard errors over the folds.  Fifty training patches
# cannot distinguish neighboring candidates.

results = search.cv_results_
fig, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
for (name, classifier), marker in zip(classifiers.items(), "o^s", strict=True):
    of_classifier = [k for k, p in enumerate(results["params"]) if p["classifier"] is classifier]
    score = 100 * results["mean_test_score"][of_classifier]
    error = 100 * results["std_test_score"][of_classifier] / np.sqrt(5)
    place = np.arange(len(radii)) + {"1-NN": -0.06, "LDA": 0, "logistic": 0.06}[name]
    axes.errorbar(place, score, yerr=error, marker=marker, capsize=3, label=name)
axes.set_xticks(range(len(radii)), [f"{r:g}" for r in radii])
axes.set(xlabel="radius (0: tangent vectors at the mean)", ylabel="accuracy in cross-validation (%)")
axes.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
plt.show()
