"""Resumable runs: finished pieces are kept, and the same command goes on where it was.

A run is a number of tasks, each named by a row or fold and a repeat.  A task gives several
pieces of plain data by name, the result of each method for instance.  Whenever a task ends,
its pieces become a line of JSON in the journal; a line that was cut by a crash is dropped, and
a journal of other settings is refused.  A piece that failed is told to the caller and never
kept: the next run tries it again.  Nothing may depend on the order of the tasks, and BLAS runs
in one thread, so any number of processes gives the same numbers.

``reproduce`` has a task for each row and repeat of a table, ``compare`` one for each fold::

    def work(X, y, X_test, names):                      # picklable, with functools.partial
        fold = Fold(X, y, X_test)
        return {name: attempt(partial(outcome, fold, name)) for name in names}

    tasks = {("fold 0", 0): Task(("mdm", "euclid"), partial(work, X, y, X_test)), ...}
    found = run(tasks, Journal(path, {"seed": 0, "data": digest(X, y)}), jobs=2)
    found["fold 0", 0]["mdm"]                           # plain data, or a Failure
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from spdmetric.io.atomic import write_atomically

FORMAT = 2

Plain = Any  # what JSON gives back as it was: numbers, words, lists, dicts of them
Key = tuple[str, int]  # row or fold, and the repeat
T = TypeVar("T")
Finished = tuple[Key, "Pieces"]
Progress = Callable[[Iterable[Finished], int, int], Iterable[Finished]]


class Failure(NamedTuple):
    """A piece that could not be computed, and why."""

    reason: str


Pieces = dict[str, Plain | Failure]


class Task(NamedTuple):
    """Names of pieces, and what computes those of them that are asked for."""

    names: tuple[str, ...]
    work: Callable[[tuple[str, ...]], Pieces]


class JournalError(ValueError):
    """The journal cannot be gone on with."""


def attempt(make: Callable[[], T]) -> T | Failure:
    """Value of ``make()``, or its error as a `Failure`: the other pieces go on."""
    try:
        return make()
    except Exception as error:
        return Failure(" ".join(f"{type(error).__name__}: {error}".split()))


def digest(*arrays: np.ndarray) -> str:
    """Short fingerprint of some arrays, for the header of a journal."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(str((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def run(
    tasks: Mapping[Key, Task], journal: Journal, *, jobs: int = 1, progress: Progress | None = None
) -> dict[Key, Pieces]:
    """Compute what the journal lacks.

    Parameters
    ----------
    tasks : mapping of (str, int) to Task
        What to compute; the longest first, so that the processes end together.
    journal : Journal
        Where finished pieces are kept.
    jobs : int, default=1
        Processes.
    progress : callable, optional
        Wraps the iterator of finished tasks: ``progress(iterator, done, total)``.

    Returns
    -------
    pieces : dict of (str, int) to dict
        Of every task: plain data, or a `Failure`.
    """
    kept = journal.load()
    found: dict[Key, Pieces] = {
        key: {name: kept[key, name] for name in task.names if (key, name) in kept}
        for key, task in tasks.items()
    }
    left = {
        key: task._replace(names=tuple(name for name in task.names if name not in found[key]))
        for key, task in tasks.items()
        if len(found[key]) < len(task.names)
    }
    finished: Iterable[Finished] = _run_all(left, jobs)
    if progress is not None:
        finished = progress(finished, len(tasks) - len(left), len(tasks))
    for key, pieces in finished:
        journal.append(key, pieces)
        found[key] |= pieces
    return found


def _run_all(tasks: Mapping[Key, Task], jobs: int) -> Iterator[Finished]:
    from joblib import Parallel, delayed

    calls = (delayed(_run_one)(key, task) for key, task in tasks.items())
    yield from Parallel(n_jobs=min(jobs, max(1, len(tasks))), return_as="generator_unordered")(calls)


def _run_one(key: Key, task: Task) -> Finished:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return key, task.work(task.names)


class Journal:
    """Finished pieces, those of a task in a line of JSON, after a line that says what they belong to.

    ``header`` holds plain data that must agree for a run to be gone on with.
    """

    def __init__(self, path: Path, header: Mapping[str, Plain]):
        self.path, self.header = path, {"format": FORMAT, **header}

    def load(self) -> dict[tuple[Key, str], Plain]:
        """Read the finished pieces by task and name; begin the file if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            write_atomically(self.path, json.dumps(self.header) + "\n")
            return {}
        text = self.path.read_text()
        whole = text[: text.rfind("\n") + 1]
        if whole != text:  # a line was being written when the run was killed
            os.truncate(self.path, len(whole.encode()))
        first, *lines = whole.splitlines() or [""]
        self._check(first)
        try:
            return {
                ((line["task"], line["repeat"]), name): piece
                for line in map(json.loads, lines)
                for name, piece in line["pieces"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JournalError(f"{self.path} is damaged ({error}): remove it to begin anew.") from error

    def _check(self, first: str) -> None:
        try:
            header = json.loads(first)
        except ValueError:
            header = None
        if not isinstance(header, dict) or "format" not in header:
            raise JournalError(
                f"{self.path} is not a state file of spdmetric: remove it, or choose another --out."
            )
        other = [key for key in self.header if header.get(key) != self.header[key]]
        if other:
            raise JournalError(
                f"{self.path} holds results of other settings ({', '.join(other)} differ), not to be mixed: "
                "choose another --out, or remove that file to begin anew."
            )

    def append(self, key: Key, pieces: Pieces) -> None:
        """Add the pieces of a task that did not fail; they are on disk when this returns."""
        kept = {name: piece for name, piece in pieces.items() if not isinstance(piece, Failure)}
        if not kept:
            return
        with self.path.open("a") as file:
            file.write(json.dumps({"task": key[0], "repeat": key[1], "pieces": kept}) + "\n")
            file.flush()
            os.fsync(file.fileno())
