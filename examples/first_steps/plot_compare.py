r"""
Which method suits my matrices?
===============================

:func:`spdmetric.compare` runs distances, learned metrics and baselines under nested cross-validation.  Its
result prints as sentences, holds the numbers as a table, draws them, gives the winner as a fitted
classifier, and is shown by notebooks as the page that ``spdmetric compare`` writes.

Two classes in four sessions, each session mixed by a matrix of its own: sessions are left out whole.
"""

import numpy as np

import spdmetric
from spdmetric.datasets import make_toy
from spdmetric.linalg.symmetric import congruence

X, y, *_ = make_toy(120, 2, d=4, random_state=0)
order = np.random.default_rng(0).permutation(len(X))
X, y, session = X[order], y[order], np.arange(len(X)) % 4
mixing = np.eye(4) + 0.25 * np.random.default_rng(1).standard_normal((4, 4, 4))
X = congruence(mixing[session], X)

# %%
# A few methods, for the time's sake; by default there are some twenty.
report = spdmetric.compare(
    X,
    y,
    session,
    methods=("spdmetric", "spdmetric-weighting", "spdmetric-mean", "logeuclid-mean", "mdm", "svm"),
    channels=["C3", "Cz", "C4", "Pz"],
)
print(report)

# %%
# The numbers, a row for each method and score.  Recentered: each session is recentered by its own mean.
print(report.table.query("decides")[["title", "mean", "se", "behind", "tied"]].to_string(index=False))

# %%
# The same as a picture; hollow marks are recentered.
axes = report.plot()

# %%
# The winner of those that need no recentering, trained on all matrices.
model = report.best_estimator()
print(model)

# %%
# In a notebook the last line of a cell may be ``report``: the page appears, in a frame.
# ``report.save("report.html")`` writes it.
report
