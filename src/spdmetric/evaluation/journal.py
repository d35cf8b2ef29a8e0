"""Run a table: every row, every repeat, every method; interrupted, it goes on where it was.

Each finished task is one line of ``NAME.state``.  A line that was cut by a crash is
dropped; results of other settings are refused.  Nothing random depends on the order of
the tasks, and BLAS runs in one thread, so any number of jobs gives the same numbers.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spdmetric.evaluation.methods import METHODS
from spdmetric.io.atomic import write_atomically
from spdmetric.paper.tables import Row, Table
from spdmetric.paper.work import Work

FORMAT = 1


class Settings(NamedTuple):
    """What decides the numbers of a run, besides the data."""

    methods: tuple[str, ...]
    seed: int = 0
    repeats: int | None = None  # the table's own by default
    quick: bool = False  # only the rows for a quick look


class Result(NamedTuple):
    """A line of the tidy file."""

    table: str
    row: str
    method: str
    repeat: int
    accuracy: float  # per cent
    seconds: float
    seed: int


class StateError(ValueError):
    """The state file cannot be gone on with."""


def run_table(
    table: Table,
    settings: Settings,
    out: Path,
    *,
    jobs: int = 1,
    progress: Callable[[Iterable[Any], int, int], Iterable[Any]] | None = None,
) -> list[Result]:
    """Run what is left of a table, and return all of its results.

    Parameters
    ----------
    table : Table
        Rows to run.
    settings : Settings
        Methods, seed, repeats.
    out : Path
        Folder of the state file.
    jobs : int, default=1
        Processes to use.
    progress : callable, optional
        Wraps the iterator of finished tasks: ``progress(iterator, done, total)``.

    Returns
    -------
    results : list of Result
        Sorted by row, repeat and method.
    """
    repeats = table.repeats if settings.repeats is None else settings.repeats
    tasks = table.tasks(repeats, settings.quick)
    state = State(out / f"{table.name}.state", _header(table, settings))
    done = state.load()
    left = [task for task in tasks if task not in done]
    finished: Iterable[Any] = _evaluate_all(table, settings, left, jobs)
    if progress is not None:
        finished = progress(finished, len(tasks) - len(left), len(tasks))
    for task, outcome in finished:
        state.append(task, outcome)
        done[task] = outcome
    return sorted(_results(table.name, tasks, done), key=lambda r: (r.row, r.repeat, r.method))


def _results(name: str, tasks: list[tuple[str, int]], done: dict[Any, Any]) -> Iterator[Result]:
    for row, repeat in tasks:
        seed, outcome = done[row, repeat]["seed"], done[row, repeat]["results"]
        for method, (accuracy, seconds) in outcome.items():
            yield Result(name, row, method, repeat, accuracy, seconds, seed)


def task_seed(repeat: int, seed: int) -> int:
    """Seed of one task: a function of what it is, not of when it runs.

    A thousand repeats fit between two seeds of the command line before they overlap.
    """
    return 1000 * (seed + 1) + repeat


def _evaluate_all(
    table: Table, settings: Settings, tasks: list[tuple[str, int]], jobs: int
) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
    from joblib import Parallel, delayed

    calls = (
        delayed(_evaluate)(
            table.rows[row],
            (row, repeat),
            tuple(m for m in settings.methods if m not in table.left_out.get(row, {})),
            task_seed(repeat, settings.seed),
        )
        for row, repeat in tasks
    )
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered")(calls)


def _evaluate(
    row: Row, task: tuple[str, int], methods: tuple[str, ...], seed: int
) -> tuple[tuple[str, int], dict[str, Any]]:
    from threadpoolctl import threadpool_limits

    # Small problems take either kernel, depending on what their process did before; here always the same.
    os.environ.setdefault("SPDMETRIC_COMPILED", "1")
    X, y, X_test, y_test = row.split(task[1], seed)
    work = Work(X, y, X_test)
    results = {}
    with threadpool_limits(1):
        for method in methods:
            labels, seconds = work.timed(partial(METHODS[method], work))
            results[method] = (100 * float(np.mean(labels == y_test)), round(seconds, 4))
    return task, {"seed": seed, "results": results}


# ---------------------------------------------------------------------------
# The state file


def _header(table: Table, settings: Settings) -> dict[str, Any]:
    """What must agree for a run to be gone on with; more repeats may always be asked for."""
    return {
        "format": FORMAT,
        "table": table.name,
        "rows": list(table.rows),
        "data": table.digest(),
        "methods": list(settings.methods),
        "left_out": table.left_out,
        "seed": settings.seed,
    }


class State:
    """Finished tasks, a line of JSON each, after a line that says what they belong to."""

    def __init__(self, path: Path, header: dict[str, Any]):
        self.path, self.header = path, header

    def load(self) -> dict[tuple[str, int], dict[str, Any]]:
        """Return the finished tasks; begin the file if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            write_atomically(self.path, json.dumps(self.header) + "\n")
            return {}
        text = self.path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # a line was being written when the run was killed
            os.truncate(self.path, len(whole.encode()))
        lines = whole.splitlines()
        self._check(lines[0] if lines else "")
        try:
            entries = [json.loads(line) for line in lines[1:]]
            return {(e["row"], e["repeat"]): {"seed": e["seed"], "results": e["results"]} for e in entries}
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(f"{self.path} is damaged ({error}): remove it to begin anew.") from error

    def _check(self, first: str) -> None:
        try:
            header = json.loads(first)
        except ValueError:
            header = None
        if not isinstance(header, dict) or "format" not in header:
            raise StateError(
                f"{self.path} is not a state file of spdmetric: remove it, or choose another --out."
            )
        other = [key for key in self.header if header.get(key) != self.header[key]]
        if other:
            raise StateError(
                f"{self.path} holds results of other settings ({', '.join(other)} differ), not to be mixed: "
                "choose another --out, or remove that file to begin anew."
            )

    def append(self, task: tuple[str, int], outcome: dict[str, Any]) -> None:
        """Add a finished task; it is on disk when this returns."""
        with self.path.open("a") as file:
            file.write(json.dumps({"row": task[0], "repeat": task[1], **outcome}) + "\n")
            file.flush()
            os.fsync(file.fileno())


def write_csv(path: Path, results: list[Result]) -> None:
    """Write the tidy file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Result._fields)
    writer.writerows(results)
    write_atomically(path, text.getvalue())
