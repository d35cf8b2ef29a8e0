"""The page: one HTML file, its style, pictures and script inside; its words are in ``page.html``."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from sklearn.pipeline import make_pipeline

from spdmetric.comparison import chosen, pictures
from spdmetric.comparison.describe import FAR, counted
from spdmetric.comparison.folds import steps_of
from spdmetric.comparison.methods import FAMILIES, METHODS, expression
from spdmetric.comparison.run import inner_groups, made
from spdmetric.comparison.scores import SCORES
from spdmetric.comparison.verdict import confused, confusion, saved_sentence, sentences, title
from spdmetric.extras import needing

if TYPE_CHECKING:
    from jinja2 import Template

    from spdmetric.comparison.report import Origin, Report

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
    comparison, verdict, plan = report.comparison, report.verdict, report.comparison.plan
    confusions = _confusions(report)
    drawn = _pictures(report, confusions)
    style = _inside("page.css") + _shades() + "".join(picture.rules for picture in drawn.values())
    script = _inside("page.js")
    estimators = {
        name: make_pipeline(*origin.steps, *steps_of(made(plan, name))) if origin.steps else made(plan, name)
        for name in comparison.given
        if " " not in name
    }
    answer, learned = sentences(verdict), chosen.drawn_method(verdict)
    if learned is not None and report.drawn is None:
        answer.append(chosen.untrained_sentence(plan, learned))
    groups = inner_groups(plan, plan.trained) is not None
    grouped = any(inner_groups(plan, train) is not None for train, _ in plan.splits[0])
    return {
        **{"report": report, "origin": origin, "pictures": drawn, "answer": answer},
        "saved": origin.saved and saved_sentence(verdict, *origin.saved),
        **{"style": style, "script": script, "policy": policy(style, script)},
        "median_distance": np.median(report.described[0].distance),
        **{"confusions": confusions, "confused": confused, "many": MANY},
        **{"made": estimators, "winner": chosen.winner(verdict), "scores": SCORES},
        **{"methods": METHODS, "kinds": FAMILIES, "far_enough": FAR, "grouped": grouped},
        "program": lambda name: origin.program(estimators[name], groups=groups),
        "expression": expression,
        "csv": b64encode(report.as_csv().encode()).decode(),
        "json": b64encode(report.as_json().encode()).decode(),
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
    """Confusion of the best method, of the best learned metric, and of no learning."""
    given, plan = report.comparison.given, report.comparison.plan
    wanted = [report.verdict.best.method, chosen.drawn_method(report.verdict), "logeuclid-mean"]
    truth = plan.codes[plan.tested]
    shown = [method for method in dict.fromkeys(wanted) if method in given]
    return {method: confusion(truth, given[method], len(plan.classes)) for method in shown}


def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("spdmetric.comparison", "")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"name": title, "unbroken": _unbroken, "quantile": np.quantile}
    environment.filters |= {
        "log10": np.log10,
        "shown": shown,
        "share": _share,
        "plain": _plain,
        "counted": counted,
    }
    return environment.get_template("page.html")


def _unbroken(text: str) -> str:
    """Keep numbers with their errors and units on one line, by spaces that do not break."""
    for spaced in (" ± ", " %", " points", "≈ "):
        text = text.replace(spaced, spaced.replace(" ", "\N{NO-BREAK SPACE}"))
    return text


def _pictures(report: Report, confusions: dict[str, np.ndarray]) -> dict[str, pictures.Picture]:
    first, drawn, plan = report.described[0], report.drawn, report.comparison.plan
    names = list(map(str, plan.classes))
    figures = {
        "conditions": pictures.conditions(first),
        "outliers": pictures.outliers(first, np.unique(report.data.labels, return_inverse=True)[1]),
        "ranking": pictures.ranking(report.verdict),
    }
    if len(plan.classes) > MANY:
        figures |= {f"confusion-{k}": pictures.confusion(c, names) for k, c in enumerate(confusions.values())}
    if drawn is not None:
        figures["patterns"] = pictures.patterns(drawn, report.channels)
        if drawn.n_candidates > 2:
            figures["candidates"] = pictures.candidates(drawn)
        if not drawn.metric.embedding_.low_rank and drawn.metric.radius_ > 0:
            figures["spectrum"] = pictures.spectrum(drawn)
        if drawn.weights is not None:
            figures["weighting"] = pictures.weighting(drawn, report.channels)
        train, test = (plan.codes[index] for index in plan.splits[0][0])
        for which, panel in (("before", drawn.before), ("after", drawn.after)):
            figures[f"embedding-{which}"] = pictures.embedding(panel, train, test, names)
    return {name: pictures.as_picture(figure, name) for name, figure in figures.items()}


def shown(name: object) -> str:
    """A class or group of the user's, so short that no table grows out of the page."""
    text = str(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 12]}… ({len(text)} letters)"


def _plain(number: float) -> str:
    """Three digits, without a power of ten where that can be read."""
    return f"{float(f'{number:.3g}'):,.0f}" if 100 <= number < 1e7 else f"{number:#.3g}"


def _share(count: float, row: np.ndarray) -> int:
    """Per cent of a row."""
    return round(100 * count / max(float(row.sum()), 1e-300))


def _shades() -> str:
    """Rules of the classes ``share-0`` to ``share-100``, per cent of a row of a confusion matrix."""
    light, dark = (
        "".join(
            f".share-{k}{{background:{ground};color:{ink}}}\n"
            for k, (ground, ink) in enumerate(shaded(share / 100, ends) for share in range(101))
        )
        for ends in (LIGHT, DARK)
    )
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def shaded(share: float, ends: tuple[tuple[int, ...], tuple[int, ...]] = LIGHT) -> tuple[str, str]:
    """Ground, between two ends by the share, and the color of letters that is easier to read on it."""
    ground = [round(none + share * (all_ - none)) for none, all_ in zip(*ends, strict=True)]
    linear = [(c / 255 + 0.055) ** 2.4 / 1.055**2.4 if c > 10 else c / 255 / 12.92 for c in ground]
    luminance = float(np.dot(linear, (0.2126, 0.7152, 0.0722)))  # after WCAG 2
    black = (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05)
    return "#" + "".join(f"{part:02x}" for part in ground), "#000000" if black else "#ffffff"
