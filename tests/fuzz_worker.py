"""Damage files at random and read them, in a process whose memory and time are bounded.

    python tests/fuzz_worker.py FOLDER SEED KIND=COUNT ...

prints one JSON object: for each kind how many files were read right, how many got a
sentence, and what went wrong with the others.  Run by ``test_fuzz.py``.  Kinds that begin with
"hostile" are not damaged but made from parts, see ``hostile.py``: reading one of these may take four
times the bytes of what it returns, and 100 MB.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import spdmetric

MEMORY = 10**9  # bytes that reading one file may take
ALLOWANCE = 10**8  # bytes that reading a hostile one may take beside what it returns
SECONDS = 20


class Hang(BaseException):
    """Not an Exception: no reader may turn it into a sentence."""


class Kind(NamedTuple):
    """A way to write good files of a kind, and to read them."""

    write: Callable[[Path], None]  # good files, into a folder
    read: Callable[[Path], Any]
    right: Callable[[Any, Any], bool]  # is what was read of a damaged file right, given the original


# -- Damage ----------------------------------------------------------------------------


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Truncate, flip bytes, cut out or overwrite a piece; half of the damage where the headers are."""
    kind = rng.choice(["cut", "flip", "flip", "flip", "gap", "zeros", "double"])
    at = int(rng.integers(len(content)))
    if rng.random() < 0.5:
        near = int(min(len(content), 2048) * rng.random())
        at = near if rng.random() < 0.5 else len(content) - 1 - near
    length = int(rng.integers(1, 64))
    if kind == "cut":
        return content[:at]
    if kind == "gap":
        return content[:at] + content[at + length :]
    if kind == "zeros":
        return content[:at] + bytes(len(content[at : at + length])) + content[at + length :]
    if kind == "double":
        return content[: at + length] + content[at:]
    changed = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        changed[at] ^= 1 << int(rng.integers(8))
        at = (at + int(rng.integers(1, 200))) % len(content)
    return bytes(changed)


# -- The kinds -------------------------------------------------------------------------


