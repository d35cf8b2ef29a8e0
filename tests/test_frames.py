"""Frames of matrices: the matrices of `groupby().corr()`, in any order of rows, or a sentence."""

import numpy as np
import pandas as pd
import pytest

from spdmetric import stack_frame

NAMES = ["left", "right", "front"]


@pytest.fixture
def table(rng):
    table = pd.DataFrame(rng.standard_normal((80, 3)), columns=NAMES)
    table["subject"], table["run"] = np.repeat(["cy", "ana"], 40), np.tile([2, 1], 40)
    return table


@pytest.mark.parametrize("by", ["subject", ["subject", "run"]])
@pytest.mark.parametrize("sort", [True, False])
def test_matrices_are_those_of_the_groups(table, by, sort):
    X, keys, names = stack_frame(table.groupby(by, sort=sort)[NAMES].cov())
    assert names == NAMES
    groups = dict(list(table.groupby(by, sort=sort)[NAMES]))
    assert keys.tolist() == list(groups)
    for matrix, group in zip(X, groups.values(), strict=True):
        np.testing.assert_allclose(matrix, np.cov(group.to_numpy().T), rtol=1e-12)


def test_order_of_rows_does_not_matter(table, rng):
    frame = table.groupby("subject")[NAMES].corr()
    X, keys, _ = stack_frame(frame)
    shuffled, other, _ = stack_frame(frame.iloc[rng.permutation(len(frame))])
    np.testing.assert_array_equal(shuffled[other.get_indexer(keys)], X)


def test_sentences(table):
    frame = table.groupby("subject")[NAMES].corr()
    with pytest.raises(ValueError, match=r"MultiIndex, as groupby.* gives it, got DataFrame with one level"):
        stack_frame(table)
    with pytest.raises(ValueError, match=r"got ndarray. Matrices as an array need no stack_frame"):
        stack_frame(np.eye(3))
    with pytest.raises(ValueError, match=r"Group 'cy' has the rows \['left', 'right'\]: expected each"):
        stack_frame(frame.iloc[:-1])
    table.loc[table.subject == "ana", "right"] = 1.0
    with pytest.raises(ValueError, match=r"group 'ana' has missing values: \['right'\] did not vary"):
        stack_frame(table.groupby("subject")[NAMES].corr())
