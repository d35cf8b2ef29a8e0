"""The command toy: two files of matrices to try the others on."""

from __future__ import annotations

from argparse import Namespace

import numpy as np

from spdmetric.cli.options import make_folder
from spdmetric.cli.terminal import tell
from spdmetric.datasets import make_regression, make_toy
from spdmetric.io.atomic import atomic_file


def run(arguments: Namespace) -> None:
    """Write the two files."""
    make_folder(arguments.out)
    if arguments.regression:
        X, y, X_new, y_new = make_regression(rank=8, random_state=arguments.seed)
    else:
        X, y, X_new, y_new = make_toy(random_state=arguments.seed)
        y, y_new = (np.where(signs == 1, "plus", "minus") for signs in (y, y_new))
    sets = {arguments.out / "toy-train.npz": (X, y), arguments.out / "toy-new.npz": (X_new, y_new)}
    for path, (matrices, labels) in sets.items():
        with atomic_file(path) as file:
            np.savez(file, X=matrices, y=labels)
    tell(*(f"written: {path}, {len(matrices)} matrices" for path, (matrices, _) in sets.items()))
