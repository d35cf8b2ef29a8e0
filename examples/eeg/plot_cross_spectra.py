"""
Cross-spectra: classes that differ in a delay
=============================================

Two sources are equally strong in both classes.  In one class the second follows the first by a quarter of
a period, in the other it precedes it.  Covariances of band-passed signals cannot see that; cross-spectra,
which are complex, can.
"""

# %%
# Simulated trials: a rhythm of 10 Hz with a lag, mixed into six channels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split

from spdmetric import LogEuclideanClassifier, LogEuclideanMetric

rng = np.random.default_rng(0)
n_trials, n_channels, rate = 160, 6, 200
times = np.arange(400) / rate
y = np.arange(n_trials) % 2
phase = rng.uniform(0, 2 * np.pi, (n_trials, 1))
lag = np.where(y == 1, np.pi / 2, -np.pi / 2)[:, None]
sources = np.stack(
    [np.sin(2 * np.pi * 10 * times + phase), np.sin(2 * np.pi * 10 * times + phase - lag)], axis=1
)
mixing = rng.standard_normal((n_channels, 2))
signals = mixing @ sources + 2.0 * rng.standard_normal((n_trials, n_channels, len(times)))

# %%
# The cross-spectrum between 8 and 12 Hz: a Fourier transform of each half second, products of channels.
length = rate // 2
parts = np.stack([signals[..., k : k + length] for k in range(0, 301, length // 2)], axis=2) * np.hanning(
    length
)
frequencies = np.fft.rfftfreq(length, 1 / rate)
F = np.fft.rfft(parts, axis=-1)[..., (frequencies >= 8) & (frequencies <= 12)].reshape(
    n_trials, n_channels, -1
)
X = F @ F.conj().mT / F.shape[-1]
X = (X + X.conj().mT) / 2

# %%
# The estimators take them as they are.
train, test = train_test_split(np.arange(n_trials), stratify=y, random_state=0)
for name, matrices in (("cross-spectra", X), ("their real parts", X.real)):
    model = LogEuclideanClassifier().fit(matrices[train], y[train])
    print(f"{name}: {model.score(matrices[test], y[test]):.0%}")

# %%
# The reference point is complex; its imaginary part says where delays matter.
metric = LogEuclideanMetric(3.0).fit(X[train], y[train])
means = [metric.reference_, X[train][y[train] == 0].mean(axis=0), X[train][y[train] == 1].mean(axis=0)]
fig, axes = plt.subplots(1, 3, figsize=(8, 2.8), layout="constrained")
largest = max(np.abs(mean.imag).max() for mean in means)
for ax, mean, title in zip(axes, means, ("reference point", "class 0", "class 1"), strict=True):
    image = ax.imshow(mean.imag, cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set(title=f"imaginary part, {title}", xlabel="channel")
    ax.title.set_fontsize(9)
fig.colorbar(image, ax=axes, shrink=0.8)
plt.show()
