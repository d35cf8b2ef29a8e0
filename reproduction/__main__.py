"""Tables and figures of Yger & Sugiyama (2015), our numbers beside theirs.

toy        1-NN accuracy on the toy set of the paper, sizes 6, 8, 16, 20
toy-easy   the easier toy set of its appendix
textures   patches of Brodatz images (--data: a folder with D2, D28, D29, D92);
           without --data, of the brick, grass and gravel images inside scikit-image
bci        BCI Competition IV 2a, left against right hand, session T to session E (--data: a
           folder with A01T.mat, ... or A01T.gdf, ... or MotorImagery.mat; without, by download)
eegmmi     PhysioNet EEGMMI, imagined fists (--data: a folder with S001R04.edf, ...)
image-sets classes of image sets, each set a covariance of its pixels (--data: a folder with folders
           CLASS/SET of images of one size, or with image_sets.npz: arrays images and y)
transfer   a new subject of EEGMMI with 0 to 30 labeled trials, with and without the others (--data: a
           folder with covariances_S001-S020.npz); about an hour
figures    the six figures (--data: a folder of texture images for one of them)
beyond     other methods beside the paper's, over all data (--data: a folder with some of the
           folders bci2a, cho2017, eegmmi, ssvep, brodatz; without, the toy set alone); hours, or some ten
           minutes with --quick: five EEGMMI subjects, none across subjects, two draws or folds a row
all        everything above (--data: a folder with the folders brodatz, bci2a, eegmmi and virus);
           beyond only where --data is given

Every table is written to the folder --out as NAME.csv (every single accuracy), NAME.json (means,
standard errors, tests, the paper's numbers), NAME.md and NAME.png.  Both data files carry the stamp of the
code that computed them, a digest of its sources.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

# What `all` runs, and the folders that it looks for inside --data, the first that exists.
FOLDERS = {
    **{"toy": (), "toy-easy": (), "textures": ("brodatz",), "bci": ("bci2a", "bci2a-a09")},
    **{"eegmmi": ("eegmmi",), "image-sets": ("virus",), "figures": ("brodatz",), "transfer": ("eegmmi",)},
    "beyond": (".",),
}


def make_parser() -> ArgumentParser:
    """Make the parser of the command line; it needs the standard library alone."""
    style, cores = RawDescriptionHelpFormatter, os.cpu_count() or 1
    parser = ArgumentParser("python -m reproduction", description=__doc__, formatter_class=style)
    add = parser.add_argument
    add("what", choices=[*FOLDERS, "all"], metavar="WHAT", help="one of the above")
    draws = "draws a row (default: the paper's; 10 in beyond); folds and runs are not drawn"
    add("--repeats", type=partial(whole, 1), metavar="N", help=draws)
    add("--seed", type=partial(whole, 0), default=0, metavar="S", help="of all draws (default: 0)")
    add("--jobs", type=partial(whole, 1), default=cores, metavar="N", help="processes (default: all)")
    add("--methods", help="names of methods, separated by commas (default: all)")
    add("--data", type=Path, metavar="DIR", help="folder with the data")
    add("--out", type=Path, default=Path("results"), metavar="DIR", help="default: results")
    add("--quick", action="store_true", help="fewer draws: a look, not a result")
    add("--ablations", action="store_true", help="also an early stop, and no normalization")
    verify = "compute a part of the table in --out again; where it agrees exactly, stamp it with this code"
    add("--verify", action="store_true", help=verify)
    return parser


def whole(least: int, text: str) -> int:
    """The type of an option that takes a whole number."""
    if not text.isdigit() or int(text) < least:
        raise ArgumentTypeError(f"expected a whole number >= {least}, got {text!r}")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 after a one-line error, or 130 after an interruption."""
    arguments = make_parser().parse_args(argv)
    try:
        run(arguments)
    except KeyboardInterrupt:
        print("interrupted; give the same command again to resume.", file=sys.stderr)
        return 130
    except (ValueError, ImportError, OSError, MemoryError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        return 2
    return 0


def one_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def run(arguments: Namespace) -> None:
    """Reproduce one thing, or all that the data at hand allow, and say what they do not."""
    if arguments.data is not None and not arguments.data.is_dir():
        raise FileNotFoundError(f"--data {arguments.data} is not a folder: expected one with the data.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.what != "all":
        return run_one(arguments.what, arguments.data, arguments)
    not_run = []
    for what, names in FOLDERS.items():
        inside = [arguments.data / name for name in names if arguments.data is not None]
        data = next((folder for folder in inside if folder.is_dir()), None)
        if what == "beyond" and data is None:
            continue  # that would be the toy set once more, and takes its time
        try:
            if what == "bci" and data is None:
                raise FileNotFoundError("no folder bci2a in --data; alone, it lets MOABB download the data")
            run_one(what, data, arguments)
        except (FileNotFoundError, ImportError) as error:
            not_run.append(f"{what}: {one_line(error)}")
    if not_run:
        print("Not run:\n  " + "\n  ".join(not_run))


def run_one(name: str, data: Path | None, arguments: Namespace) -> None:
    """Reproduce the figures or a table, with the data of a folder."""
    if name == "figures":
        return _figures(data, arguments)
    if name == "transfer":
        return _transfer(data, arguments)
    from reproduction.beyond import beyond_table
    from reproduction.methods import ABLATIONS, KNOWN
    from reproduction.runs import Settings, run_table, verify_table, write_table
    from reproduction.tables import TABLES

    asked = tuple(arguments.methods.split(",")) if arguments.methods else ()
    unknown = [method for method in asked if method not in KNOWN]
    if unknown:
        raise ValueError(f"--methods: no method {', '.join(unknown)}; there are {', '.join(KNOWN)}.")
    table = beyond_table(data) if name == "beyond" else TABLES[name](data)
    if arguments.verify:
        return print(verify_table(table, arguments.out))
    methods = asked or table.methods
    methods += tuple(m for m in ABLATIONS if arguments.ablations and m not in methods)
    repeats = arguments.repeats or (table.quick if arguments.quick else table.repeats)
    settings = Settings(methods, arguments.seed, repeats, arguments.quick)
    results = run_table(table, settings, arguments.out, jobs=arguments.jobs, progress=name)
    print(write_table(table, results, settings, arguments.out))
    print(f"\nwritten: {arguments.out / name}.csv, .json, .md, .png\n")


def _transfer(data: Path | None, arguments: Namespace) -> None:
    from reproduction.transfer import run_transfer, write_transfer

    if data is None:
        raise FileNotFoundError("transfer needs --data: a folder with covariances_S001-S020.npz.")
    out = arguments.out
    results = run_transfer(data, out, quick=arguments.quick, jobs=arguments.jobs, progress="transfer")
    print(write_transfer(results, out))
    print(f"\nwritten: {out / 'transfer'}.csv, .json, .md, .png\n")


def _figures(data: Path | None, arguments: Namespace) -> None:
    from tqdm import tqdm

    from reproduction.datasets import load_images
    from reproduction.figures import FIGURES, save_figures
    from reproduction.tables import PAPER_TEXTURES

    images = load_images(data, PAPER_TEXTURES if data else None)
    folder = arguments.out / "figures"
    with tqdm(total=len(FIGURES), desc="figures", disable=None) as shown:
        written = save_figures(folder, images=images, seed=arguments.seed, progress=lambda _: shown.update())
    print(f"written: {len(written)} files in {folder}")


if __name__ == "__main__":
    sys.exit(main())
