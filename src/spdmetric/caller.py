"""Warnings that name the line of the caller outside the package, however deep inside they arise."""

from __future__ import annotations

import warnings
from inspect import currentframe


def warn_at_caller(message: str, category: type[Warning]) -> None:
    """Warn, pointing at the first line outside the package on the way up the calls."""
    package = __name__.partition(".")[0]
    frame, level = currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
