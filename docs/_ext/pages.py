"""What the site leaves out, lists or adds by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
MORE = "(more pages)"  # stands in the guide's table of contents for pages that no other one lists
PAGES = {path.stem for path in DOCS.glob("*.md")}
TABLES = "(more tables)"  # stands for files of results that the list around it does not name


# From a class or function to what belongs to it: names of ``spdmetric``, and pages.
_DISPLAYS = "gallery/first_steps/plot_displays"
_METRIC = "EmbeddingDisplay PairDistanceDisplay ReferenceSpectrumDisplay PatternsDisplay"
_CHOICE = "ChoiceDisplay RadiusPathDisplay guide/choosing"
SEE_ALSO = {
    "LogEuclideanMetric": f"LogEuclideanMetricCV {_METRIC} guide/weighting guide/sessions guide/regression",
    "LogEuclideanMetricCV": f"LogEuclideanMetric LogEuclideanClassifier {_CHOICE} guide/regression",
    "LogEuclideanClassifier": f"LogEuclideanMetricCV {_CHOICE} guide/weighting guide/sessions models",
    "TransferClassifier": "LogEuclideanClassifier moabb guide/sessions",
    "CommonRange": "Shrinkage LogEuclideanMetric guide/rank_deficient",
    "Shrinkage": "CommonRange LogEuclideanMetric guide/rank_deficient",
    "compare": "LogEuclideanClassifier guide/compare guide/choosing",
    "save": "load models",
    "load": "save models",
    "pipelines_folder": "moabb",
    "ChoiceDisplay": f"LogEuclideanMetricCV LogEuclideanClassifier guide/choosing {_DISPLAYS}",
    "RadiusPathDisplay": f"LogEuclideanMetricCV guide/choosing {_DISPLAYS}",
    "EmbeddingDisplay": f"LogEuclideanMetric {_DISPLAYS}",
    "PairDistanceDisplay": f"LogEuclideanMetric {_DISPLAYS}",
    "ReferenceSpectrumDisplay": f"LogEuclideanMetric {_DISPLAYS}",
    "PatternsDisplay": "LogEuclideanMetric guide/eeg gallery/eeg/plot_topomaps",
    "recenter": "guide/sessions",
    "make_regression": "guide/regression",
    "read_matrices": "models",
    "read_signals": "models",
    "bad_matrices": "models troubleshooting",
    "check_spd": "troubleshooting",
}


_ATTRIBUTES = re.compile(r"\nAttributes\n-+\n(.*?)(?=\n[A-Z][\w ]+\n---|\Z)", re.S)
_taken: dict[str, list[str]] = {}


def unlisted() -> list[str]:
    """Pages at the top of the folder that no table of contents there names."""
    pages = {path.stem: path.read_text() for path in sorted(DOCS.glob("*.md"))}
    lines = (line.strip() for text in pages.values() for line in text.splitlines())
    named = {line.rpartition("<")[2].removesuffix(">") for line in lines}
    return [name for name in pages if name not in named and name != "index"]


def list_more(app: Any, docname: str, source: list[str]) -> None:
    """Put unlisted pages where the guide has a place for them."""
    if MORE in source[0]:
        source[0] = source[0].replace(MORE, "\n".join(f"/{name}" for name in unlisted()))
    if TABLES in source[0]:
        files = sorted(
            path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("results/**/*.md")
        )
        others = [name for name in files if f"<{name}>" not in source[0]]
        source[0] = source[0].replace(TABLES, "\n".join(others))


def keep_figures_whole(app: Any, docname: str, source: list[str]) -> None:
    """A number stays on one line with its error, and in a table with its unit: no-break spaces."""
    whole = source[0].replace(" ± ", "\u00a0±\u00a0")
    source[0] = re.sub(r"(?<=\d) (?=(?:s|ms|µs) \|)", "\u00a0", whole)


def see_also(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Add links between estimators, displays and guide to the pages of classes and functions."""
    if what in ("class", "function") and (words := SEE_ALSO.get(name.rpartition(".")[2])):
        links = (
            f":doc:`/{word}`" if word in PAGES or "/" in word else f":obj:`~spdmetric.{word}`"
            for word in words.split()
        )
        lines += ["", ".. seealso::", "", f"   {', '.join(links)}", ""]


def take_attributes(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep the section of attributes from numpydoc, which shows one sentence of those that are properties."""
    found = _ATTRIBUTES.search("\n".join(lines) + "\n")
    if what == "class" and found:
        _taken[name] = [line for line in found[1].split("\n") if line.strip()]
        lines[:] = _ATTRIBUTES.sub("\n", "\n".join(lines) + "\n").split("\n")


def put_attributes(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put them back, whole, after the parameters."""
    if what != "class" or name not in _taken:
        return
    listed = ["", ":Attributes:", ""]
    for line in _taken.pop(name):
        field, _, kind = line.partition(" : ")
        listed += [f"    {line}"] if line.startswith(" ") else ["", f"    **{field}** : {kind}"]
    place = next((k for k, line in enumerate(lines) if line.startswith(".. rubric::")), len(lines))
    lines[place:place] = [*listed, ""]


def anchor_source(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let the page of the source link back to a function by the module that defines it."""
    if what == "function" and (defined := f"{obj.__module__}.{obj.__name__}") != name:
        lines += ["", ".. raw:: html", "", f'   <span id="{defined}"></span>', ""]


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other packages: those document it themselves."""
    module = str(getattr(member, "__module__", "") or "")
    return True if module and not module.startswith("spdmetric") and callable(member) else None


def setup(app: Any) -> dict[str, bool]:
    """Connect them all."""
    app.connect("source-read", list_more)
    app.connect("source-read", keep_figures_whole)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", take_attributes, priority=450)  # before numpydoc
    app.connect("autodoc-process-docstring", put_attributes, priority=550)  # after numpydoc
    app.connect("autodoc-process-docstring", see_also, priority=600)
    app.connect("autodoc-process-docstring", anchor_source, priority=650)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
