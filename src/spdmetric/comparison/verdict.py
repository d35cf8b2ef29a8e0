"""From labels to numbers with standard errors, and to the sentences that answer the question.

A matrix counts by the mean of its values (see `scores`) over the repeats.  Standard errors are over
matrices, or over groups where there are three or more; differences are paired, matrix by matrix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spdmetric.comparison import scores
from spdmetric.comparison.describe import counted
from spdmetric.comparison.methods import METHODS, PAIRS
from spdmetric.comparison.plan import RECENTERED, Plan
from spdmetric.comparison.run import Comparison, named
from spdmetric.comparison.scores import SCORES, Score

LEVEL = 0.95
MINUS = "\N{MINUS SIGN}"
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
        return f"{self._signed(self.mean - self.half)} to {self._signed(self.mean + self.half)}"

    @property
    def signed(self) -> str:
        """``+3.5 ± 1.0``, with a true minus sign."""
        return self._signed(self.mean) + self._error

    def __str__(self) -> str:
        return f"{self.mean:.{self.digits}f}" + self._error

    @property
    def _error(self) -> str:
        return f" ± {self.se:.{self.digits}f}" if self.known else ""

    def _signed(self, value: float) -> str:
        return f"{'+' if value >= 0 else MINUS}{abs(value):.{self.digits}f}"


class Line(NamedTuple):
    """One method, on the matrices as they are or recentered."""

    method: str  # see `run.named`
    scores: dict[str, Estimate | None]  # by SCORES; None where the method does not give what it takes
    behind: Estimate | None  # behind the best in the score that decides; None for the best itself
    seconds: float

    @property
    def tied(self) -> bool:
        """Whether its distance to the best cannot be told from zero."""
        return self.behind is not None and self.behind.sign == 0


class Gain(NamedTuple):
    """What something is worth: points gained by one of two methods that differ in nothing else."""

    method: str
    plain: str
    what: str
    head: str
    gain: Estimate
    same: bool  # whether no matrix makes a difference

    @property
    def recentered(self) -> bool:
        """Whether both are seen from the means of their groups."""
        return " " in self.plain


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
        return next((pair for pair in self.learning if pair.plain.endswith("-mean")), None)

    @property
    def ranked(self) -> tuple[Line, ...]:
        """Those that have the score that decides."""
        return tuple(line for line in self.lines if line.scores[self.plan.scoring] is not None)

    @property
    def unaided(self) -> list[str]:
        """Methods that can label one new matrix alone, without recentering, the best first."""
        return [line.method for line in self.lines if " " not in line.method]

    @property
    def scored(self) -> Score:
        """The score that decides."""
        return SCORES[self.plan.scoring]

    @property
    def word(self) -> str:
        """Its name."""
        return self.scored.word

    @property
    def top(self) -> str:
        """What the best method has: ``highest accuracy``."""
        return f"{self.scored.top} {self.word}"

    @property
    def chance(self) -> float:
        """Score of guessing."""
        counts = np.bincount(self.plan.codes[self.plan.tested])
        shares = counts[counts > 0] / counts.sum()
        entropy = -np.sum(shares * np.log(shares))
        of = {"accuracy": shares.max(), "balanced": 1 / len(shares), "auc": 0.5, "logloss": entropy}
        return self.scored.scale * float(of[self.plan.scoring])

    def told(self, value: float) -> str:
        """A number of the score that decides: ``50.0 %``."""
        return f"{value:.{self.scored.digits}f}{self.scored.unit}"

    def line(self, method: str) -> Line:
        """The line of a method."""
        return next(line for line in self.lines if line.method == method)

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
    if all(" " in key for key in comparison.given):  # none that can be used
        raise ValueError("No method could be run: " + "; ".join(comparison.failed.values()))
    scored, values = SCORES[plan.scoring], {key: _values(comparison, key) for key in comparison.given}
    deciding = {key: scored.sign * of[plan.scoring] for key, of in values.items() if plan.scoring in of}
    if not deciding:
        raise ValueError(f"No method gives scores for {scored.word}: choose another scoring.")

    def line(key: str, best: np.ndarray | None) -> Line:
        own = values[key]
        told = {
            name: estimate(own[name], clusters, of) if name in own else None for name, of in SCORES.items()
        }
        behind = None if best is None else estimate(best - deciding[key], clusters, scored)
        return Line(key, told, behind, comparison.seconds[key])

    def ranked(keys: list[str]) -> tuple[Line, ...]:
        # Equal ones in the order of the table.
        order = sorted(keys, key=lambda key: -round(float(deciding[key].mean()), 12))
        return tuple(line(key, deciding[order[0]] if k else None) for k, key in enumerate(order))

    def gain(a: str, b: str, what: str, head: str) -> Gain:
        more = deciding[a] - deciding[b]
        return Gain(a, b, what, head, estimate(more, clusters, scored), not more.any())

    distances = [key for key in deciding if METHODS.get(key) and METHODS[key].family == "distance"]
    learning = [
        (named(pair.learned, form), named(pair.plain, form), pair.what, pair.head)
        for form in ("", *plan.variants)
        for pair in PAIRS
    ]
    both = [(named(key, RECENTERED), key) for key in deciding]
    return Verdict(
        plan,
        ranked(list(deciding)) + tuple(line(key, None) for key in values if key not in deciding),
        ranked(distances) if len(distances) > 1 else (),
        tuple(gain(*pair) for pair in learning if {*pair[:2]} <= set(deciding)),
        tuple(gain(a, b, RECENTERED, "") for a, b in both if a in deciding),
    )


def _values(comparison: Comparison, key: str) -> dict[str, np.ndarray]:
    """Values (n_tested,) of each score that the method has, means over the repeats."""
    plan, truth = comparison.plan, comparison.plan.codes[comparison.plan.tested]
    right, areas = comparison.given[key] == truth, []
    if key in comparison.scores:
        for of, folds in zip(comparison.scores[key], plan.splits, strict=True):
            rows = [np.searchsorted(plan.tested, test) for _, test in folds]
            areas.append(scores.auc(of, truth, rows))
    by_repeat = {
        "accuracy": right,
        "balanced": [scores.balanced(row.astype(float), truth) for row in right],
        "auc": [area for area in areas if area is not None],
        "logloss": comparison.losses.get(key, ()),
    }
    return {name: np.mean(rows, axis=0) for name, rows in by_repeat.items() if len(rows)}


def confusion(truth: np.ndarray, labels: np.ndarray, n_classes: int) -> np.ndarray:
    """Mean count over repeats of each label (column) given to each class (row); codes, (n,) and (r, n)."""
    places = n_classes * truth + labels
    return np.bincount(places.ravel(), minlength=n_classes**2).reshape(-1, n_classes) / len(labels)


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
        imbalance_sentence(verdict),
        distance_sentence(verdict),
        singular_sentence(verdict.plan),
        groups_sentence(verdict.plan),
    )
    return [sentence for sentence in said if sentence is not None]


def title(key: str) -> str:
    """Name of a method, and of the form of the matrices."""
    method, _, form = key.partition(" ")
    return METHODS[method].title + (f" ({form})" if form else "")


def _and(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


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
    return f"{_answer(first, f'Learning {first.what}', verdict.scored)} {against}."


def _answer(pair: Gain, what: str, score: Score) -> str:
    """Say what is gained or lost, as far as it can be told."""
    gain, interval = pair.gain, f" (95 % interval {pair.gain.interval})" if pair.gain.known else ""
    if pair.same:
        return f"{what} makes no difference here, not for one matrix,"
    size = f"{gain.signed} {score.points}{interval}"
    if gain.sign:
        return f"{what} {'helps' if gain.sign > 0 else 'hurts'} here: {size}"
    return f"It cannot be told whether {what[0].lower()}{what[1:]} helps here: {size}"


def parts_sentence(verdict: Verdict) -> str | None:
    """What the parts of learning are worth, and learning after recentering."""
    parts = [pair for pair in verdict.learning if not pair.recentered and pair is not verdict.planned]
    after = [pair for pair in verdict.learning if pair.recentered][:1]
    unit = verdict.scored.points.partition(" ")[0]
    told = "; ".join(_part(pair, unit) for pair in parts)
    said = [f"Taken apart, {told}."] if told else []
    said += [f"After recentering, {_part(pair, unit)}." for pair in after]
    return " ".join(said) or None


def _part(pair: Gain, unit: str) -> str:
    """``learning G alone helps (with one nearest neighbor, +6.1 ± 2.0 points)``."""
    does = {1: "helps", -1: "hurts", 0: "has no clear effect"}[pair.gain.sign]
    if pair.same:
        return f"learning {pair.what} changes nothing (with {pair.head})"
    return f"learning {pair.what} {does} (with {pair.head}, {pair.gain.signed} {unit})"


def recentering_sentence(verdict: Verdict) -> str | None:
    """What it is worth to see each group from its own mean."""
    if not verdict.recentering:
        return None
    first = verdict.recentering[0]
    what = "Recentering, each group seen from its own mean,"
    return (
        f"{_answer(first, what, verdict.scored)} with {title(first.plain)}. It is transductive: it needs all "
        "matrices of a new group, without their labels, before the first one can be labeled."
    )


def best_sentence(verdict: Verdict) -> str:
    """Which methods are best, and how far that can be trusted."""
    best, others = verdict.best, verdict.ranked[1:]
    score, equal = verdict.score(best), [best, *(line for line in others if line.tied)]
    told = f"{title(best.method)} has the {verdict.top}, {score}{verdict.scored.unit}"
    if not others:
        told = f"One method was run, {title(best.method)}: {verdict.word} {score}{verdict.scored.unit}."
    elif len(equal) == 1:
        behind = f"each of the {len(others)} others" if len(others) > 1 else "the other"
        told += f"; {behind} is behind it by more than chance allows."
    else:
        told = _tied_sentence(verdict, equal)
    guessing = verdict.told(verdict.chance)
    if score.known and verdict.scored.sign * (score.mean - verdict.chance) <= score.half:
        which = f"The {verdict.scored.top}" if others else "That"
        return f"{told} {which} is not clearly better than guessing, {guessing}."
    optimistic = (
        f" The {verdict.scored.top} of several numbers is optimistic: new matrices may do a little worse."
    )
    return f"{told} Guessing gives {guessing}.{optimistic if others else ''}"


def _tied_sentence(verdict: Verdict, equal: list[Line]) -> str:
    """Which methods are tied for the first place; the best of them is the first."""
    n, names = len(verdict.ranked), [title(line.method) for line in equal]
    count = f"{len(equal)} of {n}" if len(equal) < n else "Both" if n == 2 else f"All {n}"
    kind = "results, with and without recentering," if verdict.recentering else "methods"
    if len(names) > MOST_NAMED:
        names[MOST_NAMED - 1 :] = [f"{len(names) - MOST_NAMED + 1} more (≈ in the table)"]
    ends = sorted(verdict.score(line).mean for line in (equal[0], equal[-1]))
    numbers = dict.fromkeys(f"{value:.{verdict.scored.digits}f}" for value in ends)  # one if equal
    quickest = title(min(equal, key=lambda line: line.seconds).method)
    return (
        f"{count} {kind} are tied for the {verdict.top}, {' to '.join(numbers)}{verdict.scored.unit}: "
        f"{'; '.join(names)}. The quickest of them is {quickest}."
    )


def imbalance_sentence(verdict: Verdict) -> str | None:
    """What accuracy hides where one class is much larger than another."""
    counts = np.bincount(verdict.plan.codes[verdict.plan.tested])
    counts = counts[counts > 0]
    if verdict.plan.scoring != "accuracy" or counts.max() <= UNLIKE * counts.min():
        return None
    found = [(score, line.method) for line in verdict.lines if (score := line.scores["balanced"])]
    best, method = max(found, key=lambda one: one[0].mean)
    return (
        f"The classes differ in size, {counts.min()} to {counts.max()} matrices, and accuracy is high where "
        "the small ones are neglected: read the balanced accuracy too, the mean over classes. Its highest "
        f"is {best} %, of {title(method)}; guessing gives {100 / len(counts):.1f} %."
    )


def distance_sentence(verdict: Verdict) -> str | None:
    """Which fixed distance suits the matrices."""
    if not verdict.fixed:
        return None
    form = " and no recentering" if verdict.recentering else ""
    told = f"Of the {len(verdict.fixed)} fixed distances, with one nearest neighbor{form}, "
    equal = [line for line in verdict.fixed if line.behind is None or line.tied]
    if len(equal) == len(verdict.fixed):
        return told + "none is clearly better than another."
    names = [title(line.method).removesuffix(" + 1-NN") for line in equal]
    best = f"{verdict.score(equal[0])}{verdict.scored.unit}"
    if len(equal) == 1:
        return told + f"{names[0]} does best, {best}."
    return told + f"{_and(names)} do best and cannot be told apart, up to {best}."


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
    n = sum("full rank" in why for why in plan.left_out.values())
    what = f"not run for that: {counted(n, 'method')}." if n else "all methods that were run allow that."
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
    said = f"{file} holds {title(method)}, trained on all matrices"
    if method != verdict.unaided[0]:
        return f"{said}, as asked for."
    if len(verdict.lines) == 1:
        return f"{said}."
    if method == verdict.best.method:
        tied = any(line.tied for line in verdict.ranked)
        return f"{said}: it {'is one of those tied for' if tied else 'has'} the {verdict.top}."
    return (
        f"{said}: it has the {verdict.top} of the methods without recentering. {title(verdict.best.method)} "
        "is the best of all and cannot be kept, for it needs all matrices of a new group at once."
    )
