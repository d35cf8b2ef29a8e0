"""Finished results in a file, and the run of tasks that fills it: the same command given again resumes.

A result is plain data, and its key names all that decides it: version, method, a digest of the data.  It is
looked up by that key, so results of other settings are never mixed up.  Nothing may depend on the order of
the tasks, and BLAS runs in one thread, so any number of processes gives the same numbers.

    def start(X, y, X_test):                            # picklable, with functools.partial
        fold = Fold(X, y, X_test)                       # what the results of a task share
        return lambda name: fold.labels(METHODS[name].make(...)).tolist()

    keys = {"mdm": {"version": "1.0", "method": "mdm", "data": digest(X, y)}, ...}
    tasks = {0: Task(keys, partial(start, X, y, X_test)), ...}
    found = run_tasks(tasks, Store(path), jobs=2)
    found[0]["mdm"]                                     # plain data, or a Failure
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from spdmetric.io.atomic import is_special, saying

try:
    import fcntl
except ImportError:  # Windows: a second process on one file is not noticed
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
Result = Any  # what JSON gives back as it was: numbers, words, lists, dicts of them
Key = Mapping[str, Any]  # likewise

_BEGINNING = b'{"key": '  # of each line


class StoreError(ValueError):
    """The file cannot be used."""


class Store:
    """Finished results by their keys, each a line of JSON; a line that cannot be read is left out.

    To be used in a ``with`` statement, during which no other process can use the file.  Without a path,
    results are kept in memory.
    """

    def __init__(self, path: str | PathLike[str] | None = None):
        self.path = None if path is None else Path(path)
        self._file: BinaryIO | None = None
        self._results: dict[str, Result] = {}

    def __enter__(self) -> Store:
        if self.path is not None:
            self._file = _open_alone(self.path)
            self._results = _read(self._file)
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which `put` reports
                self._file.close()

    def get(self, key: Key) -> Result | None:
        """The result of a key; None where there is none."""
        return self._results.get(_as_text(key))

    def put(self, key: Key, result: Result) -> None:
        """Keep a result; it is on disk when this returns."""
        self._results[_as_text(key)] = result
        if self.path is not None and self._file is not None:
            with saying(self.path, "could not be written to its end"):
                self._file.write(json.dumps({"key": key, "result": result}).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())


def _open_alone(path: Path) -> BinaryIO:
    """Open a file of results, which no other process may have open, or say why it cannot be used."""
    with saying(path, "cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_special(path):
            raise StoreError(f"{path} is not a regular file: remove it, or choose another --out.")
        file = path.open("ab+")
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.seek(0)
        first = file.read(len(_BEGINNING))
        if not _BEGINNING.startswith(first):
            raise StoreError(f"{path} is not a state file of spdmetric: remove it, or choose another --out.")
    except BlockingIOError as error:
        file.close()
        raise StoreError(
            f"{path} is being written by another process: wait until it ends, or choose another --out."
        ) from error
    except StoreError:
        file.close()
        raise
    return file


def _read(file: BinaryIO) -> dict[str, Result]:
    """Read whole lines, and cut off what a killed process left of the last one."""
    file.seek(0)
    text = file.read()
    whole = text.rfind(b"\n") + 1
    file.truncate(whole)
    return dict(found for line in text[:whole].splitlines() if (found := _parse(line)) is not None)


def _as_text(key: Key) -> str:
    return json.dumps(key, sort_keys=True)


def _parse(line: bytes) -> tuple[str, Result] | None:
    try:
        content = json.loads(line)
        return _as_text(content["key"]), content["result"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def digest(*arrays: np.ndarray) -> str:
    """Short fingerprint of some arrays, for a key."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(str((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


class Failure(NamedTuple):
    """Why a result could not be computed; it is not kept, so the next run tries again."""

    reason: str


class Task(NamedTuple):
    """Results that are computed in one process: their keys by name, and what shares their common work."""

    keys: Mapping[str, Key]
    start: Callable[[], Callable[[str], Result]]  # gives the function that computes a result by its name


def run_tasks(
    tasks: Mapping[T, Task], store: Store, *, jobs: int = 1, progress: str | None = None
) -> dict[T, dict[str, Result | Failure]]:
    """Compute what the store lacks in some processes, and return the results of every task by name.

    Give the longest tasks first, so that the processes end together.  ``progress`` names a bar, which is
    shown in a terminal.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    with store:
        found = {at: {name: store.get(key) for name, key in task.keys.items()} for at, task in tasks.items()}
        left = {at: [name for name, kept in found[at].items() if kept is None] for at in tasks}
        left = {at: names for at, names in left.items() if names}
        workers = Parallel(n_jobs=min(jobs, max(1, len(left))), return_as="generator_unordered")
        with _block_interrupts():
            results = workers(delayed(_run_one)(at, tasks[at].start, names) for at, names in left.items())
        hidden = None if progress else True  # None: where there is no terminal
        done, total = len(tasks) - len(left), len(tasks)
        try:
            with tqdm(desc=progress, initial=done, total=total, unit="task", disable=hidden) as bar:
                for at, new in results:
                    for name, result in new.items():
                        found[at][name] = result
                        if not isinstance(result, Failure):
                            store.put(tasks[at].keys[name], result)
                    bar.update()
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # joblib's, that tasks are given up
                results.close()
    return found


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Processes begun within do not hear ^C, which is meant for this one: it ends them without a word."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_one(
    at: T, start: Callable[[], Callable[[str], Result]], names: list[str]
) -> tuple[T, dict[str, Result | Failure]]:
    from threadpoolctl import threadpool_limits

    results: dict[str, Result | Failure] = {}
    with threadpool_limits(1):
        compute = start()
        for name in names:
            try:
                results[name] = compute(name)
            except Exception as error:  # the other results go on
                results[name] = Failure(" ".join(f"{type(error).__name__}: {error}".split()))
    return at, results
