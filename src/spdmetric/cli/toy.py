"""Write the toy set of the paper: toy-train.npz, 50 matrices 8 x 8, and toy-new.npz, 500 more.

With --regression, 200 matrices 16 x 16 of rank 8 with regression targets, and 500 more.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from spdmetric.cli.options import make_folder, tell, whole


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--out", type=Path, default=Path("."), metavar="DIR", help="default: here")
    parser.add_argument("--regression", action="store_true", help="regression targets, not classes")
    parser.add_argument("--seed", type=whole(0), default=0, metavar="S", help="default: 0")


def run(arguments: Namespace) -> None:
    """Write the two files."""
    import numpy as np

    from spdmetric.datasets import make_regression, make_toy
    from spdmetric.io.atomic import atomic_file

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
