"""The alignment in torch, for peers that differentiate it automatically.

Written the good way, to be fair: tangent vectors instead of an n x n Gram matrix of pairs,
and the Cholesky factor of G instead of ``G^{-1/2}``.  With the latter, the first idea of most,
the derivative of torch's eigh at G0 = I is NaN, all eigenvalues being equal, and no solver
takes a step.  The Cholesky factor has no such trap, and the whitened matrices have distinct
eigenvalues; so the start is G0 itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.task import Task


class TorchAlignment:
    """Misalignment, Euclidean gradient and Hessian-vector product by autodiff; logs where it is asked."""

    def __init__(self, task: Task):
        import torch

        torch.set_num_threads(1)
        self._torch, self._task = torch, task
        self._X = torch.from_numpy(task.X)
        Y = np.eye(task.codes.max() + 1)[task.codes]
        self._Y = torch.from_numpy(Y - Y.mean(axis=0))
        self._target_norm = torch.linalg.matrix_norm(self._Y.T @ self._Y)

    def value(self, G: np.ndarray) -> float:
        self._task.spend()
        with self._torch.no_grad():
            value = float(self._misalignment(self._torch.from_numpy(G)))
        self._task.visit(G)
        return value

    def gradient(self, G: np.ndarray) -> np.ndarray:
        """The gradient belongs to the evaluation that `value` counted."""
        _, gradient = self._differentiated(G)
        return gradient.detach().numpy()

    def hvp(self, G: np.ndarray, direction: np.ndarray) -> np.ndarray:
        self._task.spend()
        point, gradient = self._differentiated(G, twice=True)
        inner = (gradient * self._torch.from_numpy(direction)).sum()
        return self._torch.autograd.grad(inner, point)[0].detach().numpy()

    def _differentiated(self, G: np.ndarray, *, twice: bool = False) -> tuple[Any, Any]:
        point = self._torch.from_numpy(G).clone().requires_grad_(True)
        value = self._misalignment(point)
        return point, self._torch.autograd.grad(value, point, create_graph=twice)[0]

    def _misalignment(self, G: Any) -> Any:
        linalg = self._torch.linalg
        L = linalg.cholesky((G + G.T) / 2)
        half = linalg.solve_triangular(L, self._X, upper=False)
        images = linalg.solve_triangular(L, half.mT, upper=False)
        values, vectors = linalg.eigh((images + images.mT) / 2)
        logs = (vectors * values.log()[:, None, :]) @ vectors.mT
        Phi = logs.flatten(1) - logs.flatten(1).mean(0)
        A = Phi.T @ self._Y
        few = Phi.shape[0] < Phi.shape[1]
        C = Phi @ Phi.T if few else Phi.T @ Phi
        return 1 - (A * A).sum() / (linalg.matrix_norm(C) * self._target_norm)


def problem_of(task: Task) -> Any:
    """A pymanopt problem on the SPD matrices with the affine-invariant metric."""
    import pymanopt

    manifold = pymanopt.manifolds.SymmetricPositiveDefinite(task.d)
    alignment = TorchAlignment(task)
    as_function = pymanopt.function.numpy(manifold)
    return pymanopt.Problem(
        manifold,
        as_function(alignment.value),
        euclidean_gradient=as_function(alignment.gradient),
        euclidean_hessian=as_function(alignment.hvp),
    )
