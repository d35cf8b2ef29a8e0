"""Resumable runs: finished pieces are kept, and the same command goes on where it was.

A run is a number of tasks, each named by a row or fold and a repeat.  A task gives several
pieces of plain data by name, the result of each method for instance.  Whenever a task ends,
its pieces become a line of JSON in the journal, with a digest; a line that was cut or altered, and a
piece that the task does not accept, is dropped with a warning and computed again.  A journal of other
settings is refused, and so is one that another process is writing.  A piece that failed is told to
the caller and never kept: the next run tries it again.  Nothing may depend on the order of the
tasks, and BLAS runs in one thread, so any number of processes gives the same numbers.

``reproduce`` has a task for each row and repeat of a table, ``compare`` one for each fold::

    def work(X, y, X_test, names):                      # picklable, with functools.partial
        fold = Fold(X, y, X_test)
        return attempt_each(names, lambda name: fold.labels(METHODS[name].make(...)).tolist())

    tasks = {("fold 0", 0): Task(("mdm", "euclid"), partial(work, X, y, X_test)), ...}
    found = run(tasks, Journal(path, {"seed": 0, "data": digest(X, y)}), jobs=2)
    found["fold 0", 0]["mdm"]                           # plain data, or a Failure
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from spdmetric.caller import warn_at_caller
from spdmetric.io.atomic import is_special, saying

try:
    import fcntl
except ImportError:  # Windows: two processes on one journal are not told
    fcntl = None  # type: ignore[assignment]

FORMAT = 3

Plain = Any  # what JSON gives back as it was: numbers, words, lists, dicts of them
Key = tuple[str, int]  # row or fold, and the repeat
Finished = tuple[Key, "Pieces"]
Progress = Callable[[Iterable[Finished], int, int], Iterable[Finished]]


class Failure(NamedTuple):
    """A piece that could not be computed, and why."""

    reason: str


Pieces = dict[str, Plain | Failure]


def _anything(name: str, piece: Plain) -> bool:
    return True


class Task(NamedTuple):
    """Names of pieces, what computes those that are asked for, and whether a kept one can be right."""

    names: tuple[str, ...]
    work: Callable[[tuple[str, ...]], Pieces]
    accepts: Callable[[str, Plain], bool] = _anything


class JournalError(ValueError):
    """The journal cannot be gone on with."""


def attempt_each(names: Iterable[str], make: Callable[[str], Plain]) -> Pieces:
    """Values of ``make(name)``; an error becomes a `Failure`, and the other pieces go on."""
    pieces: Pieces = {}
    for name in names:
        try:
            pieces[name] = make(name)
        except Exception as error:
            pieces[name] = Failure(" ".join(f"{type(error).__name__}: {error}".split()))
    return pieces


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
    """Compute what the journal lacks in some processes, and return the pieces of every task.

    Give the longest tasks first, so that the processes end together.  ``progress(iterator, done,
    total)`` wraps the iterator of finished tasks.
    """
    with journal.opened() as kept:
        return _run(tasks, journal, kept, jobs, progress)


def _run(
    tasks: Mapping[Key, Task],
    journal: Journal,
    kept: Mapping[tuple[Key, str], Plain],
    jobs: int,
    progress: Progress | None,
) -> dict[Key, Pieces]:
    from joblib import Parallel, delayed

    there = [(key, name) for key, task in tasks.items() for name in task.names if (key, name) in kept]
    right = {place for place in there if tasks[place[0]].accepts(place[1], kept[place])}
    if len(right) < len(there):
        journal.warn(f"{len(there) - len(right)} results that cannot be right")
    found: dict[Key, Pieces] = {
        key: {name: kept[key, name] for name in task.names if (key, name) in right}
        for key, task in tasks.items()
    }
    left = {
        key: task._replace(names=tuple(name for name in task.names if name not in found[key]))
        for key, task in tasks.items()
        if len(found[key]) < len(task.names)
    }
    workers = Parallel(n_jobs=min(jobs, max(1, len(left))), return_as="generator_unordered")
    with _deaf():
        results = workers(delayed(_run_one)(key, task) for key, task in left.items())
    finished: Iterable[Finished] = results
    if progress is not None:
        finished = iter(progress(finished, len(tasks) - len(left), len(tasks)))  # kept until the end below
    try:
        for key, pieces in finished:
            journal.append(key, pieces)
            found[key] |= pieces
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # joblib's, that tasks are given up
            results.close()
    return found


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes begun within do not hear ^C, which is meant for this one: it ends them without a word."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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

    @contextmanager
    def opened(self) -> Iterator[dict[tuple[Key, str], Plain]]:
        """The finished pieces by task and name; until the end no other process can open the journal."""
        with saying(self.path, "cannot be written"):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if is_special(self.path):
                raise JournalError(f"{self.path} is not a regular file: remove it, or choose another --out.")
            file = self.path.open("ab+")
        with file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    said = f"{self.path} is being written by another process"
                    raise JournalError(f"{said}: wait until it ends, or choose another --out.") from error
            yield self._read(file)

    def _read(self, file: BinaryIO) -> dict[tuple[Key, str], Plain]:
        """Read the pieces, and leave whole lines only; begin the file if there is nothing."""
        file.seek(0)
        first, begin = file.readline(), json.dumps(self.header).encode() + b"\n"
        if begin.startswith(first) and first != begin:  # empty, or killed at once
            file.truncate(0)
            with saying(self.path, "could not be written"):
                file.write(begin)
                file.flush()
            return {}
        self._check(first)
        found: dict[tuple[Key, str], Plain] = {}
        lines, dropped, cut = [first], 0, False
        for line in file:
            pieces = _pieces_of(line)
            cut, dropped = not line.endswith(b"\n"), dropped + (pieces is None)
            if pieces is not None:
                found |= pieces
                lines.append(line)
        if dropped - cut:  # that a line was being written when the run was killed is no news
            self.warn(f"{dropped - cut} lines that are damaged")
            file.truncate(0)  # in place, for the lock is on this file
            file.writelines(lines)
            file.flush()
        elif cut:  # in one step, that a second kill loses nothing
            file.truncate(sum(map(len, lines)))
        return found

    def warn(self, what: str) -> None:
        """Say that something is not used."""
        warn_at_caller(f"{self.path} holds {what}: they are dropped, and computed again.", UserWarning)

    def _check(self, first: bytes) -> None:
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
        line = {"task": key[0], "repeat": key[1], "pieces": kept}
        with saying(self.path, "could not be written to its end"), self.path.open("ab") as file:
            file.write(json.dumps({**line, "sha256": _digest_of(line)}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _digest_of(line: Mapping[str, Plain]) -> str:
    return hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()[:16]


def _pieces_of(text: bytes) -> dict[tuple[Key, str], Plain] | None:
    """The pieces of a line, or None where it is not as it was written."""
    try:
        line = json.loads(text)
        if not text.endswith(b"\n") or line.pop("sha256") != _digest_of(line):
            return None
        return {((line["task"], line["repeat"]), name): piece for name, piece in line["pieces"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
