"""Solvers end at KKT points of the ball, as good as SciPy's and pymanopt's."""

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pymanopt
import pytest
from scipy.optimize import minimize

from random_matrices import labeled, spd, symmetric
from spdmetric.datasets import make_toy
from spdmetric.geometry import mean_riemann
from spdmetric.linalg.symmetric import congruence, expm, invsqrtm, logm, sqrtm, symmetrize, unvech, vech
from spdmetric.manifolds import Ball
from spdmetric.objectives.alignment import Misalignment
from spdmetric.objectives.data import ClassTarget, Data
from spdmetric.solvers import SOLVERS, Status
from spdmetric.solvers.run import Iterate
from spdmetric.solvers.trust_region import TrustRegion
from spectral import LogCongruence

solvers = pytest.mark.parametrize("solver", SOLVERS)


def toy_problem(d, seed, radius=10.0):
    X, y, *_ = make_toy(50, 2, d=d, random_state=seed)
    objective = Misalignment(Data(X, ClassTarget.from_codes((y == 1).astype(int))))
    ball = Ball(mean_riemann(X), radius)
    return objective, ball, ball.point(np.zeros((d, d)))


def slsqp(objective, ball, S):
    """SciPy's SLSQP on the vector of normal coordinates, with our gradient."""

    def at(v):
        here = objective.at(ball.point(unvech(v)))
        return here.value, vech(here.gradient)

    inside = {"type": "ineq", "fun": lambda v: ball.radius**2 - v @ v, "jac": lambda v: -2 * v}
    options = {"maxiter": 500, "ftol": 1e-9}
    found = minimize(at, vech(S), jac=True, method="SLSQP", constraints=[inside], options=options)
    v = found.x * min(1.0, ball.radius / np.linalg.norm(found.x))
    return at(v)[0]


@lru_cache
def slsqp_from_the_center(d, seed):
    """The peer of all solvers on a toy problem."""
    objective, ball, start = toy_problem(d, seed)
    return 1 - slsqp(objective, ball, start.S)


@solvers
@pytest.mark.parametrize("d", [6, 8])
def test_toy_solutions_are_kkt_points_as_good_as_slsqps(d, solver):
    ours, peers = [], []
    for seed in range(4):
        objective, ball, start = toy_problem(d, seed)
        solution = SOLVERS[solver](objective, ball, start, tol=1e-6, max_iter=1000)
        assert solution.converged
        assert solution.residual <= 1e-6
        assert solution.multiplier >= 0
        assert np.linalg.norm(solution.point.S) <= ball.radius * (1 + 1e-9)
        values = np.array([r.value for r in solution.history])
        # The first step goes to the sphere whatever the value there.
        assert np.all(np.diff(values[1:]) <= 1e-12)
        assert solution.value < values[0]
        assert solution.value - slsqp(objective, ball, solution.point.S) < 1e-5
        ours.append(1 - solution.value)
        peers.append(slsqp_from_the_center(d, seed))
    assert np.mean(ours) >= 0.99 * np.mean(peers)
    assert np.min(np.divide(ours, peers)) >= 0.96


class Penalized:
    """An objective plus ``weight / 2`` times the squared distance from the center: its optimum is inside."""

    def __init__(self, objective, weight):
        self.objective, self.weight = objective, weight

    def at(self, point):
        here, k = self.objective.at(point), self.weight
        return SimpleNamespace(
            point=point,
            value=here.value + k / 2 * np.sum(point.S**2),
            gradient=here.gradient + k * point.S,
            curvature_estimate=here.curvature_estimate,
        )


@solvers
def test_interior_optimum_is_pymanopts(solver, rng):
    X, codes = labeled(rng, 30, 4, classes=3)
    G0, weight = mean_riemann(X), 0.05
    objective, ball = Misalignment(Data(X, ClassTarget.from_codes(codes))), Ball(G0, 50.0)
    solution = SOLVERS[solver](
        Penalized(objective, weight), ball, ball.point(np.zeros((4, 4))), tol=1e-6, max_iter=5000
    )
    assert solution.residual <= 1e-6
    assert solution.multiplier == 0
    assert 0.1 < np.linalg.norm(solution.point.S) < 50
    assert solution.value == pytest.approx(_pymanopt_value(objective, G0, weight), abs=1e-8)


