"""The command line: its parser, and what is said when a command ends badly."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

from spdmetric.cli import compare, fit, predict, reproduce, toy
from spdmetric.cli.options import one_line

COMMANDS = (reproduce.COMMAND, compare.COMMAND, toy.COMMAND, fit.COMMAND, predict.COMMAND)

EPILOG = """\
examples:
  spdmetric fit train.npz -o model.npz             learn from labeled matrices
  spdmetric predict model.npz new.npz -o new.csv   label other matrices
  spdmetric reproduce toy                          Table 1 of the paper, about a minute
  spdmetric reproduce textures --data brodatz      its texture table, from a folder with D2.gif, ...
  spdmetric reproduce bci                          its EEG table; MOABB downloads the data
  spdmetric reproduce figures --out results        its figures, drawn from computed geometry
  spdmetric reproduce beyond --data DIR --quick    all methods on all data, a first look
  spdmetric compare matrices.npz --out report.html which metric suits my matrices, does learning help?

Every table is written to the folder --out as NAME.csv (every single accuracy), NAME.json (means,
standard errors, tests, the paper's numbers), NAME.md and NAME.png.  A run that was interrupted goes on
where it was when the same command is given again.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after a one-line error, or 130 after an interruption."""
    arguments = make_parser().parse_args(argv)
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            arguments.command.run(arguments)
        except KeyboardInterrupt:
            again = "; give the same command again to go on where it was" * arguments.command.resumes
            print(f"\nspdmetric: interrupted{again}.", file=sys.stderr)
            return 130
        except (ValueError, ImportError, OSError) as error:
            print(f"spdmetric: error: {one_line(error)}", file=sys.stderr)
            return 2
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line; what it needs is the standard library alone."""
    from spdmetric import __version__

    parser = argparse.ArgumentParser(
        prog="spdmetric",
        description="Supervised LogEuclidean metric learning for SPD matrices.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"spdmetric {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        options = commands.add_parser(
            command.name,
            help=command.help,
            description=command.description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_options(options)
        options.set_defaults(command=command)
    return parser


def _say_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    print(f"spdmetric: {category.__name__}: {message}", file=sys.stderr)
