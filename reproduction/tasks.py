"""Where the tables meet the store of finished tasks of `spdmetric.comparison`: here alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spdmetric.comparison.store import digest, run_tasks

__all__ = ["Key", "Work", "digest", "finish"]

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
    progress: str | None = None,
) -> dict[Key, dict[str, Any]]:
    """Compute what the file of finished tasks lacks, and return the numbers of all tasks.

    Results of other ``settings`` are not mixed in.  Nothing may depend on the order of the tasks.
    """
    tasks = {}
    for (row, repeat), work in works.items():
        common = {**settings, "row": row, "repeat": repeat}
        tasks[row, repeat] = ({name: {**common, "method": name} for name in work.names}, work.prepare)
    found = run_tasks(tasks, path, jobs=jobs, progress=progress)
    failed = [
        f"{name} in row {row}, repeat {repeat}: {result}"
        for (row, repeat), results in found.items()
        for name, result in results.items()
        if isinstance(result, str)  # why there is none
    ]
    if failed:
        raise ValueError(
            f"{len(failed)} results are missing ({failed[0]}). The others are kept: give the same command "
            "again to compute what is missing, or leave a method out with --methods."
        )
    return found
