"""Learn, from labels, the reference point at which SPD matrices are flattened.

Layers, in reading order: `linalg` (symmetric matrices and their derivatives), `validation`,
`geometry` (of the data), `manifolds` (of the parameter), `objectives`, `solvers`, `distributed`,
`estimators`, `io`, `datasets`, `plots`, `comparison`, `cli`.

Every public name is imported when it is asked for: ``import spdmetric`` loads nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spdmetric.comparison.report import compare as compare
    from spdmetric.estimators import CommonRange as CommonRange
    from spdmetric.estimators import FilterBankCovariances as FilterBankCovariances
    from spdmetric.estimators import LogEuclideanClassifier as LogEuclideanClassifier
    from spdmetric.estimators import LogEuclideanMetric as LogEuclideanMetric
    from spdmetric.estimators import LogEuclideanMetricCV as LogEuclideanMetricCV
    from spdmetric.estimators import LogEuclideanRegressor as LogEuclideanRegressor
    from spdmetric.estimators import Shrinkage as Shrinkage
    from spdmetric.io.frames import stack_frame as stack_frame
    from spdmetric.io.models import load as load
    from spdmetric.io.models import save as save
    from spdmetric.plots import ChoiceDisplay as ChoiceDisplay
    from spdmetric.plots import EmbeddingDisplay as EmbeddingDisplay
    from spdmetric.plots import PairDistanceDisplay as PairDistanceDisplay
    from spdmetric.plots import PatternsDisplay as PatternsDisplay
    from spdmetric.plots import RadiusPathDisplay as RadiusPathDisplay
    from spdmetric.plots import ReferenceSpectrumDisplay as ReferenceSpectrumDisplay
    from spdmetric.views import stack_views as stack_views

__version__ = "0.2.0"

_NAMES = {
    "CommonRange": "estimators",
    "FilterBankCovariances": "estimators",
    "LogEuclideanClassifier": "estimators",
    "LogEuclideanMetric": "estimators",
    "LogEuclideanMetricCV": "estimators",
    "LogEuclideanRegressor": "estimators",
    "Shrinkage": "estimators",
    "compare": "comparison.report",
    "load": "io.models",
    "save": "io.models",
    "stack_frame": "io.frames",
    "stack_views": "views",
    "ChoiceDisplay": "plots",
    "EmbeddingDisplay": "plots",
    "PairDistanceDisplay": "plots",
    "PatternsDisplay": "plots",
    "RadiusPathDisplay": "plots",
    "ReferenceSpectrumDisplay": "plots",
}
_MODULES = {
    *("datasets", "geometry", "io", "linalg", "manifolds", "objectives", "plots", "solvers", "validation"),
}

__all__ = ["__version__", *_NAMES, "pipelines_folder"]


def pipelines_folder() -> str:
    """Folder of the MOABB pipeline files that come with the package.

    It is for MOABB's ``parse_pipelines_from_directory`` or its option ``--pipelines``.  It has no
    Python file, which MOABB would take for a pipeline.

    Examples
    --------
    >>> from pathlib import Path
    >>> from spdmetric import pipelines_folder
    >>> sorted(path.stem for path in Path(pipelines_folder()).glob("le_*.yml"))[:4]
    ['le_augmented', 'le_chosen', 'le_cv', 'le_identity']
    """
    return f"{__path__[0]}/pipelines"


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(import_module(f"spdmetric.{_NAMES[name]}"), name)
    if name in _MODULES:
        return import_module(f"spdmetric.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
