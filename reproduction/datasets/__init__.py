"""The data sets of the tables: each gives SPD matrices of shape (n, d, d) and their labels.

Those of `views` have several matrices a sample, (n, views, d, d).

Heavy readers (MNE, MOABB, scikit-image) are imported when a set that needs them is loaded.
"""

from reproduction.datasets.bci_iv_2a import BCI_CLASSES, bci_subjects, load_bci_iv_2a
from reproduction.datasets.eeg import (
    Recording,
    eegmmi_subjects,
    epoch_covariances,
    load_eegmmi,
    sample_covariances,
)
from reproduction.datasets.image_sets import draw_sets, load_image_sets
from reproduction.datasets.images import load_images
from reproduction.datasets.prepared import (
    Covariances,
    cho2017_subjects,
    eegmmi_covariance_subjects,
    load_cho2017,
    load_eegmmi_covariances,
    load_ssvep,
    ssvep_subjects,
)
from reproduction.datasets.textures import (
    Texture,
    TexturePair,
    gabor_responses,
    make_textures,
    patch_covariances,
)
from reproduction.datasets.views import load_actions, load_eegmmi_bands, load_ssvep_blocks

__all__ = [
    "BCI_CLASSES",
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
    "load_actions",
    "load_bci_iv_2a",
    "load_cho2017",
    "load_eegmmi",
    "load_eegmmi_bands",
    "load_eegmmi_covariances",
    "load_image_sets",
    "load_images",
    "load_ssvep",
    "load_ssvep_blocks",
    "make_textures",
    "patch_covariances",
    "sample_covariances",
    "ssvep_subjects",
]
