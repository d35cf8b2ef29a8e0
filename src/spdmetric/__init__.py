"""Learn the reference point of a LogEuclidean metric on SPD matrices.

The rooms, in reading order: `matrices` (stacks of symmetric matrices and their
derivatives), `geometry` (of the data), `manifolds` (of the parameter), `alignment` and
`gaussian` (the objectives), `solvers`, `estimators` (the scikit-learn face), `datasets`.
"""

from typing import Any

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV

__version__ = "0.1.0.dev0"
__all__ = ["LogEuclideanMetric", "LogEuclideanMetricCV", "__version__", "load", "save"]


def __getattr__(name: str) -> Any:
    # Model files bring the nearest neighbours of scikit-learn with them: only who asks waits for these.
    if name in ("load", "save"):
        from spdmetric import models

        return getattr(models, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
