"""Lines, lines of code, classes and constants of each part of a folder.

    python benchmarks/count_lines.py                # of the package that Python finds
    python benchmarks/count_lines.py tests reproduction/tests

Code is what is neither a docstring nor a comment nor blank; a constant is an assignment of a module.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COLUMNS = ("lines", "code", "classes", "constants")


def count(source: str) -> Counter[str]:
    """The numbers of one file."""
    tree, lines = ast.parse(source), source.splitlines()
    skipped = {k for k, line in enumerate(lines, 1) if not line.strip() or line.strip().startswith("#")}
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            skipped.update(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return Counter(
        lines=len(lines),
        code=len(lines) - len(skipped),
        classes=sum(isinstance(node, ast.ClassDef) for node in ast.walk(tree)),
        constants=sum(isinstance(node, (ast.Assign, ast.AnnAssign)) for node in tree.body),
    )


def count_parts(folder: Path) -> dict[str, Counter[str]]:
    """The numbers of each file of a folder, and of each folder in it as a whole."""
    parts: dict[str, Counter[str]] = {}
    for path in sorted(folder.rglob("*.py")):
        part = path.relative_to(folder).parts[0]
        parts.setdefault(part, Counter()).update(count(path.read_text()))
    return parts


def package() -> Path:
    found = find_spec("spdmetric")
    if found is None or found.origin is None:
        raise SystemExit("spdmetric is not installed: install it, or name a folder.")
    return Path(found.origin).parent


def main() -> None:
    parser = argparse.ArgumentParser(description="Lines, code, classes and constants of each part.")
    parser.add_argument("folders", nargs="*", type=Path, help="the package by default")
    for folder in parser.parse_args().folders or [package()]:
        parts = count_parts(folder)
        print(f"| {folder.name} | {' | '.join(COLUMNS)} |\n|---{'|---' * len(COLUMNS)}|")
        for part, numbers in {**parts, "all": sum(parts.values(), Counter())}.items():
            print(f"| {part} | {' | '.join(str(numbers[column]) for column in COLUMNS)} |")


if __name__ == "__main__":
    main()
