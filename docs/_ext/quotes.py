"""Tables that pages quote from files of results, and the stamps of those files.

A page has a pair of marks for each table; ``python docs/_ext/quotes.py`` (``make pages``) writes what belongs
between them, with a sentence that names the stamp of the file.  Where a file was computed by other code
than the present, every page that names it has to say so: `problems` lists those that do not, and the
site is not built.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
SPEED = ROOT / "benchmarks" / "results.json"

if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]  # `baselines` is beside this file

import baselines  # noqa: E402

from reproduction.methods import KNOWN  # noqa: E402
from reproduction.stamps import Stamp, code_stamp  # noqa: E402
from reproduction.statistics import number  # noqa: E402
from reproduction.steps import STEPS  # noqa: E402

WRITTEN = {"_build", "api", "gallery", "results"}
BLOCK = re.compile(r"(<!-- quote: ([^\n]*) -->\n)(.*?)(<!-- end of quote -->)", re.S)
SPEED_BLOCK = re.compile(r"<!-- speed: \w+ [^\n]*-->\n(.*?)<!-- end of speed -->", re.S)
MEASURED = re.compile(
    r"\bbenchmarks/(?!results\b)\w+(?=\.json\b)"
)  # all but the speed, whose cases have stamps
NAMED = re.compile(r"\bresults/((?:[\w-]+/)*[\w-]+)\.(?:json|csv|md|png)\b")
# Code, and what it prints in a block of text right below.
PRINTS = re.compile(r"(```python\n)((?:(?!```).)*)(```\n\n(?:It prints\n\n)?```text\n).*?```", re.S)
TARGETS = {step.target for step in STEPS}
EARLIER = "omputed with an earlier state of the code (stamp `{}`)"


def pages() -> list[Path]:
    """README and the pages of the site that people write."""
    docs = ROOT / "docs"
    found = (p for p in sorted(docs.rglob("*.md")) if not WRITTEN & set(p.relative_to(docs).parts))
    return [ROOT / "README.md", *found]


# ---------------------------------------------------------------------------
# Stamps


def path_of(name: str) -> Path:
    """The file that a page means: ``benchmarks/NAME``, or a name in docs/results."""
    return (ROOT if name.startswith("benchmarks/") else RESULTS) / f"{name}.json"


def stamp_of(name: str) -> Stamp:
    """The stamp of a file of results."""
    path = path_of(name)
    try:
        return Stamp.of(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path.relative_to(ROOT)}: {error}") from error


def speed_stamps() -> set[str]:
    """The stamps of the benchmark's cases."""
    return {case["code"] for case in json.loads(SPEED.read_text())["cases"].values()}


def quoted(text: str) -> Iterator[Stamp]:
    """Stamps of all files of results that a page names."""
    for name in sorted(set(NAMED.findall(text)) - {"times"}):
        yield stamp_of("beyond" if name == "moabb" else name)
    yield from map(stamp_of, sorted(set(MEASURED.findall(text))))
    if SPEED_BLOCK.search(text):
        yield from map(Stamp, sorted(speed_stamps()))


def problems(now: str | None = None) -> list[str]:
    """What keeps the site from being built: other stamps that a page does not tell, and stale tables."""
    now = now or code_stamp()
    found = []
    for page in pages():
        text, name = page.read_text(), page.relative_to(ROOT)
        try:
            untold = {s.code for s in quoted(text) if not s.holds(now) and EARLIER.format(s.code) not in text}
            if page.name == "README.md":  # docs/claims.md tells the stamps of its numbers
                untold = set()
            stale = written(text, now) != text
        except (ValueError, KeyError) as error:
            found.append(f"{name}: {error}")
            continue
        found += [
            f"{name} quotes results of stamp {code}, not of {now}, and does not say so" for code in untold
        ]
        found += [f"{name}: a table differs from its file"] if stale else []
    return [f"{problem}: run make pages, or make results." for problem in found]


# ---------------------------------------------------------------------------
# Tables


