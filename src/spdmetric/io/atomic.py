"""The one way to write a file: it is there whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from shutil import copymode
from typing import IO


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when all is written.

    It is discarded if the block raises.  A link is followed.  What is not a regular file (a pipe, a
    terminal, a device) is written through.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with _saying(path, "cannot be written"), target.open("wb") as through:
            yield through
        return
    part = target.with_name(f".{target.name}.{token_hex(4)}.part")  # beside it: on one file system
    with _saying(path, "cannot be written"):
        file = part.open("xb")
    try:
        with _saying(path, "could not be written to its end"), file:
            yield file
            file.flush()
            if target.exists():
                copymode(target, part)
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a text or bytes into a file, whole or not at all; see `atomic_file`."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def _saying(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Name the file of the caller, not the temporary one, in errors of the system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        message = f"{os.fspath(path)} {what} ({error.strerror}). Free some space, or name another place."
        raise type(error)(error.errno, message) from error
