"""The command line ``spdmetric`` and its command ``reproduce``; the others are in `commands` and `report`."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from spdmetric.cli import compare as compare_command

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

WHAT = """\
  toy        1-NN accuracy on the toy set of the paper, sizes 6, 8, 16, 20
  toy-easy   the easier toy set of its appendix
  textures   patches of Brodatz images (--data: a folder with D2, D28, D29, D92);
             without --data, of the brick, grass and gravel images inside scikit-image
  bci        BCI Competition IV 2a, left against right hand, session T to session E (--data: a
             folder with A01T.mat, ... or A01T.gdf, ... or MotorImagery.mat; without, by download)
  eegmmi     PhysioNet EEGMMI, imagined fists (--data: a folder with S001R04.edf, ...)
  figures    the six figures (--data: a folder of texture images for one of them)
  beyond     other methods beside the paper's, over all data (--data: a folder with some of the
             folders bci2a, cho2017, eegmmi, brodatz; without, the toy set alone); hours, or
             some ten minutes with --quick: five EEGMMI subjects, none across subjects, two draws
             or folds a row
  all        everything above (--data: a folder with the folders brodatz, bci2a and eegmmi);
             beyond only where --data is given
"""

# Folders that `all` looks for inside --data, the first that exists.
FOLDERS = {
    "textures": ("brodatz",),
    "bci": ("bci2a", "bci2a-a09"),
    "eegmmi": ("eegmmi",),
    "figures": ("brodatz",),
}


class CommandError(Exception):
    """Something the user can mend; its text is the one line that is shown."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after a one-line error, or 130 after an interruption."""
    arguments = _parser().parse_args(argv)
    warnings.showwarning = _say_warning
    try:
        arguments.run(arguments)
    except KeyboardInterrupt:
        again = "; give the same command again to go on where it was" * getattr(arguments, "resumes", True)
        print(f"\nspdmetric: interrupted{again}.", file=sys.stderr)
        return 130
    except (CommandError, ValueError, ImportError, OSError) as error:
        print(f"spdmetric: error: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    from spdmetric import __version__
    from spdmetric.cli.models import add_commands

    style: Any = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="spdmetric",
        description="Supervised LogEuclidean metric learning for SPD matrices.",
        epilog=EPILOG,
        formatter_class=style,
    )
    parser.add_argument("--version", action="version", version=f"spdmetric {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    reproduce = commands.add_parser(
        "reproduce",
        help="reproduce the tables and figures of Yger & Sugiyama (2015)",
        description=f"Tables and figures of Yger & Sugiyama (2015), our numbers beside theirs.\n\n{WHAT}",
        formatter_class=style,
    )
    choices = ["toy", "toy-easy", "textures", "bci", "eegmmi", "figures", "beyond", "all"]
    reproduce.add_argument("what", choices=choices, metavar="{" + ",".join(choices) + "}", help="see above")
    reproduce.add_argument(
        "--repeats",
        type=_count,
        metavar="N",
        help="draws a row (default: the paper's; 10 in beyond); folds and runs are not drawn",
    )
    reproduce.add_argument(
        "--seed", type=_seed, default=0, metavar="S", help="seed of all draws (default: 0)"
    )
    reproduce.add_argument("--jobs", type=_count, metavar="N", help="processes (default: one a core)")
    reproduce.add_argument("--data", type=Path, metavar="DIR", help="folder with the data")
    reproduce.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="default: results"
    )
    reproduce.add_argument("--quick", action="store_true", help="fewer draws: a look, not a result")
    reproduce.add_argument(
        "--ablations", action="store_true", help="two more columns: the authors' early stop, no normalization"
    )
    reproduce.add_argument(
        "--methods", type=_methods, metavar="A,B,...", help="these methods only (default: all of the table)"
    )
    reproduce.set_defaults(run=_reproduce)
    compare_command.add_parser(commands)
    add_commands(commands)
    return parser


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a whole number >= 0, got {text!r}")
    return int(text)


