"""The run of a plan: nested cross-validation of all methods, fold by fold, resumable.

A task is a fold and the methods that share work in it.  Nothing depends on the order of the tasks.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from spdmetric.comparison.learned import Learned, learn_all
from spdmetric.comparison.plan import Plan
from spdmetric.evaluation import journal
from spdmetric.evaluation.journal import Failure, Journal, Key, Pieces, Plain, Progress, Task, attempt_each
from spdmetric.evaluation.methods import METHODS, Sizes
from spdmetric.evaluation.splits import Fold, Vectors, steps_of

MOST_DRAWN = 500  # training matrices in the picture of the embedding
BY_CV = "logeuclid-kta-cv"  # whose embedding is drawn
LEARNED, EMBEDDING = "learned", "embedding"  # pieces of the journal that are not methods


class Panel(TypedDict):
    """Two principal components of the vectors of a fold."""

    train: list[list[float]]
    test: list[list[float]]
    share: list[float]  # of the variance


@dataclass(frozen=True)
class Comparison:
    """What came out: labels given to each matrix, and the pictures' numbers."""

    plan: Plan
    given: dict[str, np.ndarray]  # method -> (n_repeats, n_tested) codes
    seconds: dict[str, float]  # mean of a fold
    failed: dict[str, str]
    warned: dict[str, str]
    embedding: dict[str, Panel] | None  # before and after learning
    learned: Learned | None


def run_plan(plan: Plan, path: Path, *, jobs: int = 1, progress: Progress | None = None) -> Comparison:
    """Run what is left of a comparison; finished tasks are in the journal at ``path``.

    For ``jobs`` and ``progress`` see `spdmetric.evaluation.journal.run`.
    """
    kept = Journal(path, _header(plan))
    return _gathered(plan, journal.run(_tasks(plan), kept, jobs=jobs, progress=progress))


def _header(plan: Plan) -> dict[str, Plain]:
    from spdmetric import __version__

    indices = [index for folds in plan.splits for split in folds for index in split]
    return {
        "version": __version__,
        "data": journal.digest(plan.X, plan.codes, *indices),
        "classes": list(map(str, plan.classes)),
        "methods": list(plan.methods),
        "seed": plan.seed,
    }


def _tasks(plan: Plan) -> dict[Key, Task]:
    """Every task; the longest first, so that the processes end together."""
    tasks: dict[Key, Task] = {}
    if any(METHODS[name].sweeps for name in plan.methods):
        tasks["all matrices", 0] = Task((LEARNED,), partial(_learned, plan), _accepts_learned)
    for sweeps in (True, False):
        names = tuple(name for name in plan.methods if METHODS[name].sweeps is sweeps)
        for repeat, folds in enumerate(plan.splits):
            for k in range(len(folds) if names else 0):
                drawn = (EMBEDDING,) if sweeps and repeat == k == 0 else ()
                key = f"{'sweeps' if sweeps else 'quick'} {k}", repeat
                tasks[key] = Task(
                    (*names, *drawn), partial(_fold, plan, repeat, k), partial(_accepts, plan, repeat, k)
                )
    return tasks


def _accepts_learned(name: str, piece: Plain) -> bool:
    return isinstance(piece, dict) and set(piece) == set(Learned.__annotations__)


def _accepts(plan: Plan, repeat: int, k: int, name: str, piece: Plain) -> bool:
    """Whether a kept piece can be that of a method: a class for each test matrix, seconds, warnings."""
    if name == EMBEDDING:
        panels = list(piece.values()) if isinstance(piece, dict) else []
        return len(panels) == 2 and all(
            isinstance(p, dict) and set(p) == set(Panel.__annotations__) for p in panels
        )
    if not isinstance(piece, dict) or set(piece) != {"labels", "seconds", "warnings"}:
        return False
    labels, classes = piece["labels"], range(len(plan.classes))
    return (
        isinstance(labels, list)
        and len(labels) == len(plan.splits[repeat][k][1])
        and all(type(label) is int and label in classes for label in labels)
        and type(piece["seconds"]) in (int, float)
        and isfinite(piece["seconds"])
        and isinstance(piece["warnings"], list)
        and all(isinstance(said, str) for said in piece["warnings"])
    )


