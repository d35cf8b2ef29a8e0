"""The API pages: every public name of every module, in reading order."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

# What is public, in reading order: what a module lists in ``__all__``, or the names given here.  Modules hold
# more names without an underscore, for each other.
PUBLIC: dict[str, tuple[str, ...]] = {
    "spdmetric": (),
    "spdmetric.datasets": (),
    "spdmetric.io.matrices": ("read_matrices", "Matrices"),
    "spdmetric.io.signals": ("read_signals", "estimate_covariances", "Signals", "Recipe"),
    "spdmetric.io.models": ("load_recipe",),
    "spdmetric.validation": ("bad_matrices", "Bad", "check_spd"),
    "spdmetric.estimators": ("TransferClassifier",),
    "spdmetric.geometry": (
        *("tangent_vectors", "matrices_at", "log_map", "exp_map", "geodesic"),
        *("distance_euclid", "distance_logeuclid", "distance_riemann", "distance_stein", "pairwise_distance"),
        *("kernel_tangent", "mean_euclid", "mean_logeuclid", "mean_riemann", "median_riemann"),
    ),
    "spdmetric.linalg.symmetric": (
        *("symmetrize", "congruence", "logm", "expm", "powm", "sqrtm", "invsqrtm", "vech", "unvech"),
    ),
    "spdmetric.manifolds": ("Ball", "BallPoint", "RankBall", "RankPoint"),
    "spdmetric.objectives.alignment": ("Misalignment",),
    "spdmetric.objectives.data": ("Data", "ClassTarget", "RegressionTarget"),
    "spdmetric.solvers": (),
}

HEAD = """\
API
===

What is public is in ``spdmetric`` and in the submodules below; all else may change without notice.
``LogEuclideanClassifier``, ``LogEuclideanRegressor``, ``LogEuclideanMetricCV`` and ``LogEuclideanMetric`` are
all that most users need; from ``spdmetric.geometry`` on, the page is for those who build on the mathematics.
How the modules depend on each other: :doc:`/architecture`.

.. toctree::
   :maxdepth: 1

   commands
   sentences

"""


def public_names() -> dict[str, list[str]]:
    """Functions and classes of each module that is public."""
    names = {}
    for path, listed in PUBLIC.items():
        module = importlib.import_module(path)
        values = {name: getattr(module, name) for name in listed or module.__all__}
        names[path] = [
            name for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)
        ]
    return names


def write_api(folder: Path) -> None:
    """Write ``index.rst``; autosummary makes a page of each name in it."""
    parts = [HEAD]
    for module, names in public_names().items():
        summary = (inspect.getdoc(importlib.import_module(module)) or "").partition("\n\n")[0]
        parts.append(f"{module}\n{'-' * len(module)}\n\n{summary}\n\n.. currentmodule:: {module}\n\n")
        rows = "\n".join(f"   {name}" for name in names)
        parts.append(f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{rows}\n\n")
    write_if_changed(folder / "index.rst", "".join(parts))


def write_if_changed(path: Path, text: str) -> None:
    """Leave an unchanged page alone, so that a second build does not read it again."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
