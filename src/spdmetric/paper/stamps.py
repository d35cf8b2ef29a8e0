"""Stamps: which state of the code computed a file of results.

A stamp is a digest of the sources that decide the numbers, comments, docstrings and layout aside.  A file
keeps the stamp of the code that computed it.  After a change that must not change numbers, `reproduce
--verify` computes a part of the file again; where all accuracies agree exactly, the file gets the new stamp
beside the old one.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PACKAGE = Path(__file__).parents[1]
# From linear algebra to evaluation, and the tables; what only reads, writes or draws is left out.
LAYERS = (
    *("linalg", "validation", "geometry", "manifolds", "objectives", "solvers", "estimators", "datasets"),
    *("evaluation", "paper"),
)
ASIDE = ("paper/figures/", "paper/stamps.py")


@cache
def code_stamp(package: Path = PACKAGE) -> str:
    """Digest of the code that decides the numbers, the same for all versions of Python."""
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        layer = name.partition("/")[0].removesuffix(".py")
        if layer in LAYERS and not name.startswith(ASIDE):
            found.update(f"{name} {_plain(ast.parse(path.read_bytes()))}\n".encode())
    return found.hexdigest()[:12]


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
