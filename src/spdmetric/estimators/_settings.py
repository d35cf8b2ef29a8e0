"""The parameters of learning that both estimators have, checked before any data are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from spdmetric.linalg.symmetric import Array
from spdmetric.means import MEANS
from spdmetric.solvers import SOLVERS, Callback, Record
from spdmetric.validation import ClassWeight, check_choice, check_class_weight, check_count, check_kernel

INITS = (*MEANS, "identity")


class Settings(NamedTuple):
    """Parameters of `LogEuclideanMetric` and `LogEuclideanMetricCV`, by their names."""

    init: str | Array
    kernel: str
    gamma: float | None
    class_weight: ClassWeight
    solver: str
    tol: float
    max_iter: int
    chunk_size: int | None
    callback: Callback | None
    verbose: bool

    def report(self, record: Record) -> Any:
        """Print a record if that is wanted, and give it to the callback."""
        if self.verbose:
            print(
                f"iteration {record.iteration:4d}  alignment {1 - record.value:.6f}  "
                f"KKT residual {record.residual:.1e}  distance {record.distance:6.3f}  "
                f"evaluations {record.evaluations:5d}  {record.seconds:.2f} s"
            )
        return None if self.callback is None else self.callback(record)


def settings_of(parameters: Mapping[str, Any]) -> Settings:
    """Return those of an estimator's parameters that are settings, or say which one is wrong."""
    settings = Settings(**{name: parameters[name] for name in Settings._fields})
    check_choice("init", settings.init, INITS, other="an SPD matrix of shape (d, d)")
    check_choice("solver", settings.solver, (*SOLVERS, "stochastic"))
    check_kernel(settings.kernel, settings.gamma, settings.solver)
    check_class_weight(settings.class_weight)
    if not isinstance(settings.tol, Real) or not settings.tol > 0:
        raise ValueError(f"tol={settings.tol!r}: expected a positive number.")
    check_count("max_iter", settings.max_iter)
    check_count("chunk_size", settings.chunk_size, optional=True)
    if settings.callback is not None and not callable(settings.callback):
        raise ValueError(f"callback={settings.callback!r}: expected a function of one Record, or None.")
    return settings
