"""How much the tests of ``make nightly`` do, in one place: all of it, a share of it, or what CI does."""

from __future__ import annotations

import os

NIGHTLY = os.environ.get("SPDMETRIC_NIGHTLY") == "1"
SHARE = float(os.environ.get("SPDMETRIC_SHARE", "1"))  # of a nightly run, to see whether it works


def share_of(count: int) -> int:
    """A number of files, examples or moments of a nightly run, less where a share was asked for."""
    return max(1, round(SHARE * count))
