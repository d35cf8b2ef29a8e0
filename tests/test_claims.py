"""Every number of README and home page has its file and its command in docs/claims.md."""

import importlib
import re
from pathlib import Path

import pytest

from test_docs import PRINTING

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "docs" / "index.md"]
# Decimals, and whole numbers that are results: times, and counts of lines.
NUMBER = re.compile(r"(?<![\w.`])(?:\d+\.\d+(?![\w.`])%?|\d+ ms\b|\d+ of \d+\b)")
NO_CLAIMS = {"3.11", "3.12", "3.13"}  # versions of Python


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_number_has_a_source(page):
    claims = (ROOT / "docs" / "claims.md").read_text()
    known = set(NUMBER.findall(claims))
    unknown = [number for number in NUMBER.findall(page.read_text()) if number not in known | NO_CLAIMS]
    assert unknown == []


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 100


@pytest.mark.parametrize("page", PRINTING, ids=lambda path: path.name)
def test_the_code_of_a_page_prints_what_it_says(page, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    quotes = importlib.import_module("quotes")
    text = page.read_text()
    blocks = [match[2] for match in quotes.PRINTS.finditer(text)]
    assert len(blocks) == text.count("```python")
    assert all(len([line for line in block.splitlines() if line]) <= 10 for block in blocks)
    assert quotes.printed(text) == text, "make pages"
