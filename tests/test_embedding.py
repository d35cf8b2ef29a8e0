"""The record of a fitted metric: what users can see is all there is."""

from __future__ import annotations

import pytest

from random_matrices import labeled
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV

MODELS = {
    "full rank": LogEuclideanMetric(2.0),
    "rank 2": LogEuclideanMetric(2.0, rank=2),
    "chosen": LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), weightings=(None,), cv=2),
}


@pytest.fixture(params=MODELS)
def fitted(request, rng):
    X, y = labeled(rng, 24, 4)
    return MODELS[request.param].fit(X, y), X


def test_a_fit_leaves_public_attributes_alone(fitted):
    """What a model file must hold is what users can see."""
    metric, _ = fitted
    state = set(vars(metric)) - set(metric.get_params())
    shared = {
        *("embedding_", "alignment_", "gamma_", "radius_", "n_iter_", "solution_"),
        *("weighting_penalty_", "weighting_score_"),
        *("classes_", "n_features_in_", "domains_", "domain_means_"),
        *("n_views_", "view_names_"),
    }
    chosen = {"best_index_", "best_params_", "best_score_", "cv_results_", "path_"}
    chosen |= {"n_neighbors_", "temperature_"}
    assert state - {"_stream"} == (shared | chosen if isinstance(metric, LogEuclideanMetricCV) else shared)
    assert vars(metric).get("_stream") is None
