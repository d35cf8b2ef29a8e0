"""The page, one HTML file with its style, pictures and script, worded in ``page.html``; and code to copy."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline, make_pipeline

from spdmetric.comparison import pictures
from spdmetric.comparison.baselines import FirstView
from spdmetric.comparison.folds import fit_keywords, steps_of
from spdmetric.comparison.methods import expression, find_method
from spdmetric.comparison.plan import Entry
from spdmetric.comparison.run import find_inner_groups, make_method
from spdmetric.comparison.verdict import find_confusions, remarks, sentences
from spdmetric.extras import require_extra
from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.plots.style import find_metric
from spdmetric.validation import check_psd

if TYPE_CHECKING:
    from spdmetric.comparison.report import Report

FAR = 5.0  # robust standard deviations beyond which a matrix is called far


@dataclass(frozen=True)
class Origin:
    """Where the matrices were read from, for the page and for the code to copy."""

    file: str = "matrices.npz"
    test_file: str | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)  # others of the function that reads
    signals: bool = False
    steps: tuple[BaseEstimator, ...] = ()  # from what was read to the matrices
    command: str = ""  # none for arrays in Python
    skipped: bool = False  # whether some could not be used, and were left out
    saved: str = ""  # which model was kept, in a sentence
    title: str | None = None  # of the page

    def calls(self) -> tuple[str, str]:
        """Calls of `read_matrices` or `read_signals`, for the training and the new matrices."""
        alike = self.signals or self.test_file is not None  # labels and groups are found where they are
        again = {k: v for k, v in self.arguments.items() if alike and k not in ("labels", "groups")}
        new = f"new{Path(self.file).suffix}" if self.signals else "new.npz"
        return self._call(self.file, self.arguments), self._call(self.test_file or new, again)

    def _call(self, file: str, arguments: Mapping[str, object]) -> str:
        texts = [repr(file), *(f"{name}={value!r}" for name, value in arguments.items())]
        return f"{'read_signals' if self.signals else 'read_matrices'}({', '.join(texts)})"


def render(report: Report, origin: Origin) -> str:
    """Make the page."""
    need_page()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    verdict, plan = report.verdict, report.verdict.plan
    answer, metric = sentences(verdict), None
    figures = {"ranking": pictures.draw_ranking(verdict)}
    if verdict.learned is not None:
        try:
            fitted = report.best_estimator(verdict.learned)
        except ValueError as error:  # the page says so, and draws nothing
            answer.append(str(error))
        else:
            metric = find_metric(fitted, "metric")[0]
            figures |= pictures.draw_learned(plan, verdict.learned, fitted, report.channels, report.places)
    estimators = {name: make_method(plan, name) for name in verdict.unaided}
    if origin.steps:
        estimators = {k: make_pipeline(*origin.steps, *steps_of(made)) for k, made in estimators.items()}
    truth, confusions = plan.codes[plan.tested], {}
    if plan.classes is None:
        predicted = verdict.outcomes[verdict.best]["labels"].mean(axis=0)
        figures["predicted"] = pictures.draw_predictions(truth, predicted)
    else:
        for entry in (verdict.best, Entry(verdict.learned or verdict.unaided[0])):
            labels = verdict.outcomes[entry]["labels"]  # (n_repeats, n_tested); the counts are means
            codes = np.arange(len(plan.classes))
            counts = confusion_matrix(np.tile(truth, len(labels)), labels.ravel(), labels=codes)
            confusions[entry] = counts / len(labels)
    grouped = find_inner_groups(plan, plan.trained) is not None
    first = find_method(verdict.unaided[0]).title
    how = f"{'--save model.skops keeps' if origin.command else 'report.best_estimator() gives'} {first}"
    named = report.data.name if Path(origin.file).suffix and origin.command else "these matrices"
    folder = files("spdmetric.comparison")
    style, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    loader = PackageLoader("spdmetric.comparison", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"unbroken": _join_units, "quantile": np.quantile, "shown": _shorten}
    environment.filters |= {"plain": _format, "count_of": _count_of, "base64": _as_base64}
    environment.globals |= {"find_method": find_method, "expression": expression, "far": FAR}
    return environment.get_template("page.html").render(
        {"report": report, "verdict": verdict, "metric": metric, "origin": origin, "answer": answer},
        **remarks(verdict),
        described=[describe(m.X, m.labels, m.groups) for m in (report.data, report.test) if m is not None],
        saved=origin.saved or f"No model was saved; {how}, trained on all {len(plan.trained)} matrices.",
        pictures={name: pictures.as_svg(figure) for name, figure in figures.items()},
        title=origin.title or f"Which metric suits {named}?",  # of a file its name, never that of a folder
        left_out={Entry(name): why for name, why in plan.left_out.items()},
        warnings={at: why for at, found in verdict.outcomes.items() if (why := found["warning"])},
        **{"style": style, "script": script, "policy": _make_policy(style, script)},
        **{"confusions": confusions, "find_confusions": find_confusions, "estimators": estimators},
        program=lambda name: write_program(estimators[name], origin, groups=grouped),
    )


def need_page() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    with require_extra("The page needs Jinja2 and matplotlib", "compare"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401


def _make_policy(*texts: str) -> str:
    """Content-security policy: nothing is fetched, and of styles and scripts only these two are used."""
    style, script = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _as_base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def describe(X: np.ndarray, y: np.ndarray, groups: np.ndarray | None = None) -> dict[str, Any]:
    """A file of positive semi-definite matrices in numbers; others are refused.

    Of samples (n, views, d, d) the first matrix of each is described, but for equal ones.
    """
    samples = check_psd(X, 1)
    X = FirstView().fit_transform(samples) if samples.ndim == 4 else samples
    values = np.linalg.eigvalsh(X)  # (n, d)
    ranks = np.sum(values > X.shape[1] * np.finfo(float).eps * values[:, -1:], axis=1)
    definite = ranks == X.shape[1]
    if definite.all():
        distance = np.linalg.norm(tangent_vectors(X, mean_riemann(X)), axis=1)
    else:
        distance = np.linalg.norm(X - X.mean(axis=0), axis=(1, 2))
    middle = np.median(distance)
    spread = 1.4826 * np.median(np.abs(distance - middle))  # the standard deviation, were they Gaussian
    farthest = np.argsort(-distance, kind="stable")
    same = np.unique(samples.reshape(len(X), -1), axis=0, return_inverse=True)[1].ravel()
    kinds = np.unique(np.column_stack([same, np.unique(y, return_inverse=True)[1]]), axis=0)[:, 0]
    return {
        **{"n": len(X), "d": X.shape[1], "n_views": samples.shape[1] if samples.ndim == 4 else 1},
        "classes": _count_sizes(y),
        "groups": [] if groups is None else _count_sizes(groups),
        "definite": bool(definite.all()),
        "condition": np.where(definite, values[:, -1] / np.where(definite, values[:, 0], 1.0), np.inf),
        "ranks": ranks,
        "distance": distance,  # from the mean: affine-invariant, or Frobenius where some are singular
        "far": farthest[(distance[farthest] > middle + FAR * spread) & (spread > 0)].tolist(),
        "duplicates": len(X) - int(same.max()) - 1,  # equal to an earlier one
        "contradictory": int(np.sum(np.bincount(kinds)[same] > 1)),  # equal to one of another class
    }


def _count_sizes(labels: np.ndarray) -> list[tuple[str, int]]:
    names, counts = np.unique(labels, return_counts=True)
    return list(zip(map(str, names), counts.tolist(), strict=True))


def _count_of(n: int, one: str) -> str:
    """``1 fold``, ``2 folds``."""
    return f"{n} {one}" + "s" * (n != 1)


def _join_units(text: str) -> str:
    """Keep numbers with their errors and units on one line, by spaces that do not break."""
    return re.sub(r" (?=[±%]|points)|(?<=[±≈]) ", "\N{NO-BREAK SPACE}", text)


def _shorten(name: object) -> str:
    """A class or group of the user's, so short that no table grows out of the page."""
    text = str(name)
    return text if len(text) <= 40 else f"{text[:28]}… ({len(text)} letters)"


