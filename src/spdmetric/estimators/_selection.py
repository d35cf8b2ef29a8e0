"""The choice of a metric by cross-validation: candidates, folds, scores, and the rule.

Every matrix is scored by a metric and a head that were learned without it; the center alone, where tangent
vectors are taken, is that of all matrices.  With few matrices most differences between candidates are noise,
so there is a candidate that is taken unless another is clearly better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from numbers import Integral
from types import SimpleNamespace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, StratifiedGroupKFold, check_cv
from sklearn.utils.metaestimators import available_if

from spdmetric.caller import spell
from spdmetric.estimators.heads import fit_head, fit_temperature, order_classes
from spdmetric.estimators.metric import LogEuclideanMetric, Problem, find_problem, solve_path
from spdmetric.linalg.batch import Factor, Views, make_stack, map_views, view_columns
from spdmetric.linalg.hermitian import fill_matrices
from spdmetric.linalg.symmetric import Array, Moments, Summary, compute_moments
from spdmetric.linalg.threads import threads
from spdmetric.objectives.data import Data, Rows, Summand, Target, row_chunks, take_view, whiten
from spdmetric.objectives.start import Start, ViewStarts, class_directions, find_start
from spdmetric.objectives.weighting import discriminant_weighting
from spdmetric.validation import smallest_rank

# The default candidates.  Past LARGEST_FULL the d(d+1)/2 directions of full rank are far too many for the
# data, and cost more than all low ranks together.
FULL_RADII, LOW_RADII, LOW_RANKS, LARGEST_FULL = (0.0, 2.0, 8.0), (0.0, 4.0), (4, 8), 32
WEIGHTINGS = ("discriminant", None)
NUMBERS, USUAL_NUMBER = (1, 5, 11, 21), 21  # of neighbors; the usual one as far as there are so many

N_FOLDS, FEW, REPEATS = 5, 200, 2  # fewer matrices than FEW are split more than once
# Of more matrices than LEAST_DRAWN, or MOST_ROWS rows in all, so many are drawn for the choice: they tell
# candidates apart well enough, and neighbors compare all with all.  What is chosen is learned from all.
LEAST_DRAWN, MOST_ROWS = 2_000, 60_000

# By how many standard errors of the difference another candidate must be better than the usual one: one of
# its radius, one of a larger; neighbors with a metric of their own than class means, or than neighbors with
# the metric of these; all views than the first alone.
CLEAR, CLEAR_LEARNED, CLEAR_HEAD, CLEAR_OWN, CLEAR_VIEWS = 0.5, 2.0, 2.0, 1.0, 2.0
LEAST_GAIN = 1e-3  # options that tell nothing differ by less, without any noise
LEAST_PROBABILITY = 1e-3  # of a label in the score: a class that a fold lacks has none
_TINY = float(np.finfo(np.float64).tiny)


class Candidate(NamedTuple):
    """A metric and a head to try."""

    radius: float
    rank: int | None
    weighting: str | None
    views: str | None = None  # "first" or "all" where samples have several
    n_neighbors: int | None = None  # None: class means, or ridge regression


Fold = tuple[np.ndarray, np.ndarray]  # rows to train on, rows to test on


def values_of(name: str, candidates: Iterable[Candidate]) -> list[Any]:
    """What candidates try of a parameter, in their order."""
    return list(dict.fromkeys(getattr(candidate, name) for candidate in candidates))


def make_candidates(
    radii: Sequence[float] | None,
    ranks: Sequence[int | None] | None,
    weightings: Sequence[str | None] | None,
    numbers: Sequence[int],
    data: Data,
) -> list[Candidate]:
    """Candidates that are given, or the default ones for these data.

    The first is the usual one, taken unless another is clearly better: full rank, or the highest by default,
    the least radius, and a weighting.
    """
    d = data.shape[-1]
    smallest = d if ranks is not None else smallest_rank(data.X)
    if ranks is None:  # full rank, or that of the matrix of the smallest rank, and low ranks below it
        chosen = [None if smallest == d else smallest, *(m for m in LOW_RANKS if m < smallest)]
    else:
        chosen = sorted(set(ranks), key=lambda m: 0 if m is None else m)
    if chosen[-1] is not None and chosen[-1] > d:
        raise ValueError(f"{spell('rank', chosen[-1])} is more than the size of the matrices, {d} x {d}.")
    weightings = [one for one in WEIGHTINGS if weightings is None or one in weightings]
    candidates: list[Candidate] = []
    for rank in chosen:
        tried: Sequence[float]
        if radii is not None:
            tried = sorted(set(radii))
        elif rank is None:
            tried = FULL_RADII if d <= LARGEST_FULL else FULL_RADII[:1]
        else:  # of the whole range there is no choice of directions: as full rank
            tried = LOW_RADII[:1] if ranks is None and rank == smallest else LOW_RADII
        options = product(tried, weightings, (None, *numbers))
        candidates += [Candidate(radius, rank, weighting, None, k) for radius, weighting, k in options]
    return candidates


# -- Folds ---


def make_folds(
    cv: Any, data: Data, classes: np.ndarray | None, groups: Array | None, random_state: int
) -> list[Fold]:
    """Split the matrices; those without weight are in no fold, and not counted.

    Classes are numbered as they come, whatever their names.
    """
    counts = data.target.weight > 0
    if cv is None or isinstance(cv, Integral):
        data, groups, counts = data.weighted, None if groups is None else groups[counts], counts[counts]
    codes = labels = data.target.values
    if classes is not None:
        labels = np.argsort(order_classes(codes, len(classes)))[codes]
    if cv is not None:
        cut = partial(check_cv, cv, labels, classifier=classes is not None)
        splits = check_splits(cv, lambda: cut().split(data.X, labels, groups), len(codes))
    elif groups is not None:
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise ValueError("groups has one group: expected two or more, which the folds keep apart.")
        splitter = GroupKFold(N_FOLDS) if classes is None else StratifiedGroupKFold(N_FOLDS)
        splitter = LeaveOneGroupOut() if n_groups <= N_FOLDS else splitter  # no fold may stay empty
        splits = list(splitter.split(codes, labels, groups))
    else:
        splits = stratified_folds(labels, random_state, by_class=classes is not None)
    place = np.cumsum(counts) - 1  # among those with weight
    folds = [(place[train[counts[train]]], place[test[counts[test]]]) for train, test in splits]
    codes, labels = codes[counts], labels[counts]
    share = max(LEAST_DRAWN, MOST_ROWS // prod(data.shape[1:-1])) / len(codes)
    if cv is None and share < 1:
        strata = np.zeros(len(codes), dtype=int) if classes is None else labels
        drawn = _draw(folds, strata, share, random_state)
        folds = [(train[drawn[train]], test[drawn[test]]) for train, test in folds]
    for k, (train, test) in enumerate(folds):
        present = np.unique(codes[train], axis=0)
        if len(present) < 2:
            of = "values" if classes is None else "classes"
            found = "of y alike" if classes is None else classes[present].tolist()
            raise ValueError(
                f"Fold {k} of {len(folds)} has matrices of {of} {found} to learn from: expected two {of} or "
                "more in each fold. Use stratified folds (a number for cv), larger groups, or more matrices."
            )
        if test.size == 0:
            raise ValueError(
                f"Fold {k} of {len(folds)} has no matrices with weight to score: expected at least one."
            )
    return folds


def check_splits(cv: Any, splits: Callable[[], Any], n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return rows to train and to test on, of each fold that ``cv`` cuts n matrices into."""
    rows = np.arange(n)
    try:
        return [(rows[train], rows[test]) for train, test in splits()]
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(
            f"cv={cv!r} cannot split {n} matrices: expected a number of folds, a splitter, or pairs of the "
            f"indices to train and to test on ({error})"
        ) from error


