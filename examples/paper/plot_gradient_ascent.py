r"""
Geodesic gradient ascent
========================

Reproduces the figure "Graphical summary of a geodesic gradient descent method for a function
:math:`f` on :math:`\mathcal{P}_d`" of Yger and Sugiyama (2015), with the alignment of a toy
set of :math:`2 \times 2` matrices as the function and the solver's own iterates.

Alignment does not change when :math:`G` is multiplied by a number, so the determinant can be
held fixed, and two coordinates remain: :math:`G = G_0^{1/2} \exp(S) G_0^{1/2}` with :math:`S`
without trace.  In these coordinates the ball :math:`\delta_r(G_0, G) \leq \varepsilon` is a
disk, lines through its center are geodesics, and other geodesics are bent.  The center is
nearly a saddle, and the two maxima lie on the boundary: the two runs find one each.

The figures of the paper are made by the folder ``reproduction`` of the repository; from a clone:
``python -m examples.paper.plot_gradient_ascent``.
"""

import matplotlib.pyplot as plt

from reproduction.figures import ascent

data = ascent.compute()
ascent.draw(data, figure=plt.figure())
plt.show()

# %%
# How the runs went:

for name, path in zip(("from the center", "from elsewhere"), data.paths, strict=True):
    print(f"{name}: alignment {path.alignment[0]:.4f} -> {path.alignment[-1]:.4f}, {len(path.arcs)} steps")
    print(f"    {path.solution.status.value}")
