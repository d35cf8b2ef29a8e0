"""Vectors of more matrices than memory holds: chunk by chunk, in memory or into a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from array_api_compat import array_namespace
from sklearn.utils.validation import check_is_fitted, validate_data

from spdmetric.estimators._sources import read, row_chunks, stored_shape
from spdmetric.linalg.batch import stack_of
from spdmetric.linalg.symmetric import Array, congruence, unvech, vech
from spdmetric.validation import checked_chunk


def embed(embedding: tuple[np.ndarray, ...], distance: float, X: np.ndarray) -> np.ndarray:
    """Tangent vectors for the factor ``Q'W W0``, by factors that keep their digits far out.

    X is whitened by the start, moved by the graded factor W of the solver, and its
    logarithm rotated to the symmetric factor: ``log(QAQ') = Q log(A) Q'``.
    """
    W0, W, Q = embedding
    features = stack_of(congruence(W0, X)).decompose(W).features
    return vech(congruence(Q.T, unvech(check_embedded(features, distance))))


def check_embedded(features: Array, distance: float) -> Array:
    """Return vectors that are finite, or say why they are not."""
    xp = array_namespace(features)
    if not bool(xp.all(xp.isfinite(features))):
        raise ValueError(
            f"At a distance of {distance:.3g} from its start the reference point is too close to "
            "singular to compare these matrices in float64: learn with a smaller radius."
        )
    return features


class StoringMixin:
    """`transform` by chunks, for a metric that checks and embeds matrices."""

    chunk_size: int | None
    _n_features_out: int
    _check_chunk: Callable[..., np.ndarray]
    _embed: Callable[[np.ndarray], np.ndarray]

    def transform_to(self, X: Any, path: str | os.PathLike[str]) -> Path:
        """Write the vectors of `transform` into a ``.npy`` file, chunk by chunk.

        Parameters
        ----------
        X : array of shape (n_matrices, d, d), np.memmap, or anything with a shape that slices
            SPD matrices, of which a chunk is in memory at a time.
        path : str or path-like
            File to write; read it with ``np.load(path, mmap_mode="r")``.  It appears when it is
            whole: until then the vectors are in a file beside it, which is removed on failure.

        Returns
        -------
        path : Path
        """
        check_is_fitted(self)
        path, X = Path(path), X if hasattr(X, "shape") else np.asarray(X)
        dtype = np.dtype(np.float32 if X.dtype == np.float32 else np.float64)
        with whole_file(path) as file:
            header = {"descr": dtype.str, "fortran_order": False, "shape": (X.shape[0], self._n_features_out)}
            np.lib.format.write_array_header_2_0(file, header)
            for _, vectors in self._vectors(X):
                file.write(np.ascontiguousarray(vectors, dtype=dtype).data)
        return path

    def _transform_stored(self, X: Any) -> np.ndarray:
        """Vectors of a stack that is read chunk by chunk."""
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        vectors = np.empty((stored_shape(X)[0], self._n_features_out), dtype=dtype)
        for rows, some in self._vectors(X):
            vectors[rows] = some
        return vectors

    def _vectors(self, X: Any) -> Iterator[tuple[slice, np.ndarray]]:
        shape = stored_shape(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        parts = row_chunks(shape, self.chunk_size)
        for k, rows in enumerate(parts):
            yield rows, self._embed(checked_chunk(read(X, rows), self._check_chunk, k, rows, len(parts)))


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write that appears under its name only when all is written."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        file = part.open("wb")
    except OSError as error:
        raise type(error)(error.errno, f"{path} cannot be written ({error.strerror}).") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(
                error.errno,
                f"{path} could not be written to its end ({error.strerror}); nothing was left behind. Free "
                "some space, or name another place.",
            ) from error
        raise
