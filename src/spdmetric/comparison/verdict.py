"""From labels to numbers with standard errors, and to the sentences that answer the question.

A matrix counts by the mean of its values (see `scores`) over the repeats.  Standard errors are over
matrices, or over groups where there are three or more; differences are paired, matrix by matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spdmetric.comparison.describe import count_of
from spdmetric.comparison.methods import METHODS, PAIRS
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.run import Comparison, Outcome
from spdmetric.comparison.scores import SCORES, Score, balance, compute_auc

LEVEL = 0.95
MOST_NAMED = 6  # methods that a sentence lists
UNLIKE = 1.5  # how many times the smallest class the largest may be before the answer speaks of it


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
    def known(self) -> bool:
        """Whether there is a standard error."""
        return bool(np.isfinite(self.se))

    @property
    def interval(self) -> str:
        """``-1.0 to +3.0``, with true minus signs."""
        return f"{self._sign(self.mean - self.half)} to {self._sign(self.mean + self.half)}"

    @property
    def signed(self) -> str:
        """``+3.5 ± 1.0``, with a true minus sign."""
        return self._sign(self.mean) + self._error

    def __str__(self) -> str:
        return f"{self.mean:.{self.digits}f}" + self._error

    @property
    def _error(self) -> str:
        return f" ± {self.se:.{self.digits}f}" if self.known else ""

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


class Gain(NamedTuple):
    """What something is worth: points gained by one of two methods that differ in nothing else."""

    entry: Entry
    plain: Entry
    gain: Estimate
    same: bool  # whether no matrix makes a difference
    what: str = ""  # of learning: see `Pair`
    head: str = ""
    against_mean: bool = False


class Verdict(NamedTuple):
    """All lines, the best first; those without the score that decides last."""

    plan: Plan
    lines: tuple[Line, ...]
    fixed: tuple[Line, ...]  # fixed distances, behind the best of them
    learning: tuple[Gain, ...]  # of PAIRS, on the matrices as they are; then recentered
    recentering: tuple[Gain, ...]  # of the method that was planned, then the others

    @property
    def best(self) -> Line:
        return self.lines[0]

    @property
    def planned(self) -> Gain | None:
        """What was planned beforehand: learning against the metric at the mean, not recentered."""
        plain = [pair for pair in self.learning if pair.against_mean and not pair.entry.recentered]
        return plain[0] if plain else None

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
    def top(self) -> str:
        """What the best method has: ``highest accuracy``."""
        return f"{self.criterion.top} {self.criterion.word}"

    @property
    def chance(self) -> float:
        """Score of guessing."""
        counts = np.bincount(self.plan.codes[self.plan.tested])
        shares = counts[counts > 0] / counts.sum()
        entropy = -np.sum(shares * np.log(shares))
        scores = {"accuracy": shares.max(), "balanced": 1 / len(shares), "auc": 0.5, "logloss": entropy}
        return self.criterion.scale * float(scores[self.plan.scoring])

    def line(self, entry: Entry) -> Line:
        """The line of a method."""
        return next(line for line in self.lines if line.entry == entry)

    def score(self, line: Line) -> Estimate:
        """The score that decides, of a line that has it."""
        found = line.scores[self.plan.scoring]
        assert found is not None  # only those that have it are ranked
        return found


def estimate(
    values: np.ndarray, clusters: np.ndarray | None = None, score: Score = SCORES["accuracy"]
) -> Estimate:
    """Mean of values (n,) of a score, its standard error over them, or over clusters (n,) of them."""
    mean = values.mean()
    residuals = values - mean
    if clusters is not None:
        residuals = np.bincount(clusters, weights=residuals)
    k = len(residuals)
    se = float(np.sqrt(k / (k - 1) * np.sum(residuals**2)) / len(values)) if k > 1 else float("nan")
    half = _reach(k) * se if k > 1 else float("inf")
    return Estimate(score.scale * float(mean), score.scale * se, score.scale * half, score.digits)


def _reach(k: int) -> float:
    """Standard errors from the mean of k values to the end of its interval."""
    from scipy.stats import t

    return float(t.ppf((1 + LEVEL) / 2, k - 1))


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

    def line(entry: Entry, best: np.ndarray | None) -> Line:
        own = values[entry]
        scores = {
            name: estimate(own[name], clusters, s) if name in own else None for name, s in SCORES.items()
        }
        behind = None if best is None else estimate(best - deciding[entry], clusters, criterion)
        return Line(entry, scores, behind, comparison.outcomes[entry].seconds)

    def rank(entries: list[Entry]) -> tuple[Line, ...]:
        # Equal ones in the order of the table.
        order = sorted(entries, key=lambda entry: -round(float(deciding[entry].mean()), 12))
        return tuple(line(entry, deciding[order[0]] if k else None) for k, entry in enumerate(order))

    def gain(a: Entry, b: Entry) -> Gain:
        more = deciding[a] - deciding[b]
        return Gain(a, b, estimate(more, clusters, criterion), not more.any())

    fixed = [at for at in deciding if METHODS[at.method].family == "distance" and not at.recentered]
    learning = [
        gain(a, b)._replace(what=pair.what, head=pair.head, against_mean=pair.against_mean)
        for form in (False, True)
        for pair in PAIRS
        if {a := Entry(pair.learned, form), b := Entry(pair.plain, form)} <= set(deciding)
    ]
    both = [(at._replace(recentered=True), at) for at in deciding if not at.recentered]
    return Verdict(
        plan,
        rank(list(deciding)) + tuple(line(entry, None) for entry in values if entry not in deciding),
        rank(fixed) if len(fixed) > 1 else (),
        tuple(learning),
        tuple(gain(*pair) for pair in both if pair[0] in deciding),
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


# ---------------------------------------------------------------------------
# Sentences


def sentences(verdict: Verdict) -> list[str]:
    """The answer, for someone who reads nothing else."""
    found = (
        learning_sentence(verdict),
        parts_sentence(verdict),
        recentering_sentence(verdict),
        best_sentence(verdict),
        imbalance_sentence(verdict),
        distance_sentence(verdict),
        singular_sentence(verdict.plan),
        groups_sentence(verdict.plan),
    )
    return [sentence for sentence in found if sentence is not None]


def learning_sentence(verdict: Verdict) -> str:
    """Whether learning helps, by the comparison planned beforehand."""
    first = verdict.planned
    if first is None:
        return (
            "Whether learning helps was not tested: no pair of methods planned for that gave results "
            "(spdmetric and spdmetric-mean, for one)."
        )
    against = (
        f"against the LogEuclidean metric at the mean, which learns nothing, with {first.head} after both"
    )
    return f"{_answer(first, f'Learning {first.what}', verdict.criterion)} {against}."


def _answer(pair: Gain, what: str, score: Score) -> str:
    """What is gained or lost, as far as the numbers show."""
    gain, interval = pair.gain, f" (95 % interval {pair.gain.interval})" if pair.gain.known else ""
    if pair.same:
        return f"{what} makes no difference here, not for one matrix,"
    size = f"{gain.signed} {score.points}{interval}"
    if gain.sign:
        return f"{what} {'helps' if gain.sign > 0 else 'hurts'} here: {size}"
    return f"It cannot be told whether {what[0].lower()}{what[1:]} helps here: {size}"


def parts_sentence(verdict: Verdict) -> str | None:
    """What the parts of learning are worth, and learning after recentering."""
    plain = [pair for pair in verdict.learning if not pair.entry.recentered and pair is not verdict.planned]
    after = [pair for pair in verdict.learning if pair.entry.recentered][:1]
    parts = "; ".join(_describe_part(pair, verdict.criterion.gain) for pair in plain)
    found = [f"Taken apart, {parts}."] if parts else []
    found += [f"After recentering, {_describe_part(pair, verdict.criterion.gain)}." for pair in after]
    return " ".join(found) or None


def _describe_part(pair: Gain, unit: str) -> str:
    """``learning G alone helps (with one nearest neighbor, +6.1 ± 2.0 points)``."""
    does = {1: "helps", -1: "hurts", 0: "has no clear effect"}[pair.gain.sign]
    if pair.same:
        return f"learning {pair.what} changes nothing (with {pair.head})"
    return f"learning {pair.what} {does} (with {pair.head}, {pair.gain.signed} {unit})"


def recentering_sentence(verdict: Verdict) -> str | None:
    """What it is worth to recenter each group by its own mean."""
    if not verdict.recentering:
        return None
    first = verdict.recentering[0]
    what = "Recentering, each group by its own mean,"
    return (
        f"{_answer(first, what, verdict.criterion)} with {first.plain.title}. It is transductive: it needs "
        "all matrices of a new group, without their labels, before the first one can be labeled."
    )


def best_sentence(verdict: Verdict) -> str:
    """Which methods are best, and how far that can be trusted."""
    best, others = verdict.best, verdict.ranked[1:]
    score, equal = verdict.score(best), [best, *(line for line in others if line.tied)]
    criterion = verdict.criterion
    if not others:
        text = f"One method was run, {best.entry.title}: {criterion.word} {score}{criterion.unit}."
    elif len(equal) == 1:
        behind = f"each of the {len(others)} others" if len(others) > 1 else "the other"
        text = f"{best.entry.title} has the {verdict.top}, {score}{criterion.unit}; "
        text += f"{behind} is behind it by more than chance allows."
    else:
        text = _tied_sentence(verdict, equal)
    guessing = f"{verdict.chance:.{criterion.digits}f}{criterion.unit}"
    if score.known and criterion.sign * (score.mean - verdict.chance) <= score.half:
        which = f"The {criterion.top}" if others else "That"
        return f"{text} {which} is not clearly better than guessing, {guessing}."
    optimistic = f" The {criterion.top} of several numbers is optimistic: new matrices may do a little worse."
    return f"{text} Guessing gives {guessing}.{optimistic if others else ''}"


def _tied_sentence(verdict: Verdict, equal: list[Line]) -> str:
    """Which methods are tied for the first place; the best of them is the first."""
    n, names = len(verdict.ranked), [line.entry.title for line in equal]
    count = f"{len(equal)} of {n}" if len(equal) < n else "Both" if n == 2 else f"All {n}"
    kind = "results, with and without recentering," if verdict.recentering else "methods"
    if len(names) > MOST_NAMED:
        names[MOST_NAMED - 1 :] = [f"{len(names) - MOST_NAMED + 1} more (≈ in the table)"]
    ends = sorted(verdict.score(line).mean for line in (equal[0], equal[-1]))
    numbers = dict.fromkeys(f"{value:.{verdict.criterion.digits}f}" for value in ends)  # one if equal
    quickest = min(equal, key=lambda line: line.seconds).entry.title
    return (
        f"{count} {kind} are tied for the {verdict.top}, {' to '.join(numbers)}{verdict.criterion.unit}: "
        f"{'; '.join(names)}. The quickest of them is {quickest}."
    )


def imbalance_sentence(verdict: Verdict) -> str | None:
    """What accuracy hides where one class is much larger than another."""
    counts = np.bincount(verdict.plan.codes[verdict.plan.tested])
    counts = counts[counts > 0]
    if verdict.plan.scoring != "accuracy" or counts.max() <= UNLIKE * counts.min():
        return None
    found = [(score, line.entry) for line in verdict.lines if (score := line.scores["balanced"])]
    best, entry = max(found, key=lambda one: one[0].mean)
    return (
        f"The classes differ in size, {counts.min()} to {counts.max()} matrices, and accuracy is high where "
        "the small ones are neglected: read the balanced accuracy too, the mean over classes. Its highest "
        f"is {best} %, of {entry.title}; guessing gives {100 / len(counts):.1f} %."
    )


def distance_sentence(verdict: Verdict) -> str | None:
    """Which fixed distance suits the matrices."""
    if not verdict.fixed:
        return None
    form = " and no recentering" if verdict.recentering else ""
    text = f"Of the {len(verdict.fixed)} fixed distances, with one nearest neighbor{form}, "
    equal = [line for line in verdict.fixed if line.behind is None or line.tied]
    if len(equal) == len(verdict.fixed):
        return text + "none is clearly better than another."
    names = [METHODS[line.entry.method].short for line in equal]
    best = f"{verdict.score(equal[0])}{verdict.criterion.unit}"
    if len(equal) == 1:
        return text + f"{names[0]} does best, {best}."
    return text + f"{', '.join(names[:-1])} and {names[-1]} do best and cannot be told apart, up to {best}."


def singular_sentence(plan: Plan) -> str | None:
    """What was done about singular matrices."""
    sizes = plan.sizes
    if sizes.definite:
        return None
    if sizes.shared:
        n = sizes.d - sizes.smallest_rank
        same = "direction" if n == 1 else f"{n} directions"
        return (
            f"The matrices are singular, all in the same {same} of {sizes.d}: every method was run in the "
            "range that they share."
        )
    n = sum(METHODS[name].definite for name in plan.left_out)
    what = f"not run for that: {count_of(n, 'method')}." if n else "all methods that were run allow that."
    return f"Some matrices are singular, and not in the same directions; {what}"


def groups_sentence(plan: Plan) -> str | None:
    """What the errors tell where there are groups, and no test matrices beside them."""
    if plan.groups is None or len(plan.groups) < len(plan.X):
        return None
    n = len(np.unique(plan.groups))
    if plan.clusters is None:
        return (
            f"Each of the {n} groups was tested by methods that had never seen it. Two cannot tell how much "
            "groups differ: the errors are over matrices, and hold for these two, not for a third."
        )
    return (
        f"Groups were left out whole, and errors are over the {n} groups, not over matrices: a difference of "
        f"up to {_reach(n):.1f} standard errors is called a tie, and need not be small."
    )


def saved_sentence(verdict: Verdict, method: str, file: str) -> str:
    """Which method was kept in a file, and why that one."""
    text = f"{file} holds {METHODS[method].title}, trained on all matrices"
    if method != verdict.unaided[0]:
        return f"{text}, the method that was named."
    if len(verdict.lines) == 1:
        return f"{text}."
    if not verdict.best.entry.recentered:
        tied = any(line.tied for line in verdict.ranked)
        return f"{text}: it {'is one of those tied for' if tied else 'has'} the {verdict.top}."
    return (
        f"{text}: it has the {verdict.top} of the methods without recentering. {verdict.best.entry.title} "
        "is the best of all and cannot be kept, for it needs all matrices of a new group at once."
    )