def _learned(plan: Plan, names: tuple[str, ...]) -> Pieces:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the folds report theirs
        trained = plan.trained
        return attempt_each(names, lambda _: learn_all(plan.X[trained], plan.codes[trained], plan.sizes))


def _fold(plan: Plan, repeat: int, k: int, names: tuple[str, ...]) -> Pieces:
    train, test = plan.splits[repeat][k]
    fold = Fold(plan.X[train], plan.codes[train], plan.X[test])
    return attempt_each(
        names,
        lambda name: _embedding(fold, plan.sizes) if name == EMBEDDING else _outcome(fold, name, plan.sizes),
    )


def _outcome(fold: Fold, name: str, sizes: Sizes) -> Plain:
    """Labels of one method, its seconds and its warnings."""
    estimator = METHODS[name].make(sizes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        labels, seconds = fold.timed(lambda: fold.labels(estimator))
    said = dict.fromkeys(
        " ".join(str(w.message).split()) for w in caught if not issubclass(w.category, DeprecationWarning)
    )
    return {"labels": np.asarray(labels).tolist(), "seconds": round(seconds, 3), "warnings": list(said)}


def _embedding(fold: Fold, sizes: Sizes) -> Plain:
    """Two principal components before and after learning, of one fold."""
    flat = Vectors(fold.X.reshape(len(fold.X), -1), fold.X_test.reshape(len(fold.X_test), -1))
    # Singular matrices have no tangent vectors at full rank: their entries stand for them.
    mean = steps_of(METHODS["logeuclid-mean"].make(sizes))[:-1]
    before = fold.vectors(mean) if sizes.inside.definite else flat
    after = fold.vectors(steps_of(METHODS[BY_CV].make(sizes))[:-1])
    return {"before": _plane(before), "after": _plane(after)}


def _plane(vectors: Vectors) -> Plain:
    center = vectors.train.mean(axis=0)
    _, spread, axes = np.linalg.svd(vectors.train - center, full_matrices=False)
    axes = axes[:2] * np.sign(axes[:2].sum(axis=1, keepdims=True) + 1e-300)  # a sign is not a result
    share = spread[:2] ** 2 / np.sum(spread**2)
    train, test = (np.round((v - center) @ axes.T, 5) for v in vectors)
    return {"train": train[:MOST_DRAWN].tolist(), "test": test.tolist(), "share": share.tolist()}


def _gathered(plan: Plan, results: dict[Key, Pieces]) -> Comparison:
    """From the journal to arrays."""
    given = {m: np.full((len(plan.splits), len(plan.codes)), -1) for m in plan.methods}
    seconds: dict[str, list[float]] = {m: [] for m in plan.methods}
    failed: dict[str, str] = {}
    warned: dict[str, str] = {}
    other: dict[str, Plain] = {}  # what is not a method
    for (what, repeat), pieces in results.items():
        for name, piece in pieces.items():
            if isinstance(piece, Failure):
                failed.setdefault(name, piece.reason)
            elif name not in given:
                other[name] = piece
            else:
                _, test = plan.splits[repeat][int(what.split()[1])]
                given[name][repeat, test] = piece["labels"]
                seconds[name].append(piece["seconds"])
                for said in piece["warnings"]:
                    warned.setdefault(name, said)
    for name in (EMBEDDING, LEARNED):
        failed.pop(name, None)  # the page then goes without it
    return Comparison(
        plan,
        {m: labels[:, plan.tested] for m, labels in given.items() if m not in failed},
        {m: float(np.mean(s)) for m, s in seconds.items() if m not in failed},
        failed,
        warned,
        cast("dict[str, Panel] | None", other.get(EMBEDDING)),
        cast("Learned | None", other.get(LEARNED)),
    )
