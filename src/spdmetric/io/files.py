"""What all readers of files share: how large arrays may be, and errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

# Matrices of measured numbers are never compressed to a hundredth: what declares more is damaged or hostile.
LARGEST_RATIO = 100
SMALL = 64 * 2**20  # bytes that any file may declare


class Refused(ValueError):
    """What is wrong with a file, of which it speaks as "it": `reading` puts the name before."""


class FileError(ValueError):
    """A file that cannot be used; the message is a sentence that names it."""


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Turn whatever is raised on a missing or damaged file into one sentence that names the file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    try:
        yield
    except (FileError, ImportError):
        raise
    except Refused as error:
        raise FileError(f"{path}: {error}") from error
    except Exception as error:
        raise FileError(
            f"{path} cannot be read: it is corrupt, truncated or of another format ({described(error)})."
        ) from error


def check_size(name: str, declared: int, stored: int) -> None:
    """Refuse an array that declares far more bytes than are stored, before memory is asked for."""
    if declared > max(SMALL, LARGEST_RATIO * stored):
        raise Refused(
            f"{name} declares {declared / 2**20:.0f} MB, more than {LARGEST_RATIO} times the "
            f"{stored / 2**20:.2g} MB that are stored: the file is damaged, or not made of measured matrices."
        )


def listed(names: Iterable[object]) -> str:
    """Names for a sentence."""
    return ", ".join(map(str, names)) or "nothing"


def described(error: Exception) -> str:
    """Kind and message of an error of another library, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
