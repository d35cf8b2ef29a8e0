"""A small file of matrices, and the page that `spdmetric compare` makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spdmetric.cli import main
from spdmetric.datasets import make_toy

# Names that would break a page that forgets to escape, or a figure that takes them for mathematics.
NAMES = np.array(["<b>left</b> & co", 'right "$x^2$"'])
FEW = "euclid,logeuclid-mean,logeuclid-chosen,logeuclid-mean-lda,mdm"


def matrices(n: int = 24, d: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Matrices of two classes, one of them far from the others."""
    X, y, *_ = make_toy(n, 2, d=d, random_state=3)
    X[7] *= 1e4
    return X, NAMES[np.unique(y, return_inverse=True)[1]]


# Names that would break a layout: without an end, without a place to break, from right to left, with tags.
HOSTILE_NAMES = np.array(
    [
        "<script>document.title='run'</script>" + "x" * 5000,
        "\u202e" + "\u05e9\u05dc\u05d5\u05dd " * 900 + "<img src=x>",
    ]
)


def write_page(
    folder: Path, *arguments: str, names: np.ndarray = NAMES, data: tuple[np.ndarray, ...] | None = None
) -> Path:
    """Write the file, of two classes of these names or of other data, run the command, return the page."""
    X, y = data or matrices()
    np.savez(folder / "toy <1>.npz", X=X, y=y if data else names[np.unique(y, return_inverse=True)[1]])
    out = folder / "report.html"
    common = ["--out", str(out), "--jobs", "1", "--repeats", "1"]
    assert main(["compare", str(folder / "toy <1>.npz"), *common, *arguments]) == 0
    return out
