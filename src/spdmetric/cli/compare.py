"""Which metric suits my matrices, and does learning help?

Runs the usual distances, the learned metrics (full, low rank, chosen by cross-validation) and the usual
baselines under nested cross-validation, and writes one HTML page that needs no network.  Where there are
groups, sessions or subjects, they are left out whole, and every method is also run on recentered matrices.
An interrupted run resumes when the same command is given again: finished folds are in the file beside the
page that ends in .state.
"""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spdmetric.cli.options import (
    SCORES,
    add_data,
    add_training,
    check_method,
    check_suffix,
    check_targets,
    existing_name,
    names,
    printable,
    say,
    tell,
    whole,
    word,
)

if TYPE_CHECKING:
    from spdmetric.cli.inputs import Input
    from spdmetric.comparison.report import Report
    from spdmetric.io.matrices import Matrices


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_data(parser)
    recenter = "run all also with each group recentered by its own mean (default: where there are groups)"
    parser.add_argument("--recenter", action=BooleanOptionalAction, help=recenter)
    test = "train on DATA, test on these matrices"
    parser.add_argument("--test", type=existing_name, metavar="TEST", help=test)
    parser.add_argument("--test-labels", type=word, metavar="L", help="of TEST (default: --labels, a name)")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="default: report.html")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the numbers as CSV too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as JSON too")
    save = "train the winner on all of DATA, and keep it for 'spdmetric predict'"
    parser.add_argument("--save", type=Path, metavar="MODEL.skops", help=save)
    parser.add_argument("--method", metavar="NAME", help="what to save instead of the winner")
    decides = "what decides (default: accuracy; of regression targets r2)"
    parser.add_argument("--scoring", choices=(*SCORES, "r2", "mae"), help=decides)
    parser.add_argument("--title", metavar="WORDS", help="of the page (default: the question, of a file)")
    channels = "names of the channels, separated by commas, for the pictures"
    parser.add_argument("--channels", type=names, metavar="NAMES", help=channels)
    repeats = "how often the folds are drawn (default: 1 to 5, by size)"
    parser.add_argument("--repeats", type=whole(1), metavar="N", help=repeats)
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="of all draws (default: 0)")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=whole(1), default=cores, metavar="N", help="processes (default: all)")
    methods = "names of methods, separated by commas (default: all)"
    parser.add_argument("--methods", type=names, help=methods)
    add_training(parser)


def run(arguments: Namespace) -> None:
    """Read, compare, write the page, and say the answer."""
    from spdmetric.cli.inputs import read_input
    from spdmetric.comparison.page import need_page
    from spdmetric.comparison.report import compare

    need_page()
    out, labels, test = arguments.out, arguments.labels, arguments.test
    state = out.with_suffix(".state")
    targets = {"--out": out, "--out, its state": state, "--csv": arguments.csv, "--json": arguments.json}
    check_suffix("--out", out, ".html", ".htm")
    check_suffix("--save", arguments.save, ".skops")
    check_targets(targets | {"--save": arguments.save}, arguments.data, labels, test)
    if arguments.method is not None and arguments.save is None:
        raise ValueError("--method is what --save trains: give --save MODEL.skops, or --methods to run some.")
    check_method(arguments.method)
    data = read_input(arguments.data, labels, arguments)
    others = None
    if test is not None:
        array = None if labels is None or labels.endswith(".csv") else labels
        others = read_input(test, arguments.test_labels or array, arguments).matrices
    report = compare(
        _check_input(data.matrices, others, arguments),
        test=others,
        methods=arguments.methods,
        repeats=arguments.repeats,
        seed=arguments.seed,
        scoring=arguments.scoring or ("r2" if arguments.regression else None),
        class_weight=arguments.class_weight,
        recenter=arguments.recenter,
        channels=arguments.channels or data.matrices.channels,
        store=state,
        n_jobs=arguments.jobs,
        verbose=True,
    )
    _write(report, data, arguments)


def _check_input(matrices: Matrices, others: Matrices | None, arguments: Namespace) -> Matrices:
    """The matrices to compare on, or a sentence; one group that nobody named is left aside, with a note."""
    for option, found in (("--labels", matrices), ("--test-labels", others)):
        if found is not None and found.y is None:
            raise ValueError(f"{found.name} has no labels: give {option} CSV, or store them as y in it.")
    channels, d = arguments.channels, matrices.X.shape[-1]
    if channels is not None and len(channels) != d:
        raise ValueError(f"--channels has {len(channels)} names: expected {d}, one for each row.")
    groups = set() if matrices.groups is None else set(matrices.groups.tolist())
    if len(groups) == 1 and others is None and arguments.groups is None and not arguments.recenter:
        say(f"all matrices are in one group, {printable(*groups)}: not used")
        return replace(matrices, groups=None)
    return matrices


def _write(report: Report, data: Input, arguments: Namespace) -> None:
    """Write the files that were named, and say what was found."""
    from spdmetric.cli.inputs import save_model
    from spdmetric.comparison.program import Origin
    from spdmetric.comparison.verdict import saved_sentence
    from spdmetric.io.atomic import write_atomically

    options = ["matrices", "labels", "groups", "subject"]
    values = {name: value for name in options if (value := getattr(arguments, name)) is not None}
    read = {name: getattr(data.recipe, name, None) for name in ("events", "band", "window")}
    values |= {name: value for name, value in read.items() if value is not None}
    saved = arguments.save and (arguments.method or report.verdict.unaided[0], arguments.save.name)
    origin = Origin(
        arguments.data.name,
        arguments.test and arguments.test.name,
        values,
        signals=data.recipe is not None,
        steps=tuple(data.steps),
        command=shlex.join(["spdmetric", *arguments.words]),
        skipped=arguments.skip_bad,
        saved=saved,
        title=arguments.title,
    )
    if saved:
        save_model(report.best_estimator(arguments.method), data, arguments.save)
    report.save(arguments.out, origin)
    texts = ((arguments.csv, report.as_csv), (arguments.json, report.as_json))
    written = [arguments.out, *(path for path, _ in texts if path is not None)]
    for path, text in texts:
        if path is not None:
            write_atomically(path, text())
    tell(str(report), "", *(f"written: {path}" for path in written))
    if saved:
        tell(f"written: {arguments.save}", printable(saved_sentence(report.verdict, *saved)))
