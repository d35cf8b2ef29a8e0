"""Data frames of matrices, as pandas' ``groupby(...).corr()`` and ``.cov()`` give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spdmetric.validation import first_true

if TYPE_CHECKING:
    from pandas import DataFrame, Index


def stack_frame(frame: DataFrame) -> tuple[np.ndarray, Index, list[str]]:
    """Turn a frame with one matrix for each group into a stack of matrices.

    Parameters
    ----------
    frame : pandas.DataFrame
        With a MultiIndex whose last level names the rows of each matrix, as ``groupby(...).corr()`` and
        ``groupby(...).cov()`` give it: a block of d rows for each group, and the d variables as columns.

    Returns
    -------
    X : ndarray of shape (n_groups, d, d)
        Matrices, in the order in which the groups appear.
    keys : pandas.Index of length n_groups
        The groups: to look up labels, and the domain of each matrix.
    names : list of d str
        The variables, in the order of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from spdmetric import stack_frame
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.standard_normal((60, 3)), columns=["left", "right", "front"])
    >>> table["subject"] = np.repeat(["ana", "bo", "cy"], 20)
    >>> X, keys, names = stack_frame(table.groupby("subject").corr())
    >>> X.shape, keys.tolist(), names
    ((3, 3, 3), ['ana', 'bo', 'cy'], ['left', 'right', 'front'])
    """
    levels = getattr(getattr(frame, "index", None), "nlevels", 0)
    if levels < 2:
        expected = "a DataFrame with a MultiIndex, as groupby(...).corr() gives it"
        got = f"{type(frame).__name__}{' with one level' if levels else ''}"
        raise ValueError(f"Expected {expected}, got {got}. Matrices as an array need no stack_frame.")
    columns = frame.columns
    if not columns.is_unique:
        raise ValueError(f"Column {columns[columns.duplicated()][0]!r} stands twice: expected unique names.")
    groups = frame.index.droplevel(-1)
    keys, rows = groups.unique(), frame.index.get_level_values(-1)
    code = keys.get_indexer(groups)
    matrices = np.empty((len(keys), len(columns), len(columns)))
    for k, key in enumerate(keys):
        here = np.flatnonzero(code == k)
        place = columns.get_indexer(rows[here])
        if sorted(place) != list(range(len(columns))):
            got, named = rows[here].tolist(), columns.tolist()
            raise ValueError(f"Group {key!r} has the rows {got}: expected each of the columns {named} once.")
        matrices[k, place] = frame.iloc[here].to_numpy(dtype=np.float64)
    bad = first_true(~np.isfinite(matrices).all(axis=(1, 2)))
    if bad is not None:
        lost = columns[np.isnan(matrices[bad]).all(axis=1)].tolist()
        reason = f": {lost} did not vary in that group, or had too few values" if lost else ""
        which = f"The matrix of group {keys[bad]!r} has missing values{reason}"
        raise ValueError(f"{which}. Leave out the group, or the variable.")
    return matrices, keys, [str(column) for column in columns]
