"""The one way to write a file: it is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when all is written.

    It is discarded if the block raises.  A link is followed: what it points to is replaced, and
    the link stays.  What exists and is not a regular file (a pipe, a terminal, a device) cannot
    be replaced and is written through.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with _saying(path, "cannot be written"), target.open("wb") as through:
            yield through
        return
    with _saying(path, "cannot be written"):
        # Made by O_EXCL under a name that cannot be foreseen, beside the target: one file system.
        handle, part = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    try:
        with _saying(path, "could not be written to its end"), os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), _mode(target))
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a text or bytes into a file, whole or not at all; see `atomic_file`."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def _mode(target: Path) -> int:
    """Permissions of the file that is replaced, or those that a new file gets here."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


@contextmanager
def _saying(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Name the file of the caller, not the temporary one, in errors of the system."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise type(error)(
            error.errno,
            f"{os.fspath(path)} {what} ({error.strerror}). Free some space, or name another place.",
        ) from error
