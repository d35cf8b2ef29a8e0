"""Small writers of the files that laboratories really have: BNCI MAT, EDF+, GDF 2."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from scipy.io import savemat

MISSING = -32768  # digital minimum, which GDF recordings of the competition hold in breaks


def bnci_run(signal: np.ndarray, trial: list[int], y: list[int], fs: int = 250) -> dict:
    """One run as BNCI Horizon 2020 stores it; ``signal`` is (n_channels, n_samples), ``trial`` 1-based."""
    classes = np.empty(4, dtype=object)
    classes[:] = ["left hand", "right hand", "feet", "tongue"]
    return {
        "X": signal.T.astype(float),
        "trial": np.array(trial, dtype=np.int32).reshape(-1, 1),
        "y": np.array(y, dtype=np.uint8).reshape(-1, 1),
        "fs": float(fs),
        "classes": classes,
        "artifacts": np.zeros((len(trial), 1), dtype=np.uint8),
        "gender": "female",
        "age": 22.0,
    }


def write_bnci_mat(path: Path, runs: list[dict]) -> None:
    cells = np.empty((1, len(runs)), dtype=object)
    cells[0] = runs
    savemat(path, {"data": cells}, do_compression=True)


def write_true_labels(path: Path, y: list[int]) -> None:
    savemat(path, {"classlabel": np.array(y, dtype=np.uint8).reshape(-1, 1)})


def write_edf(path: Path, signal: np.ndarray, fs: int, annotations: list[tuple[float, str]]) -> None:
    """Write an EDF+ file of a signal in whole microvolts, one digital step each."""
    import edfio

    signals = [
        edfio.EdfSignal(
            row.astype(float), fs, label=f"E{i}", physical_dimension="uV", physical_range=(-32768, 32767)
        )
        for i, row in enumerate(signal)
    ]
    marks = [edfio.EdfAnnotation(onset, 4.0, text) for onset, text in annotations]
    edfio.Edf(signals, annotations=marks).write(path)


def write_gdf(
    path: Path, digital: np.ndarray, fs: int, step: float, labels: list[str], events: list[tuple[int, int]]
) -> None:
    """Write a GDF 2.11 file of 16-bit samples, one sample a record, and its table of events.

    ``digital`` is (n_channels, n_samples), ``step`` the microvolts of a digital step, and
    events are (0-based sample, type).
    """
    n_channels, n_samples = digital.shape
    header = _gdf_fixed_header(n_channels, n_samples, fs) + _gdf_channels(labels, step)
    assert len(header) == 256 * (n_channels + 1)
    samples = digital.T.astype("<i2").tobytes()
    path.write_bytes(header + samples + _gdf_events(events, fs))


def _gdf_fixed_header(n_channels: int, n_records: int, fs: int) -> bytes:
    parts = [
        b"GDF 2.11",
        b"X X".ljust(66),  # patient
        bytes(10 + 4),  # reserved, habits, weight, height, handedness
        b"test".ljust(64),  # recording
        bytes(16),  # place
        struct.pack("<QQ", 0, 0),  # dates of recording and birth, unknown
        struct.pack("<H", n_channels + 1),  # length of the header, in 256 bytes
        bytes(6 + 8 + 6 + 6),  # classification, equipment, address, head size
        bytes(12 + 12),  # reference and ground electrodes
        struct.pack("<q", n_records),
        struct.pack("<II", 1, fs),  # duration of a record, as a fraction of seconds
        struct.pack("<HH", n_channels, 0),
    ]
    return b"".join(parts)


def _gdf_channels(labels: list[str], step: float) -> bytes:
    n = len(labels)
    low, high = MISSING, -MISSING - 1
    return b"".join(
        [
            b"".join(label.encode().ljust(16, b"\0") for label in labels),
            bytes(80 * n),  # transducers
            bytes(6 * n),  # unit, as text: obsolete
            struct.pack("<H", 4275) * n,  # microvolt
            struct.pack("<d", low * step) * n,  # physical range
            struct.pack("<d", high * step) * n,
            struct.pack("<d", low) * n,  # digital range
            struct.pack("<d", high) * n,
            bytes(68 * n),  # filters, as text: obsolete
            struct.pack("<f", 100.0) * n,  # lowpass
            struct.pack("<f", 0.5) * n,  # highpass
            struct.pack("<f", 50.0) * n,  # notch
            struct.pack("<i", 1) * n,  # samples in a record
            struct.pack("<i", 3) * n,  # int16
            bytes(12 * n),  # positions
            bytes(20 * n),  # impedances, reserved
        ]
    )


def _gdf_events(events: list[tuple[int, int]], fs: int) -> bytes:
    samples, types = np.array(events, dtype=np.int64).reshape(-1, 2).T
    return b"".join(
        [
            b"\x01",  # positions and types alone
            len(events).to_bytes(3, "little"),
            struct.pack("<f", fs),
            (samples + 1).astype("<u4").tobytes(),  # 1-based
            types.astype("<u2").tobytes(),
        ]
    )
