"""Alignment from mini-batches: moments that run along with the point.

Alignment is a ratio of moments of all matrices, ``|A|^2 / (|C| |B|)``, so the alignment of a
mini-batch is biased, and so is its gradient.  Given the moments, though, the gradient is a
plain sum over matrices.  Here the moments are running averages over the last mini-batches, and
only the sum is that of one mini-batch: the gradient of a composition [Wang2017]_.

Two things would spoil averages taken while W moves.  The frame of a factor may turn and jump,
so features are turned to the frame of the symmetric factor, which moves as smoothly as the
point.  And all features shift together, much further than they move apart; so they are taken
relative to the image of the centre, ``log(W W')``.  The shift changes no alignment, and its
derivative takes out of the gradient what all matrices of a batch have in common: most of the
noise.  Derivations: ``docs/math.md``, "Stochastic learning".
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from spdmetric.alignment import Misalignment, Moments
from spdmetric.matrices import congruence, symmetrize, unvech, vech
from spdmetric.stacks import PlainStack, moments_of, stack_of


class FramedPoint(Protocol):
    """A point of a manifold that knows how its factor is turned (see `spdmetric.manifolds`)."""

    factor: np.ndarray  # W, (m, d)

    @property
    def frame(self) -> np.ndarray: ...
    def gradient(self, function: Any) -> np.ndarray: ...


class RunningMisalignment:
    """``1 - alignment`` of matrices that are looked at a mini-batch at a time.

    Parameters
    ----------
    X : array of shape (n, d, d)
        SPD matrices whitened by the centre; anything that gives arrays for an array of
        ascending row numbers.
    Y : array of shape (n, c)
        One column a class: 1 for the class of the matrix, else 0.
    weight : array of shape (n, 1)
        Positive weights.
    """

    def __init__(self, X: Any, Y: np.ndarray, weight: np.ndarray):
        self.X, self.Y, self.weight = X, Y, weight
        self.n: int = X.shape[0]

    @classmethod
    def of(cls, objective: Misalignment) -> RunningMisalignment:
        """The same data, for a solver that wants mini-batches."""
        targets = [block.target for block in objective.blocks]
        # Centred one-hot codes are positive in the column of the class, and nowhere else.
        Y = np.concatenate([target.Y for target in targets]) > 0
        return cls(objective.blocks[0].X, Y.astype(float), np.concatenate([t.weight for t in targets]))

    def at(self, point: FramedPoint) -> Sample:
        """Evaluate all rows at once, which is exact."""
        return self.sample(np.arange(self.n), point)

    def sample(
        self, rows: np.ndarray, point: FramedPoint, memory: Memory | None = None, share: float = 1.0
    ) -> Sample:
        """Evaluate some rows, with moments of which ``share`` is new and the rest is remembered."""
        stack = stack_of(np.asarray(self.X[rows], dtype=float), self.n)
        return Sample(_Batch(stack, self.Y[rows], self.weight[rows]), point, memory, share)


class Memory(NamedTuple):
    """Running moments, and by how much chance has lengthened A and C.

    Sums of n random terms are longer than their expectation, in the mean by the squares of
    the terms.  The squares are summed beside them, to be taken off.
    """

    moments: Moments
    A_excess: float
    C_excess: float

    def faded(self, keep: float) -> Memory:
        """The same of matrices that count less than they did."""
        m = self.moments
        m = m._replace(weight=keep * m.weight, A=keep * m.A, C=keep * m.C)
        return Memory(m, keep**2 * self.A_excess, keep**2 * self.C_excess)

    def merge(self, other: Memory) -> Memory:
        return Memory(
            self.moments.merge(other.moments),
            self.A_excess + other.A_excess,
            self.C_excess + other.C_excess,
        )

    @property
    def norms(self) -> Norms:
        """Squares of the norms of A and C without excess, and the norm of B."""
        m = self.moments
        C = np.asarray(m.C)
        A_square = max(float(np.sum(m.A**2)) - self.A_excess, 0.0)
        # No C of this trace is shorter.
        C_square = max(float(np.sum(C**2)) - self.C_excess, float(np.trace(C)) ** 2 / C.shape[0])
        q = m.target_mean  # of one-hot codes: B is weight (diag(q) - q q')
        return Norms(A_square, C_square, m.weight * float(np.linalg.norm(np.diag(q) - np.outer(q, q))))


class Norms(NamedTuple):
    """All that the value needs."""

    A_square: float
    C_square: float
    B: float

    @property
    def alignment(self) -> float:
        """0 as long as there is one class, or one matrix."""
        scale = np.sqrt(self.C_square) * self.B
        return float(self.A_square / scale) if scale > 0 else 0.0


class _Batch(NamedTuple):
    stack: Any
    Y: np.ndarray
    weight: np.ndarray


class Sample:
    """A mini-batch at a point: value from running moments, gradient from the batch.

    ``memory`` is what the next sample should remember.  The gradient is taken with the
    moments of *other* matrices, those remembered before: with its own among them, the batch
    would praise its own noise.  Without a memory it is that of the batch alone.
    """

    def __init__(self, batch: _Batch, point: FramedPoint, memory: Memory | None, share: float):
        self.point, self._batch = point, batch
        d = point.factor.shape[1]
        self._here = batch.stack.decompose(point.factor)
        self._centre = PlainStack(np.eye(d)[None]).decompose(point.factor)
        self._features = _turned(point.frame, self._here.features - self._centre.features)
        if not np.isfinite(self._features).all():
            raise ValueError(
                "At this distance from its start the reference point is too close to singular to compare "
                "these matrices in float64: learn with a smaller radius."
            )
        own = Moments(*moments_of(self._features, batch.Y, batch.weight, gram=False))
        self._weight = own.weight
        exact = Memory(own, 0.0, 0.0)
        self._given = exact if memory is None else memory
        self.memory = self._remembered(own, memory, 1 - share)
        self._norms = (exact if memory is None else self.memory).norms

    def _remembered(self, own: Moments, memory: Memory | None, keep: float) -> Memory:
        centre = own if memory is None else memory.faded(keep).moments.merge(own)
        w, Y = self._batch.weight[:, 0], self._batch.Y - centre.target_mean
        squares = np.sum((self._features - centre.mean) ** 2, axis=1)
        new = Memory(
            own, float(np.sum(w**2 * squares * np.sum(Y**2, axis=1))), float(np.sum(w**2 * squares**2))
        )
        return new if memory is None else memory.faded(keep).merge(new)

    @property
    def value(self) -> float:
        """The misalignment, from running moments."""
        return 1.0 - self.alignment

    @property
    def alignment(self) -> float:
        """Centred kernel-target alignment; 0 as long as there is one class, or one matrix."""
        return self._norms.alignment

    @cached_property
    def gradient(self) -> np.ndarray:
        """Estimate of the gradient, in the coordinates of the manifold."""
        return self.point.gradient(self)

    @cached_property
    def frame_gradient(self) -> np.ndarray:
        """Estimate of the Riemannian gradient, in the frame of the factor."""
        M = self._cotangent
        xi = symmetrize(self._here.pull(M) - self._centre.pull(M.sum(axis=0, keepdims=True)))
        # f(cG) = f(G): no trace, and none left in by rounding.
        return xi - np.trace(xi) / xi.shape[0] * np.eye(xi.shape[0])

    @cached_property
    def factor_gradient(self) -> np.ndarray:
        """Estimate of the derivative in the entries of the factor, (m, d)."""
        M = self._cotangent
        return np.asarray(self._here.pull_factor(M) - self._centre.pull_factor(M.sum(axis=0, keepdims=True)))

    def hvp(self, eta: np.ndarray) -> np.ndarray:
        """Not known from a mini-batch."""
        raise TypeError("Mini-batches give first derivatives only.")

    @cached_property
    def _cotangent(self) -> np.ndarray:
        """Derivative of the misalignment in the features of the batch, as if it were all the data."""
        norms, given, (_, Y, weight) = self._given.norms, self._given.moments, self._batch
        if norms.C_square == 0 or norms.B == 0:
            return np.zeros_like(self._features)
        scale = -2 / (np.sqrt(norms.C_square) * norms.B) * (given.weight / self._weight)
        ratio = norms.A_square / norms.C_square
        M = (Y - given.target_mean) @ given.A.T - ratio * ((self._features - given.mean) @ given.C)
        return _turned(self.point.frame.T, scale * weight * M)


def _turned(Q: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors of the matrices ``Q L Q'``."""
    return vech(congruence(Q, unvech(vectors)))
