"""The page: one HTML file, its style, pictures and script inside; its words are in ``page.html``."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.comparison import pictures
from spdmetric.comparison.describe import FAR, Description
from spdmetric.comparison.run import BY_CV, Comparison
from spdmetric.comparison.verdict import Verdict, confusion, sentences, signed, title
from spdmetric.estimators.cv import RADII
from spdmetric.evaluation.methods import FAMILIES, METHODS, expression, program
from spdmetric.io.matrices import Matrices
from spdmetric.plots.axes import need_matplotlib

if TYPE_CHECKING:
    from jinja2 import Template

SHOWN_FAR = 10
PALE, FULL = (255, 255, 255), (10, 85, 140)  # ground of a share of 0 and of 1
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
        if self.test_file is None:
            return _call(self.file, **labels, **subject), _call("new.npz")
        return _call(self.file, **labels, **subject), _call(self.test_file, **subject)


def _call(file: str, **arguments: object) -> str:
    given = [repr(file), *(f"{name}={value!r}" for name, value in arguments.items())]
    return f"read_matrices({', '.join(given)})"


def make_page(
    data: Matrices,
    test: Matrices | None,
    described: list[Description],
    comparison: Comparison,
    verdict: Verdict,
    origin: Origin,
) -> str:
    """Write the page.

    Parameters
    ----------
    data, test : Matrices
        What was compared; `test` may be None.
    described : list of Description
        Of both.
    comparison : Comparison
        All results.
    verdict : Verdict
        Their summary.
    origin : Origin
        Where the matrices come from.

    Returns
    -------
    html : str
        A whole document that asks the network for nothing.
    """
    plan = comparison.plan
    need_page()
    drawn = _pictures(described[0], data, comparison, verdict)
    absent = {"learned": "alignment" not in drawn, "embedding": "before" not in drawn}
    counts = np.bincount(plan.codes[plan.tested])
    programs, expressions = _code(origin, comparison, verdict)
    return _template().render(
        shown=[key for key in SECTIONS if not absent.get(key, False)],
        data=data,
        described=described,
        plan=plan,
        comparison=comparison,
        learned=comparison.learned,
        verdict=verdict,
        answer=sentences(verdict),
        pictures=drawn,
        rows=_rows(origin, described),
        notes=[*data.notes, *(test.notes if test else ()), *_cautions(described[0])],
        shown_far=SHOWN_FAR,
        median_distance=np.median(described[0].distance),
        unbalanced=counts.max() > 1.2 * counts[counts > 0].min(),
        units=f"{len(plan.tested)} matrices"
        if verdict.n_clusters is None
        else f"{verdict.n_clusters} groups",
        families={name: entry.family for name, entry in METHODS.items()},
        kinds=FAMILIES,
        confusions=_confusions(comparison, verdict),
        programs=programs,
        expressions=expressions,
        radii=_listed(RADII),
        ranks="its usual ranks" if plan.sizes.ranks is None else f"ranks {_listed(plan.sizes.ranks)}",
        versions=_versions(),
    )


SECTIONS = ("data", "accuracy", "learned", "embedding", "confusion", "code", "how")


def need_page() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    need_matplotlib()
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError("The page needs Jinja2: pip install 'spdmetric[compare]'.") from error


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("spdmetric.comparison", ""),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {"name": title, "signed": signed, "unbroken": _unbroken}
    return environment.get_template("page.html")


def _unbroken(text: str) -> str:
    """Keep numbers with their errors and units on one line, by spaces that do not break."""
    for spaced in (" ± ", " %", " points"):
        text = text.replace(spaced, spaced.replace(" ", "\N{NO-BREAK SPACE}"))
    return text


def _listed(values: Iterable[object]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _versions() -> str:
    import pyriemann
    import sklearn

    from spdmetric import __version__

    return (
        f"spdmetric {__version__}, NumPy {np.__version__}, scikit-learn {sklearn.__version__}, "
        f"pyRiemann {pyriemann.__version__}, Python {platform.python_version()}"
    )


# ---------------------------------------------------------------------------
# The data


def _rows(origin: Origin, described: list[Description]) -> dict[str, str]:
    rows = _described(origin.file, described[0])
    for test in described[1:]:
        found = _described(str(origin.test_file), test)
        rows |= {f"Test: {key.lower()}": text for key, text in found.items()}
    return rows


def _described(file: str, d: Description) -> dict[str, str]:
    size = f"{d.d} \N{MULTIPLICATION SIGN} {d.d}"
    rows = {
        "File": file,
        "Matrices": f"{d.n}, each {size}, stored as {d.dtype}",
        "Classes": ", ".join(f"{name}: {count}" for name, count in zip(d.classes, d.counts, strict=True)),
    }
    if d.groups:
        names = ", ".join(f"{name}: {count}" for name, count in d.groups[:12])
        rows["Groups"] = f"{len(d.groups)} ({names}{', ...' if len(d.groups) > 12 else ''})"
    if d.definite:
        low, middle, high = np.quantile(d.condition, [0.05, 0.5, 0.95])
        rows["Rank"] = f"full, {d.d}"
        rows["Condition number"] = (
            f"median {middle:.3g}; 5 to 95 per cent: {low:.3g} to {high:.3g}; largest {d.condition.max():.3g}"
        )
    else:
        rows["Rank"] = f"{' to '.join(map(str, sorted({d.ranks.min(), d.ranks.max()})))} of {d.d}"
    rows["Mean variance"] = f"trace / d between {d.scale[0]:.3g} and {d.scale[1]:.3g}"
    rows["Outliers"] = (
        f"{len(d.far)} farther from the mean than the median by {FAR:g} robust standard deviations"
    )
    return rows


def _cautions(d: Description) -> list[str]:
    entries = d.d * (d.d + 1) // 2
    said = {
        f"{d.duplicates} matrices equal an earlier one: a copy in training and in test favors 1-NN.": (
            d.duplicates > 0
        ),
        "Some matrices are singular: only methods that allow it were run.": not d.definite,
        "Some condition numbers exceed 1e10: shrinkage would make the small eigenvalues mean more.": (
            d.definite and d.condition.max() > 1e10
        ),
        "The classes differ in size: read the balanced accuracy too, the mean over classes.": (
            max(d.counts) > 1.5 * min(d.counts)
        ),
        f"There are fewer matrices ({d.n}) than entries of one ({entries}): expect low ranks or small radii to "
        "do better than a full metric.": d.n < entries,
    }
    return [sentence for sentence, holds in said.items() if holds]


# ---------------------------------------------------------------------------
# Results


def _pictures(
    first: Description, data: Matrices, comparison: Comparison, verdict: Verdict
) -> dict[str, pictures.Picture]:
    drawn = {
        "conditions": pictures.conditions(first),
        "outliers": pictures.outliers(first, np.unique(data.labels, return_inverse=True)[1]),
        "accuracy": pictures.accuracy(verdict),
    }
    learned, plan = comparison.learned, comparison.plan
    if learned is not None:
        drawn |= {
            "alignment": pictures.alignment(learned),
            "candidates": pictures.candidates(learned),
            "eigenvectors": pictures.eigenvectors(learned),
        }
        if learned["reference"] is not None:
            drawn["spectra"] = pictures.spectra(learned)
    if comparison.embedding is not None:
        train, test = (plan.codes[index] for index in plan.splits[0][0])
        for which, panel in comparison.embedding.items():
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
