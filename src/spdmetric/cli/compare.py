"""Which metric suits my matrices, and does learning help?

For matrices with classes; numbers are predicted with 'spdmetric fit --regression'.  Runs the usual
distances, the learned metrics (full, low rank, chosen by cross-validation) and the usual rivals under
nested cross-validation, and writes one HTML page that needs no network.  Where there are groups, sessions or
subjects, they are left out whole, and every method is also run on recentered matrices.  An interrupted run
goes on where it was when the same command is given again: finished folds are in the file beside the page that
ends in .state.
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING

from spdmetric.cli.options import (
    SCORES,
    SOURCE,
    add_data,
    add_matrices,
    add_run,
    add_signals,
    check_different,
    check_method,
    check_model_target,
    check_target,
    named,
    printable,
    say,
)

if TYPE_CHECKING:
    from spdmetric.cli.inputs import Input
    from spdmetric.comparison.plan import Plan
    from spdmetric.comparison.report import Origin, Report
    from spdmetric.comparison.store import Finished
    from spdmetric.io.matrices import Matrices

MOST_TOLD = 10  # matrices left out that are named
SILENCE = 4.0  # seconds between two signs of life; after an hour more, so that a log does not grow and grow


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    add_data(parser)
    groups = f"sessions or subjects, {SOURCE}: left out whole (default: the array groups, if there is one)"
    parser.add_argument("--groups", metavar="G", help=groups)
    recenter = "run every method also with each group seen from its own mean (default: if there are groups)"
    parser.add_argument("--recenter", action=BooleanOptionalAction, help=recenter)
    parser.add_argument("--test", type=named, metavar="TEST", help="train on DATA, test on these matrices")
    parser.add_argument("--test-labels", metavar="L", help="of TEST (default: --labels, if that is a name)")
    parser.add_argument("--out", type=Path, default="report.html", help="default: report.html")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the numbers as CSV too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers as JSON too")
    save = "train the winner on all of DATA, and keep it for 'spdmetric predict'"
    parser.add_argument("--save", type=Path, metavar="MODEL.npz", help=save)
    parser.add_argument("--method", metavar="NAME", help="what to save instead of the winner")
    decides = "what decides (default: accuracy)"
    parser.add_argument("--scoring", choices=SCORES, default="accuracy", help=decides)
    weight = "classes count alike, whatever their sizes, in methods that can weigh them"
    parser.add_argument("--class-weight", choices=("balanced",), help=weight)
    channels = "names of the channels, separated by commas, for the pictures"
    parser.add_argument("--channels", type=lambda text: text.split(","), metavar="NAMES", help=channels)
    add_run(parser, "how often the folds are drawn (default: 1 to 5, by size)")
    add_matrices(parser)
    add_signals(parser)


def run(arguments: Namespace) -> None:
    """Read, compare, write the page, and say the answer."""
    with Watch(arguments.jobs).awake() as watch:
        _run(arguments, watch)


def _run(arguments: Namespace, watch: Watch) -> None:
    from spdmetric.cli.inputs import read_input
    from spdmetric.comparison.compare import compare
    from spdmetric.comparison.page import need_page

    out, labels, test = arguments.out, arguments.labels, arguments.test
    need_page()
    targets = {"--out": out, "--csv": arguments.csv, "--json": arguments.json, "--save": arguments.save}
    for option, path in targets.items():
        if path is not None:
            check = check_model_target if option == "--save" else check_target
            check(option, path, arguments.data, labels, test)
    if out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html.")
    check_different(targets)
    if arguments.method is not None and arguments.save is None:
        raise ValueError("--method is what --save trains: give --save MODEL.npz, or --methods to run some.")
    if arguments.method is not None:
        check_method(arguments.method)
    named = None if labels is None or labels.endswith(".csv") else labels
    data = read_input(arguments.data, labels, arguments)
    others = test and _noted(read_input(test, arguments.test_labels or named, arguments))
    matrices = _check_input(_noted(data), others, arguments)
    watch.begin("looking at the matrices")
    try:
        report = compare(
            matrices,
            X_test=others,
            methods=arguments.methods,
            repeats=arguments.repeats,
            seed=arguments.seed,
            scoring=arguments.scoring,
            class_weight=arguments.class_weight,
            recenter=arguments.recenter,
            channels=arguments.channels or (None if data.recipe is None else data.recipe.channels),
            journal=out.with_suffix(".state"),
            n_jobs=arguments.jobs,
            progress=watch.follow,
            planned=watch.announce,
        )
        watch.begin("drawing the page")
        _write(report, data, arguments)
    except KeyboardInterrupt:
        watch.say_kept(out.with_suffix(".state"))
        raise


def _noted(data: Input) -> Matrices:
    """The matrices, with a note of those that were left out."""
    some = ", ".join(f"{one.where} ({one.why})" for one in data.bad[:MOST_TOLD])
    more = f", and {len(data.bad) - MOST_TOLD} more" if len(data.bad) > MOST_TOLD else ""
    left_out = f"Left out by --skip-bad, {len(data.bad)} of {data.n_all}: {printable(some)}{more}."
    notes = (*data.matrices.notes, left_out) if data.bad else data.matrices.notes
    return replace(data.matrices, notes=notes)


def _check_input(matrices: Matrices, others: Matrices | None, arguments: Namespace) -> Matrices:
    """The matrices to compare on, or a sentence; one group that nobody asked for is left aside, and said."""
    for option, found in (("--labels", matrices), ("--test-labels", others)):
        if found is not None and found.y is None:
            raise ValueError(
                f"{found.name} has no labels: give them with {option} CSV, or store them as y in it."
            )
    names = arguments.channels
    if names is not None and len(names) != matrices.X.shape[1]:
        raise ValueError(
            f"--channels has {len(names)} names: expected {matrices.X.shape[1]}, one for each row."
        )
    groups = set() if matrices.groups is None else set(matrices.groups.tolist())
    if len(groups) == 1 and others is None and arguments.groups is None and not arguments.recenter:
        say(f"all matrices are in one group, {printable(*groups)}: not used")
        return replace(matrices, groups=None)
    return matrices


def _write(report: Report, data: Input, arguments: Namespace) -> None:
    """Write what was asked for, and say what was found."""
    from sklearn.pipeline import make_pipeline

    from spdmetric.comparison.folds import steps_of
    from spdmetric.comparison.verdict import saved_sentence
    from spdmetric.io.atomic import write_atomically
    from spdmetric.io.models import save

    origin, written = _origin(report, data, arguments), [arguments.out]
    if origin.saved is not None:
        steps = [*data.steps, *steps_of(report.best_estimator(arguments.method))]
        save(make_pipeline(*steps) if len(steps) > 1 else steps[0], arguments.save, recipe=data.recipe)
    report.save(arguments.out, origin)
    for path, text in ((arguments.csv, report.as_csv), (arguments.json, report.as_json)):
        if path is not None:
            write_atomically(path, text().encode())
            written.append(path)
    print(report, "", *(f"written: {path}" for path in written), sep="\n")
    if origin.saved is not None:
        print(
            f"written: {arguments.save}", printable(saved_sentence(report.verdict, *origin.saved)), sep="\n"
        )


def _origin(report: Report, data: Input, arguments: Namespace) -> Origin:
    from spdmetric.comparison.chosen import winner
    from spdmetric.comparison.report import Origin

    asked = {name: getattr(arguments, name) for name in ("labels", "groups", "subject")}
    if data.recipe is not None:
        asked |= {name: getattr(arguments, name) for name in ("events", "band", "window")}
    saved = arguments.save and (arguments.method or winner(report.verdict), arguments.save.name)
    return Origin(
        arguments.data.name,
        arguments.test and arguments.test.name,
        {name: value for name, value in asked.items() if value is not None},
        signals=data.recipe is not None,
        steps=tuple(data.steps),
        command=shlex.join(["spdmetric", *arguments.words]),
        skipped=arguments.skip_bad,
        saved=saved,
    )


class Watch:
    """Says what is being done every few seconds: of parts in a terminal by a bar, else in lines."""

    def __init__(self, jobs: int):
        self.jobs, self.total = jobs, 0
        self.begin("reading")

    def begin(self, what: str) -> None:
        """Hear of what is done from now on."""
        began = monotonic()
        self.sign: Callable[[], object] = lambda: say(f"{what}, {duration(monotonic() - began)}")

    @contextmanager
    def awake(self) -> Iterator[Watch]:
        """Give a sign of life every few seconds until the end, from a thread: LAPACK lets it speak."""
        over, began = Event(), monotonic()

        def beat() -> None:
            while not over.wait(max(SILENCE, (monotonic() - began) * SILENCE / 3600)):
                with suppress(ValueError):  # of a stream that is closed
                    self.sign()

        thread = Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            over.set()
            thread.join()

    def announce(self, plan: Plan) -> None:
        """Hear of what is about to be run, and guess how long that may take."""
        from spdmetric.comparison.run import rough_seconds

        self.plan, self.seconds = plan, rough_seconds(plan) / self.jobs

    def say_kept(self, state: Path) -> None:
        """Tell how many parts are in the journal of a run that is given up."""
        from spdmetric.comparison.run import kept_parts

        if self.total:  # before, nothing was begun
            say(f"{kept_parts(self.plan, state)} of {self.total} parts are finished and kept in {state}")

    def follow(self, finished: Iterable[Finished], done: int, total: int) -> Iterator[Finished]:
        """Pass on what is finished, and tell of it."""
        from tqdm import tqdm

        from spdmetric.comparison.describe import counted

        self.done, self.total, self.last = done, total, ""
        methods = counted(len(self.plan.methods), "method")
        n_folds = sum(map(len, self.plan.splits))
        forms = " with and without recentering" if self.plan.variants else ""
        kept = f"; kept from before: {done} of {total} parts" if done else ""
        self.pace = self.seconds / total  # of a part; a guess until there is a whole fold
        left = duration(self.pace * (total - done))
        guess = f"; roughly {left}, guessed from a small piece of the work" if done < total else ""
        say(f"{methods} in {counted(n_folds, 'fold')}{forms}{kept}{guess}")
        shown = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}{postfix}]"
        with tqdm(
            desc="compare", initial=done, total=total, disable=None, leave=False, bar_format=shown
        ) as bar:
            began = monotonic()

            def redraw() -> None:
                bar.set_postfix_str((self.left(done, began) + self.last)[2:])

            self.sign = partial(self.say_how_far, done, began) if bar.disable else redraw
            try:
                for key, pieces in finished:
                    yield key, pieces
                    self.done, self.last = self.done + 1, f"; repeat {key[1] + 1}, {key[0]}"
                    new = self.done - done
                    if new % (total // n_folds) == 0:  # parts of all kinds, as many of each
                        self.pace = (monotonic() - began) / new
                    bar.update()
            finally:
                self.begin("putting the results together")

    def left(self, first: int, began: float) -> str:
        """What is left by the time that whole folds took; nothing where the guess was too low."""
        left = self.pace * (self.total - first) - (monotonic() - began)
        return f", about {duration(left)} left" if left > 0 else ""

    def say_how_far(self, first: int, began: float) -> None:
        """Tell how much is done, what is left, and the last part."""
        parts = "part" if self.total == 1 else "parts"
        gone = duration(monotonic() - began)
        say(f"{self.done} of {self.total} {parts}, {gone} gone{self.left(first, began)}{self.last}")


def duration(seconds: float) -> str:
    """``40 s``, ``3 min``, ``2 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