def stratified_folds(codes: np.ndarray, random_state: int, *, by_class: bool = True) -> list[Fold]:
    """Five folds, fewer for small classes, twice where there are few matrices.

    Matrices of a class, in random order, go to the folds in turn, but never its only one; of regression
    targets all in the order of the first output.
    """
    n = len(codes)
    n_folds = int(np.clip(np.median(np.bincount(codes)) if by_class else n // 2, 2, N_FOLDS))
    codes = codes if by_class else codes[:, 0]
    folds: list[Fold] = []
    for repeat in range(REPEATS if n < FEW else 1):
        order = np.random.default_rng([random_state, repeat]).permutation(n)
        order = order[np.argsort(codes[order], kind="stable")]
        order = order[np.bincount(codes)[codes[order]] > 1] if by_class else order
        fold = np.full(n, -1)
        fold[order] = np.arange(len(order)) % n_folds
        folds += [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
    return folds


def _draw(folds: list[Fold], labels: np.ndarray, share: float, random_state: int) -> np.ndarray:
    """Draw a share of n matrices, (n,): of each class in each fold, of these at least one."""
    order = np.random.default_rng([random_state, REPEATS]).permutation(len(labels))
    drawn = np.ones(len(labels), dtype=bool)  # what no fold leaves out is learned from
    for _, test in folds:
        in_order = order[np.isin(order, test)]
        for label in np.unique(labels[test]):
            rows = in_order[labels[in_order] == label]
            drawn[rows[int(np.ceil(share * len(rows))) :]] = False
    return drawn


# -- Learning and scoring ---


@dataclass(eq=False)
class Whitened(Data):
    """All matrices, whitened by one center, which knows nothing of y; evaluated at this center alone."""

    center: Any = None  # `Start` or `ViewStarts`; None: no candidate is of full rank, nothing is whitened
    logs: np.ndarray | None = None  # (n, p), tangent vectors at the center

    def find_problem(
        self, rows: Rows, rank: int | None, metric: LogEuclideanMetric, *, searched: bool = True
    ) -> Problem:
        """What to learn from some of the matrices; where they are not whitened, it looks for a center.

        Where nothing is searched, tangent vectors at the center are all that is needed.
        """
        data = self.take(rows) if searched or rank is not None or metric.kernel != "linear" else self
        data = replace(data, target=data.target.present)
        if self.logs is None:
            return find_problem(data, find_start(data, metric.init, rank), rank, metric)
        indices = np.arange(len(self.logs))[rows]
        views, starts = [self.center] if isinstance(self.center, Start) else self.center.views, []
        for view, columns in zip(views, view_columns(view.center for view in views), strict=True):
            d, rotation = len(view.center), np.eye(len(view.center))
            if rank is not None:  # the directions that tell most, by the tangent vectors
                total = partial(_total, self.logs[:, columns], indices, view.center, data.target)
                rotation = class_directions(total, d, data.target.contrasts)
            starts.append(Start(np.eye(d), np.eye(d, dtype=data.dtype), rotation))
        start: Any = starts[0]
        if isinstance(self.center, ViewStarts):
            start = ViewStarts(tuple(starts), self.center.scales)
            start = start if rank is None else start.rescaled(data, (W[:rank] for W in start.factor.views))
        return find_problem(data, start, rank, metric, whitened=True)

    def decompose(self, W: Factor, *, gram: bool) -> tuple[Moments, Summary, list[Any]]:
        """Moments of the tangent vectors at the center, in one chunk."""
        known: Any = self.logs
        moments = compute_moments(known, self.target.Y, self.target.weight[:, None], gram=gram)
        return moments, Summary.from_moments(moments), [SimpleNamespace(features=known)]


def _total(logs: np.ndarray, indices: np.ndarray, center: np.ndarray, target: Target, f: Summand) -> Any:
    """Sum of a function of matrices, made from vectors: of some at a time, as all would leave the cache."""
    parts = row_chunks((len(indices), *center.shape))
    return sum(f(fill_matrices(logs[indices[rows]], center), target.part(rows)) for rows in parts)


def whiten_at_center(data: Data, candidates: Sequence[Candidate], init: str | Array) -> Whitened:
    """Whiten all matrices once, for the folds and the final fit: most of the time goes into the center.

    Where no candidate is of full rank matrices may be singular, and each fold looks for its own.
    """
    if None not in values_of("rank", candidates):
        return Whitened(data.X, data.target, data.rows, data.map)
    start = find_start(data, init, None)
    X = whiten(start.factor, data.X)
    logs = embed(X, start.ball(None, 0.0).center.factor)
    return Whitened(X, data.target, [slice(0, len(logs))], data.map, start, logs)  # evaluated in one chunk


def embed(X: np.ndarray | Views, W: Factor) -> np.ndarray:
    """Tangent vectors at a factor, (n, p), as an objective computes them."""
    if isinstance(W, Views):
        X = Views(tuple(take_view(X, v, one.shape[1]) for v, one in enumerate(W.views)))
    return np.concatenate([make_stack(X[rows]).decompose(W).features for rows in row_chunks(X.shape)])


# What a head says of the matrices that a fold leaves out, by candidate: evidence of classes, (n_test, c),
# before calibration, and their log prior, (c,); or the predicted targets and the mean of those of training.
FoldScores = dict[Candidate, tuple[np.ndarray, np.ndarray]]


def score_fold(
    whitened: dict[str | None, Whitened],
    fold: Fold,
    candidates: Sequence[Candidate],
    metric: LogEuclideanMetric,
) -> FoldScores:
    """Learn all candidates on a fold, and predict what it leaves out; of several views all that are tried."""
    scores: FoldScores = {}
    weightings = values_of("weighting", candidates)
    numbers = values_of("n_neighbors", candidates)[1:]  # besides None, of class means
    with threads():
        for views, of_views in whitened.items():
            target, d = of_views.target.take(fold[0]), of_views.shape[-1]
            for radius, rank, vectors in _learn_metrics(of_views, fold, candidates, metric):
                for weighting in weightings:
                    candidate = Candidate(radius, rank, weighting, views)
                    known, new = vectors
                    if weighting is not None:  # left out where no direction tells anything
                        learned = radius > 0 or (rank or d) < d
                        Q = discriminant_weighting(known, target.present, learned=learned).directions
                        known, new = (known @ Q, new @ Q) if Q.shape[1] else (known, new)
                    head = fit_head(known, target)
                    scores[candidate] = head.predict(new), head.offset
                    if numbers:
                        head = fit_head(known, target, max(numbers))
                        by_number = head.predict_by_number(new, numbers)
                        for k, predicted in zip(numbers, by_number, strict=True):
                            scores[candidate._replace(n_neighbors=k)] = predicted, head.offset
    return scores


def _learn_metrics(
    whitened: Whitened, fold: Fold, candidates: Sequence[Candidate], metric: LogEuclideanMetric
) -> Iterator[tuple[float, int | None, tuple[np.ndarray, np.ndarray]]]:
    """Radius and rank of each metric, and the vectors that it gives to training and test matrices."""
    train, test = fold
    problems: dict[bool, Problem] = {}  # of full rank, and of low rank: these share one start
    left_out = None
    for rank in values_of("rank", candidates):
        full, radii = rank is None, values_of("radius", (one for one in candidates if one.rank == rank))
        if full and whitened.logs is not None and radii[0] == 0:
            yield 0.0, None, (whitened.logs[train], whitened.logs[test])
            radii = radii[1:]
        if not radii:
            continue
        if full not in problems:
            problems[full] = whitened.find_problem(train, rank, metric)
        problem = problems[full]
        problem = problem if full or rank == problem.rank else problem.at_rank(rank)
        path = solve_path(problem, radii, metric)
        left_out = whitened.X[test] if left_out is None else left_out
        for radius, solution in zip(radii, path, strict=True):
            W = map_views(np.matmul, solution.point.factor, problem.start.factor)
            yield radius, rank, (solution.evaluation.vectors, embed(left_out, W))


class KnownPredictions(BaseEstimator):
    """Predictions of matrices that were left out, as an estimator for scikit-learn's scorers."""

    def __init__(self, predicted: np.ndarray, proba: Any = None, *, classes: np.ndarray | None = None):
        self.predicted, self.proba = predicted, proba
        self.classes = self.classes_ = classes

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.predicted

    @available_if(lambda self: self.proba is not None)
    def predict_proba(self, X: np.ndarray) -> Any:
        return self.proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.proba is None else "classifier"
        return tags


# -- Scores ---


class Table(NamedTuple):
    """Scores of all candidates; differences between rows are paired."""

    candidates: list[Candidate]
    splits: np.ndarray  # (n_candidates, n_folds), scores
    units: np.ndarray  # (n_candidates, n), scores compared: of every matrix, or of folds with a scorer
    right: np.ndarray  # (n_candidates, n), the same of the share of right labels
    temperatures: np.ndarray  # (n_candidates,), at which probabilities agree with the labels

    def best(
        self,
        among: Sequence[Candidate],
        found: Candidate,
        clear: float | None,
        learned: float | None = None,
        *,
        right: bool = False,
    ) -> Candidate:
        """The best of those that are better than one by so many standard errors, or that one.

        Those of its radius or less come first; ``learned`` is how much better one of a larger radius must be
        than what was found.  None needs no error, only a higher mean.
        """
        units = self.right if right else self.units
        limits = {found.radius: clear, np.inf: clear if learned is None else learned}
        for largest, errors in limits.items():
            base, highest = units[self.candidates.index(found)], 0.0
            for candidate in (one for one in among if one.radius <= largest):
                gain = units[self.candidates.index(candidate)] - base
                error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
                needed = 0.0 if errors is None else max(errors * error, LEAST_GAIN)
                if gain.mean() > max(needed, highest + 1e-12):
                    found, highest = candidate, gain.mean()
        return found


def tabulate(
    of_folds: Sequence[FoldScores],
    folds: Sequence[Fold],
    target: Any,
    classes: np.ndarray | None,
    scorer: Any,
) -> Table:
    """Score all candidates; a matrix that was left out several times counts by its mean."""
    candidates, tested = list(of_folds[0]), [test for _, test in folds]
    sizes, rows = [len(test) for test in tested], np.concatenate(tested)
    known: np.ndarray = target.values[rows]
    ends, columns = np.cumsum(sizes)[:-1], []
    for candidate in candidates:
        evidences, offsets = zip(*(fold[candidate] for fold in of_folds), strict=True)
        evidence, offset = np.concatenate(evidences), np.repeat(offsets, sizes, axis=0)
        if classes is None:
            *scored, said = _score_targets(evidence, offset, known, ends)
        else:
            *scored, said = _score_classes(evidence, offset, known, ends, classes)
        if scorer is not None:
            scored[0] = []
            for y, *predictions in zip(*(np.split(column, ends) for column in said), strict=True):
                model = KnownPredictions(*predictions, classes=classes)
                scored[0].append(float(check_scoring(model, scorer)(model, y.reshape(len(y), -1), y)))
        columns.append(scored)
    splits, units, right, temperatures = (np.array(column) for column in zip(*columns, strict=True))
    if scorer is not None:
        return Table(candidates, splits, splits, splits, temperatures)
    place = np.unique(rows, return_inverse=True)[1]
    times = np.bincount(place)
    units, right = (
        np.array([np.bincount(place, weights=row) / times for row in matrix]) for matrix in (units, right)
    )
    return Table(candidates, splits, units, right, temperatures)


# Scores of a candidate: of folds; of every matrix left out; whether its label is right; temperature; and for
# a scorer what is right, what was predicted, and of classes the probabilities.


def _score_classes(
    evidence: np.ndarray, offset: np.ndarray, codes: np.ndarray, ends: np.ndarray, classes: np.ndarray
) -> tuple[Any, ...]:
    """Score probabilities as they would be used, calibrated: a metric is not to lose for overconfidence."""
    temperature, every = fit_temperature(evidence, offset, codes), np.arange(len(codes))
    posterior = log_softmax(evidence / temperature + offset, axis=1)
    known = np.maximum(posterior[every, codes], np.log(LEAST_PROBABILITY))
    splits = [float(part.mean()) for part in np.split(known, ends)]
    tied = posterior == posterior.max(axis=1, keepdims=True)  # a label is right once, whatever their order
    right = tied[every, codes] / tied.sum(axis=1)
    order = order_classes(codes, len(classes))  # the first of equally probable ones is taken
    labels = classes[order[posterior[:, order].argmax(axis=1)]]
    return splits, known, right, temperature, (classes[codes], labels, np.exp(posterior))


def _score_targets(
    predicted: np.ndarray, level: np.ndarray, Y: np.ndarray, ends: np.ndarray
) -> tuple[Any, ...]:
    """Score every matrix by its squared error, negated, and a fold by its R2."""
    errors, spread = (np.sum((Y - of) ** 2, axis=1) for of in (predicted, level))
    parts = zip(np.split(errors, ends), np.split(spread, ends), strict=True)
    splits = [1 - float(part.sum()) / max(float(total.sum()), _TINY) for part, total in parts]
    shape = (-1,) if Y.shape[1] == 1 else Y.shape
    return splits, -errors, -errors, 1.0, (Y.reshape(shape), predicted.reshape(shape))


# -- The rule ---


def choose(table: Table, head: str, rule: str) -> Candidate:
    """Choose metric and head; of several views the first alone unless all are clearly better.

    The metric is chosen for class means, whose score is the least noisy, then the number of neighbors if they
    are wanted.  The best metric for neighbors is chosen apart, and taken where it is right clearly more often
    (classes may have several clusters), in place of class means also where labels are clearly more probable.
    """
    limits = (CLEAR, CLEAR_LEARNED, CLEAR_OWN, CLEAR_HEAD, CLEAR_VIEWS)
    clear, learned, clear_own, clear_head, clear_views = (None,) * 5 if rule == "best" else limits
    of_views = []
    for views in values_of("views", table.candidates):
        usual, *_ = here = [candidate for candidate in table.candidates if candidate.views == views]
        found = table.best([one for one in here if one.n_neighbors is None], usual, clear, learned)
        others = [one for one in here if one.n_neighbors is not None]
        if others and head in ("neighbors", "auto"):
            numbers = values_of("n_neighbors", others)
            number = min(numbers, key=lambda k: abs(k - USUAL_NUMBER))
            second = [table.best(others, usual._replace(n_neighbors=number), clear, learned)]
            if head == "neighbors":
                by_number = [found._replace(n_neighbors=k) for k in numbers]
                found = table.best(by_number, found._replace(n_neighbors=number), clear)
                found = table.best(second, found, clear_own, right=True)
            else:
                found = table.best(second, found, clear_head, right=True)
                found = table.best(second, found, clear_head)
        of_views.append(found)
    return table.best(of_views[1:], of_views[0], clear_views)


def lay_out_results(table: Table, *, accuracy: bool) -> dict[str, Any]:
    """Lay the scores out as scikit-learn does, a row for each metric and head."""
    names = [name for name in Candidate._fields if name != "views" or table.candidates[0].views is not None]
    rows = [{name: getattr(candidate, name) for name in names} for candidate in table.candidates]
    mean, gains = table.splits.mean(axis=1), table.units - table.units[0]
    results: dict[str, Any] = {"params": rows}
    for name in names:
        kind = float if name == "radius" else object
        results[f"param_{name}"] = np.array([row[name] for row in rows], kind)
    for k, column in enumerate(table.splits.T):
        results[f"split{k}_test_score"] = column
    if accuracy:
        results["mean_test_accuracy"] = table.right.mean(axis=1)
    return results | {
        "mean_test_score": mean,
        "std_test_score": table.splits.std(axis=1),
        "rank_test_score": 1 + np.array([int(np.sum(mean > m)) for m in mean]),
        "mean_gain": gains.mean(axis=1),
        "gain_error": gains.std(axis=1) * np.sqrt(1 / (max(2, gains.shape[1]) - 1)),
    }
