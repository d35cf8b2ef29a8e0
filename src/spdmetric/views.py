"""Several matrices for one sample: frequency bands, time windows, kinds of connectivity, modalities.

Samples of V views are one array, (n_samples, views, d, d).  A view that is smaller than d is padded with the
identity.  Rows and columns that are those of the identity in every sample say nothing, so the estimators find
the sizes in the data, wherever these come from, and leave the padding out of vectors and search.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from spdmetric.validation import as_numbers, check_stack


class NamedViews(np.ndarray):
    """An array of views that have names, ``view_names``; some of its samples still have them.

    All else, other views in another order for instance, is a plain array to NumPy, without names.
    """

    view_names: tuple[str, ...] | None

    def __array_finalize__(self, obj: Any) -> None:
        self.view_names = None

    def __getitem__(self, key: Any) -> Any:
        some = super().__getitem__(key)
        rows = key[0] if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis else key
        if isinstance(some, NamedViews) and some.ndim == 4 and not isinstance(rows, tuple):
            some.view_names = self.view_names
        return some

    def __reduce__(self) -> tuple[Any, ...]:
        return _name, (np.asarray(self), self.view_names)


def _name(X: np.ndarray, names: tuple[str, ...] | None) -> NamedViews:
    named = X.view(NamedViews)
    named.view_names = names
    return named


def stack_views(views: Mapping[str, ArrayLike]) -> NamedViews:
    """Put views of the same samples into one array, padding small ones with the identity.

    Parameters
    ----------
    views : dict of array-like of shape (n_samples, d_v, d_v)
        SPD matrices of each view, by its name.  The first is the usual one: `LogEuclideanClassifier` takes
        all views only where they are clearly better than the first alone.

    Returns
    -------
    X : ndarray of shape (n_samples, views, d, d)
        d is the largest size.  It has the names of the views, ``X.view_names``, and so have some of its
        samples, ``X[rows]``: estimators compare those of `fit` and `predict`.

    Examples
    --------
    >>> import numpy as np
    >>> from spdmetric import stack_views
    >>> X = stack_views({"EEG": np.eye(3)[None] * 2, "EMG": np.eye(2)[None] * 5})
    >>> X.shape, X.view_names
    ((1, 2, 3, 3), ('EEG', 'EMG'))
    >>> X[0, 1].tolist()
    [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 1.0]]
    """
    if not isinstance(views, Mapping) or not views:
        raise TypeError(f"Expected a dict of views, got {type(views).__name__} of {len(views)}.")
    stacks = {str(name): as_numbers(X, f"view {name!r}") for name, X in views.items()}
    for name, X in stacks.items():
        check_stack(X, f"view {name!r}")
    (first, X), *others = stacks.items()
    for name, other in others:
        if len(other) != len(X):
            raise ValueError(
                f"View {name!r} has {len(other)} samples, and view {first!r} has {len(X)}: expected the same "
                "samples in all views, in one order."
            )
    d = max(X.shape[-1] for X in stacks.values())
    joined = np.empty((len(X), len(stacks), d, d), dtype=np.result_type(*stacks.values(), np.float32))
    joined[:] = np.eye(d)
    for v, X in enumerate(stacks.values()):
        joined[:, v, : X.shape[-1], : X.shape[-1]] = X
    return _name(joined, tuple(stacks))
