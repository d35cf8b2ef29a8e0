"""The documentation is true: its code runs, its quotations are in the source, its links lead somewhere."""

from __future__ import annotations

import ast
import doctest
import importlib
import os
import pkgutil
import re
import shlex
import textwrap
from pathlib import Path

import edfio
import numpy as np
import pytest

import spdmetric
from test_layers import modules

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WRITTEN = {"_build", "api", "gallery", "results"}  # by the build or by commands, not by people
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"] + sorted(
    path for path in DOCS.rglob("*.md") if not WRITTEN & set(path.relative_to(DOCS).parts)
)
PRINTING = (ROOT / "README.md", DOCS / "index.md", DOCS / "start.md")
FOLDERS = ("src", "tests", "benchmarks", "reproduction")
SOURCES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
NOT_RUN = re.compile(r"# Not run in the tests: .{10,}")
NEEDS_DATA = re.compile(r"# Needs SPDMETRIC_DATA: .{10,}")
# Packages that the extra `test` does not bring, and the extra that does.
EXTRAS = {"dipy": "docs", "nibabel": "docs", "torch": "torch"}


@pytest.fixture
def extensions(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    return importlib.import_module


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(path: Path) -> list[tuple[int, str]]:
    """Python blocks of a page, each with the line that it begins at."""
    text = path.read_text()
    found = re.finditer(r"^([ ]*)```python\n(.*?)^[ ]*```", text, flags=re.M | re.S)
    return [(text[: m.start(2)].count("\n"), textwrap.dedent(m[2])) for m in found]


def runs(block: str) -> bool:
    """Whether a block can run here; one that cannot says so in its first line."""
    first = block.partition("\n")[0]
    if NEEDS_DATA.match(first):
        return bool(os.environ.get("SPDMETRIC_DATA"))
    return not NOT_RUN.match(first)


# MOABB 1.7 asks MNE 1.13 for a montage by the name that MNE is about to drop.
@pytest.mark.filterwarnings("ignore:Montage name 'standard_1005' is deprecated:FutureWarning")
# And h5py for a data set without a dtype.
@pytest.mark.filterwarnings("ignore:Creating a dataset without passing data or dtype is deprecated")
# Those of pages that say what their code prints run in tests/test_claims.py.
@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p) and p not in PRINTING], ids=name)
def test_code_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, block in python_blocks(page):
        if runs(block):
            try:
                exec(compile("\n" * line + block, name(page), "exec"), namespace)
            except ModuleNotFoundError as error:
                extra = EXTRAS.get((error.name or "").partition(".")[0])
                if extra is None:
                    raise
                pytest.skip(f"{error.name} is missing: pip install 'spdmetric[{extra}]'")


WITH_EXAMPLES = [
    "spdmetric" if name == "spdmetric" else f"spdmetric.{name}"
    for name, source in modules().items()
    if ">>>" in source
]


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_docstring_examples(module):
    tested = doctest.testmod(importlib.import_module(module))
    assert tested.attempted > 0
    assert tested.failed == 0


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_use_what_they_import(module):
    for example in doctest.DocTestFinder().find(importlib.import_module(module)):
        tree = ast.parse("".join(part.source for part in example.examples))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {(one.asname or one.name).partition(".")[0] for node in imports for one in node.names}
        assert names <= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}, example.name


def test_pictures_of_estimators_link_to_no_page_that_is_not_there():
    for what in spdmetric.__all__:
        if hasattr(getattr(spdmetric, what), "_repr_html_"):
            page = getattr(spdmetric, what)()._repr_html_()
            assert not re.findall(r'href="http[^"]*spdmetric[^"]*"', page), what


def test_documented_names_can_be_imported(extensions):
    for topic in extensions("api").TOPICS:
        for module, names in topic.names.items():
            assert all(hasattr(importlib.import_module(module), what) for what in names), module


# -- commands ---------------------------------------------------------------------


