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


Texts = dict[str, ast.expr]  # what the names of a function stand for


class Sentence(NamedTuple):
    """What is said, and how it reaches the user."""

    file: str
    kind: str
    text: str


def all_sentences() -> Iterator[Sentence]:
    """Gather the sentences, file by file, in the order of the source."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node, texts in _nodes(ast.parse(path.read_text()), {}):
            for kind, argument in _says(node):
                text = " ".join(_text(argument, texts).split())
                if len(text) > 12:  # a bare name is no sentence
                    yield Sentence(str(path.relative_to(PACKAGE)), kind, text)


def _nodes(node: ast.AST, texts: Texts) -> Iterator[tuple[ast.AST, Texts]]:
    """Every node, with the texts that have names in its function."""
    if isinstance(node, ast.FunctionDef):
        texts = texts | {
            inner.targets[0].id: inner.value
            for inner in ast.walk(node)
            if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name)
        }
    yield node, texts
    for child in ast.iter_child_nodes(node):
        yield from _nodes(child, texts)


def _says(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Kind and text of what a node raises or warns of, or refuses as the value of a parameter."""
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
        yield ast.unparse(node.exc.func).rpartition(".")[2], node.exc.args[0]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in WARNS and node.args:
        kind = ast.unparse(node.args[1]) if len(node.args) > 1 else "UserWarning"
        yield kind.rpartition(".")[2], node.args[0]
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "require_extra":
        what, extra, *otherwise = node.args
        before, after = ast.Constant(": pip install 'spdmetric["), ast.Constant("]'")
        yield "ImportError", ast.JoinedStr([what, before, extra, after, *otherwise, ast.Constant(".")])
    if isinstance(node, ast.Tuple) and len(node.elts) == 2 and isinstance(node.elts[0], ast.Lambda):
        # A constraint, see `check_value`.
        yield "ValueError", ast.JoinedStr([ast.Constant("…: expected "), node.elts[1]])
    for key, why in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
        if isinstance(key, ast.Tuple):  # a value of a parameter, and why it is refused
            name, value = (ast.literal_eval(part) for part in key.elts)
            yield "ValueError", ast.JoinedStr([ast.Constant(f"{name}={value!r} "), why])


def _text(node: ast.expr, texts: Texts) -> str:
    """The text of an expression, with … for what is known only when it runs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, texts) for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left, texts) + _text(node.right, texts)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, texts)
    if isinstance(node, ast.Name) and node.id in texts:
        others = {name: value for name, value in texts.items() if name != node.id}
        return _text(texts[node.id], others)
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
