"""What readers and writers of files share: how large arrays may be, errors that name the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from math import prod
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

_LISTED = 24  # names in a sentence
_OBJECT = 250  # bytes that an object of Python takes, however little is in it


class Header(NamedTuple):
    """What a file says of an array before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Bytes that the array will take."""
        return prod(self.shape) * max(self.dtype.itemsize, _OBJECT * self.dtype.hasobject)


class FileError(ValueError):
    """What is wrong with a file, in a sentence; `explain_unreadable` puts the name of the file before it."""


@contextmanager
def explain_unreadable(path: str | PathLike[str]) -> Iterator[None]:
    """Turn whatever is raised on a missing or damaged file into one sentence that names the file."""
    if not Path(path).is_file():
        there = "it is a folder, a pipe or a device" if Path(path).exists() else "nothing has this name"
        raise FileNotFoundError(f"There is no file {path}: {there}.")
    try:
        yield
    except (ImportError, FileNotFoundError):  # this one of a companion, a .csv file of labels for instance
        raise
    except PermissionError as error:
        raise PermissionError(f"{path} cannot be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise MemoryError(f"{path} needs more memory than there is.") from error
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
    except Exception as error:
        why = f"it is corrupt, truncated or of another format ({describe_error(error)})"
        raise FileError(f"{path} cannot be read: {why}.") from error


def size_limit(stored: int) -> int:
    """Bytes that a file may declare: measured numbers are never compressed to a hundredth."""
    return max(64 * 2**20, 100 * stored)


def check_size(name: str, declared: int, stored: int) -> None:
    """Refuse what declares far more bytes than are stored, before memory is asked for."""
    if declared > size_limit(stored):
        much = f"{declared / 2**20:.0f} MB, more than 100 times the {stored / 2**20:.2g} MB stored"
        raise FileError(f"{name} declares {much}: the file is damaged, or not made of measured matrices.")


def shorten(name: object, longest: int = 96) -> str:
    """A name of a file for a sentence: not too long, and what does not print is spelled out."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(name)[:longest])
    return text + "..." * (len(str(name)) > longest)


def list_some(names: Iterable[object]) -> str:
    """Names for a sentence."""
    shown = list(map(shorten, islice(names, _LISTED + 1)))
    return ", ".join([*shown[:_LISTED], "..."] if len(shown) > _LISTED else shown) or "nothing"


def describe_error(error: Exception) -> str:
    """Type and message of an error of another library, in one line."""
    return f"{type(error).__name__}: {shorten(' '.join(str(error).split()), 300)}"
