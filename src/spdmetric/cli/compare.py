"""The command compare: read, compare, write the page, and say the answer."""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import replace

from spdmetric.cli.inputs import Input, read_input, save_model
from spdmetric.cli.options import STATE
from spdmetric.cli.terminal import printable, say, tell
from spdmetric.comparison.methods import METHODS, REGRESSORS, check_names
from spdmetric.comparison.page import Origin, need_page
from spdmetric.comparison.report import Report
from spdmetric.comparison.report import compare as compare_methods
from spdmetric.comparison.verdict import saved_sentence
from spdmetric.io.atomic import write_atomically
from spdmetric.io.matrices import Matrices


def run(arguments: Namespace) -> None:
    """Read, compare, write the page, and say the answer."""
    need_page()
    labels, test = arguments.labels, arguments.test
    if arguments.method is not None and arguments.save is None:
        raise ValueError("--method is what --save trains: give --save MODEL.skops, or --methods to run some.")
    check_names([arguments.method] if arguments.method else [], {**METHODS, **REGRESSORS})
    data = read_input(arguments.data, labels, arguments)
    others = None
    if test is not None:
        array = None if labels is None or labels.endswith(".csv") else labels
        others = read_input(test, arguments.test_labels or array, arguments).matrices
    report = compare_methods(
        _check_input(data.matrices, others, arguments),
        test=others,
        methods=arguments.methods,
        repeats=arguments.repeats,
        seed=arguments.seed,
        scoring=arguments.scoring or ("r2" if arguments.regression else None),
        class_weight=arguments.class_weight,
        recenter=arguments.recenter,
        channels=arguments.channels or data.matrices.channels,
        store=arguments.out.with_suffix(STATE),
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
    options = ["matrices", "labels", "groups", "subject"]
    values = {name: value for name in options if (value := getattr(arguments, name)) is not None}
    read = {name: getattr(data.recipe, name, None) for name in ("events", "band", "window")}
    values |= {name: value for name, value in read.items() if value is not None}
    kept, saved = arguments.method or report.verdict.unaided[0], ""
    if arguments.save:
        save_model(report.best_estimator(kept), data, arguments.save)
        saved = saved_sentence(report.verdict, kept, arguments.save.name)
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
    report.save(arguments.out, origin)
    texts = ((arguments.csv, report.as_csv), (arguments.json, report.as_json))
    written = [arguments.out, *(path for path, _ in texts if path is not None)]
    for path, text in texts:
        if path is not None:
            write_atomically(path, text())
    tell(str(report), "", *(f"written: {path}" for path in written))
    if saved:
        tell(f"written: {arguments.save}", printable(saved))
