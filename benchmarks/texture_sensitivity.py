"""How the texture accuracies depend on what the paper does not print.

Over the six pairs of D2, D28, D29 and D92: mean 1-NN accuracy of the LogEuclidean
distance at I and at the learned G, of the affine-invariant and of the Euclidean distance,
for each choice of the two frequencies, of what is kept of the response, of what the
filters see, and of whether gray levels are standardized.  The seeds are the same in
every cell, so that two cells differ by their settings and not by their draws.

    python -m benchmarks.texture_sensitivity --data FOLDER_OF_BRODATZ_IMAGES

Five repeats take some minutes on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from reproduction.datasets import Texture, TexturePair, gabor_responses, load_images, sample_covariances
from reproduction.datasets.textures import SIZE
from reproduction.stamps import Stamp, code_stamp
from spdmetric import LogEuclideanMetric
from spdmetric.geometry import pairwise_distance
from spdmetric.linalg.symmetric import congruence, invsqrtm

NAMES = ("D2", "D28", "D29", "D92")
PAIRS = tuple(combinations(NAMES, 2))
METHODS = ("logeuclid", "learned", "riemann", "euclid")
HEADINGS = {"logeuclid": "LE at I", "learned": "LE at G_KTA", "riemann": "delta_r", "euclid": "delta_e"}
FREQUENCIES = ((0.1, 0.3), (0.1, 0.2), (0.2, 0.4), (0.05, 0.1))
KINDS = ("magnitude", "real")
FILTERINGS = ("half", "image", "patch")

# Accuracies (%) of the paper, pair by pair.  Its table prints D28-D29 and D28-D92 as copies of
# D2-D29 and D2-D92; those two rows are taken from the comments of its source.
PAPER = {
    "logeuclid": (86.37, 75.50, 74.88, 75.83, 97.87, 83.68),
    "learned": (88.39, 76.69, 76.71, 77.53, 98.40, 85.83),
    "riemann": (86.31, 75.14, 74.33, 76.50, 97.67, 83.48),
    "euclid": (63.53, 64.03, 68.05, 55.67, 72.93, 65.93),
}
PRINTED_MEANS = {"logeuclid": 78.47, "learned": 80.17, "riemann": 78.12, "euclid": 65.60}


# ---------------------------------------------------------------------------
# Compute


class Settings(NamedTuple):
    """How an image becomes covariances; the first of each is the package's."""

    size: int = SIZE
    filtering: str = FILTERINGS[0]
    standardize: bool = True
    frequencies: tuple[float, ...] = FREQUENCIES[0]
    n_angles: int = 4
    kind: str = KINDS[0]

    def responses(self, image: np.ndarray) -> np.ndarray:
        return gabor_responses(image, frequencies=self.frequencies, n_angles=self.n_angles, kind=self.kind)

    def scaled(self, image: np.ndarray) -> np.ndarray:
        return (image - image.mean()) / image.std() if self.standardize else image


class Variant(Texture):
    """A texture by other settings than the package's."""

    def __init__(self, image: np.ndarray, settings: Settings, *, name: str):
        super().__init__(image, name=name)
        self.settings, middle = settings, image.shape[1] // 2
        if settings.filtering == "image":
            whole = settings.responses(settings.scaled(image))
            parts = whole[..., :middle], whole[..., middle:]
        else:
            parts = settings.scaled(image[:, :middle]), settings.scaled(image[:, middle:])
        if settings.filtering == "half":
            parts = settings.responses(parts[0]), settings.responses(parts[1])
        self.halves = dict(zip(("left", "right"), parts, strict=True))

    def draw(self, half: str, n: int, *, random_state: Any = None) -> np.ndarray:
        if self.settings.filtering != "patch":
            return super().draw(half, n, random_state=random_state)
        rows, columns = self.positions(half, n, random_state).T
        windows = np.lib.stride_tricks.sliding_window_view(self.halves[half], (SIZE, SIZE))
        responses = self.settings.responses(windows[rows, columns])  # (n_filters, n, size, size)
        return sample_covariances(responses.reshape(*responses.shape[:2], -1).transpose(1, 0, 2))


def grid() -> Iterator[Settings]:
    for standardize, filtering, kind, frequencies in product((True, False), FILTERINGS, KINDS, FREQUENCIES):
        yield Settings(filtering=filtering, standardize=standardize, frequencies=frequencies, kind=kind)


