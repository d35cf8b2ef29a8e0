"""Messages in the caller's terms: warnings name a line outside the package, arguments are as given."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import currentframe


def warn_at_caller(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the first line outside the package on the way up the calls."""
    package = __name__.partition(".")[0]
    frame, level = currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_write_argument: ContextVar[Callable[[str, object], str]] = ContextVar(
    "_write_argument", default=lambda name, value: f"{name}=" + ("" if value is None else repr(value))
)


def spell(name: str, value: object = None) -> str:
    """An argument as the reader of a message gives it: ``radius=3`` in Python, ``--radius 3`` elsewhere."""
    return _write_argument.get()(name, value)


@contextmanager
def spell_by(write: Callable[[str, object], str]) -> Iterator[None]:
    """Have `spell` write arguments in another way."""
    token = _write_argument.set(write)
    try:
        yield
    finally:
        _write_argument.reset(token)
