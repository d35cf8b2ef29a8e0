"""From labels to numbers with standard errors, and to the sentences that answer the question.

A matrix counts by the mean of its values (see `scores`) over the repeats.  Standard errors are over
matrices, or over groups where there are three or more; differences are paired, matrix by matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spdmetric.comparison.methods import METHODS, PAIRS
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.run import Comparison, Outcome
from spdmetric.comparison.scores import SCORES, Score, balance, compute_auc


class Estimate(NamedTuple):
    """A mean, its standard error, and half the width of its 95 % interval, as they are shown."""

    mean: float
    se: float
    half: float
    digits: int = 1

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of zero, else 0."""
        return int(self.mean > self.half) - int(-self.mean > self.half)

    @property
    def signed(self) -> str:
        """``+3.5 ± 1.0``, with a true minus sign."""
        return f"{self._sign(self.mean)} ± {self.se:.{self.digits}f}"

    @property
    def interval(self) -> str:
        """``-1.0 to +3.0``, likewise."""
        return f"{self._sign(self.mean - self.half)} to {self._sign(self.mean + self.half)}"

    def __str__(self) -> str:
        return f"{self.mean:.{self.digits}f} ± {self.se:.{self.digits}f}"

    def _sign(self, value: float) -> str:
        return f"{value + 0.0:+.{self.digits}f}".replace("-", "\N{MINUS SIGN}")


class Line(NamedTuple):
    """One method, on the matrices as they are or recentered."""

    entry: Entry
    scores: dict[str, Estimate | None]  # by SCORES; None where the method does not give what it takes
    behind: Estimate | None  # behind the best in the score that decides; None for the best itself
    seconds: float

    @property
    def tied(self) -> bool:
        """Whether its distance to the best may be zero."""
        return self.behind is not None and self.behind.sign == 0


class Verdict(NamedTuple):
    """All lines, the best first; those without the score that decides last."""

    plan: Plan
    lines: tuple[Line, ...]
    learning: dict[tuple[Entry, Entry], Estimate]  # gains of PAIRS, as the matrices are; then recentered
    recentering: dict[Entry, Estimate]  # gains, by the method that is not recentered

    @property
    def best(self) -> Line:
        return self.lines[0]

    @property
    def ranked(self) -> tuple[Line, ...]:
        """Those that have the score that decides."""
        return tuple(line for line in self.lines if line.scores[self.plan.scoring] is not None)

    @property
    def unaided(self) -> list[str]:
        """Methods that can label one new matrix alone, without recentering, the best first."""
        return [line.entry.method for line in self.lines if not line.entry.recentered]

    @property
    def learned(self) -> str | None:
        """The first of them with a learned metric, which is drawn; None where none has one."""
        return next((method for method in self.unaided if METHODS[method].family == "learned"), None)

    @property
    def criterion(self) -> Score:
        """The score that decides."""
        return SCORES[self.plan.scoring]

    @property
    def chance(self) -> float:
        """Score of guessing."""
        counts = np.bincount(self.plan.codes[self.plan.tested])
        shares = counts[counts > 0] / counts.sum()
        entropy = -np.sum(shares * np.log(shares))
        scores = {"accuracy": shares.max(), "balanced": 1 / len(shares), "auc": 0.5, "logloss": entropy}
        return self.criterion.scale * float(scores[self.plan.scoring])

    def score(self, entry: Entry) -> Estimate:
        """The score that decides, of a method that has it."""
        found = next(line for line in self.lines if line.entry == entry).scores[self.plan.scoring]
        assert found is not None  # only those that have it are ranked
        return found


def estimate(
    values: np.ndarray, clusters: np.ndarray | None = None, score: Score = SCORES["accuracy"]
) -> Estimate:
    """Mean of values (n,) of a score, its standard error over them, or over clusters (n,) of them."""
    from scipy.stats import t

    mean = values.mean()
    residuals = values - mean
    if clusters is not None:
        residuals = np.bincount(clusters, weights=residuals)
    k = len(residuals)
    se = float(np.sqrt(k / (k - 1) * np.sum(residuals**2)) / len(values))
    half = float(t.ppf(0.975, k - 1)) * se
    return Estimate(score.scale * float(mean), score.scale * se, score.scale * half, score.digits)


