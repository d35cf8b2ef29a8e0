"""What a fitted metric knows: the way from SPD matrices to vectors, and back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from spdmetric.linalg.batch import count_features, make_stack, view_columns
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
from spdmetric.objectives.data import take_view
from spdmetric.objectives.start import Start
from spdmetric.validation import first_true, is_tensor

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Embedding:
    """The vectors ``vech(Q' log(W W0 X W0' W') Q)`` of matrices X, times a weighting if there is one.

    Those of several views stand side by side, each times its scale; of samples of more views the first ones
    are taken.  The fields are all there is to know, so ``Embedding(**fields)`` makes the same one again.
    """

    # Of each view; matrices without this axis are one view.
    starts: tuple[Start, ...]  # whose centers are G0, or means of the session that the metric was carried to
    factors: tuple[np.ndarray, ...]  # (m, k), W, which the solver found, in the coordinates of the start
    frames: tuple[np.ndarray, ...]  # (m, m), Q, orthogonal: vectors of all sessions are in one frame
    scales: tuple[float, ...]
    size: int | None  # d, of samples: a smaller view is padded with the identity; None without this axis
    low_rank: bool  # whether factors of low rank were learned instead of a reference point
    distance: float  # how far the factors are from the start, in the mean square of the views
    session_weight: float = 0.0  # of the matrices of a new session that the centers are the means of
    weighting: np.ndarray | None = None  # (p, q), how much each direction of the p entries counts
    # (d, d), means of a domain that matrices are whitened by before all else; None: they are whitened
    # already, or the metric was learned without domains.
    domain_means: tuple[np.ndarray, ...] | None = None

    @property
    def means(self) -> list[np.ndarray]:
        """What matrices are whitened by first, (d, d): means of a domain or session, or the starts."""
        if self.domain_means is not None:
            return list(self.domain_means)
        return [congruence(start.basis, start.center) for start in self.starts]

    def moved(self, means: Iterable[np.ndarray]) -> Embedding:
        """The same with other such points."""
        if self.domain_means is not None:
            return replace(self, domain_means=tuple(means))
        pairs = zip(self.starts, means, strict=True)
        starts = [one._replace(center=congruence(one.basis.conj().T, mean)) for one, mean in pairs]
        return replace(self, starts=tuple(starts))

    def of_view(self, v: int) -> Embedding:
        """That of one view alone."""
        one = slice(v, v + 1)
        means = None if self.domain_means is None else self.domain_means[one]
        parts = self.starts[one], self.factors[one], self.frames[one], (1.0,)
        return Embedding(*parts, None, self.low_rank, self.distance, self.session_weight, None, means)

    @property
    def rank(self) -> int | None:
        """Smallest rank that matrices must have; None where they must be definite."""
        return min(map(len, self.factors)) if self.low_rank else None

    @property
    def n_features(self) -> int:
        """Length of the vectors."""
        return sum(map(count_features, self.factors)) if self.weighting is None else self.weighting.shape[1]

    @lazy
    def whitening(self) -> list[np.ndarray]:
        """W0 of each view, of shape (k, d)."""
        factors = [start.factor for start in self.starts]
        if self.domain_means is None:
            return factors
        return [W0 @ invsqrtm(mean) for W0, mean in zip(factors, self.domain_means, strict=True)]

    @lazy
    def components(self) -> np.ndarray:
        """``Q'W W0``, at full rank ``G^{-1/2}``: (m, d), or (views, m, d) with zeros beyond small views."""
        parts = zip(self.frames, self.factors, self.whitening, strict=True)
        found = [Q.conj().T @ W @ W0 for Q, W, W0 in parts]
        if self.size is None:
            return found[0]
        m, d = max(map(len, found)), self.size
        return np.stack([np.pad(part, ((0, m - len(part)), (0, d - part.shape[1]))) for part in found])

    @lazy
    def reference(self) -> np.ndarray:
        """The reference points G, (d, d) or (views, d, d); without meaning at low rank."""
        points = []
        for W, W0 in zip(self.factors, self.whitening, strict=True):
            _, sigma, Vt = np.linalg.svd(W @ W0)
            points.append(symmetrize((Vt.conj().T / sigma**2) @ Vt))
        return points[0] if self.size is None else pad_views(points, self.size)

    def split(self, X: Array) -> list[Array]:
        """The views of samples, or of their means, each of its own size; or matrices as they are."""
        if self.size is None:
            return [X]
        return [take_view(X, v, len(start.basis)) for v, start in enumerate(self.starts)]

    def embed(self, X: Array, *, name: str = "X", first: int = 0) -> Array:
        """Vectors of checked matrices, where these are; ``name`` and ``first`` are for errors."""
        if self.size is None:
            vectors = self._embed_view(0, X, name, first)
        else:
            xp, eye, parts = array_namespace(X), like(np.eye(self.size), X), []
            for v, view in enumerate(self.split(X)):
                k, of_view = view.shape[-1], f"{name}[:, {v}]"
                bad = first_true(xp.any(detached(X[:, v, k:, :]) != eye[k:, :], axis=(1, 2)))
                if bad is not None:
                    raise ValueError(
                        f"{of_view}[{first + bad}] is not padded with the identity beyond {k} x {k}, the "
                        "size of that view in fit: make X with stack_views of the same views."
                    )
                parts.append(self.scales[v] * self._embed_view(v, view, of_view, first))
            vectors = xp.concat(parts, axis=1)
        return vectors if self.weighting is None else vectors @ like(self.weighting, vectors)

    def _embed_view(self, v: int, X: Array, name: str, first: int) -> Array:
        """Vectors of a view, in the coordinates of the graded factor W, which keeps its digits far out."""
        W, Q, xp = self.factors[v], self.frames[v], array_namespace(X)
        if is_complex(X) and not is_complex(W):
            raise ValueError(
                f"{name} is complex, and this metric was fitted on real matrices: fit it on complex ones, or "
                f"pass {name}.real if the imaginary parts mean nothing."
            )
        whitened = congruence(like(self.whitening[v], X), X)
        if is_tensor(X):
            logs = logm(congruence(like(W, X), whitened))
        else:
            logs = fill_matrices(make_stack(whitened).decompose(W).features, Q)
        bad = first_true(~xp.all(xp.isfinite(detached(logs)), axis=(-2, -1)))
        if bad is not None and not self.low_rank:
            raise ValueError(
                f"At a distance of {self.distance:.3g} from its start the reference point is too close to "
                f"singular to compare {name}[{first + bad}] in float64: learn with a smaller radius."
            )
        if self.low_rank and bad is None:
            A, rows = detached(whitened), like(W / np.linalg.norm(W, axis=1, keepdims=True), X)
            smallest, traces = xp.linalg.eigvalsh(congruence(rows, A))[:, 0], xp.linalg.trace(A)
            traces = xp.real(traces) if is_complex(traces) else traces
            bad = first_true(smallest <= A.shape[-1] * _EPS * traces)  # zero, but for rounding
        if bad is not None:
            raise ValueError(
                f"{name}[{first + bad}] is singular on the directions that this metric of rank {len(W)} "
                "sees, so that its logarithm is unbounded: learn with a smaller rank, or drop that matrix."
            )
        return list_entries(congruence(like(adjoint(Q), X), logs))

    def turn(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors at the factors, ``vech(L)`` side by side, in the frames of the embedding."""
        parts = zip(self.frames, view_columns(self.frames), strict=True)
        turned = [list_entries(congruence(Q.conj().T, fill_matrices(vectors[:, at], Q))) for Q, at in parts]
        return turned[0] if self.size is None else np.concatenate(turned, axis=1)

    def restore(self, vectors: Array) -> Array:
        """Matrices of vectors, where these are, the inverse of `embed`; at low rank the images ``W X W'``."""
        if self.weighting is not None:
            p, q = self.weighting.shape
            raise ValueError(
                f"Vectors with a weighting keep {q} of {p} directions, and no matrix can be made of them: "
                "learn with weighting=None, whose vectors have an inverse."
            )
        xp, matrices = array_namespace(vectors), []
        if is_complex(vectors):
            raise ValueError("vectors is complex: complex data not supported, expected real numbers.")
        if vectors.ndim != 2 or vectors.shape[1] != self.n_features:
            expected, got = f"(n_matrices, {self.n_features})", tuple(vectors.shape)
            raise ValueError(f"Expected vectors of shape {expected}, got {got}.")
        if (bad := first_true(~xp.all(xp.isfinite(detached(vectors)), axis=1))) is not None:
            raise ValueError(f"vectors[{bad}] contains NaN or infinity: expected finite numbers.")
        for v, (Q, columns) in enumerate(zip(self.frames, view_columns(self.frames), strict=True)):
            with np.errstate(over="ignore", invalid="ignore"):
                logs = fill_matrices(vectors[:, columns] / self.scales[v], Q)
                images = expm(congruence(like(Q, vectors), logs))
            bad = first_true(~xp.all(xp.isfinite(detached(images)), axis=(-2, -1)))
            if bad is not None:
                raise ValueError(
                    f"vectors[{bad}] is too long: its matrix has entries past the range of float64."
                )
            for factor in () if self.low_rank else (self.factors[v], self.whitening[v]):
                images = congruence(like(np.linalg.inv(factor), vectors), images)
            matrices.append(images)
        if self.size is None:
            return matrices[0]
        return pad_views(matrices, max(X.shape[-1] for X in matrices) if self.low_rank else self.size)


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
