"""Learn the reference point of a LogEuclidean metric on SPD matrices.

The rooms, in reading order: `matrices` (stacks of symmetric matrices and their
derivatives), `geometry` (of the data), `manifolds` (of the parameter), `alignment` and
`gaussian` (the objectives), `solvers`, `estimators` (the scikit-learn face), `datasets`.
"""

from spdmetric.estimators import LogEuclideanMetric, LogEuclideanMetricCV

__version__ = "0.1.0.dev0"
__all__ = ["LogEuclideanMetric", "LogEuclideanMetricCV", "__version__"]
