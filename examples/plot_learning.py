"""
What learning the reference point does
======================================

The 8 x 8 toy set of the paper, ten draws: 1-nearest-neighbor accuracy under the five
distances of its Table 1 beside the printed numbers, and one draw as a picture before and
after learning.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from tqdm import tqdm

from spdmetric import LogEuclideanMetric
from spdmetric.datasets import make_toy
from spdmetric.geometry import pairwise_distance, tangent_vectors
from spdmetric.linalg.symmetric import vech

SEED, DRAWS, D = 1000, 10, 8
PRINTED = {"LE at I": 77.46, "LE at mean": 77.44, "LE learned": 86.78, "Riemann": 77.42, "Euclid": 83.32}


def vectors_of(draw, name):
    """Training and test vectors whose Euclidean distances are the named ones."""
    X, y, X_test, _ = draw
    if name == "Euclid":
        return vech(X), vech(X_test)
    if name == "LE at I":
        return tangent_vectors(X), tangent_vectors(X_test)
    metric = LogEuclideanMetric(10.0 if name == "LE learned" else 0.0).fit(X, y)
    return metric.transform(X), metric.transform(X_test)


def accuracy(draw, name):
    X, y, X_test, y_test = draw
    if name == "Riemann":
        nearest = pairwise_distance(X_test, X, "riemann").argmin(axis=1)
        return 100 * np.mean(y[nearest] == y_test)
    train, test = vectors_of(draw, name)
    return 100 * KNeighborsClassifier(1).fit(train, y).score(test, y_test)


def main():
    draws = [make_toy(d=D, random_state=SEED + k) for k in range(DRAWS)]
    bar = tqdm(draws, desc="draws", disable=None)
    table = np.array([[accuracy(draw, name) for name in PRINTED] for draw in bar])  # (draws, distances)
    mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(DRAWS)
    print(f"1-NN accuracy in %, toy set {D} x {D}, {DRAWS} draws from seed {SEED}\n")
    print(f"{'distance':12s} {'ours':>7s} {'s.e.':>6s} {'paper':>7s}")
    for name, m, e in zip(PRINTED, mean, error, strict=True):
        print(f"{name:12s} {m:7.2f} {e:6.2f} {PRINTED[name]:7.2f}")
    # `make demo` runs this in the repository, the gallery in the folder of the examples.
    picture = (Path() if Path("examples").is_dir() else Path("..")) / "results" / "learning.png"
    draw_picture(draws[0], mean, error, picture)
    print(f"\npicture: {picture}")


def draw_picture(draw, mean, error, path):
    figure = plt.figure(figsize=(10, 3.4), layout="constrained")
    before, after, bars = figure.subplots(1, 3, width_ratios=[1, 1, 1.1])
    y_test = draw[3]
    for axes, name in ((before, "LE at mean"), (after, "LE learned")):
        train, test = vectors_of(draw, name)
        flat = PCA(2).fit(train).transform(test)
        for label, color, marker in ((1, "#D55E00", "o"), (-1, "#0072B2", "^")):
            axes.scatter(
                *flat[y_test == label].T, s=14, c=color, marker=marker, alpha=0.7, label=f"class {label:+d}"
            )
        axes.set(xticks=[], yticks=[], xlabel="first principal component")
    before.set(title="at the mean of the data", ylabel="second principal component")
    after.set(title="at the learned reference point")
    before.legend(loc="best", frameon=False)
    place = np.arange(len(mean))
    colors = ["#0072B2" if name == "LE learned" else "#999999" for name in PRINTED]
    bars.bar(place, mean, yerr=error, color=colors, capsize=3)
    bars.plot(place, list(PRINTED.values()), "kD", markersize=5, label="paper")
    bars.set(ylim=(70, 95), title=f"1-NN accuracy (%), {DRAWS} draws")
    bars.set_xticks(place, [name.replace(" ", "\n", 1) for name in PRINTED], fontsize=8)
    bars.legend(loc="upper right", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
