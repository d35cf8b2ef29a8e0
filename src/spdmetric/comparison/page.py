"""The page: one HTML file, its style, pictures and script inside; its words are in ``page.html``."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from sklearn.pipeline import make_pipeline

from spdmetric.comparison import pictures
from spdmetric.comparison.describe import FAR, count_of
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import FAMILIES, METHODS, expression
from spdmetric.comparison.pictures import LearnedMetric
from spdmetric.comparison.plan import Entry
from spdmetric.comparison.program import Origin, write_program
from spdmetric.comparison.run import find_inner_groups, make_method
from spdmetric.comparison.scores import SCORES
from spdmetric.comparison.verdict import confusion, find_confusions, saved_sentence, sentences
from spdmetric.extras import needing

if TYPE_CHECKING:
    from jinja2 import Template

    from spdmetric.comparison.report import Report

LIGHT, DARK = ((255, 255, 255), (10, 85, 140)), ((29, 35, 42), (124, 192, 242))  # ground of no share, of all
LONGEST = 40  # letters of a class that are shown
MANY = 12  # classes beyond which the confusion is a picture, and names are no longer all listed


def render(report: Report, origin: Origin) -> str:
    """Make the page."""
    need_page()
    return _template().render(_context(report, origin))


def need_page() -> None:
    """Say which extra is missing, before anything is computed in vain."""
    with needing("The page needs Jinja2 and matplotlib", "compare"):
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401


def _context(report: Report, origin: Origin) -> dict[str, object]:
    """What the template speaks of."""
    verdict, plan = report.verdict, report.comparison.plan
    drawn = report.learned if isinstance(report.learned, LearnedMetric) else None
    confusions = _count_confusions(report)
    shown = _draw_pictures(report, drawn, confusions)
    style = _read("page.css") + _list_shades() + "".join(picture.rules for picture in shown.values())
    script = _read("page.js")
    estimators = {
        name: make_pipeline(*origin.steps, *steps_of(make_method(plan, name)))
        if origin.steps
        else make_method(plan, name)
        for name, recentered in report.comparison.outcomes
        if not recentered
    }
    answer = sentences(verdict) + [str(report.learned)] * isinstance(report.learned, ValueError)
    groups = find_inner_groups(plan, plan.trained) is not None
    return {
        **{"report": report, "drawn": drawn, "origin": origin, "pictures": shown, "answer": answer},
        "saved": origin.saved and saved_sentence(verdict, *origin.saved),
        **{"style": style, "script": script, "policy": make_policy(style, script)},
        "left_out": {Entry(name): why for name, why in plan.left_out.items()},
        "median_distance": np.median(report.descriptions[0].distance),
        **{"confusions": confusions, "find_confusions": find_confusions, "many": MANY},
        **{"estimators": estimators, "winner": verdict.unaided[0], "scores": SCORES},
        **{"methods": METHODS, "kinds": FAMILIES, "far_enough": FAR},
        "grouped": any(find_inner_groups(plan, train) is not None for train, _ in plan.splits[0]),
        "program": lambda name: write_program(estimators[name], origin, groups=groups),
        "expression": expression,
        "csv": b64encode(report.as_csv().encode()).decode(),
        "json": b64encode(report.as_json().encode()).decode(),
    }


def _read(name: str) -> str:
    return files("spdmetric.comparison").joinpath(name).read_text("utf-8")


def make_policy(style: str, script: str) -> str:
    """Content-security policy: nothing is fetched, and of styles and scripts only these two are used."""
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _count_confusions(report: Report) -> dict[Entry, np.ndarray]:
    """Confusion of the best method, of the best learned metric, and of no learning."""
    plan, outcomes, verdict = report.comparison.plan, report.comparison.outcomes, report.verdict
    wanted = [verdict.best.entry, Entry(verdict.learned or ""), Entry("logeuclid-mean")]
    truth, n_classes = plan.codes[plan.tested], len(plan.classes)
    shown = [entry for entry in dict.fromkeys(wanted) if entry in outcomes]
    return {entry: confusion(truth, outcomes[entry].labels, n_classes) for entry in shown}


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("spdmetric.comparison", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"unbroken": _join_units, "quantile": np.quantile, "log10": np.log10}
    environment.filters |= {"shown": shorten, "share": _share, "plain": _format, "count_of": count_of}
    return environment.get_template("page.html")


def _join_units(text: str) -> str:
    """Keep numbers with their errors and units on one line, by spaces that do not break."""
    for spaced in (" ± ", " %", " points", "≈ "):
        text = text.replace(spaced, spaced.replace(" ", "\N{NO-BREAK SPACE}"))
    return text


def _draw_pictures(
    report: Report, drawn: LearnedMetric | None, confusions: dict[Entry, np.ndarray]
) -> dict[str, pictures.Picture]:
    first, plan = report.descriptions[0], report.comparison.plan
    names = list(map(str, plan.classes))
    figures = {
        "conditions": pictures.draw_conditions(first),
        "outliers": pictures.draw_outliers(first, np.unique(report.data.labels, return_inverse=True)[1]),
        "ranking": pictures.draw_ranking(report.verdict),
    }
    if len(plan.classes) > MANY:
        for k, counts in enumerate(confusions.values()):
            figures[f"confusion-{k}"] = pictures.draw_confusion(counts, names)
    if drawn is not None:
        figures["patterns"] = pictures.draw_patterns(drawn, report.channels)
        if drawn.n_candidates > 2:
            figures["candidates"] = pictures.draw_candidates(drawn)
        if not drawn.metric.embedding_.low_rank and drawn.metric.radius_ > 0:
            figures["spectrum"] = pictures.draw_spectrum(drawn)
        if drawn.weights is not None:
            figures["weighting"] = pictures.draw_weighting(drawn, report.channels)
        train, test = (plan.codes[index] for index in plan.splits[0][0])
        for which, panel in (("before", drawn.before), ("after", drawn.after)):
            figures[f"embedding-{which}"] = pictures.draw_embedding(panel, train, test, names)
    return {name: pictures.as_picture(figure, name) for name, figure in figures.items()}


def shorten(name: object) -> str:
    """A class or group of the user's, so short that no table grows out of the page."""
    text = str(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 12]}… ({len(text)} letters)"


def _format(number: float) -> str:
    """Three digits, without a power of ten where that can be read."""
    return f"{float(f'{number:.3g}'):,.0f}" if 100 <= number < 1e7 else f"{number:#.3g}"


def _share(count: float, row: np.ndarray) -> int:
    """Per cent of a row."""
    return round(100 * count / max(float(row.sum()), 1e-300))


def _list_shades() -> str:
    """Rules of the classes ``share-0`` to ``share-100``, per cent of a row of a confusion matrix."""
    light, dark = (
        "".join(
            f".share-{k}{{background:{ground};color:{ink}}}\n"
            for k, (ground, ink) in enumerate(shade(share / 100, ends) for share in range(101))
        )
        for ends in (LIGHT, DARK)
    )
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def shade(share: float, ends: tuple[tuple[int, ...], tuple[int, ...]] = LIGHT) -> tuple[str, str]:
    """Ground, between two ends by the share, and the color of letters that is easier to read on it."""
    ground = [round(none + share * (all_ - none)) for none, all_ in zip(*ends, strict=True)]
    linear = [(c / 255 + 0.055) ** 2.4 / 1.055**2.4 if c > 10 else c / 255 / 12.92 for c in ground]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))  # after WCAG 2
    black = (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05)
    return "#" + "".join(f"{part:02x}" for part in ground), "#000000" if black else "#ffffff"
