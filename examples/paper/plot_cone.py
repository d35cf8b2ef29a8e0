r"""
Straight lines and geodesics in the cone of SPD matrices
========================================================

Reproduces the figure "Comparison between Euclidean (straight dashed lines) and Riemannian
(curved solid lines) distances" of Yger and Sugiyama (2015).

A symmetric matrix :math:`\begin{pmatrix} a & b \\ b & c \end{pmatrix}` is a point of space,
and it is positive definite inside the cone :math:`ac > b^2`.  Straight lines have two faults
there.  The matrices between :math:`A` and :math:`B` can have larger determinants than both:
the swelling effect.  Continued beyond :math:`A` or :math:`B`, a straight line leaves the
cone: the space is not complete.  Along the geodesic the logarithm of the determinant is
linear, and it never leaves.

The figures of the paper are made by the folder ``reproduction`` of the repository; from a clone:
``python -m examples.paper.plot_cone``.
"""

import matplotlib.pyplot as plt

from reproduction.figures import cone

cone.draw(cone.compute(), figure=plt.figure())
plt.show()
