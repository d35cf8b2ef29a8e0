"""Riemannian trust region."""

from __future__ import annotations

import numpy as np

from spdmetric.solvers.constraint import Iterate, norm
from spdmetric.solvers.protocols import Evaluation, Manifold, Objective, Point
from spdmetric.solvers.result import Callback, Solution, Status
from spdmetric.solvers.run import Run
from spdmetric.solvers.secant import SecantModel

_EPS = float(np.finfo(np.float64).eps)


def trust_region(
    objective: Objective,
    manifold: Manifold,
    start: Point,
    *,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    here: Evaluation | None = None,
) -> Solution:
    """Minimize on a ball with a Riemannian trust region [Absil2007]_ and a secant model.

    Parameters
    ----------
    objective, manifold : Objective, Manifold
        What to minimize, and where.
    start : point
        A point of the ball; at the center, the first step is a long one (see `spdmetric.solvers`).
    tol : float
        Bound on the KKT residual, relative to the gain (see `spdmetric.solvers.constraint.Iterate`).
    max_iter : int
        Bound on the number of iterations.
    callback : callable, optional
        Called with each `Record`; returning True stops the run.
    here : Evaluation, optional
        The objective at the start, where it is known already.

    Returns
    -------
    Solution
    """
    run = Run(objective, tol=tol, max_iter=max_iter, callback=callback)
    first = iterate = Iterate(run.at(start, here), manifold.radius)
    model, delta = SecantModel(), 0.5 * manifold.radius
    while True:
        status = run.ends(iterate)
        if run.is_worse_than_start(status, iterate, first):
            iterate, model, delta, status = first, SecantModel(), 0.5 * manifold.radius, None
        after: Iterate | None
        if status is None and iterate.distance == 0:
            after = run.first_step(manifold, iterate)
        elif status is None:
            after, delta = trusted_step(run, model, manifold, iterate, delta)
        elif status is Status.CONVERGED and iterate.inside and iterate.distance > 0:
            after = run.probe_sphere(manifold, iterate)
        else:
            break
        if after is None or delta < 1e-12 * manifold.radius:
            status = status or Status.STALLED
            break
        if after is not iterate:
            model.learn(iterate, after)
        iterate = after
    # The first step need not have been an improvement; in the end there must be one.
    return run.solution(iterate if iterate.here.value <= first.here.value else first, status)


def trusted_step(
    run: Run, model: SecantModel, manifold: Manifold, iterate: Iterate, delta: float
) -> tuple[Iterate, float]:
    """One step of the trust region: where to go on from, and the radius to trust there."""
    step, slope, bend, at_edge = model.step(iterate, delta)
    share = iterate.reach(step, manifold.radius)
    if share == 0:
        return iterate, delta / 4
    length, predicted = norm(step), -share * slope - 0.5 * share**2 * bend
    there = run.at(manifold.retract(iterate.here.point, share * step))
    if predicted <= 10 * _EPS:
        # Values cannot tell such steps apart; go by the residual as long as it falls.
        after = Iterate(there, manifold.radius)
        return (after, delta) if after.residual < iterate.residual else (iterate, length / 4)
    # A little is added to both decreases so that rounding counts as agreement.
    noise = 1e3 * _EPS
    ratio = (iterate.here.value - there.value + noise) / (predicted + noise)
    if not ratio > 0.1:
        return iterate, length / 2
    if ratio > 0.75 and at_edge:
        delta = min(2 * delta, manifold.radius)
    return Iterate(there, manifold.radius), delta
