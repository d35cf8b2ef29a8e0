r"""
The manifold and its tangent plane
==================================

Reproduces the figure "Mappings between the manifold of positive definite matrices and the
tangent plane at the point :math:`G`" of Yger and Sugiyama (2015).

The surface holds the :math:`2 \times 2` matrices whose determinant is that of :math:`G`: a
hyperbolic plane, which geodesics do not leave.  The logarithmic map takes :math:`A` and
:math:`B` to the plane that touches at :math:`G`.  It keeps distances from :math:`G` and
shortens all others: :math:`\delta_r(A, B) \geq \delta_l^G(A, B)`.

The figures of the paper are made by the folder ``reproduction`` of the repository; from a clone:
``python -m examples.paper.plot_tangent_plane``.
"""

import matplotlib.pyplot as plt

from reproduction.figures import tangent

tangent.draw(tangent.compute(), figure=plt.figure())
plt.show()
