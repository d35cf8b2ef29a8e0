"""The command line ``spdmetric``: a module a command, and `options` with what each takes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from inspect import getdoc
from threading import current_thread, main_thread
from types import FrameType

from spdmetric import __version__
from spdmetric.caller import spell_by
from spdmetric.cli.options import COMMANDS, check_outputs
from spdmetric.cli.terminal import one_line, printable, say, write_option

EPILOG = """\
examples:
  spdmetric fit train.npz -o model.skops           learn from labeled matrices
  spdmetric predict model.skops new.npz -o new.csv label other matrices
  spdmetric show model.skops                       what a model file holds
  spdmetric compare matrices.npz --out report.html which metric suits my matrices, does learning help?
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after a one-line error, or 130 after an interruption."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: a file would take its number, and workers want it
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, "r" if name == "stdin" else "w"))
    arguments = make_parser().parse_args(argv)
    arguments.words = sys.argv[1:] if argv is None else list(argv)  # for the page of compare
    with warnings.catch_warnings(), spell_by(write_option), _note_interrupts() as interrupted:
        warnings.showwarning = lambda message, category, *_: say(f"{category.__name__}: {printable(message)}")
        try:
            check_outputs(arguments)
            import_module(f"spdmetric.cli.{arguments.command}").run(arguments)
        except (KeyboardInterrupt, Exception) as error:
            if interrupted or isinstance(error, KeyboardInterrupt):
                resumes = arguments.command == "compare"
                say("interrupted" + "; give the same command again to resume" * resumes + ".")
                return 130
            if not isinstance(error, (ValueError, TypeError, ImportError, OSError, MemoryError)):
                raise
            text, test = one_line(error), getattr(arguments, "test", None)
            data = getattr(arguments, "data", None) if text.startswith("X[") and test is None else None
            say(f"error: {text}" if data is None else f"error: {data}: {text}")
            return 2
    return 0


@contextmanager
def _note_interrupts() -> Iterator[list[int]]:
    """Note every ^C: one that comes while compiled modules are loaded is turned into an error of theirs."""
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    # Only the main thread hears it, and somebody else may handle it already.
    ours = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line; it needs the standard library alone."""
    style = argparse.RawDescriptionHelpFormatter
    about = "Supervised LogEuclidean metric learning for SPD matrices."
    parser = argparse.ArgumentParser("spdmetric", description=about, epilog=EPILOG, formatter_class=style)
    parser.add_argument("--version", action="version", version=f"spdmetric {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add_options in COMMANDS:
        name, text = add_options.__name__, str(getdoc(add_options))
        first = text.partition("\n")[0]
        command = commands.add_parser(name, help=first, description=text, formatter_class=style)
        command.set_defaults(command=name, outputs={})
        add_options(command)
    return parser
