"""The learned distance of pairs, with metric-learn's names."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.validation import check_is_fitted

from spdmetric.estimators._tensors import is_tensor, to_numpy
from spdmetric.linalg.symmetric import Array


class PairMixin:
    """Distances for a metric that checks and embeds matrices."""

    _check_matrices: Callable[..., Array]
    _embed: Callable[[Array], Array]

    def pair_distance(self, pairs: Any) -> Array:
        """Learned distance between the two matrices of each pair.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, d, d)
            Pairs of SPD matrices.

        Returns
        -------
        distances : ndarray of shape (n_pairs,)
            For tensors a tensor, on their own device.
        """
        check_is_fitted(self)
        pairs = pairs if is_tensor(pairs) else np.asarray(pairs)
        if pairs.ndim != 4 or pairs.shape[1] != 2:
            raise ValueError(f"Expected pairs of shape (n_pairs, 2, d, d), got {tuple(pairs.shape)}.")
        sides = [self._check_matrices(pairs[:, side, ...], name=f"pairs[:, {side}]") for side in (0, 1)]
        vectors = [self._embed(X) for X in sides]
        return array_namespace(vectors[0]).linalg.vector_norm(vectors[0] - vectors[1], axis=1)

    def pair_score(self, pairs: Any) -> Array:
        """Similarity of the two matrices of each pair: the learned distance, negated.

        Parameters
        ----------
        pairs : array-like of shape (n_pairs, 2, d, d)
            Pairs of SPD matrices.

        Returns
        -------
        scores : ndarray of shape (n_pairs,)
        """
        return -self.pair_distance(pairs)

    def get_metric(self) -> Callable[[Any, Any], float]:
        """Return the learned distance as a function of two matrices.

        Returns
        -------
        distance : callable
            Takes two arrays of shape (d, d); independent of later changes of the estimator.
        """
        check_is_fitted(self)
        frozen = copy(self)

        def distance(A: Any, B: Any) -> float:
            return float(frozen.pair_distance(np.stack([to_numpy(A), to_numpy(B)])[None])[0])

        return distance
