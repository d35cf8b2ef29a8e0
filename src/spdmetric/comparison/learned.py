"""The metric learned from all the matrices: for its pictures, not for its accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np

from spdmetric.comparison.methods import Means
from spdmetric.estimators import LogEuclideanMetricCV
from spdmetric.estimators.cv import learn_path
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, invsqrtm

RADII = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)


def learn_all(X: np.ndarray, codes: np.ndarray, means: Means) -> dict[str, Any]:
    """Learn from all matrices; the result is plain data, for the journal.

    Parameters
    ----------
    X : ndarray of shape (n, d, d)
        Matrices.
    codes : ndarray of shape (n,)
        Their classes as 0, 1, ...
    means : Means
        As used in the folds.

    Returns
    -------
    learned : dict
        ``chosen`` (radius and rank), ``score``, ``candidates``, ``paths``, ``factor``, and
        where the matrices have full rank ``reference``, ``mean`` and ``reference_radius``.
    """
    metric = LogEuclideanMetricCV(cv=means.inner, ranks=means.ranks).fit(X, codes)
    rank = metric.best_params_["rank"]
    found: dict[str, Any] = {
        "chosen": metric.best_params_,
        "score": metric.best_score_,
        "candidates": _candidates(metric),
        "factor": metric.components_.tolist(),
        "paths": [],
    }
    if means.ranks is None:
        radius = _best_full_radius(metric)
        alignment, G = _path(X, codes, None, radius)
        found["paths"].append({"rank": None, "radius": RADII, "alignment": alignment})
        found |= {"reference": G.tolist(), "mean": mean_riemann(X).tolist(), "reference_radius": radius}
    low = rank if rank is not None else means.rank
    if low is not None:
        alignment, _ = _path(X, codes, low, 0.0)
        found["paths"].append({"rank": low, "radius": RADII, "alignment": alignment})
    return found


def _candidates(metric: LogEuclideanMetricCV) -> list[dict[str, Any]]:
    results = metric.cv_results_
    n_folds = sum(name.startswith("split") for name in results)
    return [
        {**params, "mean": float(mean), "se": float(std) / np.sqrt(max(1, n_folds - 1))}
        for params, mean, std in zip(
            results["params"], results["mean_test_score"], results["std_test_score"], strict=True
        )
    ]


def _best_full_radius(metric: LogEuclideanMetricCV) -> float:
    """The radius above 0 that suits full rank best; where it was not tried, the paper's."""
    full = [c for c in _candidates(metric) if c["rank"] is None and c["radius"] > 0]
    return float(max(full, key=lambda c: (c["mean"], -c["radius"]))["radius"]) if full else 10.0


def _path(
    X: np.ndarray, codes: np.ndarray, rank: int | None, radius: float
) -> tuple[list[float], np.ndarray]:
    """Alignment along the radii, and the reference point at one of them."""
    radii = sorted({*RADII, radius})
    embeddings, solutions = learn_path(X, codes, radii, rank=rank)
    alignment = [1 - s.value for r, s in zip(radii, solutions, strict=True) if r in RADII]
    if rank is not None:
        return alignment, np.empty((0, 0))
    return alignment, embeddings[radii.index(radius)].reference


def relative_spectrum(G: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Eigenvalues of G seen from the mean, descending: 1 where learning changed nothing."""
    return np.linalg.eigvalsh(congruence(invsqrtm(mean), G))[::-1]
