"""``spdmetric compare``: which metric suits a file of matrices, and does learning help?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from spdmetric.cli.options import Command, add_data, add_run, jobs_asked, make_folder, progress, read

DESCRIPTION = """\
Which metric suits my matrices, and does learning help?  Runs the usual distances, the learned metrics
(full, low rank, chosen by cross-validation) and the usual rivals under nested cross-validation, and
writes one HTML page that needs no network.

DATA is .npz (arrays X and y, or covs and labels, optionally groups), .mat (any version) or .npy with
--labels.  An interrupted run goes on where it was when the same command is given again: finished folds
are in the file beside the page that ends in .state.
"""


def _add_options(parser: ArgumentParser) -> None:
    add_data(parser)
    parser.add_argument("--test", type=Path, metavar="TEST", help="train on DATA, test on these matrices")
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
        "--out", type=Path, default=Path("report.html"), metavar="PAGE", help="default: report.html"
    )
    add_run(parser, "how often the folds are drawn (default: 1 to 5, by size)")


def _run(arguments: Namespace) -> None:
    from spdmetric.comparison.page import Origin
    from spdmetric.comparison.report import compare

    out, labels, test = arguments.out, arguments.labels, arguments.test
    _check_page(out)
    named = None if labels is None or labels.endswith(".csv") else labels
    report = compare(
        read(arguments.data, labels, arguments.subject, arguments.groups),
        X_test=test and read(test, arguments.test_labels or named, arguments.subject),
        methods=arguments.methods,
        repeats=arguments.repeats,
        seed=arguments.seed,
        journal=out.with_suffix(".state"),
        n_jobs=jobs_asked(arguments),
        progress=progress("compare"),
    )
    report.save(out, Origin(arguments.data.name, test and test.name, labels, arguments.subject))
    print(f"{report}\n\nwritten: {out}")


def _check_page(out: Path) -> None:
    if out.is_dir():
        raise ValueError(f"--out {out} is a folder: expected the name of a page, such as report.html.")
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html.")
    make_folder(out.parent)


COMMAND = Command(
    "compare",
    "which metric suits my matrices, and does learning help? one HTML page",
    DESCRIPTION,
    _add_options,
    _run,
    resumes=True,
)
