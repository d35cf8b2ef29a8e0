"""Methods that only the tables have: each labels matrices, and the closed forms of the baselines hold."""

from __future__ import annotations

import numpy as np
import pytest

from random_matrices import labeled, spd
from reproduction import baselines
from reproduction.baselines import RCA
from reproduction.beyond import BEYOND
from reproduction.methods import ABLATIONS, KNOWN, TABLE_METHODS
from reproduction.tables import COLUMNS, IMAGE_SET_METHODS
from spdmetric.comparison.folds import Fold, steps_of
from spdmetric.comparison.methods import METHODS, Sizes


@pytest.mark.parametrize("name", {**TABLE_METHODS, **ABLATIONS})
def test_every_method_labels_test_matrices_and_is_described(name, rng):
    X, codes = labeled(rng, 48, 4, classes=3)
    y = np.array(["left", "right", "feet"])[codes]
    fold, sizes = Fold(X[:30], y[:30], X[30:]), Sizes.from_data(X[:30], y[:30])
    method = KNOWN[name]
    assert set(fold.labels(method.make(sizes))) <= {"left", "right", "feet"}
    assert method.family in ("distance", "learned", "baseline")
    assert method.sentence.endswith(".")
    first, second = (steps_of(method.make(sizes)) for _ in range(2))
    assert not {id(step) for step in first} & {id(step) for step in second}  # fresh ones every time


def test_names_and_titles_are_unique_and_columns_are_known():
    assert len(KNOWN) == len(METHODS) + len(TABLE_METHODS) + len(ABLATIONS)
    for field in ("title", "short"):
        assert len({getattr(method, field) for method in KNOWN.values()}) == len(KNOWN)
    assert {*COLUMNS, *IMAGE_SET_METHODS, *BEYOND} <= set(KNOWN)


def test_gmml_solves_its_equation(rng):
    S, D = spd(rng, 2, 5)
    A = baselines.gmml_metric(S, D)
    np.testing.assert_allclose(A @ S @ A, D, atol=1e-10)


def test_pair_scatters_are_those_of_the_listed_pairs(rng):
    vectors, y = rng.standard_normal((9, 3)), np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
    outer = {True: [], False: []}
    for i in range(9):
        for j in range(i):
            difference = vectors[i] - vectors[j]
            outer[bool(y[i] == y[j])].append(np.outer(difference, difference))
    S, D = baselines.pair_scatters(vectors, y)
    np.testing.assert_allclose(S, np.mean(outer[True], axis=0), atol=1e-12)
    np.testing.assert_allclose(D, np.mean(outer[False], axis=0), atol=1e-12)


def test_rca_makes_the_scatter_within_classes_the_identity(rng):
    y = np.arange(40) % 3
    vectors = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6))
    mapped = RCA(ridge=0.0).fit(vectors, y).transform(vectors)
    np.testing.assert_allclose(baselines.within_scatter(mapped, y), np.eye(6), atol=1e-10)
