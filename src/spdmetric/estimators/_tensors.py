"""Arrays that are not NumPy's: learning brings them to NumPy, all else stays where they are.

A tensor here is any array of another namespace (torch, JAX, CuPy, array_api_strict) that holds
its numbers now; dask arrays, which do not, have their own way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import (
    array_namespace,
    is_array_api_obj,
    is_cupy_array,
    is_dask_array,
    is_numpy_array,
    is_torch_array,
)

from spdmetric.linalg.symmetric import Array, congruence, expm, like, logm, unvech, vech

# W0, W and Q of an estimator: see `LogEuclideanMetric._embed`.
Embedding = tuple[np.ndarray, np.ndarray, np.ndarray]


def is_tensor(x: Any) -> bool:
    """Whether this is an array of another namespace than NumPy's."""
    return is_array_api_obj(x) and not is_numpy_array(x) and not is_dask_array(x)


def to_numpy(x: Any) -> Any:
    """Return a tensor as a NumPy array, detached and on the CPU; anything else as it is."""
    if not is_tensor(x):
        return x
    if is_torch_array(x):
        x = x.detach().cpu()
        # NumPy has no bfloat16; float32 holds its numbers exactly.
        return (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()
    try:
        return x.get() if is_cupy_array(x) else np.asarray(x)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"An array of type {type(x).__name__} cannot be brought to NumPy, where learning runs ({error}): "
            "move it to the CPU first."
        ) from error


def is_single(x: Any) -> bool:
    """Whether the numbers are float32, in any namespace."""
    return str(getattr(x, "dtype", None)).rpartition(".")[2] == "float32"


def as_float64(x: Any) -> Array:
    """Return an array in float64, in its own namespace; what is no array becomes NumPy's."""
    if not is_tensor(x):
        return np.asarray(x, dtype=np.float64)
    xp = array_namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def narrowed(x: Array, single: bool) -> Array:
    """Return an array in float32 where that is asked for."""
    if not single:
        return x
    xp = array_namespace(x)
    return xp.astype(x, xp.float32)


def embed_tensor(embedding: Embedding, X: Array) -> Array:
    """Tangent vectors by the factors that an estimator learned, on the device of X."""
    W0, W, Q = (like(factor, X) for factor in embedding)
    return vech(congruence(Q.T, logm(congruence(W, congruence(W0, X)))))


def restore(embedding: Embedding, vectors: Array, *, low_rank: bool) -> Array:
    """Matrices of vectors, the inverse of embedding them, where the vectors are.

    At low rank the images ``W X W'``, which is as far as there is an inverse.
    """
    W0, W, Q = embedding
    images = expm(congruence(like(Q, vectors), unvech(vectors)))
    if low_rank:
        return images
    back = [like(np.linalg.inv(factor), vectors) for factor in (W, W0)]
    return congruence(back[1], congruence(back[0], images))
