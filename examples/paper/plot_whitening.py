r"""
Whitening of two sessions
=========================

Reproduces the figure "Illustration of the effect of whitening when the Riemannian mean of the
data is non-stationary" of Yger and Sugiyama (2015), with two clouds of :math:`2 \times 2`
matrices.

Matrices are shown by two coordinates of :math:`L = \log X`; the third, the trace of :math:`L`,
is left out.  The congruence by :math:`\bar{X}^{-1/2}`, :math:`\bar{X}` being the Riemannian
mean of a session, moves the session along the geodesic from its mean to the identity.

The figures of the paper are made by the folder ``reproduction`` of the repository; from a clone:
``python -m examples.paper.plot_whitening``.
"""

import matplotlib.pyplot as plt

from reproduction.figures import whitening

whitening.draw(whitening.compute(), figure=plt.figure())
plt.show()
