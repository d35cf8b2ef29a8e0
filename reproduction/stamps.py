"""Stamps: which state of the code computed a file of results.

A stamp is a digest of the sources that decide the numbers, comments, docstrings and layout aside.  A file
keeps the stamp of the code that computed it.  After a change that must not change numbers, ``--verify``
computes a part of the file again; where all accuracies agree exactly, the file gets the new stamp
beside the old one.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import spdmetric

FOLDERS = (Path(spdmetric.__file__).parent, Path(__file__).parent)  # the package, and this folder
# What decides no number of a table: it draws, prints, writes, or says when something is computed.
ASIDE = (
    *("spdmetric/cli/", "spdmetric/distributed/", "spdmetric/plots/", "spdmetric/caller.py"),
    *("reproduction/figures/", "reproduction/tests/", "reproduction/__main__.py", "reproduction/stamps.py"),
    *("reproduction/recompute.py", "reproduction/steps.py"),
)
# What the tables take of the comparison; the rest makes its page.
OF_COMPARISON = tuple(
    f"spdmetric/comparison/{name}.py" for name in ("baselines", "folds", "methods", "store")
)


@cache
def code_stamp(folders: tuple[Path, ...] = FOLDERS) -> str:
    """Digest of the code that decides the numbers, the same for all versions of Python."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            name = path.relative_to(folder.parent).as_posix()
            if decides(name):
                found.update(f"{name} {_plain(ast.parse(path.read_bytes()))}\n".encode())
    return found.hexdigest()[:12]


def decides(name: str) -> bool:
    """Whether a source, by its place in the package or in this folder, decides numbers of the tables."""
    if name.startswith("spdmetric/comparison/"):
        return name in OF_COMPARISON
    return not name.startswith(ASIDE)


def _plain(node: object) -> str:
    """A syntax tree as text; empty fields are left out, for versions of Python differ in them."""
    if isinstance(node, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(node) if value not in (None, [])}
        if "body" in fields and isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            fields["body"] = _without_docstring(node.body)
        return f"{type(node).__name__}({', '.join(f'{k}={_plain(v)}' for k, v in fields.items())})"
    if isinstance(node, list):
        return f"[{', '.join(map(_plain, node))}]"
    return repr(node)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body[0]:
        case ast.Expr(value=ast.Constant(value=str())):
            return body[1:]
    return body


def stamp_part(content: dict[str, Any], part: str) -> None:
    """Note that this code computed a part of a file; the stamp of the file is that of all its parts."""
    codes = content.setdefault("codes", {})
    codes[part] = code_stamp()
    content["stamp"] = Stamp(", ".join(sorted(set(codes.values()))))._asdict()


class Stamp(NamedTuple):
    """The code that computed a file, and the code that found a part of it again."""

    code: str
    verified: str | None = None
    part: str = ""  # how much was computed again, in words

    @classmethod
    def of(cls, content: Mapping[str, object]) -> Stamp:
        """The stamp of a JSON file of results."""
        stamp = content.get("stamp")
        if not isinstance(stamp, dict):
            raise ValueError("no stamp: expected an entry stamp with the digest of the code.")
        return cls(**stamp)

    def holds(self, now: str) -> bool:
        """Whether the file is what the present code computes, as far as is known."""
        return now in (self.code, self.verified)

    def sentence(self, now: str) -> str:
        """What a page that quotes the file has to say."""
        if now == self.code:
            return f"Computed with this state of the code (stamp `{self.code}`)."
        if now == self.verified:
            return f"Computed with stamp `{self.code}`; {self.part} came out the same at stamp `{now}`."
        return f"Computed with an earlier state of the code (stamp `{self.code}`)."
