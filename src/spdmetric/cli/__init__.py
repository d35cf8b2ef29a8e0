"""The command line ``spdmetric``, one file a command."""

from spdmetric.cli.reproduce import main

__all__ = ["main"]
