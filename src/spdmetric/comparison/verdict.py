"""From labels to numbers with standard errors, and to the sentences that answer the question.

A matrix counts as right by the share of repeats in which it was labeled rightly.  Standard
errors are over matrices, or over groups where there are three or more; differences are
paired, matrix by matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spdmetric.comparison.run import Comparison
from spdmetric.evaluation.methods import METHODS, PAIRS

LEVEL = 0.95
MINUS = "\N{MINUS SIGN}"


class Estimate(NamedTuple):
    """A mean in per cent or points, its standard error, and half the width of its 95 % interval."""

    mean: float
    se: float
    half: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of zero, else 0."""
        return int(self.mean > self.half) - int(-self.mean > self.half)

    @property
    def known(self) -> bool:
        """Whether there is a standard error."""
        return bool(np.isfinite(self.se))

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.se:.1f}" if self.known else f"{self.mean:.1f}"


class Line(NamedTuple):
    """One method."""

    method: str
    accuracy: Estimate
    balanced: float  # mean of the accuracies of the classes, per cent
    behind: Estimate | None  # points behind the best; None for the best itself
    seconds: float


class Pair(NamedTuple):
    """Learning against no learning with one classifier."""

    learned: str
    plain: str
    head: str
    gain: Estimate


class Verdict(NamedTuple):
    """All lines, the best first."""

    lines: tuple[Line, ...]
    pairs: tuple[Pair, ...]
    chance: float  # share of the largest class, per cent
    n_clusters: int | None  # groups that the errors are over; None: matrices

    @property
    def best(self) -> Line:
        return self.lines[0]

    @property
    def tied(self) -> tuple[Line, ...]:
        """Methods whose distance to the best cannot be told from zero."""
        return tuple(line for line in self.lines if line.behind is not None and line.behind.sign == 0)


def estimate(values: np.ndarray, clusters: np.ndarray | None = None) -> Estimate:
    """Mean in per cent of shares (n,), its standard error over them, or over clusters (n,) of them."""
    from scipy.stats import t

    mean = values.mean()
    residuals = values - mean
    if clusters is not None:
        residuals = np.bincount(clusters, weights=residuals)
    k = len(residuals)
    se = float(np.sqrt(k / (k - 1) * np.sum(residuals**2)) / len(values)) if k > 1 else float("nan")
    half = float(t.ppf((1 + LEVEL) / 2, k - 1) * se) if k > 1 else float("inf")
    return Estimate(100 * float(mean), 100 * se, 100 * half)


def judge(comparison: Comparison) -> Verdict:
    """Reduce the labels to numbers."""
    plan = comparison.plan
    truth, clusters = plan.codes[plan.tested], plan.clusters  # where there are groups, all are tested
    right = {m: np.mean(labels == truth, axis=0) for m, labels in comparison.given.items()}
    if not right:
        raise ValueError("No method could be run: " + "; ".join(comparison.failed.values()))
    order = sorted(right, key=lambda m: -round(right[m].mean(), 12))  # equal ones in the order of the table
    best = right[order[0]]
    lines = tuple(
        Line(
            m,
            estimate(right[m], clusters),
            100 * float(np.mean([right[m][truth == c].mean() for c in np.unique(truth)])),
            None if m == order[0] else estimate(best - right[m], clusters),
            comparison.seconds[m],
        )
        for m in order
    )
    pairs = tuple(
        Pair(a, b, head, estimate(right[a] - right[b], clusters))
        for a, b, head in PAIRS  # the first of them is the one planned beforehand
        if a in right and b in right
    )
    chance = 100 * float(np.bincount(truth).max() / len(truth))
    return Verdict(lines, pairs, chance, None if clusters is None else int(clusters.max()) + 1)


def confusion(truth: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean count over repeats of each label (column) given to each class (row); codes, (n,) and (r, n)."""
    counts = np.zeros((n_classes, n_classes))
    for row in labels:
        np.add.at(counts, (truth, row), 1)
    return counts / len(labels)


def confused(counts: np.ndarray, most: int = 10) -> list[tuple[int, int, float, float]]:
    """What was confused most often, in a confusion (c, c): true class, label given, count, of how many."""
    wrong = counts * (1 - np.eye(len(counts)))
    places = np.argsort(-wrong, axis=None, kind="stable")[:most].tolist()
    pairs = [divmod(place, len(counts)) for place in places]
    return [(t, g, float(wrong[t, g]), float(counts[t].sum())) for t, g in pairs if wrong[t, g] > 0]


# ---------------------------------------------------------------------------
# Sentences


def sentences(verdict: Verdict) -> list[str]:
    """The answer: whether learning helps, which method is best, which distance suits."""
    said = (learning_sentence(verdict), best_sentence(verdict), metric_sentence(verdict))
    return [sentence for sentence in said if sentence is not None]


def title(method: str) -> str:
    """Name of a method."""
    return METHODS[method].title


def learning_sentence(verdict: Verdict) -> str:
    """Whether learning helps, by the comparison planned beforehand."""
    if not verdict.pairs:
        return "Whether learning helps was not asked: the methods to compare were not all run."
    first = verdict.pairs[0]
    answers = ("It cannot be shown that learning helps", "Learning helps here", "Learning hurts here")
    told = (
        f"{answers[first.gain.sign]}: with {first.head}, the metric learned by cross-validation gains "
        f"{_points(first.gain)} over no learning (the LogEuclidean metric at the mean)"
    )
    if first.gain.sign == 0:
        told += f", within the {first.gain.half:.1f} that chance allows"
    others = "; with ".join(f"{pair.head}, {_points(pair.gain)}" for pair in verdict.pairs[1:])
    return f"{told}. With {others}." if others else f"{told}."


def _points(gain: Estimate) -> str:
    error = f" ± {gain.se:.1f}" if gain.known else ""
    return f"{signed(gain.mean)}{error} points"


def signed(value: float) -> str:
    """``+3.5``, with a true minus sign."""
    return f"{'+' if value >= 0 else MINUS}{abs(value):.1f}"


def best_sentence(verdict: Verdict) -> str:
    """Which method is best, and how far that can be trusted."""
    best, others = verdict.best, len(verdict.lines) - 1
    told = f"The highest accuracy is {best.accuracy} %, of {title(best.method)}."
    if not others:
        return told
    tied = verdict.tied
    if not tied:
        return told + f" Each of the {others} others is behind it by more than chance allows."
    names = ", ".join(title(line.method) for line in tied[:4]) + (", ..." if len(tied) > 4 else "")
    return told + f" It cannot be told from {len(tied)} of the {others} others ({names})."


def metric_sentence(verdict: Verdict) -> str | None:
    """Which fixed distance suits the matrices."""
    fixed = [line for line in verdict.lines if METHODS[line.method].family == "distance"]
    if len(fixed) < 2:
        return None
    first, last = fixed[0], fixed[-1]
    return (
        f"Of the {len(fixed)} fixed distances, {title(first.method)} does best, {first.accuracy} %, "
        f"and {title(last.method)} worst, {last.accuracy} %; always guessing the largest class gives "
        f"{verdict.chance:.1f} %."
    )
