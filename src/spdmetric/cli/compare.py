"""Which metric suits my matrices, and does learning help?

For matrices with classes; numbers are predicted with 'spdmetric fit --regression'.  Runs the usual
distances, the learned metrics (full, low rank, chosen by cross-validation) and the usual rivals under
nested cross-validation, and writes one HTML page that needs no network.  An interrupted run goes on where it
was when the same command is given again: finished folds are in the file beside the page that ends in .state.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from spdmetric.cli.options import add_data, add_run, bar, check_target


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_data(parser)
    groups = "sessions or subjects, likewise: left out whole (default: the array groups, if there is one)"
    parser.add_argument("--groups", metavar="G", help=groups)
    parser.add_argument("--test", type=Path, metavar="TEST", help="train on DATA, test on these matrices")
    parser.add_argument("--test-labels", metavar="L", help="of TEST (default: --labels, if that is a name)")
    parser.add_argument("--out", type=Path, default="report.html", help="default: report.html")
    add_run(parser, "how often the folds are drawn (default: 1 to 5, by size)")


def run(arguments: Namespace) -> None:
    """Read, compare, write the page, and say the answer."""
    from spdmetric.cli.inputs import read_input
    from spdmetric.comparison.compare import compare
    from spdmetric.comparison.page import Origin, need_page

    out, labels, test = arguments.out, arguments.labels, arguments.test
    need_page()
    check_target(out, arguments.data, test)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html.")
    named = None if labels is None or labels.endswith(".csv") else labels
    report = compare(
        read_input(arguments.data, labels, arguments).matrices,
        X_test=test and read_input(test, arguments.test_labels or named, arguments).matrices,
        methods=arguments.methods,
        repeats=arguments.repeats,
        seed=arguments.seed,
        journal=out.with_suffix(".state"),
        n_jobs=arguments.jobs,
        progress=partial(bar, "compare"),
    )
    report.save(out, Origin(arguments.data.name, test and test.name, labels, arguments.subject))
    print(f"{report}\n\nwritten: {out}")
