"""The API pages: every public name, by topic; what only builders of methods need is on a page of its own."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import NamedTuple


class Topic(NamedTuple):
    """A page: its name, title and first sentence, and the names of each module on it."""

    page: str
    title: str
    summary: str
    names: dict[str, tuple[str, ...]]


TOPICS = (
    Topic(
        "estimators",
        "Estimators",
        "Four that learn, from the one that chooses everything to the one that leaves all to you, and steps "
        "to put before them.",
        {
            "spdmetric": (
                *("LogEuclideanClassifier", "LogEuclideanRegressor", "LogEuclideanMetricCV"),
                *("LogEuclideanMetric", "CommonRange", "Shrinkage", "FilterBankCovariances"),
            ),
            "spdmetric.estimators": ("TransferClassifier",),
        },
    ),
    Topic(
        "comparison",
        "Comparison of methods",
        "Which method suits my matrices?",
        {"spdmetric": ("compare", "pipelines_folder")},
    ),
    Topic(
        "displays",
        "Pictures",
        "Displays in scikit-learn's manner: ``from_estimator`` draws, and the object keeps what is shown.",
        {
            "spdmetric": (
                *("EmbeddingDisplay", "PatternsDisplay", "ChoiceDisplay", "RadiusPathDisplay"),
                *("PairDistanceDisplay", "ReferenceSpectrumDisplay"),
            )
        },
    ),
    Topic(
        "files",
        "Data and files",
        "Toy data, reading and checking of matrices, model files.",
        {
            "spdmetric": ("stack_frame", "save", "load"),
            "spdmetric.datasets": ("make_toy", "make_regression", "recenter"),
            "spdmetric.io.matrices": ("read_matrices", "Matrices"),
            "spdmetric.io.signals": ("read_signals", "estimate_covariances", "Signals", "Recipe"),
            "spdmetric.io.models": ("load_recipe",),
            "spdmetric.validation": ("bad_matrices", "Bad", "check_spd"),
        },
    ),
    Topic(
        "geometry",
        "Geometry",
        "Means, distances, kernels and tangent vectors of SPD matrices.",
        {
            "spdmetric.geometry": (
                *("mean_riemann", "median_riemann", "mean_logeuclid", "mean_euclid"),
                *("distance_riemann", "distance_logeuclid", "distance_stein", "distance_euclid"),
                *("pairwise_distance", "kernel_tangent", "tangent_vectors", "matrices_at"),
                *("log_map", "exp_map", "geodesic"),
            ),
        },
    ),
    Topic(
        "building",
        "Building blocks",
        "For those who write a manifold, an objective or a solver: :doc:`/extending`.",
        {
            "spdmetric.linalg.symmetric": (
                *("symmetrize", "congruence", "logm", "expm", "powm", "sqrtm", "invsqrtm", "vech", "unvech"),
            ),
            "spdmetric.manifolds": ("Ball", "BallPoint", "RankBall", "RankPoint"),
            "spdmetric.objectives.alignment": ("Misalignment",),
            "spdmetric.objectives.data": ("Data", "ClassTarget", "RegressionTarget"),
            "spdmetric.solvers": (
                *("trust_region", "geodesic_gradient", "stochastic_gradient", "mini_batches", "Solution"),
                *("Status", "Record", "Objective", "Evaluation", "Manifold", "Descent"),
            ),
        },
    ),
)
# Modules of which every name is public, and the topic of those that no topic lists.
IN_FULL = {"spdmetric": "estimators", "spdmetric.datasets": "files", "spdmetric.solvers": "building"}

HEAD = """\
API
===

All that is public, by topic; everything else may change without notice. Most users need one of
:obj:`~spdmetric.LogEuclideanClassifier`, :obj:`~spdmetric.LogEuclideanRegressor`,
:obj:`~spdmetric.LogEuclideanMetricCV` and :obj:`~spdmetric.LogEuclideanMetric`.

.. toctree::
   :hidden:

   {pages}
   commands
   sentences

"""
TAIL = """\
The rest
--------

:doc:`commands` has the help of every command, :doc:`sentences` all errors and warnings.
"""


def write_api(folder: Path) -> None:
    """Write a page for each topic, and an index of all; autosummary makes a page of each name."""
    topics = all_topics()
    parts = [HEAD.format(pages="\n   ".join(topic.page for topic in topics))]
    for topic in topics:
        parts.append(f"{topic.title}\n{'-' * len(topic.title)}\n\n{topic.summary}\n\n")
        parts += [_table(module, names) for module, names in topic.names.items()]
        page = [f"{topic.title}\n{'=' * len(topic.title)}\n\n{topic.summary}\n\n"]
        page += [_table(module, names, "   :toctree: generated\n") for module, names in topic.names.items()]
        write_if_changed(folder / f"{topic.page}.rst", "".join(page))
    write_if_changed(folder / "index.rst", "".join([*parts, TAIL]))


def all_topics() -> list[Topic]:
    """The topics, with the public functions and classes that none of them lists."""
    listed = {(module, name) for topic in TOPICS for module, names in topic.names.items() for name in names}
    topics = {topic.page: topic for topic in TOPICS}
    for path, page in IN_FULL.items():
        module = importlib.import_module(path)
        values = {name: getattr(module, name) for name in module.__all__ if (path, name) not in listed}
        more = tuple(name for name, of in values.items() if inspect.isclass(of) or inspect.isroutine(of))
        names = topics[page].names
        topics[page] = topics[page]._replace(names={**names, path: (*names.get(path, ()), *more)})
    return list(topics.values())


def _table(module: str, names: tuple[str, ...], option: str = "") -> str:
    rows = "\n".join(f"   {name}" for name in names)
    return f".. currentmodule:: {module}\n\n.. autosummary::\n{option}   :nosignatures:\n\n{rows}\n\n"


def write_if_changed(path: Path, text: str) -> None:
    """Leave an unchanged page alone, so that a second build does not read it again."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
