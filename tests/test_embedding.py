"""The record of a fitted metric: its fields are all there is to know."""

from __future__ import annotations

import pickle
from dataclasses import fields

import numpy as np
import pytest

from random_matrices import labeled
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.estimators.embedding import Embedding

MODELS = {
    "full rank": LogEuclideanMetric(2.0),
    "rank 2": LogEuclideanMetric(2.0, rank=2),
    "chosen": LogEuclideanMetricCV(radii=(0, 2), ranks=(None, 2), weightings=(None,), cv=2),
}


@pytest.fixture(params=MODELS)
def fitted(request, rng):
    X, y = labeled(rng, 24, 4)
    return MODELS[request.param].fit(X, y), X


def test_the_fields_make_it_again_bit_for_bit(fitted):
    metric, X = fitted
    again = Embedding(**{field.name: getattr(metric.embedding_, field.name) for field in fields(Embedding)})
    np.testing.assert_array_equal(again.embed(X), metric.transform(X))
    np.testing.assert_array_equal(again.components, metric.components_)
    np.testing.assert_array_equal(
        again.restore(metric.transform(X)), metric.inverse_transform(metric.transform(X))
    )
    copied = pickle.loads(pickle.dumps(metric.embedding_))
    np.testing.assert_array_equal(copied.embed(X), metric.transform(X))


def test_what_it_says_of_itself(fitted):
    metric, X = fitted
    embedding = metric.embedding_
    m = metric.components_.shape[0]
    assert embedding.rank == (m if embedding.low_rank else None)
    assert embedding.n_features == metric.transform(X).shape[1]
    assert embedding.distance == metric.radius_
    assert embedding.session_weight == 0
    assert metric.adapt(X).embedding_.session_weight == len(X)
    np.testing.assert_allclose(embedding.frame @ embedding.frame.T, np.eye(m), atol=1e-12)
    if not embedding.low_rank:
        np.testing.assert_allclose(
            embedding.components @ embedding.reference @ embedding.components.T, np.eye(m), atol=1e-9
        )


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
