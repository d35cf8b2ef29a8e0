"""Text for a terminal: lines, progress, errors and options.

Only the standard library is imported with it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TextIO

PATIENCE = 2  # seconds after which, and between which, progress is shown


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
