"""Accuracy, balanced accuracy, AUC, log loss, R², absolute error: each a mean of a value for each matrix.

Balanced accuracy, AUC and R² are no means over matrices: a value is the score plus the influence of the
matrix on it.  The mean of the values is the score, their standard error that of the score (for AUC the one of
[DeLong1988]_), and differences of two methods are paired as those of accuracies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class Score(NamedTuple):
    """What is counted, and how numbers of it are spoken of."""

    word: str
    axis: str = "per cent"
    sign: int = 1  # -1: less is better
    digits: int = 1
    share: bool = True  # between 0 and 1, shown in per cent, with errors never less than binomial ones
    regression: bool = False

    @property
    def scale(self) -> float:
        return 100.0 if self.share else 1.0

    @property
    def gain(self) -> str:
        """What is gained by being better."""
        own = f"of {self.word}" if self.regression else self.axis
        return "points" if self.share else own


SCORES = {
    "accuracy": Score("accuracy"),
    "balanced": Score("balanced accuracy"),
    "auc": Score("AUC"),
    "logloss": Score("log loss", "nats", -1, 3, share=False),
    "r2": Score("R²", "", 1, 2, share=False, regression=True),
    "mae": Score("mean absolute error", "in units of the target", -1, share=False, regression=True),
}

Rows = Sequence[np.ndarray]  # test matrices of each fold, as places among those tested


def compute_losses(probabilities: np.ndarray, classes: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Minus the logarithms (n,) of what was given to the true class, which may be none of the columns."""
    of_truth = np.sum(probabilities * (np.asarray(classes) == truth[:, None]), axis=1)
    return -np.log(np.clip(of_truth, np.finfo(np.float64).eps, 1.0))


def balance(right: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Values (n,) whose mean is the mean over classes of the share that is right."""
    classes, codes, counts = np.unique(truth, return_inverse=True, return_counts=True)
    of_class = np.bincount(codes, weights=right) / counts
    share = len(truth) / (len(classes) * counts)  # of a matrix, the larger, the smaller its class
    return of_class.mean() + share[codes] * (right - of_class[codes])


def explain_variance(truth: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Values (n,) whose mean is R²; it is a ratio, whose two parts both vary."""
    squares = (truth - truth.mean()) ** 2
    share = 1 - np.mean((truth - predicted) ** 2) / squares.mean()
    return share + ((1 - share) * squares - (truth - predicted) ** 2) / squares.mean()


def compute_auc(scores: np.ndarray, truth: np.ndarray, folds: Rows) -> np.ndarray | None:
    """Values (n,) whose mean is the AUC: of the second of two classes, or the mean of each against the rest.

    Only matrices of one fold are compared, for scores of different models have different scales.  None where
    no fold has two classes.
    """
    classes = range(1, 2) if scores.shape[1] == 1 else range(scores.shape[1])
    columns = [_auc_of(scores[:, c % scores.shape[1]], truth == c, folds) for c in classes]
    known = [values for values in columns if values is not None]
    return np.mean(known, axis=0) if known else None


def _auc_of(score: np.ndarray, own: np.ndarray, folds: Rows) -> np.ndarray | None:
    from scipy.stats import rankdata

    above, pairs = np.zeros(len(own)), np.zeros(len(own))  # of each matrix: pairs in order, and all
    for rows in folds:
        ranks = rankdata(score[rows])
        for side in (True, False):
            at = own[rows] == side
            below = ranks[at] - rankdata(score[rows[at]])  # how many of the other side, ties by half
            pairs[rows[at]] = len(rows) - at.sum()
            above[rows[at]] = below if side else pairs[rows[at]] - below
    total = pairs.sum() / 2
    if total == 0:
        return None
    area = above.sum() / 2 / total
    return area + len(own) * (above - area * pairs) / total