def _pymanopt_value(objective, G0, weight):
    """Pymanopt's conjugate gradients on P_d, the penalty through its own formula."""
    manifold = pymanopt.manifolds.SymmetricPositiveDefinite(4)

    def parts(G):
        W = invsqrtm(G)
        return objective.at(SimpleNamespace(factor=W)), LogCongruence.of(congruence(W, G0)), W

    def frame(G, vector):
        return symmetrize(congruence(sqrtm(G), vector))

    @pymanopt.function.numpy(manifold)
    def cost(G):
        here, log, _ = parts(G)
        return here.value + weight / 2 * np.sum(log.log.values**2)

    @pymanopt.function.numpy(manifold)
    def gradient(G):
        here, log, _ = parts(G)
        return frame(G, here.frame_gradient - weight * log.log.compose(log.log.values))

    problem = pymanopt.Problem(manifold, cost, riemannian_gradient=gradient)
    optimizer = pymanopt.optimizers.ConjugateGradient(
        verbosity=0, min_gradient_norm=1e-7, max_iterations=2000
    )
    return optimizer.run(problem, initial_point=G0).cost


@solvers
def test_a_quadratic_with_known_optimum_inside_and_on_the_sphere(solver, rng):
    """In normal coordinates at the identity: |S - T|^2 / 2 is least at T, or where T meets the sphere."""
    T = symmetric(rng, 4, traceless=True)
    T *= 3 / np.linalg.norm(T)

    class Quadratic:
        def at(self, point):
            return SimpleNamespace(
                point=point,
                value=np.sum((point.S - T) ** 2) / 2,
                gradient=point.S - T,
                curvature_estimate=np.linalg.eigh(np.eye(4)),
            )

    for radius, expected, multiplier in ((5.0, T, 0.0), (2.0, T * 2 / 3, 0.5)):
        ball = Ball(np.eye(4), radius)
        solution = SOLVERS[solver](Quadratic(), ball, ball.point(0 * T), tol=1e-9, max_iter=500)
        np.testing.assert_allclose(solution.point.S, expected, atol=1e-7)
        assert solution.multiplier == pytest.approx(multiplier, abs=1e-7)
        # ... and from the wrong side of the sphere, where the way down leads through the ball
        solution = SOLVERS[solver](Quadratic(), ball, ball.point(-T * radius / 3), tol=1e-9, max_iter=500)
        np.testing.assert_allclose(solution.point.S, expected, atol=1e-7)


@solvers
def test_history_counts_and_callback_stops(solver):
    objective, ball, start = toy_problem(6, 0)
    seen = []

    def stop(record):
        seen.append(record)
        return record.iteration == 3

    solution = SOLVERS[solver](objective, ball, start, tol=1e-6, max_iter=100, callback=stop)
    assert solution.status is Status.CALLBACK
    assert solution.n_iter == 3
    assert tuple(seen) == solution.history
    assert [r.iteration for r in seen] == [0, 1, 2, 3]
    assert seen[0].evaluations == 1
    assert np.all(np.diff([r.evaluations for r in seen]) >= 1)
    assert np.all(np.diff([r.seconds for r in seen]) >= 0)
    assert seen[0].distance == 0
    assert "callback" in solution.status.value


@solvers
def test_too_few_iterations_and_the_limit_of_rounding_are_said(solver):
    for tol, max_iter, status, advice in (
        (1e-6, 2, Status.MAX_ITER, "Raise max_iter"),
        (1e-30, 5000, Status.STALLED, "Raise tol"),
    ):
        solution = SOLVERS[solver](*toy_problem(6, 0), tol=tol, max_iter=max_iter)
        assert solution.status is status
        assert advice in solution.status.value
    assert solution.residual < 1e-6


@solvers
def test_a_stationary_start_is_returned(solver, rng):
    """In one dimension f does not depend on G at all."""
    X = spd(rng, 6, 1)
    objective, ball = Misalignment(Data(X, ClassTarget.from_codes(np.arange(6) % 2))), Ball(np.eye(1), 10.0)
    solution = SOLVERS[solver](objective, ball, ball.point(np.zeros((1, 1))), tol=1e-6, max_iter=10)
    assert solution.converged
    assert solution.n_iter == 0


def dense_inverse(pairs, P, scale):
    """The inverse BFGS matrix by its recursion, Eq. (6.17) of Nocedal and Wright."""
    H = P / scale
    for step, change in pairs:
        rho, one = 1 / (step @ change), np.eye(step.size)
        V = one - rho * np.outer(change, step)
        H = V.T @ H @ V + rho * np.outer(step, step)
    return H


