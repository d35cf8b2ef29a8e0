"""Solvers for a smooth function on a ball, minimized to a KKT point.

They know nothing of matrices: an `Objective` is evaluated at points of a `Manifold`.  A callback sees each
record of the history of a run and may stop it.

The feasible set is a ball ``|S| <= radius`` in the coordinates S of the manifold.  A point is optimal to
first order (Karush, Kuhn, Tucker) when ``gradient = -multiplier * S`` with ``multiplier >= 0`` on the sphere,
and ``gradient = 0`` inside.  Alignment has several local maxima in its ball, its constraint is nearly always
active, and the center is nearly a saddle of it: from the center every solver begins with one long step to the
sphere, along the gradient or against it, and returns to the center only if nothing better is found.

`SOLVERS` holds those that do all this.  `stochastic_gradient` asks for an objective that can be
evaluated on mini-batches, and ends near a KKT point, at a distance set by their noise.
"""

from collections.abc import Callable

from spdmetric.solvers.gradient import geodesic_gradient
from spdmetric.solvers.protocols import Evaluation, Manifold, Objective
from spdmetric.solvers.result import Callback, Record, Solution, Status
from spdmetric.solvers.stochastic import Descent, mini_batches, stochastic_gradient
from spdmetric.solvers.trust_region import trust_region

SOLVERS: dict[str, Callable[..., Solution]] = {"trust-region": trust_region, "gradient": geodesic_gradient}

__all__ = [
    "SOLVERS",
    "Callback",
    "Descent",
    "Evaluation",
    "Manifold",
    "Objective",
    "Record",
    "Solution",
    "Status",
    "geodesic_gradient",
    "mini_batches",
    "stochastic_gradient",
    "trust_region",
]
