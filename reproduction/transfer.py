"""A new subject: what own trials give, what those of others give, and both together.

PhysioNet EEGMMI, imagined fists.  Each subject is left out in turn, and each of its three runs is the test
run in turn.  Own trials are the first of each class in the two other runs.  The test run is recentered by its
own mean in all arms, which is transductive.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from reproduction import style
from reproduction.datasets import eegmmi_covariance_subjects, load_eegmmi_covariances
from reproduction.runs import write_results
from reproduction.stamps import code_stamp
from reproduction.statistics import Mean, Section, number
from reproduction.tables import Result
from reproduction.tasks import Work, digest, finish
from spdmetric import LogEuclideanClassifier
from spdmetric.datasets import recenter
from spdmetric.geometry import tangent_vectors

NAME, TITLE = "transfer", "A new subject: own trials, those of others, and both (EEGMMI)"
CHANNELS = (21, 64)
TRIALS = (0, 10, 20, 30)  # labeled trials of the new subject
QUICK = 5  # subjects

ADAPTED, LOGISTIC, OWN = "others and own", "own: tangent space, logistic", "own: LogEuclideanClassifier"
ARMS = {ADAPTED: TRIALS, LOGISTIC: TRIALS[1:], OWN: TRIALS[-1:]}


class Recordings(NamedTuple):
    """Trials of all subjects."""

    X: np.ndarray  # (n, d, d)
    y: np.ndarray
    subject: np.ndarray
    run: np.ndarray

    def of(self, rows: np.ndarray) -> Recordings:
        """Some of them."""
        return Recordings(*(column[rows] for column in self))

    @property
    def session(self) -> np.ndarray:
        """Subject and run, as one name."""
        return np.char.add(np.char.add(self.subject.astype(str), " run "), self.run.astype(str))

    def first(self, n: int) -> Recordings:
        """The first trials, as many of each class."""
        share = n // len(np.unique(self.y))
        rows = np.concatenate([np.flatnonzero(self.y == label)[:share] for label in np.unique(self.y)])
        return self.of(np.sort(rows))


def read_recordings(data: Path) -> Recordings:
    """Covariances of the subjects in a folder."""
    subjects = eegmmi_covariance_subjects(data)
    if len(subjects) < 3:
        raise FileNotFoundError(f"{data} holds no covariances of three or more EEGMMI subjects.")
    parts = [(*load_eegmmi_covariances(s, data), s) for s in subjects]
    X, y, runs = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return Recordings(X, y, np.concatenate([np.full(len(p[1]), p[3]) for p in parts]), runs)


def run_transfer(
    data: Path, out: Path, *, quick: bool = False, jobs: int = 1, progress: str | None = None
) -> list[Result]:
    """Run what is left, and return the accuracy of every arm on every test run."""
    trials = read_recordings(data)
    subjects = np.unique(trials.subject)
    header = {
        **{"table": NAME, "data": digest(trials.X, trials.y, trials.run), "trials": list(TRIALS)},
        "code": code_stamp(),
    }
    names = tuple(f"{arm} {k}" for arm, numbers in ARMS.items() for k in numbers)
    works = {
        (f"{channels} channels, subject {subject}", 0): Work(
            names, partial(_prepare_subject, trials, channels, subject)
        )
        for channels in reversed(CHANNELS)  # the longest first
        for subject in (subjects[:QUICK] if quick else subjects).tolist()
    }
    found = finish(works, out / f"{NAME}.state", header, jobs=jobs, progress=progress)
    return [
        Result(NAME, row, name, k, accuracy, 0.0, 0)
        for (row, _), scores in found.items()
        for name, accuracies in scores.items()
        for k, accuracy in enumerate(accuracies)
    ]


def _prepare_subject(trials: Recordings, channels: int, subject: int) -> Callable[[str], list[float]]:
    """Fit on the others, and return what gives the accuracies in per cent of an arm, over the test runs."""
    trials = trials._replace(X=trials.X[:, :channels, :channels])
    others, own = trials.of(trials.subject != subject), trials.of(trials.subject == subject)
    arms: dict[str, Callable[[Recordings, Recordings], np.ndarray]] = {
        ADAPTED: partial(_adapted, _fitted(others)),
        LOGISTIC: _logistic,
        OWN: _own,
    }

    def score(name: str) -> list[float]:
        arm, _, k = name.rpartition(" ")
        found = []
        for test_run in np.unique(own.run):
            known, test = own.of(own.run != test_run), own.of(own.run == test_run)
            labels = arms[arm](known.first(int(k)), test)
            found.append(100 * float(np.mean(labels == test.y)))
        return found

    return score


def _fitted(others: Recordings) -> LogEuclideanClassifier:
    """Every run of the others is a domain, and folds leave whole subjects out."""
    model = LogEuclideanClassifier()
    return model.fit(others.X, others.y, groups=others.subject, sample_domain=others.session)


def _adapted(model: LogEuclideanClassifier, known: Recordings, test: Recordings) -> np.ndarray:
    if known.y.size:
        model = model.adapt(known.X, known.y)
    return model.adapt(test.X).predict(test.X)


def _own(known: Recordings, test: Recordings) -> np.ndarray:
    return LogEuclideanClassifier().fit(known.X, known.y).adapt(test.X).predict(test.X)


def _logistic(known: Recordings, test: Recordings) -> np.ndarray:
    vectors = [tangent_vectors(recenter(part.X, np.zeros(len(part.y)))) for part in (known, test)]
    return LogisticRegression(max_iter=5000).fit(vectors[0], known.y).predict(vectors[1])


# ---------------------------------------------------------------------------
# The table


Cell = tuple[int, str, int]  # number of channels, arm, number of own trials


def cells_of(results: list[Result]) -> dict[Cell, np.ndarray]:
    """Accuracies of the subjects in each cell, the means over their runs."""
    runs: dict[Cell, dict[str, list[float]]] = {
        (channels, arm, k): {} for channels in CHANNELS for arm, numbers in ARMS.items() for k in numbers
    }
    for r in results:
        arm, _, k = r.method.rpartition(" ")
        runs[int(r.row.split()[0]), arm, int(k)].setdefault(r.row, []).append(r.accuracy)
    return {cell: np.array([np.mean(of) for _, of in sorted(rows.items())]) for cell, rows in runs.items()}


def write_transfer(results: list[Result], out: Path) -> str:
    """Write ``transfer.csv``, ``.json``, ``.md`` and ``.png``; return the table for a terminal."""
    cells = cells_of(results)
    return write_results(out / NAME, results, _as_json(cells), [_section(cells)], _picture(cells))


def _section(cells: dict[Cell, np.ndarray]) -> Section:
    lines = [["channels", "trained on", *(f"{k} own trials" for k in TRIALS)]]
    for channels, arm in product(CHANNELS, ARMS):
        means = {k: Mean.of(cells[channels, arm, k]) for k in ARMS[arm]}
        told = [number(means[k].mean, means[k].se) if k in means else "" for k in TRIALS]
        lines.append([str(channels), arm, *told])
    n = len(next(iter(cells.values())))
    notes = [f"Accuracy in per cent, mean and standard error over {n} subjects, three test runs each.", ""]
    for (channels, arm, k), gain in gains_of(cells).items():
        text = number(gain.mean, gain.se, sign="+")
        notes.append(f"- {channels} channels, {k} own trials: {text} over {arm}, paired by subject.")
    return Section(TITLE, lines, notes)


def gains_of(cells: dict[Cell, np.ndarray]) -> dict[Cell, Mean]:
    """What others add to own trials: paired differences to each arm that has own trials alone."""
    return {
        (channels, arm, k): Mean.of(cells[channels, ADAPTED, k] - alone)
        for (channels, arm, k), alone in cells.items()
        if arm != ADAPTED
    }


def _as_json(cells: dict[Cell, np.ndarray]) -> dict[str, object]:
    means = [
        {"channels": channels, "arm": arm, "trials": k, **Mean.of(sample)._asdict()}
        for (channels, arm, k), sample in cells.items()
    ]
    gains = [
        {"channels": channels, "trials": k, "over": arm, **gain._asdict()}
        for (channels, arm, k), gain in gains_of(cells).items()
    ]
    return {"table": NAME, "title": TITLE, "cells": means, "gains": gains}


def _picture(cells: dict[Cell, np.ndarray]) -> style.Figure:
    with style.canvas(style.PAGE, 2.9) as figure:
        (panels,) = figure.subplots(1, len(CHANNELS), sharey=True, squeeze=False)
        for panel, channels in zip(panels, CHANNELS, strict=True):
            looks = zip(ARMS, (style.BLUE, style.ORANGE, style.GREEN), "os^", (-0.9, 0, 0.9), strict=True)
            for arm, color, marker, aside in looks:  # side by side: bars would hide each other
                means = [Mean.of(cells[channels, arm, k]) for k in ARMS[arm]]
                middle, half = [m.mean for m in means], [m.se or 0.0 for m in means]
                place = [k + aside for k in ARMS[arm]]
                panel.errorbar(place, middle, half, color=color, marker=marker, ms=4, capsize=2, label=arm)
            panel.set(title=f"{channels} channels", xlabel="own labeled trials", xticks=TRIALS)
        panels[0].set_ylabel("accuracy, %")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="upper center", ncols=len(ARMS))
        figure.subplots_adjust(left=0.08, right=0.99, bottom=0.16, top=0.81, wspace=0.08)
    return figure
