"""The metric learned from all the matrices: for its pictures, not for its accuracy."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from spdmetric.estimators import CommonRange, LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.evaluation.methods import Sizes
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm

RADII = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)


class Candidate(TypedDict):
    """A radius and a rank, and their mean score in cross-validation."""

    radius: float
    rank: int | None
    mean: float


class Path(TypedDict):
    """Alignment along `RADII` at one rank."""

    rank: int | None
    alignment: list[float]


class Learned(TypedDict):
    """What is drawn of the metric, as plain data for the journal."""

    chosen: Candidate
    candidates: list[Candidate]
    factor: list[list[float]]  # W
    paths: list[Path]
    reference: list[list[float]] | None  # G at full rank; None where the matrices are singular
    reference_radius: float
    mean: list[list[float]] | None  # where learning starts
    basis: list[list[float]] | None  # of the range that singular matrices share: G and mean are in it


def learn_all(X: np.ndarray, codes: np.ndarray, sizes: Sizes) -> Learned:
    """Learn from all matrices (n, d, d), their classes as 0, 1, ..., with the sizes used in the folds."""
    basis = np.eye(sizes.d)
    if sizes.shared:
        common = CommonRange().fit(X)
        X, basis, sizes = common.transform(X), common.basis_, sizes.inside
    metric = LogEuclideanMetricCV(shapes=(None,), n_neighbors=1).fit(X, codes)
    results, best = metric.cv_results_, metric.best_params_
    candidates: list[Candidate] = [
        {"radius": params["radius"], "rank": params["rank"], "mean": mean}
        for params, mean in zip(results["params"], results["mean_test_accuracy"].tolist(), strict=True)
        if params["n_neighbors"] is not None
    ]
    (chosen,) = (c for c in candidates if (c["radius"], c["rank"]) == (best["radius"], best["rank"]))
    low = sizes.low_rank if chosen["rank"] is None else chosen["rank"]
    ranks = ([None] if sizes.definite else []) + ([] if low is None else [low])
    # The radius above 0 that suits full rank best; where none was tried, the paper's.
    full = [c for c in candidates if c["rank"] is None and c["radius"] > 0]
    radius = max(full, key=lambda c: (c["mean"], -c["radius"]))["radius"] if full else 10.0
    like_cv = LogEuclideanMetric(radius, tol=metric.tol, max_iter=metric.max_iter)
    reference = like_cv.fit(X, codes).reference_ if sizes.definite else None
    return {
        "chosen": chosen,
        "candidates": candidates,
        "factor": (metric.components_ @ basis.T).tolist(),
        "paths": [{"rank": rank, "alignment": _alignment(X, codes, rank)} for rank in ranks],
        "reference": None if reference is None else reference.tolist(),
        "reference_radius": radius,
        "mean": mean_riemann(X).tolist() if sizes.definite else None,
        "basis": None if len(basis) == sizes.d else basis.tolist(),
    }


def _alignment(X: np.ndarray, codes: np.ndarray, rank: int | None) -> list[float]:
    """Alignment along the radii, by one sweep over all matrices."""
    every = np.arange(len(X))
    fold = [(every, every)]  # nothing to choose
    sweep = LogEuclideanMetricCV(radii=RADII, ranks=(rank,), shapes=(None,), head="centroid", cv=fold)
    return sweep.fit(X, codes).path_.alignment.tolist()


def spectra(learned: Learned) -> dict[str, np.ndarray]:
    """Eigenvalues, descending, of G, of the mean, and of G seen from the mean; none at low rank."""
    if learned["reference"] is None:
        return {}
    G, mean = np.array(learned["reference"]), np.array(learned["mean"])
    shown = {"learned G": G, "mean": mean, "G seen from the mean": congruence(invsqrtm(mean), G)}
    return {name: np.linalg.eigvalsh(matrix)[::-1] for name, matrix in shown.items()}


def directions(learned: Learned) -> np.ndarray:
    """Eigenvectors of log G as columns (d, r); at low rank, the rows of W; largest entries positive."""
    if learned["reference"] is not None:
        matrix = np.linalg.eigh(np.array(learned["reference"]))[1][:, ::-1]
        matrix = matrix if learned["basis"] is None else np.array(learned["basis"]) @ matrix
    else:
        W = np.array(learned["factor"])
        matrix = (W / np.linalg.norm(W, axis=1, keepdims=True)).T
    return matrix * np.sign(matrix[np.abs(matrix).argmax(axis=0), np.arange(matrix.shape[1])])
