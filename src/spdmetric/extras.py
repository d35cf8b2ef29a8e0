"""Packages that only some features need, each installed by an extra of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def require_extra(what: str, extra: str, otherwise: str = "") -> Iterator[None]:
    """Say which extra of the package to install where an import in the block fails."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"{what}: pip install 'spdmetric[{extra}]'{otherwise}.") from error
