"""What the site leaves out, lists or adds by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
MORE = "(more pages)"  # stands in the guide's table of contents for pages that no other one lists
TABLES = "(more tables)"  # stands for files of results that the list around it does not name


# From a class to what belongs to it: displays, and pages of the guide.
_CHOICE = "ChoiceDisplay, RadiusPathDisplay; :doc:`/guide/choosing`"
_METRIC = "EmbeddingDisplay, PairDistanceDisplay, ReferenceSpectrumDisplay, PatternsDisplay"
SEE_ALSO = {
    "LogEuclideanMetric": f"LogEuclideanMetricCV; {_METRIC}; :doc:`/guide/shape`, :doc:`/guide/sessions`",
    "LogEuclideanMetricCV": f"LogEuclideanMetric, LogEuclideanClassifier; {_CHOICE}",
    "LogEuclideanClassifier": f"LogEuclideanMetricCV; {_CHOICE}, :doc:`/guide/sessions`, :doc:`/models`",
    "CommonRange": "LogEuclideanMetric; :doc:`/guide/rank_deficient`",
    "ChoiceDisplay": "LogEuclideanMetricCV; :doc:`/guide/choosing`, :doc:`/gallery/plot_displays`",
    "RadiusPathDisplay": "LogEuclideanMetricCV; :doc:`/guide/choosing`, :doc:`/gallery/plot_displays`",
    "EmbeddingDisplay": "LogEuclideanMetric; :doc:`/gallery/plot_displays`",
    "PairDistanceDisplay": "LogEuclideanMetric; :doc:`/gallery/plot_displays`",
    "ReferenceSpectrumDisplay": "LogEuclideanMetric; :doc:`/gallery/plot_displays`",
    "PatternsDisplay": "LogEuclideanMetric; :doc:`/guide/eeg`, :doc:`/gallery/plot_topomaps`",
}


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
    """A number and its error stay on one line: no-break spaces around ±."""
    source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")


def see_also(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Add links between estimators, displays and guide to the pages of classes."""
    if what == "class" and (links := SEE_ALSO.get(name.rpartition(".")[2])):
        names, _, pages = links.rpartition("; ")
        linked = ", ".join(f":class:`~spdmetric.{word}`" for word in names.replace(";", ",").split(", "))
        lines += ["", ".. seealso::", "", f"   {linked}; {pages}", ""]


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other packages: those document it themselves."""
    module = str(getattr(member, "__module__", "") or "")
    return True if module and not module.startswith("spdmetric") and callable(member) else None


def setup(app: Any) -> dict[str, bool]:
    """Connect them all."""
    app.connect("source-read", list_more)
    app.connect("source-read", keep_figures_whole)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", see_also, priority=600)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
