"""What modules may import and touch: every module is read.

The package imports only what stands before it, `reproduction` and `benchmarks` import what is public, and
nobody touches private attributes of other packages.  Each rule takes sources by module name, so that it can
be shown to fail on a planted one.
"""

from __future__ import annotations

import ast
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "spdmetric"
PROGRAMS = ("reproduction", "benchmarks")  # beside the package, never installed

# In reading order; a module belongs to the longest entry that begins its name.
LAYERS = (
    *("spdmetric", "caller", "extras", "io.atomic", "linalg", "validation", "views", "means"),
    *("geometry", "manifolds", "objectives", "solvers", "distributed", "estimators", "io", "datasets"),
    *("plots", "comparison.folds", "comparison.baselines", "comparison.methods", "comparison.store"),
    *("comparison", "cli", "__main__"),
)
ALONE = {"solvers"}  # import nothing of the package


# Private attributes of other packages that are used, and why: five at most.
EXCEPTIONS = {
    "_cache": "numba has no public way to keep compiled code under a key of one's own",
    "_load_overload": "numba's public method makes the compiler ready first, which takes longer than loading",
    "_init_callback_context": "how scikit-learn (1.9) has estimators begin a task for its callbacks",
    "_skl_callbacks": "whether such callbacks are set; scikit-learn has no public question",
    "_callback_fit_ctx": "the task that scikit-learn has begun, where its iterations are reported",
}
OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_field_defaults", "_make"}  # public, all the same


@cache
def parse(source: str) -> ast.Module:
    return ast.parse(source)


def modules() -> dict[str, str]:
    """Source of every module, by its name without the package's."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name.removesuffix("__init__").removesuffix(".") or "spdmetric"] = path.read_text()
    return found


def programs() -> dict[str, str]:
    """Source of every module of the programs, by its path."""
    paths = (path for name in PROGRAMS for path in sorted((ROOT / name).rglob("*.py")))
    return {str(path.relative_to(ROOT)): path.read_text() for path in paths}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def layer(module: str) -> str:
    parts = module.split(".")
    for k in range(len(parts), 0, -1):
        if ".".join(parts[:k]) in LAYERS:
            return ".".join(parts[:k])
    raise AssertionError(f"{module} belongs to no layer")


def imports(module: str, source: str, known: set[str]) -> list[tuple[str, str | None]]:
    """What a module imports of the package, inside functions too: modules, and names of them."""
    found: list[tuple[str, str | None]] = []
    for node in ast.walk(_without_types(parse(source))):
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
            if here in ALONE and there != here:
                found.append(f"{module} imports {target}, and should import nothing of the package")
            foreign = target.rpartition(".")[0] != module.rpartition(".")[0] and target != module
            if name is not None and is_private(name):
                found.append(f"{module} imports the private name {target}.{name}")
            if foreign and target.rpartition(".")[2].startswith("_") and target != "__main__":
                found.append(f"{module} imports the private module {target}")
    return found + cycles({module: {target for target, _ in targets} for module, targets in graph.items()})


def cycles(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, however long the way round."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ["cycle: " + " -> ".join(error.args[1])]
    return []


def private_imports(sources: dict[str, str]) -> list[str]:
    """Modules and names with an underscore that are imported from the package."""
    known = set(modules())
    return [
        f"{path} imports {target}{'' if name is None else f'.{name}'}"
        for path, source in sources.items()
        for target, name in imports(path, source, known)
        if any(map(is_private, [*target.split("."), name or ""]))
    ]


def missing_imports(sources: dict[str, str]) -> list[str]:
    """Names that are imported from the package and are not there: nothing else runs all of the benchmarks."""
    return [
        f"{path} imports {target}.{name}"
        for path, source in sources.items()
        for target, name in imports(path, source, set(modules()))
        if name is not None
        and not hasattr(import_module("spdmetric" if target == "spdmetric" else f"spdmetric.{target}"), name)
    ]


def private_attributes(sources: dict[str, str], own: set[str]) -> list[str]:
    """Where attributes with an underscore are read or set that are not our own, by name or by getattr."""
    return [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module, source in sources.items()
        for node in ast.walk(parse(source))
        if is_private(name := attribute_name(node)) and name not in own | OF_NAMED_TUPLES | set(EXCEPTIONS)
    ]


def attribute_name(node: ast.AST) -> str:
    """What a node takes from an object: ``x.name``, ``getattr(x, "name")`` and its like; else nothing."""
    match node:
        case ast.Attribute(attr=name):
            return name
        case ast.Call(
            func=ast.Name(id="getattr" | "hasattr" | "setattr" | "delattr"),
            args=[_, ast.Constant(value=str(name)), *_],
        ):
            return name
    return ""


def defined_names(sources: dict[str, str]) -> set[str]:
    """Attributes of our own: what the bodies of classes define, and what is set on self or cls."""
    found: set[str] = set()
    for source in sources.values():
        for node in ast.walk(parse(source)):
            match node:
                case ast.ClassDef(body=body):
                    found.update(name for statement in body for name in _bound_names(statement))
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                    found.add(name)
    return found


def _bound_names(statement: ast.stmt) -> list[str]:
    """Names that a statement of the body of a class binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_every_module_keeps_the_layers():
    assert violations(modules()) == []