def command_lines(program: str) -> list[tuple[str, str]]:
    """Commands that pages show, indented or in a block, without their prompts and folders."""
    pattern = re.compile(rf"^(?:    |\$ )?(?:\.venv/bin/)?({program} [^\n|>`]*)$", re.M)
    return [(name(page), m[1]) for page in PAGES for m in pattern.finditer(page.read_text())]


@pytest.mark.parametrize(
    ("page", "line"), sorted({*command_lines("spdmetric"), *command_lines("python -m reproduction")})
)
def test_shown_commands_are_understood(page, line, capsys):
    from reproduction.__main__ import make_parser as make_parser_of_reproduction
    from spdmetric.cli import make_parser

    code, words = 0, shlex.split(line, comments=True)
    try:
        if words[0] == "spdmetric":
            make_parser().parse_args(words[1:])
        else:
            make_parser_of_reproduction().parse_args(words[3:])
    except SystemExit as stop:  # --help and --version end well, all else does not
        code = stop.code
    assert code == 0, f"{page}: {line}\n{capsys.readouterr().err}"


def test_the_first_commands_print_what_the_page_says(tmp_path, monkeypatch, capsys):
    from spdmetric.cli import main

    monkeypatch.chdir(tmp_path)
    (shown,) = re.findall(r"```console\n(.*?)```", (DOCS / "commands.md").read_text(), re.S)
    for step in shown.split("$ spdmetric ")[1:]:
        command, _, printed = step.partition("\n")
        assert main(shlex.split(command)) == 0
        assert capsys.readouterr().out == printed


def test_commands_from_recordings_to_a_report_run(data_folder, tmp_path, monkeypatch, capsys):
    """On the 21 channels over the motor cortex, as 64 take three times as long."""
    from spdmetric.cli import main

    monkeypatch.chdir(tmp_path)
    Path("S007").mkdir()
    for run, place in ((4, "S007"), (8, "S007"), (12, ".")):
        name = f"S007R{run:02d}.edf"
        recording = edfio.read_edf(data_folder / "eegmmi" / name)
        recording.drop_signals([label for label in recording.labels if not label.startswith(("Fc", "C"))])
        recording.write(Path(place, name))
    lines = [line for page, line in command_lines("spdmetric") if page == "docs/guide/recordings.md"]
    assert [main(shlex.split(line)[1:]) for line in lines] == [0, 0, 0]
    found = Path("labels.csv").read_text().splitlines()
    assert found[0] == "index,file,onset,label,true"
    rows = [line.split(",") for line in found[1:]]
    assert np.mean([row[3] == row[4] for row in rows]) > 0.8
    assert Path("report.html").stat().st_size > 10_000
    assert "Error" not in capsys.readouterr().err


def test_shown_make_targets_exist():
    shown = {line.split()[1] for _, line in command_lines("make")}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    assert shown
    assert shown <= targets


# -- what the pages say of the package ------------------------------------------------


def test_quoted_sentences_are_in_the_source(extensions):
    said = [s.text for s in extensions("sentences").all_sentences()]
    said += [status.value for status in importlib.import_module("spdmetric.solvers").Status]
    plain = [re.sub(r"[\s…]+", " ", text) for text in said]
    quotes = re.findall(r"^> (.*)$", (DOCS / "troubleshooting.md").read_text(), flags=re.M)
    assert len(quotes) > 30
    for quote in quotes:
        parts = [part.strip() for part in quote.removeprefix("X").split("…") if len(part.strip()) > 2]
        assert any(all(part in text for part in parts) for text in plain), quote


def test_every_public_name_is_in_the_api(extensions, tmp_path):
    extensions("api").write_api(tmp_path)
    listed = (tmp_path / "index.rst").read_text().split()
    for public in ("spdmetric", "spdmetric.datasets", "spdmetric.solvers"):
        for what in importlib.import_module(public).__all__:
            value = getattr(importlib.import_module(public), what)
            assert (
                what in listed
                or not callable(value)
                or not hasattr(value, "__module__")
                or what == "Callback"
            )


