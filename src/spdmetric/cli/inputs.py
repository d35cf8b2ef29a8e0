"""DATA of any kind, as fit, predict and compare read it: matrices, a folder of them, or signals.

Whatever the kind, an `Input` has what the file holds, the matrices that follow from it, and the steps that
lead from one to the other, which come before a method in a pipeline.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from spdmetric.comparison.baselines import from_pyriemann
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import expression
from spdmetric.estimators import FilterBankCovariances, Shrinkage
from spdmetric.io.arrays import SIGNAL_SUFFIXES
from spdmetric.io.files import list_some
from spdmetric.io.matrices import Matrices, Source, read_matrices
from spdmetric.io.models import save
from spdmetric.io.signals import Recipe, Signals, holds_signals, read_signals
from spdmetric.validation import Bad, bad_matrices, bad_signals


@dataclass(frozen=True)
class Input:
    """What DATA holds, without what cannot be used."""

    X: np.ndarray  # (n, ...), matrices or signals, as a model takes them
    matrices: Matrices  # (n, d, d), what the steps make of it; with labels and groups
    domains: np.ndarray | None  # (n,)
    rows: dict[str, Sequence[object]]  # what tells them apart, by its name; with what was left out
    steps: list[BaseEstimator]  # from X to the matrices
    recipe: Recipe | None  # of signals: how to read others in the same way
    kept: np.ndarray  # rows of the file that are in X


def read_input(
    path: Path, labels: str | None, arguments: Namespace, content: dict[str, Any] | None = None
) -> Input:
    """Read DATA, and list all that cannot be used, or leave it out where that is asked for.

    The content of a model file decides what DATA is where there is one, otherwise the options do.
    """
    asked = arguments.domains
    source = arguments.groups if asked in (None, "groups") else asked  # of domains the groups do not matter
    found = _read(path, labels, source, arguments, content)
    if asked is not None and found.groups is None:
        raise ValueError(f"--domains groups: {path} has no groups; give a .csv file or an array's name.")
    n, recipe, steps = len(found.X), None, list[BaseEstimator]()
    rows: dict[str, Sequence[object]] = {"index": range(n)}
    if isinstance(found, Signals):
        recipe, channels, bad = found.recipe, found.recipe.channels, bad_signals(found.X)
        if found.places is not None:
            rows |= zip(("file", "onset"), zip(*found.places, strict=True), strict=True)
    else:
        channels, bad = found.channels, bad_matrices(found.X, found.names)
        if found.names is not None:
            rows = {"file": found.names}
    notes = (*found.notes, *_describe_bad(path, bad, n, arguments.skip_bad))
    kept = np.setdiff1d(np.arange(n), [one.index for one in bad])
    y, groups = (None if of is None else of[kept] for of in (found.y, found.groups))
    X = matrices = found.X[kept]
    if content is None:
        steps = _make_steps(arguments, found)
    for step in steps:
        matrices = step.fit_transform(matrices)
    described = Matrices(matrices, y, groups, found.name, notes, channels=channels)
    return Input(X, described, None if asked is None else groups, rows, steps, recipe, kept)


def _read(
    path: Path, labels: Source, groups: Source, options: Namespace, content: dict[str, Any] | None
) -> Matrices | Signals:
    """Matrices or signals: a model knows, options say so, or the type of file does."""
    place = {"matrices": options.matrices, "subject": options.subject}
    found, recipe = holds_signals(path, **place), None
    if content is None:
        files = found and (path.is_dir() or path.suffix.lower() in SIGNAL_SUFFIXES)
        wanted = files or any((options.events, options.band, options.window, options.estimator))
        todo = "leave out --estimator" if wanted else "give --estimator oas"
    else:
        recipe = content["recipe"]
        wanted = recipe is not None
        takes, other = ("signals", "matrices") if wanted else ("matrices", "signals")
        todo = f"the model takes {takes}, fit one on {other}"
    if not wanted and found:
        raise ValueError(f"{path} holds signals, (n, channels, times), no square matrices: {todo}.")
    if not wanted:
        return read_matrices(path, labels, groups, **place)
    bands, windows = options.band or [], options.window
    # One band is that of the whole recording; several, and several windows, are cut out of each trial.
    band = bands[0] if len(bands) == 1 else None
    window = windows and (min(start for start, _ in windows), max(end for _, end in windows))
    how = {"events": options.events, "band": band, "window": window}
    signals = read_signals(path, labels, groups, recipe=recipe, **place, **how)
    if _is_symmetric(signals.X):
        raise ValueError(f"{path} holds symmetric matrices, no signals (n, channels, times): {todo}.")
    return signals


def _is_symmetric(X: np.ndarray) -> bool:
    """Whether an array holds symmetric matrices, 2 x 2 or larger."""
    near = dict(rtol=0.0, atol=1e-9 * np.abs(X).max())
    return 1 < X.shape[1] == X.shape[2] and all(np.allclose(A, A.T, **near) for A in X)


def _describe_bad(path: Path, bad: list[Bad], n: int, skip: bool) -> list[str]:
    """A note of all that cannot be used; an error, unless it is to be left out and something remains."""
    if not bad:
        return []
    text = list_some(f"{one.where} ({one.why})" for one in bad)
    if skip and len(bad) < n:
        return [f"Left out by --skip-bad, {len(bad)} of {n}: {text}."]
    todo = "nothing is left." if len(bad) == n else "fix or drop them, or give --skip-bad to go on without."
    raise ValueError(f"{path}: {len(bad)} of {n} cannot be used, {text}: {todo}")


def _make_steps(options: Namespace, found: Matrices | Signals) -> list[BaseEstimator]:
    """What comes before a method: covariances of signals, one or several a trial, and shrinkage."""
    shrink = options.shrink
    if not isinstance(found, Signals):
        if shrink == "lwf":
            raise ValueError("--shrink lwf needs signals: give those, or --shrink oas, or --shrink 0.1.")
        return [] if shrink is None else [Shrinkage(shrink)]
    word = shrink if isinstance(shrink, str) else None
    estimator = options.estimator or word or "oas"
    if word not in (None, estimator):
        raise ValueError(f"--shrink {word} of signals is --estimator {word}: give one of the two.")
    bands, windows = ([tuple(pair) for pair in some or []] for some in (options.band, options.window))
    step = from_pyriemann("estimation", "Covariances", estimator=estimator)
    if len(bands) > 1 or len(windows) > 1:
        first = min((start for start, _ in windows), default=0.0)
        windows = [(start - first, end - first) for start, end in windows]
        several = bands if len(bands) > 1 else None
        step = FilterBankCovariances(several, windows or None, sfreq=found.rate, estimator=estimator)
    return [step] if shrink == word else [step, Shrinkage(shrink)]


def describe_input(data: Input) -> list[str]:
    """What was read and what was done to it, in lines."""
    signals = "{} signals, {} channels, {} samples".format(*data.X.shape) if data.recipe else None
    steps = [f"first step: {expression(step)}" for step in data.steps]
    return [*data.matrices.notes, *([signals] if signals else []), *steps]


def save_model(fitted: BaseEstimator, data: Input, path: Path) -> None:
    """Write a fitted estimator behind the steps that make its matrices of DATA."""
    steps = [*data.steps, *steps_of(fitted)]
    save(make_pipeline(*steps) if len(steps) > 1 else steps[0], path, recipe=data.recipe)
