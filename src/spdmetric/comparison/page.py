"""The page: one HTML file, its style, pictures and script inside; its words are in ``page.html``."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.comparison import pictures
from spdmetric.comparison.describe import FAR, Description
from spdmetric.comparison.run import BY_CV, Comparison
from spdmetric.comparison.verdict import Verdict, confusion, sentences, signed, title
from spdmetric.estimators.cv import RADII
from spdmetric.evaluation.methods import FAMILIES, METHODS, expression, program
from spdmetric.io.atomic import write_atomically
from spdmetric.io.matrices import Matrices

if TYPE_CHECKING:
    from jinja2 import Template

SHOWN_FAR = 10
PALE, FULL = (255, 255, 255), (10, 85, 140)  # ground of a share of 0 and of 1
SECTIONS = ("data", "accuracy", "learned", "embedding", "confusion", "code", "how")
WHITE_INK = 0.78  # share from which white letters are the easier to read


@dataclass(frozen=True)
class Origin:
    """Where the matrices were read from, for the page and for the code to copy."""

    file: str = "matrices.npz"
    test_file: str | None = None
    labels: str | None = None
    subject: int | None = None

    def calls(self) -> tuple[str, str]:
        """Calls of `spdmetric.io.matrices.read_matrices`, for the training and the new matrices."""
        # Where the labels are in the file they are found; the groups are needed for the folds only.
        subject = {} if self.subject is None else {"subject": self.subject}
        labels = {} if self.labels is None else {"labels": self.labels}
        new = _call("new.npz") if self.test_file is None else _call(self.test_file, **subject)
        return _call(self.file, **labels, **subject), new


def _call(file: str, **arguments: object) -> str:
    given = [repr(file), *(f"{name}={value!r}" for name, value in arguments.items())]
    return f"read_matrices({', '.join(given)})"


@dataclass(frozen=True)
class Report:
    """A finished comparison; as text, its answer."""

    data: Matrices
    test: Matrices | None
    described: list[Description]  # of both
    comparison: Comparison
    verdict: Verdict

    def __str__(self) -> str:
        return "\n".join(sentences(self.verdict))

    def save(self, path: str | PathLike[str], origin: Origin | None = None) -> None:
        """Write the page.

        Parameters
        ----------
        path : path-like
            An HTML file, which needs no other and no network.
        origin : Origin, optional
            Where the matrices were read from, for the code to copy.
        """
        need_page()
        write_atomically(path, _template().render(_context(self, origin or Origin())))


def need_page() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        needs = "The page needs Jinja2 and matplotlib"
        raise ImportError(f"{needs}: pip install 'spdmetric[compare]'.") from error


def _context(report: Report, origin: Origin) -> dict[str, object]:
    """What the template speaks of."""
    comparison, verdict, plan = report.comparison, report.verdict, report.comparison.plan
    drawn = _pictures(report)
    absent = {"learned": "alignment" not in drawn, "embedding": "before" not in drawn}
    counts = np.bincount(plan.codes[plan.tested])
    programs, expressions = _code(origin, comparison, verdict)
    return {
        **{"report": report, "data": report.data, "plan": plan, "comparison": comparison, "verdict": verdict},
        **{"origin": origin, "learned": comparison.learned, "pictures": drawn, "answer": sentences(verdict)},
        "shown": [key for key in SECTIONS if not absent.get(key, False)],
        "median_distance": np.median(report.described[0].distance),
        "unbalanced": counts.max() > 1.2 * counts[counts > 0].min(),
        "kinds": FAMILIES,
        "families": {name: method.family for name, method in METHODS.items()},
        "confusions": _confusions(comparison, verdict),
        "programs": programs,
        "expressions": expressions,
        "radii": RADII,
        "versions": _versions(),
        **{"far_enough": FAR, "shown_far": SHOWN_FAR},
    }


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    files = PackageLoader("spdmetric.comparison", "")
    environment = Environment(loader=files, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"name": title, "signed": signed, "unbroken": _unbroken, "quantile": np.quantile}
    return environment.get_template("page.html")


def _unbroken(text: str) -> str:
    """Keep numbers with their errors and units on one line, by spaces that do not break."""
    for spaced in (" ± ", " %", " points"):
        text = text.replace(spaced, spaced.replace(" ", "\N{NO-BREAK SPACE}"))
    return text


def _versions() -> str:
    modules = {
        "spdmetric": "spdmetric",
        "NumPy": "numpy",
        "scikit-learn": "sklearn",
        "pyRiemann": "pyriemann",
    }
    there = [f"{name} {import_module(m).__version__}" for name, m in modules.items() if find_spec(m)]
    return ", ".join([*there, f"Python {platform.python_version()}"])


def _pictures(report: Report) -> dict[str, pictures.Picture]:
    first, learned, plan = report.described[0], report.comparison.learned, report.comparison.plan
    drawn = {
        "conditions": pictures.conditions(first),
        "outliers": pictures.outliers(first, np.unique(report.data.labels, return_inverse=True)[1]),
        "accuracy": pictures.accuracy(report.verdict),
    }
    if learned is not None:
        drawn |= {
            "alignment": pictures.alignment(learned),
            "candidates": pictures.candidates(learned),
            "eigenvectors": pictures.eigenvectors(learned),
        }
        if learned["reference"] is not None:
            drawn["spectra"] = pictures.spectra(learned)
    if report.comparison.embedding is not None:
        train, test = (plan.codes[index] for index in plan.splits[0][0])
        for which, panel in report.comparison.embedding.items():
            drawn[which] = pictures.embedding(panel, train, test, tuple(map(str, plan.classes)), which)
    return drawn


@dataclass(frozen=True)
class Cell:
    """Matrices of one class that were given one label."""

    count: float
    share: float  # of the class
    ground: str
    ink: str


def shaded(count: float, share: float) -> Cell:
    """A cell whose ground is the darker, the larger its share, and whose letters can be read on it."""
    ground = [round(pale + share * (full - pale)) for pale, full in zip(PALE, FULL, strict=True)]
    ink = "#ffffff" if share > WHITE_INK else "#000000"
    return Cell(count, share, "#" + "".join(f"{part:02x}" for part in ground), ink)


def _confusions(comparison: Comparison, verdict: Verdict) -> dict[str, list[tuple[str, list[Cell]]]]:
    plan, tables = comparison.plan, {}
    for method in dict.fromkeys([verdict.best.method, "logeuclid-mean", BY_CV]):
        if method in comparison.given:
            counts = confusion(plan.codes[plan.tested], comparison.given[method], len(plan.classes))
            shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
            cells = [list(map(shaded, *row)) for row in zip(counts, shares, strict=True)]
            tables[method] = list(zip(map(str, plan.classes), cells, strict=True))
    return tables


def _code(origin: Origin, comparison: Comparison, verdict: Verdict) -> tuple[dict[str, str], dict[str, str]]:
    """Programs by what they are, and expressions of the other methods."""
    plan, best = comparison.plan, verdict.best.method
    made = {name: METHODS[name].make(plan.sizes) for name in comparison.given}
    wanted = {best: "The most accurate", **({BY_CV: "The learned metric"} if best != BY_CV else {})}
    programs = {
        f"{role}: {title(method)}": program(made[method], *origin.calls())
        for method, role in wanted.items()
        if method in made
    }
    return programs, {m: expression(made[m], width=1000) for m in made if m not in wanted}