def distances_riemann(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Affine-invariant distances, (len(A), len(B)), by one batch of eigenvalues."""
    whitened = congruence(invsqrtm(B)[:, None], A[None])
    return np.linalg.norm(np.log(np.linalg.eigvalsh(whitened)), axis=-1).T


def nearest_accuracy(distances: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> float:
    return float(np.mean(y[distances.argmin(axis=1)] == y_test))


def accuracies(pair: TexturePair, random_state: int) -> tuple[list[float], bool]:
    """Accuracy of each of METHODS on one draw, and whether the solver converged."""
    X, y, X_test, y_test = pair.draw(random_state=random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted and reported instead
        metric = LogEuclideanMetric().fit(X, y)
    distances = (
        pairwise_distance(X_test, X, "logeuclid"),
        pairwise_distance(X_test, X, "logeuclid", reference=metric.reference_),
        distances_riemann(X_test, X),
        pairwise_distance(X_test, X, "euclid"),
    )
    return [nearest_accuracy(D, y, y_test) for D in distances], metric.solution_.converged


def seed_of(seed: int, pair: int, repeat: int) -> int:
    return int(np.random.SeedSequence([seed, pair, repeat]).generate_state(1)[0])


def compute_cell(
    images: dict[str, np.ndarray], settings: Settings, repeats: int, seed: int, bar: tqdm
) -> dict[str, Any]:
    start = time.perf_counter()
    textures = {name: Variant(images[name], settings, name=name) for name in NAMES}
    results = np.empty((len(PAIRS), repeats, len(METHODS)))
    unconverged = 0
    for p, (first, second) in enumerate(PAIRS):
        pair = TexturePair(textures[first], textures[second])
        for r in range(repeats):
            results[p, r], converged = accuracies(pair, seed_of(seed, p, r))
            unconverged += not converged
            bar.update()
    return {
        "settings": settings._asdict(),
        "n": len(PAIRS) * repeats,
        "seed": seed,
        "accuracy": {method: summary(100 * results[..., m], method) for m, method in enumerate(METHODS)},
        "unconverged_fits": unconverged,
        "seconds": round(time.perf_counter() - start, 2),
    }


def summary(percent: np.ndarray, method: str) -> dict[str, Any]:
    """Describe accuracies of shape (pairs, repeats).

    ``se`` is over pairs and repeats alike; ``se_draws`` over draws only, the six pairs
    being given: it is the one to hold against the difference of two cells.
    """
    n_pairs, repeats = percent.shape
    by_pair = percent.mean(axis=1)
    spread = percent.var(axis=1, ddof=1).sum() if repeats > 1 else np.nan
    return {
        "mean": rounded(percent.mean()),
        "se": rounded(percent.std(ddof=1) / np.sqrt(percent.size)),
        "se_draws": rounded(np.sqrt(spread / repeats) / n_pairs),
        "by_pair": {f"{a}-{b}": rounded(v) for (a, b), v in zip(PAIRS, by_pair, strict=True)},
        "correlation_with_paper": rounded(np.corrcoef(by_pair, PAPER[method])[0, 1]),
    }


def rounded(x: float) -> float | None:
    return round(float(x), 3) if np.isfinite(x) else None  # JSON has no NaN


# ---------------------------------------------------------------------------
# Write and show


def report(cells: list[dict[str, Any]], repeats: int, seed: int) -> dict[str, Any]:
    pairs = [f"{a}-{b}" for a, b in PAIRS]
    return {
        "what": "Mean 1-NN accuracy (%) over six pairs of Brodatz textures, by settings.",
        "pairs": pairs,
        "n_train": 50,
        "n_test": 300,
        "radius": LogEuclideanMetric().radius,
        "repeats": repeats,
        "seed": seed,
        "software": {name: version(name) for name in ("spdmetric", "numpy", "scipy", "scikit-image")},
        "paper": {
            "by_pair": {method: dict(zip(pairs, PAPER[method], strict=True)) for method in METHODS},
            "printed_means": PRINTED_MEANS,
        },
        "cells": cells,
        "stamp": Stamp(code_stamp())._asdict(),
    }


def write(content: dict[str, Any], path: Path) -> None:
    """Write a JSON file whole or not at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, allow_nan=False)
            file.write("\n")
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def table(cells: list[dict[str, Any]]) -> str:
    heading = f"{'gray levels':13}{'filtered':10}{'kind':11}{'frequencies':13}"
    lines = [heading + "".join(f"{HEADINGS[m]:>15}" for m in METHODS) + f"{'corr. LE':>10}"]
    for cell in cells:
        s, accuracy = cell["settings"], cell["accuracy"]
        gray = "standardized" if s["standardize"] else "raw"
        line = f"{gray:13}{s['filtering']:10}{s['kind']:11}{', '.join(map(str, s['frequencies'])):13}"
        line += "".join(f"{accuracy[m]['mean']:8.1f} +-{show(accuracy[m]['se']):>5}" for m in METHODS)
        lines.append(line + f"{show(accuracy['logeuclid']['correlation_with_paper']):>10}")
    for label, means in (
        ("paper, printed means", PRINTED_MEANS),
        ("paper, means of six different rows", {m: np.mean(PAPER[m]) for m in METHODS}),
    ):
        lines.append(f"{label:47}" + "".join(f"{means[m]:8.1f}       " for m in METHODS))
    lines.append(
        "+- standard error over pairs and repeats; corr. LE: correlation over the six pairs, LE at I,"
    )
    lines.append("with the paper (rows D28-D29 and D28-D92 from the comments of its source).")
    return "\n".join(lines)


def show(x: float | None) -> str:
    return "-" if x is None else f"{x:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with D2, D28, D29 and D92")
    parser.add_argument("--repeats", type=int, default=5, help="draws per pair (default 5)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    arguments = parser.parse_args()
    if arguments.repeats < 1 or arguments.seed < 0:
        parser.error("--repeats must be at least 1 and --seed at least 0")
    if not arguments.out.parent.is_dir():
        parser.error(f"--out: there is no folder {arguments.out.parent}")
    try:
        images = load_images(arguments.data, NAMES)
    except (FileNotFoundError, ValueError) as error:
        parser.error(f"--data: {error}")
    settings = list(grid())
    total = len(settings) * len(PAIRS) * arguments.repeats
    # One core: a benchmark should not depend on how many the machine has.
    with threadpool_limits(1), tqdm(total=total, unit="draw", disable=not sys.stderr.isatty()) as bar:
        cells = [compute_cell(images, s, arguments.repeats, arguments.seed, bar) for s in settings]
    write(report(cells, arguments.repeats, arguments.seed), arguments.out)
    print(table(cells))


if __name__ == "__main__":
    main()
