"""Every sentence that an error or a warning of the package may say, gathered from its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from api import write_if_changed

import spdmetric

PACKAGE = Path(spdmetric.__file__).parent

WARNS = ("warnings.warn", "warn_at_caller")

HEAD = """\
# Every sentence

All errors and warnings that the package can raise, gathered from the source when this page was built;
`…` stands for what is filled in. What to do about those that users meet is said in
[Troubleshooting](../troubleshooting.md).

"""


class Sentence(NamedTuple):
    """What is said, and how it reaches the user."""

    file: str
    kind: str
    text: str


def all_sentences() -> Iterator[Sentence]:
    """Gather the sentences, file by file, in the order of the source."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        calls = [call for node in ast.walk(tree) if (call := _says(node)) is not None]
        for kind, argument in calls:
            text = " ".join(_text(argument).split())
            if len(text) > 12:  # a bare name is no sentence
                yield Sentence(str(path.relative_to(PACKAGE)), kind, text)


def _says(node: ast.AST) -> tuple[str, ast.expr] | None:
    """Kind and text of a node that raises an exception or warns."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        return ast.unparse(node.exc.func).rpartition(".")[2], node.exc.args[0]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in WARNS and node.args:
        kind = ast.unparse(node.args[1]) if len(node.args) > 1 else "UserWarning"
        return kind.rpartition(".")[2], node.args[0]
    return None


def _text(node: ast.expr) -> str:
    """The text of an expression, with … for what is known only when it runs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def write_sentences(path: Path) -> None:
    """Write the page."""
    parts, file = [HEAD], None
    for sentence in all_sentences():
        if sentence.file != file:
            file = sentence.file
            parts.append(f"\n## {file.removesuffix('.py')}\n\n")
        parts.append(f"- *{sentence.kind}*: `` {sentence.text} ``\n")
    write_if_changed(path, "".join(parts))
