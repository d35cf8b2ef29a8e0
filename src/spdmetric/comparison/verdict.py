"""From labels to numbers with errors, and to the sentences that answer the question.

A value for each matrix and repeat (see `scores`) gives a mean; the design of the comparison (see `errors`)
gives its error.  Differences are paired, matrix by matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

import numpy as np

from spdmetric.comparison.errors import Estimate, estimate_difference, estimate_mean
from spdmetric.comparison.methods import PAIRS, find_method
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.scores import SCORES, Score, balance, compute_auc, explain_variance
from spdmetric.comparison.store import Result

# What everybody knows, to compare with.
REFERENCES = ("logeuclid-mean-lda", "logeuclid-mean-ridge")


@dataclass(frozen=True)
class Verdict:
    """What came out of a plan."""

    plan: Plan
    outcomes: dict[Entry, Result]  # see `run_plan`
    failed: dict[Entry, str]
    scores: dict[Entry, dict[str, Estimate]]  # the best first; of each method those that it has
    deciding: dict[Entry, np.ndarray]  # values (n_repeats, n_tested) of the score that decides; likewise

    @property
    def best(self) -> Entry:
        return next(iter(self.deciding))

    @property
    def unaided(self) -> list[str]:
        """Methods that can label one new matrix alone, without recentering, the best first."""
        return [entry.method for entry in self.scores if not entry.recentered]

    @property
    def learned(self) -> str | None:
        """The first of them with a learned metric, which is drawn; None where none has one."""
        return next((method for method in self.unaided if find_method(method).family == "learned"), None)

    @property
    def criterion(self) -> Score:
        """The score that decides."""
        return SCORES[self.plan.scoring]

    @property
    def chance(self) -> float:
        """Score of guessing: the largest class, the shares of the classes, or the mean target."""
        y = self.plan.codes[self.plan.tested]
        if self.plan.classes is None:
            return 0.0 if self.plan.scoring == "r2" else float(np.mean(np.abs(y - y.mean())))
        shares = np.unique(y, return_counts=True)[1] / len(y)
        entropy = -np.sum(shares * np.log(shares))
        scores = {"accuracy": shares.max(), "balanced": 1 / len(shares), "auc": 0.5, "logloss": entropy}
        return self.criterion.scale * float(scores[self.plan.scoring])

    @cached_property
    def behind(self) -> dict[Entry, Estimate]:
        """How far the others are behind the best, in the score that decides."""
        best, *others = self.deciding
        return {entry: self.compare(best, entry) for entry in others}

    @cached_property
    def tied(self) -> list[Entry]:
        """Those whose distance to the best may be zero, and that of all above them."""
        return list(takewhile(lambda entry: self.behind[entry].sign == 0, self.behind))

    @cached_property
    def learning(self) -> dict[tuple[Entry, Entry], Estimate]:
        """Gains of PAIRS, on the matrices as they are; then recentered."""
        pairs = [(Entry(a, form), Entry(b, form)) for form in (False, True) for a, b in PAIRS]
        return {pair: self.compare(*pair) for pair in pairs if set(pair) <= set(self.deciding)}

    @cached_property
    def recentering(self) -> dict[Entry, Estimate]:
        """Gains, by the method that is not recentered."""
        pairs = [(Entry(entry.method, True), entry) for entry in self.outcomes if not entry.recentered]
        return {pair[1]: self.compare(*pair) for pair in pairs if set(pair) <= set(self.deciding)}

    def score(self, entry: Entry) -> Estimate:
        """The score that decides, of a method that has it."""
        return self.scores[entry][self.plan.scoring]

    def compare(self, a: Entry, b: Entry) -> Estimate:
        """Gain of the first over the second."""
        span = 1.0 if self.criterion.share else float(np.std(self.deciding[self.best]))
        counted, values = _count_tested(self.plan, self.plan.scoring), self.deciding[a] - self.deciding[b]
        return _rescale(estimate_difference(values, self.plan.design, counted, span), self.criterion)


def judge(plan: Plan, outcomes: dict[Entry, Result], failed: dict[Entry, str]) -> Verdict:
    """Reduce the labels to numbers."""
    if all(entry.recentered for entry in outcomes):  # none that can be used
        reasons = "; ".join(f"{entry.title}: {why}" for entry, why in failed.items())
        raise ValueError(f"No method could be run. {reasons}")
    criterion = SCORES[plan.scoring]
    values = {entry: _score_matrices(plan, outcome) for entry, outcome in outcomes.items()}
    deciding = {at: criterion.sign * own[plan.scoring] for at, own in values.items() if plan.scoring in own}
    if not deciding:
        raise ValueError(f"No method gives scores for {criterion.word}: choose another scoring.")
    # Equal ones in the order of the table; those without the score last.
    means = {at: round(float(own.mean()), 12) for at, own in deciding.items()}
    ranked = sorted(values, key=lambda at: -means.get(at, -np.inf))
    scores = {at: {key: _estimate(plan, key, own) for key, own in values[at].items()} for at in ranked}
    return Verdict(plan, outcomes, failed, scores, {at: deciding[at] for at in ranked if at in deciding})


def _estimate(plan: Plan, key: str, values: np.ndarray) -> Estimate:
    score, counted = SCORES[key], _count_tested(plan, key)
    return _rescale(estimate_mean(values, plan.design, counted, bounded=score.share), score)


def _rescale(found: Estimate, score: Score) -> Estimate:
    """In the unit of the score; errors in units of the target have three digits."""
    digits, (mean, se, low, high) = score.digits, (score.scale * number for number in found[:4])
    if score.word == SCORES["mae"].word and found.se > 0:
        digits = max(0, 1 - int(np.floor(np.log10(found.se))))
    return Estimate(mean, se, low, high, digits)


def _count_tested(plan: Plan, score: str) -> float:
    """How many matrices have the binomial error of a score; fewer where the classes count alike."""
    codes = plan.codes[plan.tested]
    if score not in ("balanced", "auc"):
        return len(codes)
    counts = np.unique(codes, return_counts=True)[1]
    return float(len(counts) ** 2 / np.sum(1 / counts))


def _score_matrices(plan: Plan, outcome: Result) -> dict[str, np.ndarray]:
    """Values (n_repeats, n_tested) of each score that the method has."""
    truth, labels = plan.codes[plan.tested], outcome["labels"]
    if plan.classes is None:
        shares = [explain_variance(truth, row) for row in labels]
        return {"r2": np.array(shares), "mae": np.abs(labels - truth)}
    told = () if outcome["scores"] is None else zip(outcome["scores"], plan.places, strict=True)
    areas = [compute_auc(scores, truth, rows) for scores, rows in told]
    by_repeat = {
        "accuracy": labels == truth,
        "balanced": [balance((row == truth).astype(float), truth) for row in labels],
        "auc": [area for area in areas if area is not None],
        "logloss": () if outcome["losses"] is None else outcome["losses"],
    }
    return {name: np.asarray(rows, dtype=float) for name, rows in by_repeat.items() if len(rows)}


def find_confusions(counts: np.ndarray, most: int = 10) -> list[tuple[int, int, float, float]]:
    """What was confused most often, in a confusion (c, c): true class, label given, count, of how many."""
    wrong = counts * (1 - np.eye(len(counts)))
    places = np.argsort(-wrong, axis=None, kind="stable")[:most].tolist()
    pairs = [divmod(place, len(counts)) for place in places]
    return [(t, g, float(wrong[t, g]), float(counts[t].sum())) for t, g in pairs if wrong[t, g] > 0]


def sentences(verdict: Verdict) -> list[str]:
    """The answer: what to use, whether learning helps, whether recentering does."""
    found, unit, left_out = [headline(verdict)], verdict.criterion.gain, verdict.plan.left_out
    learned = [(pair[1], gain) for pair, gain in verdict.learning.items() if not pair[0].recentered]
    if learned:
        mean, gain = learned[0]
        found.append(_answer("Learning the metric", gain, unit, f"against {mean.title}"))
    else:
        pair = PAIRS[0] if verdict.plan.classes is None else PAIRS[1]
        why = [f"{find_method(name).title} {left_out[name]}" for name in pair if name in left_out]
        reason = (why or [f"run {pair[0]} and {pair[1]}"])[0]
        found.append(f"Whether learning the metric helps was not tested: {reason}.")
    for entry, gain in list(verdict.recentering.items())[:1]:
        text = _answer("Recentering each group by its own mean", gain, unit, f"with {entry.title}")
        found.append(f"{text} It needs all matrices of a new group at once, without labels.")
    return found


def headline(verdict: Verdict) -> str:
    """What to use, how good it is, and whether that is more than chance: for who reads one line."""
    score, chance, noise = verdict.criterion, verdict.chance, f"the noise of {verdict.plan.design.units}"
    plain = [entry for entry in verdict.deciding if not entry.recentered]
    if not plain:
        return f"No method without recentering gives scores for {score.word}."
    best, *others = plain
    own, title = verdict.score(best), best.title
    known = [entry for entry in others if entry.method in REFERENCES] or others
    show = _choose_digits([own.mean, chance, *(verdict.score(entry).mean for entry in known[:1])], score)
    words = "{} right" if score.word == "accuracy" else f"{score.word} {{}}"
    right = f"{words.format(show(own.mean))} on matrices it had not seen"
    guess = f"{'guessing' if verdict.plan.classes is not None else 'predicting the mean'}: {show(chance)}"
    if not others:
        return f"{title}, the only method that was run: {right} ({guess})."
    if verdict.plan.scoring == "accuracy" and all(verdict.score(entry).mean == 100 for entry in plain):
        all_right = f"All {len(plain)} methods are right on all {len(verdict.plan.tested)} matrices"
        interval = f"95 % interval {own.show(own.low)} to 100 %"
        return f"{all_right} that they had not seen ({interval}): these data do not tell them apart."
    if score.sign * (chance - (own.low if score.sign > 0 else own.high)) >= 0:
        text = f"Nothing here is clearly better than guessing: the best of {len(plain)}, {title}:"
        return f"{text} {right} ({guess}), within {noise}."
    name = known[0].title
    name = f"Plain {name[0].lower()}{name[1:]}" if known[0].method in REFERENCES else f"The next, {name}"
    clear = "more than" if verdict.compare(best, known[0]).sign else "within"
    text = f"Use {title}: {right} (best of {len(plain)}; {guess})."
    text += f" {name}: {words.format(show(verdict.score(known[0]).mean))}. The difference is {clear} {noise}."
    if verdict.best.recentered and verdict.behind[best].sign:
        aided = f"{words.format(show(verdict.score(verdict.best).mean))} with {verdict.best.title}"
        text += f" Where all matrices of a new group are there at once: {aided}."
    return text


def remarks(verdict: Verdict) -> dict[str, str]:
    """What else there is to say, and nothing where there is nothing."""
    ties = failures = ""
    if names := [entry.title for entry in verdict.tied]:
        listed = "; ".join(names) if len(names) <= 3 else f"{len(names)} others, marked ≈ in the table"
        ties = f"Not clearly behind {verdict.best.title}: {listed}."
    if names := [entry.title for entry in verdict.failed]:
        more = f" and {len(names) - 3} others" if len(names) > 3 else ""
        counts = f"{len(names)} of {len(names) + len(verdict.outcomes)}"
        why = f"{'; '.join(names[:3])}{more} ({next(iter(verdict.failed.values()))})"
        failures = f"{counts} methods failed and are not compared: {why}."
    return {"ties": ties, "failures": failures, "confound": confound_sentence(verdict.plan)}


def confound_sentence(plan: Plan) -> str:
    """A sentence where recentering removes what groups tell of the target; empty where it does not."""
    if plan.recentered is None or plan.groups is None:
        return ""
    codes, groups = plan.codes[: len(plan.groups)], np.unique(plan.groups, return_inverse=True)[1]
    Y = codes[:, None] if plan.classes is None else np.eye(len(plan.classes))[codes]
    n, k = len(Y), groups.max() + 1
    inside = sum(np.sum((Y[groups == g] - Y[groups == g].mean(axis=0)) ** 2) for g in range(k))
    share = 1 - inside / np.sum((Y - Y.mean(axis=0)) ** 2) * (n - 1) / max(1, n - k)  # as an adjusted R²
    if share < 0.4:  # as the estimators warn
        return ""
    what = f"{share:.0%} of the variance of the {'targets' if plan.classes is None else 'labels'}"
    removed = "recentering removes what the matrices tell of that"
    return f"Groups carry the target: {what} lies between them, and {removed}."


def _choose_digits(values: list[float], score: Score) -> Callable[[float], str]:
    """Show percentages without decimals, unless those that differ would look the same."""
    digits = score.digits
    if score.share and len({round(v) for v in values}) == len({round(v, 1) for v in values}):
        digits = int(any(99.5 <= value < 100 for value in values))
    if score.word == SCORES["mae"].word:
        digits = max(0, 2 - int(np.floor(np.log10(max(values)))))
    unit = " %" if score.share else ""
    return lambda value: f"{value:.{digits}f}{unit}".replace("-", "\N{MINUS SIGN}")


def _answer(what: str, gain: Estimate, unit: str, against: str) -> str:
    """What is gained or lost, as far as the numbers show."""
    numbers = f"{gain.show(gain.mean, '+')} {unit} {against} (95 % interval {gain.interval})."
    if gain.sign == 0:
        return f"Whether {what[0].lower()}{what[1:]} helps cannot be told: {numbers}"
    return f"{what} {'helps' if gain.sign > 0 else 'hurts'}: {numbers}"


def saved_sentence(verdict: Verdict, method: str, file: str) -> str:
    """Which method was kept in a file, and why not the best."""
    text = f"{file} holds {find_method(method).title}, trained on all {len(verdict.plan.trained)} matrices."
    if method == verdict.unaided[0] and verdict.best.recentered:
        text += f" {verdict.best.title} needs all matrices of a new group at once and cannot be kept."
    return text
