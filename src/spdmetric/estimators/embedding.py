"""What a fitted metric knows: the way from SPD matrices to vectors, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Any

import numpy as np

from spdmetric.linalg.batch import Factor, Views, count_features, make_stack, view_columns
from spdmetric.linalg.hermitian import fill_matrices, list_entries
from spdmetric.linalg.symmetric import (
    Array,
    adjoint,
    array_namespace,
    congruence,
    detached,
    expm,
    invsqrtm,
    is_complex,
    lazy,
    like,
    logm,
    symmetrize,
)
from spdmetric.manifolds import ProductPoint
from spdmetric.objectives.data import take_view
from spdmetric.objectives.start import Start, ViewStarts
from spdmetric.validation import first_true, is_tensor

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Embedding:
    """The vectors ``vech(Q' log(W W0 X W0' W') Q)`` of matrices X, times a weighting if there is one.

    The fields are all there is to know, so ``Embedding(**fields)`` makes the same one again:
    arrays, two numbers, a flag, and perhaps a weighting and the mean of a domain.
    """

    basis: np.ndarray  # (d, k), orthonormal columns that span the range that the training matrices share
    center: np.ndarray  # (k, k), G0 in that basis, or the mean of the session that the metric was carried to
    rotation: np.ndarray  # (k, k), its first rows the directions on which the classes differ most
    factor: np.ndarray  # (m, k), W, which the solver found, in the coordinates of the start
    frame: np.ndarray  # (m, m), Q, orthogonal: vectors of all sessions are in one frame
    low_rank: bool  # whether a factor of low rank was learned instead of a reference point
    distance: float  # how far W is from the start
    session_weight: float = 0.0  # of the matrices of a new session that the center is the mean of
    weighting: np.ndarray | None = None  # (p, q), how much each direction of the p entries counts
    # (d, d), mean of a domain that matrices are whitened by before all else; None: they are whitened
    # already, or the metric was learned without domains.
    domain_mean: np.ndarray | None = None

    @property
    def mean(self) -> np.ndarray:
        """What matrices are whitened by first, (d, d): the mean of a domain or session, or the start."""
        return congruence(self.basis, self.center) if self.domain_mean is None else self.domain_mean

    def moved(self, mean: np.ndarray) -> Embedding:
        """The same with another such point."""
        if self.domain_mean is None:
            return replace(self, center=congruence(self.basis.conj().T, mean))
        return replace(self, domain_mean=mean)

    @property
    def rank(self) -> int | None:
        """Smallest rank that matrices must have; None where they must be definite."""
        return len(self.factor) if self.low_rank else None

    @property
    def views(self) -> tuple[Embedding, ...]:
        """Itself, as of several views."""
        return (self,)

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return count_features(self.factor) if self.weighting is None else self.weighting.shape[1]

    @lazy
    def whitening(self) -> np.ndarray:
        """W0, of shape (k, d)."""
        factor = Start(self.basis, self.center, self.rotation).factor
        return factor if self.domain_mean is None else factor @ invsqrtm(self.domain_mean)

    @lazy
    def components(self) -> np.ndarray:
        """``Q'W W0``, of shape (m, d): at full rank ``G^{-1/2}``."""
        return self.frame.conj().T @ self.factor @ self.whitening

    @lazy
    def reference(self) -> np.ndarray:
        """The reference point G, of shape (d, d); without meaning at low rank."""
        _, sigma, Vt = np.linalg.svd(self.factor @ self.whitening)
        return symmetrize((Vt.conj().T / sigma**2) @ Vt)

    def embed(self, X: Array, *, name: str = "X", first: int = 0) -> Array:
        """Vectors of checked matrices, where these are; ``name`` and ``first`` are for errors.

        X is whitened by the start, moved by the graded factor W of the solver, which keeps its
        digits far out, and its logarithm rotated: ``log(QAQ') = Q log(A) Q'``.
        """
        if is_complex(X) and not is_complex(self.factor):
            raise ValueError(
                f"{name} is complex, and this metric was fitted on real matrices: fit it on complex ones, or "
                f"pass {name}.real if the imaginary parts mean nothing."
            )
        if is_tensor(X):
            W0, W, Q = (like(factor, X) for factor in (self.whitening, self.factor, self.frame))
            whitened = congruence(W0, X)
            logs = logm(congruence(W, whitened))
        else:
            Q, whitened = self.frame, congruence(self.whitening, X)
            logs = fill_matrices(make_stack(whitened).decompose(self.factor).features, Q)
        xp = array_namespace(logs)
        bad = first_true(~xp.all(xp.isfinite(detached(logs)), axis=(-2, -1)))
        if bad is not None and not self.low_rank:
            raise ValueError(
                f"At a distance of {self.distance:.3g} from its start the reference point is too close to "
                f"singular to compare {name}[{first + bad}] in float64: learn with a smaller radius."
            )
        if self.low_rank and bad is None:
            bad = first_true(self._are_singular(whitened))
        if bad is not None:
            raise ValueError(
                f"{name}[{first + bad}] is singular on the directions that this metric of rank {self.rank} "
                "sees, so that its logarithm is unbounded: learn with a smaller rank, or drop that matrix."
            )
        vectors = list_entries(congruence(adjoint(Q), logs))
        return vectors if self.weighting is None else vectors @ like(self.weighting, vectors)

    def update(self, change: Callable[..., Embedding], *arrays: np.ndarray) -> Embedding:
        """The same after a change, given arrays (..., d, d)."""
        return change(self, *arrays)

    def count_singular(self, X: np.ndarray) -> int:
        """How many of some matrices a factor of low rank cannot compare."""
        W, W0 = _unit_rows(self.factor) @ self.whitening, self.whitening
        traces = (X.reshape(len(X), -1) @ (W0.conj().T @ W0).conj().reshape(-1)).real
        smallest = np.linalg.eigvalsh(congruence(W, X))[:, 0]
        return int(np.count_nonzero(smallest <= len(W0) * _EPS * traces))

    def _are_singular(self, whitened: Array) -> Array:
        """Whether a matrix is zero, but for rounding, along a direction that the factor sees."""
        xp, whitened = array_namespace(whitened), detached(whitened)
        unit = like(_unit_rows(self.factor), whitened)
        smallest = xp.linalg.eigvalsh(congruence(unit, whitened))[:, 0]
        traces = xp.linalg.trace(whitened)
        traces = xp.real(traces) if is_complex(traces) else traces
        return smallest <= whitened.shape[-1] * _EPS * traces

    def restore(self, vectors: Array) -> Array:
        """Matrices of vectors, where these are: the inverse of `embed`.

        At low rank the images ``W X W'``, which is as far as there is an inverse; with a weighting there is
        none.
        """
        _check_restorable(self, vectors)
        with np.errstate(over="ignore", invalid="ignore"):
            images = expm(congruence(like(self.frame, vectors), fill_matrices(vectors, self.frame)))
        xp = array_namespace(images)
        bad = first_true(~xp.all(xp.isfinite(detached(images)), axis=(-2, -1)))
        if bad is not None:
            raise ValueError(f"vectors[{bad}] is too long: its matrix has entries past the range of float64.")
        if self.low_rank:
            return images
        back = [like(np.linalg.inv(factor), vectors) for factor in (self.factor, self.whitening)]
        return congruence(back[1], congruence(back[0], images))


@dataclass(frozen=True, eq=False)
class ViewEmbedding:
    """Embeddings of several views side by side, each times its scale, and a weighting of all together.

    Of samples of more views the first ones are taken.
    """

    views: tuple[Embedding, ...]
    scales: tuple[float, ...]
    size: int  # d, of samples: a view that is smaller is padded with the identity
    weighting: np.ndarray | None = None  # (p, q)

    @property
    def frame(self) -> Views:
        """Those of the views."""
        return Views(tuple(view.frame for view in self.views))

    @property
    def low_rank(self) -> bool:
        """Whether factors of low rank were learned."""
        return self.views[0].low_rank

    @property
    def rank(self) -> int | None:
        """Smallest rank that matrices of a view must have; None where they must be definite."""
        return min(len(view.factor) for view in self.views) if self.low_rank else None

    @property
    def distance(self) -> float:
        """How far the factors are from the start, in the mean square of the views."""
        return hypot(*(view.distance for view in self.views)) / sqrt(len(self.views))

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return sum(v.n_features for v in self.views) if self.weighting is None else self.weighting.shape[1]

    @property
    def components(self) -> np.ndarray:
        """Factors of all views, (views, m, d); what a smaller view has not is zero."""
        shape = (len(self.views), max(len(view.factor) for view in self.views), self.size)
        W = np.zeros(shape, self.views[0].components.dtype)
        for padded, view in zip(W, self.views, strict=True):
            padded[: len(view.factor), : len(view.basis)] = view.components
        return W

    @property
    def reference(self) -> np.ndarray:
        """The reference points, (views, d, d)."""
        return pad_views((view.reference for view in self.views), self.size)

    def update(self, change: Callable[..., Embedding], *arrays: np.ndarray) -> ViewEmbedding:
        """The same with every view changed, given what belongs to it of arrays (..., views, d, d)."""
        parts = [[take_view(A, v, len(view.basis)) for A in arrays] for v, view in enumerate(self.views)]
        return replace(self, views=tuple(map(lambda view, part: change(view, *part), self.views, parts)))

    def embed(self, X: Array, *, name: str = "X", first: int = 0) -> Array:
        """Vectors of checked samples, (n, views, d, d)."""
        xp, eye, vectors = array_namespace(X), like(np.eye(self.size), X), []
        for v, (view, scale) in enumerate(zip(self.views, self.scales, strict=True)):
            k, of_view = len(view.basis), f"{name}[:, {v}]"
            bad = first_true(xp.any(detached(X[:, v, k:, :]) != eye[k:, :], axis=(1, 2)))
            if bad is not None:
                raise ValueError(
                    f"{of_view}[{first + bad}] is not padded with the identity beyond {k} x {k}, the size of "
                    "that view in fit: make X with stack_views of the same views."
                )
            vectors.append(scale * view.embed(take_view(X, v, k), name=of_view, first=first))
        joined = xp.concat(vectors, axis=1)
        return joined if self.weighting is None else joined @ like(self.weighting, joined)

    def count_singular(self, X: np.ndarray) -> int:
        """How many of some matrices factors of low rank cannot compare."""
        parts = enumerate(self.views)
        return sum(view.count_singular(take_view(X, v, len(view.basis))) for v, view in parts)

    def restore(self, vectors: Array) -> Array:
        """Samples of vectors: the inverse of `embed`, as far as there is one for each view."""
        _check_restorable(self, vectors)
        parts = zip(self.views, self.scales, view_columns(self.frame.views), strict=True)
        matrices = [view.restore(vectors[:, columns] / scale) for view, scale, columns in parts]
        size = max(X.shape[-1] for X in matrices) if self.low_rank else self.size
        return pad_views(matrices, size)


AnyEmbedding = Embedding | ViewEmbedding


def embedding_at(start: Start | ViewStarts, point: Any, size: int | None = None) -> Any:
    """The embedding at a point in the coordinates of a start, of samples of some size.

    At full rank the factor is made symmetric: ``W W0 = U diag(sigma) V'`` is ``U V'`` times the symmetric
    ``V diag(sigma) V'``.
    """
    if isinstance(start, ViewStarts):
        points = (ProductPoint([view], None) for view in point.views)  # each by itself
        views = tuple(map(embedding_at, start.views, points))
        return ViewEmbedding(views, start.scales, size or max(len(view.basis) for view in views))
    Q = np.eye(len(point.factor), dtype=point.factor.dtype)
    if not point.low_rank:
        U, _, Vt = np.linalg.svd(point.factor @ start.factor)
        Q = U @ Vt
    return Embedding(*start, point.factor, Q, point.low_rank, float(np.linalg.norm(point.S)))


def turn_vectors(frame: Factor, vectors: np.ndarray) -> np.ndarray:
    """Vectors of ``Q' L Q``, of several views by the frame Q of each."""
    if isinstance(frame, Views):
        parts = zip(frame.views, view_columns(frame.views), strict=True)
        return np.concatenate([turn_vectors(Q, vectors[:, columns]) for Q, columns in parts], axis=1)
    return list_entries(congruence(frame.conj().T, fill_matrices(vectors, frame)))


def pad_views(views: Iterable[Array], size: int) -> Array:
    """Matrices (..., d_v, d_v) of views in one array (..., views, size, size), padded with the identity."""
    padded = []
    for X in views:
        xp, k = array_namespace(X), X.shape[-1]
        if k < size:
            whole = like(np.eye(size), X) + xp.zeros((*X.shape[:-2], size, size), dtype=X.dtype)
            whole[..., :k, :k] = X
            X = whole
        padded.append(X)
    return xp.stack(padded, axis=-3)


def _check_restorable(embedding: AnyEmbedding, vectors: Array) -> None:
    if embedding.weighting is not None:
        p, q = embedding.weighting.shape
        raise ValueError(
            f"Vectors with a weighting keep {q} of {p} directions, and no matrix can be made of them: "
            "learn with weighting=None, whose vectors have an inverse."
        )
    if vectors.ndim != 2 or vectors.shape[1] != embedding.n_features:
        expected, got = f"(n_matrices, {embedding.n_features})", tuple(vectors.shape)
        raise ValueError(f"Expected vectors of shape {expected}, got {got}.")


def _unit_rows(W: np.ndarray) -> np.ndarray:
    return W / np.linalg.norm(W, axis=1, keepdims=True)
