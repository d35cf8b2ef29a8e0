"""The page: one HTML file, its style, pictures and script inside; its words are in ``page.html``."""

from __future__ import annotations

import platform
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from spdmetric.comparison import learned, pictures
from spdmetric.comparison.describe import FAR, Description
from spdmetric.comparison.run import BY_CV, Comparison
from spdmetric.comparison.verdict import Verdict, confused, confusion, sentences, signed, title
from spdmetric.evaluation.methods import FAMILIES, METHODS, expression, program
from spdmetric.extras import needing
from spdmetric.io.atomic import write_atomically
from spdmetric.io.matrices import Matrices

if TYPE_CHECKING:
    from jinja2 import Template

PALE, FULL = (255, 255, 255), (10, 85, 140)  # ground of a share of 0 and of 1
LONGEST = 40  # letters of a class that are shown
MANY = 12  # classes beyond which the confusion is a picture, and names are no longer all listed
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
        write_atomically(
            path, _template().render(_context(self, origin or Origin())).encode(errors="replace")
        )


def need_page() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    with needing("The page needs Jinja2 and matplotlib", "compare"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401


def _context(report: Report, origin: Origin) -> dict[str, object]:
    """What the template speaks of."""
    comparison, verdict, plan = report.comparison, report.verdict, report.comparison.plan
    truth = plan.codes[plan.tested]
    counts = np.bincount(truth)
    drawn = _pictures(report)
    style, script = (
        _inside("page.css") + _shades() + "".join(p.rules for p in drawn.values()),
        _inside("page.js"),
    )
    confusions = _confusions(report)
    return {
        **{"report": report, "origin": origin, "pictures": drawn, "answer": sentences(verdict)},
        **{"style": style, "script": script, "policy": policy(style, script)},
        **{"spectra": learned.spectra, "directions": learned.directions},
        "median_distance": np.median(report.described[0].distance),
        "unbalanced": counts.max() > 1.2 * counts[counts > 0].min(),
        **{"confusions": confusions, "confused": confused, "many": MANY, "shaded": shaded},
        "made": {name: METHODS[name].make(plan.sizes) for name in comparison.given},
        **{"by_cv": BY_CV, "methods": METHODS, "kinds": FAMILIES, "far_enough": FAR},
        **{"program": program, "expression": expression, "versions": _versions()},
    }


def _inside(name: str) -> str:
    return files("spdmetric.comparison").joinpath(name).read_text("utf-8")


def policy(style: str, script: str) -> str:
    """Content-security policy: nothing is fetched, and of styles and scripts only these two are used."""
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _confusions(report: Report) -> dict[str, np.ndarray]:
    """Confusion of the best method, of no learning, and of the metric by cross-validation."""
    given, plan = report.comparison.given, report.comparison.plan
    shown = dict.fromkeys([report.verdict.best.method, "logeuclid-mean", BY_CV])
    truth = plan.codes[plan.tested]
    return {method: confusion(truth, given[method], len(plan.classes)) for method in shown if method in given}


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("spdmetric.comparison", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"name": title, "signed": signed, "unbroken": _unbroken, "quantile": np.quantile}
    environment.filters |= {"log10": np.log10, "shown": shown}
    return environment.get_template("page.html")


def _unbroken(text: str) -> str:
    """Keep numbers with their errors and units on one line, by spaces that do not break."""
    for spaced in (" ± ", " %", " points"):
        text = text.replace(spaced, spaced.replace(" ", "\N{NO-BREAK SPACE}"))
    return text


def _versions() -> str:
    names = {"spdmetric": "spdmetric", "NumPy": "numpy", "scikit-learn": "sklearn", "pyRiemann": "pyriemann"}
    there = [f"{name} {import_module(m).__version__}" for name, m in names.items() if find_spec(m)]
    return ", ".join([*there, f"Python {platform.python_version()}"])


def _pictures(report: Report) -> dict[str, pictures.Picture]:
    first, metric, plan = report.described[0], report.comparison.learned, report.comparison.plan
    drawn = {
        "conditions": pictures.conditions(first),
        "outliers": pictures.outliers(first, np.unique(report.data.labels, return_inverse=True)[1]),
        "accuracy": pictures.accuracy(report.verdict),
    }
    if len(plan.classes) > MANY:
        names = list(map(str, plan.classes))
        confusions = _confusions(report)
        drawn |= {f"confusion-{method}": pictures.confusion(c, names) for method, c in confusions.items()}
    if metric is not None:
        curves = learned.spectra(metric)
        what = "eigenvector of log G, largest eigenvalue first" if curves else "row of W, scaled to length 1"
        drawn |= {
            "alignment": pictures.alignment(metric),
            "candidates": pictures.candidates(metric),
            "eigenvectors": pictures.directions(learned.directions(metric), what),
            **({"spectra": pictures.spectra(curves)} if curves else {}),
        }
    if report.comparison.embedding is not None:
        train, test = (plan.codes[index] for index in plan.splits[0][0])
        for which, panel in report.comparison.embedding.items():
            drawn[f"embedding-{which}"] = pictures.embedding(panel, train, test, list(map(str, plan.classes)))
    return {name: pictures.as_picture(figure, name) for name, figure in drawn.items()}


def shown(name: object) -> str:
    """A class or group of the user's, so short that no table grows out of the page."""
    text = str(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 12]}… ({len(text)} letters)"


def _shades() -> str:
    """Rules of the classes ``share-0`` to ``share-100``, per cent of a row of a confusion matrix."""
    looks = [shaded(share / 100) for share in range(101)]
    return "".join(
        f".share-{k}{{background:{ground};color:{ink}}}\n" for k, (ground, ink) in enumerate(looks)
    )


def shaded(share: float) -> tuple[str, str]:
    """Ground, the darker, the larger the share, and color of letters that can be read on it."""
    ground = [round(pale + share * (full - pale)) for pale, full in zip(PALE, FULL, strict=True)]
    return "#" + "".join(f"{part:02x}" for part in ground), "#ffffff" if share > WHITE_INK else "#000000"