def _format(number: float) -> str:
    """Three digits, without a power of ten where that can be read."""
    return f"{float(f'{number:.3g}'):,.0f}" if 100 <= number < 1e7 else f"{number:#.3g}"


def write_program(estimator: BaseEstimator, origin: Origin, *, groups: bool = False) -> str:
    """Python that reads the same file, trains, and labels new matrices; ``groups``: those of the file too."""
    known, new = origin.calls()
    parts = [part for step in steps_of(estimator) for part in (step, *step.get_params().values())]
    kinds = {type(part) for part in parts if isinstance(part, BaseEstimator)}
    what = "signals" if origin.signals else "matrices"
    imports = {(f"spdmetric.io.{what}", f"read_{what}"), *((_public_module(k), k.__name__) for k in kinds)}
    if isinstance(estimator, Pipeline):
        imports.add(("sklearn.pipeline", "make_pipeline"))
    usable, of_known, of_new = "", "", ""
    if origin.skipped:
        imports.add(("spdmetric.validation", f"bad_{what}"))
        usable, of_known, of_new = _USABLE.format(what=what), "[usable(known)]", "[usable(new)]"
    columns = [f"known.X{of_known}", f"known.y{of_known}"]
    if groups:
        keywords = fit_keywords(estimator, groups=f"known.groups{of_known}")
        columns += [f"{name}={text}" for name, text in keywords.items()]
    lines = [f"from {module} import {name}" for module, name in sorted(imports)]
    lines += [usable, f"known = {known}", f"model = {expression(estimator)}"]
    lines += [f"model.fit({', '.join(columns)})", "", f"new = {new}"]
    return "\n".join([*lines, f"print(model.predict(new.X{of_new}))", ""])


_USABLE = """

def usable(found):
    bad = {{one.index for one in bad_{what}(found.X)}}
    return [k for k in range(len(found.X)) if k not in bad]

"""


def _public_module(kind: type) -> str:
    """Where a class is imported from: the part of its module's name before anything private."""
    if kind.__module__.startswith("spdmetric.estimators"):
        return "spdmetric"
    return kind.__module__.partition("._")[0]
