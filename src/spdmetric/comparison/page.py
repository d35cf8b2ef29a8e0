"""The page: one HTML file, its style, pictures and script inside; its words are in ``page.html``."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline

from spdmetric.comparison import pictures
from spdmetric.comparison.baselines import FirstView
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import expression, find_method
from spdmetric.comparison.plan import Entry
from spdmetric.comparison.program import Origin, write_program
from spdmetric.comparison.run import find_inner_groups, make_method
from spdmetric.comparison.verdict import find_confusions, remarks, saved_sentence, sentences
from spdmetric.extras import require_extra
from spdmetric.geometry import mean_riemann, tangent_vectors
from spdmetric.plots.style import find_metric
from spdmetric.validation import check_psd

if TYPE_CHECKING:
    from spdmetric.comparison.report import Report

FAR = 5.0  # robust standard deviations beyond which a matrix is called far


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
    shown = (verdict.best, Entry(verdict.learned or verdict.unaided[0]))
    labels = {entry: verdict.outcomes[entry]["labels"] for entry in shown}
    if plan.classes is None:
        figures["predicted"] = pictures.draw_predictions(truth, labels[verdict.best].mean(axis=0))
    else:
        codes, repeats = np.arange(len(plan.classes)), len(plan.splits)
        true = np.tile(truth, repeats)
        counts = {entry: confusion_matrix(true, own.ravel(), labels=codes) for entry, own in labels.items()}
        confusions = {entry: own / repeats for entry, own in counts.items()}  # means
    groups = find_inner_groups(plan, plan.trained) is not None
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
        saved=_tell_saved(report, origin),
        pictures={name: pictures.as_image(figure) for name, figure in figures.items()},
        title=origin.title or f"Which metric suits {named}?",  # of a file its name, never that of a folder
        **{"style": style, "script": script, "policy": _make_policy(style, script)},
        left_out={Entry(name): why for name, why in plan.left_out.items()},
        warnings={at: why for at, found in verdict.outcomes.items() if (why := found["warning"])},
        **{"confusions": confusions, "find_confusions": find_confusions, "estimators": estimators},
        program=lambda name: write_program(estimators[name], origin, groups=groups),
    )


def need_page() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    with require_extra("The page needs Jinja2 and matplotlib", "compare"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401


def _tell_saved(report: Report, origin: Origin) -> str:
    if origin.saved:
        return saved_sentence(report.verdict, *origin.saved)
    title, n = find_method(report.verdict.unaided[0]).title, len(report.verdict.plan.trained)
    how = "--save model.skops keeps" if origin.command else "report.best_estimator() gives"
    return f"No model was saved; {how} {title}, trained on all {n} matrices."


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
