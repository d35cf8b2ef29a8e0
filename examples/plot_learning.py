"""
What learning does
==================

One draw of the 16 x 16 toy set of the paper before and after learning, and the accuracy of neighbors on four
kinds of data: without learning, with the paper's metric (one neighbor each), and with
`LogEuclideanMetricCV`, which chooses metric and number of neighbors by cross-validation.  The toy set is
computed here, ten draws; the others are read from the results in the repository, which
``python -m reproduction beyond`` writes.
"""

import csv
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from tqdm import tqdm

from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_toy
from spdmetric.plots.style import BLUE, GRAY, ORANGE, VERMILLION

SEED, DRAWS, D = 1000, 10, 16
METRICS = {
    "no learning": lambda: LogEuclideanMetric(0.0),
    "the paper's metric": lambda: LogEuclideanMetric(10.0),
    "chosen by cross-validation": lambda: LogEuclideanMetricCV(),
}
# Their names in the results, and the groups of rows to show, by how the rows begin.
METHODS = dict(zip(METRICS, ("logeuclid-mean", "logeuclid-kta", "spdmetric-neighbors"), strict=True))
GROUPS = {
    "four movements\n(EEG, BCI IV 2a)": "subject 9, four classes",
    "two hands\n(EEG, Cho 2017)": "cho",
    "pairs of textures\n(Brodatz)": "D",
}
ROOT = Path() if Path("examples").is_dir() else Path("..")  # the gallery runs in the folder of the examples


def accuracy(metric, draw):
    """Of the neighbors that the metric chose, or of one."""
    X, y, X_test, y_test = draw
    metric.fit(X, y)
    neighbors = KNeighborsClassifier(getattr(metric, "n_neighbors_", None) or 1)
    return 100 * neighbors.fit(metric.transform(X), y).score(metric.transform(X_test), y_test)


def main():
    print(f"Accuracy of neighbors in %, toy set {D} x {D}, {DRAWS} draws from seed {SEED}\n")
    bars = computed()
    path = ROOT / "results" / "learning.png"
    draw_picture(drawn(0), bars | stored(ROOT / "docs" / "results" / "beyond.csv"), path)
    print(f"\npicture: {path}")


def drawn(k):
    return make_toy(d=D, random_state=SEED + k)


def computed():
    """Mean accuracies on the toy set, printed with their standard errors."""
    bar = tqdm(range(DRAWS), desc="draws", disable=None)
    table = np.array([[accuracy(make(), drawn(k)) for make in METRICS.values()] for k in bar])
    for name, values in zip(METRICS, table.T, strict=True):
        print(f"{name:26s} {values.mean():6.2f} ± {values.std(ddof=1) / np.sqrt(DRAWS):.2f}")
    return {f"toy set {D} x {D}\n(simulated)": dict(zip(METRICS, table.mean(axis=0), strict=True))}


def stored(path):
    """Mean accuracies of the groups in the file of results, if it is at hand."""
    if not path.is_file():
        return {}
    found = defaultdict(lambda: defaultdict(list))
    with path.open() as file:
        for line in csv.DictReader(file):
            for group, begin in GROUPS.items():
                if line["row"].startswith(begin):
                    found[group][line["method"]].append(float(line["accuracy"]))
    return {
        group: {name: np.mean(found[group][method]) for name, method in METHODS.items()} for group in GROUPS
    }


def draw_picture(draw, groups, path):
    figure = plt.figure(figsize=(11, 3.6), layout="constrained")
    before, after, bars = figure.subplots(1, 3, width_ratios=[1, 1, 1.9])
    X, y, X_test, y_test = draw
    for axes, metric in ((before, LogEuclideanMetric(0.0)), (after, LogEuclideanMetricCV())):
        for label, color, marker in ((1, VERMILLION, "o"), (-1, BLUE, "^")):
            places = flat(metric, X, y, X_test)[y_test == label]
            axes.scatter(*places.T, s=12, c=color, marker=marker, alpha=0.6, label=f"class {label:+d}")
        axes.set(xticks=[], yticks=[])
    before.set_title("before: at the mean of the data", fontsize=10)
    after.set_title("after: the learned metric", fontsize=10)
    low, high = before.get_ylim()
    before.set_ylim(low - 0.1 * (high - low), high)  # room for the legend below the points
    before.legend(loc="lower center", ncols=2, frameon=False, fontsize=8, handletextpad=0.2)
    width = 0.27
    for k, (name, color) in enumerate(zip(METRICS, (GRAY, ORANGE, BLUE), strict=True)):
        heights = [of_group[name] for of_group in groups.values()]
        places = np.arange(len(groups)) + (k - 1) * width
        bars.bar(places, heights, width * 0.94, color=color, label=name)
        for x, height in zip(places, heights, strict=True):
            bars.text(x, height + 1, f"{height:.0f}", ha="center", fontsize=8)
    bars.set(ylim=(0, 118), yticks=range(0, 101, 20))
    bars.set_title("accuracy of nearest neighbors, %", fontsize=10)
    bars.set_xticks(np.arange(len(groups)), list(groups), fontsize=8)
    bars.legend(loc="upper center", ncols=3, frameon=False, fontsize=8, handlelength=1.2, columnspacing=1.5)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def flat(metric, X, y, X_test):
    """Test vectors in two dimensions: principal ones, or the learned direction and what is left of them."""
    metric.fit(X, y)
    train, test = metric.transform(X), metric.transform(X_test)
    if train.shape[1] > 1:
        return PCA(2).fit(train).transform(test)
    plain = LogEuclideanMetric(0.0).fit(X, y)
    return np.column_stack([test, PCA(1).fit(plain.transform(X)).transform(plain.transform(X_test))])


if __name__ == "__main__":
    main()
