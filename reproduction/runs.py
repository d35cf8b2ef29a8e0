"""Run a table: every row, every repeat, every method; then write it in all its forms."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction import style
from reproduction.methods import KNOWN
from reproduction.stamps import Stamp, code_stamp
from reproduction.statistics import Section, as_markdown, as_plain
from reproduction.summary import summarize
from reproduction.tables import Result, Row, Table
from reproduction.tasks import Work, finish
from spdmetric.comparison.folds import Fold
from spdmetric.comparison.methods import Method, Sizes
from spdmetric.io.atomic import write_atomically


class Settings(NamedTuple):
    """What decides the numbers of a run, besides the data."""

    methods: tuple[str, ...]
    seed: int = 0
    repeats: int | None = None  # the table's own by default
    quick: bool = False  # only the rows for a quick look


def run_table(
    table: Table,
    settings: Settings,
    out: Path,
    *,
    jobs: int = 1,
    progress: str | None = None,
) -> list[Result]:
    """Run what is left of a table, and return all of its results, sorted by row, repeat and method.

    Finished tasks are kept in ``NAME.state`` in the folder ``out``; ``progress`` names a bar.
    """
    chosen = {name: KNOWN[name] for name in settings.methods}
    for method in chosen.values():
        method.make(Sizes(100, 8, 50, 8))  # what is not installed is said before the work, not after
    repeats = table.repeats if settings.repeats is None else settings.repeats
    works = {}
    for row, repeat in table.tasks(repeats, settings.quick):
        names = tuple(name for name in chosen if name not in table.left_out.get(row, {}))
        seed = task_seed(repeat, settings.seed)
        works[row, repeat] = Work(names, partial(prepare_scores, table.rows[row], repeat, seed, chosen))
    header = {"table": table.name, "data": table.digest(), "code": code_stamp(), "seed": settings.seed}
    found = finish(works, out / f"{table.name}.state", header, jobs=jobs, progress=progress)
    results = [
        Result(table.name, row, name, repeat, accuracy, seconds, task_seed(repeat, settings.seed))
        for (row, repeat), scores in found.items()
        for name, (accuracy, seconds) in scores.items()
    ]
    return sorted(results, key=lambda r: (r.row, r.repeat, r.method))


def task_seed(repeat: int, seed: int) -> int:
    """Seed of one task; a thousand repeats fit between two seeds of the command line."""
    return 1000 * (seed + 1) + repeat


def prepare_scores(
    row: Row, repeat: int, seed: int, methods: Mapping[str, Method]
) -> Callable[[str], list[float]]:
    """Make the fold of one repeat, and return what scores a method on it."""
    X, y, X_test, y_test = row.split(repeat, seed)
    fold, sizes = Fold(X, y, X_test), Sizes.from_data(X, y)

    def score(name: str) -> list[float]:
        """Accuracy in per cent, and seconds."""
        labels, seconds = fold.timed(partial(fold.labels, methods[name].make(sizes)))
        return [100 * float(np.mean(labels == y_test)), round(seconds, 4)]

    return score


def write_table(table: Table, results: list[Result], settings: Settings, out: Path) -> str:
    """Write a finished table as ``NAME.csv``, ``.json``, ``.md`` and ``.png``; return it for a terminal."""
    found = summarize(table, results, settings.methods, settings.seed)
    return write_results(out / table.name, results, found.as_json(), found.sections(), found.picture())


def write_results(
    path: Path,
    results: Iterable[Result],
    content: Mapping[str, object],
    sections: Sequence[Section],
    picture: style.Figure,
) -> str:
    """Write results in their four forms; return the first section for a terminal."""
    write_csv(path.with_suffix(".csv"), results)
    write_json(path.with_suffix(".json"), content)
    write_atomically(path.with_suffix(".md"), as_markdown(*sections))
    style.save(picture, path.with_suffix(".png"))
    return as_plain(sections[0])


def write_json(path: Path, content: Mapping[str, object], stamp: Stamp | None = None) -> None:
    """Write a file of results with its stamp, that of the present code unless told otherwise."""
    said = {**content, "stamp": (stamp or Stamp(code_stamp()))._asdict()}
    write_atomically(path, json.dumps(said, indent=1) + "\n")


def write_csv(path: Path, results: Iterable[Result]) -> None:
    """Write the tidy file; its last column is the stamp of the code."""
    text, code = StringIO(), code_stamp()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*Result._fields, "code"])
    lines.writerows([*result, code] for result in results)
    write_atomically(path, text.getvalue())


def verify_table(table: Table, out: Path) -> str:
    """Compute the first repeat of every row of a written table again, and stamp it anew if all of it agrees.

    For changes of the code that must not change numbers.  Returns what was found, in words.
    """
    path = out / table.name
    content = json.loads(path.with_suffix(".json").read_text())
    kept: dict[tuple[str, int], dict[str, float]] = {}
    with path.with_suffix(".csv").open(newline="") as file:
        for line in csv.DictReader(file):
            accuracies = kept.setdefault((line["row"], int(line["repeat"])), {})
            accuracies[line["method"]] = float(line["accuracy"])
    again = 0
    for (row, repeat), accuracies in kept.items():
        if repeat == 0:
            score = prepare_scores(table.rows[row], repeat, task_seed(repeat, content["seed"]), KNOWN)
            for name, before in accuracies.items():
                now = score(name)[0]
                if now != before:
                    raise ValueError(
                        f"{path}.csv, row {row}, {name}: {before} before, {now} now. Run it anew."
                    )
            again += len(accuracies)
    part = f"{again} of {sum(map(len, kept.values()))} accuracies (the first repeat of every row)"
    stamp = Stamp.of(content)._replace(verified=code_stamp(), part=part)
    write_json(path.with_suffix(".json"), content, stamp)
    return stamp.sentence(code_stamp())
