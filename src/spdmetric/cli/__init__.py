"""The command line ``spdmetric``, one file a command."""

from spdmetric.cli.main import main

__all__ = ["main"]
