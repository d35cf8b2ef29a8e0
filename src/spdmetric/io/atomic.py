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
    if is_special(path):
        with explain_os_error(path, "cannot be written"), Path(path).open("wb") as through:
            yield through
        return
    with explain_os_error(path, "cannot be written"):
        target = Path(os.path.realpath(path))
        if target.is_symlink():  # resolved, and still a link: it leads to itself
            raise OSError(40, "Too many levels of symbolic links")
        part = target.with_name(f".{token_hex(8)}.part")  # beside it: on one file system; names have an end
        file = part.open("xb")  # fails where the name is taken, by a link too
    try:
        if target.exists():
            copymode(target, part)  # before there is anything to be read
        with explain_os_error(path, "could not be written to its end"):
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, target)
    except BaseException:
        file.close()
        part.unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a text or bytes into a file, whole or not at all; see `atomic_file`."""
    with atomic_file(path) as file:
        # Bytes of names of files that are no letters are spelled out.
        file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether something is there, at the end of all links, that is not a regular file."""
    # The system is asked, not the resolved name: that of a pipe in /dev/stdout does not exist.
    return os.path.exists(path) and not os.path.isfile(path)


@contextmanager
def explain_os_error(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Name the file of the caller, not the temporary one, in errors of the system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        message = f"{os.fspath(path)} {what} ({error.strerror}). Free some space, or name another place."
        raise type(error)(error.errno, message) from error
