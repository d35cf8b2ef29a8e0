"""Tables of text, ``.csv``: a value for each matrix, label or group, or a matrix; and their one writer."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from sys import intern
from typing import Any, TextIO

import numpy as np

from spdmetric.caller import spell
from spdmetric.io.files import FileError, check_size, explain_unreadable, list_some, shorten

LABEL_HEADS = ("label", "labels", "y", "class", "target")
GROUP_HEADS = ("group", "groups", "session", "run", "subject")
FILE_HEADS = ("file", "filename", "file_name", "name", "path")
_LONGEST_ROW = 2**20  # letters of a row
_MARKS = ",;\t|"  # between cells
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
# What a spreadsheet takes for a formula, or passes over before one.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]")


def is_table(path: str | PathLike[str]) -> bool:
    """Whether a file holds a table, by its name."""
    return Path(path).suffix.lower() == ".csv"


def read_column(path: str | PathLike[str], n: int, heads: tuple[str, ...] = LABEL_HEADS) -> np.ndarray:
    """Read one value for each of ``n`` matrices from a ``.csv`` file.

    It has one column, with or without a header, or several, one of them under a name of ``heads``, with
    commas, semicolons, tabs or bars between.  Values are numbers where each is what Python prints for it,
    otherwise strings, ``01`` for instance.
    """
    with _open_columns(path, heads) as (rows, named):
        values = [value for (value,) in islice(rows, n + 2)]
        entries = len(values) + sum(1 for _ in rows)  # what is beyond is counted only
        header = not named and entries == n + 1 and values[0] not in values[1:]
        header = header and any(_number(text) is None for text in set(values))
        if entries != n and not header:
            raise FileError(f"it has {entries} entries for {n} matrices; expected one for each.")
        return _as_array(values[header:], Path(path).stat().st_size)


def read_named_column(path: str | PathLike[str], names: Sequence[str], heads: tuple[str, ...]) -> np.ndarray:
    """One value for each of some files, from a table that names them; other names in it do not matter."""
    written = [name.encode("utf-8", "backslashreplace").decode() for name in names]  # as the writer has it
    spelled = [{name, name.rpartition("/")[2], name.rpartition(".")[0], Path(name).stem} for name in written]
    often = Counter(key for keys in spelled for key in keys)
    index = {key: k for k, keys in enumerate(spelled) for key in keys if often[key] == 1}
    values = [""] * len(names)
    with _open_columns(path, FILE_HEADS, heads) as (rows, _):
        for file, found in rows:
            name = remove_guard(file)
            plain = name.strip().replace("\\", "/").removeprefix("./")
            k = index.get(plain, index.get(name))
            if k is not None:
                if values[k] not in ("", found):
                    raise FileError(f"it names {shorten(names[k])} twice, with different values.")
                values[k] = found
        if missing := [name for name, found in zip(names, values, strict=True) if not found]:
            raise FileError(f"no value for {len(missing)} of {len(names)} files: {list_some(missing)}.")
        return _as_array(values, Path(path).stat().st_size)


@contextmanager
def _open_columns(
    path: str | PathLike[str], *heads: tuple[str, ...]
) -> Iterator[tuple[Iterator[list[str]], bool]]:
    """Cells of the columns under some heads, or of all columns; and whether there is a header of these."""
    with explain_unreadable(path), _open_table(path) as rows:
        first = next(rows, [])
        head = [cell.strip().lower() for cell in first]
        at = [next((head.index(name) for name in names if name in head), -1) for names in heads]
        named = -1 not in at
        if not named:
            at, rows = list(range(len(heads))), chain(filter(None, [first]), rows)
            if first and len(first) != len(heads):
                expected = f"{len(heads)}, or a header with {' and '.join(names[0] for names in heads)}"
                raise FileError(f"it has {len(first)} columns; expected {expected}.")
        # Equal cells are kept once; a row may end before.
        yield ([intern(row[k]) if k < len(row) else "" for k in at] for row in rows), named


def _as_array(values: list[str], stored: int) -> np.ndarray:
    """Numbers if all are, and different ones where the texts are different."""
    values = [remove_guard(value) for value in values]
    numbers = {text: number for text in set(values) if (number := _number(text)) is not None}
    if len(numbers) == len(set(values)):
        found = np.array([numbers[value] for value in values])
        if len(set(found.tolist())) == len(numbers) or not np.isfinite(found).all():
            return as_column("the column", found, len(values), stored)
    return _as_words("the column", values, stored)


def _number(text: str) -> int | float | None:
    """The number of 64 bits that Python prints as this text; NaN, where it is missing, in any case."""
    text = text.strip()
    whole = re.fullmatch("-?[0-9]{1,19}", text) and abs(int(text)) < 2**63
    number = int(text) if whole else _as_float(text)
    return number if repr(number) == text or number != number else None


def as_column(name: str, values: np.ndarray, n: int, stored: int) -> np.ndarray:
    """One value for each matrix; those in floating point, as MATLAB has them, become integers if whole."""
    name = shorten(name)
    if values.size != n or max(values.shape, default=0) != n:
        raise FileError(f"{name} has shape {values.shape} for {n} matrices; expected one entry for each.")
    values = values.ravel()
    if values.dtype.kind == "S":
        check_size(name, 4 * values.nbytes, stored)
        values = np.char.decode(values, "utf-8")
    if values.dtype.kind in "OU":  # of a cell array, or words
        return _as_words(name, values.tolist(), stored)
    if values.dtype.kind not in "fiub":
        raise FileError(f"{name} has dtype {values.dtype}; expected words or numbers, as {name}.astype(str).")
    if not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values)))
        raise FileError(f"{name}[{first}] is {values[first]}; expected a number or a word for each matrix.")
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        whole = np.all((values == np.round(values)) & (np.abs(values) < 2**53))
        return values.astype(np.int64) if whole else values
    return values


def _as_words(name: str, items: list[Any], stored: int) -> np.ndarray:
    """Words as an array, in which each takes as much as the longest; MATLAB has each in a cell."""
    words = list[str]()
    for k, item in enumerate(items):
        if not isinstance(item, str):
            cell = np.asarray(item)
            if cell.size > 1:
                raise FileError(f"{name}[{k}] is an array of shape {cell.shape}; expected a number or word.")
            item = str(cell.item()) if cell.size else ""
        if not item.strip():
            raise FileError(f"{name}[{k}] is empty; expected a number or a word for each matrix.")
        words.append(item)
    check_size(name, 4 * len(words) * max(map(len, words), default=0), stored)
    "".join(words).encode().decode()  # raises on letters that are none, and could not be written
    return np.array(words)


def read_csv_matrix(path: Path) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """A matrix of numbers, and the names of its rows where it has a header and perhaps an index.

    At most a row too many is read.
    """
    offer = f"If it holds the labels of the other files, pass it as {spell('labels')}."
    with _open_table(path, blanks=True) as table:
        first = next(table, [])
        rows, names = [first, *islice(table, len(first) + 1)], None
    if any(_as_float(cell) is None for cell in first):
        names, rows = first, rows[1:]
        index = [row[0] for row in rows]
        if names[0] == "" or names[1:] == index or any(len(row) > len(names) for row in rows):
            if index not in (names, names[1:]):  # the corner may be named, empty or not there
                columns = list_some(filter(None, names))
                raise FileError(f"its rows have other names than its columns, {columns}. {offer}")
            names, rows = index, [row[1:] for row in rows]
    A = [[_as_float(cell) for cell in row] for row in rows]
    for i, (row, numbers) in enumerate(zip(rows, A, strict=True), 1):
        if len(row) != len(rows[0]):
            raise FileError(f"expected {len(rows[0])} numbers in row {i}, got {len(row)}. {offer}")
        if None in numbers:
            j = numbers.index(None)
            raise FileError(f"expected numbers, got {shorten(row[j])!r} in row {i}, column {j + 1}. {offer}")
    if np.shape(rows) != (len(rows), len(rows)):
        raise FileError(f"it has shape {np.shape(rows)}; expected one square matrix. {offer}")
    return np.array(A, dtype=np.float64), None if names is None else tuple(names)


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@contextmanager
def _open_table(path: str | PathLike[str], *, blanks: bool = False) -> Iterator[Iterator[list[str]]]:
    """Rows that are not empty; ``blanks`` can stand between cells too."""
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            start = file.read(_LONGEST_ROW).lstrip("\r\n").splitlines() or [""]
            file.seek(0)
            mark = _find_mark(start[0]) or (" " if blanks else "")
            yield filter(None, _rows(file, mark))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"it is not a text file of comma-separated values ({error}).") from error


def _find_mark(line: str) -> str:
    """What stands between the cells of a line, outside of quotes."""
    plain = _QUOTED.sub("", line)
    most = max(_MARKS, key=plain.count)
    return most if most in plain else ""


def _rows(file: TextIO, mark: str) -> Iterator[list[str]]:
    """Rows of at most so many letters: one without an end would fill the memory."""
    letters = 0

    def lines() -> Iterator[str]:
        nonlocal letters
        while line := file.readline(_LONGEST_ROW):
            letters += len(line)
            if letters >= _LONGEST_ROW:
                raise FileError(f"it has a row of more than {_LONGEST_ROW} letters.")
            if not mark and (other := _find_mark(line)):
                several = f"several columns, with {other!r} between, but its first row has one"
                raise FileError(f"it has {several}: name each column.")
            yield line.strip(" \r\n") + "\n" if mark == " " else line

    # Blanks after a mark do not count, unless they are quoted.
    for row in csv.reader(lines(), delimiter=mark or ",", skipinitialspace=True):
        letters = 0
        yield row


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as comma-separated values that `read_column` gives back; None is empty.

    A word that a spreadsheet would take for a formula gets an apostrophe before it, which is removed
    when it is read.
    """
    return "".join(",".join(map(_as_cell, row)) + "\n" for row in rows)


def _as_cell(value: object) -> str:
    text = guard_formula(value) if isinstance(value, str) else "" if value is None else str(value)
    # Python before 3.13 would write a carriage return without quotes.
    bare = text == text.strip() and not any(letter in text for letter in (*_MARKS, '"', "\r", "\n"))
    return text if bare else '"{}"'.format(text.replace('"', '""'))


def guard_formula(text: str) -> str:
    """A word for a .csv file that no spreadsheet takes for a formula: an apostrophe before it."""
    return f"'{text}" if _FORMULA.match(text) else text


def remove_guard(text: str) -> str:
    """The inverse of `guard_formula`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
