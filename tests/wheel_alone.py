"""What must work with the wheel and its hard dependencies alone; run by ``test_wheel.py``.

    python tests/wheel_alone.py HOME [BLOCKED ...]

HOME is the folder that the package must come from; imports of the packages named after it
fail as if they were not installed.
"""

from __future__ import annotations

import re
import sys
import tempfile
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path


class Without(MetaPathFinder):
    """A finder that does not find some packages."""

    def __init__(self, finder, names: tuple[str, ...]):
        self.finder, self.names = finder, names

    def find_spec(self, fullname, path=None, target=None):
        hidden = fullname.partition(".")[0] in self.names
        return None if hidden else self.finder.find_spec(fullname, path, target)


def library(folder: Path) -> None:
    """Import, fit, save, load, and the two commands."""
    import numpy as np

    from spdmetric import LogEuclideanMetric, LogEuclideanMetricCV, load, save
    from spdmetric.cli import main
    from spdmetric.datasets import make_toy
    from spdmetric.geometry import pairwise_distance

    X, y, X_new, _ = make_toy(20, 10, d=4, random_state=0)
    for metric in (LogEuclideanMetric(2.0), LogEuclideanMetricCV(radii=(0, 1), ranks=(None, 2), cv=2)):
        vectors = metric.fit(X, y).transform(X_new)
        save(metric, folder / "metric.skops")
        assert np.array_equal(load(folder / "metric.skops").transform(X_new), vectors)
    assert pairwise_distance(X, X_new).shape == (20, 10)
    data, model = str(folder / "data.npz"), str(folder / "model.skops")
    np.savez(data, X=X, y=y)
    assert main(["fit", data, "-o", model, "--radius", "1", "--rank", "2"]) == 0
    assert main(["predict", model, data, "-o", str(folder / "labels.csv")]) == 0
    assert (folder / "labels.csv").read_text().startswith("index,label,true\n0,1,1\n")


def features(folder: Path) -> dict:
    """Each optional feature: the extra that it must name, the package it needs, a use of it."""

    from spdmetric.comparison.methods import METHODS, Sizes
    from spdmetric.comparison.page import need_page
    from spdmetric.io.matrices import read_matrices
    from spdmetric.io.signals import read_signals
    from spdmetric.plots import style

    (folder / "S001R04.edf").write_bytes(b"0")
    (folder / "new.mat").write_bytes(bytes(512) + b"\x89HDF\r\n\x1a\n" + bytes(2048))
    return {
        "pyRiemann's methods": ("compare", "pyriemann", lambda: METHODS["mdm"].make(Sizes(4, 2, 2, 2))),
        "figures": ("plots", "matplotlib", style.context),
        "EDF files": ("eeg", "mne", lambda: read_signals(folder / "S001R04.edf", events="T1", window=(0, 1))),
        "pages": ("compare", "jinja2", need_page),
        "MATLAB 7.3": ("hdf5", "h5py", lambda: read_matrices(folder / "new.mat")),
    }


def names_the_extra(feature: str, extra: str, use) -> None:
    said = "nothing: it works"
    try:
        use()
    except ImportError as error:
        said = str(error)
    assert re.search(rf"pip install 'spdmetric\[{extra}\]'", said), (
        f"{feature} should name {extra}, said {said}"
    )


def main(home: str, *blocked: str) -> None:
    if blocked:
        sys.meta_path[:] = [Without(finder, blocked) for finder in sys.meta_path]
    import spdmetric

    assert Path(spdmetric.__file__).is_relative_to(Path(home).resolve()), spdmetric.__file__
    with tempfile.TemporaryDirectory() as folder:
        library(Path(folder))
        found = features(Path(folder))
        # What a hard dependency brings is there.
        there = {package for _, package, _ in found.values() if find_spec(package) is not None}
        for feature, (extra, package, use) in found.items():
            if package not in there:
                names_the_extra(feature, extra, use)
    counted = sum(package not in there for _, package, _ in found.values())
    also = f"; {', '.join(sorted(there))} came with the dependencies" if there else ""
    print(f"the wheel alone: {counted} of {len(found)} optional features name their extra{also}")


if __name__ == "__main__":
    main(*sys.argv[1:])