def judge(comparison: Comparison) -> Verdict:
    """Reduce the labels to numbers."""
    plan, clusters = comparison.plan, comparison.plan.clusters  # where there are groups, all are tested
    if all(entry.recentered for entry in comparison.outcomes):  # none that can be used
        raise ValueError("No method could be run: " + "; ".join(comparison.failed.values()))
    criterion = SCORES[plan.scoring]
    values = {entry: _score_matrices(plan, outcome) for entry, outcome in comparison.outcomes.items()}
    deciding = {at: criterion.sign * own[plan.scoring] for at, own in values.items() if plan.scoring in own}
    if not deciding:
        raise ValueError(f"No method gives scores for {criterion.word}: choose another scoring.")
    # Equal ones in the order of the table.
    order = sorted(deciding, key=lambda entry: -round(float(deciding[entry].mean()), 12))

    def gain(a: Entry, b: Entry) -> Estimate:
        return estimate(deciding[a] - deciding[b], clusters, criterion)

    def line(entry: Entry) -> Line:
        own = values[entry]
        scores = {key: estimate(own[key], clusters, s) if key in own else None for key, s in SCORES.items()}
        behind = gain(order[0], entry) if entry in order[1:] else None
        return Line(entry, scores, behind, comparison.outcomes[entry].seconds)

    pairs = [(Entry(a, form), Entry(b, form)) for form in (False, True) for a, b in PAIRS]
    forms = [(at._replace(recentered=True), at) for at in deciding if not at.recentered]
    return Verdict(
        plan,
        tuple(line(entry) for entry in [*order, *(entry for entry in values if entry not in deciding)]),
        {pair: gain(*pair) for pair in pairs if set(pair) <= set(deciding)},
        {plain: gain(entry, plain) for entry, plain in forms if entry in deciding},
    )


def _score_matrices(plan: Plan, outcome: Outcome) -> dict[str, np.ndarray]:
    """Values (n_tested,) of each score that the method has, means over the repeats."""
    truth, areas = plan.codes[plan.tested], []
    right = outcome.labels == truth
    if outcome.scores is not None:
        for scores, folds in zip(outcome.scores, plan.splits, strict=True):
            rows = [np.searchsorted(plan.tested, test) for _, test in folds]
            areas.append(compute_auc(scores, truth, rows))
    by_repeat = {
        "accuracy": right,
        "balanced": [balance(row.astype(float), truth) for row in right],
        "auc": [area for area in areas if area is not None],
        "logloss": () if outcome.losses is None else outcome.losses,
    }
    return {name: np.mean(rows, axis=0) for name, rows in by_repeat.items() if len(rows)}


def confusion(truth: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean count over repeats of each label (column) given to each class (row); codes, (n,) and (r, n)."""
    places = n_classes * truth + labels
    return np.bincount(places.ravel(), minlength=n_classes**2).reshape(-1, n_classes) / len(labels)


def find_confusions(counts: np.ndarray, most: int = 10) -> list[tuple[int, int, float, float]]:
    """What was confused most often, in a confusion (c, c): true class, label given, count, of how many."""
    wrong = counts * (1 - np.eye(len(counts)))
    places = np.argsort(-wrong, axis=None, kind="stable")[:most].tolist()
    pairs = [divmod(place, len(counts)) for place in places]
    return [(t, g, float(wrong[t, g]), float(counts[t].sum())) for t, g in pairs if wrong[t, g] > 0]


def sentences(verdict: Verdict) -> list[str]:
    """The answer, for someone who reads nothing else: learning, recentering, the best methods."""
    score, first = verdict.criterion, next(iter(verdict.learning), None)
    if first is None or first[0].recentered:
        found = ["Whether learning helps was not tested: run spdmetric and spdmetric-mean."]
    else:
        what = f"Learning the metric, against {first[1].title},"
        found = [_answer(what, verdict.learning[first], score.gain)]
    for entry, gain in list(verdict.recentering.items())[:1]:
        what = f"Recentering, each group by its own mean, with {entry.title},"
        transductive = "It needs all matrices of a new group at once, without labels."
        found.append(f"{_answer(what, gain, score.gain)} {transductive}")
    best, *tied = [verdict.best, *(line for line in verdict.ranked if line.tied)]
    also = f" Tied with it: {'; '.join(line.entry.title for line in tied)}." if tied else ""
    guessing = f"guessing gives {verdict.chance:.{score.digits}f}{score.unit}"
    text = f"{best.entry.title} has the {score.top} {score.word}, {verdict.score(best.entry)}{score.unit}; "
    return [*found, f"{text}{guessing}.{also}"]


def _answer(what: str, gain: Estimate, unit: str) -> str:
    """What is gained or lost, as far as the numbers show."""
    does = {1: "helps", -1: "hurts", 0: "has no clear effect"}[gain.sign]
    return f"{what} {does}: {gain.signed} {unit} (95 % interval {gain.interval})."


def saved_sentence(verdict: Verdict, method: str, file: str) -> str:
    """Which method was kept in a file, and why not the best."""
    text = f"{file} holds {METHODS[method].title}, trained on all matrices."
    if method == verdict.unaided[0] and verdict.best.entry.recentered:
        text += f" {verdict.best.entry.title} needs all matrices of a new group at once and cannot be kept."
    return text
