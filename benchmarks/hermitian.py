"""Cross-spectra against their real parts on EEG, and what complex matrices cost: benchmarks/hermitian.json.

python -m benchmarks.hermitian --data FOLDER     # the folder with eegmmi/S001R04.edf, ...
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from reproduction.stamps import Stamp, code_stamp
from spdmetric import LogEuclideanClassifier, LogEuclideanMetric

SUBJECTS, RUNS = (1, 7, 29), (4, 8, 12)
OUT = Path(__file__).with_suffix(".json")


def find_cross_spectra(signals: np.ndarray, sfreq: float, band: tuple[float, float]) -> np.ndarray:
    """Cross-spectra of trials over the frequencies of a band, from windows of half a second."""
    length = int(sfreq / 2)
    starts = range(0, signals.shape[-1] - length + 1, length // 2)
    parts = np.stack([signals[..., k : k + length] for k in starts], axis=2)
    parts = (parts - parts.mean(axis=-1, keepdims=True)) * np.hanning(length)
    frequencies = np.fft.rfftfreq(length, 1 / sfreq)
    inside = (frequencies >= band[0]) & (frequencies <= band[1])
    F = np.fft.rfft(parts, axis=-1)[..., inside].reshape(*signals.shape[:2], -1)
    S = F @ F.conj().mT / F.shape[-1]
    scale = np.trace(S, axis1=1, axis2=2).real[:, None, None] / S.shape[-1]
    return 0.95 * (S + S.conj().mT) / 2 + 0.05 * scale * np.eye(S.shape[-1])


def read_trials(folder: Path, subject: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Imagined left and right fist, 0.5 to 2.5 s after the cue, 21 channels over the motor cortex."""
    import mne

    X, y, runs = [], [], []
    for run in RUNS:
        raw = mne.io.read_raw_edf(
            folder / f"eegmmi/S{subject:03}R{run:02}.edf", preload=True, verbose="ERROR"
        )
        events, _ = mne.events_from_annotations(raw, {"T1": 0, "T2": 1}, verbose="ERROR")
        epochs = mne.Epochs(raw, events, tmin=0.5, tmax=2.5, baseline=None, preload=True, verbose="ERROR")
        X.append(1e6 * epochs.get_data(copy=False)[:, :21])
        y.append(epochs.events[:, 2])
        runs.append(np.full(len(epochs), run))
    return np.concatenate(X), np.concatenate(y), np.concatenate(runs), float(raw.info["sfreq"])


def measure_cost(n: int, d: int) -> float:
    """CPU time of a fit of complex matrices over that of as many real ones, the best of three."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    A = rng.standard_normal((n, d, 2 * d)) + 1j * rng.standard_normal((n, d, 2 * d))
    A[y == 1, :3] *= 1.3
    H = A @ A.conj().mT / (4 * d)
    H = (H + H.conj().mT) / 2
    seconds: dict[str, list[float]] = {"complex": [], "real": []}
    for _ in range(4):  # the first loads the kernels
        for name, X in (("complex", H), ("real", H.real)):
            start = process_time()
            LogEuclideanMetric().fit(X, y)
            seconds[name].append(process_time() - start)
    return min(seconds["complex"][1:]) / min(seconds["real"][1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("SPDMETRIC_DATA"))
    folder = parser.parse_args().data
    cost = {f"({n}, {d})": measure_cost(n, d) for n, d in ((200, 16), (1000, 22))}
    found: dict[str, object] = {"stamp": Stamp(code_stamp())._asdict(), "cost": cost}
    print(f"cost of a fit, complex over real: {found['cost']}")
    if folder is not None:
        rows = []
        for subject in SUBJECTS:
            X, y, runs, sfreq = read_trials(Path(folder), subject)
            S = find_cross_spectra(X, sfreq, (8, 30))
            row: dict[str, float] = {"subject": subject}
            for name, matrices in (("cross-spectra", S), ("real parts", S.real)):
                model = LogEuclideanClassifier()
                row[name] = float(
                    cross_val_score(model, matrices, y, groups=runs, cv=LeaveOneGroupOut()).mean()
                )
            print(row)
            rows.append(row)
        found["eegmmi"] = rows
    OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
