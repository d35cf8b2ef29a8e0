"""What readers and writers of files share: how large arrays may be, errors that name the file, CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from itertools import islice
from math import prod
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Matrices of measured numbers are never compressed to a hundredth: what declares more is damaged or hostile.
LARGEST_RATIO = 100
SMALL = 64 * 2**20  # bytes that any file may declare
_LISTED = 24  # names in a sentence, and the letters of one that are shown


class Header(NamedTuple):
    """What a file says of an array before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Number of entries."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes that the array will take."""
        return self.size * self.dtype.itemsize


class Refused(ValueError):
    """What is wrong with a file; `reading` puts its name before."""


class FileError(ValueError):
    """A file that cannot be used; the message is a sentence that names it."""


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Turn whatever is raised on a missing or damaged file into one sentence that names the file."""
    if not Path(path).is_file():
        there = "it is a folder, a pipe or a device" if Path(path).exists() else "nothing has this name"
        raise FileNotFoundError(f"There is no file {path}: {there}.")
    try:
        yield
    except (FileError, ImportError):
        raise
    except (FileNotFoundError, PermissionError) as error:
        if error.strerror is None:  # a sentence already, of a companion such as a .csv file of labels
            raise
        raise type(error)(f"{path} cannot be read: {error.strerror}.") from error
    except MemoryError as error:
        todo = str(error) or "use a larger machine"
        raise MemoryError(f"{path} needs more memory than there is: {todo}.") from error
    except Refused as error:
        raise FileError(f"{path}: {error}") from error
    except Exception as error:
        why = f"it is corrupt, truncated or of another format ({described(error)})"
        raise FileError(f"{path} cannot be read: {why}.") from error


def check_size(name: str, declared: int, stored: int) -> None:
    """Refuse an array that declares far more bytes than are stored, before memory is asked for."""
    if declared > max(SMALL, LARGEST_RATIO * stored):
        much = (
            f"{declared / 2**20:.0f} MB, more than {LARGEST_RATIO} times the {stored / 2**20:.2g} MB stored"
        )
        raise Refused(f"{name} declares {much}: the file is damaged, or not made of measured matrices.")


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as comma-separated values; None is empty."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def numbers_in(pattern: str, names: Iterable[str]) -> list[int]:
    """The numbers, ascending, that names hold where a pattern has its group."""
    return sorted(int(match[1]) for match in (re.fullmatch(pattern, name) for name in names) if match)


def shortened(name: object, longest: int = 4 * _LISTED) -> str:
    """A name of a file for a sentence: not too long, and what does not print is spelled out."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(name)[:longest])
    return text + "..." * (len(str(name)) > longest)


def listed(names: Iterable[object]) -> str:
    """Names for a sentence."""
    shown = list(map(shortened, islice(names, _LISTED + 1)))
    return ", ".join([*shown[:_LISTED], "..."] if len(shown) > _LISTED else shown) or "nothing"


def described(error: Exception) -> str:
    """Kind and message of an error of another library, in one line."""
    return f"{type(error).__name__}: {shortened(' '.join(str(error).split()), 300)}"
