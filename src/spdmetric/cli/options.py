"""What the commands share: options, checks of where to write, text for a terminal.

Only the standard library is imported here, so that help and wrong options answer at once.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import Any, TextIO

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
MODEL = "written by spdmetric fit, or compare --save"
PATIENCE = 2  # seconds after which, and between which, progress is shown
ESTIMATORS = ("oas", "lwf", "scm")  # of covariances, in pyRiemann's words
# Scores by their names on the command line, and in scikit-learn; the default of the choice is logloss.
SCORES = {"accuracy": "accuracy", "balanced": "balanced_accuracy", "auc": "roc_auc_ovr", "logloss": None}


def add_data(parser: ArgumentParser, arrays: str = "with --estimator") -> None:
    """Add DATA, and the options that say how to read it; ``arrays`` is when arrays are signals."""
    parser.description = f"{parser.description}{DATA.format(arrays)}"
    parser.add_argument("data", type=existing_name, metavar="DATA", help="see above")
    parser.add_argument("--matrices", type=word, metavar="X", help="name of the array of matrices or signals")
    parser.add_argument("--labels", type=word, metavar="L", help=f"labels: {SOURCE}, or a column of metadata")
    parser.add_argument("--subject", type=int, metavar="N", help="subject of a file that holds several")


def add_domains(parser: ArgumentParser) -> None:
    """Add the domains, which a model that was learned on some asks for again."""
    domains = 'sessions or subjects, each recentered by its own mean: as --groups, or "groups" for the same'
    parser.add_argument("--domains", type=word, metavar="D", help=domains)


def add_training(parser: ArgumentParser) -> None:
    """Add what fit and compare ask of the labels, and how DATA become matrices, which a model keeps."""
    parser.add_argument("--regression", action="store_true", help="the labels are regression targets")
    weight = "classes count alike, whatever their sizes, in methods that can weigh them"
    parser.add_argument("--class-weight", choices=("balanced",), help=weight)
    groups = f"sessions or subjects, {GROUPS}: folds keep them whole (default: the array groups, if any)"
    parser.add_argument("--groups", type=word, metavar="G", help=groups)
    amount = "mix each matrix with a multiple of the identity, of this weight, so that none is singular"
    parser.add_argument("--shrink", type=shrink, metavar="oas|lwf|VALUE", help=amount)
    add_skip(parser)
    some = parser.add_argument_group("signals")
    names = "annotations that are trials, as T1,T2 or T1=left,T2=right; recordings need it"
    some.add_argument("--events", metavar="E", help=names)
    band = "pass band of recordings in Hz (default: as they are); again for several matrices a trial"
    pairs: dict[str, Any] = {"type": float, "nargs": 2, "action": "append"}
    some.add_argument("--band", metavar=("LOW", "HIGH"), help=band, **pairs)
    window = "seconds after the annotation, which recordings need; again for several matrices a trial"
    some.add_argument("--window", metavar=("START", "END"), help=window, **pairs)
    some.add_argument("--estimator", choices=ESTIMATORS, help="of the covariances (default: oas)")


def add_skip(parser: ArgumentParser) -> None:
    """Add what is done about matrices that cannot be used at all."""
    bad = "go on without matrices that hold NaN, or are no covariances"
    parser.add_argument("--skip-bad", action="store_true", help=bad)


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


def check_targets(targets: Mapping[str, Path | None], *inputs: Path | str | None) -> None:
    """Fail before the work, not after, where files cannot be written, by their options; folders are made."""
    options: dict[str, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        if path.is_dir():
            raise ValueError(f"{option} {path} is a folder: expected the name of a file.")
        for source in inputs:
            if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
                raise ValueError(f"{option} {path} would replace {source}, which is read: name another file.")
        if (first := options.setdefault(os.path.realpath(path), option)) != option:
            raise ValueError(f"{option} {path} would replace the file of {first}: name another file.")
        if not path.exists() or path.is_file():  # what is neither is written through
            make_folder(Path(os.path.realpath(path)).parent, option)


def check_suffix(option: str, path: Path | None, *suffixes: str) -> None:
    """Refuse a name that promises another format: a model file is no pickle, labels are a text table."""
    if path is not None and not path.is_dir() and path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} {path}: expected a name that ends in {suffixes[0]}.")


def check_method(name: str | None) -> None:
    """Refuse a method that the registry does not have."""
    from spdmetric.comparison.methods import METHODS

    if name is not None and name not in METHODS:
        raise ValueError(f"--method {printable(name)}: there is no such method; see 'spdmetric methods'.")


def make_folder(folder: Path, option: str = "--out") -> None:
    """Make a folder; fail before the work, not after, where nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to {option} {folder}: {error.strerror or error}") from error


def write_option(name: str, value: object) -> str:
    """An argument of Python as an option: ``--window 0.5 2.5``."""
    option = "--neighbors" if name == "n_neighbors" else f"--{name}"
    values = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    return " ".join([option, *map(str, values)])


def say(text: str) -> None:
    """Tell those who wait, beside what is written."""
    tell(f"spdmetric: {text}", stream=sys.stderr)


def tell(*lines: str, stream: TextIO | None = None) -> None:
    """Print lines; letters that the stream does not have are spelled out.

    A reader that has enough, as ``head`` has, is no error.
    """
    stream = stream or sys.stdout
    encoding, text = getattr(stream, "encoding", None) or "utf-8", "".join(f"{line}\n" for line in lines)
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except BrokenPipeError:  # Python flushes once more at its end
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())


@contextmanager
def show_progress(what: str) -> Iterator[Callable[[], object]]:
    """Show, in a terminal, time and steps of what takes longer than two seconds."""
    from tqdm import tqdm

    form, done = "{desc}: {n_fmt} steps, {elapsed}", Event()
    with tqdm(desc=what, bar_format=form, delay=PATIENCE, leave=False, disable=None) as bar:

        def tick() -> None:
            while not done.wait(PATIENCE):
                bar.refresh()

        if not bar.disable:
            Thread(target=tick, daemon=True).start()
        try:
            yield bar.update
        finally:
            done.set()


def printable(text: object) -> str:
    """A text for a terminal: in one line, and what would steer the terminal is spelled out."""
    line = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def one_line(error: BaseException) -> str:
    """What went wrong, in one line."""
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return printable(text or type(error).__name__)
