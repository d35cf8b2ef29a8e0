"""Learn the reference point of a LogEuclidean metric on SPD matrices.

The rooms, in reading order: `matrices` (stacks of symmetric matrices and their
derivatives), `geometry` (of the data), `manifolds` (of the parameter), `alignment` and
`gaussian` (the objectives), `solvers`, `estimators` (the scikit-learn face), `datasets`,
`plots` (displays).
"""

from importlib import import_module
from typing import Any

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV

__version__ = "0.1.0.dev0"
__all__ = ["LogEuclideanMetric", "LogEuclideanMetricCV", "__version__"]

# Found when they are asked for, so that importing the package stays quick.
_LATER = {
    "EmbeddingDisplay": "plots",
    "PairDistanceDisplay": "plots",
    "PatternsDisplay": "plots",
    "RadiusPathDisplay": "plots",
    "ReferenceSpectrumDisplay": "plots",
    "load": "models",
    "pipelines_folder": "folders",
    "save": "models",
}
__all__ += list(_LATER)


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(f"spdmetric.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