def cited_in(path: Path) -> set[str]:
    """Keys of the works that a page, a module or an example cites; its own list of works cites none."""
    text = re.sub(r"^ *(?:\.\. |- \*\*)\[\w+\]", "", path.read_text(), flags=re.M)
    keys = set(re.findall(r"\[([A-Z][A-Za-z]+(?:19|20)\d\d)(?:\]|,)", text))
    return keys.union(*(m.split(",") for m in re.findall(r"\{cite:[pt]\}`([^`]+)`", text)))


def test_one_bibliography(extensions):
    keys = extensions("citations").KEYS
    sources = [*PAGES, *SOURCES, *(ROOT / "examples").rglob("*.py")]
    cited = {path: cited_in(path) for path in sources}
    for path, works in cited.items():
        assert works <= keys, f"{name(path)} cites {sorted(works - keys)}: add them to docs/references.bib"
    assert keys == set().union(*cited.values()), "docs/references.bib lists works that nothing cites"


FILE = re.compile(r"`((?:src|tests|docs|benchmarks|examples|reproduction)/[\w/.-]+\.\w+)`")
IN_PACKAGE = re.compile(r"`([\w/]+\.py)`")
DOTTED = re.compile(r"`((?:spdmetric|reproduction)(?:\.\w+)+)(?:\([^`]*\))?`")
IDENTIFIER = re.compile(r"`([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?:\([^`]*\))?`")


def test_named_files_exist():
    for page in PAGES:
        for file in FILE.findall(page.read_text()):
            written = WRITTEN & set(Path(file).parts)
            assert (ROOT / file).exists() or written, f"{name(page)} names {file}"
    for file in IN_PACKAGE.findall((DOCS / "architecture.md").read_text()):
        known = (ROOT / file).exists() or (ROOT / "src" / "spdmetric" / file).exists()
        assert known, f"docs/architecture.md names {file}"


def test_named_modules_and_functions_exist():
    for page in PAGES:
        for dotted in DOTTED.findall(page.read_text()):
            assert resolves(dotted), f"{name(page)} names {dotted}"


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize(
    "page", ["docs/extending.md", "docs/architecture.md", "docs/math.md", "docs/scale.md"]
)
def test_named_interfaces_are_in_the_source(page):
    """Names in code type are words of the source; placeholders are in capitals."""
    words = set(re.findall(r"\w+", "".join(path.read_text() for path in SOURCES)))
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    for dotted in IDENTIFIER.findall(text):
        unknown = {part for part in dotted.split(".") if "NAME" not in part} - words
        assert not unknown, f"{page} names {dotted}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            there = page.parent / target
            written = WRITTEN & set(Path(target).parts)
            assert there.exists() or written or "://" in target, f"{name(page)} links to {target}"


@pytest.mark.parametrize("page", [p for p in PAGES if "$$" in p.read_text()], ids=name)
def test_formulas_stand_between_empty_lines(page):
    """Inside a paragraph two dollars are read as an empty formula, and the words after it as the next one."""
    for line in re.finditer(r"^(.*)\n(\$\$.*)\n(.*)$", page.read_text(), flags=re.M):
        assert line[1].strip() == "", line[2]
        assert line[3].strip() == "" or not line[2].endswith("$$"), line[2]


# -- examples -------------------------------------------------------------------------

EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_use_names_that_exist(example):
    """Only `make docs` runs them, which takes minutes: a renamed function is found here at once."""
    tree = ast.parse(example.read_text())
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(("spdmetric", "reproduction"))
        for alias in node.names
    }
    used = {
        f"{imported[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported
    }
    for dotted in sorted(used.union(imported.values())):
        assert resolves(dotted), f"{name(example)} uses {dotted}"