def matrices(rng: np.random.Generator, n: int = 6, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    A = rng.standard_normal((n, d, 2 * d))
    return A @ A.transpose(0, 2, 1), np.array(["left", "right"])[np.arange(n) % 2]


def write_npz(folder: Path) -> None:
    X, y = matrices(np.random.default_rng(0))
    np.savez(folder / "plain.npz", X=X, y=y, groups=np.arange(6) // 3)
    np.savez_compressed(folder / "packed.npz", covs=X.astype(np.float32), labels=y)


def write_npy(folder: Path) -> None:
    np.save(folder / "stack.npy", matrices(np.random.default_rng(0))[0])


def write_csv(folder: Path) -> None:
    (folder / "labels.csv").write_text("index,label\n" + "".join(f"{i},{i % 3}\n" for i in range(200)))


def write_mat(folder: Path) -> None:
    from scipy.io import savemat

    X, y = matrices(np.random.default_rng(0))
    codes = np.arange(6.0).reshape(-1, 1) % 2
    X = X.transpose(1, 2, 0)
    savemat(folder / "plain.mat", {"X": X, "y": codes})
    savemat(folder / "packed.mat", {"covs": X, "labels": np.array(y, dtype=object)}, do_compression=True)


def write_mat73(folder: Path) -> None:
    import h5py

    X, _ = matrices(np.random.default_rng(0))
    with h5py.File(folder / "new.mat", "w", userblock_size=512) as file:
        for name, value in (("X", X), ("y", np.arange(6.0)[None] % 2)):
            file.create_dataset(name, data=value).attrs["MATLAB_class"] = np.bytes_("double")


def write_edf_runs(folder: Path) -> None:
    from formats import write_edf

    signal = np.round(40 * np.random.default_rng(0).standard_normal((64, 160 * 14)))
    write_edf(folder / "S001R04.edf", signal, 160, [(1.0, "T1"), (5.0, "T2"), (9.0, "T0")])


def write_models(folder: Path) -> None:
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    from spdmetric import LogEuclideanMetric, save
    from spdmetric.io.signals import Recipe

    X, y = matrices(np.random.default_rng(0), n=12)
    pipeline = make_pipeline(LogEuclideanMetric(1.0), KNeighborsClassifier(1)).fit(X, y)
    save(pipeline, folder / "pipeline.skops", recipe=Recipe("array"))
    save(pipeline[0], folder / "metric.skops")


def write_fif(folder: Path) -> None:
    import mne

    X = 1e-6 * np.random.default_rng(0).standard_normal((6, 3, 30))
    found = np.c_[100 * np.arange(6), np.zeros(6, int), 1 + np.arange(6) % 2]
    ids = {"left": 1, "right": 2}
    epochs = mne.EpochsArray(X, mne.create_info(3, 100, "eeg"), found, event_id=ids, verbose="ERROR")
    epochs.save(folder / "a-epo.fif", verbose="ERROR")


def read_signal_file(path: Path) -> Any:
    from spdmetric.io.signals import read_signals

    events = {"events": "T1,T2", "window": (0.5, 2.5)} if path.suffix == ".edf" else {}
    found = read_signals(path, **events)
    return found.X, found.y, found.groups


def stack_of_signals(got: Any, original: Any) -> bool:
    X, y, groups = got
    return (
        X.ndim == 3 and X.dtype == np.float64 and all(c is None or c.shape == (len(X),) for c in (y, groups))
    )


def read_matrix_file(path: Path) -> Any:
    from spdmetric.io.matrices import read_matrices

    found = read_matrices(path)
    return found.X, found.y, found.groups


def read_labels(path: Path) -> Any:
    from spdmetric.io.tables import read_column

    return (read_column(path, 200),)


def identical(got: Any, original: Any) -> bool:
    """Equal to the last bit: formats with a checksum."""
    return len(got) == len(original) and all(
        (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))
        for a, b in zip(got, original, strict=True)
    )


def stack_of_labeled(got: Any, original: Any) -> bool:
    """Well formed: without a checksum nobody can tell a flipped bit of a sample from a sample."""
    X, *columns = got
    shaped = X.ndim == 3 and X.shape[1] == X.shape[2] and len(X) > 0
    if X.ndim == 3 and X.dtype == np.float64 and X.shape[1] != X.shape[2]:
        return stack_of_signals(got, original)
    return shaped and all(column is None or column.shape == (len(X),) for column in columns)


def column(got: Any, original: Any) -> bool:
    return got[0].shape == original[0].shape and got[0].dtype.kind in "ifU"


def same_model(got: Any, original: Any) -> bool:
    from test_models import same

    X = matrices(np.random.default_rng(1))[0]
    way = "predict_proba" if hasattr(original, "steps") else "transform"
    return same(getattr(got, way)(X), getattr(original, way)(X))


KINDS = {
    "npz": Kind(write_npz, read_matrix_file, identical),
    "npy": Kind(write_npy, read_matrix_file, stack_of_labeled),
    "csv": Kind(write_csv, read_labels, column),
    "mat": Kind(write_mat, read_matrix_file, stack_of_labeled),
    "mat73": Kind(write_mat73, read_matrix_file, stack_of_labeled),
    "model": Kind(write_models, spdmetric.load, same_model),
    "fif": Kind(write_fif, read_signal_file, stack_of_signals),
    "edf-signals": Kind(write_edf_runs, read_signal_file, stack_of_signals),
}


# -- The run ---------------------------------------------------------------------------


def outcome(kind: Kind, path: Path, original: Any) -> str:
    """ "read", "sentence", or what is wrong."""
    signal.alarm(SECONDS)
    try:
        got = kind.read(path)
    except Hang:
        return f"hangs for {SECONDS} s"
    except (ValueError, OSError) as error:
        text = str(error)
        named = path.stem in text or str(path.parent) in text
        return "sentence" if named and "\n" not in text else f"{type(error).__name__} is no sentence: {text}"
    except BaseException:
        return traceback.format_exc()
    finally:
        signal.alarm(0)
    return "read" if kind.right(got, original) else "is read wrongly"


def run(name: str, count: int, folder: Path, seed: int) -> dict[str, Any]:
    kind, rng = KINDS[name], np.random.default_rng([seed, *name.encode()])
    good, target = folder / name / "good", folder / name / "damaged"
    good.mkdir(parents=True)
    target.mkdir()
    kind.write(good)
    paths = sorted(good.iterdir())
    originals = {path: kind.read(path) for path in paths}
    limit_memory()
    found: dict[str, Any] = {"read": 0, "sentence": 0, "wrong": []}
    for i, path in zip(range(count), endless(paths), strict=False):
        content = damaged(path.read_bytes(), rng)
        (target / path.name).write_bytes(content)
        result = outcome(kind, target / path.name, originals[path])
        if result in found:
            found[result] += 1
        else:
            kept = folder / f"{name}-{seed}-{i}-{path.name}"
            kept.write_bytes(content)
            found["wrong"].append(f"{kept.name}: {result}")
        (target / path.name).unlink()
    return found


def run_hostile(name: str, count: int, folder: Path, seed: int) -> dict[str, Any]:
    """The same for files that are made from parts."""
    import hypothesis

    from hostile import HOSTILE

    made, target = HOSTILE[name], folder / name
    target.mkdir()
    found: dict[str, Any] = {"read": 0, "sentence": 0, "wrong": []}
    kind = Kind(lambda _: None, read_matrix_file, lambda got, _: harmless(got))

    def one(spec: Any) -> None:
        path = target / name
        made.write(spec, path)
        before = peak_memory(reset=True)
        result = outcome(kind, path, None)
        took = peak_memory() - before
        if result in found and took > ALLOWANCE + 4 * kept.get("bytes", 0):
            result = f"{result}, but takes {took / 1e6:.0f} MB to return {kept.get('bytes', 0) / 1e6:.0f}"
        if result in found:
            found[result] += 1
        else:
            saved = folder / f"{name}-{seed}-{len(found['wrong'])}{path.suffix}"
            saved.write_bytes(path.read_bytes() if path.is_file() else b"")
            found["wrong"].append(f"{saved.name}: {result}\n{str(spec)[:600]}")

    every = list(hypothesis.HealthCheck)
    options: Any = {"database": None, "deadline": None, "phases": [hypothesis.Phase.generate]}
    drawn = hypothesis.settings(max_examples=count, suppress_health_check=every, **options)
    test = hypothesis.given(made.drawn)(one)
    hypothesis.seed(seed)(drawn(test))()
    return found


kept: dict[str, int] = {}  # bytes that the last file was read to


def harmless(got: Any) -> bool:
    """Well formed, and nothing of another file in it."""
    from hostile import SECRET

    arrays = [array for array in got if array is not None]
    kept["bytes"] = sum(array.nbytes for array in arrays)
    leaks = any(array.dtype.kind == "f" and (array == SECRET).any() for array in arrays)
    secret = any(str(SECRET) in str(array[:1]) for array in arrays if array.dtype.kind == "U")
    return not leaks and not secret and (len(got) == 1 or stack_of_labeled(got, None))


def peak_memory(reset: bool = False) -> int:
    """Most bytes that the process has held since the last reset."""
    if reset:
        kept.clear()
        Path("/proc/self/clear_refs").write_text("5")
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmHWM:")[2].split()[0]) * 1024


def endless(paths: list[Path]) -> Iterator[Path]:
    while True:
        yield from paths


def limit_memory() -> None:
    """Allow so many bytes more than the libraries have mapped already."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, hard))


def main(folder: str, seed: str, *wishes: str) -> None:
    def hang(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, hang)
    warnings.simplefilter("ignore")  # decoders warn of what they overlook; whether they read right is judged
    found = {}
    for wish in wishes:
        name, count = wish.split("=")
        begin = run_hostile if name.startswith("hostile") else run
        found[name] = begin(name, int(count), Path(folder), int(seed))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
