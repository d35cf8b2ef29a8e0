"""Nested cross-validation of all methods, fold by fold, interrupted and gone on with at will.

The journal is that of ``spdmetric reproduce``: a line of JSON for each finished task.  A task
is a fold and the methods that share work in it.  Nothing depends on the order of the tasks.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from spdmetric.comparison.learned import learn_all
from spdmetric.comparison.methods import ENTRIES, Fold, Means, cv_embedded, left_out, means_for
from spdmetric.evaluation.journal import State
from spdmetric.io.matrices import Matrices
from spdmetric.paper.work import Vectors, Work

FORMAT = 1
FOLDS = 5
MOST_LEFT_OUT = 10  # groups that are left out one at a time; more are gathered
MOST_DRAWN = 500  # training matrices in the picture of the embedding
LEARNED = "all matrices"  # the task that is not a fold

Split = tuple[np.ndarray, np.ndarray]  # training and test indices


@dataclass(frozen=True)
class Plan:
    """All that decides the numbers."""

    X: np.ndarray  # (n, d, d), those of a test file behind the others
    codes: np.ndarray  # (n,), classes as 0, 1, ...
    classes: np.ndarray
    splits: tuple[tuple[Split, ...], ...]  # of each repeat
    clusters: np.ndarray | None  # (n,), what counts as one observation; None: each matrix
    how: str  # the same in a sentence
    means: Means
    methods: tuple[str, ...]
    left_out: dict[str, str]
    seed: int

    @property
    def tested(self) -> np.ndarray:
        """Indices of the matrices that are labeled in every repeat."""
        return np.sort(np.concatenate([test for _, test in self.splits[0]]))

    @property
    def trained(self) -> np.ndarray:
        """Indices of the matrices that the final metric may learn from."""
        return np.unique(np.concatenate([train for train, _ in self.splits[0]]))


@dataclass(frozen=True)
class Comparison:
    """What came out: labels given to each matrix, and the pictures' numbers."""

    plan: Plan
    given: dict[str, np.ndarray]  # method -> (n_repeats, n_tested) codes
    seconds: dict[str, float]  # mean of a fold
    failed: dict[str, str]
    warned: dict[str, str]
    embedding: dict[str, Any] | None
    learned: dict[str, Any] | None


# ---------------------------------------------------------------------------
# The plan


def make_plan(
    data: Matrices,
    test: Matrices | None,
    smallest_rank: int,
    *,
    methods: tuple[str, ...] | None = None,
    repeats: int | None = None,
    seed: int = 0,
) -> Plan:
    """Decide on folds, repeats and methods.

    Parameters
    ----------
    data : Matrices
        With labels; with groups, whole groups are left out.
    test : Matrices, optional
        Test matrices, with labels; then there is one fold.
    smallest_rank : int
        The lowest rank of the matrices.
    methods : tuple of str, optional
        Keys of `ENTRIES`; all by default.
    repeats : int, optional
        How often the folds are drawn anew; by default once to five times, by the size of the data.
    seed : int, default=0
        Of the folds.

    Returns
    -------
    plan : Plan
    """
    X, y, n = _together(data, test)
    classes, codes = np.unique(y, return_inverse=True)
    clusters = None
    if test is not None:
        splits: tuple[tuple[Split, ...], ...] = (((np.arange(n), np.arange(n, len(X))),),)
        how = f"Every method was trained on the {n} matrices and tested on the {len(X) - n} of {test.name}."
    elif data.groups is not None:
        splits, how = _by_groups(codes, data.groups)
        clusters = np.unique(data.groups, return_inverse=True)[1]
    else:
        splits, how = _by_folds(X, codes, repeats, seed)
    smallest = _smallest_class(codes, splits, classes)
    means = means_for(X.shape[1], smallest_rank, smallest)
    out = left_out(X.shape[1], smallest_rank, min(len(train) for train, _ in splits[0]))
    chosen = tuple(m for m in methods or tuple(ENTRIES) if m not in out)
    out = {m: why for m, why in out.items() if methods is None or m in methods}
    return Plan(X, codes, classes, splits, clusters, how, means, chosen, out, seed)


def _together(data: Matrices, test: Matrices | None) -> tuple[np.ndarray, np.ndarray, int]:
    if test is None:
        return np.asarray(data.X, float), data.labels, len(data.X)
    if data.X.shape[1:] != test.X.shape[1:]:
        raise ValueError(
            f"{test.name} has matrices of size {test.X.shape[1]} and {data.name} of size {data.X.shape[1]}: "
            "expected one size."
        )
    unknown = sorted(set(map(str, test.labels)) - set(map(str, data.labels)))
    if unknown:
        raise ValueError(
            f"{test.name} has the label {unknown[0]!r}, which {data.name} has not; expected the same labels."
        )
    X = np.concatenate([data.X, test.X]).astype(float)
    return X, np.concatenate([data.labels, test.labels]), len(data.X)


