"""The API pages: every public name of every module, in reading order."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import spdmetric

# Submodules follow in this order, those that are not named after it in the order of the alphabet.
READING_ORDER = (
    *("spdmetric", "datasets", "plots", "io", "geometry", "linalg", "validation", "manifolds"),
    *("objectives", "solvers"),
)

HEAD = """\
API
===

What is public is in ``spdmetric`` and in the submodules below; all else may change without notice.
``LogEuclideanClassifier``, ``LogEuclideanMetricCV`` and ``LogEuclideanMetric`` are all that most users
need. How the modules depend on each other: :doc:`/architecture`.

.. toctree::
   :maxdepth: 1

   commands
   sentences

"""


def module_names() -> list[str]:
    """Names of the public modules: ``spdmetric`` and the submodules that it offers."""
    found = {name for name in dir(spdmetric) if inspect.ismodule(getattr(spdmetric, name))}
    ordered = [name for name in READING_ORDER if name in found or name == "spdmetric"]
    return ordered + sorted(found - set(ordered))


def public_names() -> dict[str, list[str]]:
    """Functions and classes of each module; one that several modules offer is listed in the first."""
    seen: set[int] = set()
    names: dict[str, list[str]] = {}
    for short in module_names():
        module = importlib.import_module("spdmetric" if short == "spdmetric" else f"spdmetric.{short}")
        names[module.__name__] = []
        for name in getattr(module, "__all__", None) or _own(module):
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isroutine(value)) and id(value) not in seen:
                seen.add(id(value))
                names[module.__name__].append(name)
    return {module: found for module, found in names.items() if found}


def _own(module: object) -> list[str]:
    """Public names that are defined in a module, not imported into it."""
    mine = module.__name__  # type: ignore[attr-defined]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith(mine)
    ]


def write_api(folder: Path) -> None:
    """Write ``index.rst``; autosummary makes a page of each name in it."""
    parts = [HEAD]
    for module, names in public_names().items():
        summary = (inspect.getdoc(importlib.import_module(module)) or "").partition("\n\n")[0]
        parts.append(f"{module}\n{'-' * len(module)}\n\n{summary}\n\n.. currentmodule:: {module}\n\n")
        rows = "\n".join(f"   {name}" for name in names)
        parts.append(f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{rows}\n\n")
    write_if_changed(folder / "index.rst", "".join(parts))


def write_if_changed(path: Path, text: str) -> None:
    """Leave an unchanged page alone, so that a second build does not read it again."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
