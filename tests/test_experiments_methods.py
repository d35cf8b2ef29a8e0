"""The methods of the tables: what they share, the rivals' closed forms, their heads."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from random_matrices import labeled, spd
from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV
from spdmetric.datasets import make_toy
from spdmetric.evaluation import baselines as rivals
from spdmetric.evaluation import methods
from spdmetric.evaluation.methods import ABLATIONS, BASELINES, BEYOND, COLUMNS, METHODS, TITLES, VOTERS
from spdmetric.paper.work import Vectors, Work


@pytest.fixture(scope="module")
def work():
    X, y, X_test, _ = make_toy(20, 40, d=4, random_state=2)
    return Work(X, y, X_test)


def test_every_method_has_a_title_and_labels_test_matrices(work):
    assert list(TITLES) == list(METHODS)
    assert len(set(TITLES.values())) == len(TITLES)
    for name, method in METHODS.items():
        labels = method(work)
        assert labels.shape == (40,), name
        assert set(labels) <= {-1, 1}, name


def test_the_lists_of_methods_agree():
    assert set(BEYOND) | set(ABLATIONS) == set(METHODS)
    assert set(COLUMNS) < set(BEYOND)
    assert set(VOTERS) < set(METHODS)
    assert set(BASELINES) | set(BASELINES.values()) < set(METHODS)


def test_three_classes_and_names_for_labels(rng):
    X, codes = labeled(rng, 24, 3, classes=3)
    y = np.array(["left", "right", "feet"])[codes]
    work = Work(X[:18], y[:18], X[18:])
    for name in BEYOND:
        assert set(METHODS[name](work)) <= {"left", "right", "feet"}, name


# -- sharing ------------------------------------------------------------------------------


def test_shared_work_is_done_once_and_charged_to_everyone(work):
    work = Work(work.X, work.y, work.X_test)
    calls = []

    def slow():
        calls.append(1)
        time.sleep(0.05)
        return 7

    def outer():
        return work.once("slow", slow) + 1

    first, first_seconds = work.timed(lambda: work.once("outer", outer))
    second, second_seconds = work.timed(lambda: work.once("outer", outer))
    third, third_seconds = work.timed(lambda: work.once("other", outer))
    assert (first, second, third) == (8, 8, 8)
    assert len(calls) == 1
    assert min(first_seconds, second_seconds, third_seconds) >= 0.05


def test_embeddings_are_computed_once(work, monkeypatch):
    work = Work(work.X, work.y, work.X_test)
    calls = []
    mean = methods.EMBEDDINGS["mean"]
    monkeypatch.setitem(methods.EMBEDDINGS, "mean", lambda w: calls.append(1) or mean(w))
    for name in ("logeuclid-mean", "logeuclid-mean-lda", "gmml", "rca", "nca"):
        METHODS[name](work)
    assert len(calls) == 1


@pytest.mark.parametrize("k", [1, 11])
def test_the_shared_sweep_is_the_estimators(work, k):
    """Whichever number of neighbors comes first."""
    METHODS["logeuclid-kta-cv-51nn"](work)
    pipeline = make_pipeline(LogEuclideanMetricCV(n_neighbors=k), KNeighborsClassifier(k))
    expected = pipeline.fit(work.X, work.y).predict(work.X_test)
    name = "logeuclid-kta-cv" if k == 1 else f"logeuclid-kta-cv-{k}nn"
    np.testing.assert_array_equal(METHODS[name](work), expected)


def test_the_candidates_are_learned_once(work, monkeypatch):
    calls = []
    learn = LogEuclideanMetricCV._learn
    monkeypatch.setattr(LogEuclideanMetricCV, "_learn", lambda *args: calls.append(1) or learn(*args))
    work = Work(work.X, work.y, work.X_test)
    for name in ("logeuclid-kta-cv", "logeuclid-kta-cv-11nn", "logeuclid-kta-cv-51nn"):
        METHODS[name](work)
    assert len(calls) == 1


def test_low_rank_is_half_and_full_below_four():
    assert [methods._rank_metric(d).rank for d in (3, 4, 5, 6, 22)] == [None, 2, 2, 3, 11]


# -- heads --------------------------------------------------------------------------------


def test_heads_are_sklearns(work):
    tangent = LogEuclideanMetric(0.0)
    for name, head in (
        ("logeuclid-mean", KNeighborsClassifier(1)),
        ("logeuclid-mean-11nn", KNeighborsClassifier(11)),
        ("logeuclid-mean-lda", LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    ):
        expected = make_pipeline(tangent, head).fit(work.X, work.y).predict(work.X_test)
        np.testing.assert_array_equal(METHODS[name](work), expected)


def test_more_neighbors_than_matrices_are_all_of_them():
    vectors = Vectors(np.arange(5.0)[:, None], np.array([[0.0], [4.0]]))
    labels = methods.neighbors(51)(vectors, np.array([0, 0, 0, 1, 1]))
    np.testing.assert_array_equal(labels, [0, 0])


# -- rivals -------------------------------------------------------------------------------


def test_gmml_solves_its_equation(rng):
    S, D = spd(rng, 2, 5)
    A = rivals.gmml_metric(S, D)
    np.testing.assert_allclose(A @ S @ A, D, atol=1e-10)


def test_pair_scatters_are_those_of_the_listed_pairs(rng):
    vectors, y = rng.standard_normal((9, 3)), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    outer = {True: [], False: []}
    for i in range(9):
        for j in range(i):
            difference = vectors[i] - vectors[j]
            outer[bool(y[i] == y[j])].append(np.outer(difference, difference))
    S, D = rivals.pair_scatters(vectors, y)
    np.testing.assert_allclose(S, np.mean(outer[True], axis=0), atol=1e-12)
    np.testing.assert_allclose(D, np.mean(outer[False], axis=0), atol=1e-12)


def test_rca_makes_the_scatter_within_classes_the_identity(rng):
    y = np.arange(40) % 3
    vectors = Vectors(rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6)), rng.standard_normal((2, 6)))
    train, test = rivals.rca(vectors, y, ridge=0.0)
    np.testing.assert_allclose(rivals.within_scatter(train, y), np.eye(6), atol=1e-10)
    assert test.shape == (2, 6)


def test_principal_components_keep_distances_until_cut(rng):
    vectors = Vectors(rng.standard_normal((8, 20)), rng.standard_normal((3, 20)))
    train, test = rivals.principal(vectors, 50)
    assert train.shape == (8, 7)  # eight points around their mean
    assert test.shape == (3, 7)
    np.testing.assert_allclose(
        np.linalg.norm(train[0] - train[1]), np.linalg.norm(vectors.train[0] - vectors.train[1])
    )
    assert rivals.principal(vectors, 2).train.shape == (8, 2)


@pytest.mark.parametrize("learn", [rivals.gmml, rivals.rca, rivals.nca])
def test_rivals_look_where_the_classes_differ(learn, rng):
    """One direction tells the classes apart, as wide as seven that tell nothing."""
    y = np.arange(200) % 2
    vectors = rng.standard_normal((400, 8)) * [0.5, 3, 3, 3, 3, 3, 3, 3]
    vectors[:, 0] += 4 * np.tile(y, 2)
    split = Vectors(vectors[:200], vectors[200:])
    plain = np.mean(methods.nearest(split, y) == y)
    assert np.mean(methods.nearest(learn(split, y), y) == y) > plain
