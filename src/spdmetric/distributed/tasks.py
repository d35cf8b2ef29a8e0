"""What the workers do with their chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple, TypeVar

import numpy as np

from spdmetric.geometry import chunks
from spdmetric.linalg.batch import Stack, stack_of
from spdmetric.linalg.moments import Moments
from spdmetric.linalg.symmetric import congruence, symmetrize
from spdmetric.linalg.threads import one_thread
from spdmetric.objectives.alignment import Cotangents, Part, Target, default_chunk_size, squares_of
from spdmetric.objectives.weighting import (
    Errors,
    FeatureRidge,
    Targets,
    Weighting,
    discriminant_weighting,
    tried,
)
from spdmetric.validation import (
    as_numpy,
    check_label_kind,
    check_weight_values,
    checked_chunk,
    weight_range,
)

Value = TypeVar("Value", float, np.ndarray, Errors)
Weight = np.ndarray | None


class Survey(NamedTuple):
    """What a chunk says of itself before learning starts."""

    labels: np.ndarray  # those that occur
    weights: np.ndarray  # the weight of each
    range: tuple[float, float]  # smallest and largest positive weight
    symmetric: bool  # to the last digit
    complaint: str | None  # why it cannot be used


class Block(NamedTuple):
    """A chunk on a worker."""

    X: np.ndarray
    codes: np.ndarray
    weight: np.ndarray
    symmetric: bool

    @property
    def matrices(self) -> np.ndarray:
        X = self.X.astype(np.float64, copy=False)
        return X if self.symmetric else symmetrize(X)


class Prepared(NamedTuple):
    """A piece of a chunk, whitened and packed, with its targets."""

    stack: Stack
    rows: slice
    target: Target


# Dask moves small things to where there is time for them; it must know that these are not small.


@dataclass(frozen=True)
class Pieces:
    """A chunk, whitened."""

    pieces: list[Prepared]

    def parts(self, W: np.ndarray) -> Iterator[Part]:
        """Decompose the pieces, one at a time."""
        return (Part(stack.decompose(W), rows, target) for stack, rows, target in self.pieces)

    def __sizeof__(self) -> int:
        return sum(8 * piece.target.Y.shape[0] * piece.stack.d**2 for piece in self.pieces)


@dataclass(frozen=True)
class Decomposed:
    """A chunk at one point."""

    moments: Moments
    parts: list[Part]  # none where they are not kept

    def __sizeof__(self) -> int:
        p = self.moments.mean.size
        return 8 * p * p + sum(8 * part.features.shape[0] * 3 * p for part in self.parts)


class Summary(NamedTuple):
    """What the client needs to know of the moments."""

    weight: float
    mean: np.ndarray  # (p,)
    A_squares: np.ndarray  # (m, m)
    C_norm: float
    C_trace: float


@one_thread
def survey(
    X: np.ndarray, y: np.ndarray, weight: Weight, k: int, rows: slice, *, rank: int | None, n_chunks: int
) -> Survey:
    """Check a chunk, and count its labels."""
    try:
        X = as_numpy(X, "X")
        checked_chunk(X, rank, k, rows, n_chunks)
        weight = np.ones(len(X)) if weight is None else check_weight_values(weight, rows.start)
        labels, codes = np.unique(_labels(y, rows.start), return_inverse=True)
        weights = np.bincount(codes, weights=weight)
    except (ValueError, TypeError) as error:
        return Survey(np.empty(0), np.empty(0), (np.inf, 0.0), True, str(error))
    symmetric = np.array_equal(X, X.transpose(0, 2, 1))
    return Survey(labels, weights, weight_range(weight), symmetric, None)


def _labels(y: np.ndarray, first: int = 0) -> np.ndarray:
    return check_label_kind(as_numpy(y, "y"), "y", first)


def label(
    X: np.ndarray, y: np.ndarray, weight: Weight, symmetric: bool, *, classes: np.ndarray, scale: np.ndarray
) -> Block:
    """Turn labels into codes and scale the weights by class; matrices without weight are left out."""
    X, codes = np.asarray(X), np.searchsorted(classes, _labels(y))
    weight = (np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)) * scale[codes]
    counts = weight > 0
    if counts.all():
        return Block(X, codes, weight, symmetric)
    return Block(X[counts], codes[counts], weight[counts], symmetric)


@one_thread
def apply(f: Callable[[np.ndarray, np.ndarray, np.ndarray], Value], block: Block) -> Value:
    """Apply a function of (X, codes, weight), piece by piece."""
    X = block.matrices
    pieces = chunks(len(X), piece_size(X.shape[-1]))
    return reduce(add, (f(X[rows], block.codes[rows], block.weight[rows]) for rows in pieces))


def add_all(values: list[Value]) -> Value:
    """Sum of values, from left to right."""
    return reduce(add, values)


def piece_size(d: int) -> int:
    """Matrices handled at a time on a worker.

    Dask has its workers give memory back at once, and to be given it anew page by page took half
    of the time of an evaluation.  NumPy asks for huge pages for arrays of 4 MB or more: features
    of twice that size make it do so, and cost little for leaving the cache.
    """
    return max(default_chunk_size(d), 2**23 // (4 * d * (d + 1)))


@one_thread
def prepare(block: Block, *, factor: np.ndarray, target_mean: np.ndarray, n: int) -> Pieces:
    """Whiten a chunk and cut it into pieces."""
    X, Y = block.matrices, np.eye(target_mean.size)[block.codes] - target_mean
    pieces = [
        Prepared(
            stack_of(congruence(factor, X[rows]), n, again=True),
            rows,
            Target(Y[rows], block.weight[rows, None]),
        )
        for rows in chunks(len(X), piece_size(factor.shape[0]))
    ]
    return Pieces(pieces)


@one_thread
def decompose(pieces: Pieces, *, W: np.ndarray, keep: bool) -> Decomposed:
    """The first pass over a chunk."""
    kept: list[Part] = []
    merged: Moments | None = None
    for part in pieces.parts(W):
        moments = part.decomposition.moments(*part.target, gram=False)
        merged = moments if merged is None else merged.merge(moments)
        if keep:
            kept.append(part)
    assert merged is not None  # empty chunks are left out
    return Decomposed(merged, kept)


def moments_of(here: Decomposed) -> Moments:
    """The moments alone: they travel, the parts do not."""
    return here.moments


@one_thread
def merge_moments(moments: list[Moments]) -> Moments:
    """Moments of all chunks together, merged from left to right."""
    return reduce(Moments.merge, moments)


def summarize(moments: Moments) -> Summary:
    """What is sent to the client: p numbers instead of p^2."""
    A, C = moments.A, np.asarray(moments.C)
    C_norm = float(np.sqrt(np.vdot(C, C)))
    return Summary(moments.weight, moments.mean, squares_of(A), C_norm, float(np.trace(C)))


@one_thread
def pull_back(
    pieces: Pieces | None, here: Decomposed, cotangents: Cotangents, *, W: np.ndarray, pull: str
) -> np.ndarray:
    """The second pass over a chunk; it is decomposed again if it was not kept."""
    parts = _parts(pieces, here, W)
    return reduce(add, (getattr(part.decomposition, pull)(cotangents.rows(part)) for part in parts))


def _parts(pieces: Pieces | None, here: Decomposed, W: np.ndarray) -> Iterable[Part]:
    return here.parts if pieces is None else pieces.parts(W)


# -- the weighting


def class_counts(pieces: Pieces) -> np.ndarray:
    """Matrices of each class in a chunk."""
    counts = [piece.target.counts for piece in pieces.pieces]
    return reduce(add, (of_piece for of_piece in counts if of_piece is not None))


def weight_squares(pieces: Pieces) -> float:
    """Sum of the squared weights of a chunk."""
    return float(sum(np.sum(piece.target.weight**2) for piece in pieces.pieces))


@one_thread
def ridge_of(
    moments: Moments, target_squares: np.ndarray, weight_squares: float, n_classes: int, learned: bool
) -> FeatureRidge:
    """The regression of the targets on the features of all chunks."""
    per_class = moments.weight**2 / weight_squares / n_classes
    ridge = FeatureRidge.of(np.asarray(moments.C), moments.A, target_squares, moments.weight, per_class)
    return tried(ridge, learned=learned)


@one_thread
def left_out(
    pieces: Pieces | None,
    here: Decomposed,
    ridge: FeatureRidge,
    *,
    W: np.ndarray,
    mean: np.ndarray,
    counts: np.ndarray,
) -> Errors:
    """Errors of a chunk, each matrix left out in turn."""
    return reduce(add, (part.left_out(ridge, mean, counts) for part in _parts(pieces, here, W)))


@one_thread
def vectors_of(pieces: Pieces | None, here: Decomposed, *, W: np.ndarray) -> list[tuple[np.ndarray, Target]]:
    """The features of a chunk, with their targets."""
    return [(part.features, part.target) for part in _parts(pieces, here, W)]


@one_thread
def weighting_of_few(chunks: list[list[tuple[np.ndarray, Target]]], learned: bool) -> Weighting:
    """The weighting of the vectors of all chunks, brought together."""
    found = [piece for chunk in chunks for piece in chunk]
    features = np.concatenate([features for features, _ in found])
    target = Target(*map(np.concatenate, zip(*(target for _, target in found), strict=True)))
    targets = Targets.of_centered(target.Y, target.weight[:, 0], target.counts)
    return discriminant_weighting(features, targets, learned=learned)
