"""One bibliography: ``[Yger2015]`` in docstrings and in ``math.md`` points to ``references.bib``.

The sources stay readable where there is no Sphinx: docstrings keep numpydoc's citations,
``math.md`` its own list at the end.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

KEYS = frozenset(
    re.findall(r"^@\w+\{(\w+),", (Path(__file__).parents[1] / "references.bib").read_text(), re.M)
)
_IN_DOCSTRING = re.compile(r"\[([A-Z]\w+\d{4})\]_")
_IN_PAGE = re.compile(r"\[([A-Z]\w+\d{4})(?:,\s+([^\]]*))?\](?![(_])")
_LIST = re.compile(r"^(## \d+\. Bibliography\n).*", re.M | re.S)


def _link(key: str, place: str | None) -> str:
    return f"({{cite:t}}`{key}`, {place})" if place else f"{{cite:p}}`{key}`"


def cite_in_page(app: Any, docname: str, source: list[str]) -> None:
    """Turn the citations of the mathematics into links, and its list into one line."""
    if docname == "math":
        text = _LIST.sub(r"\1\nAll works are on the page [References](references.md).\n", source[0])
        source[0] = _IN_PAGE.sub(lambda m: _link(m[1], m[2]) if m[1] in KEYS else m[0], text)


def cite_in_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn numpydoc's citations into links, and leave out lists of works that the bibliography has."""
    text = re.sub(r"\nReferences\n-+\n(?:\.\. \[[^\n]*\n(?:   [^\n]*\n)*)+", "\n", "\n".join(lines) + "\n")
    text = _IN_DOCSTRING.sub(lambda m: f":cite:p:`{m[1]}`" if m[1] in KEYS else m[0], text)
    lines[:] = text.split("\n")


def setup(app: Any) -> dict[str, bool]:
    """Connect, before numpydoc reads the docstrings (its priority is 500)."""
    app.connect("source-read", cite_in_page)
    app.connect("autodoc-process-docstring", cite_in_docstring, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
