"""What the command line takes: a function a command, whose name and docstring are the command's.

Only the standard library is imported here, so that help and wrong options answer at once.
"""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

DATA = """
DATA holds matrices: an .npz or .mat file (of any version) with the arrays X (n, d, d) and y, or covs and
labels, or others that --matrices and --labels name; an .npy file of matrices, with --labels; or a folder of
.npy or .csv files, a matrix in each, whose labels are the subfolders or --labels.  Or it holds signals: a
recording with annotations (EDF, BDF, GDF, BrainVision .vhdr, EEGLAB .set, FIF), epochs (FIF, .set), a folder
of these; or an array X (n, channels, times), {}.
"""
SOURCE = "a .csv file, or the name of an array of DATA"  # of labels
# Of groups, which names of recordings tell too.
GROUPS = f"{SOURCE}, a column of the metadata of epochs, or run, subject, ... of S001R04.edf"
DOMAINS = 'sessions or subjects, each recentered by its own mean: as --groups, or "groups" for the same'
MODEL = "written by spdmetric fit, or compare --save"
ESTIMATORS = ("oas", "lwf", "scm")  # of covariances, in pyRiemann's words
# Scores by their names on the command line, and in scikit-learn; the default of the choice is logloss.
SCORES = {"accuracy": "accuracy", "balanced": "balanced_accuracy", "auc": "roc_auc_ovr", "logloss": None}
STATE = ".state"  # how the name of the file ends with which compare resumes


def toy(parser: ArgumentParser) -> None:
    """Write the toy set of the paper: toy-train.npz, 50 matrices 8 x 8, and toy-new.npz, 500 more.

    With --regression, 200 matrices 16 x 16 of rank 8 with regression targets, and 500 more.
    """
    add = parser.add_argument
    add("--out", type=Path, default=Path("."), metavar="DIR", help="default: here")
    add("--regression", action="store_true", help="regression targets, not classes")
    add("--seed", type=whole(0), default=0, metavar="S", help="default: 0")


def fit(parser: ArgumentParser) -> None:
    """Learn a classifier from labeled matrices or signals, and keep it in a file.

    By default a metric and what labels its vectors are learned: radius, rank and weighting are chosen by
    cross-validation as far as they are not given.  --method takes any other that 'spdmetric methods' lists.
    With --regression the labels are regression targets, and ridge regression or neighbors follow the metric.
    Matrices that are singular in the same directions are brought to their common range first, unless --rank
    is given; where ranks differ, --shrink makes them all definite.
    """
    add = parser.add_argument
    add_data(parser)
    add("-o", "--out", type=Path, required=True, metavar="MODEL.skops", help="file to write")
    add(
        "--method", default="auto", metavar="NAME", help="see 'spdmetric methods' (default: auto, our choice)"
    )
    add("--radius", type=float, metavar="R", help="largest distance of G from the mean")
    add("--rank", type=whole(1, "full"), metavar="M", help='directions to learn, or "full"')
    add("--neighbors", type=whole(1), metavar="K", help="label by K neighbors (default: chosen)")
    add("--folds", type=whole(2), metavar="N", help="of the choice; default: 5, twice below 200 matrices")
    add("--scoring", choices=SCORES, help="by what to choose (default: logloss)")
    add("--domains", type=word, metavar="D", help=DOMAINS)
    add_training(parser)
    parser.set_defaults(outputs={"out": (".skops",)})