@pytest.mark.parametrize("radius", [3.0, 8.0])  # on the sphere, and inside
@pytest.mark.parametrize("memory", [3, 20])
def test_the_secant_step_is_that_of_dense_bfgs(radius, memory, rng):
    d = 4
    S = symmetric(rng, d)
    S *= 3.0 / np.linalg.norm(S)
    point = Ball(np.eye(d), radius).point(S)
    g, curvature = -S + 0.3 * symmetric(rng, d), np.linalg.eigh(spd(rng, 1, d)[0])
    iterate = Iterate(
        SimpleNamespace(point=point, value=0.0, gradient=g, curvature_estimate=curvature), radius
    )
    assert iterate.active == (radius == 3.0)
    model, A = TrustRegion(1e9, memory), np.diag(rng.uniform(1, 5, d * d))

    def seen(S, gradient, value):
        there = SimpleNamespace(S=S, precondition=point.precondition)
        here = SimpleNamespace(point=there, value=value, curvature_estimate=curvature)
        return SimpleNamespace(active=iterate.active, tangent=iterate.tangent, gradient=gradient, here=here)

    pairs, scales = [], []
    for _ in range(6):
        step = iterate.tangent(symmetric(rng, d))
        change = iterate.tangent(symmetrize((A @ step.ravel()).reshape(d, d)))
        assert np.vdot(step, change) > 0
        scales.append(np.vdot(change, point.precondition(change, curvature)) / np.vdot(step, change))
        value = np.vdot(step, change) / 2  # of a quadratic: the values agree with the gradients
        model.learn(seen(0 * step, 0 * change, 0.0), seen(step, change, value))
        pairs.append((step.ravel(), change.ravel()))
    pairs = pairs[-memory:]
    tangent = np.array([iterate.tangent(e.reshape(d, d)).ravel() for e in np.eye(d * d)])
    basis = [symmetrize(e.reshape(d, d)) for e in np.eye(d * d)]
    P = tangent @ np.array([point.precondition(e, curvature).ravel() for e in basis]) @ tangent
    expected = -dense_inverse(pairs, P, min(scales[-memory:])) @ iterate.gradient.ravel()
    step, slope, bend, at_edge = model.step(iterate)
    np.testing.assert_allclose(step.ravel(), expected, rtol=1e-9, atol=1e-12)
    assert slope == pytest.approx(np.vdot(iterate.gradient, step))
    assert bend == pytest.approx(-slope)
    assert not at_edge
    model.delta = 0.1
    short, _, short_bend, at_edge = model.step(iterate)
    assert at_edge
    np.testing.assert_allclose(short, 0.1 * step / np.linalg.norm(step))
    assert short_bend == pytest.approx(np.vdot(short, short) / np.vdot(step, step) * bend)


@pytest.mark.parametrize("solver", ["trust-region", "gradient"])
@pytest.mark.parametrize("t", [1.0, 1e-2, 1e-4])
def test_concentrated_data_are_learned_as_any_other(t, solver):
    """Of matrices close to each other the gradient at the center is tiny: an absolute bound holds there."""
    X, y, *_ = make_toy(50, 2, d=6, random_state=3)
    X = expm(t * logm(congruence(invsqrtm(mean_riemann(X)), X)))
    objective = Misalignment(Data(X, ClassTarget.from_codes((y == 1).astype(int))))
    ball = Ball(mean_riemann(X), 3.0)
    center = ball.point(np.zeros((6, 6)))
    loose, tight = (SOLVERS[solver](objective, ball, center, tol=tol, max_iter=3000) for tol in (1e-3, 1e-5))
    assert np.linalg.norm(loose.point.S) == pytest.approx(3.0)
    assert 1 - loose.value >= 0.999 * (1 - tight.value)
    assert loose.residual <= 1e-3


def test_weak_labels_are_learned_from(rng):
    X, y, *_ = make_toy(600, 2, d=6, random_state=0)
    flipped = np.where(rng.random(600) < 0.42, -y, y)
    objective = Misalignment(Data(X, ClassTarget.from_codes((flipped == 1).astype(int))))
    ball = Ball(mean_riemann(X), 2.0)
    solution = SOLVERS["trust-region"](objective, ball, ball.point(np.zeros((6, 6))), tol=1e-3, max_iter=500)
    assert np.linalg.norm(solution.point.S) == pytest.approx(2.0)
    assert solution.status is Status.CONVERGED
