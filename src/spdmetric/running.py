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
        self, rows: np.ndarray, point: FramedPoint, memory: Moments | None = None, share: float = 1.0
    ) -> Sample:
        """Evaluate some rows, with moments of which ``share`` is new and the rest is remembered."""
        stack = stack_of(np.asarray(self.X[rows], dtype=float), self.n)
        return Sample(_Batch(stack, self.Y[rows], self.weight[rows]), point, memory, share)


class _Batch(NamedTuple):
    stack: Any
    Y: np.ndarray
    weight: np.ndarray


class Sample:
    """A mini-batch at a point: value from running moments, gradient from the batch.

    ``memory`` is what the next sample should remember.
    """

    def __init__(self, batch: _Batch, point: FramedPoint, memory: Moments | None, share: float):
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
        new = Moments(*moments_of(self._features, batch.Y, batch.weight, gram=False))
        self._batch_weight = new.weight
        self.memory = new if memory is None or share == 1 else _faded(memory, 1 - share).merge(new)

    @property
    def value(self) -> float:
        """The misalignment, from running moments."""
        return 1.0 - self.alignment

    @property
    def alignment(self) -> float:
        """Centred kernel-target alignment; 0 as long as there is one class, or one matrix."""
        return self._A_square / self._norms if self._norms > 0 else 0.0

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

    def frame_hvp(self, xi: np.ndarray) -> np.ndarray:
        """Not known from a mini-batch."""
        raise TypeError("Mini-batches give first derivatives only.")

    @cached_property
    def _A_square(self) -> float:
        return float(np.sum(self.memory.A**2))

    @cached_property
    def _C_norm(self) -> float:
        return float(np.linalg.norm(self.memory.C))

    @cached_property
    def _norms(self) -> float:
        """``|C| |B|``; of one-hot codes with means q, B is ``weight (diag(q) - q q')``."""
        q = self.memory.target_mean
        return self._C_norm * self.memory.weight * float(np.linalg.norm(np.diag(q) - np.outer(q, q)))

    @cached_property
    def _cotangent(self) -> np.ndarray:
        """Derivative of the misalignment in the features of the batch, as if it were all the data."""
        if self._norms == 0:
            return np.zeros_like(self._features)
        memory, (_, Y, weight) = self.memory, self._batch
        scale = -2 / self._norms * (memory.weight / self._batch_weight)
        ratio = self._A_square / self._C_norm**2
        M = (Y - memory.target_mean) @ memory.A.T - ratio * ((self._features - memory.mean) @ memory.C)
        return _turned(self.point.frame.T, scale * weight * M)


def _turned(Q: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors of the matrices ``Q L Q'``."""
    return vech(congruence(Q, unvech(vectors)))


def _faded(memory: Moments, keep: float) -> Moments:
    """Moments of matrices that count less than they did."""
    return memory._replace(weight=keep * memory.weight, A=keep * memory.A, C=keep * memory.C)
