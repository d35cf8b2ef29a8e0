"""Covariances that are estimated already: two sets of motor imagery, one of evoked potentials."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from reproduction.datasets.eeg import Recording
from reproduction.datasets.files import Folder, existing_folder, numbers_in, read_arrays

EEGMMI_FILE, SSVEP_FILE = "covariances_S001-S020.npz", "covariances.npz"


class Covariances(NamedTuple):
    """Matrices of a file, their labels, and the group (session, run) of each where it is told."""

    X: np.ndarray  # (n, d, d), in the stored dtype
    y: np.ndarray  # (n,)
    groups: np.ndarray | None  # (n,)


def cho2017_subjects(folder: Folder) -> list[int]:
    """Subjects of Cho et al. (2017) with a file such as ``subject01.npz`` in a folder."""
    names = (file.name for file in existing_folder(folder).iterdir())
    return numbers_in(r"subject([0-9]+)\.npz", names)


def load_cho2017(subject: int, folder: Folder) -> Covariances:
    """Covariances of one subject of Cho et al. [Cho2017]_, imagined movements of the left and right hand.

    Parameters
    ----------
    subject : int
        Number in the name of the file, ``subject01.npz`` for instance.
    folder : str or path-like
        Folder with the files, each with the arrays ``covs`` and ``labels``.

    Returns
    -------
    covariances : Covariances
        Matrices and labels; no groups, the files do not tell any.

    References
    ----------
    .. [Cho2017] H. Cho, M. Ahn, S. Ahn, M. Kwon and S. C. Jun, "EEG datasets for motor imagery
       brain-computer interface", GigaScience 6(7), 2017.
    """
    found = read_arrays(existing_folder(folder) / f"subject{subject:02d}.npz")
    return Covariances(found["covs"], found["labels"], None)


def eegmmi_covariance_subjects(folder: Folder) -> list[int]:
    """Subjects in the file of EEGMMI covariances in a folder."""
    return subjects_in(existing_folder(folder) / EEGMMI_FILE)


def load_eegmmi_covariances(subject: int, folder: Folder) -> Recording:
    """Covariances of one subject of PhysioNet's EEG Motor Movement/Imagery set, estimated already.

    Parameters
    ----------
    subject : int
        One of `eegmmi_covariance_subjects`.
    folder : str or path-like
        Folder with ``covariances_S001-S020.npz``: arrays ``X1``, ``y1``, ``r1`` for subject 1.

    Returns
    -------
    recording : Recording
        64 x 64 matrices, the first 21 channels the motor strip; the groups are the runs.
    """
    return load_subject(existing_folder(folder) / EEGMMI_FILE, subject)


def ssvep_subjects(folder: Folder) -> list[int]:
    """Subjects in the file of SSVEP covariances in a folder."""
    return subjects_in(existing_folder(folder) / SSVEP_FILE)


def load_ssvep(subject: int, folder: Folder) -> Recording:
    """Covariances of one subject who looks at one of three flickering lights, or at none [Kalunga2016]_.

    Parameters
    ----------
    subject : int
        One of `ssvep_subjects`.
    folder : str or path-like
        Folder with ``covariances.npz``: arrays ``X1``, ``y1``, ``r1`` for subject 1.

    Returns
    -------
    recording : Recording
        24 x 24 matrices, of eight channels filtered around each of the three frequencies; the groups are
        the recordings.

    References
    ----------
    .. [Kalunga2016] E. K. Kalunga, S. Chevallier, Q. Barthélemy, K. Djouani, E. Monacelli and Y. Hamam,
       "Online SSVEP-based BCI using Riemannian geometry", Neurocomputing 191, 2016.
    """
    return load_subject(existing_folder(folder) / SSVEP_FILE, subject)


def subjects_in(path: Path) -> list[int]:
    """Subjects in a file of arrays ``X1``, ``y1``, ``r1`` for subject 1, and so on."""
    return numbers_in("X([0-9]+)", read_arrays(path))


def load_subject(path: Path, subject: int) -> Recording:
    """The arrays of one subject in such a file, in double precision."""
    found = read_arrays(path)
    names = [f"{letter}{subject}" for letter in "Xyr"]
    if missing := ", ".join(name for name in names if name not in found):
        raise ValueError(f"{path} has no {missing}: expected {', '.join(names)} of subject {subject}.")
    X, y, runs = (found[name] for name in names)
    return Recording(X.astype(np.float64), y, runs)
