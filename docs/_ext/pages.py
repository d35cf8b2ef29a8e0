"""Which members and pages the site leaves out or lists by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
MORE = "(more pages)"  # stands in the guide's table of contents for pages that no other one lists


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


def keep_figures_whole(app: Any, docname: str, source: list[str]) -> None:
    """A number and its error stay on one line: no-break spaces around ±."""
    source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")


def skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other packages: those document it themselves."""
    module = str(getattr(member, "__module__", "") or "")
    return True if module and not module.startswith("spdmetric") and callable(member) else None


def setup(app: Any) -> dict[str, bool]:
    """Connect all three."""
    app.connect("source-read", list_more)
    app.connect("source-read", keep_figures_whole)
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