def predict(parser: ArgumentParser) -> None:
    """Label matrices or signals, or predict their numbers, with a model that 'spdmetric fit' wrote.

    What is written is comma-separated values with the columns index (file, for a folder; file and onset in
    seconds too, for recordings) and label (value, after fit --regression), true where DATA tells the labels,
    and with --proba the probability of each class.
    A label that a spreadsheet would run (it begins with = + - or @) has an apostrophe before it, which
    spdmetric takes off again when it reads labels.  Signals are read as those that the model was trained on.
    """
    add, out = parser.add_argument, 'file to write, or "-" for the terminal (default)'
    add("model", type=Path, metavar="MODEL.skops", help=MODEL)
    add_data(parser, "where the model was trained on such")
    add("-o", "--out", type=lambda name: None if name == "-" else Path(name), metavar="LABELS.csv", help=out)
    add("--proba", action="store_true", help="the probability of each class too")
    add("--groups", type=word, metavar="G", help=f"where --domains is groups: {GROUPS}")
    add("--domains", type=word, metavar="D", help=DOMAINS)
    unasked = dict.fromkeys(("events", "band", "window", "estimator", "shrink"))  # the model has them
    parser.set_defaults(outputs={"out": (".csv", ".txt", ".tsv", "")}, **unasked)


def show(parser: ArgumentParser) -> None:
    """Say what a model file holds, in a page of plain text."""
    parser.add_argument("model", type=Path, metavar="MODEL.skops", help=MODEL)


def methods(parser: ArgumentParser) -> None:
    """List the methods that fit and compare know: what each does, and what data it can take."""


def compare(parser: ArgumentParser) -> None:
    """Which metric suits my matrices, and does learning help?

    Runs the usual distances, the learned metrics (full, low rank, chosen by cross-validation) and the usual
    baselines under nested cross-validation, and writes one HTML page that needs no network.  Where there are
    groups, sessions or subjects, they are left out whole, and every method is also run on recentered
    matrices.  An interrupted run resumes when the same command is given again: finished folds are in the file
    beside the page that ends in .state.
    """
    add, cores = parser.add_argument, os.cpu_count() or 1
    add_data(parser)
    recenter = "run every method also with each group recentered by its own mean (default: if there are any)"
    add("--recenter", action=BooleanOptionalAction, help=recenter)
    add("--test", type=existing_name, metavar="TEST", help="train on DATA, test on these matrices")
    add("--test-labels", type=word, metavar="L", help="of TEST (default: --labels, a name)")
    add("--out", type=Path, default=Path("report.html"), help="default: report.html")
    add("--csv", type=Path, metavar="FILE", help="write the numbers as CSV too")
    add("--json", type=Path, metavar="FILE", help="write the numbers as JSON too")
    add("--save", type=Path, metavar="MODEL.skops", help="train the winner on all of DATA, and keep it")
    add("--method", metavar="NAME", help="what to save instead of the winner")
    add("--scoring", choices=(*SCORES, "r2", "mae"), help="what decides (default: accuracy, for numbers r2)")
    add("--title", metavar="WORDS", help="of the page (default: the question, of a file)")
    add("--channels", type=names, metavar="NAMES", help="of channels, separated by commas, for the pictures")
    add("--repeats", type=whole(1), metavar="N", help="how often folds are drawn (default: 1 to 5, by size)")
    add("--seed", type=whole(0), default=0, metavar="S", help="of all draws (default: 0)")
    add("--jobs", type=whole(1), default=cores, metavar="N", help="processes (default: all)")
    add("--methods", type=names, help="names of methods, separated by commas (default: all)")
    add_training(parser)
    outputs = {"out": (".html", ".htm"), "csv": (), "json": (), "save": (".skops",)}
    parser.set_defaults(outputs=outputs, domains=None)


COMMANDS = (toy, fit, predict, show, methods, compare)


def add_data(parser: ArgumentParser, arrays: str = "with --estimator") -> None:
    """Add DATA, and the options that say how to read it; ``arrays`` is when arrays are signals."""
    add = parser.add_argument
    parser.description = f"{parser.description}\n{DATA.format(arrays)}"
    add("data", type=existing_name, metavar="DATA", help="see above")
    add("--matrices", type=word, metavar="X", help="name of the array of matrices or signals")
    add("--labels", type=word, metavar="L", help=f"labels: {SOURCE}, or a column of metadata")
    add("--subject", type=int, metavar="N", help="subject of a file that holds several")
    add("--skip-bad", action="store_true", help="go on without matrices that hold NaN, or are no covariances")


