"""Run the benchmark: ``python benchmarks/run.py [--quick] [--only PATTERN ...] [--out FILE]``.

Prints a table of ratios, and keeps the results case by case in a JSON file with a picture
beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __package__ in (None, ""):  # started as a script: this folder's parent is where the package is
    sys.path[0] = str(Path(__file__).resolve().parents[1])

if TYPE_CHECKING:
    from benchmarks.cases import Case
    from benchmarks.outcomes import Setting

DEFAULT_OUT = Path(__file__).resolve().with_name("results.json")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How fast spdmetric is, beside what one could use instead.")
    parser.add_argument(
        "--quick", action="store_true", help="smaller budgets: under ten minutes on two cores"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="PATTERN",
        help="cases or groups, e.g. fit/toy8 evaluate 'cv/*'",
    )
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="JSON to merge into (%(default)s)")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="folder of real data (the variable SPDMETRIC_DATA by default)",
    )
    parser.add_argument("--list", action="store_true", help="list the cases and stop")
    parser.add_argument(
        "--show", choices=("text", "markdown"), help="print the stored results, draw the picture, run nothing"
    )
    parser.add_argument(
        "--into",
        nargs="+",
        default=[],
        type=Path,
        metavar="FILE",
        help="put the stored results into these documents (docs/speed.md), run nothing",
    )
    return parser.parse_args(arguments)


def start_again_with_one_thread() -> None:
    """Libraries read these variables when they are loaded, so they must be there before NumPy is."""
    from benchmarks.processes import THREADS

    if any(os.environ.get(name) != "1" for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        root = str(Path(__file__).resolve().parents[1])
        paths = [root, os.environ.get("PYTHONPATH", "")]
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))  # for the subprocesses of cases
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def run_case(case: Case, setting: Setting) -> dict[str, Any]:
    """Record of a case; its failure is a record too, so that the others are not lost."""
    from benchmarks.outcomes import Absent
    from benchmarks.store import Span, record_of, record_without

    span = Span()
    try:
        record = record_of(case.run(setting), setting, span)
    except Absent as reason:
        record = record_without("absent", str(reason), setting, span)
    except Exception as error:
        message = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
        record = record_without("failed", message, setting, span) | {"traceback": traceback.format_exc()}
    return {"kind": case.kind, **record}


def run_cases(
    cases: Sequence[Case], setting: Setting, out: Path, order: Sequence[str] | None = None
) -> dict[str, dict[str, Any]]:
    """Run cases one after the other and keep each record in ``out``.

    Parameters
    ----------
    cases : sequence of Case
        What to run.
    setting : Setting
        How much work to spend.
    out : Path
        JSON file, merged into.
    order : sequence of str, optional
        Keys in the order of the file; that of the cases by default.

    Returns
    -------
    records : dict
        All records of the file by key, those of earlier runs too.
    """
    from tqdm import tqdm

    from benchmarks.compiled import load_kernels
    from benchmarks.store import keep, load

    load_kernels()
    places = {key: k for k, key in enumerate(order or [case.key for case in cases])}
    records = load(out)
    bar = tqdm(cases, unit="case", disable=None)  # None: only on a terminal
    for case in bar:
        bar.set_description(case.key)
        records = keep(out, case.key, run_case(case, setting), places)
    return records


def draw_picture(records: dict[str, dict[str, Any]], out: Path) -> str:
    """Draw beside the JSON; return a sentence about it."""
    from benchmarks.picture import draw

    path = out.with_suffix(".png")
    try:
        draw(records, path)
    except ImportError as error:
        return str(error)
    return f"Picture: {path}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    if options.data is not None:
        os.environ["SPDMETRIC_DATA"] = str(options.data.resolve())
    from benchmarks import table
    from benchmarks.cases import all_cases, select
    from benchmarks.outcomes import FULL, QUICK
    from benchmarks.store import load

    cases = all_cases()
    if options.list:
        print("\n".join(case.key for case in cases))
        return 0
    try:
        chosen = select(cases, options.only)
        records = load(options.out)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for document in options.into:
        try:
            document.write_text(table.with_tables(document.read_text(), records))
        except (OSError, ValueError) as error:
            print(f"error: {document}: {error}", file=sys.stderr)
            return 2
    if options.into:
        return 0
    if options.show is None:
        setting = QUICK if options.quick else FULL
        records = run_cases(chosen, setting, options.out, [case.key for case in cases])
    shown = {key: records[key] for case in chosen if (key := case.key) in records}
    print(table.markdown(shown) if options.show == "markdown" else table.text(shown))
    print(f"\n{table.verdict(shown)}\n{draw_picture(records, options.out)}", file=sys.stderr)
    return 1 if any(record["status"] == "failed" for record in shown.values()) else 0


if __name__ == "__main__":
    parse()  # help and mistakes need no second start
    start_again_with_one_thread()
    sys.exit(main())
