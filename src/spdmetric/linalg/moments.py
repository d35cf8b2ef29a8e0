"""Moments of features and targets: what the alignment is computed from, chunk by chunk."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from scipy.linalg.blas import dger


class Moments(NamedTuple):
    """Moments of a chunk of features about its own means, ready to be merged."""

    weight: float
    mean: np.ndarray  # (p,)
    target_mean: np.ndarray  # (c,)
    A: np.ndarray  # (p, c)
    C: np.ndarray | float  # (p, p), or 0 where the Gram form makes it unnecessary

    def merge(self, other: Moments, *, overwrite: bool = False) -> Moments:
        """Moments of both chunks together [Chan1983]_: no cancellation.

        With ``overwrite`` this C is written over: fresh memory for each merge costs more than the sums.
        """
        weight = self.weight + other.weight
        share = other.weight / weight
        with np.errstate(invalid="ignore"):  # of what has left float64
            step, target_step = other.mean - self.mean, other.target_mean - self.target_mean
            across = (self.weight * share) * step
            C = self.C
            if isinstance(C, np.ndarray):
                C = C if overwrite else C.copy()
                C += other.C
                C = dger(1.0, step, across, a=C.T, overwrite_a=1).T  # in place
            return Moments(
                weight,
                self.mean + share * step,
                self.target_mean + share * target_step,
                self.A + other.A + np.outer(across, target_step),
                C,
            )


class Summary(NamedTuple):
    """What is sent from where the moments are: p c numbers instead of p^2."""

    weight: float
    mean: np.ndarray  # (p,)
    A: np.ndarray  # (p, c)
    C_norm: float
    C_trace: float

    @classmethod
    def from_moments(cls, moments: Moments) -> Summary:
        """All but C itself."""
        C = np.atleast_2d(moments.C)
        return cls(moments.weight, moments.mean, moments.A, sqrt(np.vdot(C, C)), float(np.trace(C)))


def compute_moments(
    features: np.ndarray, Y: np.ndarray, weight: np.ndarray, *, gram: bool = False
) -> Moments:
    """Moments of features (n, p) and targets (n, c) with weights (n, 1) about their means.

    C is 0 where the Gram form replaces it.  Features that are not finite show in the mean.
    """
    total = float(weight.sum())
    mean, target_mean = (weight.T @ features)[0] / total, (weight.T @ Y)[0] / total
    root = np.sqrt(weight)
    # Infinite features are not an error here: the mean tells of them.
    with np.errstate(invalid="ignore"):
        R = features - mean
        if (root != 1.0).any():  # mostly they are, and a pass over R is saved
            R *= root
        A = R.T @ (root * (Y - target_mean))
        # R'R, of one array with itself, takes NumPy half the time of another product.
        return Moments(total, mean, target_mean, A, 0.0 if gram else R.T @ R)
