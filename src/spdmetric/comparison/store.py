"""Finished results in a file, and the run of tasks that fills it: the same command given again resumes.

The key of a result names all that decides it: version, method, a digest of the data; so results of other
settings are never mixed up.  BLAS runs in one thread, so any number of processes gives the same numbers.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from os import PathLike
from pathlib import Path
from textwrap import shorten
from threading import current_thread, main_thread
from typing import Any, BinaryIO, TypeVar

import numpy as np

from spdmetric.io.atomic import explain_os_error, is_special

try:
    import fcntl
except ImportError:  # Windows: a second process on one file is not noticed
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
Result = Any  # what JSON gives back as it was: numbers, lists, dicts; a text says why there is none
Key = Mapping[str, Any]  # likewise
Start = Callable[[], Callable[[str], Result]]  # does what results share; what it returns computes one by name
Task = tuple[Mapping[str, Key], Start]  # results of one process: keys by name, and a picklable start


class Store:
    """Finished results by their keys, each a line of JSON; a line that cannot be read is left out.

    Until it is closed no other process can use the file.  Without a path nothing is kept.
    """

    def __init__(self, path: str | PathLike[str] | None = None):
        self._file: BinaryIO | None = None
        self._results: dict[str, Result] = {}
        if path is not None:
            if is_special(path):
                raise ValueError(f"{path} is not a regular file: remove it, or choose another --out.")
            with explain_os_error(path, "cannot be written"):
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                self._file = Path(path).open("ab+")  # noqa: SIM115, until `close`
            try:
                self._results = _read_alone(self._file)
            except ValueError:
                self.close()
                raise

    def close(self) -> None:
        """Let other processes use the file."""
        if self._file is not None:
            with suppress(OSError):  # of a full disk, which `put` reports
                self._file.close()

    def get(self, key: Key) -> Result | None:
        """The result of a key, when the file was opened; None where there is none."""
        return self._results.get(json.dumps(key, sort_keys=True))

    def put(self, key: Key, result: Result) -> None:
        """Keep a result; it is on disk when this returns."""
        if self._file is not None:
            with explain_os_error(self._file.name, "could not be written to its end"):
                self._file.write(json.dumps({"key": key, "result": result}).encode() + b"\n")
                self._file.flush()
                os.fsync(self._file.fileno())


def _read_alone(file: BinaryIO) -> dict[str, Result]:
    """Lock a file, read whole lines, and cut off what a killed process left of the last one."""
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"{file.name} is being written by another process: wait until it ends, or choose another "
                "--out."
            ) from error
    file.seek(0)
    text, beginning = file.read(), b'{"key": '
    if not beginning.startswith(text[: len(beginning)]):
        raise ValueError(f"{file.name} is not a state file of spdmetric: remove it, or choose another --out.")
    whole = text.rfind(b"\n") + 1
    file.truncate(whole)
    found = {}
    for line in text[:whole].splitlines():
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            content = json.loads(line)
            found[json.dumps(content["key"], sort_keys=True)] = content["result"]
    return found


def digest(*arrays: np.ndarray) -> str:
    """Short fingerprint of some arrays, for a key."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(str((array.shape, array.dtype.str)).encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def run_tasks(
    tasks: Mapping[T, Task], path: str | PathLike[str] | None, *, jobs: int = 1, progress: str | None = None
) -> dict[T, dict[str, Result]]:
    """Compute what the store at a path lacks in some processes; return the results of every task by name.

    A text is the reason why there is no result, and is not kept.  Give the longest tasks first, so that the
    processes end together.  ``progress`` names a bar, which is shown in a terminal.
    """
    from joblib import Parallel, delayed
    from tqdm import tqdm

    with closing(Store(path)) as store, warnings.catch_warnings():
        # What joblib says where tasks are given up.
        warnings.filterwarnings("ignore", ".*You could benefit", UserWarning)
        found = {at: {name: store.get(key) for name, key in keys.items()} for at, (keys, _) in tasks.items()}
        missing = {at: [name for name, kept in own.items() if kept is None] for at, own in found.items()}
        left = {at: names for at, names in missing.items() if names}
        workers = Parallel(n_jobs=min(jobs, max(1, len(left))), return_as="generator_unordered")
        with _block_interrupts():
            results = workers(delayed(_run_one)(at, tasks[at][1], names) for at, names in left.items())
        done, hidden = len(tasks) - len(left), None if progress else True  # None: where there is no terminal
        bar = tqdm(desc=progress, initial=done, total=len(tasks), unit="task", disable=hidden)
        with closing(results), bar:
            for at, new in results:
                found[at] |= new
                for name, result in new.items():
                    if not isinstance(result, str):  # the next run tries again
                        store.put(tasks[at][0][name], result)
                bar.update()
    return found


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Processes begun within do not hear ^C, which is meant for this one: they inherit that it is ignored."""
    # A mask would not do: joblib lifts it when its first process begins.
    if current_thread() is not main_thread():  # which alone can say what a signal does
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


def _run_one(at: T, start: Start, names: list[str]) -> tuple[T, dict[str, Result]]:
    from threadpoolctl import threadpool_limits

    results: dict[str, Result] = {}
    with threadpool_limits(1):
        compute = start()
        for name in names:
            try:
                results[name] = compute(name)
            except Exception as error:  # the other results go on
                results[name] = shorten(f"{type(error).__name__}: {error}", 400, placeholder=" ...")
    return at, results
