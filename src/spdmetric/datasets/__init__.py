"""Data sets: each gives SPD matrices of shape (n, d, d) and their labels or targets.

Heavy readers (MNE, MOABB, scikit-image) are imported when a set that needs them is loaded.
"""

from spdmetric.datasets.bci_iv_2a import bci_subjects, load_bci_iv_2a
from spdmetric.datasets.eeg import Recording, eegmmi_subjects, epoch_covariances, load_eegmmi
from spdmetric.datasets.image_sets import draw_sets, load_image_sets
from spdmetric.datasets.images import load_images
from spdmetric.datasets.prepared import (
    Covariances,
    cho2017_subjects,
    eegmmi_covariance_subjects,
    load_cho2017,
    load_eegmmi_covariances,
)
from spdmetric.datasets.regression import make_regression
from spdmetric.datasets.textures import (
    Texture,
    TexturePair,
    gabor_responses,
    make_textures,
    patch_covariances,
)
from spdmetric.datasets.toy import make_toy
from spdmetric.datasets.whitening import whiten

__all__ = [
    "Covariances",
    "Recording",
    "Texture",
    "TexturePair",
    "bci_subjects",
    "cho2017_subjects",
    "draw_sets",
    "eegmmi_covariance_subjects",
    "eegmmi_subjects",
    "epoch_covariances",
    "gabor_responses",
    "load_bci_iv_2a",
    "load_cho2017",
    "load_eegmmi",
    "load_eegmmi_covariances",
    "load_image_sets",
    "load_images",
    "make_regression",
    "make_textures",
    "make_toy",
    "patch_covariances",
    "whiten",
]
