"""What the default tolerance reaches, and in how many evaluations: numbers, no times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.data import Labeled, cho2017, covariances, eegmmi, subject9, textures, toy, whitened
from benchmarks.outcomes import Absent, Bound, Line, Outcome, Setting, quantity
from spdmetric import LogEuclideanMetric
from spdmetric.geometry import distance_riemann
from spdmetric.linalg.symmetric import expm, logm

# Evaluations of `LogEuclideanMetric().fit` at commit d56d627, whose tolerance was 1e-6, absolute: the
# count that the default fits are measured against.
COMMIT = "d56d627"
FOUR = ("left_hand", "right_hand", "feet", "tongue")
SETS: dict[str, tuple[Callable[[], Labeled], int]] = {
    "subject9": (subject9, 133),
    "subject9-four": (lambda: subject9(FOUR), 110),
    "cho2017-01": (lambda: cho2017(1), 94),
    "cho2017-13": (lambda: cho2017(13), 72),
    "eegmmi-01-d21": (lambda: eegmmi(1, 21), 109),
    "eegmmi-07-d21": (lambda: eegmmi(7, 21), 189),
    "eegmmi-13-d21": (lambda: eegmmi(13, 21), 84),
    "toy8": (lambda: toy(8, 50, 2015), 26),
    "toy20": (lambda: toy(20, 50, 2015), 41),
    "toy20-n2000": (lambda: toy(20, 2000, 2015), 58),
    "textures-D2-D29": (lambda: textures("D2", "D29", 50, 2015), 49),
    "textures-D28-D92": (lambda: textures("D28", "D92", 50, 2015), 46),
}
TIGHTER = 0.01  # of the tolerance, the fit that shows what is left to gain
MOST_LOST = 1e-4  # of its alignment
RADIUS = 4.0
SCALES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


def cases() -> list[Case]:
    return [
        Case("tolerance/evaluations", evaluations, "result"),
        Case("tolerance/concentrated", lambda setting: concentrated(subject9()), "result"),
        Case("tolerance/concentrated-cho2017", lambda setting: concentrated(cho2017(1)), "result"),
        Case("tolerance/flipped", lambda setting: flipped(setting), "result"),
        Case("tolerance/45classes", lambda setting: many_classes(setting), "result"),
    ]


def both(data: Labeled, radius: float = 10.0) -> tuple[LogEuclideanMetric, LogEuclideanMetric]:
    """A fit at the default tolerance, and one at a hundredth of it."""
    loose = LogEuclideanMetric(radius)
    tight = LogEuclideanMetric(radius, tol=TIGHTER * loose.tol, max_iter=10_000)
    return loose.fit(*data), tight.fit(*data)


def lost(loose: LogEuclideanMetric, tight: LogEuclideanMetric) -> float:
    """Share of the alignment that the default tolerance leaves; negative at another, better maximum."""
    return float(1 - loose.alignment_ / tight.alignment_)


def count(metric: LogEuclideanMetric) -> int:
    return int(metric.solution_.history[-1].evaluations)


def _lost_line(name: str, value: float, most: float, **more: Any) -> Line:
    return quantity(name, value, "alignment lost", Bound("<=", most), **more)


def evaluations(setting: Setting) -> Outcome:
    """Default fits on the shared data beside those before, and what a tighter tolerance would gain."""
    lines, records = [], {}
    for name, (draw, before) in SETS.items():
        try:
            loose, tight = both(draw())
        except Absent:
            continue
        value, counts = lost(loose, tight), (count(loose), before)
        lines.append(_lost_line(name, value, MOST_LOST, evaluations=counts))
        records[name] = {
            "evaluations": counts[0],
            "evaluations_before": before,
            "evaluations_tight": count(tight),
            "lost": value,
        }
    means = [
        float(np.mean([r[key] for r in records.values()])) for key in ("evaluations", "evaluations_before")
    ]
    note = f"before: commit {COMMIT}, its default tolerance 1e-6, absolute"
    ratio = quantity(
        "mean, those before", means[0] / means[1], "evaluations, ours / before", Bound("<=", 0.5)
    )
    return Outcome([*lines, replace(ratio, evaluations=(means[0], means[1]), note=note)], records)


def concentrated(data: Labeled, scales: Sequence[float] = SCALES, radius: float = RADIUS) -> Outcome:
    """Matrices exp(t E), E the logarithms of whitened data, for smaller and smaller t."""
    X, codes = whitened(data)
    E = logm(X)
    fitted = {t: both(Labeled(expm(t * E), codes), radius) for t in scales}
    records = {
        f"{t:g}": {"radius": loose.radius_, "lost": lost(loose, tight), "evaluations": count(loose)}
        for t, (loose, tight) in fitted.items()
    }
    span = f"t = {scales[0]:g} to {scales[-1]:g}"
    lines = [
        _radius_line(min(r["radius"] for r in records.values()) / radius, note=span),
        _lost_line("tighter fit", max(r["lost"] for r in records.values()), 1e-3, note=span),
    ]
    if {1e-3, 1e-4} <= set(scales):
        loose, tight = (
            float(distance_riemann(*(fitted[t][k].reference_ for t in (1e-3, 1e-4)))) / radius for k in (0, 1)
        )
        note = f"{tight:.2g} at a hundredth of the tolerance: so far the maxima themselves are apart"
        apart = quantity("t = 1e-3, 1e-4", loose, "points apart / radius", Bound("<=", 1e-3))
        lines.append(replace(apart, note=note))
    return Outcome(lines, records, {"radius": radius})


def flipped(
    setting: Setting, n: int = 2000, share: float = 0.42, radii: Sequence[float] = (1.0, 4.0)
) -> Outcome:
    """Labels of which nearly half are wrong."""
    X, codes = toy(8, n, setting.seed)
    wrong = np.random.default_rng(setting.seed).random(n) < share
    data = Labeled(X, np.where(wrong, 1 - codes, codes))
    return _reached(data, radii)


def many_classes(setting: Setting, n: int = 600, d: int = 20, classes: int = 45) -> Outcome:
    """Many classes, each with more variance on a channel or two of its own."""
    rng = np.random.default_rng(setting.seed)
    X, _ = covariances(n, d, setting.seed)
    codes = np.arange(n) % classes
    scale = 1 + 0.5 * rng.random((classes, d))
    return _reached(Labeled(X * scale[codes][:, :, None] * scale[codes][:, None, :], codes), (RADIUS,))


def _reached(data: Labeled, radii: Sequence[float]) -> Outcome:
    lines, records = [], {}
    for radius in radii:
        loose, tight = both(data, radius)
        here = {"radius": loose.radius_, "lost": lost(loose, tight), "evaluations": count(loose)}
        records[f"{radius:g}"] = here
        note = f"radius {radius:g}"
        lines += [
            _radius_line(loose.radius_ / radius, note=note),
            _lost_line("tighter fit", here["lost"], 1e-3, note=note),
        ]
    return Outcome(lines, records)


def _radius_line(value: float, note: str) -> Line:
    return quantity("radius reached", value, "reached / radius", Bound(">=", 1 - 1e-6), note=note)