@pytest.mark.parametrize(
    ("module", "line", "sentence"),
    [
        ("linalg.symmetric", "from spdmetric.geometry import geodesic", "later layer"),
        ("geometry", "def f():\n    from spdmetric.estimators import LogEuclideanMetric", "later layer"),
        ("estimators.metric", "import spdmetric.io.models", "later layer"),
        ("objectives.alignment", "from spdmetric.objectives import gaussian", "cycle"),
        ("plots.learned", "from spdmetric.means import _EPS", "private name"),
        ("io.models", "from spdmetric.estimators import _domains", "private module"),
        ("solvers.gradient", "from spdmetric.linalg.symmetric import lazy", "nothing of the package"),
        ("comparison.page", "from spdmetric import cli", "later layer"),
    ],
)
def test_a_planted_violation_is_found(module, line, sentence):
    sources = modules()
    planted = {**sources, module: sources[module] + "\n" + line + "\n"}
    new = set(violations(planted)) - set(violations(sources))
    assert any(sentence in one for one in new), new


def test_programs_import_what_is_public_and_there():
    assert private_imports(programs()) == []
    assert missing_imports(programs()) == []
    assert missing_imports({"benchmarks/run.py": "from spdmetric.geometry import mean_of_all"})


@pytest.mark.parametrize(
    "line",
    [
        "from spdmetric.estimators._domains import checked_of",
        "from spdmetric.estimators import _domains",
        "import spdmetric.estimators._domains",
        "def f():\n    from spdmetric.geometry import _EPS",
    ],
)
def test_a_planted_private_import_is_found(line):
    assert private_imports({"benchmarks/run.py": line})
    assert not private_imports({"benchmarks/run.py": "from spdmetric.geometry import mean_riemann"})


@pytest.mark.parametrize("read", [modules, programs])
def test_no_private_attribute_of_another_package_is_used(read):
    sources = {path: source for path, source in read().items() if "tests" not in Path(path).parts}
    assert private_attributes(sources, defined_names(sources)) == []


def test_exceptions_are_few_and_used():
    assert len(EXCEPTIONS) <= 5
    used = {attribute_name(node) for source in modules().values() for node in ast.walk(parse(source))}
    assert set(EXCEPTIONS) <= used


@pytest.mark.parametrize(
    "line", ["step._label_binarizer", "self._validated(X)", "getattr(step, '_fit_X')", "a.b._mt = 0"]
)
def test_a_planted_private_attribute_is_found(line):
    sources = modules()
    planted = {"geometry": "class A:\n    def f(self, step):\n        self._own = 1; step._own; " + line}
    assert len(private_attributes(planted, defined_names({**sources, **planted}))) == 1
