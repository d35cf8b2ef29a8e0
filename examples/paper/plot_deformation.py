r"""
Two logarithmic maps, two deformations
======================================

Reproduces the figure "Illustration of the deformations implied by two mappings, respectively
centered at the identity or at a point :math:`G`" of Yger and Sugiyama (2015).

All disks have the same radius for :math:`\delta_r`, and all lines are geodesics.  In a
tangent plane only the disk around its own center stays round, and only the geodesics through
its center stay straight.  Choosing :math:`G` is choosing a deformation; learning :math:`G` is
choosing one that separates classes.

The figures of the paper are made by the folder ``reproduction`` of the repository; from a clone:
``python -m examples.paper.plot_deformation``.
"""

import matplotlib.pyplot as plt

from reproduction.figures import deformation

deformation.draw(deformation.compute(), figure=plt.figure())
plt.show()
