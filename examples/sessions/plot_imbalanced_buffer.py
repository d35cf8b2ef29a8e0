"""
Recentering by an imbalanced buffer
===================================

Online, a session is recentered by the mean of the trials that have come in, and nobody controls how many
there are of each class.  `pyRiemann's issue 490 <https://github.com/pyRiemann/pyRiemann/issues/490>`_
describes what follows: the mean is pulled toward the class that dominates the buffer, and the accuracy
depends on the balance of the buffer rather than on how far the session has moved.  Here are its simulated
sessions, with plain recentering and with ``adapt(prior="estimate")``, which estimates the shares of the
classes in the buffer and corrects the mean for them.
"""

# %%
# A source and a target domain of pyRiemann, 2 x 2 matrices of two classes.  The classifier learns on the
# source, adapts to a buffer of 80 unlabeled trials of the target, and is scored on 60 balanced ones that were
# not in the buffer.

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.datasets import make_classification_transfer
from pyriemann.transfer import decode_domains

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric

SHARES, SHIFTS, N = [0.5, 0.65, 0.8, 0.9, 0.95], [0.5, 2.0, 5.0], 80
WAYS = {
    "as it is": lambda model, buffer: model,
    "recentered": lambda model, buffer: model.adapt(buffer),
    'recentered, prior="estimate"': lambda model, buffer: model.adapt(buffer, prior="estimate"),
}


def score(shift, seed):
    """Accuracy for each share of a class, in each way."""
    encoded = make_classification_transfer(110, class_sep=3.0, domain_sep=shift, random_state=seed)
    X, y, domain = decode_domains(*encoded)
    source, target = domain == "source_domain", domain == "target_domain"
    metric = LogEuclideanMetric(0.0, weighting="discriminant")
    model = LogEuclideanClassifier(metric, head="centroid").fit(X[source], y[source])
    X, y = X[target], y[target]
    one, other = (np.flatnonzero(y == label) for label in np.unique(y))
    buffers = [np.r_[one[: round(share * N)], other[: N - round(share * N)]] for share in SHARES]
    rest = np.r_[one[-30:], other[-30:]]
    return [[adapt(model, X[b]).score(X[rest], y[rest]) for adapt in WAYS.values()] for b in buffers]


found = np.array([[score(shift, seed) for seed in range(3)] for shift in SHIFTS])
found = found.mean(axis=1)  # (shift, share, way)

# %%
# One panel for each size of the shift.  Plain recentering falls in the same way in all three: what it reaches
# is set by the balance of the buffer.  Where the session has hardly moved, doing nothing is better.

fig, panels = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
for panel, shift, of_shift in zip(panels, SHIFTS, found, strict=True):
    for name, column in zip(WAYS, of_shift.T, strict=True):
        panel.plot(SHARES, column, marker="o", label=name)
    panel.set(title=f"shift {shift:g}", xlabel="share of one class in the buffer")
panels[0].set_ylabel("accuracy")
panels[0].legend(loc="lower left", fontsize="small")
plt.show()

# %%
# The estimate needs classes that are told apart well, as here.  Of weak evidence nothing can be learned about
# shares, and ``prior="estimate"`` then leaves the mean where it is.
