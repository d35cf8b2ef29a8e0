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
from spdmetric.io.tables import is_table


def run(arguments: Namespace) -> None:
    """Read, compare, write the page, and say the answer."""
    need_page()
    labels, test = arguments.labels, arguments.test
    if arguments.method is not None and arguments.save is None:
        raise ValueError("--method is what --save trains: give --save MODEL.skops, or --methods to run some.")
    check_names([arguments.method] if arguments.method else [], {**METHODS, **REGRESSORS})
    data = read_input(arguments.data, labels, arguments)
    matrices, others = data.matrices, None
    if test is not None:
        array = None if labels is None or is_table(labels) else labels
        others = read_input(test, arguments.test_labels or array, arguments).matrices
    groups = set() if matrices.groups is None else set(matrices.groups.tolist())
    if len(groups) == 1 and others is None and arguments.groups is None and not arguments.recenter:
        say(f"all matrices are in one group, {printable(*groups)}: not used")
        matrices = replace(matrices, groups=None)
    report = compare_methods(
        matrices,
        test=others,
        methods=arguments.methods,
        repeats=arguments.repeats,
        seed=arguments.seed,
        scoring=arguments.scoring or ("r2" if arguments.regression else None),
        class_weight=arguments.class_weight,
        recenter=arguments.recenter,
        channels=arguments.channels or matrices.channels,
        store=arguments.out.with_suffix(STATE),
        n_jobs=arguments.jobs,
        verbose=True,
    )
    _write(report, data, arguments)


def _write(report: Report, data: Input, arguments: Namespace) -> None:
    """Write the files that were named, and say what was found."""
    options = {name: getattr(arguments, name) for name in ("matrices", "labels", "groups", "subject")}
    options |= {name: getattr(data.recipe, name, None) for name in ("events", "band", "window")}
    kept, saved = arguments.method or report.verdict.unaided[0], ""
    if arguments.save:
        save_model(report.best_estimator(kept), data, arguments.save)
        saved = saved_sentence(report.verdict, kept, arguments.save.name)
    origin = Origin(
        arguments.data.name,
        arguments.test and arguments.test.name,
        {name: value for name, value in options.items() if value is not None},
        signals=data.recipe is not None,
        steps=tuple(data.steps),
        command=shlex.join(["spdmetric", *arguments.words]),
        skipped=arguments.skip_bad,
        saved=saved,
        title=arguments.title,
    )
    report.save(arguments.out, origin)
    lines = [str(report), "", f"written: {arguments.out}"]
    for path, text in ((arguments.csv, report.as_csv), (arguments.json, report.as_json)):
        if path is not None:
            write_atomically(path, text())
            lines.append(f"written: {path}")
    if saved:
        lines += [f"written: {arguments.save}", printable(saved)]
    tell(*lines)