def _methods(text: str) -> tuple[str, ...]:
    from spdmetric.paper.ablations import KNOWN

    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in KNOWN]
    if unknown:
        raise argparse.ArgumentTypeError(f"no method {', '.join(unknown)}; there are {', '.join(KNOWN)}")
    return names


# ---------------------------------------------------------------------------
# reproduce


def _reproduce(arguments: argparse.Namespace) -> None:
    _writable(arguments.out)
    if arguments.what == "all":
        _reproduce_all(arguments)
    else:
        _reproduce_one(arguments.what, arguments.data, arguments)


def _reproduce_all(arguments: argparse.Namespace) -> None:
    """Run what the data at hand allow, and say what they do not."""
    not_run = []
    tables = ("toy", "toy-easy", "textures", "bci", "eegmmi", "figures")
    # Without data beyond is the toy set once more, and that takes its time.
    for what in (*tables, "beyond") if arguments.data is not None else tables:
        data = arguments.data if what == "beyond" else _inside(arguments.data, what)
        try:
            if what == "bci" and data is None:
                raise FileNotFoundError(
                    "no folder bci2a in --data; run it alone to let MOABB download the data"
                )
            _reproduce_one(what, data, arguments)
        except (FileNotFoundError, ImportError) as error:
            not_run.append(f"{what}: {_one_line(error)}")
    if not_run:
        print("Not run:\n  " + "\n  ".join(not_run))


def _inside(data: Path | None, what: str) -> Path | None:
    folders = [data / name for name in FOLDERS.get(what, ())] if data is not None else []
    return next((folder for folder in folders if folder.is_dir()), None)


def _reproduce_one(what: str, data: Path | None, arguments: argparse.Namespace) -> None:
    if what == "figures":
        _figures(data, arguments)
    else:
        _table(what, data, arguments)


def _table(name: str, data: Path | None, arguments: argparse.Namespace) -> None:
    from spdmetric.paper.ablations import ABLATIONS
    from spdmetric.paper.beyond import beyond_table
    from spdmetric.paper.reproduce import Settings, run_table, write_table
    from spdmetric.paper.tables import TABLES

    table = beyond_table(data) if name == "beyond" else TABLES[name](data)
    methods = arguments.methods or table.methods
    methods += tuple(m for m in ABLATIONS if arguments.ablations and m not in methods)
    repeats = arguments.repeats or (table.quick if arguments.quick else table.repeats)
    settings = Settings(methods, arguments.seed, repeats, arguments.quick)
    jobs = arguments.jobs or os.cpu_count() or 1
    results = run_table(table, settings, arguments.out, jobs=jobs, progress=_progress(name))
    print(write_table(table, results, settings, arguments.out))
    print(f"\nwritten: {arguments.out / name}.csv, .json, .md, .png\n")


def _figures(data: Path | None, arguments: argparse.Namespace) -> None:
    from tqdm import tqdm

    from spdmetric.datasets import load_images
    from spdmetric.paper.figures import FIGURES, save_figures
    from spdmetric.paper.tables import PAPER_TEXTURES

    images = load_images(data, PAPER_TEXTURES if data else None)
    folder = arguments.out / "figures"
    with tqdm(total=len(FIGURES), desc="figures", disable=None) as bar:
        written = save_figures(folder, images=images, seed=arguments.seed, progress=lambda _: bar.update())
    print(f"written: {len(written)} files in {folder}")


def _progress(name: str) -> Callable[[Iterable[Any], int, int], Iterable[Any]]:
    def wrap(finished: Iterable[Any], done: int, total: int) -> Iterable[Any]:
        from tqdm import tqdm

        return tqdm(finished, desc=name, initial=done, total=total, disable=None)

    return wrap


def _writable(folder: Path) -> None:
    """Fail before hours of work, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CommandError(f"cannot write to --out {folder}: {error.strerror or error}") from error


# ---------------------------------------------------------------------------
# What the user reads


def _one_line(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(text.split())


def _say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"spdmetric: {category.__name__}: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
