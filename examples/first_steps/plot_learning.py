"""
What learning does
==================

Left: matrices of two classes, the toy set of the paper, as points of the tangent space at their mean,
labeled by one nearest neighbor.  Middle: the same matrices under the metric that `LogEuclideanClassifier`
learns from 50 labels.

Right: what learning changes for nearest neighbors on real data: without learning, with the paper's metric
(one neighbor each), and with `LogEuclideanMetricCV`, which chooses metric and number of neighbors by
cross-validation.  These numbers are read from the results in the repository, which
``python -m reproduction beyond`` writes.
"""

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.plots.style import BLUE, GRAY, ORANGE, VERMILLION

# The methods in the file of results, and the rows of a group, by how they begin.
METHODS = {
    "no learning": "logeuclid-mean",
    "the paper's metric": "logeuclid-kta",
    "chosen by cross-validation": "spdmetric-neighbors",
}
GROUPS = {
    "four movements\n(EEG, BCI IV 2a)": "subject 9, four classes",
    "two hands\n(EEG, Cho 2017)": "cho",
    "two fists\n(EEG, PhysioNet)": "eegmmi-64",
    "flicker\n(EEG, SSVEP)": "ssvep",
    "textures\n(Brodatz)": "D",
}
ROOT = Path() if Path("examples").is_dir() else Path("../..")  # the gallery runs in the folder of the example


def fitted():
    """New matrices before and after learning, in two dimensions, and the share of right labels."""
    X, y, X_new, y_new = make_toy(d=16, random_state=0)
    plain = LogEuclideanMetric(0.0).fit(X, y)
    before = plain.transform(X_new)
    neighbor = KNeighborsClassifier(1).fit(plain.transform(X), y)
    model = LogEuclideanClassifier().fit(X, y)
    after = model.metric_.transform(X_new)
    plane = PCA(2).fit(plain.transform(X)).transform(before)
    if after.shape[1] == 1:  # one learned direction, and the largest variance of all others
        after = np.column_stack([after, plane[:, 0]])
    return y_new, {
        "before: at the mean of the data": (plane, 100 * neighbor.score(before, y_new)),
        "after: the learned metric": (after, 100 * model.score(X_new, y_new)),
    }


def scores():
    """The share of right labels in the two titles, in per cent."""
    return {name: share for name, (_, share) in fitted()[1].items()}


def stored(path):
    """Mean accuracies of the groups in the file of results, if it is there."""
    if not path.is_file():
        return {}
    found = defaultdict(lambda: defaultdict(list))
    with path.open() as file:
        for line in csv.DictReader(file):
            for group, begin in GROUPS.items():
                if line["row"].startswith(begin):
                    found[group][line["method"]].append(float(line["accuracy"]))
    return {
        group: {name: np.mean(found[group][method]) for name, method in METHODS.items()}
        for group in GROUPS
        if group in found
    }


def draw_picture(groups):
    figure = plt.figure(figsize=(11, 3.6), layout="constrained")
    *planes, bars = figure.subplots(1, 3, width_ratios=[1, 1, 2.1])
    labels, clouds = fitted()
    for axes, (title, (places, share)) in zip(planes, clouds.items(), strict=True):
        for label, color, marker in ((1, VERMILLION, "o"), (-1, BLUE, "^")):
            here = places[labels == label]
            axes.scatter(*here.T, s=12, c=color, marker=marker, alpha=0.6, label=f"class {label:+d}")
        axes.set(xticks=[], yticks=[])
        axes.set_title(f"{title}\n{share:.0f} % of new labels right", fontsize=10)
    low, high = planes[0].get_ylim()
    planes[0].set_ylim(low - 0.1 * (high - low), high)  # room for the legend below the points
    planes[0].legend(loc="lower center", ncols=2, frameon=False, fontsize=8, handletextpad=0.2)
    width = 0.27
    for k, (name, color) in enumerate(zip(METHODS, (GRAY, ORANGE, BLUE), strict=True)):
        heights = [of_group[name] for of_group in groups.values()]
        places = np.arange(len(groups)) + (k - 1) * width
        bars.bar(places, heights, width * 0.94, color=color, label=name)
        for x, height in zip(places, heights, strict=True):
            bars.text(x, height + 1, f"{height:.0f}", ha="center", fontsize=8)
    bars.set(ylim=(0, 112), yticks=range(0, 101, 20))
    bars.set_title("real data: accuracy of nearest neighbors, %", fontsize=10)
    bars.set_xticks(np.arange(len(groups)), list(groups), fontsize=8)
    bars.legend(loc="upper center", ncols=3, frameon=False, fontsize=8, handlelength=1.2, columnspacing=1.5)
    return figure


def main():
    path = ROOT / "results" / "learning.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw_picture(stored(ROOT / "docs" / "results" / "beyond.csv")).savefig(path, dpi=150)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
