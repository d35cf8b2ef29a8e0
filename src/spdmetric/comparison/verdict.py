"""From labels to numbers with errors, and to the sentences that answer the question.

A value for each matrix and repeat (see `scores`) gives a mean; the design of the comparison (see `errors`)
gives its error.  Differences are paired, matrix by matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spdmetric.comparison.errors import Estimate, estimate_difference, estimate_mean
from spdmetric.comparison.methods import PAIRS, find_method
from spdmetric.comparison.plan import Entry, Plan
from spdmetric.comparison.run import Comparison, Outcome
from spdmetric.comparison.scores import SCORES, Score, balance, compute_auc, explain_variance

# What everybody knows, to compare with.
REFERENCES = ("logeuclid-mean-lda", "logeuclid-mean-ridge")


class Line(NamedTuple):
    """One method, on the matrices as they are or recentered."""

    entry: Entry
    scores: dict[str, Estimate | None]  # by SCORES; None where the method does not give what it takes
    behind: Estimate | None  # behind the best in the score that decides; None for the best itself
    seconds: float
    tied: bool = False  # whether its distance to the best may be zero, and that of all above it


class Verdict(NamedTuple):
    """All lines, the best first; those without the score that decides last."""

    plan: Plan
    lines: tuple[Line, ...]
    learning: dict[tuple[Entry, Entry], Estimate]  # gains of PAIRS, as the matrices are; then recentered
    recentering: dict[Entry, Estimate]  # gains, by the method that is not recentered
    compare: Callable[[Entry, Entry], Estimate]  # gain of the first over the second

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
        return next((method for method in self.unaided if find_method(method).family == "learned"), None)

    @property
    def criterion(self) -> Score:
        """The score that decides."""
        return SCORES[self.plan.scoring]

    @property
    def chance(self) -> float:
        """Score of guessing: the largest class, the shares of the classes, or the mean target."""
        if self.plan.classes is None:
            y = self.plan.codes[self.plan.tested]
            return 0.0 if self.plan.scoring == "r2" else float(np.mean(np.abs(y - y.mean())))
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


def judge(comparison: Comparison) -> Verdict:
    """Reduce the labels to numbers."""
    plan, design = comparison.plan, comparison.plan.design
    if all(entry.recentered for entry in comparison.outcomes):  # none that can be used
        reasons = "; ".join(f"{entry.title}: {why}" for entry, why in comparison.failed.items())
        raise ValueError(f"No method could be run. {reasons}")
    criterion = SCORES[plan.scoring]
    values = {entry: _score_matrices(plan, outcome) for entry, outcome in comparison.outcomes.items()}
    deciding = {at: criterion.sign * own[plan.scoring] for at, own in values.items() if plan.scoring in own}
    if not deciding:
        raise ValueError(f"No method gives scores for {criterion.word}: choose another scoring.")
    # Equal ones in the order of the table.
    order = sorted(deciding, key=lambda entry: -round(float(deciding[entry].mean()), 12))
    span = 1.0 if criterion.bounded else float(np.std(deciding[order[0]]))

    def gain(a: Entry, b: Entry) -> Estimate:
        counted = _count_tested(plan, plan.scoring)
        found = estimate_difference(deciding[a] - deciding[b], design, counted, span)
        return _rescale(found, criterion)

    def line(entry: Entry) -> Line:
        scores: dict[str, Estimate | None] = dict.fromkeys(plan.scores)
        for key, rows in values[entry].items():
            counted, score = _count_tested(plan, key), SCORES[key]
            own = design._replace(codes=None if design.codes is None else design.codes[: len(rows)])
            scores[key] = _rescale(estimate_mean(rows, own, counted, bounded=score.bounded), score)
        return Line(entry, scores, None, comparison.outcomes[entry].seconds)

    lines, tied = [line(order[0])], True
    for entry in order[1:]:
        behind = gain(order[0], entry)
        tied = tied and behind.sign == 0  # what stands below a clear difference is not tied either
        lines.append(line(entry)._replace(behind=behind, tied=tied))
    lines += [line(entry) for entry in values if entry not in deciding]
    pairs = [(Entry(a, form), Entry(b, form)) for form in (False, True) for a, b in PAIRS]
    forms = [(at._replace(recentered=True), at) for at in deciding if not at.recentered]
    return Verdict(
        plan,
        tuple(lines),
        {pair: gain(*pair) for pair in pairs if set(pair) <= set(deciding)},
        {plain: gain(entry, plain) for entry, plain in forms if entry in deciding},
        gain,
    )


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


def _score_matrices(plan: Plan, outcome: Outcome) -> dict[str, np.ndarray]:
    """Values (n_repeats, n_tested) of each score that the method has."""
    truth, areas = plan.codes[plan.tested], []
    if plan.classes is None:
        errors = [np.abs(row - truth) for row in outcome.labels]
        return {
            "r2": np.array([explain_variance(truth, row) for row in outcome.labels]),
            "mae": np.array(errors),
        }
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
    return {name: np.asarray(rows, dtype=float) for name, rows in by_repeat.items() if len(rows)}


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
    """The answer: what to use, whether learning helps, whether recentering does."""
    score, first = verdict.criterion, next(iter(verdict.learning), None)
    if first is None or first[0].recentered:
        learned, mean = PAIRS[0] if verdict.plan.classes is None else PAIRS[1]
        left_out = verdict.plan.left_out
        why = [f"{find_method(name).title} {left_out[name]}" for name in (learned, mean) if name in left_out]
        why += [f"run {learned} and {mean}"]
        found = [f"Whether learning the metric helps was not tested: {why[0]}."]
    else:
        gain, against = verdict.learning[first], f"against {first[1].title}"
        found = [_answer("Learning the metric", gain, score.gain, against)]
    for entry, gain in list(verdict.recentering.items())[:1]:
        transductive = "It needs all matrices of a new group at once, without labels."
        what = "Recentering each group by its own mean"
        found.append(f"{_answer(what, gain, score.gain, f'with {entry.title}')} {transductive}")
    return [headline(verdict), *found]


def headline(verdict: Verdict) -> str:
    """What to use, how good it is, and whether that is more than chance: for who reads one line."""
    score, noise = verdict.criterion, f"the noise of {verdict.plan.design.units}"
    plain = [line for line in verdict.ranked if not line.entry.recentered]
    if not plain:
        return f"No method without recentering gives scores for {score.word}."
    best, *others = plain
    own, title = verdict.score(best.entry), best.entry.title
    known = [line for line in others if line.entry.method in REFERENCES] or others
    means = [own.mean, verdict.chance, *(verdict.score(line.entry).mean for line in known[:1])]
    show = _choose_digits(means, score)
    if not others:
        return f"{title}, the only method that was run: {show(own.mean)} {_UNSEEN} ({_guess(verdict, show)})."
    if verdict.plan.scoring == "accuracy" and all(verdict.score(line.entry).mean == 100 for line in plain):
        low = f"{own.show(own.low)} to 100 %"
        text = (
            f"All {len(plain)} methods are right on all {len(verdict.plan.tested)} matrices that they had not"
        )
        return f"{text} seen (95 % interval {low}): these data do not tell them apart."
    if score.sign * (verdict.chance - (own.low if score.sign > 0 else own.high)) >= 0:
        text = f"Nothing here is clearly better than guessing: the best of {len(plain)}, {title}:"
        return f"{text} {show(own.mean)} {_UNSEEN} ({_guess(verdict, show)}), within {noise}."
    text = f"Use {title}: {show(own.mean)} {_UNSEEN} (best of {len(plain)}; {_guess(verdict, show)})."
    other = known[0]
    name, gap = other.entry.title, verdict.compare(best.entry, other.entry)
    name = f"Plain {name[0].lower()}{name[1:]}" if other.entry.method in REFERENCES else f"The next, {name}"
    clear = f"is more than {noise}" if gap.sign else f"is within {noise}"
    text += f" {name}: {show(verdict.score(other.entry).mean)}. The difference {clear}."
    if verdict.best.entry.recentered and best.behind is not None and best.behind.sign:
        aided = f"{show(verdict.score(verdict.best.entry).mean)} with {verdict.best.entry.title}"
        text += f" Where all matrices of a new group are there at once: {aided}."
    return text


def tie_sentence(verdict: Verdict) -> str:
    """Which methods are not clearly behind the best, by name where they are few."""
    names = [line.entry.title for line in verdict.ranked if line.tied]
    if not names:
        return ""
    listed = "; ".join(names) if len(names) <= 3 else f"{len(names)} others, marked ≈ in the table"
    return f"Not clearly behind {verdict.best.entry.title}: {listed}."


def failure_sentence(comparison: Comparison) -> str:
    """Which methods failed, with the first reason; empty where none did."""
    if not comparison.failed:
        return ""
    names = [entry.title for entry in comparison.failed]
    total, why = len(names) + len(comparison.outcomes), next(iter(comparison.failed.values()))
    listed = "; ".join(names) if len(names) <= 3 else f"{'; '.join(names[:3])} and {len(names) - 3} others"
    return f"{len(names)} of {total} methods failed and are not compared: {listed} ({why})."


def confound_sentence(plan: Plan) -> str:
    """A warning where recentering removes what groups tell of the target; empty where it does not."""
    if plan.recentered is None or plan.groups is None:
        return ""
    codes, groups = plan.codes[: len(plan.groups)], np.unique(plan.groups, return_inverse=True)[1]
    Y = codes[:, None] if plan.classes is None else np.eye(len(plan.classes))[codes]
    n, k = len(Y), groups.max() + 1
    inside = sum(np.sum((Y[groups == g] - Y[groups == g].mean(axis=0)) ** 2) for g in range(k))
    share = 1 - inside / np.sum((Y - Y.mean(axis=0)) ** 2) * (n - 1) / max(1, n - k)  # as an adjusted R²
    if share < 0.4:  # as the estimators warn
        return ""
    what = "targets" if plan.classes is None else "labels"
    return (
        f"Groups carry the target: {share:.0%} of the variance of the {what} lies between them, and "
        "recentering removes what the matrices tell of that."
    )


_UNSEEN = "on matrices it had not seen"


def _guess(verdict: Verdict, show: Callable[[float], str]) -> str:
    if verdict.plan.classes is None:
        return f"predicting the mean: {show(verdict.chance).removeprefix('R² ')}"
    return (
        f"guessing: {show(verdict.chance).removesuffix(' right').removeprefix(verdict.criterion.word + ' ')}"
    )


def _choose_digits(values: list[float], score: Score) -> Callable[[float], str]:
    """Show percentages without decimals, unless those that differ would look the same."""
    digits = score.digits
    if score.scale == 100 and len({round(v) for v in values}) == len({round(v, 1) for v in values}):
        digits = int(any(99.5 <= value < 100 for value in values))
    if score.word == SCORES["mae"].word:
        digits = max(0, 2 - int(np.floor(np.log10(max(values)))))
    before = "" if score.word == "accuracy" else f"{score.word} "
    after = " right" if score.word == "accuracy" else ""
    return lambda value: f"{before}{value:.{digits}f}{score.unit}{after}".replace("-", "\N{MINUS SIGN}")


def _answer(what: str, gain: Estimate, unit: str, against: str) -> str:
    """What is gained or lost, as far as the numbers show."""
    numbers = f"{gain.show(gain.mean, '+')} {unit} {against} (95 % interval {gain.interval})."
    if gain.sign == 0:
        return f"Whether {what[0].lower()}{what[1:]} helps cannot be told: {numbers}"
    return f"{what} {'helps' if gain.sign > 0 else 'hurts'}: {numbers}"


def saved_sentence(verdict: Verdict, method: str, file: str) -> str:
    """Which method was kept in a file, and why not the best."""
    text = f"{file} holds {find_method(method).title}, trained on all {len(verdict.plan.trained)} matrices."
    if method == verdict.unaided[0] and verdict.best.entry.recentered:
        text += f" {verdict.best.entry.title} needs all matrices of a new group at once and cannot be kept."
    return text
