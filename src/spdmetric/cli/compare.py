"""``spdmetric compare``: its arguments, and what it does with them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

DESCRIPTION = """\
Which metric suits my matrices, and does learning help?  Runs the usual distances, the learned metrics
(full, low rank, chosen by cross-validation) and the usual rivals under nested cross-validation, and
writes one HTML page that needs no network.

DATA is .npz (arrays X and y, or covs and labels, optionally groups), .mat (any version) or .npy with
--labels.  An interrupted run goes on where it was when the same command is given again: finished folds
are in the file beside the page that ends in .state.
"""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser(
        "compare",
        help="which metric suits my matrices, and does learning help? one HTML page",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="matrices with labels")
    parser.add_argument("--test", type=Path, metavar="TEST", help="train on DATA, test on these matrices")
    parser.add_argument("--labels", metavar="L", help="labels: a .csv file, or the name of an array of DATA")
    parser.add_argument(
        "--test-labels", metavar="L", help="the same for TEST (default: as for DATA, if that is a name)"
    )
    parser.add_argument(
        "--groups",
        metavar="G",
        help="sessions or subjects, a .csv file or the name of an array: whole groups are left out "
        "(default: the array groups, where DATA has one)",
    )
    parser.add_argument(
        "--subject", type=int, metavar="N", help="which subject, in a file of X1, y1, X2, ..."
    )
    parser.add_argument(
        "--out", type=Path, default=Path("report.html"), metavar="PAGE", help="default: report.html"
    )
    parser.add_argument("--seed", type=_whole(0), default=0, metavar="S", help="of the folds (default: 0)")
    parser.add_argument("--jobs", type=_whole(1), metavar="N", help="processes (default: one a core)")
    parser.add_argument(
        "--repeats",
        type=_whole(1),
        metavar="N",
        help="how often the folds are drawn (default: 1 to 5, by size)",
    )
    parser.add_argument(
        "--methods", type=_methods, metavar="A,B,...", help="these methods only (default: all)"
    )
    parser.set_defaults(run=run)


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number >= {least}, got {text!r}")
        return int(text)

    return read


def _methods(text: str) -> tuple[str, ...]:
    from spdmetric.comparison.methods import ENTRIES

    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in ENTRIES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no method {', '.join(unknown)}; there are {', '.join(ENTRIES)}")
    return names


def run(arguments: argparse.Namespace) -> None:
    """Read, describe, compare, write the page, and say the answer."""
    from spdmetric.comparison.comparison import compare, make_plan
    from spdmetric.comparison.describe import describe
    from spdmetric.comparison.page import Source, make_page
    from spdmetric.comparison.verdict import best_sentence, judge, learning_sentence, metric_sentence
    from spdmetric.evaluation.journal import write_atomically

    out = _writable(arguments.out)
    data, test = _read(arguments)
    described = [describe(m.X, m.labels, m.groups) for m in (data, test) if m is not None]
    smallest_rank = min(int(d.ranks.min()) for d in described)
    plan = make_plan(
        data,
        test,
        smallest_rank,
        methods=arguments.methods,
        repeats=arguments.repeats,
        seed=arguments.seed,
    )
    journal = out.with_suffix(".state")
    comparison = compare(plan, journal, jobs=arguments.jobs or os.cpu_count() or 1, progress=_progress)
    verdict = judge(comparison)
    source = Source(
        data, test, arguments.labels, arguments.groups, arguments.data.name, _name(arguments.test)
    )
    write_atomically(out, make_page(source, described, comparison, verdict))
    for sentence in (best_sentence(verdict), learning_sentence(verdict), metric_sentence(verdict)):
        if sentence:
            print(sentence)
    print(f"\nwritten: {out}")


def _name(path: Path | None) -> str | None:
    return None if path is None else path.name


def _read(arguments: argparse.Namespace) -> tuple[Any, Any]:
    from spdmetric.io.matrices import read_matrices

    data = read_matrices(arguments.data, arguments.labels, arguments.groups, subject=arguments.subject)
    if arguments.test is None:
        return data, None
    labels = arguments.test_labels
    if labels is None and arguments.labels is not None and not arguments.labels.endswith(".csv"):
        labels = arguments.labels
    return data, read_matrices(arguments.test, labels, subject=arguments.subject)


def _writable(out: Path) -> Path:
    """Fail before minutes of work, not after."""
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder: expected the name of a page, such as report.html.")
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        probe = out.with_name(f".{out.name}.{os.getpid()}.probe")
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"cannot write to {out.parent}: {error.strerror or error}") from error
    return out


def _progress(finished: Iterable[Any], done: int, total: int) -> Iterable[Any]:
    from tqdm import tqdm

    return tqdm(finished, desc="compare", initial=done, total=total, disable=None, unit="task")
