"""Every number of README and home page has its file and its command in docs/claims.md."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = [README, ROOT / "docs" / "index.md"]
NUMBER = re.compile(r"(?<![\w.`])\d+\.\d+(?![\w.`])%?")
NO_CLAIMS = {"3.11", "3.12", "3.13"}  # versions of Python


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_number_has_a_source(page):
    claims = (ROOT / "docs" / "claims.md").read_text()
    known = set(NUMBER.findall(claims))
    unknown = [number for number in NUMBER.findall(page.read_text()) if number not in known | NO_CLAIMS]
    assert unknown == []


def test_the_readme_is_short():
    assert len(README.read_text().splitlines()) <= 120


def test_the_code_of_the_readme_prints_what_it_says():
    code, said = re.search(
        r"```python\n(.*?)```\n\nIt prints\n\n```text\n(.*?)```", README.read_text(), re.S
    ).groups()
    assert len([line for line in code.splitlines() if line]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {"__name__": "__main__"})
    assert printed.getvalue() == said


def test_the_sentences_below_the_table_hold():
    text, groups = README.read_text(), ("toy", "subject 9, four", "cho", "eegmmi-21", "textures")
    content = json.loads((ROOT / "docs" / "results" / "choice.json").read_text())
    mean = {(e["group"], e["method"]): e["mean"] for e in content["by_group"]}
    ahead = {
        (first, second): sum(mean[g, first] > mean[g, second] for g in groups)
        for first, second in (
            ("logeuclid-kta", "logeuclid-mean"),
            ("spdmetric", "logeuclid-mean"),
            ("logeuclid-mean-lda", "spdmetric"),
        )
    }
    words = {4: "four lines", 5: "all five"}
    paper, choice, lda = (words[n] for n in ahead.values())
    assert f"The paper's metric is ahead of *LE at mean* on {paper}, the choice on {choice}." in text
    assert f"**LDA on plain tangent vectors is ahead of the\nchoice on {lda} lines**" in text