class Quote(NamedTuple):
    """What a mark asks for: a file, and which of its rows or groups and methods are shown."""

    file: str
    rows: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # of the rows on the page, where they are others than in the file
    titles: tuple[str, ...] = ()  # of the methods on the page, likewise
    stamp: str = "shown"  # or "hidden": docs/claims.md has it
    lines: str = "rows"  # what the lines of the table are: "rows" or "methods"; "none" for the stamp alone

    @classmethod
    def parse(cls, text: str) -> Quote:
        """Read ``toy rows="6x6; 8x8" methods="euclid; riemann" lines=methods``."""
        file, *options = shlex.split(text)
        values = dict(option.split("=", 1) for option in options)
        lists = {
            k: tuple(map(str.strip, v.split(";"))) for k, v in values.items() if k not in ("lines", "stamp")
        }
        return cls(file, **lists, stamp=values.get("stamp", "shown"), lines=values.get("lines", "rows"))


def written(text: str, now: str | None = None) -> str:
    """The page with its tables as they follow from the files."""
    now = now or code_stamp()

    def fill(match: re.Match[str]) -> str:
        quote = Quote.parse(match[2])
        if quote.file == "claims":
            return f"{match[1]}{_markdown(claims())}{match[4]}"
        if quote.file == "ahead":
            return f"{match[1]}{baselines.ahead(RESULTS, quote.rows)}\n{match[4]}"
        if quote.file == "ranks":
            return f"{match[1]}{baselines.ranks(RESULTS)}\n{match[4]}"
        if quote.file == "differences":
            return f"{match[1]}{_markdown(baselines.differences(RESULTS))}{match[4]}"
        if quote.file in TARGETS and not (RESULTS / f"{quote.file}.json").exists():
            return f"{match[1]}Not computed yet: `make results`.\n{match[4]}"
        said = sentence_of(quote.file, now)
        if quote.lines == "none":
            file = path_of(quote.file).relative_to(ROOT).as_posix()
            return f"{match[1]}`{file}`: {said[0].lower()}{said[1:]}\n{match[4]}"
        end = f"{said}\n" if quote.stamp == "shown" else ""
        return f"{match[1]}{table_of(quote)}{end}{match[4]}"

    return BLOCK.sub(fill, text)


def sentence_of(file: str, now: str) -> str:
    """The sentence about the stamp of a file."""
    if file == "speed":
        stamps = [Stamp(code) for code in sorted(speed_stamps())]
        return " ".join(stamp.sentence(now) for stamp in stamps)
    return stamp_of(file).sentence(now)


