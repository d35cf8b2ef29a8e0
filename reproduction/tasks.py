"""Where the tables meet the store of finished tasks of `spdmetric.comparison`: here alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from spdmetric.comparison.store import (
    Failure,
    Journal,
    JournalError,
    Pieces,
    Progress,
    Task,
    attempt_each,
    digest,
    run,
)

__all__ = ["JournalError", "Key", "Progress", "Work", "digest", "finish"]

Key = tuple[str, int]  # row and repeat
Score = Callable[[str], list[float]]  # numbers of the method of that name


class Work(NamedTuple):
    """What a task is to compute: one list of numbers a name."""

    names: tuple[str, ...]
    prepare: Callable[[], Score]  # makes what the names share, once; picklable


def finish(
    works: Mapping[Key, Work],
    path: Path,
    settings: Mapping[str, object],
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> dict[Key, dict[str, list[float]]]:
    """Compute what the file of finished tasks lacks, and return the numbers of all tasks.

    Results of other ``settings`` are not mixed in.  Nothing may depend on the order of the tasks.
    """
    tasks = {key: Task(work.names, partial(_compute, work.prepare)) for key, work in works.items()}
    found = run(tasks, Journal(path, settings), jobs=jobs, progress=progress)
    scores: dict[Key, dict[str, list[float]]] = {key: {} for key in found}
    failed = []
    for (row, repeat), pieces in found.items():
        for name, piece in pieces.items():
            if isinstance(piece, Failure):
                failed.append(f"{name} in row {row}, repeat {repeat}: {piece.reason}")
            else:
                scores[row, repeat][name] = piece
    if failed:
        raise ValueError(
            f"{len(failed)} results are missing ({failed[0]}). The others are kept: give the same command "
            "again to compute what is missing, or leave a method out with --methods."
        )
    return scores


def _compute(prepare: Callable[[], Score], names: Iterable[str]) -> Pieces:
    return attempt_each(names, prepare())
