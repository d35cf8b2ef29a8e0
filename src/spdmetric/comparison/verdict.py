"""From labels to numbers with standard errors, and to the sentences that answer the question.

A matrix counts by the mean of its values (see `scores`) over the repeats.  Standard errors are over
matrices, or over groups where there are three or more; differences are paired, matrix by matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from spdmetric.comparison import scores
from spdmetric.comparison.plan import RECENTERED
from spdmetric.comparison.run import Comparison, named
from spdmetric.comparison.scores import SCORES
from spdmetric.evaluation.methods import METHODS, PAIRS

LEVEL = 0.95
MINUS = "\N{MINUS SIGN}"
MOST_NAMED = 5  # methods that a sentence lists


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

    @property
    def interval(self) -> str:
        """``-1.0 to +3.0``, with true minus signs."""
        return f"{signed(self.mean - self.half)} to {signed(self.mean + self.half)}"

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.se:.1f}" if self.known else f"{self.mean:.1f}"


class Line(NamedTuple):
    """One method, on the matrices as they are or recentered."""

    method: str  # see `run.named`
    scores: dict[str, Estimate | None]  # by SCORES; None where the method gives labels alone
    behind: Estimate | None  # points behind the best in the score that decides; None for the best itself
    seconds: float


class Gain(NamedTuple):
    """What something is worth: points gained by one of two methods that differ in nothing else."""

    method: str
    plain: str
    what: str
    head: str
    gain: Estimate
    same: bool  # whether no matrix makes a difference


class Verdict(NamedTuple):
    """All lines, the best first; those without the score that decides last."""

    scoring: str  # a key of SCORES
    lines: tuple[Line, ...]
    fixed: tuple[Line, ...]  # fixed distances, behind the best of them
    learning: tuple[Gain, ...]  # of PAIRS, on the matrices as they are; then recentered
    recentering: tuple[Gain, ...]  # of the method that was planned, then the others
    chance: float  # score of guessing, per cent
    n_groups: int | None
    n_clusters: int | None  # groups that the errors are over; None: matrices
    singular: str | None  # what is to be said of singular matrices

    @property
    def best(self) -> Line:
        return self.lines[0]

    @property
    def ranked(self) -> tuple[Line, ...]:
        """Those that have the score that decides."""
        return tuple(line for line in self.lines if line.scores[self.scoring] is not None)

    @property
    def tied(self) -> tuple[Line, ...]:
        """Methods whose distance to the best cannot be told from zero."""
        return tuple(line for line in self.lines if line.behind is not None and line.behind.sign == 0)

    @property
    def word(self) -> str:
        """The score that decides."""
        return SCORES[self.scoring]

    def line(self, method: str) -> Line:
        """The line of a method."""
        return next(line for line in self.lines if line.method == method)

    def score(self, line: Line) -> Estimate:
        """The score that decides, of a line that has it."""
        found = line.scores[self.scoring]
        assert found is not None  # only those that have it are ranked
        return found


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
    if not comparison.given:
        raise ValueError("No method could be run: " + "; ".join(comparison.failed.values()))
    values = {key: _values(comparison, key, truth) for key in comparison.given}
    deciding = {key: own for key, of in values.items() if (own := of[plan.scoring]) is not None}
    if not deciding:
        raise ValueError(f"No method gives scores for {SCORES[plan.scoring]}: choose another scoring.")

    def line(key: str, best: np.ndarray | None) -> Line:
        told = {name: None if v is None else estimate(v, clusters) for name, v in values[key].items()}
        behind = None if best is None else estimate(best - deciding[key], clusters)
        return Line(key, told, behind, comparison.seconds[key])

    def ranked(keys: list[str]) -> tuple[Line, ...]:
        # Equal ones in the order of the table.
        order = sorted(keys, key=lambda key: -round(float(deciding[key].mean()), 12))
        return tuple(line(key, deciding[order[0]] if k else None) for k, key in enumerate(order))

    others = tuple(line(key, None) for key in values if key not in deciding)
    distances = [key for key in deciding if METHODS.get(key) and METHODS[key].family == "distance"]
    classes = np.bincount(truth)
    largest = classes.max() / len(truth)
    chance = {"accuracy": largest, "balanced": 1 / np.count_nonzero(classes), "auc": 0.5}
    return Verdict(
        plan.scoring,
        ranked(list(deciding)) + others,
        ranked(distances) if len(distances) > 1 else (),
        tuple(_learning(deciding, clusters, plan.variants)),
        tuple(_recentering(deciding, clusters)) if plan.variants else (),
        100 * float(chance[plan.scoring]),
        len(np.unique(plan.groups)) if plan.groups is not None and len(plan.groups) == len(truth) else None,
        None if clusters is None else int(clusters.max()) + 1,
        _singular(comparison),
    )


def _values(comparison: Comparison, key: str, truth: np.ndarray) -> dict[str, np.ndarray | None]:
    """Values (n_tested,) of each score, means over the repeats."""
    plan, right = comparison.plan, comparison.given[key] == truth
    found: dict[str, np.ndarray | None] = {
        "accuracy": right.mean(axis=0),
        "balanced": np.mean([scores.balanced(row.astype(float), truth) for row in right], axis=0),
        "auc": None,
    }
    if key in comparison.scores:
        areas = [
            scores.auc(of, truth, [np.searchsorted(plan.tested, test) for _, test in folds])
            for of, folds in zip(comparison.scores[key], plan.splits, strict=True)
        ]
        known = [area for area in areas if area is not None]
        found["auc"] = np.mean(known, axis=0) if known else None
    return found


def _learning(values: Mapping[str, np.ndarray], clusters: np.ndarray | None, forms: Mapping) -> list[Gain]:
    pairs = [
        (named(pair.learned, form), named(pair.plain, form), pair.what, pair.head)
        for form in ("", *forms)
        for pair in PAIRS
    ]
    return [_gain(values, clusters, *pair) for pair in pairs if pair[0] in values and pair[1] in values]


def _recentering(values: Mapping[str, np.ndarray], clusters: np.ndarray | None) -> list[Gain]:
    both = [(named(key, RECENTERED), key) for key in values if named(key, RECENTERED) in values]
    return [_gain(values, clusters, a, b, RECENTERED, "") for a, b in both]


def _gain(
    values: Mapping[str, np.ndarray], clusters: np.ndarray | None, a: str, b: str, what: str, head: str
) -> Gain:
    difference = values[a] - values[b]
    return Gain(a, b, what, head, estimate(difference, clusters), not difference.any())


def _singular(comparison: Comparison) -> str | None:
    sizes = comparison.plan.sizes
    if sizes.definite:
        return None
    if sizes.shared:
        return (
            f"The matrices are singular in the same {sizes.d - sizes.smallest_rank} of {sizes.d} directions: "
            "all methods were run in the range that they share."
        )
    n = sum("full rank" in why for why in comparison.plan.left_out.values())
    return (
        f"Some matrices are singular, and not in the same directions: the {n} methods that need full rank "
        "were not run."
    )


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
    """The answer, for someone who reads nothing else."""
    said = (
        learning_sentence(verdict),
        parts_sentence(verdict),
        recentering_sentence(verdict),
        best_sentence(verdict),
        distance_sentence(verdict),
        verdict.singular,
        groups_sentence(verdict),
    )
    return [sentence for sentence in said if sentence is not None]


def title(key: str) -> str:
    """Name of a method, and of the form of the matrices."""
    method, _, form = key.partition(" ")
    return METHODS[method].title + (f" ({form})" if form else "")


def learning_sentence(verdict: Verdict) -> str:
    """Whether learning helps, by the comparison planned beforehand."""
    if not verdict.learning or " " in verdict.learning[0].method:
        return (
            "Whether learning helps was not asked: it takes a method with and without learning, and no such "
            "two were run."
        )
    first = verdict.learning[0]
    return f"{_answer(first, f'Learning {first.what}', verdict.word)} {_against(first)}."


def _against(pair: Gain) -> str:
    return f"over no learning, the LogEuclidean metric at the mean, with {pair.head} after both"


def _answer(pair: Gain, what: str, word: str) -> str:
    """Say what is gained or lost, as far as it can be told."""
    gain, interval = pair.gain, f" (95 % interval {pair.gain.interval})" if pair.gain.known else ""
    if pair.same:
        return f"{what} makes no difference here, not for one matrix: 0.0 points of {word}"
    points = f"{abs(gain.mean):.1f}" + (f" ± {gain.se:.1f}" if gain.known else "")
    if gain.sign:
        does, verb = ("helps", "gains") if gain.sign > 0 else ("hurts", "loses")
        return f"{what} {does} here: it {verb} {points} points of {word}{interval}"
    return f"It cannot be told whether {what[0].lower()}{what[1:]} helps: {_points(gain)} of {word}{interval}"


def parts_sentence(verdict: Verdict) -> str | None:
    """What the parts of learning are worth, and learning after recentering; by what can be told of them."""
    after = [pair for pair in verdict.learning if " " in pair.method][:1]
    starts = {
        1: "What helps",
        -1: "What hurts",
        0: "What cannot be told from zero",
        2: "What changes nothing",
    }
    told: dict[int, list[str]] = {key: [] for key in starts}
    for pair in [pair for pair in verdict.learning[1:] if " " not in pair.method] + after:
        form = "after recentering" if pair in after else f"with {pair.head}"
        points = "" if pair.same else f", {_points(pair.gain)}"
        told[2 if pair.same else pair.gain.sign].append(f"learning {pair.what}, {form}{points}")
    said = [f"{starts[key]}: {'; '.join(parts)}." for key, parts in told.items() if parts]
    return " ".join(said) or None


def recentering_sentence(verdict: Verdict) -> str | None:
    """What it is worth to see each group from its own mean."""
    if not verdict.recentering:
        return None
    first = verdict.recentering[0]
    what = "Recentering, each group seen from its own mean,"
    return (
        f"{_answer(first, what, verdict.word)} with {title(first.plain)}. It is transductive: it uses all "
        "matrices of the group to be labeled, without their labels, before the first one is labeled."
    )


def _points(gain: Estimate) -> str:
    error = f" ± {gain.se:.1f}" if gain.known else ""
    return f"{signed(gain.mean)}{error} points"


def signed(value: float) -> str:
    """``+3.5``, with a true minus sign."""
    return f"{'+' if value >= 0 else MINUS}{abs(value):.1f}"


def best_sentence(verdict: Verdict) -> str:
    """Which methods are best, and how far that can be trusted."""
    best, others = verdict.best, verdict.ranked[1:]
    score, tied = verdict.score(best), verdict.tied
    told = f"{title(best.method)} has the highest {verdict.word}, {score} %"
    if not others:
        told = f"One method was run, {title(best.method)}: {verdict.word} {score} %."
    elif not tied:
        told += f"; each of the {len(others)} others is behind it by more than chance allows."
    else:
        equal = (best, *tied)
        low = min(verdict.score(line).mean for line in equal)
        quick = min(equal, key=lambda line: line.seconds)
        n = len(others) + 1
        all_of = f"{n} results, with and without recentering," if verdict.recentering else f"{n} methods"
        told = (
            f"{len(equal)} of {all_of} are tied for the highest {verdict.word}, {low:.1f} to "
            f"{score.mean:.1f} %: {_names(equal)}. The quickest of them is {title(quick.method)}."
        )
    if score.known and score.mean - score.half <= verdict.chance:
        return f"{told} That cannot be told from guessing, {verdict.chance:.1f} %."
    optimistic = " The highest of several numbers is optimistic, having been chosen." if others else ""
    return f"{told} Guessing gives {verdict.chance:.1f} %.{optimistic}"


def _names(lines: tuple[Line, ...]) -> str:
    names = [title(line.method) for line in lines]
    if len(names) > MOST_NAMED:
        return f"those marked ≈ in the table, {', '.join(names[:MOST_NAMED])} among them"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def distance_sentence(verdict: Verdict) -> str | None:
    """Which fixed distance suits the matrices."""
    if not verdict.fixed:
        return None
    first, *others = verdict.fixed
    tied = [line for line in others if line.behind is not None and line.behind.sign == 0]
    told = f"Of the {len(verdict.fixed)} fixed distances, with one nearest neighbor, "
    if len(tied) == len(others):
        return told + "none can be told from the others."
    names = [title(line.method).removesuffix(" + 1-NN") for line in (first, *tied)]
    best = f"{verdict.score(first)} %"
    if not tied:
        return told + f"{names[0]} does best, {best}."
    return told + f"{', '.join(names[:-1])} and {names[-1]} do best and cannot be told apart, up to {best}."


def groups_sentence(verdict: Verdict) -> str | None:
    """What the errors tell where there are groups."""
    if verdict.n_groups is None:
        return None
    if verdict.n_clusters is None:
        return (
            f"Of the {verdict.n_groups} groups each was tested by methods that never saw it; two groups tell "
            "nothing about how groups differ, so the errors are over matrices, and say nothing of a third "
            "group."
        )
    return (
        f"Groups were left out whole, and errors are over the {verdict.n_clusters} groups, not over matrices."
    )