def _by_groups(codes: np.ndarray, groups: np.ndarray) -> tuple[tuple[tuple[Split, ...], ...], str]:
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise ValueError(f"All matrices are in the group {groups[0]}: expected at least two groups.")
    if n_groups <= MOST_LEFT_OUT:
        splitter: Any = LeaveOneGroupOut()
        how = f"Each of the {n_groups} groups was left out in turn: trained on the others, tested on it."
    else:
        splitter = GroupKFold(MOST_LEFT_OUT)
        how = (
            f"The {n_groups} groups were dealt into {MOST_LEFT_OUT} folds, each left out in turn, no group "
            "in training and test at once."
        )
    return (tuple(splitter.split(codes, codes, groups)),), how


def _by_folds(
    X: np.ndarray, codes: np.ndarray, repeats: int | None, seed: int
) -> tuple[tuple[tuple[Split, ...], ...], str]:
    from sklearn.model_selection import StratifiedKFold

    counts = np.bincount(codes)
    if len(counts) < 2:
        raise ValueError("All matrices have one label: expected at least two classes.")
    if counts.min() < 4:
        raise ValueError(
            f"The smallest class has {counts.min()} matrices: expected at least 4 of each, to train, to "
            "choose and to test on."
        )
    folds = min(FOLDS, int(counts.min()))
    if repeats is None:
        repeats = int(np.clip(8e5 // (len(X) * X.shape[1] ** 3), 1, 5))
    splits = tuple(
        tuple(StratifiedKFold(folds, shuffle=True, random_state=1000 * seed + r).split(X, codes))
        for r in range(repeats)
    )
    drawn = "" if repeats == 1 else f" The folds were drawn {repeats} times."
    how = f"Stratified {folds}-fold cross-validation: each matrix was labeled by methods that never saw it."
    return splits, how + drawn


def _smallest_class(codes: np.ndarray, splits: tuple[tuple[Split, ...], ...], classes: np.ndarray) -> int:
    """Size of the smallest class in any training set."""
    smallest = len(codes)
    for train, _ in (split for folds in splits for split in folds):
        present = np.bincount(codes[train], minlength=len(classes))
        present = present[present > 0]
        if len(present) < 2 or present.min() < 2:
            raise ValueError(
                "A training set would hold one class only, or a class of one matrix: expected at least two "
                "matrices of two classes outside each group or fold. Use other groups."
            )
        smallest = min(smallest, int(present.min()))
    return smallest


# ---------------------------------------------------------------------------
# The run

Task = tuple[str, int]  # what, and the repeat


def compare(
    plan: Plan,
    journal: Path,
    *,
    jobs: int = 1,
    progress: Callable[[Iterable[Any], int, int], Iterable[Any]] | None = None,
) -> Comparison:
    """Run what is left of a comparison.

    Parameters
    ----------
    plan : Plan
        What to run.
    journal : Path
        File of finished tasks; begun where there is none.
    jobs : int, default=1
        Processes.
    progress : callable, optional
        Wraps the iterator of finished tasks: ``progress(iterator, done, total)``.

    Returns
    -------
    comparison : Comparison
    """
    tasks = _tasks(plan)
    state = State(journal, _header(plan))
    done = state.load()
    left = {task: call for task, call in tasks.items() if task not in done}
    finished: Iterable[Any] = _run_all(left, jobs)
    if progress is not None:
        finished = progress(finished, len(tasks) - len(left), len(tasks))
    for task, results in finished:
        outcome = {"seed": plan.seed, "results": results}
        state.append(task, outcome)
        done[task] = outcome
    return _gathered(plan, {task: done[task]["results"] for task in tasks})


def _header(plan: Plan) -> dict[str, Any]:
    from spdmetric import __version__

    data = hashlib.sha256()
    for array in (plan.X, plan.codes, *(a for folds in plan.splits for split in folds for a in split)):
        data.update(np.ascontiguousarray(array).tobytes())
    return {
        "format": FORMAT,
        "version": __version__,
        "data": data.hexdigest(),
        "classes": list(map(str, plan.classes)),
        "methods": list(plan.methods),
        "seed": plan.seed,
    }


def _tasks(plan: Plan) -> dict[Task, Callable[[], Any]]:
    """Every task; the longest first, so that the processes end together."""
    parts = {part: [m for m in plan.methods if ENTRIES[m].part == part] for part in ("cv", "quick")}
    tasks: dict[Task, Callable[[], Any]] = {}
    if parts["cv"]:
        tasks[LEARNED, 0] = partial(_learned, plan.X[plan.trained], plan.codes[plan.trained], plan.means)
    for part, methods in parts.items():
        for repeat, folds in enumerate(plan.splits):
            for k, (train, test) in enumerate(folds):
                if methods:
                    fold = (plan.X[train], plan.codes[train], plan.X[test], plan.means)
                    draw = part == "cv" and repeat == k == 0
                    tasks[f"{part} {k}", repeat] = partial(_fold, fold, methods, draw)
    return tasks


def _run_all(tasks: dict[Task, Callable[[], Any]], jobs: int) -> Iterator[tuple[Task, Any]]:
    from joblib import Parallel, delayed

    calls = (delayed(_called)(task, call) for task, call in tasks.items())
    yield from Parallel(n_jobs=min(jobs, max(1, len(tasks))), return_as="generator_unordered")(calls)


def _called(task: Task, call: Callable[[], Any]) -> tuple[Task, Any]:
    from threadpoolctl import threadpool_limits

    # As in the experiments: small problems always take the same kernel, whatever ran before.
    os.environ.setdefault("SPDMETRIC_COMPILED", "1")
    with threadpool_limits(1):
        return task, call()


def _learned(X: np.ndarray, codes: np.ndarray, means: Means) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the folds report theirs
        return learn_all(X, codes, means)


def _fold(data: tuple[Any, ...], methods: list[str], draw: bool) -> dict[str, Any]:
    # Imported here, so that no method is charged with the seconds of it.
    import pyriemann.classification
    import pyriemann.spatialfilters  # noqa: F401

    fold = Fold(*data)
    results: dict[str, Any] = {"methods": {name: _outcome(fold, name) for name in methods}}
    if draw:
        results["embedding"] = _embedding(fold)
    return results


def _outcome(fold: Fold, name: str) -> dict[str, Any]:
    """Labels of one method; where it fails or warns, its words: the others go on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            labels, seconds = fold.timed(partial(ENTRIES[name].run, fold))
        except Exception as error:
            return {"error": " ".join(f"{type(error).__name__}: {error}".split())}
    said = dict.fromkeys(
        " ".join(str(w.message).split()) for w in caught if not issubclass(w.category, DeprecationWarning)
    )
    return {"labels": np.asarray(labels).tolist(), "seconds": round(seconds, 3), "warnings": list(said)}


# ---------------------------------------------------------------------------
# The picture of the embedding


def _embedding(fold: Fold) -> dict[str, Any] | None:
    """Two principal components before and after learning, of one fold."""
    from spdmetric.evaluation.methods import embedded

    try:
        before = embedded("mean", fold) if fold.means.ranks is None else _flat(fold)
        panels = {"before": _plane(before), "after": _plane(cv_embedded(fold, 1))}
    except (ValueError, np.linalg.LinAlgError):
        return None
    kept = slice(0, MOST_DRAWN)
    return {name: {**panel, "train": panel["train"][kept]} for name, panel in panels.items()}


def _flat(fold: Work) -> Vectors:
    """Entries of the matrices: singular ones have no tangent vectors."""
    return Vectors(fold.X.reshape(len(fold.X), -1), fold.X_test.reshape(len(fold.X_test), -1))


def _plane(vectors: Vectors) -> dict[str, Any]:
    center = vectors.train.mean(axis=0)
    _, spread, axes = np.linalg.svd(vectors.train - center, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True) + 1e-300)  # a sign is not a result
    share = spread[:2] ** 2 / np.sum(spread**2)
    train, test = ((v - center) @ axes.T for v in vectors)
    return {
        "train": np.round(train, 5).tolist(),
        "test": np.round(test, 5).tolist(),
        "share": share.tolist(),
    }


# ---------------------------------------------------------------------------
# From the journal to arrays


def _gathered(plan: Plan, results: dict[Task, Any]) -> Comparison:
    given = {m: np.full((len(plan.splits), len(plan.codes)), -1) for m in plan.methods}
    seconds: dict[str, list[float]] = {m: [] for m in plan.methods}
    failed: dict[str, str] = {}
    warned: dict[str, str] = {}
    embedding = None
    for (what, repeat), found in results.items():
        if what == LEARNED:
            continue
        embedding = found.get("embedding", embedding)
        _, test = plan.splits[repeat][int(what.split()[1])]
        for method, outcome in found["methods"].items():
            if "error" in outcome:
                failed.setdefault(method, outcome["error"])
                continue
            given[method][repeat, test] = outcome["labels"]
            seconds[method].append(outcome["seconds"])
            for said in outcome["warnings"]:
                warned.setdefault(method, said)
    return Comparison(
        plan,
        {m: labels[:, plan.tested] for m, labels in given.items() if m not in failed},
        {m: float(np.mean(s)) for m, s in seconds.items() if m not in failed},
        failed,
        warned,
        embedding,
        results.get((LEARNED, 0)),
    )