def add_training(parser: ArgumentParser) -> None:
    """Add what fit and compare ask of the labels, and how DATA become matrices, which a model keeps."""
    add = parser.add_argument
    add("--regression", action="store_true", help="the labels are regression targets")
    add("--class-weight", choices=("balanced",), help="classes count alike, whatever their sizes")
    groups = f"sessions or subjects, {GROUPS}: folds keep them whole (default: the array groups, if any)"
    add("--groups", type=word, metavar="G", help=groups)
    amount = "mix each matrix with a multiple of the identity, of this weight, so that none is singular"
    add("--shrink", type=shrink, metavar="oas|lwf|VALUE", help=amount)
    add = parser.add_argument_group("signals").add_argument
    events = "annotations that are trials, as T1,T2 or T1=left,T2=right; recordings need it"
    add("--events", metavar="E", help=events)
    pairs: dict[str, Any] = {"type": float, "nargs": 2, "action": "append"}
    band = "pass band of recordings in Hz (default: as they are); again for several matrices a trial"
    add("--band", metavar=("LOW", "HIGH"), help=band, **pairs)
    window = "seconds after the annotation, which recordings need; again for several matrices a trial"
    add("--window", metavar=("START", "END"), help=window, **pairs)
    add("--estimator", choices=ESTIMATORS, help="of the covariances (default: oas)")


def whole(least: int, word: str | None = None) -> Callable[[str], int | str]:
    """Make the type of an option that takes a whole number, or one word instead."""

    def convert(text: str) -> int | str:
        if text == word:
            return text
        if re.fullmatch("[0-9]{1,10}", text) and least <= int(text) < 2**32:  # as large as seeds may be
            return int(text)
        wanted = f"a whole number >= {least}" + f' or "{word}"' * (word is not None)
        raise ArgumentTypeError(f"expected {wanted}, got {text[:40]!r}")

    return convert


def word(text: str) -> str:
    """The type of an option that takes a name; nothing, of a variable that is not set, is none."""
    if not text.strip():
        raise ArgumentTypeError("expected a name, got nothing")
    return text


def existing_name(text: str) -> Path:
    """The type of a file or folder to read."""
    return Path(word(text))


def names(text: str) -> tuple[str, ...]:
    """The type of an option that takes names with commas between."""
    found = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if "" in found:
        raise ArgumentTypeError(f"expected names, separated by commas, got {text!r}")
    return found


def shrink(text: str) -> str | float:
    """The type of an option that takes oas, lwf or a weight."""
    if text in ("oas", "lwf"):
        return text
    with suppress(ValueError):
        if 0 < (amount := float(text)) <= 1:
            return amount
    raise ArgumentTypeError(f"expected oas, lwf or a number above 0 and up to 1, got {text!r}")


def check_outputs(arguments: Namespace) -> None:
    """Fail before the work where a file cannot be written or would replace one that is read; make folders."""
    targets: dict[str, Path] = {}
    for name, suffixes in arguments.outputs.items():
        path = getattr(arguments, name)
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"--{name} {path} is a folder: expected the name of a file.")
        if suffixes and path.suffix.lower() not in suffixes:  # it would promise another format
            raise ValueError(f"--{name} {path}: expected a name that ends in {suffixes[0]}.")
        targets[f"--{name}"] = path
        if arguments.command == "compare" and name == "out":
            targets["--out, its state"] = path.with_suffix(STATE)
    inputs = [getattr(arguments, name, None) for name in ("model", "data", "labels", "test")]
    options: dict[str, str] = {}
    for option, path in targets.items():
        for source in inputs:
            if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
                raise ValueError(f"{option} {path} would replace {source}, which is read: name another file.")
        if (first := options.setdefault(os.path.realpath(path), option)) != option:
            raise ValueError(f"{option} {path} would replace the file of {first}: name another file.")
        if not path.exists() or path.is_file():  # what is neither is written through
            make_folder(Path(os.path.realpath(path)).parent, option)


def make_folder(folder: Path, option: str = "--out") -> None:
    """Make a folder; fail before the work, not after, where nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to {option} {folder}: {error.strerror or error}") from error
