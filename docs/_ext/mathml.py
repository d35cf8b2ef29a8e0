"""Formulas as MathML, which browsers draw themselves: no script, no font, no network.

docutils brings a converter from LaTeX; this renderer hands formulas to it.  What MathJax
would do in the reader's browser, from a server of somebody else, is done here once.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.errors import ExtensionError

# Commands that the converter does not know, and digits as arguments without braces.
SYNONYMS = (
    (re.compile(r"\\dots\b"), r"\\ldots "),
    (re.compile(r"\\cr\b"), r"\\\\"),
    (re.compile(r"\\lt(?![a-z])"), "< "),
    (re.compile(r"\\gt(?![a-z])"), "> "),
    (re.compile(r"\\([td]?frac)\s*(\d)\s*(\d)"), r"\\\1{\2}{\3}"),
)


def convert(latex: str, *, block: bool) -> str:
    """Return the MathML element of a formula, or say which formula has none."""
    for pattern, plain in SYNONYMS:
        latex = pattern.sub(plain, latex)
    try:
        # Without a font for mathematics browsers draw accents through the letter, scripts above it.
        return tex2mathml(latex, as_block=block).replace(' accent="true"', "")
    except MathError as error:
        raise ExtensionError(f"No MathML for the formula {latex!r}: {error}") from error


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write a formula of a line."""
    translator.body.append(convert(node.astext(), block=False))
    raise nodes.SkipNode


def visit_display(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own; a wide one scrolls by itself."""
    translator.body.append(f'<div class="math">{convert(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    inline, display = (visit_inline, None), (visit_display, None)
    app.add_html_math_renderer("mathml", inline_renderers=inline, block_renderers=display)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