def entries_of(content: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Cells of a file by row (or group) and method."""
    if "by_group" in content:
        return {(e["group"], e["method"]): e for e in content["by_group"]}
    return {(e["row"], e["method"]): e for e in content["rows"]}


def bold_of(content: dict[str, Any], shown: dict[tuple[str, str], dict[str, Any]]) -> set[tuple[str, str]]:
    """The best of a group; of a row of the paper, where it is significantly better than the second."""
    if "by_group" not in content:
        return {(c["row"], c["first"]) for c in content["two_best"] if c["significant"]}
    # As they are printed: of two numbers that read the same, both are bold.
    means = {key: round(e["mean"], 2) for key, e in shown.items() if e["mean"] is not None}
    best = {row: max(mean for (other, _), mean in means.items() if other == row) for row, _ in means}
    return {(row, method) for (row, method), mean in means.items() if mean == best[row]}


def cell(entry: dict[str, Any], bold: bool) -> str:
    """A mean with its standard error, the number of the paper in brackets."""
    if entry["mean"] is None:
        return "not run"
    paper, corrected = entry.get("paper"), entry.get("paper_corrected")
    arrow = f" → {corrected:.2f}" if corrected is not None and corrected != paper else ""
    text = number(entry["mean"], entry["se"], bold=bold)
    return text if paper is None else f"{text} ({paper:.2f}{arrow})"


def table_of(quote: Quote) -> str:
    """The table of a mark, and an empty line; nothing for files whose tables others write."""
    if quote.file == "speed":
        return ""
    if quote.file in TABLES:
        return _markdown(TABLES[quote.file](json.loads(path_of(quote.file).read_text())))
    texts = texts_of(quote)
    rows, methods = (tuple(dict.fromkeys(key[k] for key in texts)) for k in (0, 1))
    said = dict(zip(quote.rows, quote.names, strict=False))
    names = [said.get(row, row) for row in rows]
    called = dict(zip(quote.methods, quote.titles, strict=False))
    titles = [called.get(method, KNOWN[method].short) for method in methods]
    if quote.lines == "methods":
        body = [[title, *(texts[r, m] for r in rows)] for m, title in zip(methods, titles, strict=True)]
        return _markdown([["", *names], *body])
    body = [[name, *(texts[r, m] for m in methods)] for r, name in zip(rows, names, strict=True)]
    return _markdown([["", *titles], *body])


def texts_of(quote: Quote) -> dict[tuple[str, str], str]:
    """Cells of the table of a mark, by row and method; rows and methods that the file lacks are left out."""
    content = json.loads((RESULTS / f"{quote.file}.json").read_text())
    entries = entries_of(content)
    rows, methods = (tuple(dict.fromkeys(key[k] for key in entries)) for k in (0, 1))
    rows = tuple(row for row in quote.rows or rows if row in rows)
    methods = tuple(method for method in quote.methods or methods if method in methods)
    shown = {(row, method): entries[row, method] for row in rows for method in methods}
    bold = bold_of(content, shown)
    return {key: cell(entry, key in bold) for key, entry in shown.items()}


def printed(text: str) -> str:
    """A page with what its lines of code print now; the blocks of a page follow each other."""
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def run(match: re.Match[str]) -> str:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(match[2], namespace)
        return f"{match[1]}{match[2]}{match[3]}{said.getvalue()}```"

    return PRINTS.sub(run, text)


@cache
def bars() -> list[list[str]]:
    """Numbers of the first picture, as the script that draws it computes and reads them."""
    name = "examples/first_steps/plot_learning.py"
    script = runpy.run_path(str(ROOT / name))
    before, after = (f"{share:.0f} %" for share in script["scores"]().values())
    groups = script["stored"](RESULTS / "beyond.csv")
    lines = [
        [
            f"picture, {' '.join(group.split())}: {', '.join(f'{of:.0f}' for of in heights.values())}",
            *(_BEYOND[0].replace("json", "csv"), ", ".join(heights), f"`python {name}`"),
        ]
        for group, heights in groups.items()
    ]
    source = ("computed by the script", "before, after", f"`python {name}`")
    return [[f"picture, titles: {before}, {after}", *source], *lines]


# File, entry and command of what is counted in the table of all methods.
_BEYOND = (
    *("`docs/results/beyond.json`", "`by_group`"),
    "`python -m reproduction.recompute --data DATA --only beyond`",
)


def claims() -> list[list[str]]:
    """Every number in the tables of README and home page, where it stands in a file, and the command."""
    lines = [["claim", "file", "entry", "command"]]
    for page in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        for match in PRINTS.finditer(page.read_text()):
            said = match[0].removeprefix(match[1] + match[2] + match[3]).removesuffix("```").splitlines()
            file = f"`{page.relative_to(ROOT).as_posix()}`"
            lines += [[line, file, "the lines of code above it", "`make pages`"] for line in said]
        lines += bars() if "images/learning.png" in page.read_text() else []
        for match in BLOCK.finditer(page.read_text()):
            quote = Quote.parse(match[2])
            if quote.file == "ahead":
                lines += [[told, *_BEYOND] for told in baselines.standings(RESULTS, quote.rows)]
            if quote.file in TARGETS and quote.lines != "none":
                source = [
                    f"`docs/results/{quote.file}.json`",
                    f"`python -m reproduction.recompute --data DATA --only {quote.file}`",
                ]
                lines += [
                    [text, source[0], f"{row}: {KNOWN[method].short}", source[1]]
                    for (row, method), text in texts_of(quote).items()
                ]
    return [*lines[:1], *map(list, dict.fromkeys(map(tuple, lines[1:])))]


def settings_table(content: dict[str, Any]) -> list[list[str]]:
    """A line for each setting of the textures."""
    columns = {"logeuclid": "LE at I", "learned": "learned", "riemann": "Riemann", "euclid": "Euclid"}
    lines = [["gray levels", "filtering", "kept", *columns.values(), "correlation"]]
    for found in content["cells"]:
        settings, accuracy = found["settings"], found["accuracy"]
        gray = "standardized" if settings["standardize"] else "raw"
        kept = f"{settings['kind']}, {'/'.join(map(str, settings['frequencies']))}"
        means = [f"{accuracy[method]['mean']:.1f}" for method in columns]
        correlation = f"{accuracy['logeuclid']['correlation_with_paper']:.2f}"
        lines.append([gray, settings["filtering"], kept, *means, correlation])
    return lines


def probabilities_table(content: dict[str, Any]) -> list[list[str]]:
    """Log loss, the less bold, and calibration error of each model, a line for each group."""
    models = {"LogEuclideanClassifier": "chosen", "tangent space + logistic": "logistic regression"}
    found = {(line["group"], line["model"]): line for line in content["lines"]}
    groups = tuple(dict.fromkeys(group for group, _ in found))
    lines = [["group", *models.values()]]
    for group in groups:
        of_group = [found[group, model] for model in models]
        lines.append(
            [
                group,
                *(
                    f"{loss} ({line['calibration_error']:.3f})"
                    for loss, line in zip(
                        _least_bold([line["log_loss"] for line in of_group]), of_group, strict=True
                    )
                ),
            ]
        )
    means = [sum(found[group, model]["log_loss"] for group in groups) / len(groups) for model in models]
    return [*lines, ["mean", *_least_bold(means)]]


def label_shift_table(content: dict[str, Any]) -> list[list[str]]:
    """Balanced accuracy by the mean, by estimated and by known shares, a line for each data set and ratio."""
    lines = [["", "buffer", "by the mean", "by estimated shares", "by known shares", "gain", "shares off by"]]
    for line in content["lines"]:
        ways = [f"{line[way]:.1f}" for way in ("mean", "estimated", "known")]
        gain = f"{line['gain']['mean']:+.2f} ± {line['gain']['se']:.2f}"
        lines.append([line["data"], f"1:{line['ratio']}", *ways, gain, f"{line['shares_off']:.2f}"])
    return lines


def elsewhere_table(content: dict[str, Any]) -> list[list[str]]:
    """Accuracy of each method, the highest bold, a line for each set and number of training matrices."""
    names = list(content["lines"][0]["accuracy"])
    lines = [["set, training matrices", *(KNOWN[name].short for name in names), "chosen less LDA"]]
    for line in content["lines"]:
        texts = [f"{line['accuracy'][name]['mean']:.1f}" for name in names]
        best = max(texts, key=float)
        gain = f"{line['less LDA']['mean']:+.1f} ± {line['less LDA']['se']:.1f}"
        bold = (f"**{text}**" if text == best else text for text in texts)
        lines.append([f"{line['data']}, {line['n']}", *bold, gain])
    means = [fmean(line["accuracy"][name]["mean"] for line in content["lines"]) for name in names]
    gain = fmean(line["less LDA"]["mean"] for line in content["lines"])
    return [*lines, ["mean", *(f"{mean:.1f}" for mean in means), f"{gain:+.1f}"]]


def reference_table(content: dict[str, Any]) -> list[list[str]]:
    """Accuracy on matrices as they are and average-referenced, and the difference, a line for each method."""
    lines = [["method", "X", "C X C", "difference"]]
    found = {name: numbers for name, numbers in content["methods"].items() if len(numbers) == 4}
    for name, (plain, centered, gain, error) in found.items():
        lines.append([name, f"{plain:.1f}", f"{centered:.1f}", f"{gain:+.1f} ± {error:.1f}"])
    means = [fmean(column) for column in zip(*found.values(), strict=True)]
    return [*lines, ["mean of the methods", f"{means[0]:.1f}", f"{means[1]:.1f}", f"{means[2]:+.2f}"]]


def views_table(content: dict[str, Any]) -> list[list[str]]:
    """Accuracy with the first view alone and with all to choose from, a line for each set of data."""
    lines = [["", "first view", "all views to choose from", "gain"]]
    for name, found in content.items():
        if name not in ("stamp", "cost"):
            gain = f"{found['gain']:+.1f} ± {found['error']:.1f}"
            gain = gain if found["error"] else "none, the first is always taken"
            lines.append([name, f"{found['first']:.1f}", f"{found['views']:.1f}", gain])
    return lines


def hermitian_table(content: dict[str, Any]) -> list[list[str]]:
    """Accuracy of complex matrices and of their real parts, a line for each subject."""
    names = ("cross-spectra", "real parts")
    lines = [["subject", *names]]
    return lines + [
        [str(row["subject"]), *(f"{100 * row[n]:.1f}" for n in names)] for row in content["eegmmi"]
    ]


def _least_bold(values: list[float]) -> list[str]:
    return [f"**{value:.3f}**" if value == min(values) else f"{value:.3f}" for value in values]


def transfer_table(content: dict[str, Any]) -> list[list[str]]:
    """Accuracy by labeled trials of the new subject, and what others add to them, a line for each arm."""
    cells = {(c["channels"], c["arm"], c["trials"]): number(c["mean"], c["se"]) for c in content["cells"]}
    gains = {
        (g["channels"], g["over"], g["trials"]): number(g["mean"], g["se"], sign="+")
        for g in content["gains"]
    }
    trials = sorted({k for *_, k in cells})
    lines = [["channels", "trained on", *map(str, trials), f"others add, at {trials[-1]}"]]
    for channels, arm in dict.fromkeys(key[:2] for key in cells):
        found = [cells.get((channels, arm, k), "") for k in trials]
        lines.append([str(channels), arm, *found, gains.get((channels, arm, trials[-1]), "")])
    return lines


TABLES = {
    "transfer": transfer_table,
    "benchmarks/probabilities": probabilities_table,
    "benchmarks/label_shift": label_shift_table,
    "benchmarks/elsewhere": elsewhere_table,
    "benchmarks/average_reference": reference_table,
    "benchmarks/texture_sensitivity": settings_table,
    "benchmarks/views": views_table,
    "benchmarks/hermitian": hermitian_table,
}


def _markdown(cells: list[list[str]]) -> str:
    lines = (cells[0], ["---"] * len(cells[0]), *cells[1:])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def write_pages() -> list[Path]:
    """Fill the marks of all pages; return those that changed."""
    changed = []
    for page in sorted(pages(), key=lambda page: page.name == "claims.md"):  # it quotes the others
        text = page.read_text()
        if (after := printed(written(text))) != text:
            page.write_text(after)
            changed.append(page)
    return changed


# ---------------------------------------------------------------------------
# Sphinx


def check(app: Any) -> None:
    """Stop the build where a page quotes what the code did not compute, and does not say so."""
    from sphinx.errors import ExtensionError

    if found := problems():
        raise ExtensionError("\n".join(found))


def tell_stamp(app: Any, docname: str, source: list[str]) -> None:
    """End the page of a whole table with the stamp of its file."""
    if docname.startswith("results/"):
        source[0] += f"\n{stamp_of(docname.removeprefix('results/')).sentence(code_stamp())}\n"


def setup(app: Any) -> dict[str, bool]:
    """Check before anything is built."""
    app.connect("builder-inited", check, priority=0)  # before the gallery, which takes minutes
    app.connect("source-read", tell_stamp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    print("\n".join(f"written: {page.relative_to(ROOT)}" for page in write_pages()) or "nothing to write")
    if left := problems():
        sys.exit("\n".join(left))
