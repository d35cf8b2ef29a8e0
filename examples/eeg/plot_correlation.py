"""
Correlation matrices: connectomes with unknown gains
====================================================

Functional connectomes are correlations between the time courses of brain regions.  Here they are
simulated: 20 regions driven by five networks, 90 subjects of two groups, and in the second group
one network is coupled more weakly to another.  Scanners and head sizes scale the signal of each
region by an unknown gain, differently in every subject, and that dominates the covariances.
A correlation matrix is the covariance of standardized signals: the gain is gone.

A correlation matrix is an SPD matrix like any other as long as there are more time points than
regions.  It stays one only in the input: the reference point that is learned from such matrices,
and matrices between them, do not have a diagonal of ones, and need not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from spdmetric import LogEuclideanMetric

rng = np.random.default_rng(5)
n_subjects, n_regions, n_networks, n_times = 90, 20, 5, 150
member = np.kron(np.eye(n_networks), np.ones((n_regions // n_networks, 1)))  # region x network
y = np.arange(n_subjects) % 2


def time_courses(group):
    """Networks that are coupled, regions that follow their network with noise, unknown gains."""
    coupling = np.eye(n_networks) + 0.35 * rng.standard_normal((n_networks, n_networks))
    coupling[0, 1] = coupling[1, 0] = 1.1 if group == 0 else 0.3
    networks = coupling @ rng.standard_normal((n_networks, n_times))
    regions = member @ networks + 0.8 * rng.standard_normal((n_regions, n_times))
    gain = np.exp(0.5 * rng.standard_normal((n_regions, 1)))
    return gain * regions


signals = [time_courses(group) for group in y]
covariances = np.array([np.cov(signal) for signal in signals])
correlations = np.array([np.corrcoef(signal) for signal in signals])

# %%
# Covariances or correlations, in the tangent space at their mean or in four learned
# directions.  With many regions and few subjects a low rank is the model to try.

folds = StratifiedKFold(n_splits=5, shuffle=True, random_state=0)
metrics = {"at the mean": LogEuclideanMetric(0), "rank 4": LogEuclideanMetric(2.0, rank=4)}
scores = {}
for kind, X in (("covariances", covariances), ("correlations", correlations)):
    for name, metric in metrics.items():
        model = make_pipeline(metric, KNeighborsClassifier(5))
        scores[f"{kind}, {name}"] = 100 * cross_val_score(model, X, y, cv=folds)
for name, values in scores.items():
    print(f"{name:30s} {values.mean():5.1f} %")

# %%
# The group means of the correlations, what differs, and the accuracies.

first, second = (correlations[y == group].mean(axis=0) for group in (0, 1))
fig, panels = plt.subplots(1, 3, figsize=(11, 3.3), layout="constrained", width_ratios=[1, 1, 1.2])
panels[0].imshow(first, cmap="RdBu_r", vmin=-1, vmax=1)
panels[0].set_title("group 0, mean correlation")
image = panels[1].imshow(second - first, cmap="RdBu_r", vmin=-1, vmax=1)
panels[1].set_title("group 1 less group 0")
fig.colorbar(image, ax=panels[:2], shrink=0.8)
for axes in panels[:2]:
    axes.set(xlabel="region", ylabel="region")
panels[2].boxplot(list(scores.values()), orientation="horizontal", tick_labels=list(scores))
panels[2].axvline(50, color="0.7", ls=":")
panels[2].set(xlabel="5-NN accuracy (%), five folds")
panels[2].invert_yaxis()
plt.show()
