"""The layers: every module of the package is read, and imports only what stands before it.

`violations` takes sources by module name, so that each rule can be shown to fail on a planted one.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "spdmetric"

# In reading order; a module belongs to the longest entry that begins its name.
LAYERS = (
    *(
        "spdmetric",
        "caller",
        "extras",
        "io.atomic",
        "linalg.lazy",
        "linalg",
        "validation",
        "geometry",
        "manifolds",
    ),
    *("objectives", "solvers", "distributed", "estimators", "io", "datasets", "plots"),
    *(
        "comparison.statistics",
        "comparison.folds",
        "comparison.baselines",
        "comparison.methods",
        "comparison.store",
    ),
    *("io.kinds", "io.models"),  # which list the fields of estimators of evaluation
    *("paper", "comparison", "cli", "__main__"),
)
APART = ({"paper", "comparison"},)  # neither imports the other
ALONE = {"solvers"}  # import nothing of the package


def modules() -> dict[str, str]:
    """Source of every module, by its name without the package's."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name.removesuffix("__init__").removesuffix(".") or "spdmetric"] = path.read_text()
    return found


def layer(module: str) -> str:
    parts = module.split(".")
    for k in range(len(parts), 0, -1):
        if ".".join(parts[:k]) in LAYERS:
            return ".".join(parts[:k])
    raise AssertionError(f"{module} belongs to no layer")


def imports(module: str, source: str, known: set[str]) -> list[tuple[str, str | None]]:
    """What a module imports of the package, inside functions too: modules, and names of them."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(_without_types(ast.parse(source))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: a relative import"
            if node.module and node.module.split(".")[0] == "spdmetric":
                base = node.module.partition(".")[2] or "spdmetric"
                for alias in node.names:
                    inner = alias.name if base == "spdmetric" else f"{base}.{alias.name}"
                    found.append((inner, None) if inner in known else (base, alias.name))
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "spdmetric"]
            found += [(name.partition(".")[2] or "spdmetric", None) for name in names]
    return found


def _without_types(tree: ast.Module) -> ast.Module:
    """The same without ``if TYPE_CHECKING``: what is never imported, except for readers and mypy."""
    body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
    ]
    return ast.Module(body, type_ignores=[])


def violations(sources: dict[str, str]) -> list[str]:
    """Every breach of the rules, as a sentence."""
    known = set(sources)
    graph = {module: imports(module, source, known) for module, source in sources.items()}
    found = []
    for module, targets in graph.items():
        here = layer(module)
        for target, name in targets:
            there = layer(target)
            if LAYERS.index(there) > LAYERS.index(here):
                found.append(f"{module} imports {target}, a later layer")
            if any({here, there} == pair for pair in APART):
                found.append(f"{module} imports {target}: these are independent")
            if here in ALONE and there != here:
                found.append(f"{module} imports {target}, and should import nothing of the package")
            foreign = target.rpartition(".")[0] != module.rpartition(".")[0] and target != module
            if name is not None and name.startswith("_") and not name.startswith("__"):
                found.append(f"{module} imports the private name {target}.{name}")
            if foreign and target.rpartition(".")[2].startswith("_") and target != "__main__":
                found.append(f"{module} imports the private module {target}")
    return found + cycles({module: {target for target, _ in targets} for module, targets in graph.items()})


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, however long the way round."""
    done: set[str] = set()
    found: list[str] = []

    def visit(module: str, path: tuple[str, ...]) -> None:
        if module in path:
            found.append("cycle: " + " -> ".join([*path[path.index(module) :], module]))
        elif module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, (*path, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())
    return found


def test_every_module_keeps_the_layers():
    assert violations(modules()) == []


@pytest.mark.parametrize(
    ("module", "line", "sentence"),
    [
        ("linalg.symmetric", "from spdmetric.geometry import chunks", "later layer"),
        ("geometry", "def f():\n    from spdmetric.estimators import LogEuclideanMetric", "later layer"),
        ("estimators.metric", "import spdmetric.io.models", "later layer"),
        ("objectives.alignment", "from spdmetric.objectives import gaussian", "cycle"),
        ("plots.paths", "from spdmetric.geometry import _EPS", "private name"),
        ("io.models", "from spdmetric.estimators import _problem", "private module"),
        ("solvers.gradient", "from spdmetric.linalg.lazy import lazy", "nothing of the package"),
        ("comparison.page", "from spdmetric.paper import tables", "independent"),
        ("paper.tables", "from spdmetric.comparison import page", "independent"),
        ("paper.tables", "import spdmetric.cli", "later layer"),
        ("comparison.page", "from spdmetric import cli", "later layer"),
    ],
)
def test_a_planted_violation_is_found(module, line, sentence):
    sources = modules()
    planted = {**sources, module: sources[module] + "\n" + line + "\n"}
    new = set(violations(planted)) - set(violations(sources))
    assert any(sentence in one for one in new), new
