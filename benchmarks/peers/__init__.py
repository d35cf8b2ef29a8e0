"""One file per peer: its ``TITLE``, the modules it ``REQUIRES``, the ``GROUPS`` of cases it enters.

A file imports what it requires inside its functions, so that a peer that is not installed
can still be named, with what to install.  Files that begin with an underscore are no peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any

_DISTRIBUTIONS = {"sklearn": "scikit-learn"}  # where pip knows a module by another name


@dataclass(frozen=True)
class Peer:
    """A contestant, known by its file."""

    name: str
    title: str
    requires: Sequence[str]
    groups: Sequence[str]
    module: Any

    @property
    def missing(self) -> str:
        """What to install, as a sentence; empty when all is there."""
        absent = [_DISTRIBUTIONS.get(name, name) for name in self.requires if find_spec(name) is None]
        return f"missing: pip install {' '.join(absent)}" if absent else ""


def load_peer(name: str) -> Peer:
    """Load the peer of one file of this folder."""
    module = import_module(f"{__name__}.{name}")
    return Peer(name, module.TITLE, module.REQUIRES, module.GROUPS, module)


def peers_of(group: str) -> list[Peer]:
    """All peers of a group of cases, installed or not, ours first."""
    names = sorted(m.name for m in iter_modules(__path__) if not m.name.startswith("_"))
    peers = [peer for peer in map(load_peer, names) if group in peer.groups]
    return sorted(peers, key=lambda peer: peer.name != "ours")
