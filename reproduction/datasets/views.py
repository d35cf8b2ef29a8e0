"""Several matrices a sample: stretches of a movement, bands of a signal, blocks of a matrix."""

from __future__ import annotations

import numpy as np

from reproduction.datasets.eeg import Recording
from reproduction.datasets.files import Folder, existing_folder, read_arrays
from reproduction.datasets.prepared import load_ssvep, load_subject

ACTIONS_FILE, BANDS_FILE = "odd_subjects.npz", "bands_S001-S020.npz"


def load_actions(folder: Folder) -> Recording:
    """Movements of skeletons, MSR-Action3D [Li2010]_: covariances of four stretches of each sequence.

    Parameters
    ----------
    folder : str or path-like
        Folder with ``odd_subjects.npz``: arrays ``frames``, ``lengths``, ``labels`` and ``subjects``.

    Returns
    -------
    recording : Recording
        Matrices (n, 4, 57, 57) of the whole sequence, its first, its second and its middle half; the groups
        are the subjects.

    References
    ----------
    .. [Li2010] W. Li, Z. Zhang and Z. Liu, "Action recognition based on a bag of 3D points", CVPR
       Workshops, 2010.
    """
    found = read_arrays(existing_folder(folder) / ACTIONS_FILE)
    sequences = np.split(found["frames"].astype(np.float64), np.cumsum(found["lengths"])[:-1])
    X = np.array([[_covariance(frames[part]) for part in _stretches(len(frames))] for frames in sequences])
    return Recording(X, found["labels"], found["subjects"])


def _stretches(n: int) -> tuple[slice, ...]:
    half, quarter = n // 2, n // 4
    return slice(n), slice(half), slice(half, n), slice(quarter, quarter + half)


def _covariance(frames: np.ndarray) -> np.ndarray:
    C = np.cov(frames, rowvar=False)
    return C + (1e-3 * np.trace(C) / len(C) + 1e-9) * np.eye(len(C))


def load_eegmmi_bands(subject: int, folder: Folder) -> Recording:
    """One subject of EEGMMI in bands: 8 to 30 Hz, then the five bands that it is made of.

    Parameters
    ----------
    subject : int
        One of 1 to 20.
    folder : str or path-like
        Folder with ``bands_S001-S020.npz``: ``bands`` in Hz, arrays ``X1``, ``y1``, ``r1`` for subject 1.

    Returns
    -------
    recording : Recording
        Matrices (n, 6, 21, 21) of the motor strip; the groups are the runs.
    """
    path = existing_folder(folder) / BANDS_FILE
    low, high = read_arrays(path)["bands"].T
    inside = (low >= 8) & (high <= 30)  # the whole is the first of the file
    X, y, runs = load_subject(path, subject)
    return Recording(X[:, inside], y, runs)


def load_ssvep_blocks(subject: int, folder: Folder) -> Recording:
    """One subject of `load_ssvep`, with a matrix for each of the three frequencies.

    Parameters
    ----------
    subject : int
        One of `ssvep_subjects`.
    folder : str or path-like
        Folder with ``covariances.npz``.

    Returns
    -------
    recording : Recording
        Matrices (n, 4, 24, 24): the whole, then its diagonal blocks of 8 x 8, the identity elsewhere; the
        groups are the recordings.
    """
    X, y, runs = load_ssvep(subject, folder)
    views = np.tile(np.eye(24), (len(X), 4, 1, 1))
    views[:, 0] = X
    for k in range(3):
        block = slice(8 * k, 8 * k + 8)
        views[:, k + 1, block, block] = X[:, block, block]
    return Recording(views, y, runs)
