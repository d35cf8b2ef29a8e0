"""``spdmetric reproduce``: the tables and figures of the paper, our numbers beside its own."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from spdmetric.cli.options import Command, add_run, jobs_asked, make_folder, one_line, progress

CHOICES = ("toy", "toy-easy", "textures", "bci", "eegmmi", "figures", "beyond", "all")

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


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=CHOICES, metavar="{" + ",".join(CHOICES) + "}", help="see above")
    add_run(parser, "draws a row (default: the paper's; 10 in beyond); folds and runs are not drawn")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder with the data")
    parser.add_argument("--out", type=Path, default=Path("results"), metavar="DIR", help="default: results")
    parser.add_argument("--quick", action="store_true", help="fewer draws: a look, not a result")
    parser.add_argument(
        "--ablations", action="store_true", help="two more columns: the authors' early stop, no normalization"
    )


def _run(arguments: Namespace) -> None:
    make_folder(arguments.out)
    if arguments.what == "all":
        _reproduce_all(arguments)
    else:
        _reproduce_one(arguments.what, arguments.data, arguments)


def _reproduce_all(arguments: Namespace) -> None:
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
            not_run.append(f"{what}: {one_line(error)}")
    if not_run:
        print("Not run:\n  " + "\n  ".join(not_run))


def _inside(data: Path | None, what: str) -> Path | None:
    folders = [data / name for name in FOLDERS.get(what, ())] if data is not None else []
    return next((folder for folder in folders if folder.is_dir()), None)


def _reproduce_one(what: str, data: Path | None, arguments: Namespace) -> None:
    if what == "figures":
        _figures(data, arguments)
    else:
        _table(what, data, arguments)


def _table(name: str, data: Path | None, arguments: Namespace) -> None:
    from spdmetric.evaluation.journal import Settings, run_table
    from spdmetric.evaluation.methods import ABLATIONS, BEYOND, COLUMNS
    from spdmetric.paper.beyond import beyond_table
    from spdmetric.paper.tables import TABLES

    table = beyond_table(data) if name == "beyond" else TABLES[name](data)
    methods = arguments.methods or (BEYOND if table.groups else COLUMNS)
    methods += tuple(m for m in ABLATIONS if arguments.ablations and m not in methods)
    repeats = arguments.repeats or (table.quick if arguments.quick else table.repeats)
    settings = Settings(methods, arguments.seed, repeats, arguments.quick)
    results = run_table(table, settings, arguments.out, jobs=jobs_asked(arguments), progress=progress(name))
    _write(table, results, settings, arguments.out)


def _write(table: Any, results: list[Any], settings: Any, out: Path) -> None:
    """Write a finished table in all its forms, and show it."""
    from spdmetric.evaluation import statistics as summary
    from spdmetric.evaluation.journal import write_atomically, write_csv
    from spdmetric.paper import groups, render, render_groups
    from spdmetric.plots import style

    # The paper's tables and the one of groups go the same way, each through its own two modules.
    numbers: Any = groups if table.groups else summary
    text: Any = render_groups if table.groups else render
    content = numbers.summarize(table, results, settings.methods, settings.seed)
    path = out / table.name
    write_csv(path.with_suffix(".csv"), results)
    write_atomically(path.with_suffix(".json"), json.dumps(numbers.as_json(content), indent=1) + "\n")
    write_atomically(path.with_suffix(".md"), text.as_markdown(content))
    style.save(text.picture(content), path.with_suffix(".png"))
    print(text.as_plain(content))
    print(f"\nwritten: {path}.csv, .json, .md, .png\n")


def _figures(data: Path | None, arguments: Namespace) -> None:
    from tqdm import tqdm

    from spdmetric.datasets import load_images
    from spdmetric.paper.figures import FIGURES, save_figures
    from spdmetric.paper.tables import PAPER_TEXTURES

    images = load_images(data, PAPER_TEXTURES if data else None)
    folder = arguments.out / "figures"
    with tqdm(total=len(FIGURES), desc="figures", disable=None) as bar:
        written = save_figures(folder, images=images, seed=arguments.seed, progress=lambda _: bar.update())
    print(f"written: {len(written)} files in {folder}")


COMMAND = Command(
    "reproduce",
    "reproduce the tables and figures of Yger & Sugiyama (2015)",
    f"Tables and figures of Yger & Sugiyama (2015), our numbers beside theirs.\n\n{WHAT}",
    _add_options,
    _run,
    resumes=True,
)
