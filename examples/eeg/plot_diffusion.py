"""
Diffusion tensors: three tissues from a short scan
==================================================

A real piece of a brain, 10 x 10 x 10 voxels in 64 directions, comes with dipy.  A third of the
directions serves as a short scan, from which dipy fits one 3 x 3 tensor a voxel: those are the SPD
matrices.  The other directions serve as a long scan, and only it gives the labels: fluid where the
mean diffusivity is above 1.5e-3 mm²/s, of the rest white matter where the fractional anisotropy
is above 0.35, else gray.  The two scans share one image without diffusion weighting, and
otherwise no measurement.

Neighboring voxels resemble each other, so whole slabs are left out in the comparison.  The
gain is nil.  Tissue does not depend on the direction of the fibers, 3 x 3 matrices leave
little to choose, and learning gains nothing that could be distinguished from chance: the two numbers that
the field has always used, mean diffusivity and anisotropy, do as well.
"""

import matplotlib.pyplot as plt
import nibabel
import numpy as np
from dipy.core.gradients import gradient_table
from dipy.data import get_fnames
from dipy.io.gradients import read_bvals_bvecs
from dipy.reconst.dti import TensorModel
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from spdmetric import LogEuclideanMetric

image, bvals, bvecs = get_fnames(name="small_64D")  # files inside dipy, no download
signal = nibabel.load(image).get_fdata()  # (10, 10, 10, 65)
bvals, bvecs = read_bvals_bvecs(str(bvals), str(bvecs))


def fit(directions):
    """Tensors from the unweighted image, number 0, and some directions."""
    used = np.r_[0, directions]
    return TensorModel(gradient_table(bvals[used], bvecs=bvecs[used])).fit(signal[..., used])


every_third = np.arange(1, 65, 3)
short, long = fit(every_third), fit(np.setdiff1d(np.arange(1, 65), every_third))
tissue = np.where(long.md > 1.5e-3, "fluid", np.where(long.fa > 0.35, "white", "gray"))

# %%
# dipy lifts eigenvalues that noise has made negative to 1e-9 mm²/s.  Such a tensor is not a
# measurement, and its logarithm is far from all others: these voxels are left out.

tensors = short.quadratic_form.reshape(-1, 3, 3)
usable = np.linalg.eigvalsh(tensors)[:, 0] > 1e-6
X, y = 1e3 * tensors[usable], tissue.ravel()[usable]
slab = np.indices(tissue.shape)[0].ravel()[usable]
print(f"{usable.sum()} of {usable.size} voxels;", *np.unique_counts(y)[0], *np.unique_counts(y)[1])

# %%
# Eleven neighbors under four descriptions of a tensor, two of the ten slabs predicted from the others.

scalars = np.column_stack([1e3 * short.md.ravel(), short.fa.ravel()])[usable]
neighbors = KNeighborsClassifier(11)
candidates = {
    "diffusivity, anisotropy": (neighbors, scalars),
    "Euclid": (neighbors, X.reshape(len(X), 9)),
    "at the mean": (make_pipeline(LogEuclideanMetric(0), neighbors), X),
    "learned, radius 4": (make_pipeline(LogEuclideanMetric(4.0, tol=1e-4), neighbors), X),
}
predicted = {
    name: cross_val_predict(model, data, y, groups=slab, cv=GroupKFold(5))
    for name, (model, data) in candidates.items()
}
accuracy = {}
for name, labels in predicted.items():
    slabs = [100 * np.mean(labels[slab == k] == y[slab == k]) for k in np.unique(slab)]
    accuracy[name] = np.mean(slabs), np.std(slabs, ddof=1) / np.sqrt(len(slabs))
    print(f"{name:24s} {accuracy[name][0]:.1f} ± {accuracy[name][1]:.1f} %")

# %%
# One slice, and the comparison.

names, colors = ["fluid", "gray", "white"], ["#56B4E9", "#999999", "#D55E00"]
predicted_map = np.full(tissue.size, -1)
predicted_map[usable] = [names.index(label) for label in predicted["learned, radius 4"]]
known_map = np.array([names.index(label) for label in tissue.ravel()])
fig, panels = plt.subplots(1, 4, figsize=(11, 3), layout="constrained", width_ratios=[1, 1, 1, 1.3])
palette = plt.matplotlib.colors.ListedColormap(["white", *colors])
panels[0].imshow(short.fa[:, :, 5].T, cmap="gray", origin="lower", vmin=0, vmax=1)
panels[0].set_title("anisotropy, short scan")
for axes, values, title in ((panels[1], known_map, "long scan"), (panels[2], predicted_map, "predicted")):
    slice_ = values.reshape(tissue.shape)[:, :, 5].T
    axes.imshow(slice_, cmap=palette, origin="lower", vmin=-1, vmax=2)
    axes.set_title(title)
for axes in panels[:3]:
    axes.set(xticks=[], yticks=[])
boxes = [plt.Rectangle((0, 0), 1, 1, fc=color, ec="0.5") for color in (*colors, "white")]
fig.legend(boxes, [*names, "left out"], loc="outside lower left", ncols=4, fontsize=8)
means, errors = np.transpose(list(accuracy.values()))
panels[3].errorbar(means, range(len(means)), xerr=errors, fmt="o", color="#0072B2", capsize=3)
panels[3].set_yticks(range(len(means)), list(accuracy))
panels[3].set(title="11-NN accuracy (%), 10 slabs", ylim=(len(means) - 0.5, -0.5))
plt.show()
