"""The page: one HTML file with its style, its pictures and its few lines of script inside."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from spdmetric.comparison import pictures
from spdmetric.comparison.comparison import Comparison
from spdmetric.comparison.describe import FAR, Description
from spdmetric.comparison.html import (
    confusion_table,
    definitions,
    escape,
    figure,
    paragraphs,
    section,
    sortable_table,
)
from spdmetric.comparison.methods import ENTRIES, FAMILIES, expression, program
from spdmetric.comparison.verdict import (
    Verdict,
    best_sentence,
    confusion,
    learning_sentence,
    metric_sentence,
    number,
    signed,
    title,
)
from spdmetric.estimators.cv import RADII
from spdmetric.io.matrices import Matrices

SHOWN_FAR = 10
TIMES, DASH = " \N{MULTIPLICATION SIGN} ", "\N{EN DASH}"
SECTIONS = {
    "data": "The data",
    "accuracy": "Accuracy",
    "learned": "The learned metric",
    "embedding": "Before and after learning",
    "confusion": "Confusion of classes",
    "code": "Code to copy",
    "how": "How this was done",
}


@dataclass(frozen=True)
class Source:
    """What was read, and from where."""

    data: Matrices
    test: Matrices | None
    labels: str | None
    groups: str | None
    file: str
    test_file: str | None


def make_page(source: Source, described: list[Description], comparison: Comparison, verdict: Verdict) -> str:
    """Write the page.

    Parameters
    ----------
    source : Source
        Where the matrices come from.
    described : list of Description
        Of the matrices, and of the test matrices where there are any.
    comparison : Comparison
        All results.
    verdict : Verdict
        Their summary.

    Returns
    -------
    html : str
        A whole document that asks the network for nothing.
    """
    bodies = {
        "data": _data(source, described),
        "accuracy": _accuracy(comparison, verdict),
        "learned": _learned(comparison),
        "embedding": _embedding(comparison),
        "confusion": _confusion(comparison, verdict),
        "code": _code(source, comparison, verdict),
        "how": _how(comparison, verdict),
    }
    shown = {key: body for key, body in bodies.items() if body}
    links = "".join(f'<li><a href="#{key}">{SECTIONS[key]}</a></li>' for key in shown)
    heading = f"Which metric suits {source.data.name}?"
    return _document(
        heading,
        f"<header><h1>{escape(heading)}</h1>{_lead(described)}"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav></header>\n<main>{_answer(verdict)}'
        + "".join(section(key, SECTIONS[key], body) for key, body in shown.items())
        + f"</main>\n<footer><p>{_versions()}</p></footer>",
    )


def _document(heading: str, body: str) -> str:
    here = files("spdmetric.comparison")
    style, script = (here.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(heading)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{style}</style>\n</head>\n"
        f"<body>\n{body}\n<script>\n{script}</script>\n</body>\n</html>\n"
    )


def _lead(described: list[Description]) -> str:
    first = described[0]
    text = f"{first.n} matrices of size {first.d}{TIMES}{first.d}, {len(first.classes)} classes"
    if len(described) > 1:
        text += f"; tested on {described[1].n} others"
    return f'<p class="lead">{text}.</p>'


def _answer(verdict: Verdict) -> str:
    said = [learning_sentence(verdict), best_sentence(verdict), metric_sentence(verdict)]
    caution = (
        f"The highest of {len(verdict.lines)} numbers is flattered by chance: expect a little less of it on "
        "new matrices."
    )
    body = paragraphs([text for text in said if text] + ([caution] if len(verdict.lines) > 2 else []))
    return f'<section class="answer" aria-labelledby="answer"><h2 id="answer">The answer</h2>{body}</section>'


# ---------------------------------------------------------------------------
# The data


def _data(source: Source, described: list[Description]) -> str:
    first = described[0]
    rows = _described(source.file, first)
    if len(described) > 1:
        rows |= {
            f"Test: {key.lower()}": text for key, text in _described(source.test_file, described[1]).items()
        }
    said = [*source.data.notes, *(source.test.notes if source.test else ()), *_cautions(first)]
    notes = (
        f"<h3>To know about them</h3><ul>{''.join(f'<li>{escape(t)}</li>' for t in said)}</ul>"
        if said
        else ""
    )
    codes = np.unique(source.data.labels, return_inverse=True)[1]
    what = "condition number" if first.definite else "rank"
    which = "affine-invariant distance" if first.definite else "Frobenius distance"
    drawn = figure(pictures.conditions(first), f"How many matrices have which {what}.") + figure(
        pictures.outliers(first, codes), f"The {which} of every matrix from their mean: outliers stand out."
    )
    return definitions(rows) + notes + f'<div class="grid">{drawn}</div>' + _far_table(source, first)


def _described(file: str | None, d: Description) -> dict[str, str]:
    rows = {
        "File": str(file),
        "Matrices": f"{d.n}, each {d.d}{TIMES}{d.d}, stored as {d.dtype}",
        "Classes": ", ".join(f"{name}: {count}" for name, count in zip(d.classes, d.counts, strict=True)),
    }
    if d.groups:
        names = ", ".join(f"{name}: {count}" for name, count in d.groups[:12])
        rows["Groups"] = f"{len(d.groups)} ({names}{', ...' if len(d.groups) > 12 else ''})"
    ranks = " to ".join(str(rank) for rank in sorted({int(d.ranks.min()), int(d.ranks.max())}))
    rows["Rank"] = f"full, {d.d}" if d.definite else f"{ranks} of {d.d}"
    if d.definite:
        low, middle, high = np.quantile(d.condition, [0.05, 0.5, 0.95])
        rows["Condition number"] = (
            f"median {middle:.3g}; 5 to 95 per cent: {low:.3g} to {high:.3g}; largest {d.condition.max():.3g}"
        )
    rows["Mean variance"] = f"trace / d between {d.scale[0]:.3g} and {d.scale[1]:.3g}"
    rows["Outliers"] = (
        f"{len(d.far)} farther from the mean than the median by {FAR:g} robust standard deviations"
    )
    return rows


def _cautions(d: Description) -> list[str]:
    said = []
    if d.duplicates:
        said.append(
            f"{d.duplicates} matrices equal an earlier one: a copy in training and in test flatters 1-NN."
        )
    if not d.definite:
        said.append("Some matrices are singular: only methods that allow it were run.")
    elif d.condition.max() > 1e10:
        said.append(
            "Some condition numbers exceed 1e10: shrinkage would make the small eigenvalues mean more."
        )
    if max(d.counts) > 1.5 * min(d.counts):
        said.append("The classes differ in size: read the balanced accuracy too, the mean over classes.")
    if d.n < d.d * (d.d + 1) // 2:
        said.append(
            f"There are fewer matrices ({d.n}) than entries of one ({d.d * (d.d + 1) // 2}): expect low "
            "ranks or small radii to do better than a full metric."
        )
    return said


def _far_table(source: Source, d: Description) -> str:
    if not d.far:
        return ""
    y = source.data.labels
    middle = np.median(d.distance)
    rows = [
        [(str(i), i), (str(y[i]), None), (f"{d.distance[i]:.3g}", d.distance[i])]
        + [(f"{d.distance[i] / middle:.2f}", d.distance[i] / middle)]
        for i in d.far[:SHOWN_FAR]
    ]
    more = f" The {SHOWN_FAR} farthest of {len(d.far)}." if len(d.far) > SHOWN_FAR else ""
    return sortable_table(
        ["Matrix, counted from 0", "Class", "Distance from the mean", "Times the median"],
        rows,
        f"Matrices that lie far from the others. Nothing was removed.{more}",
        "far",
    )


# ---------------------------------------------------------------------------
# Results


def _accuracy(comparison: Comparison, verdict: Verdict) -> str:
    counts = np.bincount(comparison.plan.codes[comparison.plan.tested])
    unbalanced = counts.max() > 1.2 * counts[counts > 0].min()
    head = ["Method", "Accuracy, %", "± s.e.", "Behind the best", "Kind", "Seconds a fold"]
    rows = []
    for line in verdict.lines:
        family = ENTRIES[line.method].family
        behind = DASH if line.behind is None else ("" if line.behind.sign else "≈ ") + number(line.behind)
        row: list[tuple[str, object]] = [
            (title(line.method), None),
            (f"{line.accuracy.mean:.1f}", line.accuracy.mean),
            (f"{line.accuracy.se:.1f}" if np.isfinite(line.accuracy.se) else DASH, line.accuracy.se),
            (behind, 0.0 if line.behind is None else line.behind.mean),
            (family, None),
            (f"{line.seconds:.2f}", line.seconds),
        ]
        if unbalanced:
            row.insert(3, (f"{line.balanced:.1f}", line.balanced))
        rows.append(row)
    if unbalanced:
        head.insert(3, "Balanced, %")
    caption = (
        f"Accuracy with its standard error over {_units(comparison, verdict)}. The distance to the best is "
        "paired, matrix by matrix; ≈ marks those whose 95 % interval holds zero. Seconds are those of one "
        "method alone."
    )
    kinds = "; ".join(f"{key}: {text}" for key, text in FAMILIES.items())
    plot = figure(
        pictures.accuracy(verdict),
        "Accuracy with one standard error to each side; dashed, always guessing the largest class.",
    )
    return (
        sortable_table(head, rows, caption, "accuracies", best=True, falling=("Accuracy, %", "Balanced, %"))
        + paragraphs([f"{comparison.plan.how} Kinds: {kinds}."])
        + f'<div class="grid">{plot}{_gains(verdict)}</div>'
    )


def _gains(verdict: Verdict) -> str:
    """Learning against no learning, for each classifier that follows both."""
    if not verdict.pairs:
        return ""
    rows: list[list[tuple[str, object]]] = [
        [
            (title(pair.learned).partition(" + ")[2], None),
            (signed(pair.gain.mean), pair.gain.mean),
            (f"{pair.gain.se:.1f}", pair.gain.se),
            (
                f"{signed(pair.gain.mean - pair.gain.half)} to {signed(pair.gain.mean + pair.gain.half)}",
                pair.gain.mean - pair.gain.half,
            ),
        ]
        for pair in verdict.pairs
    ]
    caption = (
        "Points gained by learning, radius and rank by cross-validation, over the metric at the mean, with "
        "the same classifier after both."
    )
    head = ["Classifier", "Gain", "± s.e.", "95 % interval"]
    return "<div><h3>Does learning help?</h3>" + sortable_table(head, rows, caption, "gains") + "</div>"


def _units(comparison: Comparison, verdict: Verdict) -> str:
    if verdict.n_clusters is not None:
        return f"{verdict.n_clusters} groups"
    return f"{len(comparison.plan.tested)} matrices"


def _learned(comparison: Comparison) -> str:
    found = comparison.learned
    if found is None:
        return ""
    chosen, n = found["chosen"], len(comparison.plan.trained)
    rank = "full rank" if chosen["rank"] is None else f"rank {chosen['rank']}"
    idle = chosen["radius"] == 0 and chosen["rank"] is None
    text = (
        f"Learned from all {n} {'training ' if len(comparison.plan.codes) != n else ''}matrices, to look at. "
        f"Cross-validation among them chose {rank} and radius {chosen['radius']:g}"
        f"{', which is no learning' if idle else ''}."
    )
    drawn = [
        figure(
            pictures.alignment(found),
            "Kernel-target alignment of the training matrices grows with the radius whether or not accuracy "
            "does: the radius is the capacity of the model. Radius 0 is no learning.",
        ),
        figure(
            pictures.candidates(found),
            "Cross-validated 1-NN accuracy, per cent, of every radius and rank; framed, the one chosen.",
        ),
    ]
    spectrum = pictures.spectra(found)
    if spectrum is not None:
        drawn.append(
            figure(
                spectrum,
                f"Spectrum of the learned reference point G at full rank and radius "
                f"{found['reference_radius']:g}, of the mean where learning starts, and of G seen from the "
                "mean, where 1 is no change.",
            )
        )
    drawn.append(figure(pictures.eigenvectors(found), _eigenvector_caption("reference" in found)))
    return paragraphs([text]) + f'<div class="grid">{"".join(drawn)}</div>'


def _eigenvector_caption(full: bool) -> str:
    if full:
        return "Eigenvectors of log G, one a column: red and blue are opposite signs."
    return "Rows of the learned low-rank factor W, one a column: red and blue are opposite signs."


def _embedding(comparison: Comparison) -> str:
    panels = comparison.embedding
    if panels is None:
        return ""
    plan = comparison.plan
    train, test = (plan.codes[index] for index in plan.splits[0][0])
    names = tuple(map(str, plan.classes))
    drawn = [
        figure(
            pictures.embedding(panels[which], train, test, names, which),
            f"{which.capitalize()} learning. Large: held-out matrices; small and pale: training matrices.",
        )
        for which in ("before", "after")
    ]
    text = (
        "Principal components of the vectors of one fold. Learning saw the labels of the pale points and not "
        "those of the large ones: judge by the large ones."
    )
    return paragraphs([text]) + f'<div class="grid">{"".join(drawn)}</div>'


def _confusion(comparison: Comparison, verdict: Verdict) -> str:
    plan = comparison.plan
    truth, names = plan.codes[plan.tested], tuple(map(str, plan.classes))
    wanted = [verdict.best.method, "logeuclid-mean", "logeuclid-kta-cv"]
    tables = [
        f"<div><h3>{escape(title(method))}</h3>"
        + confusion_table(
            confusion(truth, comparison.given[method], len(names)), names, f"Confusion of {title(method)}"
        )
        + "</div>"
        for method in dict.fromkeys(wanted)
        if method in comparison.given
    ]
    repeats = len(plan.splits)
    text = "Rows are true classes, columns the labels given; counts, and per cent of the row."
    if repeats > 1:
        text += f" Counts are means over the {repeats} repeats."
    return paragraphs([text]) + f'<div class="grid">{"".join(tables)}</div>'


# ---------------------------------------------------------------------------
# Code and method


def _code(source: Source, comparison: Comparison, verdict: Verdict) -> str:
    plan = comparison.plan
    d, n = plan.X.shape[1], len(plan.trained)
    # Where the labels are in the file they are found; what is only for the folds is not needed.
    labels = "" if source.labels is None else f", labels={source.labels!r}"
    calls = (f"read_matrices({source.file!r}{labels})", f"read_matrices({source.test_file or 'new.npz'!r})")
    wanted = dict.fromkeys([verdict.best.method, "logeuclid-kta-cv"])
    parts = []
    for method in wanted:
        if method in comparison.given:
            role = "The most accurate" if method == verdict.best.method else "The learned metric"
            code = program(method, plan.means, d, n, *calls)
            name = f"{role}: {title(method)}"
            parts.append(
                f'<h3>{escape(name)}</h3><pre tabindex="0" role="region" aria-label="{escape(name)}"><code>'
                f"{escape(code)}</code></pre>"
            )
    others = "".join(
        f"<dt>{escape(title(m))}</dt><dd><code>{escape(expression(m, plan.means, d, n))}</code></dd>"
        for m in comparison.given
        if m not in wanted
    )
    rest = f"<details><summary>The other methods</summary><dl>{others}</dl></details>" if others else ""
    return "".join(parts) + rest


def _how(comparison: Comparison, verdict: Verdict) -> str:
    plan = comparison.plan
    ranks = "its usual ranks" if plan.means.ranks is None else f"ranks {_listed(plan.means.ranks)}"
    learned = (
        f"{plan.how} Whatever a method learns or chooses, it learns and chooses from the training matrices "
        f"of the fold alone: the metric by cross-validation tries the radii {_listed(RADII)} and {ranks} in "
        f"{plan.means.inner} inner folds, judged by nearest neighbors."
    )
    errors = (
        f"Standard errors are over {_units(comparison, verdict)}, 95 % intervals from the t distribution. "
        "They tell what other test matrices of this kind would change, not what other training matrices "
        "would. Comparing learning with no learning by one nearest neighbor was planned beforehand; "
        "everything else on this page is looked at after."
    )
    text = paragraphs([learned, errors, f"Seed of the folds: {plan.seed}. Nothing was removed or repaired."])
    for heading, told in (
        ("Not run", plan.left_out),
        ("Failed", comparison.failed),
        ("Warned", comparison.warned),
    ):
        text += _told(heading, told)
    return text


def _listed(values: Iterable[object]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _told(heading: str, told: dict[str, str]) -> str:
    items = "".join(f"<li>{escape(title(m))}: {escape(why)}.</li>" for m, why in told.items())
    return f"<h3>{heading}</h3><ul>{items}</ul>" if told else ""


def _versions() -> str:
    import pyriemann
    import sklearn

    from spdmetric import __version__

    parts: Iterable[tuple[str, str]] = (
        ("spdmetric", __version__),
        ("NumPy", np.__version__),
        ("scikit-learn", sklearn.__version__),
        ("pyRiemann", pyriemann.__version__),
        ("Python", platform.python_version()),
    )
    made = ", ".join(f"{name} {version}" for name, version in parts)
    return (
        f"Made by spdmetric compare: {made}. The learned metrics are those of F. Yger and M. Sugiyama, "
        "Supervised LogEuclidean Metric Learning for Symmetric Positive Definite Matrices, "
        "arXiv:1502.03505, 2015."
    )
